# SPDX-License-Identifier: Apache-2.0
"""For all tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A busy host must not fail a property: no test asserts wall-clock time.
settings.register_profile("evenhand", deadline=None)
settings.load_profile("evenhand")

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that: tests that
# interrupt them would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DIVIDING_MARKS = ("wire", "root", "two_cpus", "patient", "alone")
"""Marks that divide the tests into the parts of `make test`."""
FILES_OF_MARKS = pytest.StashKey[dict[str, set[Path]]]()
"""Files with such a test, among those that were read."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cpus-each",
        type=int,
        default=0,
        metavar="N",
        help="keep each process of pytest-xdist, and all that it starts, on so many CPUs of its own",
    )
    parser.addoption(
        "--stall-cpu",
        type=int,
        metavar="CPU",
        help="take this CPU away for 20 to 150 ms now and then (tests/stall.py; root)",
    )


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    each = config.getoption("--cpus-each")
    if worker and each:
        cpus = sorted(os.sched_getaffinity(0))
        # A worker that takes the place of one that died has the next number.
        first = int(worker.removeprefix("gw")) % (len(cpus) // each) * each
        os.sched_setaffinity(0, cpus[first : first + each])


@pytest.hookimpl(tryfirst=True)  # before those are dropped that `-m` does not name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[FILES_OF_MARKS] = {
        mark: {item.path for item in items if item.get_closest_marker(mark)} for mark in DIVIDING_MARKS
    }


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("two_cpus") and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("takes two CPUs")
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands keep from one time to the next is that of this run of the tests, not the developer's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(
            "COLUMNS", raising=False
        )  # pytest-xdist sets it, and what is written to a pipe is as wide as it says
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _stalls(pytestconfig: pytest.Config) -> Iterator[None]:
    cpu = pytestconfig.getoption("--stall-cpu")
    if cpu is None:
        yield
        return
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("stall.py"), str(cpu), "86400", "1500", "7"]
    )
    try:
        yield
        assert process.poll() is None, "the injector of stalls ended early"
    finally:
        process.kill()
        process.wait()
