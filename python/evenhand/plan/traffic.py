# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the frames of a plan really carry, which is less than the plan has where a
mode is not pseudorandom.

The one place that says how many addresses a result was made with (SEED-49): 65,534 hosts of which the first
alone is used are one pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.plan.host_list import HostList, Hosts, countable
from evenhand.plan.model import AddressPlan, HostMacs, plan_title
from evenhand.plan.ranges import Address, Mode, UdpRange
from evenhand.plan.sides import BOTH_DIRECTIONS, Direction, PlanSide, SideCounts, SideName
from evenhand.plan.stream import Frames, Stream

_ROLES = ("source", "destination")


@dataclass(frozen=True, slots=True, kw_only=True)
class PortMacs:
    """MACs on the link of one side."""

    tester: str
    """MAC of the tester's port, which is the gateway's, or that of the hosts on the link unless each has its
    own."""
    dut: str | None
    """MAC of the DUT's interface; None if it was not resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Addresses and UDP ports that occur when these directions of a plan are sent, and how they are
    chosen."""

    plan: AddressPlan
    directions: tuple[Direction, ...] = BOTH_DIRECTIONS

    def ends(self, direction: Direction) -> tuple[Hosts, Hosts]:
        """Source and destination hosts that occur, as they are sent."""
        return self.plan.stream_of(direction).sent.ends

    def pairs(self, direction: Direction) -> int:
        """Address pairs that occur."""
        return self.plan.pairs_of(direction)

    @property
    def is_one_pair(self) -> bool:
        """Whether every frame of a direction has the same two addresses (SEED-02)."""
        return all(self.pairs(direction) == 1 for direction in self.directions)

    @property
    def modes(self) -> dict[str, Mode]:
        """How that is chosen of which there are several: hosts, networks, source ports, destination ports;
        what is single is left out."""
        found: dict[str, Mode] = {}
        for direction in self.directions:
            for host_range in self.ends(direction):
                if host_range.count > 1:
                    found["hosts"] = host_range.mode
                if host_range.network_range is not None and host_range.network_range.count > 1:
                    found["networks"] = host_range.network_range.mode
        ports = {"source ports": self.plan.source_ports, "destination ports": self.plan.destination_ports}
        return found | {name: udp.mode for name, udp in ports.items() if udp.occurring.values > 1}

    @property
    def count_words(self) -> str:
        """`65,534 x 65,534`, for a table: left and right, or source and destination of the first direction if
        these are unlike."""
        source, destination = self._shown_ends(self.directions[0])
        return f"{source.address_count:,} x {destination.address_count:,}"

    @property
    def address_words(self) -> str:
        """`1 address pair`, `65,534 x 65,534 addresses`, `1 source x 256 destination addresses in 1 x 256
        networks`."""
        if self.is_one_pair:
            return "1 address pair"
        each = [self._addresses_of(direction) for direction in self.directions]
        if len(set(each)) > 1:
            return ", ".join(
                f"{direction} {text}" for direction, text in zip(self.directions, each, strict=True)
            )
        return each[0]

    @property
    def order(self) -> str:
        """`hosts increment, networks pseudorandom`, if any of the addresses that vary is not pseudorandom;
        else empty."""
        modes = {name: mode for name, mode in self.modes.items() if name in ("hosts", "networks")}
        return (
            ""
            if set(modes.values()) <= {"pseudorandom"}
            else ", ".join(f"{name} {mode}" for name, mode in modes.items())
        )

    @property
    def udp_ports(self) -> str:
        """`source ports 1024-65535, destination ports 1-49151, pseudorandom`."""
        ports = [
            (role, udp)
            for role, udp in zip(_ROLES, (self.plan.source_ports, self.plan.destination_ports), strict=True)
        ]
        modes = [udp.mode for _, udp in ports if udp.occurring.values > 1]
        if len(modes) == len(ports) and len(set(modes)) == 1:
            return ", ".join(f"{role} {show_ports(udp)}" for role, udp in ports) + f", {modes[0]}"
        return ", ".join(
            f"{role} {show_ports(udp)}" + (f" ({udp.mode})" if udp.occurring.values > 1 else " (fixed)")
            for role, udp in ports
        )

    def lines(
        self,
        *,
        seed: int | None = None,
        macs: Mapping[SideName, PortMacs] | None = None,
        host_macs: HostMacs = "port",
    ) -> list[str]:
        """Sentences for below a result (SEED-49, R4814-01): addresses and how they are chosen, UDP ports,
        seed; gateways, routes, MACs."""
        how = "" if self.is_one_pair or self.order else ", pseudorandom"
        spans = ", ".join(self._span_of(side.name) for side in self.plan.sides)
        drawn = "" if seed is None else f"; seed {seed}"
        sent = (
            f"Sent ({self.plan.label}): {self.address_words}{how}: {spans}; UDP ports:"
            f" {self.udp_ports}{drawn}."
        )
        return [sent, self.link_line(macs=macs, host_macs=host_macs)]

    def to_document(
        self, *, macs: Mapping[SideName, PortMacs] | None = None, host_macs: HostMacs = "port"
    ) -> dict[str, Any]:
        """For programs; `addresses` is what people are shown."""
        plan = self.plan
        return {
            "addresses": self.address_words,
            "is_one_pair": self.is_one_pair,
            "is_pseudorandom": all(mode == "pseudorandom" for mode in self.modes.values()),
            "directions": {
                direction: {
                    **{
                        role: _describe_hosts(host_range)
                        for role, host_range in zip(_ROLES, self.ends(direction), strict=True)
                    },
                    "pairs": countable(self.pairs(direction)),
                    **self._arriving(direction),
                }
                for direction in self.directions
            },
            "fixed_source": plan.fixed_source,
            "fixed_source_network": plan.fixed_source_network,
            "common_network": plan.common_network,
            "udp_ports": {
                "source": _describe_ports(plan.source_ports),
                "destination": _describe_ports(plan.destination_ports),
            },
            "gateways": {
                side.name: None if side.gateway is None else str(side.gateway.ip) for side in plan.sides
            },
            "dut_routes": {side.name: _first_and_last(side) for side in plan.sides},
            "host_macs": None if not plan.is_direct else host_macs,
            "macs": None
            if macs is None
            else {name: {"tester": of.tester, "dut": of.dut} for name, of in macs.items()},
        }

    @property
    def hosts(self) -> SideCounts:
        """Hosts of each network that occur."""
        return SideCounts(self.occurring("left").count, self.occurring("right").count)

    @property
    def networks(self) -> SideCounts:
        """Networks of each side that occur."""
        return SideCounts(self.occurring("left").network_count, self.occurring("right").network_count)

    def occurring(self, side: SideName) -> Hosts:
        """The hosts of a side that occur, be it as source or as destination."""
        return max(self._roles_of(side).values(), key=lambda host_range: host_range.address_count)

    def _arriving(self, direction: Direction) -> dict[str, Any]:
        """What the DUT translates the frames to; nothing if they arrive as they are sent."""
        stream = self.plan.stream_of(direction)
        if not stream.is_translated:
            return {}
        return {"sent": _describe_frames(stream.sent), "arrives": _describe_frames(stream.arrives)}

    @property
    def _has_fixed_source(self) -> bool:
        return self.plan.fixed_source or self.plan.fixed_source_network

    def _shown_ends(self, direction: Direction) -> tuple[Hosts, Hosts]:
        """Both ends as frames have them where sources are fixed; else left and right, which are the same in
        both directions."""
        source, destination = self.ends(direction)
        return (
            (source, destination)
            if self._has_fixed_source or direction == "forward"
            else (destination, source)
        )

    def _addresses_of(self, direction: Direction) -> str:
        source, destination = self._shown_ends(direction)
        words = ("source ", "destination ") if self._has_fixed_source else ("", "")
        text = f"{source.address_count:,} {words[0]}x {destination.address_count:,} {words[1]}addresses"
        if max(source.network_count, destination.network_count) > 1:
            text += f" in {source.network_count} x {destination.network_count} networks"
        if any(isinstance(end, HostList) for end in (source, destination)):
            has_prefixes = any(side.prefixes is not None for side in self.plan.sides)
            kind = "prefixes" if has_prefixes else "ranges"
            text += f" in {_entries(source):,} x {_entries(destination):,} {kind}"
        notes = [self.order] if self.order else []
        if self.plan.common_network:
            notes.append("one network number for both addresses")
        pairs = self.pairs(direction)
        if pairs != source.address_count * destination.address_count:
            notes.append(f"{pairs:,} pairs")
        return text + (f" ({'; '.join(notes)})" if notes else "")

    def _roles_of(self, side: SideName) -> dict[str, Hosts]:
        """Hosts of a side by what they are to the frames."""
        found = {}
        for direction in self.directions:
            sent, arrives = self.plan.stream_of(direction).ends
            if sent.side == side:
                found["source"] = sent.sources.occurring
            else:
                found["destination"] = arrives.destinations.occurring
        return found

    def _span_of(self, side: SideName) -> str:
        spans = {role: _span(host_range) for role, host_range in self._roles_of(side).items()}
        if len(set(spans.values())) == 1:
            return f"{side} {next(iter(spans.values()))}"
        return f"{side} " + " and ".join(f"{spans[role]} as {role}" for role in _ROLES)

    def link_line(
        self, *, macs: Mapping[SideName, PortMacs] | None = None, host_macs: HostMacs = "port"
    ) -> str:
        """Gateways, the DUT's routes to them, and MACs."""
        sides = self.plan.sides
        routed = [side for side in sides if side.gateway is not None]
        if routed and self.plan.is_direct:
            (side,) = routed
            where = (
                f"Hosts of one side on its link; gateway {side.gateway and side.gateway.ip} on the"
                f" {side.name}, to which the DUT routes {_routes_text(side)}"
            )
            whose = "of the tester's ports" if host_macs == "port" else "of the hosts on the link their own"
        elif self.plan.is_direct:
            where = "Hosts on the links: the plan has no gateways, and the DUT has no routes"
            whose = (
                "the hosts' own, drawn from the seed"
                if host_macs == "pseudorandom"
                else "of the tester's ports"
            )
        else:
            routes = " and ".join(_routes_text(side) for side in sides)
            where = (
                f"Gateways {' and '.join(str(side.gateway.ip) for side in sides if side.gateway)}, to"
                f" which the DUT routes {routes}"
            )
            whose = "of the tester's ports"
        known = ""
        if macs is not None:
            shown = (
                f"{name} {of.tester} to {of.dut or 'a DUT that has not been resolved'}"
                for name, of in macs.items()
            )
            known = (
                f": {', '.join(shown)}"
                if host_macs == "port"
                else f"; to {', '.join(str(of.dut) for of in macs.values())}"
            )
        return f"{where}. Source MACs {whose}{known}."


def show_ports(udp: UdpRange) -> str:
    """`1024-65535`, or `7`."""
    occurring = udp.occurring
    return str(occurring.first) if occurring.values == 1 else f"{occurring.first}-{occurring.last}"


def _span(host_range: Hosts) -> str:
    first, last = host_range.first_address, host_range.last_address
    return str(first) if first == last else f"{first} .. {last}"


def _entries(host_range: Hosts) -> int:
    return host_range.entry_count if isinstance(host_range, HostList) else 1


def _routes_text(side: PlanSide) -> str:
    if side.prefixes is None:
        return _span_text(side.routes)
    found = side.prefixes.to_document()
    return f"{found['first']} .. {found['last']} ({side.prefixes.count:,} prefixes: {side.prefixes.name})"


def _span_text(several: Sequence[object]) -> str:
    return (
        str(several[0]) if len(several) == 1 else f"{several[0]} .. {several[-1]} ({len(several)} networks)"
    )


def _describe_hosts(host_range: Hosts) -> dict[str, Any]:
    first: Address = host_range.first_address
    return {
        "addresses": countable(host_range.address_count),
        "first": str(first),
        "last": str(host_range.last_address),
        "host_mode": host_range.mode,
        "networks": host_range.network_count,
        "network_mode": None if host_range.network_range is None else host_range.network_range.mode,
        **(host_range.to_document() if isinstance(host_range, HostList) else {}),
    }


def _describe_frames(frames: Frames) -> dict[str, Any]:
    return {
        "ip_version": frames.ip_version,
        **{role: _describe_hosts(host_range) for role, host_range in zip(_ROLES, frames.ends, strict=True)},
        "udp_ports": {
            "source": _describe_ports(frames.source_ports),
            "destination": _describe_ports(frames.destination_ports),
        },
    }


def arrival_lines(streams: Sequence[Stream]) -> list[str]:
    """Sentences for below a result, for streams that the DUT translates: what is sent, and as what it
    arrives."""
    return [
        f"Translated ({stream.direction}): sent as {_show_frames(stream.sent)};"
        f" arrives as {_show_frames(stream.arrives)}."
        for stream in streams
        if stream.is_translated
    ]


def _show_frames(frames: Frames) -> str:
    source, destination = frames.ends
    sizes = sorted(set(frames.octets))
    octets = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"IPv{frames.ip_version}, {octets} octets, {_span(source)} to {_span(destination)}"


def _describe_ports(udp: UdpRange) -> dict[str, Any]:
    return {"first": udp.occurring.first, "last": udp.occurring.last, "mode": udp.mode}


def _first_and_last(side: PlanSide) -> dict[str, Any] | None:
    routes = side.routes
    if side.prefixes is not None:
        return side.prefixes.to_document()
    return None if not routes else {"count": len(routes), "first": str(routes[0]), "last": str(routes[-1])}


def describe_plan(plan: AddressPlan) -> dict[str, Any]:
    """The contract's document, and what only people and DUTs need (SEED-49); the plan's name as people type
    it."""
    return {
        **plan.to_document(),
        "name": plan_title(plan.name),
        "figure": plan.figure,
        "is_derived": plan.is_derived,
        "is_direct": plan.is_direct,
        "fixed_source": plan.fixed_source,
        "fixed_source_network": plan.fixed_source_network,
        "common_network": plan.common_network,
        **({} if plan.translation is None else {"translation": plan.translation.to_document()}),
        "pairs": countable(plan.pairs),
        "smallest_frame_size": plan.smallest_frame_size,
        "traffic": Traffic(plan=plan).to_document(),
        "addresses": {
            side.name: {
                "count": countable(side.host_range.address_count),
                "networks": side.host_range.network_count,
                "first": str(side.host_range.first_address),
                "last": str(side.host_range.last_address),
            }
            for side in plan.sides
        },
        "dut": {
            side.name: {
                "interfaces": [str(interface) for interface in side.dut],
                "routes": [str(route) for route in side.routes],
                **({} if side.prefixes is None else {"prefixes": side.prefixes.to_document()}),
                "next_hop": None if side.gateway is None else str(side.gateway.ip),
                "neighbors": side.dut_neighbors,
            }
            for side in plan.sides
        },
    }
