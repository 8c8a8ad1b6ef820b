# SPDX-License-Identifier: Apache-2.0
"""Procedure: how long one should take, from what its goal says. Verbs say it before they begin, and a
campaign plans with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evenhand.base.units import format_duration
from evenhand.plan import AddressPlan
from evenhand.procedure.back_to_back_model import RESIDUAL_S, BackToBackGoal
from evenhand.procedure.burst import BurstGoal
from evenhand.procedure.ceiling import CEILING_WAITS, EXPECTED_LOADS, CeilingGoal
from evenhand.procedure.delay import DelayGoal
from evenhand.procedure.loss import LossGoal
from evenhand.procedure.recovery import RecoveryGoal
from evenhand.search import Goal, MlrGoals, ThroughputGoal
from evenhand.search.bracket import LoadBracket
from evenhand.trial import Load
from evenhand.trial.learning import DEFAULT_RATE_FPS, DEFAULT_WAIT_S

OPENING_S = 2.0
"""To start the engine, open its ports and find the DUT."""
A_LINE_RATE_FPS = 14_880_952.0
"""Of 10 Gbps with frames of 64 octets; for goals that go up to a line rate that is not known yet."""
CEILING_TRIALS, CEILING_TRIAL_S = 10, 1.0
"""To find the tester's own ceiling, where a search has no maximum; it is kept then."""
GUIDED_TRIALS = 5
"""Of a search that looks first where the loss points at."""

AnyGoal = Goal | LossGoal | DelayGoal | RecoveryGoal | BurstGoal | BackToBackGoal | Load | CeilingGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTime:
    """How long something should take, if no trial is INVALID."""

    seconds: float
    parts: str
    """What takes most of it, for people."""

    @classmethod
    def of(
        cls,
        goal: AnyGoal,
        waits_s: float,
        *,
        times: int = 1,
        learning_s: float = 0.0,
        is_own_loop_first: bool = False,
    ) -> ExpectedTime:
        """Of a verb with this goal.

        Args:
            waits_s: Of each trial, besides sending.
            times: So many frame sizes, repetitions or kinds of traffic.
            learning_s: See `learning_s`.
            is_own_loop_first: The tester's own delays are measured first, by a trial as long as the others.
        """
        loop_s = 0.0
        if is_own_loop_first and isinstance(goal, DelayGoal):
            loop_s = goal.length_s + waits_s + OPENING_S
        seconds = (
            ceiling_s(goal, waits_s) + loop_s + OPENING_S + learning_s + times * measuring_s(goal, waits_s)
        )
        parts = [
            *_parts(goal),
            *(["the tester's own ceiling, unless it is known"] if ceiling_s(goal, waits_s) else []),
        ]
        if times > 1:
            parts.insert(0, f"{times} times")
        if loop_s:
            parts.append("the tester's own delays first")
        if waits_s:
            parts.append(f"{format_duration(waits_s)} of waiting in each trial")
        return cls(seconds=seconds, parts="; ".join(parts))

    @property
    def line(self) -> str:
        """`Expected time: about 20 min (10 overloads of 1 min ...).`"""
        step_s = next(
            step_s
            for least_s, step_s in ((7200, 300), (600, 60), (60, 10), (0, 1))
            if self.seconds >= least_s
        )
        return (
            f"Expected time: about {format_duration(max(1, step_s * round(self.seconds / step_s)))}"
            f" ({self.parts})."
        )


def learning_s(
    plan: AddressPlan, *, rate_fps: float = DEFAULT_RATE_FPS, wait_s: float = DEFAULT_WAIT_S
) -> float:
    """To have every host of the plan learnt, if all are reached in the first round."""
    return hosts_learning_s(plan.hosts.times(plan.networks), rate_fps=rate_fps, wait_s=wait_s)


def hosts_learning_s(
    hosts: Iterable[int], *, rate_fps: float = DEFAULT_RATE_FPS, wait_s: float = DEFAULT_WAIT_S
) -> float:
    """The same for so many hosts of each side."""
    return max(hosts) / rate_fps + wait_s


def measuring_s(goal: AnyGoal, waits_s: float) -> float:
    """All trials of the goal.

    A binary search is its first trial at the maximum, a trial for each halving (log2 of the maximum to the
    precision), and the trial that confirms; half of its trials are taken to lose frames, and to be repeated
    where losses are verified. A trial lasts as long as it sends and waits. A loss series is taken to end
    half-way down.
    """
    match goal:
        case LossGoal():
            return (len(goal.shares) / 2 + 1) * (goal.duration_s + waits_s)
        case DelayGoal():
            return goal.repetitions * (goal.length_s + waits_s)
        case RecoveryGoal():
            return goal.repetitions * (goal.duration_s + goal.observe_s + waits_s)
        case BurstGoal():
            return sum(_search_s(goal.search_goal(frames), waits_s) for frames in goal.burst_frames)
        case BackToBackGoal():
            return _bursts_s(goal, waits_s)
        case Load():
            return goal.sending_s + waits_s
        case CeilingGoal():
            return EXPECTED_LOADS * (goal.duration_s + CEILING_WAITS.total_s)
        case _:
            return _search_s(goal, waits_s)


def ceiling_s(goal: object, waits_s: float) -> float:
    """To find the tester's own ceiling, where the goal has no maximum."""
    if not isinstance(goal, Goal) or not math.isinf(goal.max_fps):
        return 0.0
    return CEILING_TRIALS * (CEILING_TRIAL_S + waits_s)


def halvings(max_fps: float, precision: float) -> int:
    """From the whole range to the precision."""
    most_fps = A_LINE_RATE_FPS if math.isinf(max_fps) else max_fps
    return LoadBracket(min_fps=most_fps / 1000, max_fps=most_fps, precision=precision).remaining_halvings()


def _search_s(goal: Goal, waits_s: float) -> float:
    if isinstance(goal, MlrGoals):
        # To both bounds of each goal: short trials on the way, and all of the duration sum at each of the
        # two.
        return sum(
            halvings(goal.max_fps, each.width) * (each.initial_duration_s + waits_s)
            + 2 * each.duration_sum_s / each.final_duration_s * (each.final_duration_s + waits_s)
            for each in goal.goals
        )
    return (
        _trials(goal) * (1 + goal.loss_verifications / 2) * (goal.duration_s + waits_s)
        + goal.final_duration_s
        + waits_s
    )


def _trials(goal: ThroughputGoal) -> int:
    """Before the one that confirms."""
    return GUIDED_TRIALS if goal.is_guided else 1 + halvings(goal.max_fps, goal.precision)


def _bursts_s(goal: BackToBackGoal, waits_s: float) -> float:
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    # The first is the longest; what follows is around half of that, on average, and is waited for as long.
    burst_s = goal.max_burst_s / 2
    each_s = burst_s + max(waits_s, waits_s - RESIDUAL_S + burst_s)
    first_s = 0.0
    if goal.throughput_fps is None:
        first_s = _search_s(goal.throughput_goal or ThroughputGoal(max_fps=rate_fps), waits_s)
    return first_s + goal.repetitions * _bursts(goal) * (1 + goal.loss_verifications / 2) * each_s


def _bursts(goal: BackToBackGoal) -> int:
    """Of one repetition."""
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    return 1 + math.ceil(math.log2(max(2.0, goal.max_burst_s * rate_fps / goal.step_frames)))


def _parts(goal: AnyGoal) -> Iterator[str]:
    match goal:
        case LossGoal():
            yield (
                f"up to {len(goal.shares)} loads of {format_duration(goal.duration_s)}, half of which are"
                " usually enough"
            )
        case DelayGoal():
            yield f"{_count(goal.repetitions, 'trial')} of {format_duration(goal.length_s)}"
        case RecoveryGoal():
            yield (
                f"{_count(goal.repetitions, 'overload')} of {format_duration(goal.duration_s)}, each"
                " followed by half the load for "
                f"{format_duration(goal.observe_s)}"
            )
        case BurstGoal():
            yield f"a search for each of {_count(len(goal.burst_frames), 'burst size')}"
        case BackToBackGoal():
            if goal.throughput_fps is None:
                yield "a throughput search"
            yield f"{_count(goal.repetitions, 'search', 'searches')} of about {_bursts(goal)} bursts"
        case Load():
            yield f"one trial of {format_duration(goal.sending_s)}"
        case CeilingGoal():
            yield f"about {EXPECTED_LOADS} trials of {format_duration(goal.duration_s)}"
        case MlrGoals():
            yield f"a search for {_count(len(goal.goals), 'goal')} of RFC 9971"
        case _:
            yield (
                f"about {_trials(goal)} trials of {format_duration(goal.duration_s)}, one of"
                f" {format_duration(goal.final_duration_s)}"
            )


def _count(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or f'{one}s'}"
