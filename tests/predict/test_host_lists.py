# SPDX-License-Identifier: Apache-2.0
"""Hosts of lists: the histogram of what they contribute to a hash, against every host hashed by itself."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.plan import BOTH_DIRECTIONS, IpVersion, make_own_plan, make_prefixes
from evenhand.plan.prefixes import WIDTH, Addresses, last_addresses
from evenhand.predict import (
    VERIFICATION_KEY,
    DeviceModel,
    doubling_series,
    has_listed_hosts,
    predict,
    smallest_even_hosts,
)
from evenhand.predict.flow_fields import key_window, walsh_hadamard
from evenhand.predict.host_lists import ListField
from tests.predict.plans import FEW_DESTINATION_PORTS, FEW_SOURCE_PORTS, brute_force

KEY = VERIFICATION_KEY + bytes(range(40))
Range = tuple[int, int]
MODELS = (
    DeviceModel(elements=5, hash_type="type1"),
    DeviceModel(elements=4, hash_type="type2"),
    DeviceModel(elements=4, hash_type="type2", symmetric=True),
)


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
    """IPv4 has no addresses of network and broadcast; as source, destination, and both at once."""
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


OWN: dict[IpVersion, dict[str, Any]] = {
    4: {
        "left": {"dut": "10.0.0.1/24", "gateway": "10.0.0.2", "hosts": ["16.0.0.0/29", "16.1.0.0/29"]},
        "right": {"dut": "10.0.1.1/24", "gateway": "10.0.1.2", "hosts": ["16.2.0.0/30", "16.9.0.8/30"]},
    },
    6: {
        "left": {"dut": "fd00:1::1/64", "gateway": "fd00:1::2", "hosts": ["2a00::/125", "2a01::/125"]},
        "right": {"dut": "fd00:2::1/64", "gateway": "fd00:2::2", "hosts": ["2b00::/127", "2c00::/127"]},
    },
}


@pytest.mark.parametrize("model", MODELS, ids=["type1", "type2", "symmetric"])
@pytest.mark.parametrize("version", [4, 6])
def test_a_plan_of_prefixes_is_predicted_exactly(version: IpVersion, model: DeviceModel) -> None:
    """Every combination of its hosts and ports, hashed by itself."""
    plan = replace(
        make_own_plan(OWN[version], where="own.toml"),
        source_ports=FEW_SOURCE_PORTS,
        destination_ports=FEW_DESTINATION_PORTS,
    )
    assert has_listed_hosts(plan)
    prediction = predict(plan, model)
    assert sum(prediction.counts["forward"]) == prediction.combinations
    for direction in BOTH_DIRECTIONS:
        brute = brute_force(plan, model, direction)
        times = prediction.combinations // sum(brute)
        assert prediction.counts[direction] == tuple(times * count for count in brute)


def test_a_single_host_of_prefixes_is_one_combination() -> None:
    """A series has it first."""
    plan = make_own_plan(OWN[4], where="own.toml")
    points = doubling_series(plan, DeviceModel(elements=4))
    assert [point.combinations for point in points] == [1, 6 * 2 * 2 * 2]
    assert smallest_even_hosts(plan, DeviceModel(elements=4)) is None


def test_addresses_of_one_group_are_those_of_the_list() -> None:
    """`Addresses.number` of a part is that of the whole list."""
    both = Addresses(np.array([0, 1], dtype=np.uint64), np.array([5, 6], dtype=np.uint64))
    assert both.part(np.array([False, True])).number(0) == (1 << 64) + 6


def test_more_hosts_than_a_document_can_count_are_said_as_none() -> None:
    """The number that draws are limited to was said in their place."""
    plan = make_own_plan(
        {
            "left": {
                "dut": "2001:2:0:1000::1/64",
                "gateway": "2001:2:0:1000::2",
                "hosts": ["2001:2:0:1::/64", "2001:2:0:4::/63"],
            },
            "right": {
                "dut": "2001:2:0:9000::1/64",
                "gateway": "2001:2:0:9000::2",
                "hosts": "2001:2:0:8000::2-2001:2:0:8000::d",
            },
        },
        where="edge.toml",
        name="edge",
    )
    found = predict(plan, MODELS[0])
    assert found.host_counts == {"left": 3 * 2**64, "right": 12}
    assert found.to_document()["hosts"] == {"left": None, "right": 12}
