#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test suite, and ends with the slowest tests and files, when each suite ran and how many of its
tests, and which failed. A few tests that failed are repeated alone.

With --all, also the tests marked `thorough`, and the C++ tests once more under sanitizers. With --apart,
tests that send frames wait for all others. The counts come from the suites' own reports. A suite that
crashed, reported nothing or ran nothing has failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.outcomes import (  # noqa: E402  after the path
    REPETITIONS,
    Outcome,
    failures,
    read_doctest,
    read_pytest,
    slowest,
    slowest_files,
    spans,
    tests_to_repeat,
    unsteady,
    with_repeated,
)

P = ParamSpec("P")
MARKS_OF_FILE = re.compile(r"^pytestmark = (?:\[[^\]]*\]|.*$)", re.MULTILINE)
"""What all tests of a file are marked with."""
ENDLESS_S = 2700
"""A suite that takes longer hangs."""
HANGS_S = 900.0
"""A test that takes longer hangs. The longest takes half a minute alone, and a few on a machine that
stalls."""
OF_OTHER_VERBS = ("slow", "vm", "nic")
"""Marks of what `make prove` runs."""
THOROUGH = "thorough"
"""Mark of what only `make test-all` runs."""
WITHOUT_PORTS = "not wire and not root"
IN_NAMESPACES = "root and not wire"
ONE_CPU = "wire and not root and not two_cpus and not alone"
"""Tests of a tester alone. What is marked `root` shares with others what the kernel has once."""
ALONE = "wire and alone"
"""What they look at, others would change. Run when all others have ended."""
PATIENT = "wire and two_cpus and patient and not alone"
"""Tests of what takes two CPUs, but neither of delays nor of rates: two of them have the same two CPUs. Those
of one file run one after the other, since labs have names."""
TWO_CPUS = "wire and two_cpus and not patient and not root and not alone"
"""Tests of a tester and a DUT, each with a CPU: of delays, of rates, and of commands that ask for two."""
LABS = "wire and root and not two_cpus and not alone"
"""Tests of a tester and a DUT that share a CPU. Two files run at once: each names labs of its own."""
ONE_BY_ONE = "wire and root and two_cpus and not patient and not alone"
"""Tests of labs and of devices written in Python, which must not wait for a CPU as long as two testers take
them."""
FOLDER_OF_LABS = "tests/lab/"
"""Its tests look at what labs change for the whole kernel: they run one by one."""
ON_PORTS = "Python tests on ports"
MOST_REPEATED = 3
"""Tests that may have failed since this machine was away. If more did, something is wrong."""
SANITIZED_EXAMPLES = 20
"""How many examples of each property: what reads or writes where it must not does so in few of them."""
QUIET_SHARE = 0.2
"""The share of this machine's CPU time that others may use, so that one suite can be run in what another
leaves."""
STARVED_S = 30.0
"""A suite that others leave no CPU for so long gets its share for as long."""
STARVED_SHARE = 0.02
IN_MEMORY = Path("/dev/shm")
ROOM_OCTETS = 2 << 30
"""Room for all suites at once."""


def quick_folder(folder: Path = IN_MEMORY) -> Path | None:
    """Where files of tests are written without waiting for a disk: a run file waits for it with each trial.
    None if there is too little room, as in some containers, or programs cannot be started from there."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return None
    is_good = room.f_bavail * room.f_frsize >= ROOM_OCTETS and not room.f_flag & os.ST_NOEXEC
    return folder if is_good and os.access(folder, os.W_OK) else None


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs every test suite.", allow_abbrev=False)
    parser.add_argument(
        "--all", action="store_true", help="thorough tests too, and the C++ tests under sanitizers"
    )
    parser.add_argument("--apart", action="store_true", help="tests that send frames wait for all others")
    return parser.parse_args()


def left_out() -> tuple[str, ...]:
    """Marks of tests that are not run."""
    return OF_OTHER_VERBS if options().all else (*OF_OTHER_VERBS, THOROUGH)


def not_marked(marks: Sequence[str]) -> str:
    """The expression for `pytest -m`."""
    return " and ".join(f"not {mark}" for mark in marks)


def files_marked(mark: str) -> list[str]:
    """Files whose tests may have this mark: pytest imports no others then."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if f"mark.{mark}" in path.read_text()
    )


def files_without(*marks: str) -> list[str]:
    """Files with tests that have none of these marks: pytest spends seconds on importing the others."""

    def has_such(path: Path) -> bool:
        found = MARKS_OF_FILE.search(path.read_text())
        return found is None or not any(f"mark.{mark}" in found[0] for mark in marks)

    return sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py") if has_such(path)
    )


def processes_below(pid: int) -> list[int]:
    """This process and all that it started, as far as they are there."""
    found = [pid]
    with suppress(OSError, ValueError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += processes_below(int(child))
    return found


def cpu_s(pid: int) -> float:
    """What this process and its children have used, those included that have ended."""
    with suppress(OSError, ValueError, IndexError):
        # Behind the name, which may have spaces: utime, stime, cutime and cstime.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def output_of(
    command: Sequence[str | Path], *, yields: bool, waits: bool = False, **arguments: Any
) -> tuple[str, int]:
    """What a command prints, and its exit code.

    Args:
        yields: It takes only the CPU time that others leave. If they leave none, since this machine has got
            other work, it gets its share now and then: its tests would wait in vain for what they started.
        waits: Its tests start nothing, and it waits as long as it must.

    Raises:
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It was stopped after `ENDLESS_S`.
    """
    idle = ["chrt", "--idle", "0"] if yields and shutil.which("chrt") is not None else []
    if not Path(command[0]).exists():
        raise FileNotFoundError(f"there is no {command[0]}")
    with subprocess.Popen(
        [*idle, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **arguments,
    ) as process:
        has_ended = threading.Event()
        if idle and not waits:
            threading.Thread(target=_let_live, args=(process.pid, has_ended), daemon=True).start()
        try:
            printed, _ = process.communicate(timeout=ENDLESS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            has_ended.set()
    return printed, process.returncode


def _let_live(pid: int, has_ended: threading.Event) -> None:
    used_s = 0.0
    while not has_ended.wait(STARVED_S):
        processes = processes_below(pid)
        now_s = sum(map(cpu_s, processes))
        if now_s - used_s < STARVED_SHARE * STARVED_S:
            _schedule(processes, os.SCHED_OTHER)
            has_ended.wait(STARVED_S)
            _schedule(processes_below(pid), os.SCHED_IDLE)
        used_s = now_s


def _schedule(processes: Sequence[int], policy: int) -> None:
    for process in processes:
        with suppress(OSError):
            os.sched_setscheduler(process, policy, os.sched_param(0))


def timed(run: Callable[P, Outcome]) -> Callable[P, Outcome]:
    """The same suite, which says when it ran."""

    @wraps(run)
    def run_timed(*arguments: P.args, **named: P.kwargs) -> Outcome:
        began_s = time.monotonic()
        outcome = run(*arguments, **named)
        return replace(outcome, ran_s=(began_s, time.monotonic()))

    return run_timed


@timed
def run_cpp_tests(name: str, build: str, of: str, *, examples: int = 0, yields: bool) -> Outcome:
    """The C++ tests of the engine or of the router, from one build folder.

    Args:
        examples: How many examples of each property; 0: as many as rapidcheck makes by default.
    """
    program = ROOT / build / of / "tests" / f"evenhand-{of}-tests"
    # Undefined behaviour is only printed otherwise, and the tests go on.
    environment = {
        **os.environ,
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    }
    if examples:
        told = environment.get("RC_PARAMS", "")  # a seed that somebody wants to see again
        environment["RC_PARAMS"] = f"max_success={examples} {told}".strip()
    try:
        printed, code = output_of([program, "--no-colors"], yields=yields, waits=True, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(name=name, trouble=str(error))
    print(f"\n== {name}\n{printed}", flush=True)
    return read_doctest(name, printed, code)


def run_cpp_suites(*, yields: bool) -> list[Outcome]:
    """One after the other; each prints when it has ended. Under sanitizers they take six times as long: those
    runs are thorough, and have fewer examples, of which the other builds have made as many as are needed."""
    builds = [("", "build", 0)]
    if THOROUGH not in left_out():
        builds.append((" under sanitizers", "build-asan", SANITIZED_EXAMPLES))
    return [
        run_cpp_tests(f"C++ tests{of}{how}", build, program, examples=examples, yields=yields)
        for how, build, examples in builds
        for of, program in (("", "engine"), (" of the router", "router"))
    ]


def pytest_command(
    report: Path, *, at_once: int, by_file: bool = False, hangs_s: float = HANGS_S
) -> list[str]:
    """pytest, which tells where each thread of a test stands that hangs: it has failed, and the others go on
    in a new process.

    Args:
        by_file: The tests of one file run one after the other.
    """
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}"]
    command += ["-o", f"faulthandler_timeout={hangs_s}", "-o", "faulthandler_exit_on_timeout=true"]
    return [*command, "-n", str(at_once), "--dist", "loadfile" if by_file else "worksteal"]


@timed
def run_python_tests(
    name: str,
    marked: str,
    *,
    files: Sequence[str] = (),
    at_once: int = 1,
    cpus_each: int = 0,
    by_file: bool = False,
    is_beside: bool = False,
    yields: bool = False,
) -> Outcome:
    """What is marked so under tests/, with the reason of each skip.

    Args:
        files: Where such tests are; all of tests/ unless told.
        at_once: Tests that run at the same time.
        cpus_each: CPUs of its own for each of those at once, as long as all of them live; 0 if all share all.
        by_file: Those of one file one after the other.
        is_beside: Another suite prints meanwhile; this one prints when it has ended.
        yields: And takes only the CPU time that others leave.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-tests-", dir=quick_folder()) as folder:
        report = Path(folder) / "report.xml"
        command = pytest_command(report, at_once=at_once, by_file=by_file)
        command += [f"--basetemp={folder}/of", "-o", "tmp_path_retention_policy=failed"]
        command += [f"--cpus-each={cpus_each}"] if cpus_each else []
        command += ["-m", f"({marked}) and {not_marked(left_out())}", "-rs", *files]
        try:
            if is_beside:
                printed, code = output_of(command, yields=yields, cwd=ROOT)
                print(f"\n== {name}\n{printed}", flush=True)
            else:
                print(f"\n== {name}", flush=True)
                code = subprocess.run(command, cwd=ROOT, timeout=ENDLESS_S, check=False).returncode
        except subprocess.TimeoutExpired as error:
            kept = (
                error.stdout
                if isinstance(error.stdout, str)
                else (error.stdout or b"").decode(errors="replace")
            )
            print(f"\n== {name}\n{kept}", flush=True)
            return Outcome(name=name, trouble=f"did not end within {ENDLESS_S} s")
        return read_pytest(name, report, code)


def busy_share(seconds: float = 2.0) -> float:
    """How much of the CPU time of this process's CPUs is used now."""
    first = _cpu_times()
    time.sleep(seconds)
    busy, idle = (now - then for now, then in zip(_cpu_times(), first, strict=True))
    return busy / max(busy + idle, 1)


def _cpu_times() -> tuple[int, int]:
    """Ticks at work, and without."""
    busy = idle = 0
    names = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name in names:
            numbers = [int(text) for text in ticks[:8]]  # the others are part of these
            idle += numbers[3] + numbers[4]  # idle, and waiting for a disk
            busy += sum(numbers) - numbers[3] - numbers[4]
    return busy, idle


def run_suites() -> list[Outcome]:
    """Nobody asks what sends nothing when it was done. On a quiet machine it has the CPU time that is left by
    tests of what arrives, whenever that is: they wait a lot. On a busy machine nothing is left, and it comes
    first, as with --apart. Tests of delays and rates begin when it has ended, in any case.
    """
    is_quiet = not options().apart and busy_share() < QUIET_SHARE
    cpus = min(len(os.sched_getaffinity(0)), 8)
    begin = partial(run_python_tests, is_beside=True)
    with ThreadPoolExecutor(max_workers=4) as pool:
        beside: list[Future[Any]] = [
            pool.submit(
                begin,
                "Python tests",
                WITHOUT_PORTS,
                files=files_without("wire", "root"),
                at_once=max(cpus, 2),
                yields=is_quiet,
            ),
            pool.submit(run_cpp_suites, yields=is_quiet),
        ]
        if os.geteuid() == 0:
            without_ports_as_root = sorted({*files_without("wire")} & {*files_marked("root")})
            labs = [file for file in without_ports_as_root if file.startswith(FOLDER_OF_LABS)]
            others = [file for file in without_ports_as_root if file not in labs]
            # Tests of frames wait for both: beside them, what waits for SSH would wait too long. As it mostly
            # waits, two files of namespaces run at once.
            for name, files, how in (
                ("Python tests of labs", labs, {}),
                ("Python tests in namespaces", others, {"at_once": 2, "by_file": True}),
            ):
                beside.append(pool.submit(begin, name, IN_NAMESPACES, files=files, **how))
        without_ports, cpp, *in_namespaces = beside
        if not is_quiet:
            print("Tests that send frames wait for those that do not.", flush=True)
            wait(beside)
        outcomes = [future.result() for future in in_namespaces]
        outcomes.append(run_tests_on_ports(ONE_CPU, "wire", cpus))
        if cpus > 1:
            outcomes.append(run_patient_tests(cpus))
        if in_namespaces:
            outcomes.append(run_tests_on_ports(LABS, "root", cpus, of_labs=True))
        if in_namespaces and cpus > 1:
            # Nothing is asserted there of delays or rates, and half of the CPU time is left.
            outcomes.append(run_python_tests(f"{ON_PORTS} of labs", ONE_BY_ONE, files=files_marked("root")))
        outcomes += [without_ports.result(), *cpp.result()]
    if cpus > 1:
        outcomes.append(run_tests_on_ports(TWO_CPUS, "two_cpus", cpus, each=2))
    outcomes.append(run_python_tests(f"{ON_PORTS}, alone", ALONE, files=files_marked("alone")))
    return outcomes


def run_tests_on_ports(marked: str, mark: str, cpus: int, *, each: int = 1, of_labs: bool = False) -> Outcome:
    """Those of which several can run at once; of labs one file after the other on each CPU.

    Args:
        mark: One that each of them has.
        each: CPUs of a test.
    """
    name = f"{ON_PORTS}{' of labs' if of_labs else ''}, {'a CPU' if each == 1 else 'two CPUs'} each"
    how: dict[str, Any] = {"at_once": cpus // each, "cpus_each": each, "by_file": of_labs}
    return run_python_tests(name, marked, files=files_marked(mark), **how)


def run_patient_tests(cpus: int) -> Outcome:
    """Those that take two CPUs and leave them to another one besides."""
    return run_python_tests(
        f"{ON_PORTS}, two share two CPUs",
        PATIENT,
        files=files_marked("patient"),
        at_once=cpus,
        cpus_each=2,
        by_file=True,
    )


def repeat_failed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The same outcomes. If a few Python tests failed, they run again, alone: of 12,000 tests that share CPUs
    with others, one may have waited in vain for what it started. They must pass each time, or all stays as it
    was; those that do are named, since a test that needs a quiet machine is to be mended."""
    failed = tests_to_repeat(outcomes, MOST_REPEATED)
    if not failed:
        return list(outcomes)
    for n in range(REPETITIONS):
        again = run_python_tests(
            f"Failed tests, alone, {n + 1} of {REPETITIONS}", "wire or not wire", files=failed
        )
        if not again.is_good or again.passed != len(failed):
            return list(outcomes)
    return [with_repeated(outcome) if outcome.failed else outcome for outcome in outcomes]


def write_times(outcomes: Sequence[Outcome]) -> None:
    """Seconds, suite and name of each test, the slowest first, in the file that EVENHAND_TEST_TIMES names."""
    name = os.environ.get("EVENHAND_TEST_TIMES")
    if name:
        found = sorted(((s, o.name, test) for o in outcomes for s, test in o.durations), reverse=True)
        Path(name).write_text("".join(f"{s:.2f}\t{suite}\t{test}\n" for s, suite, test in found))


def main() -> int:
    options()
    start = time.monotonic()
    # Tests start hundreds of commands. Some systems forbid Python to keep what it compiled, and each command
    # then compiles all of Evenhand.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    outcomes = repeat_failed(run_suites())
    print("\n== The slowest tests")
    print("\n".join(slowest(outcomes)))
    print("\n== The slowest files")
    print("\n".join(slowest_files(outcomes)))
    print("\n== When each suite ran")
    print("\n".join(spans(outcomes, start)))
    write_times(outcomes)
    print(f"\n== {time.monotonic() - start:.0f} s")
    for outcome in outcomes:
        print(outcome)
    for line in (*unsteady(outcomes), *failures(outcomes)):
        print(line)
    if os.geteuid() != 0:
        print("Python tests in namespaces and on ports of labs: not run, they need root: sudo make test")
    if len(os.sched_getaffinity(0)) < 2:
        print("Python tests on ports, two CPUs each: not run, there is one")
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
