# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what a plan is. Frozen, checked when made, knows nothing of engines or frames."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.errors import PlanError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Mode = Literal["pseudorandom", "fixed", "increment", "decrement"]
SideName = Literal["left", "right"]
Direction = Literal["forward", "reverse"]

BENCHMARKING_BLOCK: dict[tuple[int, SideName], Network] = {
    (4, "left"): ipaddress.ip_network("198.18.0.0/16"),
    (4, "right"): ipaddress.ip_network("198.19.0.0/16"),
    (6, "left"): ipaddress.ip_network("2001:2::/49"),
    (6, "right"): ipaddress.ip_network("2001:2:0:8000::/49"),
}
"""Blocks of the two sides (SEED-03, SEED-04; RFC 5180 erratum 1752)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRange:
    """Addresses of one side: a 16-bit number in the address takes `count` values from `first` on."""

    base: Address
    offset: int
    """Octet of the address at which the big-endian 16-bit number stands."""
    first: int
    count: int
    mode: Mode = "pseudorandom"

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 65536:
            raise PlanError(f"{self.count} hosts: a side has 1 to 65536 hosts")
        if not 0 <= self.first <= self.first + self.count - 1 <= 0xFFFF:
            raise PlanError(f"hosts {self.first}..{self.first + self.count - 1} do not fit into 16 bits")

    def address(self, host_index: int) -> Address:
        """Address of the 0-based host; IndexError outside the range."""
        if not 0 <= host_index < self.count:
            raise IndexError(host_index)
        octets = bytearray(self.base.packed)
        octets[self.offset : self.offset + 2] = (self.first + host_index).to_bytes(2, "big")
        return ipaddress.ip_address(bytes(octets))

    @property
    def first_address(self) -> Address:
        return self.address(0)

    @property
    def last_address(self) -> Address:
        return self.address(self.count - 1)

    def __contains__(self, address: Address) -> bool:
        if address.version != self.base.version:
            return False
        octets = bytearray(address.packed)
        value = int.from_bytes(octets[self.offset : self.offset + 2], "big")
        octets[self.offset : self.offset + 2] = self.base.packed[self.offset : self.offset + 2]
        return bytes(octets) == self.base.packed and self.first <= value < self.first + self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpRange:
    """UDP ports of one field, `first` and `last` included (RFC 4814 section 4.5)."""

    first: int
    last: int
    mode: Mode = "pseudorandom"

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last <= 65535:
            raise PlanError(f"UDP ports {self.first}-{self.last}: want 0 <= first <= last <= 65535")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """One side of the set-up: the link between tester and DUT, and the hosts behind it."""

    name: SideName
    dut: Interface
    """Address and prefix length of the DUT's interface."""
    gateway: Interface
    """The tester's own interface: next hop of the DUT's route to the hosts."""
    hosts: HostRange
    route: Network
    """Network of the hosts, which the DUT routes to `gateway`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """All addresses and routes of one topology (SEED-13, SEED-16), checked by `validate.check_plan`."""

    name: str
    figure: str
    """Where the plan comes from, such as "Figure 3"."""
    ip_version: Literal[4, 6]
    left: PlanSide
    right: PlanSide
    source_ports: UdpRange
    destination_ports: UdpRange

    @property
    def sides(self) -> tuple[PlanSide, PlanSide]:
        return (self.left, self.right)

    @property
    def smallest_frame_size(self) -> int:
        """Octets with FCS that hold the headers and the 18 octets of the tag (R2544-33, R5180-10)."""
        return 64 if self.ip_version == 4 else 84

    @property
    def pairs(self) -> int:
        """Source x destination addresses of one direction."""
        return self.left.hosts.count * self.right.hosts.count

    def to_contract(self) -> dict[str, Any]:
        """The plan as the engine reads it (contract/request.schema.json)."""

        def side(s: PlanSide) -> dict[str, Any]:
            h = s.hosts
            return {
                "gateway": str(s.gateway.ip),
                "dut_address": str(s.dut.ip),
                "hosts": {
                    "base": str(h.base),
                    "host": {"offset": h.offset, "first": h.first, "count": h.count, "mode": h.mode},
                },
            }

        def udp(r: UdpRange) -> dict[str, Any]:
            return {"first": r.first, "last": r.last, "mode": r.mode}

        return {
            "name": self.name,
            "ip_version": self.ip_version,
            "left": side(self.left),
            "right": side(self.right),
            "udp_ports": {"source": udp(self.source_ports), "destination": udp(self.destination_ports)},
        }
