# SPDX-License-Identifier: Apache-2.0
"""What was tried again until it passed is said with the result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from evenhand.search import (
    MlrGoal,
    MlrGoals,
    Outcome,
    ThroughputGoal,
    Tst009Goal,
    find_goals,
    find_throughput,
    run_search,
)
from evenhand.search.bracket import WIDEST_UNCLEAN
from evenhand.search.search_trial import InvalidAttempts, uncharged_attempts
from evenhand.trial import SimulatedMeasurer, TrialResult, Verdict
from evenhand.trial.clean_time import LAPSES, CleanTime
from evenhand.trial.simulated import make_direction_document, make_trial_document

LIMIT_FPS = 600_000.0


@dataclass
class Explained:
    """Loses a frame in the first trials at each load that it can forward, which the tester might explain:
    INVALID, the load was offered."""

    lossy_attempts: int
    inner: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=LIMIT_FPS))
    seen: dict[tuple[float, float], int] = field(default_factory=dict)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        key = (duration_s, rate_fps)
        self.seen[key] = self.seen.get(key, 0) + 1
        if rate_fps > LIMIT_FPS or self.seen[key] > self.lossy_attempts:
            return self.inner.measure(duration_s, rate_fps)
        frames = round(rate_fps * duration_s)
        direction = make_direction_document(
            intended=frames, offered=frames, received=frames - 1, duration_s=duration_s, rate_fps=rate_fps
        )
        return TrialResult.from_contract(
            make_trial_document(
                trial=1,
                verdict=Verdict.INVALID,
                reasons=[{"code": "receiver_gap", "text": "simulated"}],
                frame_size=64,
                rate_fps=rate_fps,
                duration_s=duration_s,
                loss_ratio_limit=0,
                directions={"forward": direction},
            )
        )


GOALS = [
    ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=60),
    Tst009Goal(max_fps=1e6, duration_s=1, final_duration_s=60),
    MlrGoals(goals=(MlrGoal(name="NDR"),), max_fps=1e6),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.search)
def test_attempts_with_loss_that_did_not_count_are_in_the_result(goal: ThroughputGoal | MlrGoals) -> None:
    """R2544-21: a device that passes only at the third attempt is not told apart by its throughput."""
    document = run_search(Explained(lossy_attempts=2), goal).to_document()
    assert document["throughput_fps_per_direction"] is not None
    told = document["uncharged"]
    assert told["load_fps"] == document["throughput_fps_per_direction"]
    assert (told["attempt"], told["attempts_allowed"]) == (3, 9)
    assert told["uncharged_at_load"] >= 2


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.search)
def test_nothing_is_said_where_nothing_was_tried_again(goal: ThroughputGoal | MlrGoals) -> None:
    assert run_search(Explained(lossy_attempts=0), goal).to_document()["uncharged"] is None


def test_attempts_near_the_load_count_and_those_farther_away_do_not() -> None:
    result = find_throughput(
        Explained(lossy_attempts=1), ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=60)
    )
    narrow, usual, wide = (
        uncharged_attempts(result.trials, result.throughput_fps, precision=precision, patience=8)
        for precision in (0, 0.005, 0.5)
    )
    assert narrow is not None
    assert usual is not None
    assert wide is not None
    assert narrow.near == 0
    assert narrow.at_load == usual.at_load == wide.at_load
    assert narrow.count <= usual.count < wide.count
    assert "passed at attempt 2 of at most 9; " in usual.text
    assert uncharged_attempts(result.trials, None, precision=0.5, patience=8) is None


def test_the_attempt_that_is_told_is_that_of_the_trial_that_confirmed_the_load() -> None:
    """R2544-21: a short trial that passed at once before it is not what the result rests on."""
    result = find_throughput(
        Explained(lossy_attempts=2), ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=60)
    )
    trials = [trial if trial.is_full_length else replace(trial, attempt=1) for trial in result.trials]
    assert any(trial.load_fps == result.throughput_fps and not trial.is_full_length for trial in trials)
    told = uncharged_attempts(trials, result.throughput_fps, precision=0.005, patience=8)
    assert told is not None
    assert (told.attempt, told.attempts_allowed) == (3, 9)


def test_an_invalid_attempt_without_loss_is_not_counted() -> None:
    device = SimulatedMeasurer(limit_fps=2e6, invalid_trials=[1, 2])
    result = find_throughput(device, ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=60))
    assert result.throughput_fps == 1e6
    assert result.count(Verdict.INVALID) == 2
    assert result.uncharged is None


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_load_is_given_up_after_as_many_repetitions_as_were_allowed(retries: int) -> None:
    """R2544-39: the first trial and so many repetitions of it; the most that was offered in any of them is
    kept."""
    attempts = InvalidAttempts(invalid_retries=retries, patience=99)
    for number in range(retries + 1):
        assert not attempts.are_exhausted
        ceiling_fps = 500_000 - 1_000 * number
        slow = SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=ceiling_fps)
        attempts.note(slow.measure(1, 1e6))
    assert attempts.are_exhausted
    assert attempts.offered_fps == pytest.approx(500_000)


def test_a_load_that_only_moments_spoil_is_given_up_when_patience_ends() -> None:
    attempts = InvalidAttempts(invalid_retries=0, patience=2)
    for _ in range(3):
        assert not attempts.are_exhausted
        spoilt = SimulatedMeasurer(limit_fps=1e6, invalid_trials={1})
        attempts.note(spoilt.measure(1, 5e5))
    assert attempts.are_exhausted


@dataclass
class Busy:
    """A host that leaves too little clean time at loads above a limit of the tester, and sends everything
    `longer` times as long as wanted below it."""

    limit_fps: float
    longer: float = 1.0
    again_from_fps: float = float("inf")
    """From this load on it leaves enough: a device that is overloaded loses all the time."""
    inner: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=LIMIT_FPS))
    loads: list[float] = field(default_factory=list)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        self.loads.append(rate_fps)
        result = self.inner.measure(duration_s, rate_fps)
        is_enough = rate_fps <= self.limit_fps or rate_fps >= self.again_from_fps
        clean = CleanTime(
            wanted_s=duration_s,
            sent_s=duration_s * (self.longer if is_enough else 2.0),
            clean_s=duration_s * (1.0 if is_enough else 0.3),
            is_enough=is_enough,
            pieces=3,
            lapses=dict.fromkeys(LAPSES, 2),
            left_out=(),
        )
        verdict = result.verdict if is_enough else Verdict.INVALID
        return replace(result, clean=clean, verdict=verdict)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.search)
def test_a_load_with_too_little_clean_time_costs_one_repetition(goal: ThroughputGoal | MlrGoals) -> None:
    """The trial itself waited for clean time already: it is not made eight times more."""
    busy = Busy(limit_fps=0.8 * LIMIT_FPS)
    result = run_search(busy, goal)
    tried = Counter(load for load in busy.loads if load > busy.limit_fps)
    assert tried
    assert max(tried.values()) == 2
    throughput_fps = result.to_document()["throughput_fps_per_direction"]
    assert throughput_fps == pytest.approx(busy.limit_fps, rel=0.25)
    assert throughput_fps <= busy.limit_fps


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.search)
def test_time_left_counts_that_trials_are_sent_for_longer(goal: ThroughputGoal | MlrGoals) -> None:
    left_s: dict[float, list[float]] = {}
    for longer in (1.0, 1.5):
        times = left_s.setdefault(longer, [])
        run_search(
            Busy(limit_fps=1e9, longer=longer),
            goal,
            on_progress=lambda event, times=times: times.append(event.remaining_s),
        )
    assert len(left_s[1.5]) == len(left_s[1.0])
    # Before the first trial nobody knows it.
    assert left_s[1.5][0] == left_s[1.0][0]
    assert all(slow >= quick for slow, quick in zip(left_s[1.5], left_s[1.0], strict=True))
    assert max(left_s[1.5][1:]) > 1.2 * max(left_s[1.0][1:])


@pytest.mark.parametrize("is_guided", [False, True])
@pytest.mark.parametrize("short_s", [1.0, 60.0])
@pytest.mark.parametrize("below", [0.001, 0.004, 0.01, 0.015, 0.05, 0.5])
def test_where_no_time_is_clean_beside_the_limit_a_lower_load_is_confirmed(
    below: float, short_s: float, is_guided: bool
) -> None:
    """Close to its limit a device does not catch up from one lapse to the next: these loads stay INVALID."""
    busy = Busy(limit_fps=(1 - below) * LIMIT_FPS, again_from_fps=1.004 * LIMIT_FPS)
    goal = ThroughputGoal(
        max_fps=2 * LIMIT_FPS, precision=0.002, duration_s=short_s, final_duration_s=60.0, is_guided=is_guided
    )
    result = find_throughput(busy, goal)
    assert max(Counter(busy.loads).values()) <= 2
    if below == 0.5:
        # Five loads in a row were given up: the host is too busy for this device.
        assert (result.outcome, result.throughput_fps) == (Outcome.TESTER_CEILING, None)
        return
    assert result.throughput_fps is not None
    assert result.throughput_fps <= busy.limit_fps
    assert result.final_trial is not None
    assert result.final_trial.intended_duration_s == 60.0
    assert result.upper_fps is not None
    apart = 1 - result.throughput_fps / result.upper_fps
    assert apart <= 2 * below + 0.012  # a step is as long as all steps before it
    assert result.outcome is (Outcome.FOUND if apart <= WIDEST_UNCLEAN else Outcome.TESTER_CEILING)
    assert result.found_to == (pytest.approx(apart) if 0.002 < apart <= WIDEST_UNCLEAN else None)


@pytest.mark.parametrize("below", [0.0005, 0.002, 0.006, 0.3])
def test_mlr_measures_a_lower_load_where_no_time_is_clean_beside_the_limit(below: float) -> None:
    """MLR-10: a goal's bounds are then further apart than its width, and nothing is charged to the tester."""
    busy = Busy(limit_fps=(1 - below) * LIMIT_FPS, again_from_fps=1.001 * LIMIT_FPS)
    goal = MlrGoal(name="NDR")
    result = find_goals(busy, MlrGoals(goals=(goal,), max_fps=1e6))
    found = result.strictest
    assert found.lower_fps is not None
    assert found.lower_fps <= busy.limit_fps
    if below == 0.3:
        assert (found.outcome, found.found_to) == (Outcome.TESTER_CEILING, None)
        return
    assert found.upper_fps is not None
    assert found.upper_fps >= busy.again_from_fps
    apart = 1 - found.lower_fps / found.upper_fps
    assert (found.outcome, result.above_ceiling_fps) == (Outcome.FOUND, None)
    assert found.found_to == (pytest.approx(apart) if apart > goal.width else None)
    assert apart <= WIDEST_UNCLEAN


def test_mlr_steps_down_from_an_unclean_load_in_steps_that_double_and_asks_it_no_more() -> None:
    """MLR-10: each step by half the narrowest goal's width more; the load that is measured in its stead
    answers for it from then on."""
    busy = Busy(limit_fps=0.994 * LIMIT_FPS, again_from_fps=1.001 * LIMIT_FPS)
    narrow, wide = MlrGoal(name="NDR"), MlrGoal(name="PDR", loss_ratio=0.005, width=0.05)
    find_goals(busy, MlrGoals(goals=(wide, narrow), max_fps=1e6))
    loads = list(dict.fromkeys(busy.loads))
    is_unclean = [busy.limit_fps < load < busy.again_from_fps for load in loads]
    first = is_unclean.index(True)
    last = first + is_unclean[first:].index(False)
    assert last - first >= 2
    expected = [loads[first] * (1 - narrow.width / 2 * (2**step - 1)) for step in range(last - first + 1)]
    assert loads[first : last + 1] == pytest.approx(expected)
    assert {busy.loads.count(load) for load in loads[first:last]} == {2}


def test_mlr_takes_no_load_a_little_lower_where_none_above_was_measured() -> None:
    """There the tester's own limit may be far below: the next load is lower by a fifth or more."""
    busy = Busy(limit_fps=0.3 * LIMIT_FPS)
    find_goals(busy, MlrGoals(goals=(MlrGoal(name="NDR"),), max_fps=1e6))
    first, second = list(dict.fromkeys(busy.loads))[:2]
    assert first > busy.limit_fps
    assert second <= 0.8 * first
