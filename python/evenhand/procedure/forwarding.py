# SPDX-License-Identifier: Apache-2.0
"""Procedure: how much a DUT forwards of the highest load that the tester keeps, as its forwarding rate at
maximum offered load (RFC 2285, 3.6.2), quickly: no search, and no result of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.procedure.events import Began, Measured, OnEvent, ignore
from evenhand.procedure.maximum import CeilingWish, conditions_of, find_ceiling_first, known_of
from evenhand.procedure.tester import OpenTester
from evenhand.trial import CEILING_WAITS

STOPPED = "procedure.stopped"
"""Code of the error of what was stopped."""
TRIAL_S = 1.0
TRIALS = 2
"""A host that takes a CPU away makes the DUT seem slower, never faster: the most of them counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """Frames a second, per direction."""

    offered_fps: float
    """What the tester offered."""
    forwarded_fps: float
    """What the DUT forwarded of it, in the direction in which that was less."""


def keep_own_ceiling(tester: OpenTester, *, on_event: OnEvent = ignore) -> float:
    """The highest load that this tester keeps whatever the DUT loses, in frames a second per direction. It is
    known to later searches.

    Raises:
        HostError: It keeps no load at all, or was stopped meanwhile.
    """
    wish = CeilingWish(losses=0)
    before = rig.find_ceiling(conditions_of(tester, wish))
    if before is not None and not before.is_limit:
        return before.rate_fps
    # One that was found while the host did something else is too low.
    kept_fps = None if before is None else before.rate_fps
    known = known_of(find_ceiling_first(tester, wish, on_event, None, kept_fps=kept_fps))
    rig.keep_ceiling(conditions_of(tester, wish), known)
    return known.rate_fps


def forwarded_of(tester: OpenTester, offered_fps: float, *, on_event: OnEvent = ignore) -> Forwarded:
    """What the DUT forwards of this load: the most in some short trials, whatever their verdicts.

    Raises:
        HostError: It was stopped meanwhile.
    """
    measurer = replace(tester, waits=CEILING_WAITS).measurer(on_event)
    what = "what the DUT forwards of the tester's ceiling"
    on_event(Began(what=what, remaining_s=TRIALS * (TRIAL_S + measurer.overhead_s)))
    found = []
    for _ in range(TRIALS):
        result = measurer.measure(TRIAL_S, offered_fps)
        if result.was_stopped:
            raise HostError(
                "stopped while it was looked for how much the DUT forwards; there is no result",
                code="procedure.stopped",
                where=tester.setup.name,
            )
        on_event(Measured(what="tester, with the DUT at its limit", result=result))
        forwarded_fps = min(of.forwarding_rate_fps for of in result.directions.values())
        offered_fps = result.offered_fps  # measured over another span of time, so it may seem to be less
        found.append(Forwarded(offered_fps=offered_fps, forwarded_fps=min(forwarded_fps, offered_fps)))
    return max(found, key=lambda each: each.forwarded_fps)
