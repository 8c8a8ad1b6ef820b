# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what a plan is. Frozen, checked when made, knows nothing of engines or frames."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenhand.plan.ranges import HostRange, Interface, Network, UdpRange

SideName = Literal["left", "right"]
Direction = Literal["forward", "reverse"]
SIDES: tuple[SideName, SideName] = ("left", "right")
BOTH_DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")
HostMacs = Literal["port", "pseudorandom"]
"""MACs of hosts on the link: all that of the tester's port, or one of each host's own, drawn from the seed
(R4814-05)."""

BENCHMARKING_BLOCK: dict[tuple[int, SideName], Network] = {
    (4, "left"): ipaddress.ip_network("198.18.0.0/16"),
    (4, "right"): ipaddress.ip_network("198.19.0.0/16"),
    (6, "left"): ipaddress.ip_network("2001:2::/49"),
    (6, "right"): ipaddress.ip_network("2001:2:0:8000::/49"),
}
"""Blocks of the two sides (SEED-03, SEED-04; RFC 5180 erratum 1752)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """One side of the set-up: the link between tester and DUT, and the hosts on it or behind it."""

    name: SideName
    dut: tuple[Interface, ...]
    """Addresses and prefix lengths of the DUT's interface: one, or one for each network if the hosts are on
    the link. The tester resolves the first."""
    gateway: Interface | None
    """The tester's own interface, next hop of the DUT's routes to the hosts; None if the hosts are on the
    link (direct forms)."""
    hosts: HostRange
    routes: tuple[Network, ...]
    """Networks that the DUT routes to `gateway`; none in direct forms."""

    @property
    def is_direct(self) -> bool:
        """Whether the hosts are on the link, so that the DUT resolves each of them."""
        return self.gateway is None

    @property
    def host_networks(self) -> tuple[Network, ...]:
        """The networks that the hosts are in."""
        return tuple(interface.network for interface in self.dut) if self.is_direct else self.routes

    @property
    def dut_neighbors(self) -> int:
        """Neighbour entries that the DUT needs on this side (SEED-19, SEED-20)."""
        return self.hosts.addresses if self.is_direct else 1


def plan_title(name: str) -> str:
    """A plan's name as people type it: `gateway-v4`, in all that a user sees. The engine's contract, and what
    runs keep of it, have `gateway_v4`; both are read everywhere."""
    return name.replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersion:
    """The plan of the other IP version that a direction's frames are of as well; `mix.mix_versions` makes it
    (R5180-14)."""

    plan: AddressPlan
    share: tuple[int, int]
    """Of n + m frames n are of the plan that has this, and m of `plan`; in lowest terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """All addresses and routes of one topology (SEED-10 .. SEED-17), checked by `validate.check_plan`."""

    name: str
    figure: str
    """Where the plan comes from, such as "Figure 3"."""
    ip_version: Literal[4, 6]
    left: PlanSide
    right: PlanSide
    source_ports: UdpRange
    destination_ports: UdpRange
    fixed_source: bool = False
    """Every frame comes from the first host of its side, as in RFC 2544 section 12; for comparison runs
    (SEED-35)."""
    fixed_source_network: bool = False
    """Every frame comes from the first network of its side, and from any host of it (SEED-83)."""
    common_network: bool = False
    """One R for both addresses of a frame: the destination is in the network of the source's number
    (SEED-82). Else two are drawn."""
    other: OtherVersion | None = None
    """Of a mix of both IP versions; else None. All else here is of this plan alone."""

    @property
    def title(self) -> str:
        """The name as people type it."""
        return plan_title(self.name) + ("" if self.other is None else f"+{self.other.plan.title}")

    @property
    def is_derived(self) -> bool:
        """Whether no document spells the plan out, so that it says so wherever it is shown (SEED-36)."""
        return self.figure.startswith("derived")

    @property
    def label(self) -> str:
        """The title, and of a derived plan what it is derived from."""
        return f"{self.title}, {self.figure}" if self.is_derived else self.title

    @property
    def sides(self) -> tuple[PlanSide, PlanSide]:
        return (self.left, self.right)

    @property
    def is_direct(self) -> bool:
        return self.left.is_direct

    @property
    def versions(self) -> tuple[Literal[4, 6], ...]:
        """IP versions of the frames."""
        return (self.ip_version,) if self.other is None else (self.ip_version, self.other.plan.ip_version)

    @property
    def smallest_frame_size(self) -> int:
        """Octets with FCS that hold the headers and the 18 octets of the tag (R2544-33, R5180-10), in each of
        its IP versions."""
        return 84 if 6 in self.versions else 64

    def hosts_of(self, direction: Direction) -> tuple[HostRange, HostRange]:
        """Source and destination hosts of a direction, as they occur there."""
        source, destination = (self.left, self.right) if direction == "forward" else (self.right, self.left)
        hosts = source.hosts
        if self.fixed_source:
            hosts = hosts.fixed()
        elif self.fixed_source_network:
            hosts = hosts.fixed_network()
        return hosts, destination.hosts

    def pairs_of(self, direction: Direction) -> int:
        """Address pairs that occur: source x destination, unless both go step by step (SEED-41) or have one
        network (SEED-82)."""
        source, destination = self.hosts_of(direction)
        if self.common_network:
            destination = destination.fixed_network()
        return source.drawn * destination.drawn * math.lcm(source.steps, destination.steps)

    @property
    def pairs(self) -> int:
        """Address pairs of the forward direction; of the other as well, unless the source is fixed and the
        sides differ."""
        return self.pairs_of("forward")

    def single_pair(self) -> AddressPlan:
        """The same set-up of the DUT, of which one address pair is used: the first host of each side
        (SEED-02)."""

        def one(side: PlanSide) -> PlanSide:
            networks = side.hosts.networks
            hosts = replace(
                side.hosts, count=1, networks=None if networks is None else replace(networks, count=1)
            )
            return replace(side, hosts=hosts)

        other = None if self.other is None else replace(self.other, plan=self.other.plan.single_pair())
        return replace(self, left=one(self.left), right=one(self.right), other=other)

    def to_contract(self) -> dict[str, Any]:
        """The plan as the engine reads it (contract/request.schema.json), without the other IP version's."""

        def side(s: PlanSide) -> dict[str, Any]:
            h = s.hosts
            hosts: dict[str, Any] = {
                "base": str(h.base),
                "host": {"offset": h.offset, "first": h.first, "count": h.count, "mode": h.mode},
            }
            if h.networks is not None:
                hosts["network"] = {
                    "offset": h.networks.offset,
                    "count": h.networks.count,
                    "mode": h.networks.mode,
                }
            gateway = {} if s.gateway is None else {"gateway": str(s.gateway.ip)}
            return {**gateway, "dut_address": str(s.dut[0].ip), "hosts": hosts}

        def udp(r: UdpRange) -> dict[str, Any]:
            return {"first": r.first, "last": r.last, "mode": r.mode}

        return {
            "name": self.name,
            "ip_version": self.ip_version,
            "left": side(self.left),
            "right": side(self.right),
            "udp_ports": {"source": udp(self.source_ports), "destination": udp(self.destination_ports)},
            **{
                name: True
                for name in ("fixed_source", "fixed_source_network", "common_network")
                if getattr(self, name)
            },
        }
