# SPDX-License-Identifier: Apache-2.0
"""Exchange: the flows of a plan as a configuration of the Open Traffic Generator API, and what it cannot say
of them.

A flow there is a list of headers whose fields have a pattern each: a value, values in a row, steps, or for
IPv4 and UDP a finite random sequence. Nothing ties two fields together.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.plan import (
    AddressPlan,
    Direction,
    HostList,
    Hosts,
    PortMacs,
    SideName,
    UdpRange,
    receiving_side,
    sending_side,
)

MOST_COUNT = 2**32 - 1
HOP_LIMIT = 10
"""Hop limit of every test frame (R2544-30)."""
NETWORK_STEP = {4: 1 << 8, 6: 1 << 64}
"""Step from an address of a network to the same one of the next: bits 16-23 of IPv4, 56-63 of IPv6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgExport:
    """The configuration, and what of the plan is not in it."""

    document: dict[str, Any]
    unsaid: tuple[str, ...]


def otg_of(
    plan: AddressPlan,
    *,
    directions: Sequence[Direction],
    frame_size: int,
    rate_fps: float,
    duration_s: float,
    seed: int,
    macs: Mapping[SideName, PortMacs] | None = None,
    around: Sequence[str] = (),
) -> OtgExport:
    """The configuration.

    Args:
        frame_size: Octets with FCS.
        rate_fps: Frames per second per direction.
        macs: MACs of the ports and the DUT; what is unknown is left out.
        around: What the testbed puts around frames, in words: the flows are those without it.

    Raises:
        RequestError: A pattern of the plan that OTG has no words for, or a rate that is not a whole number of
            frames a second.
    """
    if rate_fps != int(rate_fps):
        raise RequestError(
            f"{rate_fps:g} fps: OTG only has whole numbers",
            code="exchange.not-in-otg",
            where="--rate",
            next_step="Write a whole number of frames per second.",
        )
    unsaid: list[str] = []
    count = max(1, min(int(rate_fps * duration_s), MOST_COUNT))
    draw = _Draw(seed, count, unsaid)
    flows = [
        _flow(plan, direction, frame_size, int(rate_fps), duration_s, draw, macs) for direction in directions
    ]
    document = {"ports": [{"name": "left"}, {"name": "right"}], "flows": flows}
    outside = [f"Around the frames: {'; '.join(around)}. The flows are those without it."] if around else []
    return OtgExport(document=document, unsaid=(*dict.fromkeys(unsaid), *outside, *_always(plan, macs)))


class _Draw:
    """Seeds for one field after another, and the notes."""

    def __init__(self, seed: int, count: int, unsaid: list[str]) -> None:
        self._seed, self.count, self.unsaid = seed, count, unsaid

    def next_seed(self) -> int:
        """Another for each field of each direction: with one seed they would go together."""
        self._seed = (self._seed * 4 + 1) % 2**32
        return self._seed


def _flow(
    plan: AddressPlan,
    direction: Direction,
    frame_size: int,
    rate_fps: int,
    duration_s: float,
    draw: _Draw,
    macs: Mapping[SideName, PortMacs] | None,
) -> dict[str, Any]:
    sender, receiver = sending_side(direction), receiving_side(direction)
    sent = plan.stream_of(direction, frame_size).sent
    source, destination = sent.ends
    if sent.ip_version == 6 and source.drawn > 1 and destination.drawn > 1:
        draw.unsaid.append(
            f"Pairs: IPv6 addresses have no random pattern, so both step together: about"
            f" {max(source.address_count, destination.address_count):,} pairs instead of"
            f" {sent.pairs:,}."
        )
    hops = "time_to_live" if sent.ip_version == 4 else "hop_limit"
    return {
        "name": direction,
        "tx_rx": {"choice": "port", "port": {"tx_name": sender, "rx_names": [receiver]}},
        "packet": [
            {"choice": "ethernet", "ethernet": _ethernet(None if macs is None else macs.get(sender))},
            {
                "choice": f"ipv{sent.ip_version}",
                f"ipv{sent.ip_version}": {
                    "src": _addresses(source, draw),
                    "dst": _addresses(destination, draw),
                    hops: {"choice": "value", "value": HOP_LIMIT},
                },
            },
            {
                "choice": "udp",
                "udp": {
                    "src_port": _ports(sent.source_ports, draw),
                    "dst_port": _ports(sent.destination_ports, draw),
                },
            },
        ],
        "size": {"choice": "fixed", "fixed": sent.largest_octets},
        "rate": {"choice": "pps", "pps": rate_fps},
        "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": duration_s}},
        "metrics": {"enable": True, "loss": True},
    }


def _ethernet(macs: PortMacs | None) -> dict[str, Any]:
    if macs is None:
        return {}
    known = {"src": macs.tester, "dst": macs.dut}
    return {field: {"choice": "value", "value": mac} for field, mac in known.items() if mac is not None}


def _addresses(host_range: Hosts, draw: _Draw) -> dict[str, Any]:
    """The pattern of an address field."""
    if isinstance(host_range, HostList):
        raise RequestError(
            f"{host_range.entry_count:,} prefixes or ranges: an OTG flow has one range of addresses",
            code="exchange.list-of-hosts",
            where="plan",
            next_step="Export a plan whose hosts are one range.",
        )
    if host_range.address_count == 1:
        return {"choice": "value", "value": str(host_range.first_address)}
    version = host_range.base.version
    if host_range.count > 1 and host_range.network_count > 1:
        raise RequestError(
            f"{host_range.count:,} hosts in each of {host_range.network_count} networks: OTG has only"
            " one number for a field",
            code="exchange.not-in-otg",
            where="NAME",
            next_step="Export one network (--networks 1), or one host per network (--hosts 1).",
        )
    is_host = host_range.count > 1
    if host_range.gap and is_host and host_range.first >> 8 != (host_range.first + host_range.count - 1) >> 8:
        raise RequestError(
            f"{host_range.count:,} hosts from {host_range.first_address} on: the octets"
            f" {host_range.offset} and {host_range.number_octets[1]}, which count them, are not adjacent,"
            " and OTG cannot skip the octet in between",
            code="exchange.not-in-otg",
            where="NAME",
            next_step=f"Export up to {0x100 - (host_range.first & 0xFF)} hosts (--hosts), or use a prefix of"
            " another length.",
        )
    octets_behind = len(host_range.base.packed) - host_range.number_octets[1] - 1
    step = 1 << (8 * octets_behind) if is_host else NETWORK_STEP[version]
    network_range = host_range.network_range
    mode = host_range.mode if is_host or network_range is None else network_range.mode
    if mode == "pseudorandom" and version == 4 and step == 1:
        draw.unsaid.append(
            "Randomness: OTG repeats a finite sequence of `count` values for each field, and does not"
            " define how it is drawn."
        )
        ends = {"min": str(host_range.first_address), "max": str(host_range.last_address)}
        return {"choice": "random", "random": {**ends, "seed": draw.next_seed(), "count": draw.count}}
    if mode == "pseudorandom":
        why = "IPv6 addresses have no random pattern" if version == 6 else "a random pattern has no step"
        draw.unsaid.append(f"Order: {host_range.address_count:,} addresses in order instead of drawn: {why}.")
    start = host_range.last_address if mode == "decrement" else host_range.first_address
    choice = "decrement" if mode == "decrement" else "increment"
    one_step = ipaddress.IPv4Address(step) if version == 4 else ipaddress.IPv6Address(step)
    return {
        "choice": choice,
        choice: {"start": str(start), "step": str(one_step), "count": host_range.address_count},
    }


def _ports(ports: UdpRange, draw: _Draw) -> dict[str, Any]:
    if ports.occurring.values == 1:
        return {"choice": "value", "value": ports.first}
    if ports.mode == "pseudorandom":
        return {
            "choice": "random",
            "random": {"min": ports.first, "max": ports.last, "seed": draw.next_seed(), "count": draw.count},
        }
    start = ports.last if ports.mode == "decrement" else ports.first
    return {"choice": ports.mode, ports.mode: {"start": start, "step": 1, "count": ports.values}}


def _always(plan: AddressPlan, macs: Mapping[SideName, PortMacs] | None) -> list[str]:
    """What no configuration of OTG says of a plan."""
    asks = " and ".join("ARP" if version == 4 else "Neighbour Discovery" for version in plan.versions)
    said = [
        "Frames: there is no tag and no sequence number, so duplicates, reordering and late frames"
        " cannot be distinguished.",
        f"Neighbours: OTG does not say which host answers the DUT's {asks} for"
        f" {'each host' if plan.is_direct else 'the gateways'}; add devices for this, or static"
        " entries on the DUT.",
        "Trials: waits, learning frames, validity, verdicts and searches.",
        "Size: it is written with the FCS; OTG does not define whether an engine includes it.",
    ]
    if macs is None or any(of.dut is None for of in macs.values()):
        said.append("MACs: packet[0].ethernet lacks those that are not known; --testbed FILE supplies them.")
    return said
