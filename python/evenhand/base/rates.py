# SPDX-License-Identifier: Apache-2.0
"""Rates in what people think in: a share of the line rate, bit/s on the line, or frames, and one for each
direction. A rate counts frames everywhere else: `in_frames` is where the others end.

Bits are counted on the wire: a frame's octets with the FCS, 8 octets of preamble and 12 of gap, as in the
maximum frame rates of RFC 2544, appendix B, and RFC 5180, appendix A, and in the Gbps of FD.io CSIT. So 50 %
of a line of 10 Gbps is 5 Gbit/s, whatever the frame size. A share is of the line of the port that sends: the
input media of the device (RFC 2544, 26.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from evenhand.base.errors import RequestError
from evenhand.base.option import RATE, OptionField, options_of
from evenhand.base.units import BIT_RATE, ETHERNET_GAP_OCTETS, LINE_SHARE, parse_quantity, parse_rate

T = TypeVar("T")
_PAIR = re.compile(r"(?P<forward>.*?)/(?!s\b)(?P<reverse>.*)")
"""The slash between two rates; that of `Gbit/s` is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a rate depends on that does not count frames."""

    octets: Fraction
    """Mean of the frames with their FCS, on the link where they are larger."""
    most_fps: int | None
    """Maximum theoretical frame rate of a direction (R2544-16); None: no port knows its line rate."""
    of_directions: Mapping[str, Line] = field(default_factory=dict)
    """The lines of the ports that send each direction, where these are of unlike speed; empty: both are as
    this one, else this is the slower one."""

    def of(self, direction: str) -> Line:
        """The line of the port that sends this direction."""
        return self.of_directions.get(direction, self)

    def of_bits(self, rate_bps: Decimal) -> float:
        """Frames per second of so many bits per second on the wire."""
        return _whole(Fraction(rate_bps) / (8 * (self.octets + ETHERNET_GAP_OCTETS)))

    def bits_of(self, rate_fps: float) -> float:
        """Bits per second that so many frames are on the wire."""
        return float(rate_fps * 8 * (self.octets + ETHERNET_GAP_OCTETS))


ANY_LINE = Line(octets=Fraction(64), most_fps=14_880_952)
"""10 Gbps with frames of 64 octets: in place of a line that is not known yet, to check how rates are
written."""


def _whole(rate_fps: Fraction) -> float:
    """Whole frames, rounded down as maximum frame rates are; below one a second as it is."""
    return float(rate_fps if rate_fps < 1 else int(rate_fps))


def is_of_line(text: object) -> bool:
    """Whether this rate, or one of the two, is a share of the line rate, which must be known then."""
    return isinstance(text, str) and "%" in text


def is_in_frames(text: str) -> bool:
    """Whether a rate counts frames, so that it is the same with every frame size."""
    unit = re.sub(r"^[\d.,_\s]*(?:[eE][-+]?\d+)?\s*", "", text.strip()).lower()
    return "%" not in unit and not re.search(r"b(?:it)?(?:/s|ps)$", unit)


def depends_on_line(text: str) -> bool:
    """Whether a rate, or one of two, does not count frames."""
    return not all(is_in_frames(each) for each in split_pair(text) or (text,))


def in_frames(text: str, line: Line, *, where: str) -> float:
    """Frames per second of `50%`, `2.5Gbit/s` or `1Mfps`.

    Raises:
        RequestError: It is no rate, or a share of a line rate that no port knows.
    """
    if is_in_frames(text):
        return parse_rate(text, where=where)
    if not is_of_line(text):
        return line.of_bits(parse_quantity(BIT_RATE, text, where=where))
    share = parse_quantity(LINE_SHARE, text, where=where)
    if share > 1:
        raise RequestError(
            f"{text!r} is more than the line rate",
            code="base.out-of-range",
            where=where,
            next_step="Write 100% or less.",
        )
    if line.most_fps is None:
        raise RequestError(
            f"{text!r} is a share of the line rate, which the ports do not know",
            code="base.no-line-rate",
            where=where,
            next_step="Give line_rate in the testbed file, or a rate such as 1Mfps or 500Mbit/s.",
        )
    return _whole(Fraction(share) * line.most_fps)


def split_pair(text: str) -> tuple[str, str] | None:
    """`1Mfps/250kfps`: the forward and the reverse rate; None if there is one for both."""
    parts = _PAIR.fullmatch(text.strip())
    return None if parts is None else (parts["forward"].strip(), parts["reverse"].strip())


def pair_in_frames(text: str, line: Line, *, where: str) -> tuple[float, float | None]:
    """The forward rate and the reverse one, which is None where one rate is for both. RequestError as
    `in_frames`."""
    pair = split_pair(text)
    if pair is None:
        return in_frames(text, line, where=where), None
    if "" in pair or split_pair(pair[1]) is not None:
        raise RequestError(
            f"{text!r} is not a rate, nor one for each direction",
            code="base.not-a-quantity",
            where=where,
            next_step="Write 1Mfps, or 1Mfps/250kfps for forward and reverse.",
        )
    forward, reverse = (
        in_frames(each, line.of(direction), where=where)
        for each, direction in zip(pair, ("forward", "reverse"), strict=True)
    )
    return forward, reverse


def rates_of(options: Any) -> dict[str, str]:
    """The rates that a group of options has been given, by the names of its fields."""
    options_ = options_of(type(options))
    names = {each.field for each in options_ if _metavar(each).endswith(RATE.metavar)}
    found = {name: getattr(options, name) for name in names}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _metavar(option: OptionField) -> str:
    grammar = option.option.grammar
    return option.option.metavar or ("" if grammar is None else grammar.metavar)


def with_rates_in_frames(options: T, line: Line) -> T:
    """The same options with all their rates in frames; those that are already stay as they are written.

    Raises:
        RequestError: As `in_frames`; names the option.
    """
    places = {each.field: each.where for each in options_of(type(options))}
    changed = {
        name: f"{in_frames(text, line, where=places[name])!r}"
        for name, text in rates_of(options).items()
        if not is_in_frames(text)
    }
    return replace(options, **changed) if changed else options  # type: ignore[type-var]
