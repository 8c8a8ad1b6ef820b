# SPDX-License-Identifier: Apache-2.0
"""Station 8: what is known of the limit while a search runs. Only valid trials move a bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

WHOLE_FPS_FROM = 1000.0
"""Loads from here on are whole frames per second: shorter to read, and far below any precision in use."""
STEP_DOWN = 0.8
"""Factor to the next load while the tester has kept none. Coarse on purpose: it is where a search begins, not
a result."""
WIDEST_UNCLEAN = 0.02
"""How far apart, as a share, the bounds may be at most where too little time is clean between them: there the
host, not the search, says how closely the limit can be found."""


def whole_load(load_fps: float) -> float:
    """Rounded down, where frames per second are many."""
    return float(math.floor(load_fps)) if load_fps >= WHOLE_FPS_FROM else load_fps


@dataclass(slots=True, kw_only=True)
class LoadBracket:
    """Loads between which the limit lies, in frames per second per direction.

    A load that passed in a short trial only is a lower bound until a longer trial fails there; the next lower
    passed load then takes its place. A load that the tester could not keep says nothing of the device: it is
    no upper bound, but the search goes on below it.
    """

    min_fps: float
    max_fps: float
    precision: float
    """The bracket is narrow when it is no wider than this share of its upper bound."""
    upper_fps: float | None = None
    """Lowest load that failed."""
    above_ceiling_fps: float | None = None
    """Lowest load that the tester did not keep in any trial."""
    tester_offered_fps: float = 0.0
    """What it offered there at best."""
    unclean_in_a_row: int = 0
    """How many loads, each lower than the one before, had too little clean time to be judged."""
    unclean_up_to_fps: float = 0.0
    """The highest load that had too little clean time."""
    doubted: set[float] = field(default_factory=set)
    """Loads that passed only in a short trial, in which a queue of the device was filling: a full-length
    trial decides about them."""
    passed: dict[float, bool] = field(default_factory=dict)
    """Loads that passed, and whether in a full-length trial."""

    @property
    def doubted_fps(self) -> float | None:
        """The lowest load in doubt."""
        return min(self.doubted, default=None)

    @property
    def lower_fps(self) -> float:
        """Highest load below the upper bound that passed; 0 if there is none."""
        return max(
            (load for load in self.passed if self.upper_fps is None or load < self.upper_fps), default=0.0
        )

    @property
    def proven_fps(self) -> float | None:
        """The highest load below the upper bound that passed in full length. A short trial proves nothing: a
        queue may have held what was too much."""
        proven = (load for load, is_full_length in self.passed.items() if is_full_length)
        return max((load for load in proven if self.upper_fps is None or load < self.upper_fps), default=None)

    @property
    def below_fps(self) -> float | None:
        """The search goes on below this load, be it the device or the tester that failed there, or a queue
        that was filling; None at the beginning."""
        return min(
            (load for load in (self.upper_fps, self.above_ceiling_fps, self.doubted_fps) if load is not None),
            default=None,
        )

    @property
    def is_at_tester_ceiling(self) -> bool:
        """Whether it is the tester that keeps the search from coming closer to the device's limit."""
        return (
            self.above_ceiling_fps is not None
            and self.above_ceiling_fps == self.below_fps
            and not self._is_narrow_to(self.upper_fps)
        )

    @property
    def is_doubted(self) -> bool:
        """Whether the bracket would be narrow only if a load in doubt had failed."""
        return (
            self.doubted_fps is not None
            and self.doubted_fps == self.below_fps
            and not self._is_narrow_to(self.upper_fps)
        )

    @property
    def is_at_maximum(self) -> bool:
        """Whether the maximum itself passed."""
        return self.below_fps is None and self.lower_fps == self.max_fps

    @property
    def is_confirmed(self) -> bool:
        """Whether the lower bound passed in a full-length trial."""
        return self.passed.get(self.lower_fps, False)

    @property
    def is_narrow(self) -> bool:
        # A load is rounded down, so that it may be a little farther away than a step.
        return self._is_narrow_to(self.below_fps, 1.01 * self._next_step if self._is_below_unclean else None)

    @property
    def is_narrow_but_unclean(self) -> bool:
        """Whether the bounds are the device's own, and as close together as the host lets them be."""
        return (
            self._is_below_unclean and self.is_narrow and self._is_narrow_to(self.upper_fps, WIDEST_UNCLEAN)
        )

    @property
    def is_below_minimum(self) -> bool:
        """Whether there is no load left that may be used."""
        return self.below_fps is not None and self.below_fps <= self.min_fps

    def note_pass(self, load_fps: float, *, is_full_length: bool) -> None:
        self.passed[load_fps] = is_full_length or self.passed.get(load_fps, False)
        self.doubted = {load for load in self.doubted if load > load_fps}

    def note_doubt(self, load_fps: float) -> None:
        """A short trial passed, but a queue was filling."""
        self.doubted.add(load_fps)

    def note_fail(self, load_fps: float) -> None:
        self.upper_fps = load_fps if self.upper_fps is None else min(load_fps, self.upper_fps)
        self.doubted = {load for load in self.doubted if load < load_fps}

    def take_back_fail(self, load_fps: float, *, failed: Iterable[float], is_full_length: bool) -> None:
        """A load that failed passed to the end of its trial. `failed`: the other loads that have failed."""
        self.upper_fps = min((load for load in failed if load > load_fps), default=None)
        self.note_pass(load_fps, is_full_length=is_full_length)

    def note_above_ceiling(self, load_fps: float, *, offered_fps: float) -> None:
        """The tester did not keep this load, which lies within the bracket; it really offered
        `offered_fps`."""
        self.above_ceiling_fps, self.tester_offered_fps = load_fps, offered_fps
        self.unclean_in_a_row = 0

    def note_unclean(self, load_fps: float, *, offered_fps: float) -> None:
        """The tester kept this load, but too little of the time was clean to judge it, although a short trial
        may have passed there. A device with a queue needs ever longer to catch up after a lapse the closer a
        load is to its limit: a load a little lower is judged."""
        self.unclean_up_to_fps = max(self.unclean_up_to_fps, load_fps)
        if self.above_ceiling_fps is None or load_fps < self.above_ceiling_fps:
            unclean = self.unclean_in_a_row + 1
            self.note_above_ceiling(load_fps, offered_fps=offered_fps)
            self.unclean_in_a_row = unclean
        if not self.passed.get(load_fps, False):
            self.passed.pop(load_fps, None)

    def next_load(self) -> float:
        """The maximum itself, then midpoints; the minimum itself before anything below it (MLR-12,
        MLR-13)."""
        if self.below_fps is None:
            return self.max_fps
        if self.is_narrow:
            return (
                self.doubted_fps
                if self.doubted_fps is not None and self.is_doubted and self.is_confirmed
                else self.lower_fps
            )
        middle = (self.lower_fps + self.below_fps) / 2
        if self.is_at_tester_ceiling and not self.passed and self.upper_fps is None:
            middle = min(self.below_fps * STEP_DOWN, max(self.tester_offered_fps, self.below_fps / 10))
        if self._is_below_unclean:
            middle = max(middle, self.below_fps * (1 - self._next_step))
        if self.below_fps - self.lower_fps > 2:
            middle = whole_load(middle)
        return max(middle, self.min_fps)

    def load_above_unclean(self) -> float | None:
        """A load above those that had too little clean time, where the next that failed is far away: an
        overloaded device loses all the time, which is judged on any host. None if there is none to try."""
        if not (self._is_below_unclean and self.is_narrow and self.is_confirmed):
            return None
        load_fps = whole_load(self.unclean_up_to_fps * (1 + 2 * self.precision))
        is_inside = self.upper_fps is not None and load_fps < self.upper_fps * (1 - self.precision)
        return load_fps if is_inside and not self.is_narrow_but_unclean else None

    def remaining_halvings(self) -> int:
        """How many more loads the bracket needs to be narrow, if trials go on as bisection expects."""
        upper = self.max_fps if self.below_fps is None else self.below_fps
        width = upper - self.lower_fps
        # With no lower bound yet, the width shrinks with the upper bound: count from half of it.
        goal = self.precision * (upper if self.lower_fps > 0 else upper / 2)
        return max(0, math.ceil(math.log2(width / goal))) if width > goal > 0 else 0

    @property
    def _is_below_unclean(self) -> bool:
        """Whether the search goes on below a load that had too little clean time, and one above has failed:
        the limit is near."""
        return (
            self.unclean_in_a_row > 0
            and self.upper_fps is not None
            and self.above_ceiling_fps == self.below_fps
        )

    @property
    def _next_step(self) -> float:
        """From such a load to the next, as a share: twice as far each time."""
        return float(self.precision * 2**self.unclean_in_a_row)

    def _is_narrow_to(self, upper_fps: float | None, share: float | None = None) -> bool:
        share = self.precision if share is None else share
        return upper_fps is not None and upper_fps - self.lower_fps <= share * upper_fps
