# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: hosts that are a list of address ranges, such as those of many prefixes. Answers
what a `HostRange` answers."""

from __future__ import annotations

import atexit
import ipaddress
import os
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evenhand.base.errors import PlanError
from evenhand.base.folders import temporary_folder
from evenhand.base.lazy_import import lazy_import
from evenhand.plan.prefixes import WIDTH, Addresses, PrefixSet, last_addresses, unpacked
from evenhand.plan.ranges import Address, HostRange, IpVersion, Mode, Network

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")

Choose = Literal["entry", "host"]
"""What is equally likely: each entry of the list, and each host within it; or each host of all entries."""

MOST_DRAWN_HOSTS = 1 << 63
"""Hosts among which one number can choose."""
MOST_COUNTED = 1 << 53
"""The largest count of hosts that documents have, in which numbers may be floats."""


def countable(count: int) -> int | None:
    """For a document: None for more than 2^63, which many readers of JSON do not take."""
    return count if count <= MOST_DRAWN_HOSTS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """Hosts of one side: all addresses of several ranges, which ascend and do not overlap."""

    version: IpVersion
    entries: bytes = field(repr=False, compare=False)
    """First and last address of each range, in network order: 8 octets an entry in IPv4, 32 in IPv6; as the
    engine reads them."""
    choose: Choose = "entry"
    mode: Mode = "pseudorandom"
    address_count: int = field(init=False)
    """All of them."""
    digest: str = field(init=False)
    """SHA-256 of the entries, in hexadecimal."""

    def __post_init__(self) -> None:
        """PlanError if hosts are to be equally likely, and there are too many to choose among."""
        first, last = self.bounds()
        total = self.entry_count + last.total() - first.total()
        object.__setattr__(self, "address_count", total)
        object.__setattr__(self, "digest", sha256(self.entries).hexdigest())
        if self.choose == "host" and total > MOST_DRAWN_HOSTS:
            raise PlanError(
                f"{total:,} hosts are too many for each to be equally likely",
                code="plan.too-many-hosts",
                where="choose",
                next_step='Write choose = "entry": each prefix is equally likely, and each host within it.',
            )

    @property
    def ip_version(self) -> IpVersion:
        return self.version

    @property
    def entry_count(self) -> int:
        return len(self.entries) // (WIDTH[self.version] // 4)

    @property
    def count(self) -> int:
        """Hosts; of more than 2^53, so many."""
        return min(self.address_count, MOST_COUNTED)

    @property
    def network_count(self) -> int:
        """None of its networks has a number."""
        return 1

    @property
    def network_range(self) -> None:
        return None

    @property
    def drawn(self) -> int:
        """How many addresses the pseudorandom numbers choose among."""
        return self.address_count if self.mode == "pseudorandom" else 1

    @property
    def steps(self) -> int:
        """How many addresses increment and decrement go through in a round."""
        return self.address_count if self.mode in ("increment", "decrement") else 1

    @property
    def occurring(self) -> HostList | HostRange:
        """The addresses that frames carry: of what is fixed there is the first alone."""
        return self.single() if self.mode == "fixed" else self

    def fixed(self) -> HostRange:
        """The first host alone."""
        return replace(self.single(), mode="fixed")

    def fixed_network(self) -> HostList:
        """The same: no network has a number."""
        return self

    def single(self) -> HostRange:
        """The range of the first host alone."""
        return single_host(self.first_address)

    def address(self, host_index: int, network: int = 0) -> Address:
        """The host of this number, counted over all entries; IndexError outside."""
        if not 0 <= host_index < self.address_count or network:
            raise IndexError(host_index)
        octets = WIDTH[self.version] // 8
        for at in range(0, len(self.entries), 2 * octets):
            first = int.from_bytes(self.entries[at : at + octets], "big")
            size = int.from_bytes(self.entries[at + octets : at + 2 * octets], "big") - first + 1
            if host_index < size:
                return _address(first + host_index, self.version)
            host_index -= size
        raise IndexError(host_index)

    def __contains__(self, address: Address) -> bool:
        if address.version != self.version:
            return False
        step, below, above = WIDTH[self.version] // 4, 0, self.entry_count
        while below < above:
            middle = (below + above) // 2
            if self.entries[middle * step : middle * step + step // 2] <= address.packed:
                below = middle + 1
            else:
                above = middle
        return below > 0 and address.packed <= self.entries[below * step - step // 2 : below * step]

    def entries_within(self, network: Network) -> bytes:
        """What the entries have of this network, in their form; empty if they have nothing of it."""
        octets = WIDTH[self.version] // 8
        first, last = network.network_address.packed, network.broadcast_address.packed
        if len(first) != octets:
            return b""
        numbers = range(self.entry_count)
        at = 2 * octets
        begin = bisect_left(numbers, first, key=lambda n: self.entries[n * at + octets : n * at + at])
        end = bisect_right(numbers, last, key=lambda n: self.entries[n * at : n * at + octets])
        part = bytearray(self.entries[begin * at : end * at])
        if part:
            part[:octets] = max(bytes(part[:octets]), first)
            part[-octets:] = min(bytes(part[-octets:]), last)
        return bytes(part)

    @property
    def first_address(self) -> Address:
        return ipaddress.ip_address(self.entries[: WIDTH[self.version] // 8])

    @property
    def last_address(self) -> Address:
        return ipaddress.ip_address(self.entries[-(WIDTH[self.version] // 8) :])

    def bounds(self) -> tuple[Addresses, Addresses]:
        """First and last address of each entry."""
        both = unpacked(self.entries, self.version)
        return both.part(slice(0, None, 2)), both.part(slice(1, None, 2))

    def to_document(self) -> dict[str, Any]:
        """For results: what there was, without the list."""
        return {
            "list": {
                "entries": self.entry_count,
                "choose": self.choose,
                "mode": self.mode,
                "addresses": countable(self.address_count),
                "first": str(self.first_address),
                "last": str(self.last_address),
                "digest": self.digest,
            }
        }

    def to_request(self) -> dict[str, Any]:
        """As the engine reads it, with the path of a file of the entries, which only this user may read. It
        is removed when this process ends.

        Raises:
            HostError: There is no place for it.
        """
        path = _scratch(os.getpid()) / f"{self.digest}.v{self.version}"
        if not path.exists():
            descriptor, name = tempfile.mkstemp(dir=path.parent)  # mode 0600
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.entries)
            os.replace(name, path)
        return {
            "list": {"path": str(path), "entries": self.entry_count, "choose": self.choose, "mode": self.mode}
        }


Hosts: TypeAlias = HostRange | HostList
"""The hosts of a side, whichever way they are stated."""


@cache
def _scratch(process: int) -> Path:
    """A folder of this process alone: one that was forked has another."""
    stack = ExitStack()
    folder = stack.enter_context(temporary_folder())

    def remove() -> None:
        if os.getpid() == process:
            stack.close()

    atexit.register(remove)
    return folder


def single_host(address: Address, mode: Mode = "pseudorandom") -> HostRange:
    """The range of this address alone."""
    number = int(address) & 0xFFFF
    return HostRange(
        base=_address(int(address) - number, 4 if address.version == 4 else 6),
        offset=WIDTH[4 if address.version == 4 else 6] // 8 - 2,
        first=number,
        count=1,
        mode=mode,
    )


def listed(host_range: Hosts) -> HostList:
    """The same hosts as a list of ranges: of a range without networks one, or one for each host if they are
    further apart than by 1."""
    if isinstance(host_range, HostList):
        return host_range
    version = host_range.ip_version
    first, last = int(host_range.first_address), int(host_range.last_address)
    step = 1 << 8 * (WIDTH[version] // 8 - 2 - host_range.offset)
    starts = range(first, last + 1, step)
    ranges = [(first, last)] if step == 1 else [(each, each) for each in starts]
    return hosts_of_ranges(ranges, version, choose="entry", mode="pseudorandom")


def hosts_of_prefixes(
    prefixes: PrefixSet, *, choose: Choose = "entry", mode: Mode = "pseudorandom"
) -> HostList:
    """All hosts of all prefixes, an entry for each: of an IPv4 prefix that is shorter than /31, all addresses
    but the first and the last, which are no hosts' (network and broadcast)."""
    first, lengths = prefixes.first_addresses(), prefixes.lengths()
    last = last_addresses(first, lengths, prefixes.version)
    if prefixes.version == 4:
        inner = (lengths < 31).astype(np.uint64)
        first, last = Addresses(first.high, first.low + inner), Addresses(last.high, last.low - inner)
    ends = (each.packed(prefixes.version) for each in (first, last))
    return HostList(
        version=prefixes.version,
        entries=np.concatenate(list(ends), axis=1).tobytes(),
        choose=choose,
        mode=mode,
    )


def hosts_of_ranges(
    ranges: Iterable[tuple[int, int]], version: IpVersion, *, choose: Choose, mode: Mode
) -> HostList:
    """Hosts of a few ranges, each from its first to its last address; ascending."""
    octets = WIDTH[version] // 8
    return HostList(
        version=version,
        entries=b"".join(end.to_bytes(octets, "big") for ends in ranges for end in ends),
        choose=choose,
        mode=mode,
    )


def _address(number: int, version: IpVersion) -> Address:
    return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)
