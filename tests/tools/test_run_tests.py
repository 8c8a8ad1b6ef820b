# SPDX-License-Identifier: Apache-2.0
"""The test runner never claims success for what did not run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DIVIDING_MARKS, FILES_OF_MARKS
from tools import run_tests
from tools.outcomes import (
    Outcome,
    failures,
    read_doctest,
    read_pytest,
    slowest,
    slowest_files,
    spans,
    unsteady,
)
from tools.run_tests import (
    ALONE,
    IN_NAMESPACES,
    LABS,
    ONE_BY_ONE,
    ONE_CPU,
    PATIENT,
    TWO_CPUS,
    WITHOUT_PORTS,
    files_marked,
    output_of,
    pytest_command,
)

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize("marks", powerset(DIVIDING_MARKS), ids=" ".join)
def test_each_test_is_run_once(marks: tuple[str, ...]) -> None:
    """Whatever marks it has, it belongs to one part of `make test-all`."""
    parts = (WITHOUT_PORTS, IN_NAMESPACES, ONE_CPU, PATIENT, TWO_CPUS, LABS, ONE_BY_ONE, ALONE)
    names = {name: name in marks for name in DIVIDING_MARKS}
    assert [bool(eval(part, {}, names)) for part in parts].count(True) == 1


def test_no_file_is_left_out_whose_tests_have_a_mark(pytestconfig: pytest.Config) -> None:
    """A suite imports the files in which its mark is written; a mark that came from elsewhere would be
    lost."""
    for mark, files in pytestconfig.stash[FILES_OF_MARKS].items():
        assert {str(path.relative_to(ROOT)) for path in files} <= set(files_marked(mark))


def test_only_files_are_left_out_all_of_whose_tests_have_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "all": "pytestmark = pytest.mark.wire\n",
        "listed": "pytestmark = [\n    pytest.mark.wire,\n    pytest.mark.root,\n]\n",
        "one": "pytestmark = pytest.mark.slow\n\n@pytest.mark.wire\ndef test_a(): pass\ndef test_b(): pass\n",
        "none": "def test_a(): pass\n",
    }
    (tmp_path / "tests").mkdir()
    for name, text in texts.items():
        (tmp_path / "tests" / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    kept = {marks: run_tests.files_without(*marks) for marks in (("wire",), ("root",), ("wire", "root"))}
    few = ["tests/test_none.py", "tests/test_one.py"]
    assert kept == {("wire",): few, ("root",): sorted([*few, "tests/test_all.py"]), ("wire", "root"): few}


def test_the_slowest_tests_of_all_suites_are_named(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    outcomes = []
    for suite in ("a", "b"):
        cases = "".join(f'<testcase classname="{suite}" name="t{n}" time="{n}.5"/>' for n in range(9))
        report.write_text(f'<testsuites><testsuite tests="9">{cases}</testsuite></testsuites>')
        outcomes.append(read_pytest(suite, report, 0))
    named = slowest([Outcome(name="C++"), *outcomes])
    assert [line.split() for line in named[:3]] == [
        ["8.5", "s", "b::t8"],
        ["8.5", "s", "a::t8"],
        ["7.5", "s", "b::t7"],
    ]
    assert len(named) == 18
    assert [line.split() for line in slowest_files(outcomes)] == [["40", "s", "b"], ["40", "s", "a"]]
    (line,) = spans([replace(outcomes[0], ran_s=(107.0, 160.0))], 100.0)
    assert line.split() == ["7", "to", "60", "s", "40", "s", "of", "tests", "a"]


DOCTEST_FAILURES = """Using configuration: max_success=20 seed=17
OK, passed 100 tests
===============================================================================
/engine/tests/a_test.cpp:229:
TEST CASE:  a thread that waits for its CPU is seen

/engine/tests/a_test.cpp:230: ERROR: CHECK( record.waited_s > 0.05 ) is NOT correct!
  values: CHECK( 0 >  0.05 )

/engine/tests/a_test.cpp:231: ERROR: CHECK_FALSE( record.absences.empty() ) is NOT correct!
  values: CHECK_FALSE( true )

===============================================================================
/engine/tests/b_test.cpp:9:
TEST SUITE: bursts
TEST CASE:  b

/engine/tests/b_test.cpp:10: FATAL ERROR: REQUIRE( a ) is NOT correct!

===============================================================================
"""


def test_the_tests_that_failed_are_named_last_with_what_they_said(tmp_path: Path) -> None:
    """The last lines may be all that one sees of a CI run."""
    report = tmp_path / "report.xml"
    said = '<failure message="AssertionError: 1 == 2&#10;more">all of it</failure>'
    broken = '<error message="no fixture"/>'
    report.write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="1">'
        f'<testcase classname="a" name="good"/><testcase classname="a" name="bad">{said}</testcase>'
        f'<testcase classname="a" name="worse">{broken}</testcase></testsuite></testsuites>'
    )
    cpp = read_doctest("C", DOCTEST_FAILURES + COUNTS.format(10, 2, 0), 1)
    assert failures([cpp, read_pytest("P", report, 1)]) == [
        "FAILED a thread that waits for its CPU is seen: CHECK( record.waited_s > 0.05 ) is NOT correct!"
        ' values: CHECK( 0 > 0.05 ) (RC_PARAMS="max_success=20 seed=17")',
        'FAILED b: REQUIRE( a ) is NOT correct! (RC_PARAMS="max_success=20 seed=17")',
        "FAILED a::bad: AssertionError: 1 == 2",
        "FAILED a::worse: no fixture",
    ]
    many = failures([Outcome(name="P", failed=23, failures=tuple(map(str, range(23))))])
    assert (len(many), many[-1]) == (21, "and 3 more")
    assert failures([Outcome(name="P", passed=1)]) == []


HERE = "tests.tools.test_run_tests::test_b[a::b:0]"
"""A test of a file that there is."""


def failed_suite(*names: str, **fields: Any) -> Outcome:
    said = tuple(f"{name}: assert 1 == 2" for name in names)
    return Outcome(name="P", **{"passed": 9, "failed": len(names), "failures": said, **fields})


@pytest.mark.parametrize(
    ("later", "runs"),
    [((True, True), 2), ((True, False), 2), ((False,), 1)],
    ids=["passes twice", "fails the second time", "fails again"],
)
def test_a_test_that_failed_passes_only_if_it_does_each_time_when_alone(
    later: tuple[bool, ...], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def suite(name: str, marked: str, *, files: list[str]) -> Outcome:
        asked.append(files)
        return failed_suite(passed=int(later[len(asked) - 1]), failed=int(not later[len(asked) - 1]))

    monkeypatch.setattr(run_tests, "run_python_tests", suite)
    before = [failed_suite(HERE), Outcome(name="Q", passed=3)]
    after = run_tests.repeat_failed(before)
    assert asked == [["tests/tools/test_run_tests.py::test_b[a::b:0]"]] * runs
    assert all(outcome.is_good for outcome in after) == all(later)
    assert [outcome.passed for outcome in after] == [9 + all(later), 3]
    if all(later):
        (line,) = unsteady(after)
        assert line.startswith("UNSTEADY: ")
        assert line.endswith(f"{HERE}: assert 1 == 2")
    else:
        assert after == before


@pytest.mark.parametrize(
    "outcomes",
    [
        [failed_suite(HERE, "tests.tools.test_none::test_c")],
        [Outcome(name="C++", passed=9, failed=1, failures=("a thread is seen: CHECK( a )",))],
        [failed_suite(HERE, HERE)],
        [failed_suite(*(f"{HERE}{n}" for n in range(4)))],
        [failed_suite(HERE), Outcome(name="C++", trouble="exit code -11")],
        [failed_suite(HERE, failed=2)],
        [Outcome(name="P", passed=9)],
    ],
    ids=["no such file", "C++", "its clean-up too", "many", "a crash", "one without a name", "none failed"],
)
def test_only_a_few_tests_with_names_are_repeated(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tests, "run_python_tests", None)
    assert run_tests.repeat_failed(outcomes) == outcomes


def test_files_are_kept_in_memory_only_where_there_is_room_and_programs_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tests, "ROOM_OCTETS", 1)
    assert run_tests.quick_folder(tmp_path) == tmp_path
    assert run_tests.quick_folder(tmp_path / "none") is None
    assert run_tests.quick_folder(Path("/proc")) is None
    monkeypatch.setattr(run_tests, "ROOM_OCTETS", 1 << 62)
    assert run_tests.quick_folder(tmp_path) is None


def test_a_machine_with_other_work_is_known_by_it() -> None:
    """Then no CPU time is left for what yields it."""
    share = run_tests.busy_share(0.2)
    assert 0 <= share <= 1
    until = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        while run_tests.busy_share(0.5) < 0.5 / len(os.sched_getaffinity(0)):
            assert time.monotonic() < until
        busy.kill()


def test_what_yields_its_cpus_is_a_suite_like_others() -> None:
    """Its output and its exit code; and it gets its share where others leave it none."""
    program = "import os; print(os.sched_getscheduler(0)); raise SystemExit(7)"
    # The suite that this test is of may itself have only what others leave.
    usual = os.sched_getscheduler(0)
    assert output_of([sys.executable, "-c", program], yields=False) == (f"{usual}\n", 7)
    printed, code = output_of([sys.executable, "-c", program], yields=True)
    assert code == 7
    assert int(printed) == (usual if shutil.which("chrt") is None else os.SCHED_IDLE)
    with pytest.raises(FileNotFoundError, match="no-such-suite"):
        output_of([ROOT / "no-such-suite"], yields=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root takes no lower priority back")
def test_a_suite_that_gets_no_cpu_time_has_its_share_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "STARVED_S", 0.05)
    program = (
        "import os, time\n"
        "def wait_for(policy):\n"
        "    give_up = time.monotonic() + 60\n"
        "    while os.sched_getscheduler(0) != policy and time.monotonic() < give_up: time.sleep(0.01)\n"
        "    print(os.sched_getscheduler(0))\n"
        "time.sleep(0.3)\n"
        "wait_for(os.SCHED_OTHER)\n"
        "wait_for(os.SCHED_IDLE)\n"
    )
    printed, _ = output_of([sys.executable, "-c", program], yields=True)
    assert [*map(int, printed.split())] == [os.SCHED_OTHER, os.SCHED_IDLE], "for a while only"
    # What has no reason to hurry is left at what others leave.
    printed, _ = output_of([sys.executable, "-c", program.replace("60", "1")], yields=True, waits=True)
    assert [*map(int, printed.split())] == [os.SCHED_IDLE] * 2


@pytest.mark.parametrize("at_once", [1, pytest.param(2, marks=pytest.mark.thorough)])
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


@pytest.mark.parametrize("is_quiet", [True, False])
def test_tests_of_delays_and_rates_begin_when_all_else_has_ended(
    is_quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sends nothing runs beside tests of what arrives, and takes only what these leave: on a quiet
    machine, and not with --apart."""
    told: list[str] = []
    is_told = threading.Event()

    def suite(name: str, marked: str, *, yields: bool = False, **_: Any) -> Outcome:
        told.append(f"begin {marked}")
        if marked == WITHOUT_PORTS:
            assert yields == is_quiet
            is_told.wait(30 if is_quiet else 0)
        if marked == ONE_CPU:
            is_told.set()
        told.append(f"end {marked}")
        return Outcome(name=name, passed=1)

    monkeypatch.setattr(run_tests, "run_python_tests", suite)
    monkeypatch.setattr(run_tests, "run_cpp_suites", lambda *, yields: [])
    monkeypatch.setattr(run_tests, "busy_share", lambda: 0.0 if is_quiet else 1.0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["run_tests.py"])
    outcomes = run_tests.run_suites()
    every = {WITHOUT_PORTS, IN_NAMESPACES, ONE_CPU, PATIENT, TWO_CPUS, LABS, ONE_BY_ONE, ALONE}
    assert {line.removeprefix("begin ") for line in told if line.startswith("begin ")} == every
    assert len(outcomes) == len(every) + 1  # two suites are in namespaces
    assert told[-4:] == [f"{verb} {marked}" for marked in (TWO_CPUS, ALONE) for verb in ("begin", "end")]
    is_beside = told.index(f"begin {ONE_CPU}") < told.index(f"end {WITHOUT_PORTS}")
    assert is_beside == is_quiet


@pytest.mark.parametrize("asks_for_all", [False, True])
def test_the_cpp_tests_run_under_sanitizers_where_all_is_asked_for(
    asks_for_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[tuple[str, str]] = []

    def suite(name: str, build: str, of: str, *, examples: int, yields: bool) -> Outcome:
        assert (examples > 0) == (build == "build-asan")
        builds.append((build, of))
        return Outcome(name=name, passed=1)

    monkeypatch.setattr(run_tests, "run_cpp_tests", suite)
    monkeypatch.setattr(sys, "argv", ["run_tests.py", *(["--all"] if asks_for_all else [])])
    names = [outcome.name for outcome in run_tests.run_cpp_suites(yields=False)]
    assert len(set(names)) == len(names)
    folders = ("build", "build-asan") if asks_for_all else ("build",)
    assert builds == [(folder, of) for folder in folders for of in ("engine", "router")]
