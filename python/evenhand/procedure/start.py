# SPDX-License-Identifier: Apache-2.0
"""Procedure: where a search begins: at the line rate, or at the tester's own ceiling, which is found first if
it is not known (MLR-14)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from evenhand import rig
from evenhand.base.units import format_rate
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.expected_time import search_s
from evenhand.procedure.later import followed_by
from evenhand.procedure.maximum import (
    CeilingWish,
    conditions_of,
    describe_known,
    find_ceiling_first,
    knowing,
    known_of,
)
from evenhand.procedure.record import Recorder
from evenhand.procedure.tester import OpenTester
from evenhand.procedure.throughput import Throughput, measure_throughput
from evenhand.search import LOSSES_THAT_END_THE_WAY_UP, Goal, MlrGoals, Role

G = TypeVar("G", bound=Goal)


def choose_start(
    tester: OpenTester, goal: G, *, on_event: OnEvent = ignore, recorder: Recorder | None = None
) -> tuple[OpenTester, G]:
    """The goal with its maximum, and the tester that knows its ceiling.

    A goal with UP_TO_LINE_RATE gets the line rate, or the tester's ceiling if that is lower or no line rate
    is known. A ceiling that is not known is found first, by trials of a second; nothing above a load at which
    the DUT loses more than any goal allows is tried then, since a search needs nothing above. If an earlier
    search has passed the ceiling, it is checked first whether the tester keeps more. A maximum of the user's
    own stays; if a known ceiling is below it, that is reported.

    Raises:
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """
    wish = wish_of(goal)
    later_s = search_s(goal, tester.waits.total_s)
    known = rig.find_ceiling(conditions_of(tester, wish))
    if not math.isinf(goal.max_fps):
        if known is None or not known.is_limit or goal.max_fps <= known.rate_fps:
            return tester, goal
        return knowing(tester, known), goal
    if known is None or (known.is_limit and known.was_reached):
        kept_fps = None if known is None else known.rate_fps
        ceiling = find_ceiling_first(
            tester, wish, followed_by(on_event, later_s), recorder, kept_fps=kept_fps
        )
        if ceiling.is_device_slower:
            assert ceiling.rate_fps is not None
            return tester, replace(goal, max_fps=ceiling.rate_fps)
        known = known_of(ceiling)
        rig.keep_ceiling(conditions_of(tester, wish), known)
    theoretical_fps = tester.profile.theoretical_fps
    if not known.is_limit:
        return tester, replace(goal, max_fps=float(theoretical_fps or known.rate_fps))
    on_event(Note(text=f"{_begin_of(goal)} {describe_known(known)}."))
    return knowing(tester, known), replace(goal, max_fps=known.rate_fps, is_max_testers=True)


def _begin_of(goal: Goal) -> str:
    known_fps = None if isinstance(goal, MlrGoals) else goal.known_fps
    if known_fps is None:
        return "The search begins at"
    return f"The search begins at {format_rate(known_fps)} per direction; its maximum is"


def wish_of(goal: Goal) -> CeilingWish:
    """A load may be of interest as long as one goal allows what is lost there, be it in one trial of those
    that are made."""
    if isinstance(goal, MlrGoals):
        return CeilingWish(loss_ratio=max(each.loss_ratio for each in goal.goals))
    return CeilingWish(
        loss_ratio=goal.loss_ratio, losses=LOSSES_THAT_END_THE_WAY_UP + goal.loss_verifications
    )


def measure_from_start(
    tester: OpenTester,
    goal: Goal,
    *,
    name: str = "throughput",
    role: Role = Role.MEASUREMENT,
    repetition: int | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Throughput:
    """One search from `choose_start` on, for which the errors and `measure_throughput` are to be seen. That
    it has passed the tester's ceiling is kept for the next one."""
    started, bounded = choose_start(tester, goal, on_event=on_event, recorder=recorder)
    found = measure_throughput(
        started, bounded, name=name, role=role, repetition=repetition, on_event=on_event, recorder=recorder
    )
    ceiling = started.profile.ceiling
    if ceiling is not None and found.search.is_ceiling_reached:
        rig.keep_ceiling(conditions_of(started, wish_of(goal)), replace(ceiling, was_reached=True))
    return found
