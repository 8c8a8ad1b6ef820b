# SPDX-License-Identifier: Apache-2.0
"""What the demo on the kernel's router says below its table, and by what it judges; the demo itself is in
test_real_demo.py."""

from __future__ import annotations

import pytest

from evenhand.cli.demo_linux import DIRECTIONS, DUT_RING_FRAMES, closing_lines, demo_limits
from evenhand.plan import make_plan
from evenhand.procedure import Profile
from evenhand.report.suite import SuiteEntry
from evenhand.search import ThroughputGoal, find_throughput
from evenhand.trial import SimulatedMeasurer

CEILINGS = {"gateway_v4": 1_280_000.0, "gateway_v6": 500_000.0}
FACTS = {"gateway_v4": {"kernel": "6.1", "dut_cpu": 0, "tester_cpus": [1]}}


def entry(name: str, limit_fps: float) -> SuiteEntry:
    goal = ThroughputGoal(max_fps=CEILINGS[name], precision=0.05, duration_s=1, final_duration_s=1)
    plan = make_plan(name)
    profile = Profile(plan=plan, frame_size=plan.smallest_frame_size, seed=1, directions=DIRECTIONS)
    return SuiteEntry(profile=profile, result=find_throughput(SimulatedMeasurer(limit_fps=limit_fps), goal))


def test_the_first_sentence_says_that_the_tester_was_the_limit() -> None:
    """MLR-14: or the figures of a fast router are read as its own."""
    both = closing_lines([entry("gateway_v4", 1e9), entry("gateway_v6", 1e9)], CEILINGS, FACTS)
    assert both[0].startswith("In every search the tester is the limit, not the router")
    one = closing_lines([entry("gateway_v4", 900_000), entry("gateway_v6", 1e9)], CEILINGS, FACTS)
    assert one[0].startswith("In 1 of 2 searches the tester is the limit")
    none = closing_lines([entry("gateway_v4", 900_000), entry("gateway_v6", 90_000)], CEILINGS, FACTS)
    assert none[0].startswith("DUT: Linux 6.1")
    assert "keeps at least 1,280,000 with gateway-v4, 500,000 with gateway-v6 fps per direction" in none[1]
    assert none[2].startswith("A frame counts as overdue from 200 and 500 us on")


@pytest.mark.parametrize("fps", [5e4, 5e5, 8e5, 1.28e6, 2e6])
def test_a_burst_after_the_longest_allowed_delay_fits_into_the_ring(fps: float) -> None:
    """What a burst of the tester's costs must not count as the router's loss."""
    assert fps * (demo_limits(fps).overdue_after_us or 0) / 1e6 <= DUT_RING_FRAMES + 1
    assert (demo_limits(fps).overdue_after_us or 0) <= 500
