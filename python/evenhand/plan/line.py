# SPDX-License-Identifier: Apache-2.0
"""Station 1: the line that a rate in percent or in bit/s is of, for the frames of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from evenhand.base.rates import Line
from evenhand.plan.sides import Direction, SideName
from evenhand.plan.stream import Stream, theoretical_fps


def line_of(streams: Sequence[Stream], line_rates_bps: Mapping[SideName, float | None]) -> Line:
    """The line for rates of such frames. Where they arrive larger than they are sent, or the
    directions differ, the largest count, as for the maximum theoretical frame rate.

    Args:
        line_rates_bps: Line rates by side; None where it is not known.
    """
    means: dict[tuple[Direction, SideName], Fraction] = {}
    for stream in streams:
        for frames in stream.ends:
            place = (stream.direction, frames.side)
            means[place] = means.get(place, Fraction(0)) + stream.share * frames.mean_octets
    return Line(octets=max(means.values()), most_fps=theoretical_fps(streams, line_rates_bps))
