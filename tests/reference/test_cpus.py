# SPDX-License-Identifier: Apache-2.0
"""Which CPU a reference router takes: none that a living one of this machine has, if that leaves the tester
one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from evenhand.base import locks
from evenhand.cli.router import others_lines
from evenhand.reference.router import RouterCpus, chosen_cpus
from tests.errors import raises

_OTHER = """
import os, sys
from pathlib import Path
from evenhand.base import locks
from evenhand.reference.router import chosen_cpus
locks.ROOT_FOLDER, locks.SHARED_FOLDERS = Path(sys.argv[1]) / "root", (Path(sys.argv[1]) / "shared",)
os.environ.pop("XDG_RUNTIME_DIR", None)
os.sched_getaffinity = lambda _: set(range(int(sys.argv[2])))
with chosen_cpus() as cpus:
    print(cpus.router, *cpus.tester, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routers that run beside the tests have no say."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr(locks, "ROOT_FOLDER", tmp_path / "root")
    monkeypatch.setattr(locks, "SHARED_FOLDERS", (tmp_path / "shared",))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


@contextmanager
def other_router(folder: Path, cpus: int) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Another process that has chosen; it, and what it has."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER, folder, str(cpus)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, [int(word) for word in process.stdout.readline().split()]
    finally:
        process.kill()
        process.communicate()


def have_cpus(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))


def test_alone_the_first_is_the_routers_and_the_others_are_the_testers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    have_cpus(3, monkeypatch)
    with chosen_cpus() as cpus:
        assert cpus == RouterCpus(router=0, tester=(1, 2))
    assert others_lines(cpus) == []


def test_a_second_router_takes_another_cpu_and_keeps_its_tester_off_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_cpus(4, monkeypatch)
    with other_router(tmp_path, 4) as (process, taken):
        assert taken == [0, 1, 2, 3]
        with chosen_cpus() as cpus, chosen_cpus() as third:
            assert (cpus.router, cpus.tester, cpus.is_shared) == (1, (2, 3), False)
            assert (third.router, third.tester) == (2, (3,))
        assert cpus.other == f"process {process.pid}"
        (line,) = others_lines(cpus)
        assert "taskset -c" in line
        assert "Warning" not in line
    with chosen_cpus() as cpus:  # a killed one has none
        assert cpus == RouterCpus(router=0, tester=(1, 2, 3))


def test_on_two_cpus_a_second_router_shares_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tester would need the first router's CPU else."""
    have_cpus(2, monkeypatch)
    with other_router(tmp_path, 2) as (process, taken):
        assert taken == [0, 1]
        with chosen_cpus() as cpus:
            assert cpus == RouterCpus(router=0, tester=(1,), other=f"process {process.pid}", is_shared=True)
        (line,) = others_lines(cpus)
        assert line.startswith("Warning: ")
        assert f"process {process.pid}" in line
        with ExitStack() as stack:
            stack.enter_context(chosen_cpus())
            process.kill()
            process.wait()
            # One that shares is seen as well, also when the first one has ended.
            third = stack.enter_context(chosen_cpus())
        assert third == RouterCpus(router=0, tester=(1,), other=f"process {os.getpid()}", is_shared=True)


def test_cpus_that_were_named_are_taken(tmp_path: Path) -> None:
    with other_router(tmp_path, 4), chosen_cpus([0, 3]) as cpus:
        assert (cpus.router, cpus.tester) == (0, (3,))


def test_one_cpu_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    have_cpus(1, monkeypatch)
    with raises("rig.too-few-cpus"), chosen_cpus():
        pass
