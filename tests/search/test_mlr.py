# SPDX-License-Identifier: Apache-2.0
"""MLRsearch on devices whose limits are known, and on testers that fail."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.search import (
    LoadClass,
    MlrGoal,
    MlrGoals,
    MlrResult,
    Observation,
    Outcome,
    SearchEvent,
    SearchTrial,
    ThroughputGoal,
    TrialFinished,
    TrialStarted,
    classify,
    find_goals,
    mlr,
    run_search,
)
from evenhand.trial import SimulatedMeasurer, TrialResult
from evenhand.trial.direction import QueueFilling
from tests.errors import raises

MAX_FPS = 1_000_000.0
NDR = MlrGoal(name="NDR")
PDR = MlrGoal(name="PDR", loss_ratio=0.005)
RFC2544 = MlrGoal(name="RFC2544", duration_sum_s=60, exceed_ratio=0)
STABLE_TRIALS = 80
"""More are never made for NDR and PDR on a device that always does the same."""


def search(device: SimulatedMeasurer, *goals: MlrGoal, **more: Any) -> MlrResult:
    return find_goals(device, MlrGoals(goals=goals or (NDR, PDR), max_fps=MAX_FPS, **more))


def classes_of(device: SimulatedMeasurer, goal: MlrGoal) -> dict[float, LoadClass]:
    """From the device's own records, not from the search's."""
    valid = [trial for trial in device.trials if trial.is_valid]
    return {
        load: classify(
            goal,
            [
                Observation(
                    t.intended_duration_s,
                    t.lost_frames / sum(d.offered_frames for d in t.directions.values()),
                )
                for t in valid
                if t.intended_fps == load
            ],
        )
        for load in {trial.intended_fps for trial in valid}
    }


def check_is_proven(device: SimulatedMeasurer, result: MlrResult) -> None:
    """Each bound is one by the valid trials alone, and no load at or below the result was refuted."""
    assert [trial.result for trial in result.trials] == device.trials
    for found in result.goals:
        classes = classes_of(device, found.goal)
        refuted = [load for load, of in classes.items() if of is LoadClass.UPPER]
        assert found.upper_fps == min(refuted, default=None)
        if found.lower_fps is not None:
            assert classes[found.lower_fps] is LoadClass.LOWER
            assert all(load > found.lower_fps for load in refuted)
            assert found.conditional_throughput_fps is not None
            assert (
                found.lower_fps * (1 - found.goal.loss_ratio) - 1e-6
                <= found.conditional_throughput_fps
                <= found.lower_fps
            )
        if found.is_regular:
            assert found.lower_fps is not None
            assert found.upper_fps is not None
            assert found.upper_fps - found.lower_fps <= found.goal.width * found.upper_fps
    if result.outcome is Outcome.FOUND:
        assert all(found.is_regular for found in result.goals)


@given(limit_fps=st.floats(min_value=0, max_value=2 * MAX_FPS), width=st.sampled_from([0.001, 0.005, 0.05]))
def test_a_hard_limit_is_enclosed_for_every_goal(limit_fps: float, width: float) -> None:
    """MLR-01/02/04/05/10, MLR-12: regular within the width, and irregular where maximum or minimum end the
    search."""
    device = SimulatedMeasurer(limit_fps=limit_fps)
    result = search(device, replace(NDR, width=width), replace(PDR, width=width))
    check_is_proven(device, result)
    assert len(result.trials) <= STABLE_TRIALS
    for found in result.goals:
        true_fps = limit_fps / (1 - found.goal.loss_ratio)
        if true_fps >= MAX_FPS:
            assert found.outcome is Outcome.AT_OR_ABOVE_MAXIMUM
            assert (found.lower_fps, found.upper_fps) == (MAX_FPS, None)
            assert not found.is_regular
        elif true_fps < 0.999 * result.goal.lowest_fps:
            assert found.outcome is Outcome.BELOW_MINIMUM
            assert found.throughput_fps is None
        elif true_fps > 1.001 * result.goal.lowest_fps:
            assert found.is_regular
            assert found.lower_fps is not None
            assert found.upper_fps is not None
            # Whole frames are lost, so the ratio is not exact in short trials.
            assert found.lower_fps <= true_fps + 2
            assert found.upper_fps >= true_fps - 2


@given(limit_fps=st.floats(min_value=2_000, max_value=999_000))
def test_the_goal_of_rfc_2544_finds_what_the_binary_search_finds(limit_fps: float) -> None:
    """MLR-06, R2544-21: on a device that always does the same, both are within the width of the truth, and
    neither above it."""
    plain = run_search(SimulatedMeasurer(limit_fps=limit_fps), ThroughputGoal(max_fps=MAX_FPS))
    found = search(SimulatedMeasurer(limit_fps=limit_fps), RFC2544)
    assert plain.throughput_fps is not None
    assert found.throughput_fps is not None
    for rate_fps in (plain.throughput_fps, found.throughput_fps):
        assert limit_fps * 0.995 <= rate_fps <= limit_fps


@settings(max_examples=60)
@given(
    limit_fps=st.floats(min_value=0, max_value=2 * MAX_FPS),
    knee=st.sampled_from([None, 0.5, 0.9]),
    noise=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    floor=st.sampled_from([0.0, 1e-6, 0.02]),
    inverted=st.sampled_from([None, (300_000.0, 350_000.0), (0.0, 500_000.0)]),
    buffer_frames=st.sampled_from([0.0, 2e3, 2e5]),
    invalid=st.sampled_from([0.0, 0.05, 0.5]),
    is_load_offered=st.booleans(),
    ceiling_fps=st.sampled_from([float("inf"), 700_000.0, 20_000.0]),
    exceed_ratio=st.sampled_from([0.0, 0.2, 0.5]),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_on_no_device_is_a_load_claimed_that_a_valid_trial_refuted(
    limit_fps: float,
    knee: float | None,
    noise: float,
    floor: float,
    inverted: tuple[float, float] | None,
    buffer_frames: float,
    invalid: float,
    is_load_offered: bool,
    ceiling_fps: float,
    exceed_ratio: float,
    seed: int,
) -> None:
    """MLR-08, MLR-10, MLR-12: soft knee, noise, loss inversion, never lossless, faster than the line, INVALID
    above a load and now and then below it. The search ends, and stays between minimum and maximum."""
    device = SimulatedMeasurer(
        limit_fps=limit_fps,
        knee_fps=None if knee is None else knee * limit_fps,
        noise_probability=noise,
        floor_loss_ratio=floor,
        inverted_fps=inverted,
        buffer_frames=buffer_frames,
        invalid_probability=invalid,
        is_load_offered=is_load_offered,
        tester_ceiling_fps=ceiling_fps,
        seed=seed,
    )
    result = search(
        device,
        *(
            replace(goal, exceed_ratio=exceed_ratio, final_duration_s=10, duration_sum_s=20)
            for goal in (NDR, PDR)
        ),
    )
    check_is_proven(device, result)
    assert len(result.trials) < 1000
    assert all(result.goal.lowest_fps <= trial.intended_fps <= MAX_FPS for trial in device.trials)
    assert not any(found.outcome is Outcome.STOPPED for found in result.goals)
    if exceed_ratio == 0:
        for found in result.goals:
            refuting = [
                t.intended_fps
                for t in device.trials
                if t.is_valid and t.loss_ratio > found.goal.loss_ratio + 1e-9
            ]
            assert found.lower_fps is None or all(load > found.lower_fps for load in refuting)


@pytest.mark.parametrize("is_load_offered", [True, False])
def test_invalid_trials_within_the_patience_change_nothing(is_load_offered: bool) -> None:
    """Decision D5, R2544-39: two INVALID trials in a row are repeated, at any point of the search."""
    undisturbed = search(SimulatedMeasurer(limit_fps=640_000))
    numbers = {n for n in range(1, 100) if n % 7 in (2, 3)}
    device = SimulatedMeasurer(limit_fps=640_000, invalid_trials=numbers, is_load_offered=is_load_offered)
    result = search(device)
    assert [found.lower_fps for found in result.goals] == [found.lower_fps for found in undisturbed.goals]
    assert result.above_ceiling_fps is None
    assert max(trial.attempt for trial in result.trials) == 3


@pytest.mark.parametrize(("is_load_offered", "attempts"), [(True, 9), (False, 3)])
def test_patience_is_the_goals_own(is_load_offered: bool, attempts: int) -> None:
    device = SimulatedMeasurer(limit_fps=640_000, invalid_probability=1, is_load_offered=is_load_offered)
    result = search(device, patience=8, invalid_retries=2)
    assert result.outcome is Outcome.TESTER_CEILING
    assert len(result.trials) == 5 * attempts
    assert [found.lower_fps for found in result.goals] == [None, None]


def test_a_load_that_stays_invalid_is_the_testers_ceiling_and_no_loss() -> None:
    """R2544-39, MLR-14: the device passes all that this tester can offer, so no load is an upper bound."""
    device = SimulatedMeasurer(limit_fps=900_000, tester_ceiling_fps=700_000)
    result = search(device)
    assert result.outcome is Outcome.TESTER_CEILING
    for found in result.goals:
        assert found.upper_fps is None
        assert found.throughput_fps == found.lower_fps
        assert found.is_at_least
        assert found.lower_fps is not None
        assert 700_000 * 0.99 < found.lower_fps <= 700_000
    assert result.above_ceiling_fps is not None
    assert result.above_ceiling_fps > 700_000
    given_up = {trial.intended_fps for trial in device.trials if not trial.is_valid}
    assert len(given_up) > 1
    assert result.above_ceiling_fps == min(given_up)


def test_a_device_slower_than_the_tester_is_found_all_the_same() -> None:
    """Decision D5: a maximum that the tester cannot offer says nothing about the loads below it."""
    result = search(SimulatedMeasurer(limit_fps=400_000, tester_ceiling_fps=700_000))
    assert result.outcome is Outcome.FOUND
    assert all(found.is_regular for found in result.goals)


def test_the_way_down_from_a_load_is_as_far_as_the_tester_fell_short() -> None:
    """Decision D5: by a fifth each, it would be given up before it came to what it can keep."""
    device = SimulatedMeasurer(limit_fps=50_000, tester_ceiling_fps=200_000)
    result = search(device, NDR)
    assert result.outcome is Outcome.FOUND
    assert len({trial.intended_fps for trial in device.trials if not trial.is_valid}) == 1


def test_a_goal_that_tolerates_much_is_steered_below_the_testers_ceiling_too() -> None:
    """The loss that the package is told of where a load stayed INVALID is above every goal's."""
    lax = MlrGoal(name="PDR", loss_ratio=0.3)
    (found,) = search(SimulatedMeasurer(limit_fps=400_000, tester_ceiling_fps=700_000), lax).goals
    assert found.is_regular
    assert found.lower_fps == pytest.approx(400_000 / 0.7, rel=0.006)


def test_no_trial_is_made_to_warm_up() -> None:
    """Each trial counts: the maximum fails once, and that is enough."""
    device = SimulatedMeasurer(limit_fps=640_000)
    search(device)
    assert [trial.intended_fps for trial in device.trials].count(MAX_FPS) == 1


def test_a_pdr_goal_is_met_where_no_load_is_free_of_loss() -> None:
    """Issue: a seeded loss of one in a million: NDR says that there is no such load, PDR is unaffected."""
    result = search(SimulatedMeasurer(limit_fps=640_000, floor_loss_ratio=1e-6))
    ndr, pdr = result.goals
    assert ndr.outcome is Outcome.BELOW_MINIMUM
    assert pdr.is_regular
    assert pdr.lower_fps is not None
    assert pdr.lower_fps == pytest.approx(640_000 / 0.995, rel=0.006)
    assert result.outcome is Outcome.BELOW_MINIMUM


def test_loss_inversion_keeps_the_result_below_the_lossy_load() -> None:
    """MLR-08: loads above pass, and are no result."""
    device = SimulatedMeasurer(limit_fps=2e6, inverted_fps=(0.0, 999_000.0))
    assert search(device).goals[0].outcome is Outcome.AT_OR_ABOVE_MAXIMUM
    lossy = SimulatedMeasurer(limit_fps=640_000, inverted_fps=(600_000.0, 630_000.0))
    found = search(lossy).goals[0]
    tried = {trial.intended_fps for trial in lossy.trials if 600_000 <= trial.intended_fps < 630_000}
    assert found.lower_fps is not None
    assert found.lower_fps < min(tried, default=640_000)


def test_one_dead_direction_of_two_is_half_of_the_frames() -> None:
    """MLR-03: loss is counted over all directions together; no goal of 0.5 % takes that."""

    class OneDead(SimulatedMeasurer):
        def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
            raw = dict(SimulatedMeasurer.measure(self, duration_s, rate_fps).raw)
            dead = {
                **raw["directions"]["reverse"],
                "received_frames": 0,
                "lost_frames": raw["directions"]["reverse"]["offered_frames"],
            }
            document = {
                **raw,
                "directions": {**raw["directions"], "reverse": dead},
                "verdict": "FAIL",
                "loss_ratio": 0.5,
            }
            self.trials[-1] = TrialResult.from_contract(
                {**document, "reasons": [{"code": "loss", "text": "reverse is dead"}]}
            )
            return self.trials[-1]

    device = OneDead(limit_fps=2e6)
    result = search(device)
    assert {trial.loss_ratio for trial in device.trials} == {0.5}
    assert result.outcome is Outcome.BELOW_MINIMUM


def test_neither_the_clock_nor_sleep_has_a_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has an end by the clock: a search of hours must not end by it, and nothing may sleep
    between two trials."""
    undisturbed = search(SimulatedMeasurer(limit_fps=640_000))
    hours = count(0, 3600)

    class FastClock:
        @staticmethod
        def monotonic() -> float:
            return next(hours)

    def refuse(_: float) -> None:
        raise AssertionError("slept")

    # Where the search itself finds it: the package is loaded lazily, and which copy of it a test imports
    # depends on what ran before.
    monkeypatch.setitem(vars(mlr)["MLRsearch"].MultipleLossRatioSearch.search.__globals__, "time", FastClock)
    monkeypatch.setattr(time, "sleep", refuse)
    assert search(SimulatedMeasurer(limit_fps=640_000)).goals == undisturbed.goals
    assert next(hours) > 3600


def test_progress_tells_each_trial_before_and_after() -> None:
    """The event of a finished trial comes before the next trial, so that it can be stored first (D11)."""
    events: list[SearchEvent] = []
    result = find_goals(
        SimulatedMeasurer(limit_fps=640_000),
        MlrGoals(goals=(NDR, PDR), max_fps=MAX_FPS),
        on_progress=events.append,
    )
    assert all(isinstance(event, TrialStarted) and event.remaining_s > 0 for event in events[::2])
    assert [event.trial for event in events[1::2] if isinstance(event, TrialFinished)] == list(result.trials)
    last = events[-1]
    assert isinstance(last, TrialFinished)
    assert (last.remaining_trials, last.remaining_s) == (0, 0)
    # The bounds of all goals lie between these.
    assert last.lower_fps == min(found.lower_fps or 0 for found in result.goals)
    assert last.upper_fps == max(found.upper_fps or 0 for found in result.goals)
    assert len({found.lower_fps for found in result.goals}) == 2
    assert [trial.is_full_length for trial in result.trials] == [
        t.result.intended_duration_s == 60 for t in result.trials
    ]


def test_a_stopped_search_is_irregular_and_says_so() -> None:
    class Stopped(SimulatedMeasurer):
        def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
            raw = dict(SimulatedMeasurer.measure(self, duration_s, rate_fps).raw)
            return TrialResult.from_contract(
                {**raw, "verdict": "INVALID", "reasons": [{"code": "stopped", "text": "by the client"}]}
            )

    result = search(Stopped(limit_fps=1e6))
    assert result.outcome is Outcome.STOPPED
    assert len(result.trials) == 1
    assert search(SimulatedMeasurer(limit_fps=640_000), max_trials=4).outcome is Outcome.STOPPED


def test_figures_of_a_goal_are_of_the_valid_full_length_trials_at_its_lower_bound() -> None:
    """MLR-08, MLR-09: the load that a filling queue would sustain is the median of those trials, and stated
    if most of them saw it; shorter, INVALID and other trials have no say in it, nor in what was offered."""
    result = search(SimulatedMeasurer(limit_fps=640_000), NDR)
    (goal,) = result.goals
    assert goal.lower_fps is not None

    def trial(sustainable_fps: float | None, *, duration_s: float = 60, **device: Any) -> SearchTrial:
        assert goal.lower_fps is not None
        made = SimulatedMeasurer(limit_fps=1e9, **device).measure(duration_s, goal.lower_fps)
        queue = None if sustainable_fps is None else QueueFilling(slope=0.1, sustainable_fps=sustainable_fps)
        directions = {name: replace(one, queue_filling=queue) for name, one in made.directions.items()}
        return replace(result.trials[0], load_fps=goal.lower_fps, result=replace(made, directions=directions))

    def told(*trials: SearchTrial) -> float | None:
        return replace(result, trials=trials).sustainable_fps_of(goal)

    slow, slower, slowest, none = trial(600_000), trial(500_000), trial(100_000), trial(None)
    assert told(slow, slower, slowest) == 500_000
    assert told(slow, slower, none) == 550_000
    assert told(slow, slower, none, none) is None
    others = (trial(None, duration_s=59), trial(None, invalid_trials={1}), *result.trials[:1])
    assert told(slow, slow, none, *others) == 600_000
    lost = replace(result, trials=(slow, none, *others)).losses_of(goal)
    assert lost["forward"].offered_frames == 2 * slow.result.directions["forward"].offered_frames
    faster = SimulatedMeasurer(limit_fps=1e9, invalid_trials={1}).measure(60, MAX_FPS)
    offered = replace(result, trials=(slow, replace(slow, result=faster)))
    assert offered.highest_offered_fps == slow.result.offered_fps < faster.offered_fps


def test_the_document_has_every_goal_and_its_bounds() -> None:
    """MLR-11: lower bound, upper bound, conditional throughput and all attributes of each goal."""
    document = search(SimulatedMeasurer(limit_fps=640_000)).to_document()
    assert [goal["name"] for goal in document["goals"]] == ["NDR", "PDR"]
    for goal, attributes in zip(document["goals"], (NDR, PDR), strict=True):
        assert attributes.to_document().items() <= goal.items()
        assert goal["is_regular"] is True
        assert goal["lower_fps_per_direction"] < goal["upper_fps_per_direction"]
        assert goal["conditional_throughput_fps_per_direction"] <= goal["lower_fps_per_direction"]
    assert document["goal"]["search"] == "mlr"


@pytest.mark.parametrize(
    ("attributes", "code", "named"),
    [
        ({"exceed_ratio": 1.0}, "search.out-of-range", "exceed ratio 1"),
        ({"exceed_ratio": -0.1}, "search.out-of-range", "exceed ratio"),
        ({"loss_ratio": 1.0}, "search.out-of-range", "loss ratio"),
        ({"final_duration_s": 0.0}, "search.durations-contradict", "initial trials"),
        ({"duration_sum_s": 30.0}, "search.durations-contradict", "duration sum"),
        ({"width": 0.0}, "search.out-of-range", "width"),
        ({"width": 1.0}, "search.out-of-range", "width"),
        ({"initial_duration_s": 61.0}, "search.durations-contradict", "initial trials"),
        ({"exceed_ratio": float("nan")}, "base.wrong-type", "exceed_ratio"),
    ],
)
def test_goals_that_cannot_be_searched_are_refused(
    attributes: dict[str, float], code: str, named: str
) -> None:
    """MLR-05."""
    with raises(code, match=named):
        replace(NDR, **attributes)  # type: ignore[arg-type]


def test_a_search_needs_different_goals_and_room() -> None:
    for goals, code in (
        ((), "search.no-goal"),
        ((NDR, NDR), "search.same-goal-twice"),
        ((NDR, replace(NDR, name="other")), "search.same-goal-twice"),
    ):
        with raises(code):
            MlrGoals(goals=goals, max_fps=MAX_FPS)
    with raises("search.nothing-between-rates"):
        MlrGoals(goals=(NDR,), max_fps=MAX_FPS, min_fps=MAX_FPS)
    with raises("search.out-of-range", match="^min_fps: "):
        MlrGoals(goals=(NDR,), max_fps=MAX_FPS, min_fps=0)


def test_the_lowest_load_has_a_frame_in_the_shortest_trial_of_all_goals() -> None:
    """MLR-12: and is no less than a thousandth of the maximum, unless it is given."""
    goals = (replace(NDR, initial_duration_s=4), replace(PDR, initial_duration_s=0.5))
    for max_fps, min_fps, lowest_fps in ((100.0, None, 2.0), (1e6, None, 1000.0), (1e6, 0.5, 0.5)):
        assert MlrGoals(goals=goals, max_fps=max_fps, min_fps=min_fps).lowest_fps == lowest_fps


def test_what_the_rfc_only_recommends_is_a_deviation() -> None:
    """MLR-05, MLR-12."""
    goals = MlrGoals(goals=(NDR, replace(PDR, width=0.001, final_duration_s=30)), max_fps=MAX_FPS)
    assert [deviation.requirement for deviation in goals.deviations] == ["MLR-12", "MLR-05"]
    assert MlrGoals(goals=(NDR, PDR), max_fps=MAX_FPS).deviations == []
