# SPDX-License-Identifier: Apache-2.0
"""Specification: rates of the two directions, and rates that depend on the line: read in one place for the
shell and for campaign files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from evenhand.base.errors import RequestError
from evenhand.base.option import Option, OptionField
from evenhand.base.rates import (
    Line,
    depends_on_line,
    in_frames,
    is_of_line,
    pair_in_frames,
    rates_of,
    split_pair,
    with_rates_in_frames,
)
from evenhand.base.units import SHARES, parse_quantity
from evenhand.trial import DirectionRates

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesOptions:
    """How the loads of the two directions differ."""

    ratio: Annotated[
        str | None,
        Option(
            metavar="F:R",
            help="Loads of forward and reverse, such as 4:1. A rate is that of the faster one, and a search"
            " moves both.",
        ),
    ] = None
    hold: Annotated[
        str | None,
        Option(
            metavar="DIRECTION=RATE",
            help="Hold one direction at a rate, such as reverse=10kfps. A search moves the other one.",
        ),
    ] = None

    @property
    def texts(self) -> list[str]:
        """The rates among them."""
        return [] if self.hold is None else [self.hold.partition("=")[2]]

    def read(self, line: Line) -> DirectionRates | None:
        """None if neither is given. RequestError names the option."""
        if self.ratio is not None and self.hold is not None:
            raise _excludes("--ratio, --hold")
        if self.ratio is not None:
            return _ratio(self.ratio)
        return None if self.hold is None else _held(self.hold, line)


def _ratio(text: str) -> DirectionRates:
    parts = text.split(":")
    try:
        forward, reverse = (float(parse_quantity(SHARES, part, where="--ratio")) for part in parts)
    except (RequestError, ValueError):
        raise RequestError(
            f"{text!r} is not a ratio of two loads",
            code="spec.not-a-ratio",
            where="--ratio",
            next_step="Write the share of forward and that of reverse: 4:1.",
        ) from None
    return DirectionRates(ratio=(forward, reverse))


def _held(text: str, line: Line) -> DirectionRates:
    direction, equals, rate = (part.strip() for part in text.partition("="))
    if not equals or direction not in ("forward", "reverse"):
        raise RequestError(
            f"{text!r} is not a direction and its rate",
            code="spec.not-a-held-direction",
            where="--hold",
            next_step="Write reverse=10kfps, or forward=10kfps.",
        )
    held_fps = in_frames(rate, line.of(direction), where="--hold")
    return DirectionRates(held="forward" if direction == "forward" else "reverse", held_fps=held_fps)


def _excludes(where: str) -> RequestError:
    return RequestError(
        "the loads of the two directions are given twice",
        code="spec.rates-given-twice",
        where=where,
        next_step="Give a rate for each direction (1Mfps/250kfps), --ratio or --hold.",
    )


def read_rate(
    text: str, directions: RatesOptions, line: Line, *, where: str
) -> tuple[float, DirectionRates | None]:
    """A load in frames per second, and how the directions differ in it: `1Mfps/250kfps` is 1 Mfps at 4:1. So
    is `50%` where the ports that send are of unlike speed.

    Raises:
        RequestError: It is no rate, or the loads are given twice; names the option.
    """
    others = directions.read(line)
    if others is not None:
        line = line.of(others.leading)
    elif is_of_line(text) and line.of_directions and split_pair(text) is None:
        text = f"{text}/{text}"
    forward, reverse = pair_in_frames(text, line, where=where)
    if reverse is None:
        return forward, others
    if others is not None:
        raise _excludes(f"{where}, {'--hold' if directions.ratio is None else '--ratio'}")
    return max(forward, reverse), DirectionRates.of_pair(forward, reverse)


def read_rates(
    options: T, load: OptionField, directions: RatesOptions, line: Line, *, may_differ: bool = True
) -> tuple[T, DirectionRates | None]:
    """The options of a procedure with all rates in frames, and how the directions differ.

    Args:
        load: The option that may have a rate for each direction.
        may_differ: Whether the procedure can have such loads. Else a share of unlike lines is of the slower.

    Raises:
        RequestError: As `read_rate`, or a share of a line rate that no port knows.
    """
    written = getattr(options, load.field)
    rates = None
    if isinstance(written, str) and (split_pair(written) or (is_of_line(written) and may_differ)):
        load_fps, rates = read_rate(written, directions, line, where=load.where)
        options = replace(options, **{load.field: repr(load_fps)})  # type: ignore[type-var]
    else:
        rates = directions.read(line)
    return with_rates_in_frames(options, line if rates is None else line.of(rates.leading)), rates


def line_texts(options: object, directions: RatesOptions) -> list[str]:
    """Those of the rates that depend on the line, or on the frame size."""
    return [text for text in (*rates_of(options).values(), *directions.texts) if depends_on_line(text)]
