# SPDX-License-Identifier: Apache-2.0
"""What a result says was sent is what the frames carry, whatever the plan has: counted in the real engine's
frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.base.errors import HostError
from evenhand.plan import TOPOLOGIES, AddressPlan, Direction, PortMacs, Traffic, UdpRange, make_plan
from evenhand.trial import EngineSession, find_engine
from tests.plan.routed import STATEFUL, TRANSLATED

DIRECTIONS: tuple[Direction, Direction] = ("forward", "reverse")


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineSession]:
    try:
        path = find_engine()
    except HostError as error:
        pytest.skip(f"no engine: {error}")
    with EngineSession([path]) as session:
        yield session


CASES: dict[str, tuple[AddressPlan, str]] = {
    "all": (make_plan("gateway_v4"), "65,534 x 65,534 addresses"),
    "fixed hosts": (make_plan("gateway_v4", host_mode="fixed"), "1 address pair"),
    "fixed hosts, v6": (make_plan("gateway_v6", host_mode="fixed"), "1 address pair"),
    "fixed source": (
        make_plan("nets_v4_single_host", networks=16, fixed_source=True),
        "1 source x 16 destination addresses in 1 x 16 networks",
    ),
    "fixed source, unlike sides": (
        make_plan("nets_v6_gateway", 2, networks=(8, 3), fixed_source=True),
        "forward 1 source x 6 destination addresses in 1 x 3 networks, reverse 1 source x 16 destination"
        " addresses in 1 x 8 networks",
    ),
    "fixed networks": (make_plan("nets_v6_direct", 5, networks=7, network_mode="fixed"), "5 x 5 addresses"),
    "fixed hosts in networks": (
        make_plan("nets_v4_multi_host", 5, networks=7, host_mode="fixed"),
        "7 x 7 addresses in 7 x 7 networks",
    ),
    "one number": (
        make_plan("nets_v6_gateway", 3, networks=4, common_network=True),
        "12 x 12 addresses in 4 x 4 networks (one network number for both addresses; 36 pairs)",
    ),
    "fixed source network": (
        make_plan("nets_v4_gateway", 3, networks=4, fixed_source_network=True),
        "3 source x 12 destination addresses in 1 x 4 networks",
    ),
    "in order": (
        make_plan("gateway_v6", 12, host_mode="increment"),
        "12 x 12 addresses (hosts increment; 12 pairs)",
    ),
    "in order, networks drawn": (
        make_plan("nets_v4_gateway", 3, networks=2, host_mode="decrement"),
        "6 x 6 addresses in 2 x 2 networks (hosts decrement, networks pseudorandom; 12 pairs)",
    ),
    "unlike sides": (make_plan("direct_v6", (4, 1)), "4 x 1 addresses"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_says_how_many_addresses_occur(case: str) -> None:
    """SEED-49, SEED-40: a plan of 65,534 hosts of which one is used is one address pair, and is published as
    one."""
    plan, said = CASES[case]
    assert Traffic(plan=plan).address_words == said


@pytest.mark.wire
@pytest.mark.parametrize("case", [case for case in CASES if case != "all"])
def test_addresses_that_occur_are_those_that_the_engine_sends(engine: EngineSession, case: str) -> None:
    """SEED-49: of every mode, each end and the pairs, in both directions."""
    plan, _ = CASES[case]
    traffic = Traffic(plan=plan).to_document()
    for direction in DIRECTIONS:
        # 256 pairs at most: the chance that one is missing among 8,000 frames is below 10^-10.
        frames = engine.request(
            "frames", plan=plan.to_contract(), frame_size=100, seed=3, direction=direction, count=8000
        )["frames"]
        told = traffic["directions"][direction]
        for role in ("source", "destination"):
            found = {frame[role] for frame in frames}
            assert len(found) == told[role]["addresses"]
            assert {told[role]["first"], told[role]["last"]} <= found
        assert len({(frame["source"], frame["destination"]) for frame in frames}) == told["pairs"]
    assert traffic["is_one_pair"] == all(traffic["directions"][d]["pairs"] == 1 for d in DIRECTIONS)


def test_a_mode_that_is_not_pseudorandom_is_said_not_to_be() -> None:
    """SEED-40, R4814-01: the glossary's word is kept for what is drawn."""
    drawn, ordered = (
        Traffic(plan=make_plan("gateway_v4", 9)),
        Traffic(plan=make_plan("gateway_v4", 9, host_mode="increment")),
    )
    assert drawn.to_document()["is_pseudorandom"]
    assert ", pseudorandom: left" in drawn.lines()[0]
    assert not ordered.to_document()["is_pseudorandom"]
    assert "pseudorandom: left" not in ordered.lines()[0]
    assert "hosts increment" in ordered.lines()[0]


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_lines_hold_all_that_a_report_must_state(name: str) -> None:
    """SEED-36, SEED-49, R4814-01: topology, addresses, ports, seed, gateways, routes and MACs, and whether
    the plan is derived."""
    plan = make_plan(name)
    macs: dict[Any, PortMacs] = {
        "left": PortMacs(tester="02:00:00:00:00:01", dut="02:00:00:00:00:aa"),
        "right": PortMacs(tester="02:00:00:00:00:02", dut=None),
    }
    text = " ".join(Traffic(plan=plan).lines(seed=42, macs=macs))
    for said in (
        plan.title,
        "source 10000-49999" if plan.nat else "source 1024-65535",
        "destination 1-100" if plan.nat else "destination 1-49151",
        "seed 42",
        *(mac.tester for mac in macs.values()),
    ):
        assert said in text
    for side in plan.sides:
        assert str(side.host_range.first_address) in text
        assert str(side.host_range.last_address) in text
        if side.gateway is not None:
            assert str(side.gateway.ip) in text
            assert str(side.routes[-1]) in text
    assert (
        ("derived from Figures 3 and 5" in text)
        == plan.is_derived
        == (name in ("nets_v4_gateway", "nets_v6_gateway", *TRANSLATED, *STATEFUL))
    )
    assert ("no gateways" in text) == plan.is_direct


def test_hosts_with_macs_of_their_own_are_told() -> None:
    """R4814-05, SEED-49."""
    traffic = Traffic(plan=make_plan("direct_v4_net24"))
    assert "drawn from the seed" in traffic.lines(host_macs="pseudorandom")[1]
    assert traffic.to_document(host_macs="pseudorandom")["host_macs"] == "pseudorandom"
    assert Traffic(plan=make_plan("gateway_v4")).to_document()["host_macs"] is None


def test_ports_that_are_fixed_are_one_each() -> None:
    """SEED-46, SEED-49: a range whose mode is fixed sends its first port alone."""
    source, destination = (
        UdpRange(first=1024, last=65535, mode="fixed"),
        UdpRange(first=7, last=7, mode="fixed"),
    )
    traffic = Traffic(plan=make_plan("gateway_v6", source_ports=source, destination_ports=destination))
    assert traffic.udp_ports == "source 1024 (fixed), destination 7 (fixed)"
    assert traffic.to_document()["udp_ports"]["source"] == {"first": 1024, "last": 1024, "mode": "fixed"}
    assert not {"source ports", "destination ports"} & set(traffic.modes)
