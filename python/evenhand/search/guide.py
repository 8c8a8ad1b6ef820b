# SPDX-License-Identifier: Apache-2.0
"""Station 8: where a binary search looks first when it knows about where the limit lies. It saves trials; it
proves nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from evenhand.search.bracket import LoadBracket, whole_load

STEP_GROWTH = 4.0
"""Growth of the distance from one load to the next, while all of them have the same verdict."""
ABOVE = 0.4
"""Part of a final bracket, from the limit to a load that will fail; to one that will pass it is half a
bracket."""
LONGEST_STEP = 0.5
"""Longest step, as a share of the load."""


@dataclass(slots=True, kw_only=True)
class Guide:
    """Tries one load, then loads ever further away from it, until a load that passed and one that failed lie
    around the limit.

    The first step is as wide as the bracket may be in the end: where the guess is right, two trials enclose
    the limit. Two loads that failed show how the loss grows with the load, and so about where it begins.
    """

    center_fps: float
    """Where the limit is thought to lie: a load that will pass, if only just."""
    above_fps: float | None = None
    """A load that will fail, if only just: it is tried before the other one. If it loses what the guess lets
    expect, the guess holds for both."""
    is_queue_deep: bool = False
    """A queue of the device hides what a short trial loses so close to the limit."""
    precision: float
    loss_ratio: float = 0.0
    """Loss ratio of the goal."""
    _step: float = 1.0
    """The step, in widths of the final bracket."""
    _is_upward: bool | None = None
    """Direction of the steps; None before the load itself was tried."""
    _losses: list[tuple[float, float]] = field(default_factory=list)
    """Loads that failed one after the other, and the rate of the frames that were too many; both in frames
    per second."""
    _is_begin_guessed: bool = False
    """The last load is where the loss should begin."""
    _jump_fps: float | None = None
    """Where the loss would begin if it grew straight with the load: tried once the other guess has turned out
    too low."""
    _is_agreed: bool = False
    """The load above failed as was expected."""
    _is_done: bool = False

    @classmethod
    def of_limit(
        cls,
        limit_fps: float,
        *,
        failed_fps: float,
        precision: float,
        loss_ratio: float = 0.0,
        is_queue_deep: bool = False,
    ) -> Guide:
        """Made from a loss, or from delays, that say where the limit lies.

        Args:
            limit_fps: The highest load that the goal would allow by them.
            failed_fps: A load that failed, or is in doubt. If it is almost at the limit already, no other is
                tried above it.
        """
        # Half a width lower: what a queue held at the end was forwarded too, and is not a rate.
        center_fps = whole_load(min(limit_fps * (1 - precision / 2), failed_fps * (1 - precision)))
        above_fps = whole_load(limit_fps * (1 + ABOVE * precision))
        return cls(
            center_fps=center_fps,
            above_fps=above_fps if center_fps < above_fps < failed_fps else None,
            is_queue_deep=is_queue_deep,
            precision=precision,
            loss_ratio=loss_ratio,
        )

    @property
    def is_full_length(self) -> bool:
        """Whether the next load is to be tried in full length at once. It will have to be if two losses
        agree on the limit, and only a long trial sees a deep queue overflow. If the load fails after all, the
        trial is hardly longer than a short one, since it stops early."""
        return self.is_queue_deep or (self._is_agreed and self._is_upward is None)

    def next_load(self, bracket: LoadBracket) -> float | None:
        """The next load; None once there is nothing more to try: the limit is enclosed, or the next load
        would lie outside the bracket."""
        if self._is_done:
            return None
        load_fps = self._choose(bracket)
        below_fps = bracket.below_fps
        if load_fps >= bracket.max_fps and below_fps is None:
            load_fps = bracket.max_fps
        is_outside = (
            load_fps <= bracket.lower_fps
            or (below_fps is not None and load_fps >= below_fps)
            or load_fps < bracket.min_fps
        )
        self._is_done = is_outside
        return None if is_outside else load_fps

    def note(self, load_fps: float, *, is_pass: bool, loss_ratio: float) -> None:
        """A load has been decided by a valid trial."""
        if load_fps == self.above_fps and self._is_upward is None:
            self.above_fps = None
            limit_fps = load_fps * (1 - loss_ratio) / (1 - self.loss_ratio)
            self._is_agreed = not is_pass and limit_fps >= self.center_fps
            if self._is_agreed:
                return
        if not is_pass:
            self._losses = [*self._losses[-1:], (load_fps, load_fps * max(0.0, loss_ratio - self.loss_ratio))]
        if self._is_upward is None:
            self._is_upward = is_pass
        elif is_pass == self._is_upward:
            self._step *= STEP_GROWTH
        elif is_pass and self._is_begin_guessed:
            # The limit is hardly above it; halving what lies between would take longer.
            self._is_upward, self._step = True, 1.0
            self._jump_fps = self._begin_of_loss(is_soft=False)
        else:
            self._is_done = True
        self._is_begin_guessed = False

    def shorten(self) -> None:
        """The tester did not keep a load for a full length: it may for a short one."""
        self._is_agreed = self.is_queue_deep = False

    def give_up(self) -> None:
        """The tester did not keep a load: halving finds the way down."""
        self._is_done = True

    def _choose(self, bracket: LoadBracket) -> float:
        width = min(LONGEST_STEP, self.precision * self._step)
        if self._is_upward is None:
            return self.center_fps if self.above_fps is None else self.above_fps
        if self._is_upward:
            if self._jump_fps is not None and self._step > 1:
                jump_fps, self._jump_fps, self._step = (
                    self._jump_fps * (1 - self.precision / 2),
                    None,
                    1 / STEP_GROWTH,
                )
                if bracket.lower_fps < jump_fps < (bracket.below_fps or math.inf):
                    return whole_load(jump_fps)
            return whole_load(bracket.lower_fps / (1 - max(self.precision, width)))
        assert bracket.below_fps is not None
        nearest_fps = bracket.below_fps * (1 - width)
        begin_fps = self._begin_of_loss(is_soft=self.loss_ratio == 0)
        self._is_begin_guessed = begin_fps is not None and begin_fps < nearest_fps
        if begin_fps is not None and self._is_begin_guessed:
            return whole_load(max(begin_fps * (1 - self.precision / 2), bracket.below_fps * LONGEST_STEP))
        # A loss shows how far the limit is at least.
        lost_fps = self._losses[-1][1] if self._losses else 0.0
        return whole_load(
            max(min(nearest_fps, bracket.below_fps - lost_fps), bracket.below_fps * LONGEST_STEP)
        )

    def _begin_of_loss(self, *, is_soft: bool) -> float | None:
        """Where the last two losses point at: a soft loss begins like a parabola, and a tolerated ratio is
        passed straight."""
        if len(self._losses) < 2:
            return None
        (upper_fps, more), (lower_fps, less) = self._losses
        if is_soft:
            more, less = math.sqrt(more), math.sqrt(less)
        return (
            lower_fps - less * (upper_fps - lower_fps) / (more - less)
            if upper_fps > lower_fps and more > less
            else None
        )
