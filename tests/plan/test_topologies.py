# SPDX-License-Identifier: Apache-2.0
"""The address sets, interfaces, gateways and routes of every topology are those of the draft and of RFC
2544."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from evenhand.plan import (
    BENCHMARKING_BLOCK,
    TOPOLOGIES,
    AddressPlan,
    HostRange,
    SideCounts,
    make_mix,
    make_plan,
)
from evenhand.plan.sides import PRIVATE_BLOCK
from evenhand.plan.translation import Translation
from tests.errors import raises
from tests.plan.host_ranges import as_range
from tests.plan.routed import STATEFUL, TRANSLATED

ip = ipaddress.ip_address
SIDES = ("left", "right")


def enumerate_hosts(hosts: HostRange) -> list[str]:
    return [str(hosts.address(h, n)) for n in range(hosts.network_count) for h in range(hosts.count)]


def v4(side: int, network: int, host: int) -> str:
    return f"198.{18 + side}.{network}.{host}"


def v6(side: int, network: int, host: int) -> str:
    return str(ip((0x2001_0002_0000 << 80) + ((0x8000 * side + network) << 64) + (host << 16) + 2))


WHOLE_16 = {side: [v4(side, word >> 8, word & 0xFF) for word in range(65536)] for side in (0, 1)}
EXPECTED: dict[str, Any] = {
    "direct_v4_net24": lambda side: [v4(side, 0, n) for n in range(2, 255)],
    "direct_v4_net16": lambda side: WHOLE_16[side][2:-1],
    "gateway_v4": lambda side: WHOLE_16[side][1:-1],
    "direct_v6": lambda side: [v6(side, 0, h) for h in range(65536)],
    "gateway_v6": lambda side: [v6(side, 0, h) for h in range(65536)],
    "nets_v4_single_host": lambda side: [v4(side, r, 2) for r in range(256)],
    "nets_v4_multi_host": lambda side: [v4(side, r, n) for r in range(256) for n in range(2, 255)],
    "nets_v4_gateway": lambda side: [v4(side, r, n) for r in range(256) for n in range(1, 255)],
    "classic_v4": lambda side: [v4(side, r, 2) for r in range(65, 255)],
}
"""Whole address sets, built without the code under test. The two of 16,777,216 addresses are looked at in
parts below."""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_enumerated_set_is_that_of_the_tables(name: str) -> None:
    """SEED-10, SEED-11, SEED-12, SEED-13, SEED-15, SEED-16, SEED-31, SEED-36, R2544-38."""
    plan = make_plan(name)
    for number, side in enumerate(plan.sides):
        hosts = enumerate_hosts(as_range(side.host_range))
        assert hosts == EXPECTED[name](number)
        assert side.host_range.address_count == len(set(hosts)) == len(hosts)


@pytest.mark.parametrize("name", ["nets_v6_direct", "nets_v6_gateway"])
def test_ipv6_networks_have_their_number_in_bits_56_to_63(name: str) -> None:
    """SEED-04, SEED-32: 256 networks with 65,536 hosts, all within the first /56 of each half."""
    plan = make_plan(name)
    for number, side in enumerate(plan.sides):
        assert side.host_range.address_count == 16_777_216
        block = ipaddress.ip_network(("2001:2::/56", "2001:2:0:8000::/56")[number])
        for network in range(256):
            for host in (0, 1, 255, 256, 0xABCD, 65535):
                address = side.host_range.address(host, network)
                assert str(address) == v6(number, network, host)
                assert address in block
                assert as_range(side.host_range).find(address) == (host, network)


@pytest.mark.parametrize(
    ("name", "side", "host", "network", "address"),
    [
        ("direct_v4_net16", "left", 0, 0, "198.18.0.2"),
        ("direct_v4_net16", "left", 253, 0, "198.18.0.255"),
        ("direct_v4_net16", "left", 254, 0, "198.18.1.0"),
        ("direct_v4_net16", "left", 65532, 0, "198.18.255.254"),
        ("gateway_v4", "right", 0, 0, "198.19.0.1"),
        ("gateway_v4", "right", 65533, 0, "198.19.255.254"),
        ("direct_v6", "left", 1, 0, "2001:2::1:2"),
        ("gateway_v6", "left", 0xABCD, 0, "2001:2::abcd:2"),
        ("nets_v6_direct", "left", 1, 255, "2001:2:0:ff::1:2"),
        ("gateway_v6", "right", 0xFFFF, 0, "2001:2:0:8000::ffff:2"),
        ("nets_v6_gateway", "right", 0, 1, "2001:2:0:8001::2"),
        ("nets_v6_gateway", "right", 0xFFFF, 255, "2001:2:0:80ff::ffff:2"),
        ("nets_v4_multi_host", "right", 252, 255, "198.19.255.254"),
    ],
)
def test_spot_values(name: str, side: str, host: int, network: int, address: str) -> None:
    """SEED-11, SEED-12, SEED-13, SEED-15, SEED-32; IPv6 in the form of RFC 5952 (R5180-18)."""
    hosts: HostRange = getattr(make_plan(name), side).host_range
    assert str(hosts.address(host, network)) == address
    assert hosts.find(ip(address)) == (host, network)


@pytest.mark.parametrize(
    ("name", "left", "right", "gateways", "routes"),
    [
        ("direct_v4_net24", ["198.18.0.1/24"], ["198.19.0.1/24"], None, None),
        ("direct_v4_net16", ["198.18.0.1/16"], ["198.19.0.1/16"], None, None),
        ("direct_v6", ["2001:2::1/64"], ["2001:2:0:8000::1/64"], None, None),
        (
            "nets_v4_single_host",
            [f"198.18.{r}.1/24" for r in range(256)],
            [f"198.19.{r}.1/24" for r in range(256)],
            None,
            None,
        ),
        (
            "nets_v4_multi_host",
            [f"198.18.{r}.1/24" for r in range(256)],
            [f"198.19.{r}.1/24" for r in range(256)],
            None,
            None,
        ),
        (
            "nets_v6_direct",
            [f"2001:2:0:{r:x}::1/64" for r in range(256)],
            [f"2001:2:0:80{r:02x}::1/64" for r in range(256)],
            None,
            None,
        ),
        (
            "gateway_v4",
            ["10.0.0.1/24"],
            ["10.0.1.1/24"],
            ("10.0.0.2/24", "10.0.1.2/24"),
            (["198.18.0.0/16"], ["198.19.0.0/16"]),
        ),
        (
            "gateway_v6",
            ["2001:2:0:1000::1/64"],
            ["2001:2:0:9000::1/64"],
            ("2001:2:0:1000::2/64", "2001:2:0:9000::2/64"),
            (["2001:2::/64"], ["2001:2:0:8000::/64"]),
        ),
        (
            "nets_v4_gateway",
            ["10.0.0.1/24"],
            ["10.0.1.1/24"],
            ("10.0.0.2/24", "10.0.1.2/24"),
            ([f"198.18.{r}.0/24" for r in range(256)], [f"198.19.{r}.0/24" for r in range(256)]),
        ),
        (
            "nets_v6_gateway",
            ["2001:2:0:1000::1/64"],
            ["2001:2:0:9000::1/64"],
            ("2001:2:0:1000::2/64", "2001:2:0:9000::2/64"),
            (
                [f"2001:2:0:{r:x}::/64" for r in range(256)],
                [f"2001:2:0:{0x8000 + r:x}::/64" for r in range(256)],
            ),
        ),
        (
            "classic_v4",
            ["198.18.1.1/24"],
            ["198.19.1.1/24"],
            ("198.18.1.10/24", "198.19.1.10/24"),
            ([f"198.18.{r}.0/24" for r in range(65, 255)], [f"198.19.{r}.0/24" for r in range(65, 255)]),
        ),
    ],
)
def test_interfaces_gateways_and_routes(
    name: str,
    left: list[str],
    right: list[str],
    gateways: tuple[str, str] | None,
    routes: tuple[list[str], list[str]] | None,
) -> None:
    """SEED-10 .. SEED-17, SEED-19, SEED-31, SEED-32, SEED-36, R2544-38, R5180-04: the DUT's interface
    identifier is ::1 everywhere."""
    plan = make_plan(name)
    assert plan.is_direct == (gateways is None)
    for number, (side, dut) in enumerate(zip(plan.sides, (left, right), strict=True)):
        assert [ipaddress.ip_interface(text) for text in dut] == list(side.dut)
        assert side.gateway == (None if gateways is None else ipaddress.ip_interface(gateways[number]))
        assert side.routes == (
            () if routes is None else tuple(ipaddress.ip_network(text) for text in routes[number])
        )
        assert side.dut_neighbors == (1 if gateways else side.host_range.address_count)
        if plan.ip_version == 6:
            assert {int(interface.ip) & (1 << 64) - 1 for interface in side.dut} == {1}


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("direct_v4_net24", 64_009),
        ("direct_v4_net16", 4_294_574_089),
        ("gateway_v4", 4_294_705_156),
        ("direct_v6", 4_294_967_296),
        ("gateway_v6", 4_294_967_296),
        ("nets_v4_single_host", 65_536),
        ("nets_v4_multi_host", 64_768**2),
        ("nets_v6_direct", 1 << 48),
    ],
)
def test_pairs(name: str, pairs: int) -> None:
    assert make_plan(name).pairs == pairs


@pytest.mark.parametrize(
    ("options", "forward", "reverse"),
    [
        ({}, 30 * 10, 30 * 10),
        ({"fixed_source": True}, 10, 30),
        ({"host_mode": "fixed"}, 6 * 2, 6 * 2),
        ({"network_mode": "fixed"}, 5 * 5, 5 * 5),
        # Both sides step together: networks by lcm(6, 2), hosts each for itself.
        ({"network_mode": "increment"}, 5 * 5 * 6, 5 * 5 * 6),
        ({"host_mode": "increment", "network_mode": "decrement"}, 30, 30),
    ],
)
def test_pairs_are_those_that_occur(options: dict[str, Any], forward: int, reverse: int) -> None:
    """SEED-35, SEED-41: index tied to index leaves few of them."""
    plan = make_plan("nets_v4_multi_host", 5, networks=(6, 2), **options)
    assert (plan.pairs_of("forward"), plan.pairs_of("reverse")) == (forward, reverse)
    assert plan.pairs == forward


def test_the_recommended_forms_come_first_and_every_topology_is_there() -> None:
    """SEED-05."""
    assert list(TOPOLOGIES)[:2] == ["gateway_v4", "gateway_v6"]
    assert set(TOPOLOGIES) == {*EXPECTED, "nets_v6_direct", "nets_v6_gateway", *TRANSLATED, *STATEFUL}
    assert TRANSLATED == ("siit", "siit_eam")
    kinds = ("nat44", "nat64", "nat66")
    assert (*kinds, *(f"{kind}_masquerade" for kind in kinds)) == STATEFUL
    assert all(name == topology.name for name, topology in TOPOLOGIES.items())


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translated_plan_agrees_with_what_its_translator_is_told(name: str) -> None:
    """RFC 6052, RFC 7757: each host has on the other side the address that it is translated to."""
    plan = make_plan(name, (300, 200))
    told = plan.translation
    assert told is not None
    assert plan.left.peers is not None
    assert plan.right.peers is not None
    for host in (0, 1, 199):
        right, seen = plan.right.host_range.address(host), plan.left.peers.address(host)
        assert seen == told.embed(ipaddress.IPv4Address(str(right)))
    for host in (0, 1, 299):
        left, seen = plan.left.host_range.address(host), plan.right.peers.address(host)
        assert int(left) - int(told.ipv6_hosts[0]) == int(seen) - int(told.ipv6_hosts_as_ipv4[0])
    assert told.needs_mapping == (name == "siit_eam")


@pytest.mark.parametrize(
    ("length", "address"),
    [
        (32, "2001:db8:c000:221::"),
        (40, "2001:db8:1c0:2:21::"),
        (48, "2001:db8:122:c000:2:2100::"),
        (56, "2001:db8:122:3c0:0:221::"),
        (64, "2001:db8:122:344:c0:2:2100::"),
        (96, "2001:db8:122:344::192.0.2.33"),
    ],
)
def test_addresses_are_embedded_as_rfc_6052_shows(length: int, address: str) -> None:
    """RFC 6052, 2.4."""
    whole = ipaddress.IPv6Address("2001:db8:122:344::")
    told = Translation(
        prefix=ipaddress.IPv6Network((int(whole) >> (128 - length) << (128 - length), length)),
        ipv6_hosts=ipaddress.IPv6Network("2001:2::/112"),
        ipv6_hosts_as_ipv4=ipaddress.IPv4Network("198.18.0.0/16"),
    )
    assert told.embed(ipaddress.IPv4Address("192.0.2.33")) == ipaddress.IPv6Address(address)


def test_a_prefix_of_another_length_and_unlike_mappings_are_refused() -> None:
    hosts, as_ipv4 = ipaddress.IPv6Network("2001:2::/112"), ipaddress.IPv4Network("198.18.0.0/16")
    with raises("plan.wrong-prefix-length", match="80 bits"):
        Translation(prefix=ipaddress.IPv6Network("2001:2::/80"), ipv6_hosts=hosts, ipv6_hosts_as_ipv4=as_ipv4)
    with raises("plan.host-counts-differ"):
        Translation(
            prefix=ipaddress.IPv6Network("2001:2:0:64::/96"),
            ipv6_hosts=ipaddress.IPv6Network("2001:2::/113"),
            ipv6_hosts_as_ipv4=as_ipv4,
        )


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_hosts_lie_in_the_block_of_their_side(name: str) -> None:
    """SEED-03, SEED-04, R2544-37, R5180-01."""
    plan = make_plan(name)
    for side in plan.sides:
        is_private = plan.nat is not None and side.name == "left" and side.ip_version == 4
        block = PRIVATE_BLOCK if is_private else BENCHMARKING_BLOCK[side.ip_version, side.name]
        assert side.host_range.first_address in block
        assert side.host_range.last_address in block


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_first_hosts_are_those_of_a_smaller_count_and_sides_may_differ(name: str) -> None:
    """SEED-02, SEED-30, SEED-42, R2544-13: from one address pair upwards."""
    topology = TOPOLOGIES[name]
    pair = topology(1, network_counts=1)
    assert pair.pairs == 1
    whole = topology()
    assert [s.host_range.first_address for s in pair.sides] == [
        s.host_range.first_address for s in whole.sides
    ]
    hosts = (min(topology.most_hosts, 7), 1)
    networks = (min(topology.most_networks or 1, 3), 1)
    plan = topology(hosts, network_counts=networks)
    assert [s.host_range.count for s in plan.sides] == list(hosts)
    assert [s.host_range.network_count for s in plan.sides] == list(networks)
    assert len(plan.left.host_networks) == networks[0]
    assert [
        a for a in enumerate_hosts(as_range(plan.left.host_range)) if ip(a) not in whole.left.host_range
    ] == []


def test_a_thousand_hosts_of_figure_2() -> None:
    """SEED-42; among them three .255 and three .0, inner addresses like any other (SEED-12)."""
    hosts = as_range(make_plan("direct-v4-net16", 1000).left.host_range)
    inner = [address for address in enumerate_hosts(hosts) if address.endswith((".0", ".255"))]
    assert inner == [f"198.18.{third}" for third in ("0.255", "1.0", "1.255", "2.0", "2.255", "3.0")]
    assert (str(hosts.first_address), str(hosts.last_address)) == ("198.18.0.2", "198.18.3.233")


@pytest.mark.parametrize("address", ["198.18.0.0", "198.18.0.1", "198.18.255.255", "198.19.0.2", "2001:2::2"])
def test_what_is_no_host_is_not_found(address: str) -> None:
    """SEED-10, SEED-11: the network, the DUT, the broadcast address, the other side, the other family."""
    assert ip(address) not in make_plan("direct_v4_net16").left.host_range


@pytest.mark.parametrize(
    ("address", "is_host"),
    [
        ("2001:2::1", False),
        ("2001:2:0:ff::2", True),
        ("2001:2:0:100::2", False),
        ("2001:2::1:0:2", False),
        ("2001:2:1::2", False),
    ],
)
def test_every_bit_outside_the_numbers_is_fixed(address: str, is_host: bool) -> None:
    """SEED-15, SEED-32."""
    assert (ip(address) in make_plan("nets_v6_direct").left.host_range) == is_host


@pytest.mark.parametrize("index", [(-1, 0), (253, 0), (0, -1), (0, 256)])
def test_indexes_outside_the_range_are_errors(index: tuple[int, int]) -> None:
    with pytest.raises(IndexError):
        make_plan("nets_v4_multi_host").left.host_range.address(*index)


@pytest.mark.parametrize(
    ("name", "hosts", "networks", "code", "named"),
    [
        ("gateway_v4", 65535, None, "plan.count-out-of-range", "1 to 65534"),
        ("gateway_v4", 0, None, "plan.count-out-of-range", "0 hosts"),
        ("gateway_v4", None, 256, "plan.one-network-only", "256 networks"),
        ("direct_v4_net24", None, (1, 2), "plan.one-network-only", "2 networks"),
        ("nets_v4_gateway", 65534, None, "plan.octet-needed-twice", "65534 hosts"),
        ("nets_v4_multi_host", 254, None, "plan.count-out-of-range", "1 to 253"),
        ("nets_v4_single_host", 2, None, "plan.count-out-of-range", "2 hosts"),
        ("nets_v4_gateway", None, 257, "plan.count-out-of-range", "1 to 256"),
        ("nets_v4_gateway", None, (1, 0), "plan.count-out-of-range", "0 networks"),
        ("gateway_v6", None, 2, "plan.one-network-only", "2 networks"),
        ("nets_v6_direct", (1, 65537), None, "plan.count-out-of-range", "65537 hosts"),
        ("classic_v4", None, 191, "plan.count-out-of-range", "1 to 190"),
    ],
)
def test_counts_beyond_a_topology_are_refused(
    name: str, hosts: Any, networks: Any, code: str, named: str
) -> None:
    """SEED-30, SEED-34, SEED-42: among them networks and 16-bit hosts together in IPv4, and what to use
    instead."""
    with raises(code, match=named):
        make_plan(name, hosts, networks=networks)


def test_a_mode_of_networks_needs_networks() -> None:
    with raises("plan.one-network-only", match="gateway-v4"):
        make_plan("gateway_v4", network_mode="fixed")


def test_ipv6_combines_networks_and_16_bit_hosts() -> None:
    """SEED-34."""
    plan = make_plan("nets_v6_gateway", 65536, networks=256)
    assert plan.to_contract()["right"]["hosts"] == {
        "base": "2001:2:0:8000::2",
        "host": {"offset": 12, "first": 0, "count": 65536, "mode": "pseudorandom"},
        "network": {"offset": 6, "count": 256, "mode": "pseudorandom"},
    }


def test_a_direct_plan_has_no_gateway_in_the_contract() -> None:
    left = make_plan("nets_v4_multi_host", 253, networks=(256, 4), network_mode="increment").to_contract()[
        "left"
    ]
    assert left == {
        "dut_address": "198.18.0.1",
        "hosts": {
            "base": "198.18.0.0",
            "host": {"offset": 2, "first": 2, "count": 253, "mode": "pseudorandom"},
            "network": {"offset": 2, "count": 256, "mode": "increment"},
        },
    }


def test_an_unknown_plan_is_answered_with_those_there_are() -> None:
    with raises("plan.unknown-name") as caught:
        make_plan("unheard-of")
    assert all(name.replace("_", "-") in caught.value.next_step for name in TOPOLOGIES)
    with raises("plan.unknown-name") as caught:
        make_plan("gatway_v4")
    assert caught.value.next_step == "Did you mean gateway-v4?"


def test_plans_of_one_topology_are_equal_and_frozen() -> None:
    assert make_plan("nets-v4-gateway") == make_plan("nets_v4_gateway")
    plan: AddressPlan = make_plan("gateway_v4")
    with pytest.raises(AttributeError):
        plan.name = "other"  # type: ignore[misc]


def test_a_mix_by_its_name_has_as_many_hosts_as_each_of_its_plans() -> None:
    """What a lab has kept of itself: 65,536 of one, and the 65,534 that the other has."""
    made = make_mix("gateway_v6+siit", SideCounts(65536, 65536))
    assert [tuple(plan.hosts) for plan in made.plans] == [(65536, 65536), (65534, 65534)]
    assert make_mix("siit") == make_plan("siit")
