# SPDX-License-Identifier: Apache-2.0
"""The time left of an MLRsearch moves with its trials, short ones too, and is of the right size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.search import MlrGoal, MlrGoals, TrialStarted, find_goals
from evenhand.trial import SimulatedMeasurer

MAX_FPS = 14_880_952.0
OVERHEAD_S = 2.0


def started(device: SimulatedMeasurer, *, final_s: float = 60.0) -> list[TrialStarted]:
    goals = [
        MlrGoal(name=name, loss_ratio=loss_ratio, final_duration_s=final_s, duration_sum_s=2 * final_s)
        for name, loss_ratio in (("NDR", 0.0), ("PDR", 0.005))
    ]
    told: list[TrialStarted] = []
    find_goals(
        device,
        MlrGoals(goals=tuple(goals), max_fps=MAX_FPS),
        overhead_s=OVERHEAD_S,
        on_progress=lambda event: told.append(event) if isinstance(event, TrialStarted) else None,
    )
    return told


def seconds_to_come(trials: list[TrialStarted]) -> list[float]:
    """At the beginning of each trial, as it turned out."""
    return [sum(trial.duration_s + OVERHEAD_S for trial in trials[index:]) for index in range(len(trials))]


@given(
    limit_fps=st.floats(min_value=50_000, max_value=0.98 * MAX_FPS),
    final_s=st.sampled_from([2.0, 30.0, 60.0]),
)
def test_the_time_left_falls_with_the_trials(limit_fps: float, final_s: float) -> None:
    """It stood still until the first bound was proven, which is after two thirds of the search."""
    trials = started(SimulatedMeasurer(limit_fps=limit_fps), final_s=final_s)
    left = [trial.remaining_s for trial in trials]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) >= 0.6 * len(left)
    # Before any bound can have been proven, too.
    short = [trial.remaining_s for trial in trials if trial.duration_s < final_s]
    assert short[-1] < short[0]
    to_come = seconds_to_come(trials)
    assert left[0] <= 2.5 * to_come[0]
    # Rather too long than too short: who waits is not told "4 s" for a minute.
    assert all(said >= 0.6 * seconds for said, seconds in zip(left, to_come, strict=True))


@pytest.mark.parametrize("limit_fps", [2 * MAX_FPS, 10.0])
def test_a_search_that_ends_at_its_maximum_or_minimum_knows_it_after_the_first_loads(
    limit_fps: float,
) -> None:
    trials = started(SimulatedMeasurer(limit_fps=limit_fps))
    assert trials[-2].remaining_s < 0.2 * trials[0].remaining_s


def test_invalid_trials_make_it_longer_and_loads_that_are_given_up_do_not() -> None:
    """A load that the tester never kept is not tried again, so it says nothing of those to come."""
    trials = started(SimulatedMeasurer(limit_fps=2e6, tester_ceiling_fps=1e6))
    assert any(trial.attempt > 2 for trial in trials)
    assert max(trial.remaining_s for trial in trials) == trials[0].remaining_s
