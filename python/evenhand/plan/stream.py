# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the frames of a direction are when the tester sends them, and what they must
be when they arrive.

A router changes nothing that is described here, so that both are alike. A translator changes the IP version,
the addresses and with them the size.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from evenhand.base.rates import Line
from evenhand.base.units import ETHERNET_GAP_OCTETS, format_line_rate, max_theoretical_fps
from evenhand.plan.host_list import Hosts
from evenhand.plan.ranges import IpVersion, UdpRange
from evenhand.plan.sides import SIDES, Direction, SideCounts, SideName

SMALLEST_FRAME: dict[IpVersion, int] = {4: 64, 6: 84}
"""Octets with FCS, without VLAN tags, that hold the headers and the 18 octets of the test frame's tag
(R2544-33, R5180-10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The test frames of one direction on the link of one side."""

    side: SideName
    sources: Hosts
    destinations: Hosts
    source_ports: UdpRange
    destination_ports: UdpRange
    common_network: bool = False
    """One number for the networks of both addresses of a frame (SEED-82)."""
    octets: tuple[int, ...]
    """Frame sizes with the FCS and the VLAN tags of this link, in the order of the sequence that repeats; a
    single one if all frames are of one size."""
    tag_octets: int = 0
    """Octets of the VLAN tags among them."""
    tunnel_octets: int = 0
    """Octets of the headers of a tunnel among them."""

    @property
    def ip_version(self) -> IpVersion:
        return self.sources.ip_version

    @property
    def ends(self) -> tuple[Hosts, Hosts]:
        """Source and destination hosts that occur: of a fixed range the first alone."""
        return self.sources.occurring, self.destinations.occurring

    @property
    def pairs(self) -> int:
        """Address pairs that occur: source x destination, unless both go step by step (SEED-41) or have one
        network (SEED-82)."""
        source, destination = self.sources, self.destinations
        if self.common_network:
            destination = destination.fixed_network()
        return source.drawn * destination.drawn * math.lcm(source.steps, destination.steps)

    @property
    def mean_octets(self) -> Fraction:
        return Fraction(sum(self.octets), len(self.octets))

    @property
    def largest_octets(self) -> int:
        return max(self.octets)

    @property
    def untagged(self) -> Frames:
        """The same without VLAN tags."""
        return replace(self, octets=tuple(size - self.tag_octets for size in self.octets), tag_octets=0)

    @property
    def bare(self) -> Frames:
        """The same without VLAN tags and tunnel."""
        return self.untagged.in_tunnel(-self.tunnel_octets)

    def in_tunnel(self, octets: int) -> Frames:
        """The same in a tunnel that makes them so much longer."""
        return replace(
            self,
            octets=tuple(size + octets for size in self.octets),
            tunnel_octets=self.tunnel_octets + octets,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The test frames of one direction that are of one plan. A mix of plans has a stream for each."""

    direction: Direction
    sent: Frames
    """What the tester sends, and the DUT receives."""
    arrives: Frames
    """What the DUT sends, and the tester must receive."""
    share: Fraction = Fraction(1)
    """Share of all frames of the direction."""
    shares_line: bool = False
    """Whether both sides are on one port, whose line carries both directions both ways."""

    @property
    def ends(self) -> tuple[Frames, Frames]:
        """What is on the link of the side that sends, and on that of the side that receives."""
        return self.sent, self.arrives

    @property
    def is_translated(self) -> bool:
        """Whether frames arrive with other addresses, ports, or another IP version or size than they are sent
        with. VLAN tags and tunnels do not count: each link has its own."""
        return self.sent.bare != replace(self.arrives.bare, side=self.sent.side)


def ip_versions(streams: Sequence[Stream]) -> tuple[IpVersion, ...]:
    """Those of the frames, on either link, each once."""
    return tuple(dict.fromkeys(frames.ip_version for stream in streams for frames in stream.ends))


def largest_frame(streams: Sequence[Stream], *, has_tags: bool = True) -> int:
    """Octets with the FCS of the largest frame on either link.

    Args:
        has_tags: Whether the VLAN tags count.
    """
    return max(
        (frames if has_tags else frames.untagged).largest_octets
        for stream in streams
        for frames in stream.ends
    )


def in_tunnels(streams: Sequence[Stream], octets: SideCounts) -> tuple[Stream, ...]:
    """The same where the frames of a side are in a tunnel, which makes them so much longer there. A frame
    size that is asked for does not count it."""
    return tuple(
        replace(
            stream,
            sent=stream.sent.in_tunnel(octets.of(stream.sent.side)),
            arrives=stream.arrives.in_tunnel(octets.of(stream.arrives.side)),
        )
        for stream in streams
    )


def on_one_line(streams: Sequence[Stream], *, one_armed: bool = True) -> tuple[Stream, ...]:
    """The same where both sides are on one port."""
    return tuple(replace(stream, shares_line=one_armed) for stream in streams)


def theoretical_fps(
    streams: Sequence[Stream], line_rates_bps: Mapping[SideName, float | None], *, may_overload: bool = False
) -> int | None:
    """Maximum theoretical frame rate per direction: no line carries more of these frames, neither as they are
    sent nor as they arrive. The slowest line decides.

    Args:
        line_rates_bps: Line rates by side; None where it is not known, so that this line limits nothing.
        may_overload: A receiving line that is slower than the sending one limits nothing: an overload on
            purpose.

    Returns:
        None if no line rate is known.
    """
    if any(stream.shares_line for stream in streams):
        return _fps_on_one_line(streams, line_rates_bps)
    octets: dict[tuple[Direction, SideName], Fraction] = defaultdict(Fraction)
    for stream in streams:
        sent, arrives = stream.ends
        octets[stream.direction, sent.side] += stream.share * sent.mean_octets
        sending_bps, receiving_bps = (line_rates_bps.get(frames.side) for frames in stream.ends)
        if (
            may_overload
            and sending_bps is not None
            and receiving_bps is not None
            and receiving_bps < sending_bps
        ):
            continue
        # The engine refuses a load that the receiving line would not carry with the tags of the sending one
        # (`Tester::check_rate`), also where the DUT takes some of them away.
        taken = max(0, sent.tag_octets - arrives.tag_octets)
        octets[stream.direction, arrives.side] += stream.share * (arrives.mean_octets + taken)
    limits = [
        max_theoretical_fps(rate_bps, mean)
        for (_, side), mean in octets.items()
        if (rate_bps := line_rates_bps.get(side)) is not None
    ]
    return min(limits, default=None)


def _fps_on_one_line(
    streams: Sequence[Stream], line_rates_bps: Mapping[SideName, float | None]
) -> int | None:
    """The same where the line of one port carries what all directions send, and back what arrives of it."""
    rates = [rate for rate in line_rates_bps.values() if rate is not None]
    if not rates:
        return None
    gaps = (len({stream.direction for stream in streams}) - 1) * ETHERNET_GAP_OCTETS
    sent = sum((stream.share * stream.sent.mean_octets for stream in streams), Fraction(gaps))
    arrives = sum((stream.share * stream.arrives.mean_octets for stream in streams), Fraction(gaps))
    return max_theoretical_fps(min(rates), max(sent, arrives))


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
