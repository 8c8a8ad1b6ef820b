# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: ranges of addresses and ports. They know nothing of sides or topologies."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Literal

from evenhand.base.errors import PlanError, RequestError
from evenhand.base.validation.typed_fields import check_types

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IpVersion = Literal[4, 6]
Mode = Literal["pseudorandom", "fixed", "increment", "decrement"]

MOST_NETWORKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRange:
    """Networks 0 .. `count` - 1 of one side: their number is added to the base address (SEED-30)."""

    offset: int
    """Octet of the address. Where it is the octet of the host number too (IPv4), that number has two halves,
    the network above the host; elsewhere (IPv6) the network is added to the 16-bit number at this octet."""
    count: int
    mode: Mode = "pseudorandom"

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_NETWORKS:
            raise PlanError(
                f"{self.count} networks: a side has 1 to {MOST_NETWORKS} networks (SEED-30)",
                code="plan.count-out-of-range",
                where="networks",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRange:
    """Addresses of one side: a 16-bit number in the address takes `count` values from `first` on, in each of
    the networks."""

    base: Address
    offset: int
    """Octet of the address at which the big-endian 16-bit number begins: that of its upper half."""
    first: int
    count: int
    """Hosts of one network."""
    mode: Mode = "pseudorandom"
    network_range: NetworkRange | None = None
    """None: one network, and nothing but the host number varies."""
    gap: int = 0
    """Octets between the two of the number: 1 where they lie around octet 8, which is zero in an address with
    an IPv4 address in it (RFC 6052, 2.2)."""

    def __post_init__(self) -> None:
        is_v6 = self.base.version == 6
        if not 0 <= self.gap <= is_v6 or not 0 <= self.offset < self._low_octet < len(self.base.packed):
            raise PlanError(
                f"octets {self.offset} and {self._low_octet} of an IPv{self.base.version} address cannot be"
                " those of a host number",
                code="plan.wrong-octets",
                where="hosts",
                next_step="Use octet 2 in IPv4 and 12 in IPv6.",
            )
        if (not is_v6 or self.network_range is not None) and (self.offset % 2 or self.gap):
            raise PlanError(
                f"a host number at octets {self.offset} and {self._low_octet}, in IPv4 or together with"
                " networks",
                code="plan.wrong-octets",
                where="hosts",
                next_step="Use an even octet and the next one.",
            )
        if not 1 <= self.count <= 65536:
            raise PlanError(
                f"{self.count} hosts: a network has 1 to 65536 hosts",
                code="plan.count-out-of-range",
                where="hosts",
            )
        last = self.first + self.count - 1
        if self.shares_octets and last > 0xFF:
            raise PlanError(
                f"hosts {self.first}..{last} of {self.network_count} networks: the number of the"
                " network occupies the octet that hosts above 255 need",
                code="plan.octet-needed-twice",
                where="hosts",
                next_step="Use up to 254 hosts in each network, or one network with up to 65,534 hosts"
                " (SEED-34).",
            )
        if self.network_range is not None and self.shares_octets != (self.base.version == 4):
            raise PlanError(
                f"IPv{self.base.version} networks are numbered at octet {self.network_range.offset}, their"
                f" hosts at {self.offset}",
                code="plan.wrong-octets",
                where="networks",
                next_step="Use octet 2 for both in IPv4, and octets 6 and 12 in IPv6.",
            )
        if not 0 <= self.first <= last <= 0xFFFF:
            raise PlanError(
                f"hosts {self.first}..{last} do not fit into 16 bits",
                code="plan.octets-exceeded",
                where="hosts",
            )
        if self.network_range is not None and self._base_network + self.network_count - 1 > (
            0xFF if self.shares_octets else 0xFFFF
        ):
            raise PlanError(
                f"{self.network_count} networks beginning with that of {self.base} exceed their octets",
                code="plan.octets-exceeded",
                where="networks",
            )

    @property
    def ip_version(self) -> IpVersion:
        return 4 if self.base.version == 4 else 6

    @property
    def _low_octet(self) -> int:
        return self.offset + 1 + self.gap

    @property
    def number_octets(self) -> tuple[int, int]:
        """Those of the host number."""
        return self.offset, self._low_octet

    @property
    def shares_octets(self) -> bool:
        """Whether network and host number are the two octets of one 16-bit number, as in every IPv4 plan with
        networks (SEED-34)."""
        return self.network_range is not None and self.network_range.offset == self.offset

    @property
    def network_count(self) -> int:
        return 1 if self.network_range is None else self.network_range.count

    @property
    def address_count(self) -> int:
        """How many there are, of all networks."""
        return self.count * self.network_count

    @property
    def drawn(self) -> int:
        """How many addresses the pseudorandom numbers choose among."""
        return self._count_of("pseudorandom")

    @property
    def steps(self) -> int:
        """How many addresses increment and decrement go through in a round."""
        return self._count_of("increment", "decrement")

    def _count_of(self, *modes: Mode) -> int:
        of_hosts = self.count if self.mode in modes else 1
        varies = self.network_range is not None and self.network_range.mode in modes
        return of_hosts * (self.network_count if varies else 1)

    @property
    def occurring(self) -> HostRange:
        """The addresses that frames carry: of what is fixed there is the first alone."""
        network_range = self.network_range
        if network_range is not None and network_range.mode == "fixed":
            network_range = replace(network_range, count=1)
        return replace(self, count=1 if self.mode == "fixed" else self.count, network_range=network_range)

    def fixed(self) -> HostRange:
        """The range of which only the first host occurs."""
        return replace(self.fixed_network(), mode="fixed")

    def fixed_network(self) -> HostRange:
        """The range of which only the first network occurs."""
        if self.network_range is None:
            return self
        return replace(self, network_range=replace(self.network_range, mode="fixed"))

    def address(self, host_index: int, network: int = 0) -> Address:
        """Address of this machine in this network, both counted from 0; IndexError outside the range."""
        if not 0 <= host_index < self.count:
            raise IndexError(host_index)
        if not 0 <= network < self.network_count:
            raise IndexError(network)
        octets = bytearray(self.base.packed)
        host = self.first + host_index
        if self.network_range is None:
            octets[self.offset], octets[self._low_octet] = host.to_bytes(2, "big")
        elif self.shares_octets:
            octets[self.offset : self.offset + 2] = bytes((self._base_network + network, host))
        else:
            at = self.network_range.offset
            octets[at : at + 2] = (self._base_network + network).to_bytes(2, "big")
            octets[self.offset : self.offset + 2] = host.to_bytes(2, "big")
        return ipaddress.ip_address(bytes(octets))

    def find(self, address: Address) -> tuple[int, int] | None:
        """Host index and network of an address of the range; None if it is not one."""
        if address.version != self.base.version:
            return None
        octets = address.packed
        host = int.from_bytes((octets[at] for at in self.number_octets), "big") - self.first
        network = 0
        if self.shares_octets:
            host, network = octets[self.offset + 1] - self.first, octets[self.offset] - self._base_network
        elif self.network_range is not None:
            at = self.network_range.offset
            network = int.from_bytes(octets[at : at + 2], "big") - self._base_network
        if not (
            0 <= host < self.count
            and 0 <= network < self.network_count
            and self.address(host, network) == address
        ):
            return None
        return host, network

    def __contains__(self, address: Address) -> bool:
        return self.find(address) is not None

    @property
    def first_address(self) -> Address:
        return self.address(0)

    @property
    def last_address(self) -> Address:
        return self.address(self.count - 1, self.network_count - 1)

    @property
    def _base_network(self) -> int:
        """Network 0, as it is in the base address."""
        if self.network_range is None:
            return 0
        at = self.network_range.offset
        return (
            self.base.packed[at]
            if self.shares_octets
            else int.from_bytes(self.base.packed[at : at + 2], "big")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpRange:
    """UDP ports of one field, `first` and `last` included (RFC 4814 section 4.5)."""

    first: int
    last: int
    mode: Mode = "pseudorandom"

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.first <= self.last <= 65535:
            raise PlanError(
                f"UDP ports {self.first}-{self.last}: must be 0 <= first <= last <= 65535",
                code="plan.not-a-port-range",
            )

    @property
    def written(self) -> str:
        """As `parse_ports` reads it: `1024-65535:increment`, `7`."""
        if self.mode == "fixed":
            return str(self.first)
        return f"{self.first}-{self.last}" + ("" if self.mode == "pseudorandom" else f":{self.mode}")

    @property
    def occurring(self) -> UdpRange:
        """The ports that frames carry: the first alone if it is fixed."""
        return replace(self, last=self.first) if self.mode == "fixed" else self

    @property
    def values(self) -> int:
        """How many ports the range has."""
        return self.last - self.first + 1


MAX_PORT = 65535
_RANGE = re.compile(
    r"(0x[0-9a-fA-F]{1,20}|\d{1,20})(?:-(0x[0-9a-fA-F]{1,20}|\d{1,20})(?::(increment|decrement))?)?", re.ASCII
)


def parse_ports(text: str | None, default: UdpRange, classic: UdpRange, *, where: str) -> UdpRange:
    """`1024-65535`, `1024-65535:increment`, `7`, or `fixed` for the port of RFC 2544; numbers may be
    hexadecimal (0xC020).

    Args:
        default: What None means.
        classic: What `fixed` means.

    Raises:
        RequestError: It is not a range of UDP ports.
    """
    if text is None:
        return default
    if text == "fixed":
        return classic
    found = _RANGE.fullmatch(text.strip())
    first, last = (0, 0) if found is None else (_number(found[1]), _number(found[2] or found[1]))
    if found is None or not 1 <= first <= last <= MAX_PORT:
        raise RequestError(
            f"{text!r} is not a range of UDP ports",
            code="plan.not-a-port-range",
            where=where,
            next_step=f"Write a range such as {default.first}-{default.last}, one port from 1 to"
            f" {MAX_PORT}, or fixed.",
        )
    return UdpRange(first=first, last=last, mode="fixed" if first == last else _mode(found[3]))


def _number(text: str) -> int:
    """Zeros before a decimal number are allowed: `0080`."""
    return int(text, 16 if text.startswith("0x") else 10)


def _mode(word: str | None) -> Mode:
    return "increment" if word == "increment" else "decrement" if word == "decrement" else "pseudorandom"
