#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/conformance.md: for each requirement its status, and how the project deviates, or why
it is not offered; and into build-docs/conformance-tests.md, which is not kept, which tests check it.

A test claims a requirement by naming its id: in Python in the docstring (or a comment) of the test, in C++ in
the comment above a TEST_CASE or within it. An id in the first comment of a C++ file, or in a module's
docstring, is claimed by the file as a whole. `SEED-13/14` and `R4814-01 .. 04` are short for several. The
list of requirements, deviations and what is not offered are written by hand in
docs/reference/conformance-notes.toml.

A test marked `slow` is run by `make prove`, not by `make test-all`: a requirement that only such tests
claim is *proved*, not *tested*. tools/breaks.py shows that a test would fail if the product broke the
requirement.

    tools/conformance.py          write the page and the list of tests
    tools/conformance.py --check  exit 1 if it is not up to date

Exit 1 in both cases if tests and notes contradict each other, or leave a requirement open.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs/reference/conformance.md")
NOTES = Path("docs/reference/conformance-notes.toml")
TESTS = Path("build-docs/conformance-tests.md")

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
    is_slow: bool = False
    """Run by `make prove` only."""


class Note(NamedTuple):
    """What stands in the notes of a requirement."""

    title: str
    """What it asks for, in half a line."""
    deviates: str = ""
    not_offered: str = ""


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
    """From the docstring of the module, and from docstring and comments of each test, whether or not in a
    class."""
    tree = ast.parse(source)
    is_slow_file = any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _is_slow(node)
        for node in tree.body
    )
    for requirement in ids_in(ast.get_docstring(tree) or ""):
        yield Claim(requirement, file, "", is_slow_file)
    comments = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for node, is_slow in _tests_of(tree, is_slow_file):
        last = node.end_lineno or node.lineno
        within = "\n".join(token.string for token in comments if node.lineno <= token.start[0] <= last)
        for requirement in ids_in(f"{ast.get_docstring(node) or ''}\n{within}"):
            yield Claim(requirement, file, node.name, is_slow)


def _tests_of(
    parent: ast.AST, is_slow: bool
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Test functions and whether each is marked `slow` as a whole, itself or what it stands in. Parameters
    that are slow leave others."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield from _tests_of(node, is_slow or any(map(_is_slow, node.decorator_list)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node, is_slow or any(map(_is_slow, node.decorator_list))


def _is_slow(node: ast.AST) -> bool:
    """Whether a decorator, or what is assigned to `pytestmark`, is or has `pytest.mark.slow`; not within
    `pytest.param(...)`."""
    if isinstance(node, ast.Call):
        return False
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) == "pytest.mark.slow"
    return any(map(_is_slow, ast.iter_child_nodes(node)))


def claims_of_cpp(file: str, source: str) -> Iterator[Claim]:
    """From comments and names: before the first #include for the file, above or within a TEST_CASE for the
    case."""
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
    """The claims of every test below a checkout."""
    claims: list[Claim] = []
    for path in sorted(
        [
            *root.glob("tests/**/test_*.py"),
            *root.glob("engine/tests/*_test.cpp"),
            *root.glob("router/tests/*_test.cpp"),
        ]
    ):
        read = claims_of_python if path.suffix == ".py" else claims_of_cpp
        claims += read(path.relative_to(root).as_posix(), path.read_text())
    return claims


def read_notes(text: str) -> dict[str, Note]:
    """Requirement -> note, in the order of the file. ValueError names what is no note."""
    notes = {}
    document: dict[str, Any] = tomllib.loads(text)
    for requirement, entry in document.items():
        if ids_in(requirement) != [requirement]:
            raise ValueError(f"{requirement} is not the id of a requirement")
        unknown = sorted(set(entry) - set(Note._fields))
        if (
            unknown
            or not all(isinstance(value, str) and value for value in entry.values())
            or not entry.get("title")
        ):
            raise ValueError(
                f"{requirement}: want title, and deviates or not_offered, as texts"
                + "".join(f"; got {key}" for key in unknown)
            )
        notes[requirement] = Note(**entry)
    return notes


def problems(claims: Iterable[Claim], notes: Mapping[str, Note]) -> list[str]:
    """Where claims and notes do not give each requirement exactly one status."""
    tested = {claim.requirement: claim for claim in claims}
    found = [
        f"{requirement} is named by {claim.file}, but {NOTES} does not list it"
        for requirement, claim in sorted(tested.items())
        if requirement not in notes
    ]
    for requirement, note in notes.items():
        if note.deviates and note.not_offered:
            found.append(f"{requirement} has both deviates and not_offered")
        if note.not_offered and requirement in tested:
            found.append(
                f"{requirement} is not offered, yet {tested[requirement].file} tests it: write deviates, or"
                " nothing"
            )
        if not (note.deviates or note.not_offered or requirement in tested):
            found.append(
                f"{requirement}: no test names it, and {NOTES} says neither deviates nor not_offered"
            )
    return found


def page(claims: Iterable[Claim], notes: Mapping[str, Note]) -> str:
    """The page: for each document one line per requirement, with its status and the reason."""
    status = statuses(claims, notes)
    numbers = {
        word: list(status.values()).count(word) for word in ("tested", "proved", "deviates", "not offered")
    }
    text = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"<!-- Written by `make docs` from the tests and {NOTES.name}; do not edit. -->",
        "# Conformance",
        "",
        f"{len(notes)} requirements: {numbers['tested']} are tested, {numbers['proved']} are proved,"
        f" {numbers['deviates']} are met with a deviation, and {numbers['not offered']} are not offered.",
        "The numbers are the project's own; a test claims a requirement by naming it.",
        "",
        "| status | meaning |",
        "|---|---|",
        "| *tested* | a test that `make test-all` runs names it; for SEED, R4814 and RSS a"
        " [break on purpose](../../HACKING.md#breaks-on-purpose) shows that such a test can fail |",
        "| *proved* | only tests marked *slow* name it, which `make prove` runs |",
        "| *deviates* | it is met otherwise than its document says |",
        "| *not offered* | this version does not do it |",
        "",
        "Below, a requirement without a status is tested.",
        f"`make docs` writes `{TESTS}`, which names the tests of each requirement.",
        f"The reasons are written by hand in [{NOTES.name}]({NOTES.name}).",
    ]
    for prefix, document in DOCUMENTS.items():
        requirements = sorted(r for r in notes if r.startswith(f"{prefix}-"))
        if requirements:
            text += ["", f"## {document}", ""]
        for requirement in requirements:
            note = notes[requirement]
            reason = note.deviates or note.not_offered
            said = "" if status[requirement] == "tested" else f", *{status[requirement]}*"
            text.append(f"- {requirement}{said}: {note.title}." + (f" {_sentence(reason)}" if reason else ""))
    return "\n".join(text) + "\n"


def list_of_tests(claims: Iterable[Claim], notes: Mapping[str, Note]) -> str:
    """Which tests claim each requirement; a test of a file that claims it as a whole is not repeated."""
    tested: dict[str, dict[str, list[str]]] = {}
    for claim in claims:
        tests = tested.setdefault(claim.requirement, {}).setdefault(claim.file, [])
        shown = claim.test + (" (slow)" if claim.is_slow and claim.test else "")
        if shown not in tests:
            tests.append(shown)
    text = ["# Tests of each requirement", ""]
    for requirement in notes:
        text.append(f"- {requirement}: {notes[requirement].title}")
        text += [
            f"  - `{file}`{_names(tests)}" for file, tests in sorted(tested.get(requirement, {}).items())
        ]
    return "\n".join(text) + "\n"


def _sentence(reason: str) -> str:
    """Notes are written without the stop at their end; some begin with a name in code."""
    return f"{reason[0].upper()}{reason[1:]}."


def statuses(claims: Iterable[Claim], notes: Mapping[str, Note]) -> dict[str, str]:
    """Requirement -> *tested*, *proved*, *deviates* or *not offered*."""
    in_make_test = {claim.requirement for claim in claims if not claim.is_slow}

    def status(requirement: str, note: Note) -> str:
        if note.not_offered or note.deviates:
            return "not offered" if note.not_offered else "deviates"
        return "tested" if requirement in in_make_test else "proved"

    return {requirement: status(requirement, note) for requirement, note in notes.items()}


def _names(tests: list[str]) -> str:
    named = [test for test in tests if test]
    return f": {'; '.join(named)}" if named else ""


def main(arguments: list[str]) -> int:
    claims = all_claims(ROOT)
    try:
        notes = read_notes((ROOT / NOTES).read_text())
        wrong = problems(claims, notes)
    except ValueError as error:
        notes, wrong = {}, [f"{NOTES}: {error}"]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    wanted = page(claims, notes)
    path = ROOT / PAGE
    if "--check" in arguments:
        if path.exists() and path.read_text() == wanted:
            return 0
        print(
            f"{PAGE} is not up to date with tests and notes: run `make docs` and commit it", file=sys.stderr
        )
        return 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(wanted)
    tests = ROOT / TESTS
    tests.parent.mkdir(exist_ok=True)
    tests.write_text(list_of_tests(claims, notes))
    print(f"wrote {PAGE} and {TESTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
