# SPDX-License-Identifier: Apache-2.0
"""The test runner never claims success for what did not run."""

from __future__ import annotations

import os
import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from tools.run_tests import (
    IN_NAMESPACES,
    ONE_BY_ONE,
    ONE_CPU,
    WITHOUT_PORTS,
    Outcome,
    pytest_command,
    read_doctest,
    read_pytest,
)


def powerset(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [part for n in range(len(names) + 1) for part in combinations(names, n)]


COUNTS = (
    "[doctest] test cases:  12 |  {} passed | {} failed | {} skipped\n[doctest] assertions: 99 | 99"
    " passed | 0 failed |\n"
)


@pytest.mark.parametrize(
    ("output", "exit_code", "good", "text"),
    [
        (COUNTS.format(12, 0, 0), 0, True, "C: 12 passed"),
        (COUNTS.format(10, 0, 2), 0, True, "C: 10 passed, 2 skipped"),
        (COUNTS.format(11, 1, 0), 1, False, "C: 11 passed, 1 failed"),
        (
            COUNTS.format(12, 0, 0),
            1,
            False,
            "C: 12 passed - FAILED: exit code 1",
        ),  # a leak, found after the last test
        (COUNTS.format(0, 0, 12), 0, False, "C: 0 passed, 12 skipped - FAILED: no test ran"),
        ("Segmentation fault", -11, False, "C: 0 passed - FAILED: no counts in its output, exit code -11"),
    ],
)
def test_a_cpp_suite_is_good_only_if_it_ran_and_says_so(
    output: str, exit_code: int, good: bool, text: str
) -> None:
    outcome = read_doctest("C", output, exit_code)
    assert (outcome.is_good, str(outcome)) == (good, text)


@pytest.mark.parametrize(
    ("attributes", "exit_code", "expected"),
    [
        ('tests="10" failures="0" errors="0" skipped="3"', 0, Outcome(name="P", passed=7, skipped=3)),
        ('tests="10" failures="1" errors="1" skipped="0"', 1, Outcome(name="P", passed=8, failed=2)),
        ('tests="0" failures="0" errors="0" skipped="0"', 5, Outcome(name="P", trouble="no test ran")),
        (
            'tests="4" failures="0" errors="0" skipped="0"',
            2,
            Outcome(name="P", passed=4, trouble="exit code 2"),
        ),  # interrupted
    ],
)
def test_a_python_suite_is_read_from_its_report(
    tmp_path: Path, attributes: str, exit_code: int, expected: Outcome
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite {attributes}/></testsuites>")
    assert read_pytest("P", report, exit_code) == expected


def test_a_missing_report_is_a_failure(tmp_path: Path) -> None:
    assert not read_pytest("P", tmp_path / "none.xml", 0).is_good


@pytest.mark.parametrize("marks", powerset(("wire", "root", "two_cpus", "alone")), ids=" ".join)
def test_each_test_is_run_once(marks: tuple[str, ...]) -> None:
    """Whatever marks it has, it belongs to one part of `make test`."""
    parts = (WITHOUT_PORTS, IN_NAMESPACES, ONE_CPU, ONE_BY_ONE)
    names = {name: name in marks for name in ("wire", "root", "two_cpus", "alone")}
    assert [bool(eval(part, {}, names)) for part in parts].count(True) == 1


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_test_that_hangs_is_named_and_shows_where_it_stands(tmp_path: Path, at_once: int) -> None:
    """A whole suite hung for its 45 minutes, and nobody could say in which test."""
    (tmp_path / "test_waiting.py").write_text(
        "import threading, pytest\n"
        "def test_waits():\n    threading.Event().wait()\n"
        "@pytest.mark.parametrize('n', range(20))\ndef test_goes_on(n):\n    pass\n"
    )
    report = tmp_path / "report.xml"
    # The pytest within is told nothing by the one around it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [*pytest_command(report, at_once=at_once, hangs_s=3), "test_waiting.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert 'test_waiting.py", line 3 in test_waits' in ended.stdout
    assert read_pytest("P", report, ended.returncode) == Outcome(name="P", passed=20, failed=1), ended.stdout
