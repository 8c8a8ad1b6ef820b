# SPDX-License-Identifier: Apache-2.0
"""Throughput search on devices whose limit is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Required, TypedDict, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.throughput import filling_lines, patience_lines
from evenhand.search import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    Outcome,
    Purpose,
    SearchEvent,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    TrialStarted,
    find_throughput,
)
from evenhand.search.bracket import LoadBracket
from evenhand.search.estimate import estimate_left
from evenhand.trial import SimulatedMeasurer, TrialResult, Verdict
from evenhand.trial.direction import QueueFilling
from tests.errors import raises
from tests.report.live import entry_of_search
from tests.report.test_throughput import PROFILE

MAX_FPS = 1_000_000.0
limits = st.floats(min_value=0, max_value=2 * MAX_FPS)
precisions = st.sampled_from([0.0005, 0.005, 0.01, 0.1])


class GoalFields(TypedDict, total=False):
    """Those of a `ThroughputGoal` that tests choose."""

    max_fps: float
    min_fps: float
    precision: float
    duration_s: float
    final_duration_s: float
    max_trials: int
    patience: int


class Device(TypedDict, total=False):
    """Those of a `SimulatedMeasurer`."""

    limit_fps: Required[float]
    knee_fps: float
    buffer_frames: float
    noise_probability: float
    invalid_probability: float


def search(
    device: SimulatedMeasurer,
    *,
    on_progress: Callable[[SearchEvent], None] | None = None,
    **goal: Unpack[GoalFields],
) -> ThroughputResult:
    options: GoalFields = {"max_fps": MAX_FPS, "duration_s": 1.0, "final_duration_s": 60.0, **goal}
    return find_throughput(
        device, ThroughputGoal(**options, loss_ratio=device.loss_ratio_limit), on_progress=on_progress
    )


@given(limit_fps=limits, precision=precisions)
def test_a_limit_is_found_within_the_width_and_never_above(limit_fps: float, precision: float) -> None:
    """R2544-21, MLR-13: limit T gives a result in (T - width, T]; a wire-speed DUT gets the maximum
    itself."""
    result = search(SimulatedMeasurer(limit_fps=limit_fps), precision=precision)
    if limit_fps >= MAX_FPS:
        assert result.outcome is Outcome.AT_OR_ABOVE_MAXIMUM
        assert result.throughput_fps == MAX_FPS
    elif limit_fps < result.goal.lowest_fps:
        assert result.outcome is Outcome.BELOW_MINIMUM
        assert result.throughput_fps is None
    else:
        assert result.outcome is Outcome.FOUND
        assert result.throughput_fps is not None
        assert limit_fps * (1 - precision) < result.throughput_fps <= limit_fps


@given(
    limit_fps=limits,
    noise=st.floats(min_value=0, max_value=0.9),
    invalid=st.floats(min_value=0, max_value=0.5),
    buffer_frames=st.floats(min_value=0, max_value=2 * MAX_FPS),
    seed=st.integers(min_value=0),
)
def test_search_never_reports_a_load_that_lost_frames(
    limit_fps: float, noise: float, invalid: float, buffer_frames: float, seed: int
) -> None:
    """R2544-20: the last trial at the reported load is a full-length one that passed, on any device; at the
    tester's ceiling it may be the last valid one."""
    device = SimulatedMeasurer(
        limit_fps=limit_fps,
        noise_probability=noise,
        invalid_probability=invalid,
        buffer_frames=buffer_frames,
        seed=seed,
    )
    result = search(device)
    assert [t.result for t in result.trials] == device.trials
    if result.throughput_fps is None:
        assert result.outcome not in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM)
        return
    if result.outcome is Outcome.TESTER_CEILING and result.final_trial is None:
        at_result = [
            t
            for t in device.trials
            if t.intended_fps == result.throughput_fps and t.verdict is not Verdict.INVALID
        ]
        assert at_result[-1].verdict is Verdict.PASS
        return
    full_length = [
        t for t in device.trials if t.intended_fps == result.throughput_fps and t.intended_duration_s == 60
    ]
    assert full_length[-1].verdict is Verdict.PASS
    assert full_length[-1].lost_frames == 0
    assert result.final_trial == full_length[-1]


@given(limit_fps=limits, invalid_trials=st.sets(st.integers(min_value=1, max_value=30)))
def test_invalid_trials_are_no_result_of_the_device(limit_fps: float, invalid_trials: set[int]) -> None:
    """Decision D5: a tester's fault, however often, leaves the result true, or there is none."""
    result = search(SimulatedMeasurer(limit_fps=limit_fps, invalid_trials=invalid_trials))
    if result.throughput_fps is not None and result.outcome is Outcome.FOUND:
        assert limit_fps * (1 - 0.005) < result.throughput_fps <= limit_fps
    if result.upper_fps is not None:
        assert result.upper_fps > limit_fps
    if result.highest_passed_fps is not None:
        assert result.highest_passed_fps <= limit_fps
    if result.outcome is Outcome.TESTER_CEILING:
        proven = [t.load_fps for t in result.trials if t.is_full_length and t.result.is_pass]
        assert result.throughput_fps == max(proven, default=None)
        assert result.is_at_least is (result.throughput_fps is not None)
        assert result.count(Verdict.INVALID) >= 3
    if len(invalid_trials) < 3:
        assert result.throughput_fps == search(SimulatedMeasurer(limit_fps=limit_fps)).throughput_fps


@given(
    limit_fps=limits,
    min_fps=st.floats(min_value=1, max_value=MAX_FPS),
    noise=st.floats(min_value=0, max_value=1),
)
def test_loads_stay_between_minimum_and_maximum(limit_fps: float, min_fps: float, noise: float) -> None:
    """MLR-12."""
    device = SimulatedMeasurer(limit_fps=limit_fps, noise_probability=noise)
    search(device, min_fps=min_fps)
    assert all(min_fps <= trial.intended_fps <= MAX_FPS for trial in device.trials)
    assert device.trials[0].intended_fps == MAX_FPS


@pytest.mark.parametrize(
    "device",
    [
        {"limit_fps": 634_567},
        {"limit_fps": 650_000, "knee_fps": 500_000},
        {"limit_fps": 634_567, "buffer_frames": 2048},
        {"limit_fps": 2e6},
        {"limit_fps": 634_567, "noise_probability": 0.05},
        {"limit_fps": 634_567, "invalid_probability": 0.05},
    ],
    ids=lambda device: ",".join(f"{name}={value}" for name, value in device.items()),
)
@pytest.mark.parametrize("is_guided", [False, True])
def test_trials_that_stop_when_they_have_failed_find_the_same(device: Device, is_guided: bool) -> None:
    """R2544-20, R2544-21: the same bounds by the same proofs, only sooner."""
    goal = ThroughputGoal(
        max_fps=1_488_095, precision=0.001, duration_s=1, final_duration_s=60, is_guided=is_guided
    )
    whole, early = (SimulatedMeasurer(**device, seed=3, stops_when_failed=stops) for stops in (False, True))
    expected, found = find_throughput(whole, goal), find_throughput(early, goal)
    assert found.outcome is expected.outcome
    for result in (expected, found):
        confirmed = [
            t
            for t in result.trials
            if t.is_full_length and t.result.is_pass and t.result.intended_fps == result.throughput_fps
        ]
        assert confirmed
        assert all(t.result.stopped_early_s is None for t in confirmed)
    if not is_guided:  # a guided search takes other steps where the losses are others
        assert (found.throughput_fps, found.upper_fps) == (expected.throughput_fps, expected.upper_fps)
    assert early.elapsed_s <= whole.elapsed_s * (1.2 if is_guided else 1)
    assert all(t.result.stopped_early_s is None for t in found.trials if t.result.verdict is not Verdict.FAIL)


def test_a_loss_that_stopped_a_trial_is_judged_as_that_of_the_whole_trial() -> None:
    """A single frame in a minute is a small loss, although it is a larger one of the seconds until then."""
    measurer = SimulatedMeasurer(limit_fps=1e6, noise_probability=1, stops_when_failed=True)
    result = measurer.measure(60, 1000)
    assert result.stopped_early_s == pytest.approx(32.16)
    assert result.least_loss_ratio == pytest.approx(1 / 60_000, rel=0.01)
    assert result.loss_ratio > 1.8 * result.least_loss_ratio


def test_a_tester_that_cannot_keep_up_ends_the_search_with_what_was_really_tested() -> None:
    """R2544-39: the ceiling of the tester is no limit of the DUT."""
    device = SimulatedMeasurer(limit_fps=900_000, tester_ceiling_fps=800_000)
    result = search(device)
    assert result.outcome is Outcome.TESTER_CEILING
    assert result.throughput_fps == result.highest_passed_fps == 800_000
    assert result.is_at_least
    assert result.upper_fps is None
    assert result.final_trial is not None
    assert result.final_trial.intended_duration_s == 60


def test_what_a_queue_sustains_is_held_against_what_the_goal_tolerates() -> None:
    """With a loss ratio of 1 %, a throughput of 1,000 fps is sustained by a DUT that forwards 990 of them."""
    result = search(SimulatedMeasurer(limit_fps=995, loss_ratio_limit=0.01), max_fps=1000.0)
    assert result.throughput_fps == 1000
    confirmed = result.trials[-1]

    def told(sustainable_fps: float) -> float | None:
        queue = QueueFilling(slope=0.01, sustainable_fps=sustainable_fps)
        each = {name: replace(one, queue_filling=queue) for name, one in confirmed.result.directions.items()}
        trial = replace(confirmed, result=replace(confirmed.result, directions=each))
        return replace(result, trials=(*result.trials[:-1], trial)).sustainable_fps

    assert told(991) is None
    assert told(989) == 989


def test_a_lower_bound_that_a_full_length_trial_refutes_is_none() -> None:
    """R2544-20: a buffer hides the loss of short trials, and the tester keeps no load above 500 kfps."""
    device = SimulatedMeasurer(limit_fps=400_000, buffer_frames=200_000, tester_ceiling_fps=500_000)
    result = search(device)
    true_limit = 400_000 + 200_000 / 60
    assert result.outcome is Outcome.FOUND
    assert result.throughput_fps is not None
    assert true_limit * 0.995 < result.throughput_fps <= true_limit


def test_short_trials_that_a_full_length_one_has_refuted_are_no_lower_bound() -> None:
    """R2544-20: loads above the limit passed short trials; then a full-length one failed, and the tester
    keeps nothing any more."""
    device = SimulatedMeasurer(
        limit_fps=400_000, knee_fps=399_000, buffer_frames=200_000
    )  # beside a knee nothing tells that a queue fills
    whole = search(replace(device, trials=[]))
    refuted = next(i for i, t in enumerate(whole.trials, start=1) if t.is_full_length)
    bound = search(replace(device, trials=[], invalid_trials=range(refuted + 1, 1000), is_load_offered=False))
    assert bound.outcome is Outcome.TESTER_CEILING
    assert bound.highest_passed_fps is not None
    assert bound.highest_passed_fps > 400_000
    assert (bound.throughput_fps, bound.is_at_least) == (None, False)


@pytest.mark.parametrize("ceiling_fps", [810_000.0, 90_000.0, 9_000.0])
def test_a_device_whose_limit_lies_below_the_testers_is_found_all_the_same(ceiling_fps: float) -> None:
    """D5: a maximum that the tester cannot offer says nothing about the loads below it."""
    limit_fps = 0.9 * ceiling_fps
    result = search(SimulatedMeasurer(limit_fps=limit_fps, tester_ceiling_fps=ceiling_fps))
    assert result.outcome is Outcome.FOUND
    assert result.throughput_fps is not None
    assert limit_fps * (1 - 0.005) < result.throughput_fps <= limit_fps


def test_a_tester_that_keeps_no_load_gives_up() -> None:
    device = SimulatedMeasurer(limit_fps=900_000, invalid_probability=1, is_load_offered=False)
    result = search(device)
    assert result.outcome is Outcome.TESTER_CEILING
    assert len(result.trials) == 15
    assert result.throughput_fps is None
    assert not result.is_at_least
    assert result.highest_passed_fps is None
    assert result.highest_offered_fps is None


def test_a_tester_ceiling_within_the_search_keeps_the_highest_load_that_passed() -> None:
    """Issue: the search ends with "tester ceiling" and the highest load that was really tested."""
    device = SimulatedMeasurer(limit_fps=640_000, invalid_trials={4, 5, 6}, is_load_offered=False)
    result = search(device)
    assert result.outcome is Outcome.TESTER_CEILING
    assert [t.result.intended_fps for t in result.trials[:7]] == [
        1e6,
        5e5,
        7.5e5,
        6.25e5,
        6.25e5,
        6.25e5,
        562_500,
    ]
    assert result.highest_passed_fps is not None
    assert 625_000 * (1 - 0.005) < result.highest_passed_fps < 625_000
    assert result.upper_fps == 750_000
    assert result.throughput_fps == result.highest_passed_fps
    assert result.trials[-1].purpose is Purpose.CONFIRMATION


def test_a_tester_that_keeps_no_more_load_is_given_one_trial_to_confirm_what_passed() -> None:
    """Five loads in a row stayed INVALID: what had passed before is a lower bound, and is confirmed in full
    length where that works."""
    invalid = range(3, 3 + 5 * (DEFAULT_INVALID_RETRIES + 1))
    result = search(SimulatedMeasurer(limit_fps=640_000, invalid_trials=invalid, is_load_offered=False))
    assert result.outcome is Outcome.TESTER_CEILING
    assert (result.throughput_fps, result.trials[-1].purpose, result.trials[-1].number) == (
        500_000,
        Purpose.CONFIRMATION,
        invalid.stop,
    )
    for_good = search(
        SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(3, 1000), is_load_offered=False)
    )
    assert for_good.outcome is Outcome.TESTER_CEILING
    assert (for_good.throughput_fps, for_good.highest_passed_fps) == (None, 500_000)
    assert for_good.final_trial is None


def test_a_confirmation_that_stays_invalid_ends_the_search() -> None:
    undisturbed = search(SimulatedMeasurer(limit_fps=640_000))
    last = len(undisturbed.trials)
    result = search(
        SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(last, last + DEFAULT_PATIENCE + 1))
    )
    assert result.outcome is Outcome.TESTER_CEILING
    assert result.throughput_fps is None  # no trial of full length has confirmed it
    assert result.highest_passed_fps == undisturbed.throughput_fps
    assert not result.is_at_least
    assert result.final_trial is None


def test_a_confirmation_is_repeated_longer_than_a_trial_of_the_search() -> None:
    """Issue: 22 trials had found the truth, and then three INVALID ones in a row threw it away."""
    last = len(search(SimulatedMeasurer(limit_fps=640_000)).trials)
    result = search(
        SimulatedMeasurer(
            limit_fps=640_000, invalid_trials=range(last, last + DEFAULT_PATIENCE), is_load_offered=False
        )
    )
    assert result.outcome is Outcome.FOUND
    assert result.count(Verdict.INVALID) == DEFAULT_PATIENCE


@pytest.mark.parametrize(
    ("is_load_offered", "attempts"), [(True, DEFAULT_PATIENCE + 1), (False, DEFAULT_INVALID_RETRIES + 1)]
)
def test_patience_is_for_trials_that_only_a_moment_spoiled(is_load_offered: bool, attempts: int) -> None:
    """A tester that is too slow for a load will not be faster the next time."""
    device = SimulatedMeasurer(
        limit_fps=640_000, invalid_trials=range(2, 1000), is_load_offered=is_load_offered
    )
    result = search(device)
    second = result.trials[1].result.intended_fps
    assert sum(t.result.intended_fps == second for t in result.trials) == attempts


def test_the_number_of_repetitions_is_the_users() -> None:
    device = SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(2, 14))
    assert search(device, patience=12).outcome is Outcome.FOUND
    assert "up to 12 times (defaults: 2 and 8)" in patience_lines(ThroughputGoal(max_fps=1e6, patience=12))[0]
    assert not patience_lines(ThroughputGoal(max_fps=1e6))


def test_two_invalid_trials_are_repeated_and_the_search_goes_on() -> None:
    device = SimulatedMeasurer(limit_fps=640_000, invalid_trials={2, 3})
    result = search(device)
    assert result.outcome is Outcome.FOUND
    assert result.count(Verdict.INVALID) == 2
    assert [t.attempt for t in result.trials[:5]] == [1, 1, 2, 3, 1]


def test_a_device_with_a_deep_buffer_is_judged_by_full_length_trials() -> None:
    """R2544-20: short trials pass above the limit; the result may not."""
    device = SimulatedMeasurer(limit_fps=400_000, buffer_frames=200_000)
    result = search(device)
    true_limit = 400_000 + 200_000 / 60
    assert result.outcome is Outcome.FOUND
    assert result.throughput_fps is not None
    assert true_limit * 0.995 < result.throughput_fps <= true_limit
    # The queue was seen to fill in short trials, and passed a full-length one all the same: from there on
    # only those count.
    last_short = max(i for i, t in enumerate(result.trials) if not t.is_full_length)
    assert all(
        t.is_full_length
        for t in result.trials
        if t.result.intended_fps in (result.throughput_fps, result.upper_fps)
    )
    assert {t.result.is_pass for t in result.trials[last_short + 1 :]} == {True, False}


def test_equal_durations_need_no_second_confirmation() -> None:
    result = search(SimulatedMeasurer(limit_fps=640_000), duration_s=60, final_duration_s=60)
    assert result.outcome is Outcome.FOUND
    assert all(t.purpose is not Purpose.CONFIRMATION for t in result.trials)
    loads = [t.result.intended_fps for t in result.trials]
    assert len(set(loads)) == len(loads)


def test_a_maximum_that_passes_is_confirmed_once_and_reported() -> None:
    """MLR-13: line rate itself is tried, so that a wire-speed DUT gets the line rate."""
    result = search(SimulatedMeasurer(limit_fps=2e6))
    assert [(t.purpose, t.is_full_length) for t in result.trials] == [
        (Purpose.MAXIMUM, False),
        (Purpose.CONFIRMATION, True),
    ]


def test_a_loss_ratio_finds_the_knee_above_the_zero_loss_limit() -> None:
    device = SimulatedMeasurer(limit_fps=400_000, loss_ratio_limit=0.005)
    result = search(device)
    assert result.throughput_fps is not None
    assert 400_000 <= result.throughput_fps <= 400_000 / 0.995
    assert result.to_document()["goal"]["loss_ratio"] == 0.005


def test_a_device_that_forwards_nothing_is_below_the_minimum() -> None:
    """MLR-13: a limit of 0 ends."""
    result = search(SimulatedMeasurer(limit_fps=0))
    assert result.outcome is Outcome.BELOW_MINIMUM
    assert result.trials[-1].result.intended_fps == 1000
    assert len(result.trials) < 15


def test_a_search_without_end_is_stopped() -> None:
    result = search(SimulatedMeasurer(limit_fps=640_000), max_trials=4)
    assert result.outcome is Outcome.STOPPED
    assert len(result.trials) == 4
    assert result.throughput_fps is None
    assert result.highest_passed_fps == 625_000


@given(limit_fps=limits)
def test_progress_tells_each_trial_before_and_after_and_counts_down(limit_fps: float) -> None:
    """The event of a finished trial comes before the next trial, so that it can be stored first (D11)."""
    events: list[SearchEvent] = []
    result = search(SimulatedMeasurer(limit_fps=limit_fps), on_progress=events.append)
    started, finished = events[::2], events[1::2]
    assert all(isinstance(e, TrialStarted) and e.remaining_trials >= 1 and e.remaining_s > 0 for e in started)
    assert [e.trial for e in finished if isinstance(e, TrialFinished)] == list(result.trials)
    last = finished[-1]
    assert isinstance(last, TrialFinished)
    assert (last.remaining_trials, last.remaining_s) == (0, 0)


@given(limit_fps=st.floats(min_value=2000, max_value=999_000))
def test_the_first_estimate_is_close(limit_fps: float) -> None:
    events: list[SearchEvent] = []
    result = search(SimulatedMeasurer(limit_fps=limit_fps), on_progress=events.append)
    first = events[0]
    assert isinstance(first, TrialStarted)
    assert abs(first.remaining_trials - len(result.trials)) <= 9


@pytest.mark.parametrize("factor", [60, 600, 60_000])
def test_a_confirmation_that_is_hardly_ever_valid_is_expected_to_take_all_of_its_attempts(
    factor: int,
) -> None:
    """R2544-39: the first one and as many repetitions as patience allows. What is longer by a factor meets a
    stall of the host in all of them; the time left was 0 s, or a division by 0."""
    goal = ThroughputGoal(max_fps=MAX_FPS, duration_s=1, final_duration_s=factor, patience=5)
    device = SimulatedMeasurer(limit_fps=500_000, invalid_trials={2, 3, 4})
    made = find_throughput(device, goal).trials[:4]
    assert [trial.result.is_valid for trial in made] == [True, False, False, False]
    bracket = LoadBracket(min_fps=1000, max_fps=MAX_FPS, precision=0.005)
    count, left = estimate_left(
        goal,
        bracket,
        made,
        overhead_s=2,
        trial_s=None,
        run_rest=lambda device: device.measure(goal.final_duration_s, 1000),
    )
    assert count == 6
    assert not left.is_wide
    assert left.middle_s == pytest.approx(6 * (factor + 2))


def test_the_estimate_learns_that_loads_are_repeated() -> None:
    """Each load takes two trials here: what is said to remain after the first third must not be half of what
    comes. All trials are equally long, so that one is spoiled as easily as the other."""
    events: list[SearchEvent] = []
    result = search(
        SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(1, 100, 2)),
        on_progress=events.append,
        final_duration_s=1.0,
    )
    assert result.outcome is Outcome.FOUND
    third = len(result.trials) // 3
    said = next(e for e in events if isinstance(e, TrialFinished) and e.trial.number == third)
    to_come = len(result.trials) - third
    assert 0.8 * to_come <= said.remaining_trials <= 1.25 * to_come


@pytest.mark.parametrize(
    ("goal", "code", "where"),
    [
        ({"max_fps": 0}, "search.out-of-range", "max_fps"),
        ({"max_fps": float("nan")}, "base.wrong-type", "max_fps"),
        ({"precision": 0}, "search.out-of-range", "precision"),
        ({"precision": 1}, "search.out-of-range", "precision"),
        ({"duration_s": 0}, "search.out-of-range", "duration_s"),
        ({"final_duration_s": 0.5}, "search.durations-contradict", "final_duration_s"),
        ({"min_fps": 0}, "search.out-of-range", "min_fps"),
        ({"min_fps": 2e6}, "search.out-of-range", "min_fps"),
    ],
)
def test_goals_that_cannot_be_met_are_refused(goal: GoalFields, code: str, where: str) -> None:
    with raises(code) as refused:
        search(SimulatedMeasurer(limit_fps=1), on_progress=None, **goal)
    assert refused.value.where == where


class _StoppedMeasurer(SimulatedMeasurer):
    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        raw = dict(SimulatedMeasurer.measure(self, duration_s, rate_fps).raw)
        return TrialResult.from_contract(
            {**raw, "verdict": "INVALID", "reasons": [{"code": "stopped", "text": "by the client"}]}
        )


def test_a_stopped_trial_stops_the_search_without_a_retry() -> None:
    result = search(_StoppedMeasurer(limit_fps=1e6))
    assert result.outcome is Outcome.STOPPED
    assert len(result.trials) == 1


@pytest.mark.parametrize(
    ("limit_fps", "buffer_frames"),
    [(20_000.0, 16), (20_000.0, 2_000), (300_000.0, 20_000), (300_000.0, 60_000)],
)
def test_a_deep_queue_costs_hardly_more_trials_than_none(buffer_frames: int, limit_fps: float) -> None:
    """A short trial that passes while a queue fills moves no bound, so the search is not led above the
    limit."""
    plain = search(SimulatedMeasurer(limit_fps=limit_fps), precision=0.005)
    deep = search(SimulatedMeasurer(limit_fps=limit_fps, buffer_frames=buffer_frames), precision=0.005)
    assert deep.outcome is Outcome.FOUND
    assert deep.throughput_fps is not None
    # What the queue holds at the end of a minute counts as forwarded in RFC 2544.
    assert limit_fps * 0.995 <= deep.throughput_fps <= limit_fps + buffer_frames / 60
    assert len(deep.trials) <= len(plain.trials) + 3


def test_a_queue_too_deep_for_the_final_trial_is_told_beside_the_result() -> None:
    """At 20,000 fps 100,000 frames hide 8 % even from a minute. What passed stands, and what is sustained
    stands beside it."""
    found = search(SimulatedMeasurer(limit_fps=20_000, buffer_frames=100_000), precision=0.005)
    assert found.throughput_fps is not None
    assert found.throughput_fps == pytest.approx(20_000 + 100_000 / 60, rel=0.005)
    assert found.sustainable_fps == pytest.approx(20_000)
    assert len(found.trials) <= 40


def test_a_throughput_that_a_longer_trial_would_refute_says_so() -> None:
    """The verdict of RFC 2544 stands; the sustainable load is beside it, in text and JSON."""
    device = SimulatedMeasurer(limit_fps=8_000, buffer_frames=1_000_000)
    found = search(device, max_fps=9_000.0, duration_s=0.5, final_duration_s=0.5)
    assert (found.outcome, found.throughput_fps) == (Outcome.AT_OR_ABOVE_MAXIMUM, 9_000)
    assert found.sustainable_fps == pytest.approx(8_000)
    assert found.to_document()["sustainable_fps_per_direction"] == pytest.approx(8_000)
    (line,) = filling_lines(entry_of_search(found, PROFILE))
    assert "delays grew by 125 ms per second" in line
    assert "sustains about 8,000 fps" in line
    plain = search(SimulatedMeasurer(limit_fps=8_000), max_fps=9_000.0)
    assert filling_lines(entry_of_search(plain, PROFILE)) == []


def test_a_short_trial_with_a_filling_queue_is_decided_by_a_full_length_one() -> None:
    """A PASS in full length stands, however the queue filled: only trials are verdicts."""
    device = SimulatedMeasurer(limit_fps=8_000, buffer_frames=1_000_000)
    found = search(device, max_fps=9_000.0, duration_s=1.0, final_duration_s=10.0)
    assert (found.outcome, found.throughput_fps) == (Outcome.AT_OR_ABOVE_MAXIMUM, 9_000)
    assert found.final_trial is not None
    assert found.final_trial.intended_duration_s == 10


class Lapsing:
    """A deep queue behind a tester that lapses: in full-length trials nothing says that the queue fills."""

    def __init__(self) -> None:
        self.device = SimulatedMeasurer(limit_fps=20_000, buffer_frames=50_000)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = self.device.measure(duration_s, rate_fps)
        if duration_s < 60:
            return result
        directions = {name: replace(one, queue_filling=None) for name, one in result.directions.items()}
        return replace(result, directions=directions)


def test_no_short_trial_is_made_after_a_full_length_one_failed_below_one_that_passed() -> None:
    """A second at 1.06 of the capacity shows nothing, if one at twice the capacity passed."""
    goal = ThroughputGoal(max_fps=40_000, precision=0.001, duration_s=1, final_duration_s=60, is_guided=True)
    found = find_throughput(Lapsing(), goal)
    assert found.outcome is Outcome.FOUND
    assert found.throughput_fps == pytest.approx(20_000 + 50_000 / 60, rel=0.001)
    first_failed = next(i for i, trial in enumerate(found.trials) if not trial.result.is_pass)
    assert found.trials[first_failed].is_full_length
    assert all(trial.is_full_length for trial in found.trials[first_failed:])
    assert len(found.trials) < 16


class Shaky:
    """Loses nothing, but the tester does not keep any load above its ceiling."""

    def __init__(self, limit_fps: float) -> None:
        self.limit_fps, self.device = limit_fps, SimulatedMeasurer(limit_fps=1e9)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = self.device.measure(duration_s, rate_fps)
        if rate_fps <= self.limit_fps:
            return result
        return replace(result, verdict=Verdict.INVALID)


def test_loads_that_the_tester_does_not_keep_count_only_if_no_other_lies_between_them() -> None:
    """Halving towards two thirds of the maximum, every other load is one that the tester does not keep. Five
    of them in a row say that it will keep no more; five in all say nothing."""
    goal = ThroughputGoal(max_fps=MAX_FPS, precision=0.0005, duration_s=1, final_duration_s=1)
    limit_fps = MAX_FPS * 2 / 3
    result = find_throughput(Shaky(limit_fps), goal)
    loads = {trial.load_fps for trial in result.trials if not trial.result.is_valid}
    assert len(loads) > 5
    assert result.outcome is Outcome.TESTER_CEILING
    assert result.throughput_fps is not None
    assert (1 - goal.precision) * limit_fps < result.throughput_fps <= limit_fps
