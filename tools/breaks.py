#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the product on purpose, one break at a time, and checks that the test that names the requirement
fails.

A test can name a requirement and yet pass whatever the product does. tools/breaks.toml has a break for each
requirement of SEED, R4814 and RSS that docs/reference/conformance.md calls *tested*: a text of one file, its
replacement, and the tests that must then fail. Nothing is changed in the checkout: everything happens in a
temporary git worktree, which has the checkout's files as they are, and is removed even after Ctrl-C.

    tools/breaks.py                         all breaks; a quarter of an hour, most of it compiling
    tools/breaks.py --only SEED-70 RSS-04   the breaks of these requirements
    tools/breaks.py --list                  list the breaks and the tests that must fail; run nothing

First the named tests must pass unbroken. Then each break is one of:
    caught           every test that it names failed
    NOT CAUGHT       a test passed, was skipped, was never found, or did not end
    does not apply   its text does not occur exactly once in its file, or the file does not compile with it
Exit 0 if all are caught, 1 if not, 2 for a bad request or a bad list.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import conformance  # noqa: E402  after the path
from tools.breaks_worktree import Ran, Worktree  # noqa: E402

LIST = Path("tools/breaks.toml")
PREFIXES = ("SEED", "R4814", "RSS")
"""Documents whose tested requirements need a break."""
KEYS = {"ids", "what", "file", "old", "new", "tests"}
CAUGHT, NOT_CAUGHT, DOES_NOT_APPLY = "caught", "NOT CAUGHT", "does not apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One change that breaks what requirements ask for."""

    ids: tuple[str, ...]
    what: str
    """What is wrong then, in half a line."""
    file: str
    """Path from the root of the checkout."""
    old: str
    """Stands exactly once in the file, however it is laid out."""
    new: str
    tests: tuple[str, ...]
    """`tests/.../test_x.py::test_name`, with `[parameters]` or without, or `.../x_test.cpp::name of the
    case`. Each must fail."""

    @property
    def name(self) -> str:
        return f"{'/'.join(self.ids)}: {self.what}"

    @property
    def is_cpp(self) -> bool:
        return self.file.endswith((".cpp", ".hpp"))

    def applied_to(self, source: str) -> str:
        """The broken file. ValueError: the text to replace does not occur there exactly once.

        How a formatter lays the text out does not matter: any white space between two words or signs, or
        none, and a comma before a closing bracket.
        """
        parts = [re.escape(part) for part in re.findall(r"\w+|[^\w\s]", self.old)]
        gaps = [r",?\s*" if part in (r"\)", r"\]", r"\}") else r"\s*" for part in parts]
        found = list(re.finditer("".join(map("".join, zip(["", *gaps[1:]], parts, strict=True))), source))
        if len(found) != 1:
            raise ValueError(f"the text to replace occurs {len(found)} times in {self.file}, not once")
        # The text is found behind the indentation of its first line, so that of the replacement goes.
        indentation = self.old[: len(self.old) - len(self.old.lstrip(" "))]
        return source[: found[0].start()] + self.new.removeprefix(indentation) + source[found[0].end() :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one break."""

    of: Break
    verdict: str
    why: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        why = f"\n{'':16}{self.why}" if self.why else ""
        return f"{self.verdict:16}{self.of.name} ({self.of.file}, {self.seconds:.0f} s){why}"


def read_breaks(text: str) -> list[Break]:
    """The list, in its order. ValueError names the entry with a slip."""
    document: dict[str, Any] = tomllib.loads(text)
    if set(document) != {"break"}:
        raise ValueError(f"want [[break]] and nothing else; got {', '.join(sorted(document))}")
    found = []
    for number, entry in enumerate(document["break"], 1):
        where = f"break {number} ({'/'.join(entry.get('ids', []))})"
        if set(entry) != KEYS:
            raise ValueError(
                f"{where}: want {', '.join(sorted(KEYS))}; different: {', '.join(sorted(KEYS ^ set(entry)))}"
            )
        if not all(entry[key] for key in KEYS - {"new"}):
            raise ValueError(f"{where}: nothing but `new` may be empty")
        if entry["old"] == entry["new"]:
            raise ValueError(f"{where}: old and new are the same")
        wrong = [name for name in entry["ids"] if conformance.ids_in(name) != [name]]
        wrong += [test for test in entry["tests"] if "::" not in test]
        if wrong:
            raise ValueError(f"{where}: {wrong[0]!r} is neither a requirement nor FILE::TEST")
        found.append(Break(**{**entry, "ids": tuple(entry["ids"]), "tests": tuple(entry["tests"])}))
    return found


def function_of(test: str) -> tuple[str, str]:
    """File and name of a test, without parameters; a case of C++ may have brackets in its name."""
    file, _, name = test.partition("::")
    return file, name.partition("[")[0].rpartition("::")[2] if file.endswith(".py") else name


def required_ids(root: Path, claims: Sequence[conformance.Claim]) -> list[str]:
    """What conformance.md calls *tested*, of those that need a break."""
    notes = conformance.read_notes((root / conformance.NOTES).read_text())
    statuses = conformance.statuses(claims, notes)
    return [
        name for name, status in statuses.items() if status == "tested" and name.partition("-")[0] in PREFIXES
    ]


def problems(breaks: Iterable[Break], root: Path) -> list[str]:
    """Where list and checkout do not fit: texts that are gone, requirements without a break, tests that do
    not name what they must see."""
    breaks, all_claims = list(breaks), conformance.all_claims(root)
    claims: dict[tuple[str, str], set[str]] = {}
    for claim in all_claims:
        if not claim.is_slow:
            claims.setdefault((claim.file, claim.test), set()).add(claim.requirement)
    found = [
        f"{name} is tested, and has no break"
        for name in required_ids(root, all_claims)
        if not any(name in b.ids for b in breaks)
    ]
    for b in breaks:
        path = root / b.file
        try:
            b.applied_to(path.read_text())
        except (OSError, ValueError) as error:
            found.append(f"{b.name}: {error}")
        seen: set[str] = set()
        for test in b.tests:
            file, name = function_of(test)
            if not (root / file).exists() or name not in (root / file).read_text():
                found.append(f"{b.name}: there is no {test}")
            seen |= claims.get((file, name), set()) | claims.get((file, ""), set())
        found += [f"{b.name}: none of its tests names {name}" for name in b.ids if name not in seen]
    return found


def try_break(tree: Worktree, b: Break) -> Outcome:
    """Break, build if need be, run its tests, mend."""
    start = time.monotonic()

    def outcome(verdict: str, why: str = "") -> Outcome:
        return Outcome(of=b, verdict=verdict, why=why, seconds=time.monotonic() - start)

    path = tree.path / b.file
    source = path.read_text()
    try:
        path.write_text(b.applied_to(source))
        trouble = tree.build_for(b.tests)
        if trouble:
            return outcome(DOES_NOT_APPLY, f"it does not compile: {trouble}")
        for test in b.tests:
            ran = tree.run(test)
            if ran.result != Ran.FAILED:
                return outcome(NOT_CAUGHT, f"{ran.result}: {test}" + (f" ({ran.why})" if ran.why else ""))
        return outcome(CAUGHT)
    except ValueError as error:
        return outcome(DOES_NOT_APPLY, str(error))
    finally:
        path.write_text(source)


def try_all(breaks: Sequence[Break]) -> list[Outcome]:
    """The breaks of Python first: they need no building but the first."""
    outcomes: list[Outcome] = []
    with Worktree(ROOT) as tree:
        print(f"In {tree.path}: building, and running the tests unbroken.", flush=True)
        tests = list(dict.fromkeys(test for b in breaks for test in b.tests))
        trouble = tree.build_for(tests)
        if trouble:
            raise SystemExit(f"tools/breaks.py: the checkout does not build: {trouble}")
        unfit = {test: ran for test, ran in tree.run_unbroken(tests).items() if ran.result != Ran.PASSED}
        for b in sorted(breaks, key=lambda b: b.is_cpp):
            bad = next((test for test in b.tests if test in unfit), None)
            if bad is None:
                outcomes.append(try_break(tree, b))
            else:
                outcomes.append(
                    Outcome(
                        of=b,
                        verdict=NOT_CAUGHT,
                        why=f"{unfit[bad].result} unbroken: {bad} ({unfit[bad].why})",
                    )
                )
            print(outcomes[-1], flush=True)
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Counts, and again what was not caught."""
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in (CAUGHT, NOT_CAUGHT, DOES_NOT_APPLY)
        if verdict in verdicts
    )
    return [
        *(str(outcome) for outcome in outcomes if outcome.verdict != CAUGHT),
        f"{len(outcomes)} breaks: {counts}",
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Break the product on purpose; the tests must notice.")
    parser.add_argument("--only", nargs="+", metavar="ID", help="breaks of these requirements")
    parser.add_argument("--list", action="store_true", help="show the breaks, run nothing")
    options = parser.parse_args(arguments)
    try:
        breaks = read_breaks((ROOT / LIST).read_text())
    except ValueError as error:
        print(f"{LIST}: {error}", file=sys.stderr)
        return 2
    if options.only is not None:
        unknown = [name for name in options.only if not any(name in b.ids for b in breaks)]
        if unknown:
            print(f"tools/breaks.py: no break of {', '.join(unknown)}; --list shows all", file=sys.stderr)
            return 2
        breaks = [b for b in breaks if set(options.only) & set(b.ids)]
    if options.list:
        for b in breaks:
            print(f"{b.name}\n    {b.file}\n    " + "\n    ".join(b.tests))
        return 0
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        outcomes = try_all(breaks)
    except KeyboardInterrupt:
        print("interrupted; nothing is left of the worktree", file=sys.stderr)
        return 130
    print(*["", *summary(outcomes)], sep="\n")
    return 0 if all(outcome.verdict == CAUGHT for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
