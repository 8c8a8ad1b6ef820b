# SPDX-License-Identifier: Apache-2.0
"""A FAIL that was stopped early bounds no result while a queue that stands still may explain it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from evenhand.search import Outcome, Purpose, ThroughputGoal, find_throughput
from evenhand.search.bound import leaves_doubt
from evenhand.search.bracket import LoadBracket
from evenhand.trial import SimulatedMeasurer, TrialResult, Verdict
from evenhand.trial.simulated import make_direction_document, make_trial_document

GOAL = ThroughputGoal(max_fps=1e6, duration_s=14, final_duration_s=14, precision=0.05)


def cut_trial(*, rate_fps: float, duration_s: float, sent_s: float, lost_by_tenth: list[int]) -> TrialResult:
    frames = round(rate_fps * sent_s)
    direction = make_direction_document(
        intended=frames,
        offered=frames,
        received=frames - sum(lost_by_tenth),
        duration_s=sent_s,
        rate_fps=rate_fps,
    )
    direction["lost_by_tenth"] = lost_by_tenth
    document = make_trial_document(
        trial=1,
        verdict=Verdict.FAIL,
        reasons=[{"code": "loss", "text": "simulated"}],
        frame_size=64,
        rate_fps=rate_fps,
        duration_s=sent_s,
        loss_ratio_limit=0,
        directions={"forward": direction},
    )
    return TrialResult.from_contract(
        document | {"intended_duration_s": duration_s, "stopped_early_s": sent_s}
    )


@dataclass
class StandsStill:
    """Above 400 kfps one of four queues holds its frames for seconds, and loses none up to the limit. Trials
    may be stopped early."""

    inner: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=700_000))
    stops: bool = True
    cut: int = 0

    def stop_no_trial_early(self) -> None:
        self.stops = False

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        if not self.stops or rate_fps <= 400_000:
            return self.inner.measure(duration_s, rate_fps)
        self.cut += 1
        share = round(rate_fps / 10 / 4)
        return cut_trial(
            rate_fps=rate_fps, duration_s=duration_s, sent_s=4.0, lost_by_tenth=[0] * 15 + [share] * 25
        )


def test_a_queue_that_stands_still_is_no_bound() -> None:
    """R2544-19, R2544-21: the bound is tried to its end, and from there on every trial is."""
    device = StandsStill()
    result = find_throughput(device, GOAL)
    assert result.outcome is Outcome.FOUND
    assert result.throughput_fps is not None
    assert 0.95 * 700_000 <= result.throughput_fps <= 700_000
    assert result.upper_fps is not None
    assert result.upper_fps > 700_000
    bounds = [trial for trial in result.trials if trial.purpose is Purpose.BOUND]
    assert bounds
    assert all(trial.result.stopped_early_s is None for trial in bounds)
    assert device.cut > 0
    after = result.trials[bounds[0].number :]
    assert all(trial.result.stopped_early_s is None for trial in after)


def test_a_device_below_its_minimum_is_tried_to_the_end_too() -> None:
    goal = replace(GOAL, min_fps=500_000)
    assert find_throughput(StandsStill(), goal).outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("lost_by_tenth", "is_in_doubt"),
    [
        ([0] * 15 + [2500] * 25, True),  # a queue of four stands still
        ([0] * 15 + [160] * 25, True),  # one of 64
        ([0] * 15 + [39] * 25, True),  # one of 256
        ([0] * 15 + [12] * 25, False),  # the load is 0.12 % too high
        ([0] * 20 + [5] * 15 + [0, 180, 3, 0, 90], False),  # lost in lumps
        ([10_000] * 40, True),
        ([0] * 15 + [2500] * 15 + [0] * 10, False),  # all that came after it came back
        ([2] * 40, False),  # 0.02 %: no queue is so small
        ([0] * 10 + [1] + [0] * 29, False),
    ],
)
def test_what_is_missing_up_to_the_end_leaves_a_doubt(lost_by_tenth: list[int], is_in_doubt: bool) -> None:
    result = cut_trial(rate_fps=100_000, duration_s=60, sent_s=4.0, lost_by_tenth=lost_by_tenth)
    assert leaves_doubt(result) is is_in_doubt
    assert not leaves_doubt(replace(result, stopped_early_s=None))


@dataclass
class SpoilsFirstBound:
    """Loses what is above its limit, up to the end of a trial that is stopped early. Its first trial after
    that is INVALID."""

    inner: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=700_000))
    stops: bool = True
    is_spoiled: bool = False

    def stop_no_trial_early(self) -> None:
        self.stops = False

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        excess_fps = rate_fps - self.inner.limit_fps
        if self.stops and excess_fps > 0:
            lost = [round(excess_fps / 10)] * 40
            return cut_trial(rate_fps=rate_fps, duration_s=duration_s, sent_s=4.0, lost_by_tenth=lost)
        result = self.inner.measure(duration_s, rate_fps)
        if self.stops or self.is_spoiled:
            return result
        self.is_spoiled = True
        reasons = [{"code": "sender_overdue", "text": "simulated"}]
        return TrialResult.from_contract({**result.raw, "verdict": "INVALID", "reasons": reasons})


def test_a_bound_after_a_sure_guess_is_tried_as_patiently_as_any() -> None:
    """A sure guess is not repeated where it is INVALID; what is tried after it is."""
    result = find_throughput(SpoilsFirstBound(), replace(GOAL, duration_s=5, is_guided=True))
    assert [(trial.purpose, trial.is_full_length, str(trial.result.verdict)) for trial in result.trials] == [
        (Purpose.MAXIMUM, False, "FAIL"),
        (Purpose.SEARCH, False, "FAIL"),
        (Purpose.SEARCH, True, "PASS"),
        (Purpose.BOUND, False, "INVALID"),
        (Purpose.BOUND, False, "FAIL"),
    ]


def test_a_device_that_loses_is_bounded_all_the_same() -> None:
    """The bound costs one whole trial at most."""
    early = SimulatedMeasurer(limit_fps=634_567, stops_when_failed=True)
    result = find_throughput(early, GOAL)
    whole = find_throughput(SimulatedMeasurer(limit_fps=634_567), GOAL)
    assert (result.throughput_fps, result.upper_fps) == (whole.throughput_fps, whole.upper_fps)
    assert sum(trial.purpose is Purpose.BOUND for trial in result.trials) <= 1


def test_the_upper_bound_is_the_lowest_load_that_failed_in_whatever_order_loads_failed() -> None:
    bracket = LoadBracket(min_fps=1.0, max_fps=1000.0, precision=0.01)
    for load_fps, upper_fps in ((800.0, 800.0), (500.0, 500.0), (650.0, 500.0), (500.0, 500.0)):
        bracket.note_fail(load_fps)
        assert bracket.upper_fps == upper_fps
    bracket.note_doubt(300.0)
    bracket.note_doubt(400.0)
    bracket.note_fail(400.0)
    assert bracket.doubted == {300.0}
    assert bracket.below_fps == 300.0


@dataclass
class SpoilsTheBound(StandsStill):
    """Each trial that is made to its end at the load that bounds the result is INVALID."""

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = StandsStill.measure(self, duration_s, rate_fps)
        if self.stops:
            return result
        return replace(result, verdict=Verdict.INVALID)


def test_a_bound_that_cannot_be_tried_to_its_end_holds_and_ends_the_search() -> None:
    """It is tried as often as patience allows, and then no more."""
    goal = replace(GOAL, patience=3)
    result = find_throughput(SpoilsTheBound(), goal)
    assert result.outcome is Outcome.FOUND
    assert result.upper_fps is not None
    assert result.throughput_fps is not None
    assert 0.95 * 400_000 <= result.throughput_fps <= 400_000 < result.upper_fps
    bounds = [trial for trial in result.trials if trial.purpose is Purpose.BOUND]
    assert [trial.load_fps for trial in bounds] == 4 * [result.upper_fps]
    assert result.trials[-1] is bounds[-1]
