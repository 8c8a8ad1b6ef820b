# SPDX-License-Identifier: Apache-2.0
"""Plans whose translation prefix is the user's."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import jsonschema
import pytest

from evenhand.plan import PlanSide, SideCounts, find_topology, make_mix, make_plan, mix_versions
from evenhand.plan.ranges import HostRange, NetworkRange
from evenhand.plan.translation import network_behind
from tests.errors import raises
from tests.plan.routed import PREFIXES, WITH_PREFIX

CONTRACT = Path(__file__).parents[2] / "contract"


def peers_of(side: PlanSide) -> HostRange:
    assert side.peers is not None
    return side.peers


@pytest.mark.parametrize("name", ["siit", "siit-eam", "nat64"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_ipv4_hosts_lie_behind_the_prefix(name: str, prefix: str) -> None:
    """RFC 6052, 2.2: all hosts, of which the octets count up on both sides of octet 8."""
    plan = make_plan(f"{name}@{prefix}")
    told = plan.translation or plan.nat
    assert told is not None
    assert told.prefix == ipaddress.IPv6Network(prefix)
    embed = make_plan(f"siit-eam@{prefix}").translation
    assert embed is not None
    left, right = plan.sides
    assert peers_of(left).count == right.host_range.count == 65534
    for host in (0, 1, 254, 255, 256, 4711, 65533):
        ipv4 = ipaddress.IPv4Address(str(right.host_range.address(host)))
        assert peers_of(left).address(host) == embed.embed(ipv4)
        assert peers_of(left).find(embed.embed(ipv4)) == (host, 0)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_ipv6_hosts_of_siit_lie_there_too_in_or_out_of_the_benchmarking_block(prefix: str) -> None:
    """RFC 6052: no mapping is needed, and the DUT routes to what lies behind the prefix."""
    plan = make_plan(f"siit@{prefix}")
    told = plan.translation
    assert told is not None
    assert not told.needs_mapping
    (route,) = plan.left.routes
    assert route == told.ipv6_hosts
    for host in (0, 255, 256, 65533):
        ipv4 = ipaddress.IPv4Address(str(peers_of(plan.right).address(host)))
        assert plan.left.host_range.address(host) == told.embed(ipv4)
        assert plan.left.host_range.address(host) in route
        assert peers_of(plan.left).address(host) not in route


@pytest.mark.parametrize(
    ("network", "behind"),
    [
        ("198.18.0.0/16", ("c612::/48", "c6:1200::/56", "0:c612::/64", "0:c6:12::/80", ":c6:1200:0:0/88")),
        ("198.16.0.0/12", ("c610::/44", "c6:1000::/52", "0:c610::/60", "0:c6:10::/76", ":c6:1000:0:0/84")),
        ("198.18.0.7/32", ("c612:7::/64", "c6:1200:7::/80", "0:c612:0:700::/88", "0:c6:12:7::/96", "*")),
    ],
)
def test_a_network_behind_a_prefix_has_octet_8_as_one_of_its_bits(
    network: str, behind: tuple[str, ...]
) -> None:
    """RFC 6052, 2.2."""
    for prefix, wanted in zip(PREFIXES, behind, strict=False):
        if wanted != "*":
            found = network_behind(ipaddress.IPv6Network(prefix), ipaddress.IPv4Network(network))
            assert found == ipaddress.IPv6Network(f"2001:db8:{wanted}")


@pytest.mark.parametrize("name", WITH_PREFIX)
def test_names_are_read_as_people_write_them(name: str) -> None:
    plan = make_plan(name)
    assert plan.name == name
    assert plan == make_plan(name.replace("_", "-").replace("2001:db8::", "2001:0DB8:0::"))
    topology = find_topology(plan.title)
    assert topology is not None
    assert topology.name == name
    jsonschema.validate(
        plan.to_contract(),
        {
            **json.loads((CONTRACT / "request.schema.json").read_text())["$defs"]["plan"],
            "$defs": json.loads((CONTRACT / "request.schema.json").read_text())["$defs"],
        },
    )


def test_the_prefix_of_a_plan_may_be_written_out() -> None:
    assert make_plan("siit@2001:2:0:64::/96") == make_plan("siit")
    assert find_topology("siit@2001:2:0:64::/96") is find_topology("siit")
    assert find_topology("siit@64:ff9b:1::/48") is not None  # RFC 8215
    for name in ("siit@", "siit@2001:db8::/33", "gateway-v6@2001:db8::/32", "siit+gateway-v6", "else@::/96"):
        assert find_topology(name) is None


@pytest.mark.parametrize("plan", ["siit", "siit-eam", "nat64"])
@pytest.mark.parametrize(
    ("prefix", "code", "text"),
    [
        ("", "plan.not-a-prefix", "^''"),
        ("198.18.0.0/16", "plan.not-a-prefix", "'198.18.0.0/16'"),
        ("2001:db8::1/96", "plan.not-a-prefix", "2001:db8::1/96"),
        ("2001:db8::", "plan.wrong-prefix-length", "2001:db8::/128 .*128 bits"),
        ("2001:db8::/44", "plan.wrong-prefix-length", "2001:db8::/44 .*44 bits"),
        ("2001:db8::/80", "plan.wrong-prefix-length", "2001:db8::/80 .*80 bits"),
        ("2001:db8:0:0:ff00::/96", "plan.prefix-bits-not-zero", "2001:db8:0:0:ff00::/96"),
        ("2001:db8:0:0:100::/96", "plan.prefix-bits-not-zero", "2001:db8:0:0:100::/96"),
        ("64:ff9b::/96", "plan.reserved-prefix", "benchmarking block"),
        ("::/96", "plan.reserved-prefix", "no host"),
        ("fe80::/64", "plan.reserved-prefix", "links alone"),
        ("ff0e::/32", "plan.reserved-prefix", "multicast"),
        ("2001:2:0:1000::/64", "plan.networks-overlap", "2001:2:0:1000::/64 of the left side"),
        ("2001:2::/48", "plan.networks-overlap", "the prefix 2001:2::/48"),
    ],
)
def test_prefixes_that_no_translator_can_have_are_refused(
    plan: str, prefix: str, code: str, text: str
) -> None:
    """RFC 6052, 2.2 and 3.1; RFC 4291, 2.5."""
    with raises(code, match=text) as caught:
        make_plan(f"{plan}@{prefix}")
    assert caught.value.next_step


@pytest.mark.parametrize("plan", ["siit-eam", "nat64"])
def test_hosts_of_their_own_do_not_lie_behind_the_prefix(plan: str) -> None:
    with raises("plan.networks-overlap", match="2001:2::/112 of the left side"):
        make_plan(f"{plan}@2001:2::/64")


def test_plans_without_a_prefix_take_none() -> None:
    for plan in ("gateway-v6", "nat44", "nat66"):
        with raises("plan.takes-no-prefix", match=plan) as caught:
            make_plan(f"{plan}@2001:db8::/96")
        assert caught.value.next_step == "Omit it, or use one of: siit, siit-eam, nat64, nat64-masquerade."
    with raises("plan.unknown-name") as unknown:
        make_plan("siitt@2001:db8::/32")
    assert unknown.value.next_step == "Did you mean siit@2001:db8::/32?"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_native_traffic_may_be_beside_it_unless_it_lies_behind_the_prefix(prefix: str) -> None:
    """R8219-05."""
    name = f"siit@{prefix}"
    mixed = make_mix(f"{name}+gateway-v6", SideCounts(65536, 65536))
    assert mixed.title == f"{name}+gateway-v6"
    native = make_plan("gateway-v6")
    for wrong in ("2001:2:0:8000::/64", "2001:2:0:8000::/56", "2001:2:0:9000::/96"):
        for plans in ((make_plan(f"siit@{wrong}"), native), (native, make_plan(f"siit@{wrong}"))):
            with raises("plan.networks-overlap", match=f"prefix {wrong} "):
                mix_versions(*plans, (1, 1))
    with raises("plan.single-plan-needed"):
        make_plan(f"{name}+gateway-v6")
    with raises("plan.wrong-prefix-length", match="33 bits"):
        make_plan("gateway-v6+siit@2001:db8::/33")


@pytest.mark.parametrize(
    ("base", "offset", "gap", "has_networks"),
    [
        ("2001:db8::", 15, 0, False),
        ("2001:db8::", 14, 1, False),
        ("2001:db8::", 4, 2, False),
        ("2001:db8::", 11, 0, True),
        ("2001:db8::", 12, 1, True),
        ("198.18.0.0", 1, 0, False),
        ("198.18.0.0", 0, 1, False),
        ("198.18.0.0", 3, 0, False),
    ],
)
def test_a_host_number_at_octets_that_it_cannot_have_is_refused(
    base: str, offset: int, gap: int, has_networks: bool
) -> None:
    networks = NetworkRange(offset=6, count=2) if has_networks else None
    with raises("plan.wrong-octets", match=f"octets {offset} and {offset + 1 + gap}"):
        HostRange(
            base=ipaddress.ip_address(base), offset=offset, gap=gap, first=1, count=1, network_range=networks
        )
