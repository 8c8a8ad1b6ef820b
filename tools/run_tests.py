#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test suite, and ends with how many tests of each ran.

The counts come from the suites' own reports. A suite that crashed, reported nothing or ran nothing has
failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCTEST_COUNTS = re.compile(
    r"\[doctest\] test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped"
)
ENDLESS_S = 2700
"""A suite that takes longer hangs."""
HANGS_S = 900.0
"""A test that takes longer hangs. The longest takes half a minute alone, and a few on a machine that
stalls."""
WITHOUT_PORTS = "not wire and not root"
IN_NAMESPACES = "root and not wire"
ONE_CPU = "wire and not root and not two_cpus and not alone"
"""Tests of a tester alone. What is marked `root` shares with others what the kernel has once."""
ONE_BY_ONE = f"wire and not ({ONE_CPU})"
_KEPT: dict[str, Any] = {
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
    "text": True,
    "errors": "replace",
}
"""What a suite prints is kept until it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one suite says of itself."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: str = ""
    """Why the suite failed although no test of it did; empty if it did not."""

    @property
    def is_good(self) -> bool:
        return not self.failed and not self.trouble

    def __str__(self) -> str:
        counts = [f"{self.passed} passed"]
        counts += [f"{self.failed} failed"] if self.failed else []
        counts += [f"{self.skipped} skipped"] if self.skipped else []
        return f"{self.name}: {', '.join(counts)}" + (f" - FAILED: {self.trouble}" if self.trouble else "")


def judged(name: str, passed: int, failed: int, skipped: int, exit_code: int) -> Outcome:
    """An outcome that is good only if something ran and the suite's exit code agrees with its counts."""
    trouble = ""
    if passed + failed == 0:
        trouble = "no test ran"
    elif exit_code != 0 and failed == 0:
        trouble = f"exit code {exit_code}"
    return Outcome(name=name, passed=passed, failed=failed, skipped=skipped, trouble=trouble)


def read_doctest(name: str, output: str, exit_code: int) -> Outcome:
    """Counts from the last lines that doctest prints; a program that died before them has none."""
    found = DOCTEST_COUNTS.findall(output)
    if not found:
        return Outcome(name=name, trouble=f"no counts in its output, exit code {exit_code}")
    passed, failed, skipped = (int(text) for text in found[-1])
    return judged(name, passed, failed, skipped, exit_code)


def read_pytest(name: str, report: Path, exit_code: int) -> Outcome:
    """Counts from pytest's JUnit report; an error outside of a test counts as a failure."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return Outcome(name=name, trouble=f"no report, exit code {exit_code}")
    tests, failures, errors, skipped = (
        sum(int(s.get(key, "0")) for s in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return judged(name, max(tests - failures - errors - skipped, 0), failures + errors, skipped, exit_code)


def run_cpp_tests(name: str, build: str, of: str) -> Outcome:
    """The C++ tests of the engine or of the router, from one build folder."""
    program = ROOT / build / of / "tests" / f"evenhand-{of}-tests"
    # Undefined behaviour is only printed otherwise, and the tests go on.
    environment = {
        **os.environ,
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    }
    try:
        ended = subprocess.run([program, "--no-colors"], env=environment, check=False, **_KEPT)
    except OSError as error:
        return Outcome(name=name, trouble=str(error))
    print(f"\n== {name}\n{ended.stdout}", flush=True)
    return read_doctest(name, ended.stdout, ended.returncode)


def run_cpp_suites() -> list[Outcome]:
    """One after the other; each prints when it has ended."""
    return [
        run_cpp_tests("C++ tests", "build", "engine"),
        run_cpp_tests("C++ tests of the router", "build", "router"),
        run_cpp_tests("C++ tests under sanitizers", "build-asan", "engine"),
        run_cpp_tests("C++ tests of the router under sanitizers", "build-asan", "router"),
    ]


def pytest_command(report: Path, *, at_once: int, hangs_s: float = HANGS_S) -> list[str]:
    """pytest, which tells where each thread of a test stands that hangs: it has failed, and the others go on
    in a new process."""
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}"]
    command += ["-o", f"faulthandler_timeout={hangs_s}", "-o", "faulthandler_exit_on_timeout=true"]
    return [*command, "-n", str(at_once), "--dist", "worksteal"]


def run_python_tests(
    name: str, marked: str, *, at_once: int = 1, has_cpu_each: bool = False, is_beside: bool = False
) -> Outcome:
    """What is marked so under tests/, with the reason of each skip.

    Args:
        at_once: Tests that run at the same time. 1 where tester and DUT have all CPUs: others would spoil
            their trials.
        has_cpu_each: Each of those at once has a CPU of its own, as long as all of them live.
        is_beside: Another suite prints meanwhile; this one prints when it has ended.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = pytest_command(report, at_once=at_once)
        command += ["--cpu-each"] if has_cpu_each else []
        command += [
            "-m",
            f"({marked}) and not slow and not vm and not nic",
            "-rs",
            "--durations=40",
            "--durations-min=4",
        ]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, timeout=ENDLESS_S, check=False, **(_KEPT if is_beside else {})
            )
        except subprocess.TimeoutExpired as error:
            kept = (
                error.stdout
                if isinstance(error.stdout, str)
                else (error.stdout or b"").decode(errors="replace")
            )
            print(f"\n== {name}\n{kept}", flush=True)
            return Outcome(name=name, trouble=f"did not end within {ENDLESS_S} s")
        if is_beside:
            print(f"\n== {name}\n{ended.stdout}", flush=True)
        return read_pytest(name, report, ended.returncode)


def main() -> int:
    start = time.monotonic()
    # Tests start a thousand commands. Some systems forbid Python to keep what it compiled, and each command
    # then compiles all of Evenhand.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    cpus = min(len(os.sched_getaffinity(0)), 8)
    # C++ tests, and Python tests that send nothing, ask no clock: they share the CPUs. Who sends frames has
    # them alone.
    with ThreadPoolExecutor(max_workers=2) as beside:
        cpp = beside.submit(run_cpp_suites)
        # One after the other: labs change limits that all namespaces share.
        name = "Python tests in namespaces"
        in_namespaces = (
            beside.submit(run_python_tests, name, IN_NAMESPACES, is_beside=True)
            if os.geteuid() == 0
            else None
        )
        without_an_engine = run_python_tests("Python tests", WITHOUT_PORTS, at_once=max(cpus, 2))
        outcomes = [
            *cpp.result(),
            without_an_engine,
            *([] if in_namespaces is None else [in_namespaces.result()]),
        ]
    print("\n== Python tests on ports, a CPU each", flush=True)
    outcomes.append(
        run_python_tests("Python tests on ports, a CPU each", ONE_CPU, at_once=cpus, has_cpu_each=True)
    )
    print("\n== Python tests on ports", flush=True)
    outcomes.append(run_python_tests("Python tests on ports", ONE_BY_ONE))
    print(f"\n== {time.monotonic() - start:.0f} s")
    for outcome in outcomes:
        print(outcome)
    if in_namespaces is None:
        print(f"{name}: not run, they need root: sudo make test")
    passed, failed, skipped = (
        sum(getattr(o, key) for o in outcomes) for key in ("passed", "failed", "skipped")
    )
    failed += sum(
        1 for o in outcomes if o.trouble and not o.failed
    )  # a suite that broke is at least one failure
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if all(o.is_good for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
