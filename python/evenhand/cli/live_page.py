# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign while it goes on: a browser that shows it shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.base.errors import EvenhandError
from evenhand.run import read_record
from evenhand.spec.point import Point

SHARE = 0.02
"""Largest share of a campaign's time that its page may take: all of its trials are read and drawn each
time."""


@dataclass(slots=True, kw_only=True)
class LivePage:
    """Writes the page anew after a point, unless the last time took too long for that; also at the start, and
    when it ends or is interrupted."""

    run: Path
    target: Path | None
    """The page; None: there is no page."""
    say: Callable[[str], object] = field(default=lambda text: None)
    _not_before_s: float = field(default=0.0, init=False)
    """Time by the monotonic clock."""
    _is_new: bool = field(default=False, init=False)
    """There was none before this campaign."""
    _has_failed: bool = field(default=False, init=False)

    def after_point(self, point: Point) -> None:
        """For `CampaignRunner.on_point`. A page that cannot be written is said once, and costs no
        measurement."""
        del point
        if self.target is None or self._has_failed or time.monotonic() < self._not_before_s:
            return
        began_s = time.monotonic()
        try:
            self._write(self.target)
        except EvenhandError as error:
            self._has_failed = True
            self.say(f"The page is not updated while the campaign runs: {error.what} ({error.where}).")
        ended_s = time.monotonic()
        self._not_before_s = ended_s + (ended_s - began_s) / SHARE

    def write(self) -> None:
        """Before the first point, and at the end. EvenhandError if it cannot be written; the campaign is
        stored all the same."""
        if self.target is not None:
            self._is_new = self._is_new or not self.target.exists()
            self._write(self.target)

    def stop(self) -> None:
        """The campaign was interrupted: the page gets what is stored, and no longer reloads. Why the campaign
        ended is what the user has to read, so a page that cannot be written is not another error."""
        if self.target is not None and self.target.exists():
            with suppress(EvenhandError, OSError):
                self._write(self.target, is_going_on=False)

    def take_back(self) -> None:
        """The campaign came to nothing, and left no file that this could be the page of."""
        if self.target is not None and self._is_new:
            with suppress(OSError):
                self.target.unlink(missing_ok=True)

    def _write(self, target: Path, *, is_going_on: bool = True) -> None:
        from evenhand.report.page import REFRESH_S, write_page  # its libraries take longer than most verbs

        write_page(read_record(self.run), target, refresh_s=REFRESH_S if is_going_on else None)
