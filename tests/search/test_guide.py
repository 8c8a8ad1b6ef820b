# SPDX-License-Identifier: Apache-2.0
"""A search that knows where to look proves the same as one that does not, with fewer trials."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.search import Outcome, Purpose, ThroughputGoal, ThroughputResult, Tst009Goal, run_search
from evenhand.search.bracket import LoadBracket
from evenhand.search.guide import Guide
from evenhand.trial import SimulatedMeasurer, Verdict
from tests.errors import raises

MAX_FPS = 1_000_000.0
GUIDED = ThroughputGoal(max_fps=MAX_FPS, precision=0.001, duration_s=1, final_duration_s=60, is_guided=True)
rates = st.floats(min_value=1, max_value=2 * MAX_FPS)


def check_is_proven(device: SimulatedMeasurer, result: ThroughputResult) -> None:
    """R2544-20/21: by the device's own records."""
    assert [trial.result for trial in result.trials] == device.trials
    assert all(result.goal.lowest_fps <= trial.intended_fps <= MAX_FPS for trial in device.trials)
    if result.throughput_fps is None:
        assert result.outcome not in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM)
        return
    if result.outcome is Outcome.TESTER_CEILING:
        at_result = [
            t
            for t in device.trials
            if t.intended_fps == result.throughput_fps and t.verdict is not Verdict.INVALID
        ]
        assert at_result[-1].verdict is Verdict.PASS
        assert result.is_at_least
        return
    full_length = [
        t for t in device.trials if t.intended_fps == result.throughput_fps and t.intended_duration_s == 60
    ]
    assert full_length[-1].verdict is Verdict.PASS
    if result.outcome is Outcome.FOUND:
        assert result.upper_fps is not None
        assert result.upper_fps - result.throughput_fps <= result.goal.precision * result.upper_fps
        assert any(t.intended_fps == result.upper_fps and t.verdict is Verdict.FAIL for t in device.trials)
    else:
        assert result.throughput_fps == MAX_FPS


@given(limit_fps=rates, known_fps=st.none() | rates, is_guided=st.booleans())
def test_whatever_was_known_the_truth_is_found(
    limit_fps: float, known_fps: float | None, is_guided: bool
) -> None:
    """R2544-21: a wrong guess costs trials and no truth; both bounds are made anew."""
    device = SimulatedMeasurer(limit_fps=limit_fps)
    result = run_search(device, replace(GUIDED, known_fps=known_fps, is_guided=is_guided))
    check_is_proven(device, result)
    if limit_fps >= MAX_FPS:
        assert result.outcome is Outcome.AT_OR_ABOVE_MAXIMUM
    elif limit_fps < result.goal.lowest_fps:
        assert result.outcome is Outcome.BELOW_MINIMUM
    else:
        assert result.throughput_fps is not None
        assert limit_fps * (1 - 0.001) - 1 <= result.throughput_fps <= limit_fps
    assert len(device.trials) <= 40


@given(
    limit_fps=rates,
    known_fps=st.none() | rates,
    knee=st.sampled_from([None, 0.5, 0.9]),
    noise=st.sampled_from([0.0, 0.05, 0.5]),
    floor=st.sampled_from([0.0, 0.0, 0.001]),
    inverted=st.sampled_from([None, (300_000.0, 350_000.0)]),
    buffer_frames=st.sampled_from([0.0, 2e3, 2e5]),
    invalid=st.sampled_from([0.0, 0.1, 0.5]),
    is_load_offered=st.booleans(),
    ceiling_fps=st.sampled_from([float("inf"), 700_000.0]),
    verifications=st.sampled_from([0, 1, 2]),
    is_guided=st.booleans(),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_on_no_device_is_a_load_claimed_that_was_not_proven(
    limit_fps: float,
    known_fps: float | None,
    knee: float | None,
    noise: float,
    floor: float,
    inverted: tuple[float, float] | None,
    buffer_frames: float,
    invalid: float,
    is_load_offered: bool,
    ceiling_fps: float,
    verifications: int,
    is_guided: bool,
    seed: int,
) -> None:
    """MLR-12, MLR-13: soft knee, noise, loss inversion, never lossless, faster than the line, INVALID above a
    load and below it; for binary and tst009, guided and not. No load at or below the result failed as often
    as the goal lets a loss count."""
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
    goal = replace(
        GUIDED, known_fps=known_fps, is_guided=is_guided, loss_verifications=verifications, precision=0.005
    )
    result = run_search(device, goal)
    check_is_proven(device, result)
    assert len(device.trials) <= goal.max_trials
    if result.throughput_fps is None or verifications:
        return
    refuting = [trial.intended_fps for trial in device.trials if trial.verdict is Verdict.FAIL]
    assert all(load > result.throughput_fps for load in refuting)


def test_a_repetition_takes_two_trials_and_proves_both_bounds() -> None:
    """Issue: it starts from what is known; a full-length trial there, and a short one that fails just
    above."""
    first = run_search(SimulatedMeasurer(limit_fps=634_567), GUIDED)
    device = SimulatedMeasurer(limit_fps=634_567)
    again = run_search(device, replace(GUIDED, known_fps=first.throughput_fps))
    assert again.throughput_fps == first.throughput_fps
    assert [(t.purpose, t.is_full_length, str(t.result.verdict)) for t in again.trials] == [
        (Purpose.KNOWN, True, "PASS"),
        (Purpose.SEARCH, False, "FAIL"),
    ]


def test_the_forwarding_rate_at_the_maximum_shows_where_to_look() -> None:
    result = run_search(SimulatedMeasurer(limit_fps=634_567), GUIDED)
    assert [t.result.intended_fps for t in result.trials] == [1e6, 634_820, 634_249]
    assert result.upper_fps == 634_820
    # Two losses agree on the limit: the load below it is tried in full length at once.
    assert [t.is_full_length for t in result.trials] == [False, False, True]


def test_a_full_length_trial_that_the_tester_does_not_keep_is_followed_by_a_short_one() -> None:
    """A guess in full length proves nothing about the tester: no load is taken for its limit by it."""
    device = SimulatedMeasurer(limit_fps=634_567, invalid_trials={3})
    result = run_search(device, GUIDED)
    at_guess = [t for t in result.trials if t.result.intended_fps == 634_249]
    assert [t.is_full_length for t in at_guess] == [True, False, True]
    assert (result.outcome, result.throughput_fps) == (Outcome.FOUND, 634_249)


@pytest.mark.parametrize("buffer_frames", [2048, 20_000, 100_000])
def test_the_delays_of_a_filling_queue_show_where_to_look(buffer_frames: int) -> None:
    """R2544-20: what a queue takes in a minute is added to what the device forwards in the long run."""
    device = SimulatedMeasurer(limit_fps=634_567, buffer_frames=buffer_frames)
    result = run_search(device, GUIDED)
    limit_fps = 634_567 + buffer_frames / 60
    assert result.throughput_fps is not None
    assert result.upper_fps is not None
    assert limit_fps * 0.999 <= result.throughput_fps <= limit_fps < result.upper_fps
    check_is_proven(device, result)
    assert len(result.trials) <= 4
    assert [t.is_full_length for t in result.trials[-2:]] == [True, True]


@pytest.mark.parametrize("knee_fps", [500_000.0, 600_000.0, 645_000.0])
def test_where_the_loss_begins_softly_two_losses_point_at_its_begin(knee_fps: float) -> None:
    device = SimulatedMeasurer(limit_fps=650_000, knee_fps=knee_fps)
    result = run_search(device, GUIDED)
    assert result.throughput_fps is not None
    assert knee_fps * 0.998 <= result.throughput_fps <= knee_fps * 1.001
    assert len(device.trials) <= 8
    assert len(device.trials) < len(
        run_search(
            SimulatedMeasurer(limit_fps=650_000, knee_fps=knee_fps), replace(GUIDED, is_guided=False)
        ).trials
    )


def test_short_trials_that_a_buffer_deceives_end_after_the_first() -> None:
    """R2544-20: just above a load that is proven, a trial is longer than a short one; if it passes, a
    full-length one follows."""
    goal = replace(GUIDED, precision=0.001)
    first = run_search(SimulatedMeasurer(limit_fps=634_567, buffer_frames=2048), goal)
    again = run_search(
        SimulatedMeasurer(limit_fps=634_567, buffer_frames=2048),
        replace(goal, known_fps=first.throughput_fps),
    )
    assert again.outcome is Outcome.FOUND
    assert [t.result.intended_duration_s for t in again.trials] == [60, pytest.approx(60**0.5)]
    assert [str(t.result.verdict) for t in again.trials] == ["PASS", "FAIL"]
    deeper = SimulatedMeasurer(limit_fps=634_567, buffer_frames=20_000)
    assert first.throughput_fps is not None
    found = run_search(deeper, replace(goal, known_fps=first.throughput_fps))
    assert [t.result.intended_duration_s for t in found.trials[:3]] == [60, pytest.approx(60**0.5), 60]
    check_is_proven(deeper, found)


def test_a_known_rate_at_or_above_the_maximum_begins_with_the_maximum() -> None:
    for known_fps in (MAX_FPS, 2 * MAX_FPS):
        result = run_search(SimulatedMeasurer(limit_fps=640_000), replace(GUIDED, known_fps=known_fps))
        assert result.trials[0].purpose is Purpose.MAXIMUM
    with raises("search.out-of-range", match="^known_fps: "):
        replace(GUIDED, known_fps=0)


def test_tst009_verifies_a_loss_and_is_otherwise_the_binary_search() -> None:
    """MLR-06: ETSI TST009 as a goal of its own: one lossy trial of two is tolerated."""
    goal = Tst009Goal(max_fps=MAX_FPS)
    assert goal.loss_verifications == 1
    assert goal.to_document()["search"] == "tst009"
    assert ThroughputGoal(max_fps=MAX_FPS).to_document()["search"] == "binary"
    found: dict[str, list[float]] = {"tst009": [], "binary": []}
    for seed, of in product(range(20), (goal, ThroughputGoal(max_fps=MAX_FPS))):
        result = run_search(SimulatedMeasurer(limit_fps=640_000, noise_probability=0.1, seed=seed), of)
        found[of.search].append(result.throughput_fps or 0)
    assert max(found["tst009"] + found["binary"]) <= 640_000
    kept = {
        name: sum(rate_fps == max(rates_fps) for rate_fps in rates_fps) for name, rates_fps in found.items()
    }
    assert kept["tst009"] > kept["binary"]
    assert sum(found["tst009"]) > sum(found["binary"])
    with raises("search.out-of-range", match="^loss_verifications: "):
        Tst009Goal(max_fps=MAX_FPS, loss_verifications=0)
    with raises("search.out-of-range", match="^precision: "):
        Tst009Goal(max_fps=MAX_FPS, precision=1)


def test_where_the_limit_is_all_but_reached_no_load_is_tried_above_it() -> None:
    """A thousandth of 1 Mfps was lost: 40 % of a bracket above what was forwarded lies beyond the load that
    failed."""
    guide = Guide.of_limit(999_000, failed_fps=1e6, precision=0.005)
    assert guide.above_fps is None
    bracket = LoadBracket(min_fps=1000, max_fps=1e6, precision=0.005)
    bracket.note_fail(1e6)
    load_fps = guide.next_load(bracket)
    assert load_fps == pytest.approx(995_000, rel=0.002)
    farther = Guide.of_limit(900_000, failed_fps=1e6, precision=0.005)
    assert farther.above_fps == pytest.approx(901_800)
