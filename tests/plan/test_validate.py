# SPDX-License-Identifier: Apache-2.0
"""Plans that contradict themselves are refused, and the message names the clash."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Any

import pytest

from evenhand.plan import (
    AddressPlan,
    HostRange,
    NetworkRange,
    PlanSide,
    SideName,
    UdpRange,
    check_plan,
    make_plan,
)
from tests.errors import raises

ip, interface, network = ipaddress.ip_address, ipaddress.ip_interface, ipaddress.ip_network


def changed(plan: AddressPlan, side: SideName, **fields: Any) -> AddressPlan:
    """The plan with other fields of one side; `hosts_*` are fields of its host range."""
    old: PlanSide = plan.left if side == "left" else plan.right
    of_hosts = {
        name.removeprefix("hosts_"): value for name, value in fields.items() if name.startswith("hosts_")
    }
    of_side = {name: value for name, value in fields.items() if not name.startswith("hosts_")}
    new = replace(old, **of_side, host_range=replace(old.host_range, **of_hosts))
    return replace(plan, left=new) if side == "left" else replace(plan, right=new)


def refusal(plan: AddressPlan, code: str) -> str:
    with raises(code) as caught:
        check_plan(plan)
    return f"{caught.value} | {caught.value.next_step}"


G4, G6 = make_plan("gateway_v4", 100), make_plan("gateway_v6", 100)
D4, D6 = make_plan("direct_v4_net16", 100), make_plan("direct_v6", 100)
N4, M4 = make_plan("nets_v4_gateway"), make_plan("nets_v4_multi_host")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            changed(G4, "left", hosts_base=ip("198.19.0.0")),
            "198\\.19\\.0\\.1 \\.\\. 198\\.19\\.0\\.100 .*198\\.18\\.0\\.0/16",
        ),
        (
            changed(G4, "right", hosts_base=ip("198.18.0.0")),
            "198\\.18\\.0\\.1 \\.\\. 198\\.18\\.0\\.100 .*198\\.19\\.0\\.0/16",
        ),
        (changed(G4, "left", hosts_base=ip("192.18.0.0")), r"outside 198\.18\.0\.0/16.*erratum 423"),
        (changed(G6, "left", hosts_base=ip("2001:200::2")), r"outside 2001:2::/49.*erratum 1752"),
        (changed(G6, "right", hosts_base=ip("2001:2:8000::2")), r"outside 2001:2:0:8000::/49.*2001:2:8000::"),
        (changed(G6, "left", hosts_base=ip("2001:2:0:8000::2")), r"outside 2001:2::/49"),
        (
            changed(
                G6,
                "left",
                hosts_base=ip("2001:2:0:7f80::2"),
                hosts_network_range=NetworkRange(offset=6, count=256),
            ),
            "hosts 2001:2:0:7f80::2 .. 2001:2:0:807f::63:2 .*2001:2::/49",
        ),
    ],
)
def test_hosts_outside_the_block_of_their_side(plan: AddressPlan, message: str) -> None:
    """SEED-03, SEED-04, SEED-24, R2544-37, R5180-01: also the blocks that documents misprint."""
    text = refusal(plan, "plan.outside-benchmarking-block")
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ("plan", "code", "parts"),
    [
        (
            changed(D4, "left", hosts_first=1),
            "plan.host-address-taken",
            ("198.18.0.1", "DUT of the left side"),
        ),
        (changed(D4, "left", hosts_first=0), "plan.host-is-network-address", ("198.18.0.0", "198.18.0.0/16")),
        (
            changed(D4, "right", hosts_first=65436),
            "plan.host-is-broadcast-address",
            ("198.19.255.255", "198.19.0.0/16"),
        ),
        (
            changed(M4, "left", hosts_count=254),
            "plan.host-is-broadcast-address",
            ("198.18.0.255", "198.18.0.0/24"),
        ),
        (
            changed(N4, "right", hosts_first=0),
            "plan.host-is-network-address",
            ("198.19.0.0", "198.19.0.0/24"),
        ),
        (
            changed(D6, "left", dut=(interface("2001:2::5:2/64"),)),
            "plan.host-address-taken",
            ("2001:2::5:2", "DUT of the left side", "hosts 2001:2::2 .. 2001:2::63:2"),
        ),
        (
            changed(G4, "right", dut=(interface("198.18.0.9/24"),), gateway=interface("198.18.0.10/24")),
            "plan.host-address-taken",
            ("198.18.0.9", "DUT of the right side", "198.18.0.1 .. 198.18.0.100"),
        ),
        (changed(G4, "left", gateway=interface("10.0.0.1/24")), "plan.gateway-is-the-dut", ("10.0.0.1",)),
        (
            changed(G4, "left", gateway=interface("10.0.7.2/24")),
            "plan.gateway-not-on-link",
            ("10.0.0.1/24", "10.0.7.2/24"),
        ),
        (
            changed(G4, "right", dut=(interface("10.0.0.1/24"),), gateway=interface("10.0.0.9/24")),
            "plan.networks-overlap",
            ("10.0.0.0/24", "left", "right"),
        ),
        (
            changed(G6, "left", dut=(interface("2001:2::1:1/64"),), gateway=interface("2001:2::1:9/64")),
            "plan.networks-overlap",
            ("host network 2001:2::/64 of the left side", "link 2001:2::/64 of the left side"),
        ),
        (
            changed(N4, "left", routes=N4.left.routes[:255]),
            "plan.hosts-outside-network",
            ("198.18.255.1 .. 198.18.255.254", "255 routes"),
        ),
        (
            changed(M4, "left", dut=M4.left.dut[:1]),
            "plan.hosts-outside-network",
            ("198.18.1.2 .. 198.18.1.254", "the DUT's link 198.18.0.0/24"),
        ),
        (
            changed(N4, "left", routes=(*N4.left.routes, network("198.19.3.0/24"))),
            "plan.networks-overlap",
            ("198.19.3.0/24 of the left", "198.19.3.0/24 of the right"),
        ),
        (changed(G4, "left", routes=()), "plan.hosts-unreachable", ()),
        (changed(D4, "left", routes=(network("198.18.0.0/16"),)), "plan.route-without-gateway", ()),
        (changed(D4, "left", dut=()), "plan.dut-interface-missing", ()),
        (changed(G4, "left", dut=M4.left.dut), "plan.several-dut-interfaces", ("256 DUT interfaces",)),
        (
            changed(G4, "left", gateway=interface("2001:2:0:1000::2/64")),
            "plan.address-of-other-version",
            ("IPv6", "IPv4"),
        ),
        (replace(G4, destination_ports=UdpRange(first=0, last=9)), "plan.port-zero", ()),
    ],
)
def test_clashes_are_named(plan: AddressPlan, code: str, parts: tuple[str, ...]) -> None:
    """SEED-24: host sets are disjoint, exclude DUT, gateway and reserved addresses, and links lie outside the
    host networks."""
    text = refusal(plan, code)
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("length", "accepted"),
    [(48, True), (64, True), (65, False), (112, False), (125, False), (126, True), (127, False)],
)
def test_prefix_lengths_of_ipv6_interfaces(length: int, accepted: bool) -> None:
    """R5180-03."""
    # Above ::1000:: the other side's addresses begin; a /48 needs a block of its own.
    link = "fd00:1:1:1" if length < 64 else "2001:2:0:1000"
    plan = changed(
        G6, "left", dut=(interface(f"{link}::1/{length}"),), gateway=interface(f"{link}::2/{length}")
    )
    if accepted:
        check_plan(plan)
    else:
        text = refusal(plan, "plan.wrong-prefix-length")
        assert f"/{length}" in text
        assert "R5180-03" in text


def test_one_route_may_cover_all_networks() -> None:
    """A DUT with one aggregated route is set up rightly too."""
    check_plan(changed(N4, "left", routes=(network("198.18.0.0/16"),)))


@pytest.mark.parametrize(
    ("fields", "code", "named"),
    [
        (
            {"count": 300, "network_range": NetworkRange(offset=2, count=2)},
            "plan.octet-needed-twice",
            "SEED-34",
        ),
        (
            {"first": 2, "count": 255, "network_range": NetworkRange(offset=2, count=1)},
            "plan.octet-needed-twice",
            "2..256",
        ),
        ({"count": 0}, "plan.count-out-of-range", "0 hosts"),
        ({"first": 65535, "count": 2}, "plan.octets-exceeded", "65535..65536"),
        (
            {"base": ip("198.18.250.0"), "network_range": NetworkRange(offset=2, count=7)},
            "plan.octets-exceeded",
            "198.18.250.0",
        ),
    ],
)
def test_ranges_that_cannot_be_are_refused_when_made(fields: dict[str, Any], code: str, named: str) -> None:
    """SEED-34: networks and 16-bit hosts exclude each other in IPv4."""
    with raises(code) as caught:
        HostRange(**{"base": ip("198.18.0.0"), "offset": 2, "first": 1, "count": 5, **fields})
    assert named in f"{caught.value} | {caught.value.next_step}"


@pytest.mark.parametrize("count", [0, 257])
def test_networks_are_1_to_256(count: int) -> None:
    """SEED-30."""
    with raises("plan.count-out-of-range", match=f"{count} networks"):
        NetworkRange(offset=2, count=count)
