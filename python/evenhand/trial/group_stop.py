# SPDX-License-Identifier: Apache-2.0
"""Station 7: a trial of several engines that can no longer pass need not last to its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from evenhand.trial.engine_session import Document

NOTICE_S = 0.5
"""Seconds from the decision to the last frame: until then each engine has heard of it, also one elsewhere."""


class EarlyStopOfAll:
    """Adds up what each engine has lost for good, as its `progress` events report it. What one engine does,
    it does for all: it stops the trial as soon as more is lost than the whole trial may lose, and no sooner.
    """

    def __init__(self, *, start_unix_ns: int, sending_s: float) -> None:
        """Watch a trial whose first frame is due then, by this host's clock, and that lasts so long."""
        self._start_unix_ns = start_unix_ns
        self._sending_s = sending_s
        self._lost: dict[int, int] = {}
        self._allowed = 0
        self._has_ended = False

    def watching(self, on_event: Callable[[int, Document], None] | None) -> Callable[[int, Document], None]:
        """The same listener, with a look at each event on its way."""

        def take(number: int, event: Document) -> None:
            if (failing := event.get("failing")) is not None:
                self._lost[number] = failing["lost_frames"]
                self._allowed = failing["allowed_frames"]
            if on_event is not None:
                on_event(number, event)

        return take

    @property
    def has_failed(self) -> bool:
        return sum(self._lost.copy().values()) > self._allowed

    def end_s(self) -> float | None:
        """When all are to send their last frame, in seconds from the first one; once, when the trial has
        failed. None if it has not, or ends as soon by itself."""
        if self._has_ended or not self.has_failed:
            return None
        self._has_ended = True
        end_s = (time.time_ns() - self._start_unix_ns) / 1e9 + NOTICE_S
        return end_s if end_s < self._sending_s else None
