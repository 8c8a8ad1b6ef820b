#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/conformance.md: which test checks which requirement.

A test claims a requirement by naming its id: in Python in the docstring (or a comment) of the test, in C++ in the comment above a
TEST_CASE or within it. An id in the first comment of a C++ file, or in a module's docstring, is claimed by the file as a whole.
`SEED-13/14` and `R4814-01 .. 04` are short for several.

    tools/conformance.py          write the page
    tools/conformance.py --check  exit 1 if it is not up to date
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs/reference/conformance.md")

DOCUMENTS = {
    "SEED": "draft-lencse-bmwg-multiple-ip-addresses",
    "R2544": "RFC 2544",
    "R4814": "RFC 4814",
    "R5180": "RFC 5180",
    "R6815": "RFC 6815",
    "R6985": "RFC 6985",
    "R8219": "RFC 8219",
    "R9004": "RFC 9004",
    "R9693": "RFC 9693",
    "MLR": "RFC 9971 (MLRsearch)",
    "RSS": "receive side scaling",
}
"""Id prefix -> the document whose requirements carry it, in the order of the page."""

ID = re.compile(rf"\b({'|'.join(DOCUMENTS)})-(\d\d)\b(?:(?:/\d\d\b)+|\s*\.\.\s*(?:\1-)?(\d\d)\b)?")
CASE = re.compile(r'^(?:TEST_CASE|SCENARIO|TEST_CASE_FIXTURE|TEST_CASE_TEMPLATE)\(.*?"((?:[^"\\]|\\.)*)"')


class Claim(NamedTuple):
    """A test says that it checks a requirement."""

    requirement: str
    file: str
    test: str
    """Empty: the file as a whole."""


def ids_in(text: str) -> list[str]:
    """Every requirement id in a text, short forms written out.

    >>> ids_in("SEED-13/14, R4814-01 .. R4814-03")
    ['SEED-13', 'SEED-14', 'R4814-01', 'R4814-02', 'R4814-03']
    """
    found = []
    for match in ID.finditer(text):
        prefix, first, last = match.group(1), match.group(2), match.group(3)
        if last:
            found += [f"{prefix}-{n:02}" for n in range(int(first), int(last) + 1)]
        else:
            found += [f"{prefix}-{number}" for number in match.group(0).removeprefix(f"{prefix}-").split("/")]
    return found


def claims_of_python(file: str, source: str) -> Iterator[Claim]:
    """From the docstring of the module, and from docstring and comments of each test, whether or not in a class."""
    tree = ast.parse(source)
    for requirement in ids_in(ast.get_docstring(tree) or ""):
        yield Claim(requirement, file, "")
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        body = lines[node.lineno - 1 : node.end_lineno]
        comments = "\n".join(line.partition("#")[2] for line in body)
        for requirement in ids_in(f"{ast.get_docstring(node) or ''}\n{comments}"):
            yield Claim(requirement, file, node.name)


def claims_of_cpp(file: str, source: str) -> Iterator[Claim]:
    """From comments and names: before the first #include for the file, above or within a TEST_CASE for the case."""
    test = ""
    above: list[str] = []
    in_head = True
    for line in source.splitlines():
        in_head = in_head and not line.startswith("#include")
        case = CASE.match(line)
        comment = line.partition("//")[2]
        if case:
            test = case.group(1)
            for requirement in ids_in("\n".join([*above, test])):
                yield Claim(requirement, file, test)
        elif in_head or test:
            for requirement in ids_in(comment):
                yield Claim(requirement, file, test)
        above = [*above, comment] if line.startswith("//") and not in_head else []
        if line.startswith("}"):
            test = ""


def all_claims(root: Path) -> list[Claim]:
    """Of every test below a checkout."""
    claims: list[Claim] = []
    for path in sorted([*root.glob("tests/**/test_*.py"), *root.glob("engine/tests/*_test.cpp"), *root.glob("router/tests/*_test.cpp")]):
        read = claims_of_python if path.suffix == ".py" else claims_of_cpp
        claims += read(path.relative_to(root).as_posix(), path.read_text())
    return claims


def page(claims: Iterable[Claim]) -> str:
    """The page: one table per document, one line per requirement; a test of a file that claims it as a whole is not repeated."""
    tested: dict[str, dict[str, list[str]]] = {}
    for claim in claims:
        tests = tested.setdefault(claim.requirement, {}).setdefault(claim.file, [])
        if claim.test not in tests:
            tests.append(claim.test)
    text = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        "<!-- Written by `make docs` from the tests; do not edit. -->",
        "# Conformance",
        "",
        f"Which test checks which requirement: {len(tested)} requirements are named by tests.",
        "A number is the project's own count within the document; a test claims it by naming it.",
    ]
    for prefix, document in DOCUMENTS.items():
        requirements = sorted(r for r in tested if r.startswith(f"{prefix}-"))
        if requirements:
            text += ["", f"## {document}", "", "| requirement | tested by |", "|---|---|"]
        for requirement in requirements:
            lines = [f"`{file}`" + _names(tests) for file, tests in sorted(tested[requirement].items())]
            text.append(f"| {requirement} | {'<br>'.join(lines)} |")
    return "\n".join(text) + "\n"


def _names(tests: list[str]) -> str:
    named = [test.replace("|", "\\|") for test in tests if test]
    return f": {'; '.join(named)}" if named else ""


def main(arguments: list[str]) -> int:
    wanted = page(all_claims(ROOT))
    path = ROOT / PAGE
    if "--check" in arguments:
        if path.exists() and path.read_text() == wanted:
            return 0
        print(f"{PAGE} is not up to date with the tests: run `make docs` and commit it", file=sys.stderr)
        return 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(wanted)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
