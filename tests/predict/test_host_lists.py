# SPDX-License-Identifier: Apache-2.0
"""Hosts of lists: the histogram of what they contribute to a hash, against every host hashed by itself."""

from __future__ import annotations

import ipaddress
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.plan import IpVersion, make_prefixes
from evenhand.plan.prefixes import WIDTH, Addresses, last_addresses
from evenhand.predict import VERIFICATION_KEY
from evenhand.predict.host_lists import ListField
from evenhand.predict.transform import key_window, walsh_hadamard

KEY = VERIFICATION_KEY + bytes(range(40))
Range = tuple[int, int]


def field_of(
    ranges: list[Range],
    version: IpVersion,
    *,
    choose: Literal["entry", "host"] = "entry",
    bit_offsets: tuple[int, ...] = (0,),
) -> ListField:
    octets = WIDTH[version] // 8
    entries = b"".join(end.to_bytes(octets, "big") for ends in ranges for end in ends)
    return ListField(bit_offsets=bit_offsets, version=version, entries=entries, choose=choose)


def histogram(field: ListField, size: int) -> list[int]:
    return [int(count) // size for count in walsh_hadamard(field.spectrum(KEY, size))]


def counted(field: ListField, ranges: list[Range], size: int) -> list[int]:
    """Host by host and bit by bit."""
    counts = [0] * size
    width = WIDTH[field.version]
    for first, last in ranges:
        weight = 1
        if field.choose == "entry":
            assert field.combinations % (len(ranges) * (last - first + 1)) == 0
            weight = field.combinations // len(ranges) // (last - first + 1)
        for host in range(first, last + 1):
            contributed = 0
            for bit in range(width):
                if host >> (width - 1 - bit) & 1:
                    for offset in field.bit_offsets:
                        contributed ^= key_window(KEY, offset + bit)
            counts[contributed & (size - 1)] += weight
    return counts


def of_prefix(text: str) -> Range:
    """The hosts of a prefix, as plans have them."""
    network = ipaddress.ip_network(text)
    inner = int(network.version == 4 and network.prefixlen < 31)
    return int(network.network_address) + inner, int(network.broadcast_address) - inner


PREFIXES: dict[IpVersion, list[str]] = {
    4: ["10.1.2.0/30", "10.1.2.4/31", "10.9.9.9/32", "172.16.0.0/23", "198.18.0.0/24", "198.19.0.0/24"],
    6: ["2001:2::/120", "2001:2:0:1::/121", "2001:2:0:1::ffff/128", "2001:2:0:8000::/118"],
}


@pytest.mark.parametrize("choose", ["entry", "host"])
@pytest.mark.parametrize("version", [4, 6])
def test_hosts_of_prefixes_are_counted_exactly(version: IpVersion, choose: Literal["entry", "host"]) -> None:
    """Of IPv4 without the addresses of network and broadcast; as source, destination, and both at once."""
    ranges = [of_prefix(text) for text in PREFIXES[version]]
    for bit_offsets in ((0,), (WIDTH[version],), (0, WIDTH[version])):
        field = field_of(ranges, version, choose=choose, bit_offsets=bit_offsets)
        for size in (1, 16, 128):
            found = histogram(field, size)
            assert found == counted(field, ranges, size)
            assert sum(found) == field.combinations


@settings(max_examples=25, deadline=None)
@given(
    version=st.sampled_from([4, 6]),
    choose=st.sampled_from(["entry", "host"]),
    sizes=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=6),
    base=st.integers(0, 1),
)
def test_any_ranges_are_counted_exactly(
    version: IpVersion, choose: Literal["entry", "host"], sizes: list[tuple[int, int]], base: int
) -> None:
    """Such as the halves of a link's network around the DUT's address; from the lowest address on, or up to
    the highest."""
    at, ranges = 0, []
    for gap, size in sizes:
        ranges.append((at + gap, at + gap + size - 1))
        at += gap + size
    shift = ((1 << WIDTH[version]) - at) * base
    ranges = [(first + shift, last + shift) for first, last in ranges]
    field = field_of(ranges, version, choose=choose)
    assert histogram(field, 32) == counted(field, ranges, 32)


def test_a_range_over_the_64th_bit_is_counted_exactly() -> None:
    middle = 1 << 64
    ranges = [(middle - 3, middle + 5), (2 * middle - 1, 2 * middle)]
    field = field_of(ranges, 6)
    assert histogram(field, 64) == counted(field, ranges, 64)


@pytest.mark.parametrize("version", [4, 6])
def test_a_million_prefixes_keep_every_host_of_theirs(version: IpVersion) -> None:
    """Whole numbers throughout: IPv6 has 10^24 hosts in a prefix."""
    first_address = ipaddress.ip_address("1.0.0.0" if version == 4 else "2000::")
    prefixes = make_prefixes(1_000_000 if version == 4 else 200_000, "internet", first=first_address)
    first, of_length = prefixes.first_addresses(), prefixes.lengths()
    last = last_addresses(first, of_length, version)
    ends = np.concatenate([each.packed(version) for each in (first, last)], axis=1)
    field = ListField(bit_offsets=(0,), version=version, entries=ends.tobytes())
    found = histogram(field, 512)
    assert sum(found) == field.combinations
    assert min(found) > 0
    hosts = 1 << (WIDTH[version] - int(of_length.min()))
    assert field.combinations == prefixes.count * hosts
    of_some = ListField(bit_offsets=(0,), version=version, entries=ends[::1000].tobytes())
    assert histogram(of_some, 512) != found


def test_addresses_of_one_group_are_those_of_the_list() -> None:
    """`Addresses.number` of a part is that of the whole list."""
    both = Addresses(np.array([0, 1], dtype=np.uint64), np.array([5, 6], dtype=np.uint64))
    assert both.part(np.array([False, True])).number(0) == (1 << 64) + 6
