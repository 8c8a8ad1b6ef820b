# SPDX-License-Identifier: Apache-2.0
"""What this router must do. Run it with: pytest --evenhand-testbed reference examples/test_router.py

Replace `reference`, which is Evenhand's own router, by the testbed file of yours."""

import pytest

import evenhand
from evenhand.pytest_tester import Dut, PytestTester

QUICK = evenhand.SHORT_WAITS
SEARCH = evenhand.ThroughputGoal(max_fps=20e3, precision=0.1, duration_s=0.5, final_duration_s=1)


@pytest.mark.evenhand(plan="gateway-v4", waits=QUICK)
def test_it_forwards_ipv4_between_many_hosts(tester: PytestTester) -> None:
    tester.require_pass(tester.trial(rate_fps=10e3, duration_s=1))


@pytest.mark.evenhand(plan="gateway-v6", waits=QUICK)
def test_it_forwards_ipv6_between_many_hosts(tester: PytestTester) -> None:
    tester.require_pass(tester.trial(rate_fps=10e3, duration_s=1))


@pytest.mark.parametrize("frame_size", [64, 512])
@pytest.mark.evenhand(plan="gateway-v4", waits=QUICK)
def test_it_is_not_slower_than_it_was(tester: PytestTester, frame_size: int) -> None:
    found = tester.throughput(goal=SEARCH, frame_size=frame_size)
    tester.require(found, at_least=15e3)


@pytest.mark.evenhand(plan="gateway-v4", waits=QUICK)
def test_it_is_known_what_was_measured(tester: PytestTester, dut: Dut) -> None:
    assert dut.facts["dut"]["system"], "state the DUT's facts in the testbed file"
