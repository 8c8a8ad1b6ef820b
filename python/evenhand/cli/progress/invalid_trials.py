# SPDX-License-Identifier: Apache-2.0
"""INVALID trials that follow each other: the first has a line of its own, the others one for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.text import Text

from evenhand.base.units import format_count
from evenhand.trial import TrialResult, causes_of_invalid, describe_causes

MOST_HELD = 20
LONGEST_S = 60.0
"""A pipe gets a line about so often, however long the host goes on like this."""


@dataclass(slots=True)
class InvalidTrials:
    """Those that are not shown yet."""

    show: Callable[[Text], None]
    _series: str | None = None
    """Series that the last trial belongs to, if it was INVALID."""
    _held: list[tuple[str, TrialResult]] = field(default_factory=list)
    _line: Text = field(default_factory=Text)
    """Line of the last one by itself."""
    _tail: str = ""
    _shown_s: float = 0.0

    def take(self, what: str, result: TrialResult, line: Text, *, series: str, tail: str = "") -> None:
        """Show this trial, or keep it for one line with those that follow.

        Args:
            what: The trial: `trial 3`.
            line: All that is said of it.
            series: INVALID trials of one series may share a line.
            tail: What ends the line, such as the time left.
        """
        if result.is_valid or series != self._series:
            self.flush()
            self.show(line)
            self._series, self._shown_s = None if result.is_valid else series, time.monotonic()
            return
        self._held.append((what, result))
        self._line, self._tail = line, tail
        if len(self._held) == MOST_HELD or time.monotonic() - self._shown_s > LONGEST_S:
            self.flush()

    def flush(self) -> None:
        """Show what is kept."""
        if len(self._held) == 1:
            self.show(self._line)
        elif self._held:
            (first, _), (last, _) = self._held[0], self._held[-1]
            name, _, number = first.rpartition(" ")
            trials = f"{name}s {number} to {last.rpartition(' ')[2]}" if first != last else first
            causes = describe_causes(causes_of_invalid(result for _, result in self._held))
            self.show(
                Text.assemble(
                    f"{trials}: {format_count(len(self._held))} more were ",
                    ("INVALID", "yellow"),
                    f" ({causes}){self._tail}",
                )
            )
        self._held.clear()
        self._shown_s = time.monotonic()
