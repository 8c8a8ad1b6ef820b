# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign while it goes on: a browser that shows it shows how far it is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.base.errors import EvenhandError
from evenhand.run import read_record
from evenhand.spec.request import Point

SHARE = 0.02
"""Largest share of a campaign's time that its page may take: all of its trials are read and drawn each
time."""

RELOADS = re.compile(r'<meta http-equiv="refresh"[^>]*>\n?')


@dataclass(slots=True, kw_only=True)
class LivePage:
    """Writes the page anew after a point, unless what that takes is too much of the time since the last one;
    also at the start, and when it ends or is interrupted."""

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
        """For `CampaignRunner.on_point`. A page that cannot be written is said once, whatever the reason, and
        costs no measurement."""
        del point
        if self.target is None or time.monotonic() < self._not_before_s:
            return
        with self._timed():
            try:
                self._write(self.target)
            except Exception as error:
                # Tried again after the next points: what they bring may be what it lacked.
                self._say_once(error, "The page is not updated while the campaign runs")

    def write(self) -> None:
        """Before the first point, and at the end. EvenhandError if it cannot be written; the campaign is
        stored all the same. A bug of ours is said, and ends nothing."""
        if self.target is None:
            return
        self._is_new = self._is_new or not self.target.exists()
        with self._timed():
            try:
                self._write(self.target)
            except EvenhandError:
                raise
            except Exception as error:
                self._say_once(error, "The page is not written")
                self._stop_reloading(self.target)

    def stop(self) -> None:
        """The campaign was interrupted: the page gets what is stored, and no longer reloads. Why the campaign
        ended is what the user has to read, so a page that cannot be written is not another error."""
        if self.target is not None and self.target.exists():
            try:
                self._write(self.target, is_going_on=False)
            except Exception:
                self._stop_reloading(self.target)

    def take_back(self) -> None:
        """The campaign came to nothing, and left no file that this could be the page of."""
        if self.target is not None and self._is_new:
            with suppress(OSError):
                self.target.unlink(missing_ok=True)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """The first page has no pictures, and takes least: the next one waits for its share too."""
        began_s = time.monotonic()
        yield
        ended_s = time.monotonic()
        self._not_before_s = ended_s + (ended_s - began_s) / SHARE

    def _say_once(self, error: Exception, what: str) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        why = (
            f"{error.what} ({error.where})"
            if isinstance(error, EvenhandError)
            else f"a bug in Evenhand: {type(error).__name__}: {error}. Nothing that was measured is affected;"
            " please report it, with the run file"
        )
        with suppress(Exception):
            self.say(f"{what}: {why}.")

    @staticmethod
    def _stop_reloading(target: Path) -> None:
        """The page that is there is the last one: a browser that shows it need not ask again."""
        with suppress(Exception):
            old = target.read_text()
            if (new := RELOADS.sub("", old, count=1)) != old:
                from evenhand.report.page import write_rendered

                write_rendered(new, target)

    def _write(self, target: Path, *, is_going_on: bool = True) -> None:
        from evenhand.report.page import REFRESH_S, write_page  # its libraries take longer than most verbs

        write_page(read_record(self.run), target, refresh_s=REFRESH_S if is_going_on else None)
