# SPDX-License-Identifier: Apache-2.0
"""pytest-evenhand: fixtures for the tests of a router's repository. pytest loads it by its entry point; a
test suite that uses none of it loads nothing else of Evenhand.

What fails is the DUT. An INVALID trial, a host that is not ready, and a wrong request are errors, as those of
a fixture are: they never count as a failure of the DUT.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.pytest_tester import Dut, PytestTester

PHASE = "measurement"
"""Phase of a report whose test could not be decided; pytest's own are setup, call and teardown."""
MARKER = "evenhand"
_MEASURES = pytest.StashKey[bool]()
"""Marks a test that has the fixture `tester` of this file."""
_MARKER_LINE = (
    f"{MARKER}(testbed=..., reference=..., **conditions): the testbed of this test, instead of"
    " --evenhand-testbed; the reference router's model; and conditions of its trials, such as plan,"
    " frame_size or waits"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evenhand", "Evenhand: measuring a router")
    for name, default, text in (
        ("testbed", None, "testbed file, or lab:linux, or reference, for tests with the fixture `tester`"),
        ("runs", None, "folder for the run files of tests; without it they are in each test's tmp_path"),
        ("retries", "2", "how often tester.trial() repeats a trial that is INVALID"),
    ):
        group.addoption(f"--evenhand-{name}", metavar=name.upper(), help=text)
        parser.addini(f"evenhand_{name}", text, default=default)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER_LINE)


@pytest.fixture
def tester(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PytestTester]:
    """A tester on the testbed of `--evenhand-testbed`, or of the marker. Its methods are those of
    `evenhand.OpenTestbed`, with the marker's conditions; every trial is stored in a run file of this test."""
    from evenhand.pytest_tester import open_tester_of_test

    request.node.stash[_MEASURES] = True
    marker = request.node.get_closest_marker(MARKER)
    given = {} if marker is None else dict(marker.kwargs)
    testbed = given.pop("testbed", None) or _setting(request.config, "testbed")
    if testbed is None:
        pytest.fail(
            "no testbed: run pytest with --evenhand-testbed FILE, set evenhand_testbed in pytest's"
            ' configuration, or mark the test: @pytest.mark.evenhand(testbed="reference")',
            pytrace=False,
        )
    folder = _setting(request.config, "runs")
    stem = re.sub(r"[^\w.=-]+", "_", request.node.nodeid).strip("_")
    opened = open_tester_of_test(
        str(testbed),
        folder=tmp_path if folder is None else request.config.rootpath / folder,
        stem=stem[-150:],
        node_id=request.node.nodeid,
        reference=given.pop("reference", None),
        conditions=given,
        retries=_retries(request.config),
        record=lambda name, value: request.node.user_properties.append((name, value)),
    )
    with opened as found:
        try:
            yield found
        finally:
            request.node.add_report_section("call", "evenhand", "\n".join(found.lines))
            if found.run is not None and found.run.exists():
                request.node.user_properties.append(("evenhand.run", str(found.run)))
                # GitLab and Jenkins attach what a captured output names so.
                print(f"[[ATTACHMENT|{found.run}]]")


@pytest.fixture
def dut(tester: PytestTester) -> Dut:
    """What is known of the DUT that `tester` measures."""
    return tester.dut


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and call.excinfo is not None and item.stash.get(_MEASURES, False):
        from evenhand.pytest_tester import NotMeasuredError, is_of_the_dut

        if not is_of_the_dut(call.excinfo.value):
            report.when = PHASE  # type: ignore[assignment]
            if isinstance(call.excinfo.value, NotMeasuredError):
                report.longrepr = str(call.excinfo.value)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: Any) -> tuple[str, str, Any] | None:
    if report.when == PHASE and report.failed:
        return "error", "E", ("INVALID", {"red": True})
    return None


def _retries(config: pytest.Config) -> int:
    written = str(_setting(config, "retries"))
    if not written.isdecimal():
        raise pytest.UsageError(f"evenhand_retries: {written!r} is not a whole number")
    return int(written)


def _setting(config: pytest.Config, name: str) -> Any:
    given = config.getoption(f"--evenhand-{name}")
    return config.getini(f"evenhand_{name}") if given is None else given
