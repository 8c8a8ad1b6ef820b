# SPDX-License-Identifier: Apache-2.0
"""What the demo on the kernel's router says below its table, and by what it judges; the demo itself is in
test_real_demo.py."""

from __future__ import annotations

import pytest

from evenhand.cli.demo_linux import DUT_RING_FRAMES, PRESET, demo_limits
from evenhand.cli.demo_parts import read_demo
from evenhand.plan import BOTH_DIRECTIONS, make_plan
from evenhand.procedure import Profile
from evenhand.report.suite import SuiteEntry, closing_lines
from evenhand.search import ThroughputGoal, find_throughput
from evenhand.spec.request import read_point
from evenhand.trial import Limits, SimulatedMeasurer

CEILINGS = {"gateway_v4": 1_280_000.0, "gateway_v6": 500_000.0}
LAB = {"kernel": "6.1", "dut_cpu": 0, "tester_cpus": [1]}


def entry(name: str, limit_fps: float) -> SuiteEntry:
    goal = ThroughputGoal(max_fps=CEILINGS[name], precision=0.05, duration_s=1, final_duration_s=1)
    plan = make_plan(name)
    profile = Profile(plan=plan, frame_size=plan.smallest_frame_size, seed=1, directions=BOTH_DIRECTIONS)
    return SuiteEntry(profile=profile, result=find_throughput(SimulatedMeasurer(limit_fps=limit_fps), goal))


def limits(fps: float) -> Limits:
    (first, *_) = read_demo(PRESET).points
    return demo_limits(read_point(first).conditions["limits"], fps)


def closing(*limits_fps: float) -> list[str]:
    entries = [entry(name, fps) for name, fps in zip(CEILINGS, limits_fps, strict=True)]
    return closing_lines(entries, CEILINGS, [limits(fps) for fps in CEILINGS.values()], LAB)


def test_the_first_sentence_says_that_the_tester_was_the_limit() -> None:
    """MLR-14: or the figures of a fast router are read as its own."""
    both = closing(1e9, 1e9)
    assert both[0].startswith("In every search the tester is the limit, not the router")
    one = closing(900_000, 1e9)
    assert one[0].startswith("In 1 of 2 searches the tester is the limit")
    none = closing(900_000, 90_000)
    assert none[0].startswith("DUT: Linux 6.1")
    assert "keeps at least 1,280,000 with gateway-v4, 500,000 with gateway-v6 fps per direction" in none[1]
    assert none[2].startswith("A frame counts as overdue from 200 and 500 us on (default 100 us), and 5 % of")


@pytest.mark.parametrize("fps", [5e4, 5e5, 8e5, 1.28e6, 2e6])
def test_a_burst_after_the_longest_allowed_delay_fits_into_the_ring(fps: float) -> None:
    """What a burst of the tester's costs must not count as the router's loss."""
    assert fps * (limits(fps).overdue_after_us or 0) / 1e6 <= DUT_RING_FRAMES + 1
    assert (limits(fps).overdue_after_us or 0) <= 500


def test_the_preset_has_the_limits_of_the_load_that_it_names() -> None:
    """A campaign does not know the load of its trials before."""
    (first, *_) = read_demo(PRESET).points
    assert read_point(first).conditions["limits"] == limits(1.28e6)
