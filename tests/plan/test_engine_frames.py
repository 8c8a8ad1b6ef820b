# SPDX-License-Identifier: Apache-2.0
"""Frames that the real engine makes of every topology: addresses of the set, all of it, right octets and
checksums."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from evenhand.base.errors import HostError
from evenhand.plan import (
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    TOPOLOGIES,
    AddressPlan,
    Direction,
    UdpRange,
    find_topology,
    make_plan,
)
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.plan.host_ranges import as_range
from tests.plan.routed import WITH_PREFIX

pytestmark = pytest.mark.wire
DIRECTIONS: tuple[Direction, Direction] = ("forward", "reverse")


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineSession]:
    try:
        path = find_engine()
    except HostError as error:
        pytest.skip(f"no engine: {error}")
    with EngineSession([path]) as session:
        yield session


def frames_of(
    engine: EngineSession, plan: AddressPlan, direction: Direction, count: int
) -> list[dict[str, Any]]:
    reply = engine.request(
        "frames",
        plan=plan.to_contract(),
        frame_size=plan.smallest_frame_size + 7,
        seed=99,
        direction=direction,
        count=count,
    )
    frames: list[dict[str, Any]] = reply["frames"]
    return frames


def known_directions(name: str) -> tuple[Direction, ...]:
    """What goes back through a DUT that keeps state, it chooses itself."""
    return DIRECTIONS if make_plan(name).nat is None else ("forward",)


@pytest.mark.parametrize(
    ("name", "direction"),
    [(name, direction) for name in (*TOPOLOGIES, *WITH_PREFIX) for direction in known_directions(name)],
)
def test_every_frame_is_of_the_set_and_its_octets_say_so(
    engine: EngineSession, name: str, direction: Direction
) -> None:
    """SEED-03, SEED-04, SEED-31, SEED-32, SEED-36, SEED-47, R2544-38: octets and checksums as another program
    reads them."""
    plan = make_plan(name)
    frames_sent = plan.stream_of(direction).sent
    source, destination = as_range(frames_sent.sources), as_range(frames_sent.destinations)
    layer = IP if frames_sent.ip_version == 4 else IPv6
    for frame in frames_of(engine, plan, direction, 300):
        packet = Ether(bytes.fromhex(frame["octets"]))
        addresses = packet[layer].src, packet[layer].dst
        assert addresses == (frame["source"], frame["destination"])
        assert ipaddress.ip_address(addresses[0]) in source
        assert ipaddress.ip_address(addresses[1]) in destination
        sent = packet[UDP].chksum, packet[IP].chksum if frames_sent.ip_version == 4 else None
        del packet[UDP].chksum
        if frames_sent.ip_version == 4:
            del packet[IP].chksum
        again = Ether(bytes(packet))
        assert sent == (again[UDP].chksum, again[IP].chksum if frames_sent.ip_version == 4 else None)


@pytest.mark.parametrize("name", [*TOPOLOGIES, *WITH_PREFIX])
def test_every_pair_of_a_small_plan_occurs_and_no_other(engine: EngineSession, name: str) -> None:
    """SEED-30, SEED-33, SEED-41: networks x hosts of one side with all of the other, in both directions."""
    topology = find_topology(name)
    assert topology is not None
    hosts, networks = min(topology.most_hosts, 3), min(topology.most_networks or 1, 4)
    plan = topology((hosts, 1), network_counts=(networks, 2 if topology.most_networks else 1))
    for direction in known_directions(name):
        frames_sent = plan.stream_of(direction).sent
        ends = frames_sent.sources, frames_sent.destinations
        expected = {
            (str(a), str(b))
            for a in (
                ends[0].address(h, n) for n in range(ends[0].network_count) for h in range(ends[0].count)
            )
            for b in (
                ends[1].address(h, n) for n in range(ends[1].network_count) for h in range(ends[1].count)
            )
        }
        # 24 pairs at most: the chance that one of them is missing among 1,000 frames is below 10^-17.
        assert {(f["source"], f["destination"]) for f in frames_of(engine, plan, direction, 1000)} == expected


@pytest.mark.parametrize("name", ["nat44", "nat64", "nat66"])
def test_frames_of_connections_have_a_four_tuple_each_and_what_goes_back_is_not_made_up(
    engine: EngineSession, name: str
) -> None:
    """R9693-05. The addresses and ports that the DUT translates to are known in a trial alone."""
    plan = make_plan(
        name, 2, source_ports=UdpRange(first=5000, last=5009), destination_ports=UdpRange(first=1, last=5)
    )
    frames = frames_of(engine, plan, "forward", 200)
    keys = ("source", "destination", "source_port", "destination_port")
    assert len({tuple(frame[key] for key in keys) for frame in frames}) == 200 == 2 * 2 * 10 * 5
    with raises("engine.bad-request", match="200 connections"):
        frames_of(engine, plan, "forward", 201)
    with raises("engine.bad-request", match="translates"):
        frames_of(engine, plan, "reverse", 1)


@pytest.mark.parametrize("name", ["gateway_v4", "direct_v6", "nets_v4_single_host", "nets_v6_gateway"])
def test_a_fixed_source_is_the_first_host_and_destinations_vary(engine: EngineSession, name: str) -> None:
    """SEED-35, R2544-13: random destinations, as RFC 2544 section 12 has them."""
    plan = make_plan(name, fixed_source=True)
    for direction, side in zip(DIRECTIONS, plan.sides, strict=True):
        frames = frames_of(engine, plan, direction, 500)
        assert {f["source"] for f in frames} == {str(side.host_range.first_address)}
        assert len({f["destination"] for f in frames}) > 150


@pytest.mark.parametrize("host_mode", ["fixed", "increment", "decrement"])
@pytest.mark.parametrize("network_mode", ["pseudorandom", "fixed", "increment", "decrement"])
def test_modes_for_comparison_runs_make_the_stated_sequences(
    engine: EngineSession, host_mode: Any, network_mode: Any
) -> None:
    """SEED-40: hosts first, then networks; what is pseudorandom stays so."""
    plan = make_plan("nets_v4_multi_host", 3, networks=4, host_mode=host_mode, network_mode=network_mode)
    found = [
        as_range(plan.left.host_range).find(ipaddress.ip_address(f["source"]))
        for f in frames_of(engine, plan, "forward", 60)
    ]
    hosts, networks = [place[0] for place in found if place], [place[1] for place in found if place]
    assert hosts == {"fixed": [0] * 60, "increment": [0, 1, 2] * 20, "decrement": [2, 1, 0] * 20}[host_mode]
    if network_mode == "pseudorandom":
        assert set(networks) == {0, 1, 2, 3}
        return
    turns = [k if host_mode == "fixed" else k // 3 for k in range(60)]
    assert networks == [{"fixed": 0, "increment": t % 4, "decrement": 3 - t % 4}[network_mode] for t in turns]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "name", ["nets_v4_multi_host", "nets_v4_gateway", "nets_v6_gateway", "nets_v6_direct", "classic_v4"]
)
def test_one_network_number_for_both_addresses_can_be_chosen(
    engine: EngineSession, name: str, direction: Direction
) -> None:
    """SEED-82: with it the third octets (the fourth groups) are equal in every frame; without it they are
    drawn independently."""
    equal = {}
    for is_common in (False, True):
        plan = make_plan(name, networks=16, common_network=is_common)
        frames_sent = plan.stream_of(direction).sent
        source, destination = as_range(frames_sent.sources), as_range(frames_sent.destinations)
        places = [
            (
                source.find(ipaddress.ip_address(f["source"])),
                destination.find(ipaddress.ip_address(f["destination"])),
            )
            for f in frames_of(engine, plan, direction, 2000)
        ]
        networks = [(s[1], d[1]) for s, d in places if s is not None and d is not None]
        assert len(networks) == 2000
        assert {number for pair in networks for number in pair} == set(range(16))
        equal[is_common] = sum(s == d for s, d in networks)
        if plan.left.host_range.count > 1:
            hosts = [(s[0], d[0]) for s, d in places if s is not None and d is not None]
            assert sum(s == d for s, d in hosts) < 100, "hosts stay independent of each other"
    assert equal[True] == 2000
    assert 60 < equal[False] < 200


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "name", ["nets_v4_multi_host", "nets_v4_gateway", "nets_v6_gateway", "nets_v6_direct"]
)
def test_the_source_network_alone_can_be_fixed(
    engine: EngineSession, name: str, direction: Direction
) -> None:
    """SEED-83, R2544-13: random destination networks, the source's network fixed, its hosts varying; each
    direction."""
    plan = make_plan(name, 50, networks=8, fixed_source_network=True)
    frames_sent = plan.stream_of(direction).sent
    source, destination = as_range(frames_sent.sources), as_range(frames_sent.destinations)
    frames = frames_of(engine, plan, direction, 2000)
    sources = [source.find(ipaddress.ip_address(f["source"])) for f in frames]
    destinations = [destination.find(ipaddress.ip_address(f["destination"])) for f in frames]
    assert {place[1] for place in sources if place} == {0}
    assert {place[0] for place in sources if place} == set(range(50))
    assert {place[1] for place in destinations if place} == set(range(8))
    assert None not in sources + destinations


@pytest.mark.parametrize("name", ["gateway_v4", "gateway_v6"])
@pytest.mark.parametrize("is_source_fixed", [False, True])
@pytest.mark.parametrize("is_destination_fixed", [False, True])
def test_ports_are_drawn_or_fixed_whatever_the_addresses_do(
    engine: EngineSession, name: str, is_source_fixed: bool, is_destination_fixed: bool
) -> None:
    """SEED-46, R2544-31, R4814-02, R4814-03: the four combinations, in both directions alike; fixed are
    0xC020 and 7."""
    plan = make_plan(
        name,
        source_ports=CLASSIC_SOURCE_PORT if is_source_fixed else RFC4814_SOURCE_PORTS,
        destination_ports=CLASSIC_DESTINATION_PORT if is_destination_fixed else RFC4814_DESTINATION_PORTS,
    )
    for direction in DIRECTIONS:
        frames = frames_of(engine, plan, direction, 500)
        assert len({f["source"] for f in frames}) > 400
        sources, destinations = {f["source_port"] for f in frames}, {f["destination_port"] for f in frames}
        assert sources == {0xC020} if is_source_fixed else len(sources) > 400
        assert destinations == {7} if is_destination_fixed else len(destinations) > 400
        assert min(sources) >= 1024
        assert max(destinations) <= 49151
