# SPDX-License-Identifier: Apache-2.0
"""What a suite of tests says of itself: how many passed, which failed and why, how long each took."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

DOCTEST_COUNTS = re.compile(
    r"\[doctest\] test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped"
)
DOCTEST_CASE = re.compile(r"^TEST CASE:\s+(.+)$", re.MULTILINE)
DOCTEST_ERROR = re.compile(r"^.+?: (?:FATAL )?ERROR: (.+(?:\n +.+)*)", re.MULTILINE)
DOCTEST_SEED = re.compile(r"^Using configuration: (.*seed=\d+.*)$", re.MULTILINE)
LONGEST_FAILURE = 300
MOST_FAILURES = 20
"""That are named at the end; all are in the suites' own output."""
REPETITIONS = 2
"""How often a test that failed must then pass."""
ROOT = Path(__file__).resolve().parents[1]
SLOWEST = 20
"""Tests that are named at the end, and files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one suite says of itself."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: str = ""
    """Why the suite failed although no test of it did; empty if it did not."""
    durations: tuple[tuple[float, str], ...] = field(default=(), compare=False)
    """Seconds and name of each test, in any order; none if the suite does not tell."""
    ran_s: tuple[float, float] = field(default=(0.0, 0.0), compare=False)
    """When it began and ended, by the same clock as those of other suites."""
    failures: tuple[str, ...] = field(default=(), compare=False)
    """Name of each test that failed, and what it says first."""
    unsteady: tuple[str, ...] = field(default=(), compare=False)
    """The same of each test that failed once and then passed alone: among those that passed."""

    @property
    def is_good(self) -> bool:
        return not self.failed and not self.trouble

    def __str__(self) -> str:
        counts = [f"{self.passed} passed"]
        counts += [f"{self.failed} failed"] if self.failed else []
        counts += [f"{self.skipped} skipped"] if self.skipped else []
        return f"{self.name}: {', '.join(counts)}" + (f" - FAILED: {self.trouble}" if self.trouble else "")


def judged(outcome: Outcome, exit_code: int) -> Outcome:
    """An outcome that is good only if something ran and the suite's exit code agrees with its counts."""
    if outcome.passed + outcome.failed == 0:
        return replace(outcome, trouble="no test ran")
    if exit_code != 0 and outcome.failed == 0:
        return replace(outcome, trouble=f"exit code {exit_code}")
    return outcome


def read_doctest(name: str, output: str, exit_code: int) -> Outcome:
    """Counts from the last lines that doctest prints; a program that died before them has none."""
    found = DOCTEST_COUNTS.findall(output)
    if not found:
        return Outcome(name=name, trouble=f"no counts in its output, exit code {exit_code}")
    passed, failed, skipped = (int(text) for text in found[-1])
    outcome = Outcome(
        name=name, passed=passed, failed=failed, skipped=skipped, failures=doctest_failures(output)
    )
    return judged(outcome, exit_code)


def doctest_failures(output: str) -> tuple[str, ...]:
    """Name and first error of each test that failed; with the seed, if one was drawn for its examples."""
    seed = DOCTEST_SEED.search(output)
    drawn = f' (RC_PARAMS="{seed[1]}")' if seed else ""
    return tuple(
        f"{case[1]}: {' '.join(error[1].split())}{drawn}"
        for block in re.split(r"^={20,}$", output, flags=re.MULTILINE)
        if (case := DOCTEST_CASE.search(block)) and (error := DOCTEST_ERROR.search(block))
    )


def read_pytest(name: str, report: Path, exit_code: int) -> Outcome:
    """Counts from pytest's JUnit report; an error outside of a test counts as a failure."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return Outcome(name=name, trouble=f"no report, exit code {exit_code}")
    tests, failures, errors, skipped = (
        sum(int(s.get(key, "0")) for s in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    cases = [case for suite in suites for case in suite.iter("testcase")]
    outcome = Outcome(
        name=name,
        passed=max(tests - failures - errors - skipped, 0),
        failed=failures + errors,
        skipped=skipped,
        durations=tuple((float(case.get("time", "0")), _name(case)) for case in cases),
        failures=tuple(
            f"{_name(case)}: {_first_line(said.get('message', ''))}"
            for case in cases
            for said in case
            if said.tag in {"failure", "error"}
        ),
    )
    return judged(outcome, exit_code)


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '')}::{case.get('name', '')}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each of the first tests that failed, as a log may be read from its end alone."""
    found = [one for outcome in outcomes for one in outcome.failures]
    lines = [f"FAILED {one[:LONGEST_FAILURE]}" for one in found[:MOST_FAILURES]]
    return lines + ([f"and {len(found) - MOST_FAILURES} more"] if len(found) > MOST_FAILURES else [])


def tests_to_repeat(outcomes: Sequence[Outcome], most: int) -> list[str]:
    """What to give to pytest for each Python test that failed. None if more than `most` failed, or if
    anything else is wrong: then it was not a moment of this machine's."""
    found = [name_of(one) for outcome in outcomes for one in outcome.failures]
    failed = sum(outcome.failed for outcome in outcomes)
    if failed != len(set(found)) or failed > most or any(outcome.trouble for outcome in outcomes):
        return []
    files = [module.replace(".", "/") + ".py" for module, _, _ in (name.partition("::") for name in found)]
    if not all((ROOT / file).is_file() for file in files):
        return []
    return [f"{file}::{name.partition('::')[2]}" for file, name in zip(files, found, strict=True)]


def with_repeated(outcome: Outcome) -> Outcome:
    """The same suite, all of whose failed tests have passed when they were repeated alone."""
    return replace(
        outcome, passed=outcome.passed + outcome.failed, failed=0, failures=(), unsteady=outcome.failures
    )


def name_of(failure: str) -> str:
    """The test in a line of `Outcome.failures`, whose parameters may have colons too."""
    return failure.partition(": ")[0]


def unsteady(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each test that failed once and then passed."""
    return [
        f"UNSTEADY: failed once, then passed alone {REPETITIONS} times: {one[:LONGEST_FAILURE]}"
        for outcome in outcomes
        for one in outcome.unsteady
    ]


def slowest(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each of the slowest tests of all suites, the slowest first."""
    found = sorted((one for outcome in outcomes for one in outcome.durations), reverse=True)
    return [f"{seconds:6.1f} s  {name}" for seconds, name in found[:SLOWEST]]


def slowest_files(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each of the files whose tests took longest together."""
    summed: defaultdict[str, float] = defaultdict(float)
    for outcome in outcomes:
        for seconds, name in outcome.durations:
            summed[name.partition("::")[0]] += seconds
    found = sorted(((seconds, name) for name, seconds in summed.items()), reverse=True)
    return [f"{seconds:6.0f} s  {name}" for seconds, name in found[:SLOWEST]]


def spans(outcomes: Sequence[Outcome], start_s: float) -> list[str]:
    """A line for each suite: when it ran, after the start, and how long its tests took one by one."""
    return [
        f"{began_s - start_s:5.0f} to {ended_s - start_s:5.0f} s"
        f" {sum(seconds for seconds, _ in outcome.durations):6.0f} s of tests  {outcome.name}"
        for outcome in outcomes
        for began_s, ended_s in [outcome.ran_s]
    ]
