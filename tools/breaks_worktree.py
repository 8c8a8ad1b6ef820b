# SPDX-License-Identifier: Apache-2.0
"""A temporary git worktree with the files of the checkout as they are, in which tools/breaks.py breaks,
builds and runs tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from tools.outcomes import read_doctest

ENDLESS_S = 600.0
"""A test that takes longer hangs."""
BUILD_ENDLESS_S = 3600.0
REMOVALS = 25
CCACHE_COMPILERS = Path("/usr/lib/ccache")
PYTEST_NOTHING_RAN = {4, 5}
"""pytest's exit codes for a test that does not exist or was deselected."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one test ended."""

    PASSED: ClassVar[str] = "passed"
    FAILED: ClassVar[str] = "failed"
    SKIPPED: ClassVar[str] = "skipped"
    NOT_FOUND: ClassVar[str] = "not found"
    ENDLESS: ClassVar[str] = "did not end"
    BROKEN: ClassVar[str] = "could not be run"

    result: str
    why: str = ""


class Worktree:
    """Made on entry, taken away on exit, whatever happens in between."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: Path | None = None
        self._is_set_up = False

    @property
    def path(self) -> Path:
        assert self._folder is not None, "only within `with`"
        return self._folder / "tree"

    @property
    def _temporary(self) -> Path:
        """For what compilers and tests put down for a moment, and leave there if they are ended. A short
        name: sockets have 108 octets."""
        return self.path.parent / "t"

    def __enter__(self) -> Worktree:
        self._folder = Path(tempfile.mkdtemp(prefix="evenhand-breaks-"))
        try:
            self._temporary.mkdir()
            self._git("worktree", "add", "--quiet", "--detach", str(self.path), self._snapshot())
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def build_for(self, tests: Iterable[str]) -> str:
        """What these tests need of C++: their own program, or engine and router. Returns the compiler's first
        error, or nothing."""
        targets = sorted({target for test in tests for target in self._targets_of(test)})
        if not targets:
            return ""
        build = self.path / "build"
        if not self._is_set_up:
            ended = self._run(["meson", "setup", build, "-Dtests=true"], BUILD_ENDLESS_S)
            if ended.returncode != 0:
                return ended.stdout[-2000:]
            self._is_set_up = True
        ended = self._run(["nice", "-n", "10", "ninja", "-C", build, *targets], BUILD_ENDLESS_S)
        if ended.returncode == 0:
            return ""
        return next((line for line in ended.stdout.splitlines() if "error" in line), ended.stdout[-2000:])

    def run(self, test: str) -> Ran:
        """One test, alone."""
        return self._run_case(test) if _is_cpp(test) else self._run_pytest([test], "--exitfirst")[test]

    def run_unbroken(self, tests: Sequence[str]) -> dict[str, Ran]:
        """All of them. What fails is run once more: tests on ports ask a clock, and a busy host can spoil
        one."""
        of_python = [test for test in tests if not _is_cpp(test)]
        ran = self._run_pytest(of_python) if of_python else {}
        ran |= {test: self._run_case(test) for test in tests if _is_cpp(test)}
        return {test: self.run(test) if once.result == Ran.FAILED else once for test, once in ran.items()}

    def _targets_of(self, test: str) -> list[str]:
        file = test.partition("::")[0]
        if _is_cpp(test):
            return [_program_of(file)]
        text = (self.path / file).read_text()
        return ["engine/evenhand-engine", "router/evenhand-router"] if "mark.wire" in text else []

    def _run_pytest(self, tests: Sequence[str], *options: str) -> dict[str, Ran]:
        report = self.path.parent / "report.xml"
        report.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--tb=line",
            "-rs",
            f"--junitxml={report}",
            *options,
            *tests,
        ]
        try:
            ended = self._run(command, ENDLESS_S * len(tests))
        except subprocess.TimeoutExpired:
            return dict.fromkeys(tests, Ran(Ran.ENDLESS, f"{ENDLESS_S * len(tests):.0f} s"))
        if ended.returncode in PYTEST_NOTHING_RAN:
            return dict.fromkeys(tests, Ran(Ran.NOT_FOUND, ended.stdout.strip().splitlines()[-1]))
        try:
            cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return dict.fromkeys(tests, Ran(Ran.BROKEN, f"pytest ended with {ended.returncode}"))
        return {test: _judge([case for case in cases if _is_of(case, test)]) for test in tests}

    def _run_case(self, test: str) -> Ran:
        file, _, name = test.partition("::")
        # A comma would end the name in doctest's filter: a question mark stands for any character. A
        # template's case has its type behind.
        only = [f"--source-file=*{Path(file).name}", f"--test-case={name.replace(',', '?')}*"]
        command: list[str | Path] = [self.path / "build" / _program_of(file), "--no-colors", *only]
        try:
            ended = self._run(command, ENDLESS_S)
        except subprocess.TimeoutExpired:
            return Ran(Ran.ENDLESS, f"{ENDLESS_S:.0f} s")
        counts = read_doctest(test, ended.stdout, ended.returncode)
        if counts.failed or ended.returncode < 0:
            return Ran(Ran.FAILED)
        if counts.passed:
            return Ran(Ran.PASSED)
        return Ran(Ran.NOT_FOUND, counts.trouble)

    def _snapshot(self) -> str:
        """A commit of the checkout's files as they are, also of those that git does not know yet; the
        checkout's index stays as it is."""
        assert self._folder is not None
        index = self._folder / "index"
        shutil.copy(self._git("rev-parse", "--path-format=absolute", "--git-path", "index"), index)
        environment = {
            "GIT_INDEX_FILE": str(index),
            **{
                f"GIT_{who}_{what}": "breaks" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
            },
        }
        self._git("add", "--all", **environment)
        tree = self._git("write-tree", **environment)
        return self._git(
            "commit-tree", tree, "-p", "HEAD", "-m", "what tools/breaks.py breaks", **environment
        )

    def _git(self, *arguments: str, **environment: str) -> str:
        command = ["git", "-C", str(self._root), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **environment}
        ).stdout.strip()

    def _remove(self) -> None:
        """A second Ctrl-C must not leave half of it."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            assert self._folder is not None
            subprocess.run(
                ["git", "-C", str(self._root), "worktree", "remove", "--force", str(self.path)],
                capture_output=True,
                check=False,
            )
            for _ in range(REMOVALS):  # a process that was just killed can still write a last file
                shutil.rmtree(self._folder, ignore_errors=True)
                if not self._folder.exists():
                    break
                time.sleep(0.2)
            subprocess.run(
                ["git", "-C", str(self._root), "worktree", "prune"], capture_output=True, check=False
            )
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self, command: Sequence[str | Path], endless_s: float) -> subprocess.CompletedProcess[str]:
        """In the worktree, in a session of its own that is ended as a whole if we are."""
        process = subprocess.Popen(
            command,
            cwd=self.path,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=endless_s)
        except BaseException:
            _end(process)
            raise
        return subprocess.CompletedProcess(command, process.returncode, output)

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("EVENHAND_")}
        # Python's own bytecode is known by size and second: a break as long as the text before would not be
        # seen.
        own |= {"PYTHONPATH": str(self.path / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        own["TMPDIR"] = str(self._temporary)
        own |= {"CCACHE_BASEDIR": str(self.path), "CCACHE_NOHASHDIR": "1"}
        if CCACHE_COMPILERS.exists():
            own["PATH"] = f"{CCACHE_COMPILERS}:{own.get('PATH', os.defpath)}"
        return own


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it started: politely first, so that tests take away what they made."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # nobody is left
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)


def _is_cpp(test: str) -> bool:
    return test.partition("::")[0].endswith(".cpp")


def _program_of(file: str) -> str:
    """Within the build folder: engine/tests/x_test.cpp is in the program of the engine's tests."""
    part = file.partition("/")[0]
    return f"{part}/tests/evenhand-{part}-tests"


def _is_of(case: ElementTree.Element, test: str) -> bool:
    file, _, name = test.partition("::")
    found = case.get("name", "")
    if case.get("classname") != file.removesuffix(".py").replace("/", "."):
        return False
    return found == name or found.startswith(f"{name}[")


def _judge(cases: Sequence[ElementTree.Element]) -> Ran:
    """The outcome of one test with all its parameters: failed if one of them did."""
    if not cases:
        return Ran(Ran.NOT_FOUND)
    bad = [element for case in cases for element in case if element.tag in ("failure", "error")]
    if bad:
        return Ran(Ran.FAILED, (bad[0].get("message") or "").partition("\n")[0])
    skipped = [element for case in cases for element in case if element.tag == "skipped"]
    if len(skipped) == len(cases):
        return Ran(Ran.SKIPPED, skipped[0].get("message") or "")
    return Ran(Ran.PASSED)
