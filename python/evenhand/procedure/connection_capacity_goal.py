# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a search of the capacity of a connection table is asked for (RFC 9693, 4.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_count
from evenhand.plan import MAX_CONNECTIONS
from evenhand.procedure.connection_rate import LIKELY_SHARE_OPENED, ConnectionRateGoal, with_likely_maximum
from evenhand.procedure.connection_trials import DEFAULT_ALPHA, check_connections, longest_idle_s
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.results.goal import ProcedureGoal
from evenhand.search import LikelyDevice, SearchTrial, find_throughput
from evenhand.trial import Verdict

BETA = 0.1
"""The table is too small for twice the connections if their rate falls below this share (R9693-14)."""
GAMMA = 0.5
"""The same between two numbers of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGoal(ProcedureGoal):
    """Where to search. Rates are connections per second."""

    start: int = 10_000
    """Connections that the DUT surely holds (C0)."""
    most: int = MAX_CONNECTIONS
    """More are not tried."""
    precision: float = 0.01
    """Stop when the bracket is no wider than this share of its upper bound (E)."""
    max_fps: float = math.inf
    """Highest rate of new connections that is tried."""
    rate_precision: float = 0.1
    """Precision of each rate that is found on the way."""
    alpha: float = DEFAULT_ALPHA
    """See `ConnectionRateGoal`."""

    def check(self) -> None:
        check_connections(self.start, "pseudorandom")
        if not self.start <= self.most <= MAX_CONNECTIONS:
            raise RequestError(
                f"at most {self.most} connections: must be {self.start} to {format_count(MAX_CONNECTIONS)}",
                code="procedure.out-of-range",
                where="most",
            )
        for precision, where in ((self.precision, "precision"), (self.rate_precision, "rate_precision")):
            if not 0 < precision < 1:
                raise RequestError(
                    f"precision {precision}: must be between 0 and 1",
                    code="procedure.out-of-range",
                    where=where,
                    next_step="Use 1%.",
                )
        self.rate_goal(self.start, None)  # checks the rest

    def longest_idle_s(self, waits_s: float) -> float | None:
        """How long, as far as it is known before, one of the first number of connections has no frame, or one
        of the most, if so many are to be tried, even at the highest rate. None as long as that is the
        line rate."""
        first_s = self.rate_goal(self.start, None).longest_idle_s(waits_s)
        if first_s is None or self.most == MAX_CONNECTIONS:
            return first_s
        return max(first_s, longest_idle_s(self.most, self.max_fps, self.alpha, waits_s))

    def rate_goal(
        self, connections: int, least_fps: float | None, known_fps: float | None = None
    ) -> ConnectionRateGoal:
        """The goal for the rate of so many connections, which matters down to `least_fps` only.

        Args:
            known_fps: The rate of fewer connections.
        """
        return ConnectionRateGoal(
            connections=connections,
            max_fps=self.max_fps,
            min_fps=least_fps,
            known_fps=known_fps,
            precision=self.rate_precision,
            alpha=self.alpha,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "most": self.most,
            "precision": self.precision,
            "max_fps": self.max_fps,
            "rate_precision": self.rate_precision,
            "alpha": self.alpha,
            "beta": BETA,
            "gamma": GAMMA,
        }


LIKELY_FACTOR = 10
"""A table that holds so many times the first number is the example of how long a search takes."""

FALLING = 0.6
"""Share of its rate to which a DUT may fall with twice the connections: each number then takes a longer
search."""
ALIKE = 0.1
"""Share by which two numbers may differ that are taken to be the same."""


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
    counted: int = 0
    """How many it kept of too many."""
    is_start_full: bool = False
    """It kept as many of the first number at one rate as at another: it does not hold that many."""
    drops_oldest: bool = False
    """It opens all, and has forgotten some when they are validated."""
    trial_count: int = 0
    valid_count: int = 0
    _of_number: int = 0
    """Valid trials of the number that is tried now."""
    _kept_of_start: int | None = None

    def __post_init__(self) -> None:
        if not self.rate_fps:
            self.rate_fps = likely_rate_fps(self.goal)

    def begin(self, known_fps: float | None) -> None:
        """Another number is tried. `known_fps`: the rate of the last one that is held."""
        self._of_number = 0
        self.rate_fps = known_fps or self.rate_fps

    def note(self, trial: SearchTrial, connections: int) -> None:
        """Learn from a trial that opened so many connections."""
        self._count(trial)
        if trial.result.verdict is not Verdict.FAIL:
            return
        kept = _kept(trial)
        if kept is not None and kept < connections:
            self.counted = max(1, kept, self.counted)
        self.drops_oldest |= VALIDATION in trial.result.raw

    def note_rate(self, trial: SearchTrial) -> None:
        """Learn from a trial with so few connections that only their rate should have been too high."""
        self._count(trial)
        if not trial.result.is_valid:
            return
        self.rate_fps = max(trial.load_fps * (1 - trial.result.loss_ratio), trial.load_fps / 100)
        kept = None if trial.result.is_pass else _kept(trial)
        before, self._kept_of_start = self._kept_of_start, kept
        self.is_start_full = kept is not None and before is not None and abs(kept - before) <= ALIKE * before

    def first(self) -> TimeSpan:
        """Time of the first number, and of all after it, before anything is known: of a DUT that opens
        connections as fast as they are offered, and of one that opens them at the likely rate."""
        fastest = replace(self, rate_fps=_highest_fps(self.goal))
        # A table that holds all but one is searched for to its end; one that holds all is not.
        almost = max(self.goal.start, self.most - 1)
        slowest_s = max(
            self.first_s(self.goal.start), *(self.first_s(t, falls=True) for t in (almost, self.most))
        )
        quickest_s = min(fastest.first_s(table) for table in (self.goal.start, self.most))
        return TimeSpan(quickest_s, slowest_s)

    def first_s(self, table: int, *, falls: bool = False) -> float:
        """The same of a table that holds so many, at this rate; see `_rest_s`."""
        start = self.goal.start
        return sum(self._number_s(start, 0.0, table)) + self._rest_s(start, None, table, falls=falls)

    def left(self, number: int, held: int, not_held: int | None, share: float, own_s: float) -> TimeSpan:
        """Time left, from the present trial on.

        Args:
            number: It is tried now.
            held: The largest number that is held; 0: none yet.
            not_held: The smallest that is not.
            share: Which share of the rate is enough.
            own_s: What the search of this number takes itself to take, which does not know of tables; 0: it
                has ended.
        """
        if not self.trial_count:
            return self.first()
        least, most = held, self.most if not_held is None else not_held - 1
        if least <= self.counted <= most:
            least = self.counted
        near = (min(max(table, least), most) for table in (number - 1, number))
        found = []
        for table in {least, most, max(least, most - 1), (least + most) // 2, *near}:
            present_s = own_s
            if held and own_s:
                trials = self._number_s(number, share, table)
                present_s = sum(trials[self._of_number :]) or trials[-1]
            found.append(present_s + self._after_s(number, held, not_held, table))
            if not_held is None:
                found.append(present_s + self._after_s(number, held, not_held, table, falls=True))
        if self.is_start_full and not held:
            found.append(own_s)
        again = max(1.0, self.trial_count / self.valid_count if self.valid_count else 1.0 + self.trial_count)
        return TimeSpan(min(found), max(found)).times(again)

    def _count(self, trial: SearchTrial) -> None:
        self.trial_count += 1
        self.valid_count += trial.result.is_valid
        self._of_number += trial.result.is_valid

    def _after_s(
        self, number: int, held: int, not_held: int | None, table: int, *, falls: bool = False
    ) -> float:
        """Time of all numbers after this one, if the table holds so many; see `_rest_s`."""
        if number <= table:
            return self._rest_s(max(held, number), not_held, table, falls=falls)
        # The first number is taken to be held: else nothing follows.
        return self._rest_s(held, number, table) if held else self._rest_s(number, not_held, number)

    def _rest_s(self, held: int, not_held: int | None, table: int, *, falls: bool = False) -> float:
        """Time of all numbers after these. `falls`: to FALLING of the rate, with each number that is twice
        the one before."""
        seconds, rate_fps = 0.0, self.rate_fps
        while (step := next_number(self.goal, most=self.most, held=held, not_held=not_held)) is not None:
            number, share = step
            limit_fps = FALLING * rate_fps if falls and not_held is None else rate_fps
            seconds += sum(self._number_s(number, share, table, rate_fps, limit_fps))
            if number <= table:
                held, rate_fps = number, limit_fps
            else:
                not_held = number
        return seconds

    def _number_s(
        self, number: int, share: float, table: int, known_fps: float = 0.0, limit_fps: float = 0.0
    ) -> tuple[float, ...]:
        """Time of each trial of one number; rates of 0: the one that is known."""
        known_fps, limit_fps = known_fps or self.rate_fps, limit_fps or self.rate_fps
        return _trials_s(
            self.goal,
            self.waits_s,
            number,
            share,
            min(table, number),
            known_fps,
            limit_fps,
            are_late=self.drops_oldest,
        )


@lru_cache(maxsize=8192)
def _trials_s(
    whole: CapacityGoal,
    waits_s: float,
    number: int,
    share: float,
    table: int,
    known_fps: float,
    limit_fps: float,
    *,
    are_late: bool,
) -> tuple[float, ...]:
    """Time of each trial of one number, by a search on a likely device. Most are asked for again and again:
    before each trial, and for each point of a campaign.

    Args:
        are_late: Trials with too many connections are validated too.
    """
    goal = with_likely_maximum(whole.rate_goal(number, None))
    known_fps = min(known_fps, goal.max_fps)
    if share:
        goal = replace(goal, min_fps=share * known_fps, known_fps=known_fps)
    trial_s = goal.trial_s(waits_s)
    device = LikelyDevice(
        limit_fps=min(limit_fps, goal.max_fps),
        loss_ratio=0.0,
        overhead_s=waits_s,
        trial_s=lambda fps, is_pass: trial_s(fps, is_pass or are_late),
        least_loss_ratio=1 - table / number,
        full_length_s=0.0,
    )
    find_throughput(device, goal.search_goal())
    return tuple(device.seconds)


def _kept(trial: SearchTrial) -> int | None:
    """How many of the connections of a trial were there at its end; None: nobody counted them."""
    document: Mapping[str, Any] = trial.result.raw
    if VALIDATION in document:
        directions = document[VALIDATION].get("directions") or {}
        return next((each.get("received_frames") for each in directions.values()), None)
    forward = trial.result.directions.get("forward")
    return None if forward is None else forward.received_frames


def _highest_fps(goal: CapacityGoal) -> float:
    return with_likely_maximum(goal.rate_goal(goal.start, None)).max_fps


def likely_rate_fps(goal: CapacityGoal) -> float:
    """How fast a DUT is taken to open connections of which nothing is known."""
    return LIKELY_SHARE_OPENED * _highest_fps(goal)


def likely_connections(goal: CapacityGoal) -> int:
    """What a table holds, for an example of the time."""
    return min(goal.most, LIKELY_FACTOR * goal.start)


def likely_capacity_s(goal: CapacityGoal, waits_s: float) -> float:
    """The whole search, with a table of so many connections, opened at the likely rate."""
    table = LikelyTable(goal=goal, waits_s=waits_s, most=goal.most)
    return table.first_s(likely_connections(goal))


@lru_cache
def expected_capacity(goal: CapacityGoal, waits_s: float) -> TimeSpan:
    """The whole search. Campaigns ask for it after each repetition, for each point that is left."""
    return LikelyTable(goal=goal, waits_s=waits_s, most=goal.most).first()
