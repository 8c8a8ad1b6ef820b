# SPDX-License-Identifier: Apache-2.0
"""Procedure: how long one should take, from what its goal says. Verbs say it before they begin, and a
campaign plans with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_duration
from evenhand.plan import AddressPlan
from evenhand.search import Goal, MlrGoals, ThroughputGoal, expected_search_s
from evenhand.search.bracket import LoadBracket
from evenhand.search.estimate import CLEARLY_ABOVE
from evenhand.trial import CEILING_WAITS, Load
from evenhand.trial.learning import DEFAULT_RATE_FPS, DEFAULT_WAIT_S

OPENING_S = 2.0
"""Time to start the engine, open its ports and find the DUT."""
A_LINE_RATE_FPS = 14_880_952.0
"""Line rate of 10 Gbps with frames of 64 octets; for goals that go up to a line rate that is not known
yet."""
CEILING_TRIAL_S = 1.0 + CEILING_WAITS.total_s
CEILING_S = 8 * CEILING_TRIAL_S
"""Time to find the tester's own ceiling by trials of a second, where a search has no maximum; it is kept
then."""
UNREPEATED = "if no trial must be repeated"
GUIDED_TRIALS = 5
"""Number of trials of a search that looks first where the loss points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTime:
    """How long something should take."""

    seconds: float
    most_s: float | None = None
    """The longest that it may take, where that depends on the DUT, and `seconds` is the shortest; None: it
    takes about so long."""
    parts: str
    """What takes most of it, for people."""
    assumes: str = UNREPEATED
    """What it depends on; empty: on nothing that this machine could do. On a busy host, repeated trials can
    take several times as long as all others."""

    @classmethod
    def of(
        cls,
        goal: Any,
        measuring: float | TimeSpan,
        parts: Iterable[str],
        waits_s: float,
        *,
        supposed: str = "",
        times: int = 1,
        learning_s: float = 0.0,
        own_loop_s: float = 0.0,
    ) -> ExpectedTime:
        """The time of a verb with this goal.

        Args:
            measuring: Time of all its trials, once, in seconds.
            parts: What takes most of that.
            waits_s: Time of each trial in addition to sending.
            supposed: See `Procedure.supposed`.
            times: Number of frame sizes, repetitions or kinds of traffic.
            learning_s: See `learning_s`.
            own_loop_s: To measure the tester's own delays first.
        """
        first_s = ceiling_s(goal)
        span = measuring if isinstance(measuring, TimeSpan) else TimeSpan.of(measuring)
        whole = span.times(times).then(first_s + own_loop_s + OPENING_S + learning_s)
        words = [*parts, *(["the tester's own ceiling, unless it is already known"] if first_s else [])]
        if times > 1:
            words.insert(0, f"{times} times")
        if own_loop_s:
            words.append("the tester's own delays first")
        if waits_s:
            words.append(f"{format_duration(waits_s)} of waiting in each trial")
        assumes = f"{supposed} and no trial must be repeated" if supposed else UNREPEATED
        return cls(
            seconds=whole.stated_s, most_s=whole.stated_most_s, parts="; ".join(words), assumes=assumes
        )

    @property
    def span(self) -> TimeSpan:
        """From the shortest time to the longest."""
        return TimeSpan(self.seconds, self.seconds if self.most_s is None else self.most_s)

    @property
    def line(self) -> str:
        """`Expected time: about 20 min if no trial must be repeated (10 overloads of 1 min ...).`"""
        comma = "," if self.assumes.startswith("by ") else ""
        assumes = f"{comma} {self.assumes}" if self.assumes else ""
        return f"Expected time: {self.span.words}{assumes} ({self.parts})."


def expected_of_trial(load: Load, waits_s: float, *, learning_s: float = 0.0) -> ExpectedTime:
    """The time of a single trial."""
    parts = [f"one trial of {format_duration(load.sending_s)}"]
    return ExpectedTime.of(None, load.sending_s + waits_s, parts, waits_s, learning_s=learning_s)


def learning_s(
    plan: AddressPlan, *, rate_fps: float = DEFAULT_RATE_FPS, wait_s: float = DEFAULT_WAIT_S
) -> float:
    """Time to have every host of the plan learnt, if all are reached in the first round."""
    return hosts_learning_s(plan.hosts.times(plan.networks), rate_fps=rate_fps, wait_s=wait_s)


def hosts_learning_s(
    host_counts: Iterable[int], *, rate_fps: float = DEFAULT_RATE_FPS, wait_s: float = DEFAULT_WAIT_S
) -> float:
    """The same for so many hosts of each side."""
    return max(host_counts) / rate_fps + wait_s


def ceiling_s(goal: object) -> float:
    """Time to find the tester's own ceiling, where the goal has no maximum."""
    if not isinstance(goal, Goal) or not math.isinf(goal.max_fps):
        return 0.0
    return CEILING_S


def halvings(max_fps: float, precision: float) -> int:
    """Number of halvings from the whole range to the precision."""
    most_fps = A_LINE_RATE_FPS if math.isinf(max_fps) else max_fps
    return LoadBracket(min_fps=most_fps / 1000, max_fps=most_fps, precision=precision).remaining_halvings()


@lru_cache(maxsize=4096)
def search_s(goal: Goal, waits_s: float) -> float:
    """All trials of a search, as on a device whose limit is `LIKELY_SHARE` of the maximum, or the known load.
    A trial lasts as long as it sends and waits."""
    if isinstance(goal, MlrGoals):
        # To both bounds of each goal: short trials on the way, and all of the duration sum at each of the
        # two.
        return sum(
            halvings(goal.max_fps, each.width) * (each.initial_duration_s + waits_s)
            + 2 * each.duration_sum_s / each.final_duration_s * (each.final_duration_s + waits_s)
            for each in goal.goals
        )
    max_fps = A_LINE_RATE_FPS if math.isinf(goal.max_fps) else goal.max_fps
    return expected_search_s(replace(goal, max_fps=max_fps), overhead_s=waits_s)


@lru_cache(maxsize=4096)
def shortest_search_s(goal: Goal, waits_s: float) -> float:
    """The same on a device that forwards the maximum, which the first trials show, where nothing is known of
    it."""
    if isinstance(goal, MlrGoals) or goal.known_fps is not None:
        return search_s(goal, waits_s)
    max_fps = A_LINE_RATE_FPS if math.isinf(goal.max_fps) else goal.max_fps
    found_s = expected_search_s(
        replace(goal, max_fps=max_fps), overhead_s=waits_s, limit_fps=CLEARLY_ABOVE * max_fps
    )
    return min(found_s, search_s(goal, waits_s))


@lru_cache(maxsize=4096)
def longest_search_s(goal: Goal, waits_s: float) -> float:
    """The same on a device that forwards hardly more than the minimum."""
    if isinstance(goal, MlrGoals) or goal.known_fps is not None:
        return search_s(goal, waits_s)
    limited = replace(goal, max_fps=A_LINE_RATE_FPS) if math.isinf(goal.max_fps) else goal
    found_s = expected_search_s(limited, overhead_s=waits_s, limit_fps=CLEARLY_ABOVE * limited.lowest_fps)
    return max(found_s, search_s(goal, waits_s))


def search_span(goal: Goal, waits_s: float) -> TimeSpan:
    """From the shortest to the longest time of a search."""
    return TimeSpan(shortest_search_s(goal, waits_s), longest_search_s(goal, waits_s))


def _trials(goal: ThroughputGoal) -> int:
    """Before the one that confirms."""
    return GUIDED_TRIALS if goal.is_guided else 1 + halvings(goal.max_fps, goal.precision)


def search_parts(goal: Goal) -> Iterable[str]:
    """What takes most of a search."""
    if isinstance(goal, MlrGoals):
        return [f"a search for {count_of(len(goal.goals), 'goal')} of RFC 9971"]
    short, final = format_duration(goal.duration_s), format_duration(goal.final_duration_s)
    return [f"about {_trials(goal)} trials of {short}, one of {final}; fewer if the maximum passes"]


def count_of(count: int, one: str, more: str = "") -> str:
    """`1 trial`, `3 trials`."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"
