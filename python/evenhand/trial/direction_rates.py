# SPDX-License-Identifier: Apache-2.0
"""Station 7: the loads of the two directions, where they differ: in a ratio that is kept while a search moves
both, or with one direction held at a rate of its own while the other is searched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_rate
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import BOTH_DIRECTIONS, Direction, SideName, Stream, theoretical_fps


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionRates:
    """How the load of each direction follows from the load of a trial or search: the rate of the faster
    direction, or of the one that is not held. Either `ratio` or `held` and `held_fps`."""

    ratio: tuple[float, ...] | None = None
    """Forward and reverse: (4, 1)."""
    held: Direction | None = None
    held_fps: float | None = None

    def __post_init__(self) -> None:
        check_types(self)
        is_pair = self.ratio is None or len(self.ratio) == 2
        if (
            not is_pair
            or (self.ratio is None) == (self.held is None)
            or (self.held is None) != (self.held_fps is None)
        ):
            raise RequestError(
                "neither a ratio of the two directions, nor one direction that is held at a rate",
                code="trial.direction-rates",
                where="ratio, held",
                next_step='Give ratio=(4, 1), or held="reverse" with held_fps=10e3.',
            )
        for value in self.ratio or (self.held_fps,):
            if value is None or not 0 < value < math.inf:
                raise RequestError(
                    f"{value}: must be greater than 0",
                    code="trial.out-of-range",
                    where="ratio, held_fps",
                    next_step="To send in one direction alone, use directions.",
                )

    @classmethod
    def of_pair(cls, forward_fps: float, reverse_fps: float) -> DirectionRates:
        """Those of two rates; the load is the greater one."""
        return cls(ratio=(float(forward_fps), float(reverse_fps)))

    def fps_of(self, direction: Direction, rate_fps: float) -> float:
        """The rate of this direction in a trial of that load."""
        if self.ratio is not None:
            forward, reverse = self.ratio
            return rate_fps * (forward if direction == "forward" else reverse) / max(self.ratio)
        return self.held_fps if direction == self.held and self.held_fps is not None else rate_fps

    @property
    def leading(self) -> Direction:
        """The direction whose rate the load is: the faster one, or the one that is not held."""
        if self.ratio is not None:
            return "forward" if self.ratio[0] >= self.ratio[1] else "reverse"
        return "reverse" if self.held == "forward" else "forward"

    def by_direction(self, rate_fps: float) -> dict[Direction, float]:
        """The rates of both."""
        return {direction: self.fps_of(direction, rate_fps) for direction in BOTH_DIRECTIONS}

    def to_contract(self, rate_fps: float, directions: Sequence[Direction]) -> dict[str, float]:
        """`relative_rates` of a `trial` request."""
        return {each: self.fps_of(each, rate_fps) / rate_fps for each in directions}

    def highest_fps(self, limits_fps: Mapping[Direction, int | None]) -> int | None:
        """The highest load at which no direction exceeds its limit.

        Args:
            limits_fps: The limit of each direction; None: it has none.

        Raises:
            RequestError: The held direction exceeds its own.
        """
        if self.held is not None:
            limit = limits_fps[self.held]
            if limit is not None and self.held_fps is not None and self.held_fps > limit:
                raise RequestError(
                    f"{self} is more than the line carries, {format_rate(limit)}",
                    code="trial.held-above-line-rate",
                    where="hold",
                    next_step="Hold it at a lower rate.",
                )
            return next(limit for each, limit in limits_fps.items() if each != self.held)
        found = [
            int(limit / self.fps_of(each, 1.0)) for each, limit in limits_fps.items() if limit is not None
        ]
        return min(found, default=None)

    def is_like(self, other: DirectionRates) -> bool:
        """Whether both mean the same but for a thousandth: rates are rounded to whole frames."""
        return self.held == other.held and all(
            math.isclose(self.fps_of(each, 1e6), other.fps_of(each, 1e6), rel_tol=1e-3)
            for each in BOTH_DIRECTIONS
        )

    def __str__(self) -> str:
        """`forward and reverse 4:1`, `reverse held at 10 kfps`."""
        if self.ratio is not None:
            forward, reverse = (each / min(self.ratio) for each in self.ratio)
            return f"forward and reverse {forward:.6g}:{reverse:.6g}"
        return f"{self.held} held at {format_rate(self.held_fps or 0)}"

    def at(self, rate_fps: float) -> str:
        """`1 Mfps forward, 250 kfps reverse`."""
        return ", ".join(f"{format_rate(fps)} {each}" for each, fps in self.by_direction(rate_fps).items())

    def to_document(self) -> dict[str, Any]:
        """`{"ratio": [4, 1]}` or `{"held": "reverse", "held_fps": 10000}`."""
        if self.ratio is not None:
            return {"ratio": list(self.ratio)}
        return {"held": self.held, "held_fps": self.held_fps}


def highest_load_fps(
    streams: Sequence[Stream],
    line_rates_bps: Mapping[SideName, float | None],
    rates: DirectionRates | None,
    *,
    may_overload: bool = False,
) -> int | None:
    """The highest load that no line limits, of directions that may have different ones; None: no line rate is
    known.

    Args:
        may_overload: See `theoretical_fps`.

    Raises:
        RequestError: The held direction alone exceeds what its lines carry.
    """
    if rates is None:
        return theoretical_fps(streams, line_rates_bps, may_overload=may_overload)
    directions = dict.fromkeys(each.direction for each in streams)
    if any(each.shares_line for each in streams):  # as if each had half of the line
        return rates.highest_fps(dict.fromkeys(directions, theoretical_fps(streams, line_rates_bps)))
    limits = {
        direction: theoretical_fps(
            [each for each in streams if each.direction == direction],
            line_rates_bps,
            may_overload=may_overload,
        )
        for direction in directions
    }
    return rates.highest_fps(limits)


def read_direction_rates(document: Any) -> DirectionRates | None:
    """Those of `to_document`; None for none, and for what is none: a run file may come from anyone."""
    match document:
        case {"ratio": [int() | float() as forward, int() | float() as reverse]}:
            given: dict[str, Any] = {"ratio": (float(forward), float(reverse))}
        case {"held": "forward" | "reverse" as held, "held_fps": int() | float() as held_fps}:
            given = {"held": held, "held_fps": float(held_fps)}
        case _:
            return None
    try:
        return DirectionRates(**given)
    except RequestError:
        return None
