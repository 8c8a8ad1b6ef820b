# SPDX-License-Identifier: Apache-2.0
"""Campaign: how long a point should take, from what its goal says; what it really takes is learnt while the campaign runs."""

from __future__ import annotations

import math

from evenhand.campaign.options import PointRequest, plan_of, read_point
from evenhand.plan import AddressPlan
from evenhand.procedure import BackToBackGoal, BurstGoal, DelayGoal, LossGoal, RecoveryGoal
from evenhand.procedure.back_to_back_model import RESIDUAL_S
from evenhand.search import Goal, MlrGoals, ThroughputGoal
from evenhand.search.bracket import LoadBracket
from evenhand.series.campaign import Point
from evenhand.trial.learning import DEFAULT_RATE_FPS, DEFAULT_WAIT_S

OPENING_S = 2.0
"""To start the engine, open its ports and find the DUT; once for each repetition."""
A_LINE_RATE_FPS = 14_880_952.0
"""Of 10 Gbps with frames of 64 octets; for goals that go up to a line rate that is not known yet."""
CEILING_TRIALS, CEILING_TRIAL_S = 10, 1.0
"""To find the tester's own ceiling, where a search has no maximum; once for a point, since it is kept."""
GUIDED_TRIALS = 5
"""Of a search that looks first where the loss points at."""


def time_of(point: Point) -> float:
    """Seconds that all repetitions of a point should take, if no trial is INVALID.

    A binary search is its first trial at the maximum, a trial for each halving (log2 of the maximum to the precision), and the trial that
    confirms; half of its trials are taken to lose frames, and to be repeated where losses are verified. A trial lasts as long as it sends
    and waits. A direct plan's hosts are learnt first, at the rate of `evenhand learn`. A loss series is taken to end half-way down.
    """
    request = read_point(point)
    return _ceiling_s(request) + point.repetitions * (OPENING_S + _learning_s(point) + _measuring_s(request))


def _learning_s(point: Point) -> float:
    plan: AddressPlan = plan_of(point)
    if not plan.is_direct or point.goal.get("no-learning"):
        return 0.0
    return max(point.hosts[side] * point.networks[side] for side in (0, 1)) / DEFAULT_RATE_FPS + DEFAULT_WAIT_S


def _measuring_s(request: PointRequest) -> float:
    waits_s = request.conditions["waits"].total_s
    match request.goal:
        case LossGoal() as goal:
            return (len(goal.shares) / 2 + 1) * (goal.duration_s + waits_s)
        case DelayGoal() as goal:
            return goal.repetitions * (goal.length_s + waits_s)
        case RecoveryGoal() as goal:
            return goal.repetitions * (goal.duration_s + goal.observe_s + waits_s)
        case BurstGoal() as goal:
            return sum(_search_s(goal.search_goal(frames), waits_s) for frames in goal.burst_frames)
        case BackToBackGoal() as goal:
            return _bursts_s(goal, waits_s)
        case goal:
            assert isinstance(goal, Goal)
            return _search_s(goal, waits_s)


def _ceiling_s(request: PointRequest) -> float:
    if not isinstance(request.goal, Goal) or not math.isinf(request.goal.max_fps):
        return 0.0
    return CEILING_TRIALS * (CEILING_TRIAL_S + request.conditions["waits"].total_s)


def _search_s(goal: Goal, waits_s: float) -> float:
    if isinstance(goal, MlrGoals):
        # To both bounds of each goal: short trials on the way, and all of the duration sum at each of the two.
        return sum(
            halvings(goal.max_fps, each.width) * (each.initial_duration_s + waits_s)
            + 2 * each.duration_sum_s / each.final_duration_s * (each.final_duration_s + waits_s)
            for each in goal.goals
        )
    trials = GUIDED_TRIALS if goal.is_guided else 1 + halvings(goal.max_fps, goal.precision)
    return trials * (1 + goal.loss_verifications / 2) * (goal.duration_s + waits_s) + goal.final_duration_s + waits_s


def _bursts_s(goal: BackToBackGoal, waits_s: float) -> float:
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    trials = 1 + math.ceil(math.log2(max(2.0, goal.max_burst_s * rate_fps / goal.step_frames)))
    # The first is the longest; what follows is around half of that, on average, and is waited for as long.
    burst_s = goal.max_burst_s / 2
    each_s = burst_s + max(waits_s, waits_s - RESIDUAL_S + burst_s)
    first_s = 0.0
    if goal.throughput_fps is None:
        first_s = _search_s(goal.throughput_goal or ThroughputGoal(max_fps=rate_fps), waits_s)
    return first_s + goal.repetitions * trials * (1 + goal.loss_verifications / 2) * each_s


def halvings(max_fps: float, precision: float) -> int:
    """From the whole range to the precision."""
    most_fps = A_LINE_RATE_FPS if math.isinf(max_fps) else max_fps
    return LoadBracket(min_fps=most_fps / 1000, max_fps=most_fps, precision=precision).remaining_halvings()
