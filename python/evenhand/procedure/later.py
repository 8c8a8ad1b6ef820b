# SPDX-License-Identifier: Apache-2.0
"""Procedure: one part of several: what it says of the time left holds for the parts that follow, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evenhand.procedure.events import Began, OnEvent, ProcedureEvent
from evenhand.search import TrialFinished, TrialStarted


def followed_by(on_event: OnEvent, later_s: float | Callable[[], float]) -> OnEvent:
    """What takes the events of a part.

    Args:
        on_event: Takes those of all parts.
        later_s: Expected time of the parts that follow; called with each event if it changes meanwhile.
    """

    def take(event: ProcedureEvent) -> None:
        if isinstance(event, Began | TrialStarted | TrialFinished):
            more_s = later_s() if callable(later_s) else later_s
            event = replace(event, remaining_s=event.remaining_s + more_s)
        on_event(event)

    return take
