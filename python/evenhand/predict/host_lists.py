# SPDX-License-Identifier: Apache-2.0
"""What the hosts of a list of address ranges contribute to a hash: exact, and without looking at each host.

All bits of an address behind its prefix vary freely, so the addresses of one prefix reach a subspace of the
hash's values, shifted by what the network contributes. In the Walsh-Hadamard domain the subspace is a pattern
of zeros that all prefixes of one length have in common, and a shift is a sign: a million prefixes are one
histogram of their networks for each length. A range that is no prefix is several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING, Literal, NamedTuple

from evenhand.base.lazy_import import lazy_import
from evenhand.plan.prefixes import WIDTH, Addresses, unpacked
from evenhand.plan.ranges import IpVersion
from evenhand.predict.flow_fields import Counts, key_window, walsh_hadamard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_import("numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListField:
    """An address of the hash input that is one of several ranges."""

    bit_offsets: tuple[int, ...]
    """Bit offsets at which the address begins; twice with a symmetric hash."""
    version: IpVersion
    entries: bytes = field(repr=False)
    """First and last address of each range, in network order; ascending, without overlaps."""
    choose: Literal["entry", "host"] = "entry"
    """What is equally likely: each range, and each host within it; or each host of all."""

    @property
    def combinations(self) -> int:
        """The sum of the histogram: of how many frames each range or host would get its exact share."""
        return _groups(self).combinations

    def spectrum(self, key: bytes, size: int) -> Counts:
        """Transform of the histogram of what the address contributes to the low bits of the hash.

        Args:
            key: Must reach 32 bits beyond each bit of the address.
            size: A power of two, the number of values that the low bits have.
        """
        return _spectrum(self, key, size)


class _Group(NamedTuple):
    """Ranges with equally many hosts, which are laid out alike."""

    first: Addresses
    last: Addresses
    open_bits: int | None
    """Bits behind the prefix that each of them is; None: they are none."""
    is_inner: bool
    """They are such prefixes without their first and last addresses, those of network and broadcast."""

    @property
    def host_count(self) -> int:
        """The number of addresses of one range."""
        return self.last.number(0) - self.first.number(0) + 1


class _Groups(NamedTuple):
    """All ranges of a field."""

    groups: list[_Group]
    weights: list[int]
    """How often each host of a group counts."""
    combinations: int


# Each number of the transform, and all points of a series, ask for them.
@lru_cache(maxsize=8)
def _groups(of: ListField) -> _Groups:
    ends = unpacked(of.entries, of.version)
    first, last = ends.part(slice(0, None, 2)), ends.part(slice(1, None, 2))
    groups = list(_grouped(first, last, of.version))
    counts = [len(group.first.low) for group in groups]
    if of.choose == "host":
        hosts = sum(count * group.host_count for count, group in zip(counts, groups, strict=True))
        return _Groups(groups, [1] * len(groups), hosts)
    of_range = lcm(*(group.host_count for group in groups))
    return _Groups(groups, [of_range // group.host_count for group in groups], of_range * sum(counts))


def _grouped(first: Addresses, last: Addresses, version: IpVersion) -> Iterator[_Group]:
    low = last.low - first.low
    high = last.high - first.high - (last.low < first.low).astype(np.uint64)
    one = np.uint64(1)
    open_bits = _open_bits(high, low)
    is_prefix = (open_bits >= 0) & (first.high & high == 0) & (first.low & low == 0)
    inner_bits = np.full(len(low), -1)
    if version == 4:
        outer = low + one + one
        inner_bits = _open_bits(high, outer)
        inner_bits[is_prefix | (inner_bits < 2) | ((first.low - one) & outer != 0)] = -1
    for bits in _different(open_bits[is_prefix]):
        chosen = is_prefix & (open_bits == bits)
        yield _Group(first.part(chosen), last.part(chosen), bits, is_inner=False)
    for bits in _different(inner_bits[inner_bits >= 0]):
        chosen = inner_bits == bits
        yield _Group(first.part(chosen), last.part(chosen), bits, is_inner=True)
    others = np.flatnonzero(~is_prefix & (inner_bits < 0))
    sizes = [(int(high[at]), int(low[at])) for at in others]
    for size in sorted(set(sizes)):
        chosen = others[[each == size for each in sizes]]
        yield _Group(first.part(chosen), last.part(chosen), None, is_inner=False)


def _different(numbers: NDArray[np.int64]) -> list[int]:
    return [number for number, count in enumerate(np.bincount(numbers)) if count]


def _open_bits(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of ones if the 128-bit number is ones after zeros, else -1."""
    masks = np.array([(1 << bits) - 1 for bits in range(65)], dtype=np.uint64)
    ones = [np.minimum(np.searchsorted(masks, half), 64) for half in (high, low)]
    is_such = [masks[count] == half for count, half in zip(ones, (high, low), strict=True)]
    of_high, of_low = ones
    whole = is_such[0] & is_such[1] & ((of_high == 0) | (of_low == 64))
    return np.where(whole, of_high + of_low, -1)


# A series over hosts or routes of one side asks for the other's again and again.
@lru_cache(maxsize=16)
def _spectrum(of: ListField, key: bytes, size: int) -> Counts:
    hasher = _Hasher(key, of.bit_offsets, of.version, size)
    groups = _groups(of)
    # Blocks that are taken away again are larger than what is left of them.
    is_small = groups.combinations * size < 2**63 and all(
        each.open_bits is not None for each in groups.groups
    )
    total: Counts = np.zeros(size, dtype=np.int64 if is_small else object)
    for group, weight in zip(groups.groups, groups.weights, strict=True):
        if group.open_bits is None:
            for blocks, open_bits, times in _blocks(group.first, group.last, of.version):
                hasher.add(total, blocks, open_bits, weight * times)
            continue
        one = np.uint64(group.is_inner)
        prefixes = Addresses(group.first.high, group.first.low - one)
        hasher.add(total, prefixes, group.open_bits, weight)
        if group.is_inner:
            hasher.add(total, prefixes, 0, -weight)
            hasher.add(total, Addresses(group.last.high, group.last.low + one), 0, -weight)
    total.flags.writeable = False
    return total


def _blocks(
    first: Addresses, last: Addresses, version: IpVersion
) -> Iterator[tuple[Addresses, int, Literal[1, -1]]]:
    """Prefixes, by the number of bits behind them, that together are these ranges: those of all addresses
    below the last one, without those below the first; and the last one itself."""
    yield last, 0, 1
    times: Literal[1, -1]
    for end, times in ((last, 1), (first, -1)):
        for bit in range(WIDTH[version]):
            masks = [
                np.uint64(each & (1 << 64) - 1) for each in ((1 << bit + 1) - 1 >> 64, (1 << bit + 1) - 1)
            ]
            half, place = (end.high, bit - 64) if bit >= 64 else (end.low, bit)
            chosen = half >> np.uint64(place) & np.uint64(1) != 0
            if chosen.any():
                below = end.part(chosen)
                yield Addresses(below.high & ~masks[0], below.low & ~masks[1]), bit, times


class _Hasher:
    """Adds up transforms of what blocks of addresses contribute to the low bits of a hash."""

    def __init__(self, key: bytes, bit_offsets: Sequence[int], version: IpVersion, size: int) -> None:
        self._version, self._size = version, size
        self._windows = [
            _xor_of(key_window(key, offset + bit) for offset in bit_offsets) & (size - 1)
            for bit in range(WIDTH[version])
        ]
        octets = range(0, len(self._windows), 8)
        self._tables = [_octet_table(self._windows[at : at + 8]) for at in octets]
        self._reached = [np.ones(size, dtype=np.bool_)]
        """By the number of open bits: where the transform of all that they contribute is not zero."""
        for window in reversed(self._windows):
            self._reached.append(self._reached[-1] & _is_even(window, size))

    def add(self, total: Counts, prefixes: Addresses, open_bits: int, weight: int) -> None:
        """The addresses of these prefixes with so many bits behind them, each so many times."""
        octets = prefixes.packed(self._version)
        contributed = self._tables[0][octets[:, 0]]
        for at, table in enumerate(self._tables[1:], start=1):
            contributed ^= table[octets[:, at]]
        counts = np.bincount(contributed, minlength=self._size).astype(np.int64)
        reached = np.flatnonzero(self._reached[open_bits])
        total[reached] += walsh_hadamard(counts)[reached].astype(total.dtype) * (weight << open_bits)


def _xor_of(numbers: Iterable[int]) -> int:
    total = 0
    for number in numbers:
        total ^= number
    return total


def _is_even(contributed: int, size: int) -> NDArray[np.bool_]:
    """Whether the index has an even number of this value's bits: there the value's transform is 1, and -1
    elsewhere."""
    common = np.arange(size, dtype=np.uint32) & np.uint32(contributed)
    for shift in (16, 8, 4, 2, 1):
        common ^= common >> np.uint32(shift)
    is_even: NDArray[np.bool_] = common & np.uint32(1) == 0
    return is_even


def _octet_table(windows: Sequence[int]) -> NDArray[np.uint32]:
    """What each value of an octet contributes."""
    values = np.arange(256, dtype=np.uint32)
    table = np.zeros(256, dtype=np.uint32)
    for bit, window in enumerate(windows):
        table ^= (values >> np.uint32(7 - bit) & np.uint32(1)) * np.uint32(window)
    return table
