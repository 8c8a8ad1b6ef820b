# SPDX-License-Identifier: Apache-2.0
"""Station 1: the line that a rate in percent or in bit/s is of, for the frames of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from evenhand.base.rates import Line
from evenhand.base.units import format_line_rate
from evenhand.plan.sides import SIDES, Direction, SideName
from evenhand.plan.stream import Stream, theoretical_fps


def line_of(streams: Sequence[Stream], line_rates_bps: Mapping[SideName, float | None]) -> Line:
    """The line for rates of such frames. Where they arrive larger than they are sent, or the
    directions differ, the largest count, as for the maximum theoretical frame rate. With ports of unlike
    speed, each direction has the line of the port that sends it, with the frames as they are sent.

    Args:
        line_rates_bps: Line rates by side; None where it is not known.
    """
    rates = [rate for rate in line_rates_bps.values() if rate is not None]
    if len(rates) == len(SIDES) and len(set(rates)) > 1:
        lines: dict[str, Line] = {
            direction: _sending_line(
                [each for each in streams if each.direction == direction], line_rates_bps
            )
            for direction in dict.fromkeys(each.direction for each in streams)
        }
        slower = min(lines.values(), key=lambda line: line.most_fps or 0)
        return replace(slower, of_directions=lines) if len(lines) > 1 else slower
    means: dict[tuple[Direction, SideName], Fraction] = {}
    for stream in streams:
        for frames in stream.ends:
            place = (stream.direction, frames.side)
            means[place] = means.get(place, Fraction(0)) + stream.share * frames.mean_octets
    return Line(octets=max(means.values()), most_fps=theoretical_fps(streams, line_rates_bps))


def _sending_line(streams: Sequence[Stream], line_rates_bps: Mapping[SideName, float | None]) -> Line:
    """That of the port that sends these, which are of one direction."""
    return Line(
        octets=sum((each.share * each.sent.mean_octets for each in streams), Fraction(0)),
        most_fps=theoretical_fps(streams, {side: line_rates_bps[side] for side in {streams[0].sent.side}}),
    )


def unlike_line_rates(line_rates_bps: Mapping[SideName, float | None]) -> str:
    """`10 Gbps left, 1 Gbps right`, of rates that are known."""
    return ", ".join(f"{format_line_rate(line_rates_bps[side] or 0)} {side}" for side in SIDES)
