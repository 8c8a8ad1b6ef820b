# SPDX-License-Identifier: Apache-2.0
"""Procedure: the highest rate at which a test opens connections (RFC 9693): the user's, the line rate, or
what the tester itself keeps while each frame opens one."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.procedure.connection_wish import most_connections
from evenhand.procedure.events import OnEvent
from evenhand.procedure.maximum import CeilingWish, find_maximum
from evenhand.procedure.record import Recorder
from evenhand.procedure.tester import OpenTester
from evenhand.trial import Connections, Load, LoadMeasurer, TrialResult


def find_highest_rate(
    tester: OpenTester, max_fps: float, *, on_event: OnEvent, recorder: Recorder | None
) -> tuple[OpenTester, float]:
    """See `find_maximum`. Nothing above a rate at which the DUT loses frames is tried."""
    return find_maximum(
        tester,
        max_fps,
        where="max_fps",
        wish=CeilingWish(make_measurer=_opening, frames="each opens a connection"),
        on_event=on_event,
        recorder=recorder,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpeningMeasurer:
    """Opens as many connections as the time has room for, whether the DUT keeps them or not."""

    measurer: LoadMeasurer
    most: int

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        count = max(1, min(self.most, round(duration_s * rate_fps)))
        return self.measurer.offer(
            Load.of_each_connection(Connections(use="establish", count=count), rate_fps)
        )


def _opening(tester: OpenTester, on_event: OnEvent) -> _OpeningMeasurer:
    """See `MakeMeasurer`: what the ceiling of new connections is found with."""
    return _OpeningMeasurer(
        measurer=tester.measurer(on_event, opens_connections=True), most=most_connections(tester.profile.plan)
    )
