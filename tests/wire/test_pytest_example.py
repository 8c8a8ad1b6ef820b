# SPDX-License-Identifier: Apache-2.0
"""The example suite of docs/how-to/test-in-your-repository.md on the reference router, and on one that loses
frames."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml

from evenhand.run import read_record

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.thorough]
LOSING = """
import evenhand, pytest
from evenhand.rig import ReferenceDut
from evenhand.reference.config import Defects

LIMITS = evenhand.Limits(offered_tolerance=0.1, overdue_tolerance=0.99, longest_overdue_us=1e7)

@pytest.mark.evenhand(
    plan="gateway-v4", waits=evenhand.SHORT_WAITS, limits=LIMITS,
    reference=ReferenceDut(defects=Defects(ratios={"loss": 0.01})),
)
def test_loses(tester):
    tester.require_pass(tester.trial(rate_fps=2e3, duration_s=1))
"""


def run(folder: Path, file: str) -> dict[str, list[type]]:
    """What JUnit has of each test."""
    options = ["--evenhand-testbed=reference", "--evenhand-runs=runs", "--evenhand-retries=20"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junit-xml=junit.xml", *options, file],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    suites = JUnitXml.fromfile(str(folder / "junit.xml"))
    cases = {case.name: [type(result) for result in case.result] for suite in suites for case in suite}
    assert cases, ended.stdout + ended.stderr
    return cases


def test_the_example_suite_runs_as_it_is(tmp_path: Path) -> None:
    """A busy host may leave a test undecided; it never fails the router."""
    shutil.copy(ROOT / "examples" / "test_router.py", tmp_path)
    cases = run(tmp_path, "test_router.py")
    assert len(cases) == 5
    assert all(found in ([], [Error]) for found in cases.values()), cases
    runs = [read_record(path) for path in sorted((tmp_path / "runs").glob("*.evenhand"))]
    plans = {search.plan["name"] for record in runs for search in record.other_searches}
    assert plans == {"gateway_v4", "gateway_v6"}


def test_what_the_router_loses_fails_it(tmp_path: Path) -> None:
    (tmp_path / "test_losing.py").write_text(LOSING)
    assert run(tmp_path, "test_losing.py") == {"test_loses": [Failure]}
