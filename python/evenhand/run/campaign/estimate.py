# SPDX-License-Identifier: Apache-2.0
"""Campaign: how long a point should take, from what its goal says; what it really takes is learnt while the
campaign runs."""

from __future__ import annotations

from evenhand.procedure.expected_time import OPENING_S, ceiling_s, hosts_learning_s
from evenhand.spec.point import Point
from evenhand.spec.request import plan_of, read_point


def time_of(point: Point) -> float:
    """Seconds that all repetitions of a point should take, if no trial is INVALID; see
    `procedure.expected_time`.

    The engine is started, and a direct plan's hosts are learnt, once for each repetition. A tester's ceiling
    is found once: it is kept.
    """
    request = read_point(point)
    waits_s = request.conditions["waits"].total_s
    each_s = OPENING_S + _learning_s(point) + request.procedure.expected_s(request.goal, waits_s)
    return ceiling_s(request.goal) + point.repetitions * each_s


def _learning_s(point: Point) -> float:
    if not plan_of(point).is_direct or point.goal.get("no-learning"):
        return 0.0
    return hosts_learning_s(point.hosts[side] * point.networks[side] for side in (0, 1))
