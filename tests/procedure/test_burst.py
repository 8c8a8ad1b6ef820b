# SPDX-License-Identifier: Apache-2.0
"""Intervals between bursts on simulated devices, whose buffer and rate are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import BurstGoal, BurstIntervals, Profile
from evenhand.procedure.burst import RFC_BURSTS, search_interval
from evenhand.procedure.maximum import check_given
from evenhand.procedure.registry import BURST
from evenhand.procedure.tester import choose_maximum
from evenhand.report.found import found_lines, found_tables
from evenhand.search import Outcome
from evenhand.trial import Load, SimulatedMeasurer, TrialResult
from evenhand.trial.simulated import frames_of
from tests.errors import raises
from tests.report.test_throughput import shown

RATE_FPS = 1_000_000.0
SERVICE_FPS = 400_000.0
GOAL = BurstGoal(rate_fps=RATE_FPS, duration_s=1.0, final_duration_s=2.0)


def measure(goal: BurstGoal = GOAL, theoretical_fps: int | None = 1_000_000, **device: Any) -> BurstIntervals:
    measurer = SimulatedMeasurer(**{"limit_fps": SERVICE_FPS, "buffer_frames": 200.0, **device})
    profile = Profile(
        plan=make_plan("gateway-v4").one_pair(),
        frame_size=64,
        seed=1,
        directions=("forward", "reverse"),
        theoretical_fps=theoretical_fps,
    )
    intervals = tuple(search_interval(measurer, goal, frames) for frames in goal.burst_frames)
    return BurstIntervals(profile=profile, goal=goal, intervals=intervals)


def test_the_smallest_interval_is_that_in_which_a_burst_is_served() -> None:
    """R2544-17: bursts of 16, 64, 256 and 1024 frames; what does not fit into the buffer has no interval."""
    found = measure()
    assert [interval.frames for interval in found.intervals] == list(RFC_BURSTS) == [16, 64, 256, 1024]
    for interval in found.intervals[:3]:
        assert interval.outcome is Outcome.FOUND
        assert interval.interval_s == pytest.approx(interval.frames / SERVICE_FPS, rel=0.006)
        assert interval.gap_s == pytest.approx(
            interval.frames / SERVICE_FPS - interval.frames / RATE_FPS, rel=0.01
        )
        assert interval.failed_interval_s is not None
        assert interval.interval_s is not None
        assert interval.failed_interval_s < interval.interval_s
        assert interval.failed_interval_s == pytest.approx(interval.interval_s, rel=0.01)
    # 1024 frames leave 614 in a buffer of 200.
    assert (found.intervals[3].outcome, found.intervals[3].interval_s) == (Outcome.BELOW_MINIMUM, None)
    assert found.outcome == "measured"
    trial = found.intervals[2].search.final_trial
    assert trial is not None
    assert trial.raw["burst"]["frames"] == 256
    assert trial.raw["burst"]["rate_fps"] == RATE_FPS
    assert trial.directions["forward"].offered_frames % 256 == 0


def test_the_table_says_what_a_reader_must_know() -> None:
    """R2544-17."""
    found = measure()
    table = shown(found_tables(found, BURST)[-1])
    assert "no interval up to" in table
    assert "1,024" in table
    lines = "\n".join(found_lines(found, BURST))
    assert "Bursts at 1,000,000 fps per direction; 64 octet frames, UDP over IPv4" in lines
    document = found.to_document()
    assert [interval["burst_frames"] for interval in document["intervals"]] == [16, 64, 256, 1024]
    assert len(document["trials"]) == len(found.trials)
    assert {deviation.requirement for deviation in found.deviations} == {"R2544-20"}


def test_a_device_as_fast_as_the_line_needs_no_gap() -> None:
    found = measure(replace(GOAL, burst_frames=(64,)), limit_fps=2e6)
    (interval,) = found.intervals
    assert (interval.outcome, interval.gap_s) == (Outcome.AT_OR_ABOVE_MAXIMUM, 0)
    assert "without a gap" in shown(found_tables(found, BURST)[-1])


def test_what_departs_from_the_rfc_is_told() -> None:
    """R2544-17."""
    slow = measure(replace(GOAL, burst_frames=(64,)), theoretical_fps=1_488_095)
    assert [d.text for d in slow.deviations if d.requirement == "R2544-17"] == [
        "frames of a burst follow at 1,000,000 fps, not at minimum gap",
        "bursts of 64 frames instead of 16, 64, 256, 1,024",
    ]
    unknown = measure(replace(GOAL, burst_frames=(64,)), theoretical_fps=None)
    assert any("do not know their line rate" in d.text for d in unknown.deviations)


def test_a_tester_that_cannot_is_no_fault_of_the_dut() -> None:
    """R2544-39."""
    found = measure(replace(GOAL, burst_frames=(64,)), tester_ceiling_fps=100_000)
    assert found.outcome == "tester_ceiling"
    assert "says nothing about the DUT" in shown(found_tables(found, BURST)[-1])


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"burst_frames": ()}, "procedure.not-burst-sizes", "burst_frames"),
        ({"burst_frames": (16, 16)}, "procedure.not-burst-sizes", "burst_frames"),
        ({"burst_frames": (0,)}, "procedure.out-of-range", "burst_frames"),
        ({"burst_frames": (1_000_001,)}, "procedure.out-of-range", "burst_frames"),
        ({"burst_frames": (600_000,)}, "procedure.bursts-too-long", "burst_frames, duration_s"),
        ({"rate_fps": 0.0}, "procedure.out-of-range", "rate_fps"),
        ({"precision": 0.0}, "search.out-of-range", "precision"),
        ({"duration_s": 0.0}, "search.out-of-range", "duration_s"),
        ({"final_duration_s": 0.5}, "search.durations-contradict", "final_duration_s"),
    ],
)
def test_bad_goals_are_refused(changes: dict[str, Any], code: str, where: str) -> None:
    with raises(code) as refused:
        replace(GOAL, **changes)
    assert refused.value.where == where


def test_the_rate_is_that_of_the_line_and_never_above() -> None:
    """R2544-17: at minimum gap."""
    profile = measure(replace(GOAL, burst_frames=(16,))).profile
    assert choose_maximum(BurstGoal().rate_fps, profile, where="rate_fps") == 1_000_000
    with raises("rig.above-line-rate"):
        check_given(1.1e6, profile, where="rate_fps")


def test_the_trial_that_confirms_an_interval_is_never_shorter_than_asked_for() -> None:
    """R2544-20: a whole number of intervals hardly ever makes 60 s, and a shorter one is a deviation."""
    for place in range(60):
        rate_fps = 300_000.0 + 1237.7 * place
        load = Load.bursts(16, RATE_FPS, 16 / rate_fps, 60.0)
        assert load.burst is not None
        assert 60.0 <= load.duration_s < 60.0 + load.burst.interval_s
        assert frames_of(load) == pytest.approx(load.duration_s * rate_fps, rel=1e-9)
    assert Load.bursts(16, RATE_FPS, 0.5, 60.0).duration_s == 60.0


def test_a_trial_of_bursts_is_what_its_document_says() -> None:
    """What comes from a worker is read from that."""
    found = measure(replace(GOAL, burst_frames=(48,)))
    assert all(TrialResult.from_contract(trial.raw) == trial for trial in found.trials)
    (interval,) = found.intervals
    assert interval.search.final_trial is not None
    assert interval.search.final_trial.is_pass
