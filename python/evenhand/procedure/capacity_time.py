# SPDX-License-Identifier: Apache-2.0
"""Procedure: which numbers of connections a search of the capacity tries, and how long that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from evenhand.plan import MAX_CONNECTIONS
from evenhand.procedure.connection_capacity_goal import BETA, GAMMA, CapacityGoal
from evenhand.procedure.connection_rate_goal import LIKELY_SHARE_OPENED, with_likely_maximum
from evenhand.search import SearchTrial, expected_search_s
from evenhand.trial import Verdict

LIKELY_FACTOR = 10.0
"""A table of which nothing is known is taken to hold so many times the first number: between that and a
hundred times as many."""
_NONE_FPS = 1.0
"""What a full table forwards of new connections."""


def next_number(
    goal: CapacityGoal, *, most: int, held: int, not_held: int | None
) -> tuple[int, float] | None:
    """The number of connections that is tried next, and which share of the rate is enough; None: the search
    has ended."""
    if not_held is None:
        return None if held == most else (min(2 * held, most), BETA)
    if not_held - held <= max(1, goal.precision * not_held):
        return None
    return (held + not_held) // 2, GAMMA


@dataclass(slots=True, kw_only=True)
class LikelyTable:
    """What the trials until now let expect of the DUT; for estimates of time only."""

    goal: CapacityGoal
    waits_s: float
    most: int
    rate_fps: float = 0.0
    """How fast it opens connections."""
    counted: int | None = None
    """How many it kept of too many."""

    def __post_init__(self) -> None:
        if not self.rate_fps:
            self.rate_fps = likely_rate_fps(self.goal)

    def note(self, trial: SearchTrial, connections: int) -> None:
        """Learn from a trial that opened so many connections."""
        forward = trial.result.directions.get("forward")
        if trial.result.verdict is not Verdict.FAIL or forward is None:
            return
        if forward.received_frames < connections:
            self.counted = max(1, forward.received_frames, self.counted or 0)

    def note_rate(self, trial: SearchTrial) -> None:
        """Learn from a trial with so few connections that only their rate can have been too high."""
        if trial.result.is_valid:
            self.rate_fps = max(trial.load_fps * (1 - trial.result.loss_ratio), trial.load_fps / 100)

    def connections(self, held: int, not_held: int | None) -> int:
        """What the table holds."""
        if not_held is None:
            return max(likely_connections(self.goal, self.most), held * 3 // 2)
        if self.counted is not None and held <= self.counted < not_held:
            return self.counted
        return (held + not_held) // 2

    def first_s(self) -> float:
        """Time of the first number."""
        return self._number_s(self.goal.start, 0.0, is_held=True)

    def rest_s(self, held: int, not_held: int | None) -> float:
        """Time of all numbers after these."""
        table, seconds = self.connections(held, not_held), 0.0
        while (step := next_number(self.goal, most=self.most, held=held, not_held=not_held)) is not None:
            number, share = step
            is_held = number <= table
            seconds += self._number_s(number, share, is_held=is_held)
            held, not_held = (number, not_held) if is_held else (held, number)
        return seconds

    def after_s(self, number: int, held: int, not_held: int | None) -> float:
        """Time of all numbers after the one that is tried now."""
        if number <= self.connections(held, not_held):
            return self.rest_s(max(held, number), not_held)
        return self.rest_s(held, number) if held else 0.0

    def _number_s(self, number: int, share: float, *, is_held: bool) -> float:
        goal = with_likely_maximum(self.goal.rate_goal(number, None))
        rate_fps = min(self.rate_fps, goal.max_fps)
        if share:
            goal = replace(goal, min_fps=share * rate_fps, known_fps=rate_fps)
        return expected_search_s(
            goal.search_goal(),
            overhead_s=self.waits_s,
            limit_fps=rate_fps if is_held else _NONE_FPS,
            trial_s=goal.trial_s(self.waits_s),
        )


def _highest_fps(goal: CapacityGoal) -> float:
    return with_likely_maximum(goal.rate_goal(goal.start, None)).max_fps


def likely_rate_fps(goal: CapacityGoal) -> float:
    """How fast a DUT is taken to open connections of which nothing is known."""
    return LIKELY_SHARE_OPENED * _highest_fps(goal)


def likely_connections(goal: CapacityGoal, most: int = MAX_CONNECTIONS) -> int:
    """What a table is taken to hold of which nothing is known: as many times the first number as that is
    below what it may be."""
    return min(most, goal.most, round(goal.start * min(LIKELY_FACTOR, math.sqrt(goal.most / goal.start))))


def expected_capacity_s(goal: CapacityGoal, waits_s: float) -> float:
    """The whole search."""
    table = LikelyTable(goal=goal, waits_s=waits_s, most=goal.most)
    return table.first_s() + table.rest_s(goal.start, None)
