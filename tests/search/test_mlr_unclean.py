# SPDX-License-Identifier: Apache-2.0
"""MLRsearch beside a load with too little clean time: what is measured in its stead, and what that makes of
the width of a result."""

from __future__ import annotations

from dataclasses import replace

from evenhand.search import MlrGoal, MlrGoals, Outcome, find_goals, mlr
from evenhand.search.bracket import WIDEST_UNCLEAN
from evenhand.trial import SimulatedMeasurer
from tests.search.test_attempts import Busy

MAX_FPS = 1_000_000.0
NDR = MlrGoal(name="NDR")
STEP = NDR.width / 2
"""By how much the first load in the stead of another is lower."""


def test_no_load_below_the_lowest_is_measured_in_the_stead_of_another() -> None:
    """MLR-12: from the lowest load on, nothing is clean until a load that fails."""
    lowest_fps = 100_000.0
    busy = Busy(
        limit_fps=0, again_from_fps=1.3 * lowest_fps, inner=SimulatedMeasurer(limit_fps=lowest_fps / 2)
    )
    result = find_goals(busy, MlrGoals(goals=(NDR,), max_fps=MAX_FPS, min_fps=lowest_fps))
    assert result.outcome is Outcome.TESTER_CEILING
    assert busy.loads.count(lowest_fps) > 2
    assert min(busy.loads) == lowest_fps


def test_a_search_that_ends_early_has_found_nothing_to_a_width_for_unclean_loads() -> None:
    """MLR-10: bounds that are wider apart than the goal's width are a result only beside such loads."""
    goal = replace(NDR, initial_duration_s=60, duration_sum_s=60)
    outcomes = []
    for trials in range(1, 40):
        (found,) = find_goals(
            SimulatedMeasurer(limit_fps=640_000), MlrGoals(goals=(goal,), max_fps=MAX_FPS, max_trials=trials)
        ).goals
        if found.lower_fps is None or found.upper_fps is None:
            continue
        width = 1 - found.lower_fps / found.upper_fps
        assert found.is_regular == (width <= goal.width)
        outcomes.append((width <= WIDEST_UNCLEAN, found.outcome))
    assert (True, Outcome.STOPPED) in outcomes
    assert outcomes[-1] == (True, Outcome.FOUND)


def test_each_load_that_was_unclean_on_the_way_down_is_remembered() -> None:
    """None of them is tried again: each costs two trials that say nothing."""
    asked_fps = 600_000.0
    on_the_way = [asked_fps, asked_fps * (1 - STEP)]
    clean_fps = asked_fps * (1 - 3 * STEP)
    busy = Busy(limit_fps=clean_fps, again_from_fps=700_000, inner=SimulatedMeasurer(limit_fps=650_000))
    goals = MlrGoals(goals=(NDR,), max_fps=MAX_FPS)
    search = mlr._MlrSearch(measurer=busy, goals=goals, on_progress=None, overhead_s=0)
    for load_fps in (700_000, asked_fps):
        search.measure(60, load_fps)
    assert busy.loads == [700_000, *(load for load in on_the_way for _ in range(2)), clean_fps]
    busy.loads.clear()
    for load_fps in on_the_way:
        search.measure(60, load_fps)
    assert busy.loads == [clean_fps, clean_fps]
