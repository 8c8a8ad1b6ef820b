# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: many prefixes as one value. A million of them are a few megabytes of records,
never a million objects."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from evenhand.base.errors import PlanError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan.ranges import Address, IpVersion, Network

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.uint64]
else:
    np = lazy_import("numpy")

WIDTH: dict[IpVersion, int] = {4: 32, 6: 128}
"""Bits of an address."""
MOST_PREFIXES: dict[IpVersion, int] = {4: 2_000_000, 6: 1_000_000}
"""The most prefixes of one side."""
FAMILY: dict[IpVersion, int] = {4: socket.AF_INET, 6: socket.AF_INET6}


class Addresses(NamedTuple):
    """Many addresses: bits 127 to 64 of each, and the others. An IPv4 address is in `low`."""

    high: Words
    low: Words

    @classmethod
    def of(cls, address: Address) -> Addresses:
        """This one."""
        number = int(address)
        return cls(*(np.array([part], dtype=np.uint64) for part in (number >> 64, number & (1 << 64) - 1)))

    def is_before(self, others: Addresses) -> NDArray[np.bool_]:
        """Address by address."""
        found: NDArray[np.bool_] = (self.high < others.high) | (
            (self.high == others.high) & (self.low < others.low)
        )
        return found

    def part(self, chosen: Any) -> Addresses:
        """Those that numpy takes for this index."""
        return Addresses(self.high[chosen], self.low[chosen])

    def total(self) -> int:
        """The sum of all, exactly: that of four parts of 32 bits, which does not overflow."""
        half, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
        parts = (self.high >> half, self.high & low_bits, self.low >> half, self.low & low_bits)
        return sum(int(part.sum()) << shift for part, shift in zip(parts, (96, 64, 32, 0), strict=True))

    def number(self, index: int) -> int:
        return int(self.high[index]) << 64 | int(self.low[index])

    def packed(self, version: IpVersion) -> NDArray[np.uint8]:
        """Their octets in network order, a row for each."""
        if version == 4:
            return self.low.astype(">u4").view(np.uint8).reshape(-1, 4)
        rows = np.empty((len(self.low), 2), dtype=">u8")
        rows[:, 0], rows[:, 1] = self.high, self.low
        return rows.view(np.uint8).reshape(-1, 16)


def unpacked(octets: bytes, version: IpVersion) -> Addresses:
    """The addresses of which these are the octets in network order, one after the other."""
    if version == 4:
        low = np.frombuffer(octets, dtype=">u4").astype(np.uint64)
        return Addresses(np.zeros_like(low), low)
    words = np.frombuffer(octets, dtype=">u8").reshape(-1, 2).astype(np.uint64)
    return Addresses(words[:, 0].copy(), words[:, 1].copy())


def host_masks(lengths: NDArray[np.uint8], version: IpVersion) -> Addresses:
    """The bits of an address that a prefix of each length leaves open."""
    masks = np.array([(1 << bits) - 1 for bits in range(65)], dtype=np.uint64)
    open_bits = WIDTH[version] - lengths.astype(np.int64)
    return Addresses(masks[np.maximum(open_bits - 64, 0)], masks[np.minimum(open_bits, 64)])


def last_addresses(first: Addresses, lengths: NDArray[np.uint8], version: IpVersion) -> Addresses:
    """The last address of each prefix."""
    masks = host_masks(lengths, version)
    return Addresses(first.high | masks.high, first.low | masks.low)


def overlaps(first: Addresses, lengths: NDArray[np.uint8], version: IpVersion) -> NDArray[np.bool_]:
    """Which prefixes, but the last, overlap the one that follows; they are in the order of their networks."""
    last = last_addresses(first, lengths, version)
    return ~last.part(slice(None, -1)).is_before(first.part(slice(1, None)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSet:
    """Prefixes of one IP version, ascending, of which none overlaps another. `read_prefixes` and
    `make_prefixes` make them."""

    version: IpVersion
    name: str
    """What the user called them: a file, or how they are generated."""
    records: bytes = field(repr=False)
    """For each prefix the octets of its network in network order, then its length: 5 octets in IPv4, 17 in
    IPv6."""
    left_out: int = 0
    """Prefixes of the file that are not among them, because they cover others."""
    digest: str = field(init=False)
    """SHA-256 of the records, in hexadecimal."""

    def __post_init__(self) -> None:
        """PlanError if there is no prefix, or there are too many, or they do not ascend."""
        octets = WIDTH[self.version] // 8 + 1
        if not self.records or len(self.records) % octets:
            raise PlanError(
                f"{self.name} has no prefix",
                code="plan.no-prefix",
                where="prefixes",
                next_step="Write one on each line, such as 198.18.0.0/24.",
            )
        if self.count > MOST_PREFIXES[self.version]:
            raise too_many_prefixes(self.version, self.name)
        if self.count > 1 and overlaps(self.first_addresses(), self.lengths(), self.version).any():
            raise PlanError(
                f"the prefixes of {self.name} do not ascend, or overlap",
                code="plan.prefixes-overlap",
                where="prefixes",
            )
        object.__setattr__(self, "digest", sha256(self.records).hexdigest())

    @property
    def count(self) -> int:
        """How many prefixes there are."""
        return len(self.records) // (WIDTH[self.version] // 8 + 1)

    @property
    def address_count(self) -> int:
        """All addresses of all prefixes, those of networks and broadcasts among them."""
        width = WIDTH[self.version]
        return sum(count << (width - length) for length, count in self.length_counts().items())

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Network as an integer, and prefix length."""
        if self.version == 4:
            yield from struct.iter_unpack(">IB", self.records)
        else:
            for high, low, length in struct.iter_unpack(">QQB", self.records):
                yield high << 64 | low, length

    def texts(self) -> Iterator[str]:
        """`198.18.0.0/24`."""
        octets, family = WIDTH[self.version] // 8, FAMILY[self.version]
        for network, length in struct.iter_unpack(f">{octets}sB", self.records):
            yield f"{socket.inet_ntop(family, network)}/{length}"

    def as_networks(self) -> Iterator[Network]:
        """As objects of `ipaddress`; for a few."""
        return (ipaddress.ip_network(text) for text in self.texts())

    def first_addresses(self) -> Addresses:
        """The first address of each prefix: its network."""
        return unpacked(self._rows()[:, :-1].tobytes(), self.version)

    def lengths(self) -> NDArray[np.uint8]:
        """The length of each prefix."""
        return self._rows()[:, -1]

    def length_counts(self) -> dict[int, int]:
        """How many prefixes there are of each length that occurs, ascending."""
        counts = np.bincount(self.lengths())
        return {length: int(count) for length, count in enumerate(counts) if count}

    def find(self, address: Address) -> int | None:
        """Number of the prefix, counted from 0, in which this address lies; None if there is none."""
        if address.version != self.version:
            return None
        number = self._count_up_to(address) - 1
        if number < 0:
            return None
        octets = WIDTH[self.version] // 8
        record = self.records[number * (octets + 1) :][: octets + 1]
        open_bits = WIDTH[self.version] - record[-1]
        is_inside = int.from_bytes(record[:-1], "big") >> open_bits == int(address) >> open_bits
        return number if is_inside else None

    def _count_up_to(self, address: Address) -> int:
        """How many prefixes begin at or before this address. As octets: network order is numeric order."""
        octets = WIDTH[self.version] // 8
        below, above = 0, self.count
        while below < above:
            middle = (below + above) // 2
            at = middle * (octets + 1)
            if self.records[at : at + octets] <= address.packed:
                below = middle + 1
            else:
                above = middle
        return below

    def overlapping(self, network: Network) -> str | None:
        """The first prefix that overlaps this network, as text; None if none does."""
        if network.version != self.version:
            return None
        found = self.find(network.network_address)
        if found is None and self._count_up_to(network.broadcast_address) > (
            before := self._count_up_to(network.network_address)
        ):
            found = before
        return None if found is None else next(self.single(found).texts())

    def overlap_with(self, other: PrefixSet) -> tuple[str | None, str]:
        """The first prefix that overlaps one of the other set, and that one, as texts; None if none does."""
        if other.version != self.version:
            return None, ""
        mine, others = self.first_addresses(), other.first_addresses()
        first = Addresses(*(np.concatenate(pair) for pair in zip(mine, others, strict=True)))
        lengths = np.concatenate((self.lengths(), other.lengths()))
        order = np.lexsort((lengths, first.low, first.high))
        clashes = np.flatnonzero(overlaps(first.part(order), lengths[order], self.version))
        if not len(clashes):
            return None, ""
        pair = sorted(int(order[int(clashes[0]) + step]) for step in (0, 1))
        found, of_other = self.single(pair[0]), other.single(pair[1] - self.count)
        return next(found.texts()), next(of_other.texts())

    def to_document(self) -> dict[str, Any]:
        """For results: what they were, without a million lines."""
        texts = self.texts()
        return {
            "name": self.name,
            "ip_version": self.version,
            "count": self.count,
            "lengths": {str(length): count for length, count in self.length_counts().items()},
            "first": next(texts),
            "last": next(self.single(self.count - 1).texts()),
            "left_out": self.left_out,
            "digest": self.digest,
        }

    def single(self, index: int) -> PrefixSet:
        """The set of this one prefix; IndexError if there is none of this number."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        octets = WIDTH[self.version] // 8 + 1
        return PrefixSet(
            version=self.version, name=self.name, records=self.records[index * octets :][:octets]
        )

    def _rows(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.records, dtype=np.uint8).reshape(self.count, -1)


def pack_prefixes(
    name: str, version: IpVersion, first: Addresses, lengths: NDArray[np.uint8] | bytes, *, left_out: int = 0
) -> PrefixSet:
    """The set of these prefixes, which ascend."""
    octets = WIDTH[version] // 8
    if isinstance(lengths, bytes):
        lengths = np.frombuffer(lengths, dtype=np.uint8)
    rows = np.empty((len(lengths), octets + 1), dtype=np.uint8)
    rows[:, :octets] = first.packed(version)
    rows[:, octets] = lengths
    return PrefixSet(version=version, name=name, records=rows.tobytes(), left_out=left_out)


def too_many_prefixes(version: IpVersion, name: str) -> PlanError:
    most = MOST_PREFIXES[version]
    return PlanError(
        f"{name} has more than {most:,} IPv{version} prefixes",
        code="plan.too-many-prefixes",
        where="prefixes",
        next_step=f"Use at most {most:,}.",
    )
