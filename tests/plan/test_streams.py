# SPDX-License-Identifier: Apache-2.0
"""What is sent and what arrives: alike for every plan of a router, and unlike where a DUT translates."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from evenhand.base.units import max_theoretical_fps
from evenhand.plan import (
    BOTH_DIRECTIONS,
    CLASSIC_SOURCE_PORT,
    NO_TAGS,
    AddressPlan,
    Direction,
    FrameSize,
    PeerAddresses,
    SideCounts,
    SideName,
    Stream,
    Traffic,
    UdpRange,
    check_plan,
    describe_plan,
    largest_frame,
    make_plan,
    mix_lines,
    mix_versions,
    parse_imix,
    plan_warnings,
    theoretical_fps,
)
from evenhand.predict import DeviceModel, HashType, element_of, neighbor_entries, predict, with_hosts
from evenhand.procedure import Profile, choose_frames
from evenhand.testbed import make_testbed
from tests.errors import raises
from tests.plan.contract_goldens import cases
from tests.plan.translated import translated, translated_direct

G = 1e9


def spans(plan: AddressPlan, direction: Direction) -> list[tuple[int, str, str]]:
    """IP version, first source and first destination: as they are sent, and as they arrive."""
    return [
        (frames.ip_version, str(frames.sources.first_address), str(frames.destinations.first_address))
        for frames in plan.stream_of(direction).ends
    ]


def sizes(stream: Stream) -> list[list[int]]:
    return [list(frames.octets) for frames in stream.ends]


@pytest.mark.parametrize(
    ("name", "plan"), [case for case in cases() if case[1].translation is None and case[1].nat is None]
)
def test_frames_of_a_router_arrive_as_they_are_sent(name: str, plan: AddressPlan) -> None:
    for stream in plan.streams(directions=BOTH_DIRECTIONS):
        assert not stream.is_translated, name
        assert stream.arrives == replace(stream.sent, side=stream.arrives.side)
        assert stream.sent.octets == (plan.smallest_frame_size,)
    assert sum(stream.share for stream in plan.streams(directions=("reverse",))) == 1


def test_a_translator_changes_version_addresses_and_size_in_both_directions() -> None:
    plan = translated(10)
    assert spans(plan, "forward") == [(6, "2001:2::1:2", "64:ff9b::c613:1"), (4, "198.18.0.1", "198.19.0.1")]
    assert spans(plan, "reverse") == [(4, "198.19.0.1", "198.18.0.1"), (6, "64:ff9b::c613:1", "2001:2::1:2")]
    assert sizes(plan.stream_of("forward", 100)) == [[120], [100]]
    assert sizes(plan.stream_of("reverse", 100)) == [[100], [120]]
    assert (plan.versions, plan.version_words) == ((6, 4), "IPv6 (left) and IPv4 (right)")
    assert all(stream.is_translated for stream in plan.streams())
    assert plan.pairs_of("forward") == plan.pairs_of("reverse") == 100


def test_the_smallest_and_the_largest_frame_are_those_that_fit_on_both_sides() -> None:
    """84 octets on the IPv6 side are 64 on the other, which is what is asked for."""
    plan = translated(10)
    assert plan.smallest_frame_size == 64
    assert choose_frames(plan, None) == choose_frames(plan, 64) == (64, None)
    assert choose_frames(plan, 9196) == (9196, None)
    for size in (63, 9197):
        with raises("procedure.frame-size-out-of-range", match="64 to 9196 "):
            choose_frames(plan, size)
    tags: SideCounts = SideCounts(0, 4)
    assert choose_frames(plan, None, tag_octets=tags) == (68, None)


def test_every_size_of_a_sequence_changes() -> None:
    size = parse_imix("imix:AAB:A=84:B=1400")
    assert sizes(translated(10).stream_of("reverse", size)) == [[84, 84, 1400], [104, 104, 1420]]


@pytest.mark.parametrize(
    ("plan", "tags", "direction", "expected"),
    [
        (make_plan("gateway_v4"), (4, 0), "forward", [[100], [96]]),
        (make_plan("gateway_v4"), (4, 0), "reverse", [[100], [104]]),
        (make_plan("gateway_v4"), (4, 8), "forward", [[100], [104]]),
        (translated(10), (4, 0), "forward", [[120], [96]]),
        (translated(10), (4, 0), "reverse", [[100], [124]]),
    ],
)
def test_a_frame_size_counts_the_tags_of_the_side_that_sends(
    plan: AddressPlan, tags: tuple[int, int], direction: Direction, expected: list[list[int]]
) -> None:
    """R5180-09: each link has tags of its own, which are no translation."""
    stream = plan.stream_of(direction, 100, tag_octets=SideCounts(*tags))
    assert sizes(stream) == expected
    assert [frames.tag_octets for frames in stream.ends] == [
        SideCounts(*tags).of(frames.side) for frames in stream.ends
    ]
    assert stream.is_translated == plan.is_translated
    assert largest_frame([stream]) == max(map(max, expected))
    assert largest_frame([stream], has_tags=False) == max(
        octets[0] - frames.tag_octets for octets, frames in zip(expected, stream.ends, strict=True)
    )


@pytest.mark.parametrize(
    ("plan", "tags", "directions", "rates", "octets_and_rate"),
    [
        (make_plan("gateway_v4"), NO_TAGS, BOTH_DIRECTIONS, (G, G), (64, G)),
        (make_plan("gateway_v4"), NO_TAGS, BOTH_DIRECTIONS, (10 * G, G), (64, G)),
        (make_plan("gateway_v4"), NO_TAGS, BOTH_DIRECTIONS, (None, G), (64, G)),
        (make_plan("gateway_v4"), (4, 0), BOTH_DIRECTIONS, (G, G), (68, G)),
        (make_plan("gateway_v4"), (4, 0), ("reverse",), (G, G), (68, G)),
        # The direction alone whose frames become shorter does not pay for the other.
        (make_plan("gateway_v4"), (4, 0), ("forward",), (G, G), (64, G)),
        (make_plan("gateway_v4"), (4, 0), BOTH_DIRECTIONS, (10 * G, G), (64, G)),
        # 60 octets arrive; the engine reckons with the 64 that are sent.
        (make_plan("gateway_v4"), (4, 0), ("forward",), (10 * G, G), (64, G)),
        (translated(10), NO_TAGS, BOTH_DIRECTIONS, (G, G), (84, G)),
        (translated(10), NO_TAGS, ("forward",), (G, G), (84, G)),
        (translated(10), NO_TAGS, BOTH_DIRECTIONS, (10 * G, G), (64, G)),
        (translated(10), NO_TAGS, BOTH_DIRECTIONS, (G, None), (84, G)),
        (translated(10), NO_TAGS, BOTH_DIRECTIONS, (1.2 * G, G), (84, 1.2 * G)),
        (translated(10), NO_TAGS, BOTH_DIRECTIONS, (1.3 * G, G), (64, G)),
    ],
)
def test_the_line_that_is_full_first_limits_the_rate(
    plan: AddressPlan,
    tags: tuple[int, int],
    directions: tuple[Direction, ...],
    rates: tuple[float | None, float | None],
    octets_and_rate: tuple[int, float],
) -> None:
    """R2544-16, of each line for the frames that it carries."""
    octets, rate_bps = octets_and_rate
    of_sides: dict[SideName, float | None] = {"left": rates[0], "right": rates[1]}
    found = theoretical_fps(plan.streams(64, directions, tag_octets=SideCounts(*tags)), of_sides)
    assert found == max_theoretical_fps(rate_bps, octets)


def test_no_line_rate_is_no_limit() -> None:
    assert theoretical_fps(make_plan("gateway_v4").streams(), {"left": None, "right": None}) is None


def test_the_testbed_and_a_sequence_of_sizes_agree() -> None:
    testbed = make_testbed(
        {
            "isolated_test_environment": True,
            "left": {"device": "net_ring0", "line_rate": "10Gbps"},
            "right": {"device": "net_ring1", "line_rate": "1Gbps", "vlan": 5},
            "tester": {"cpus": [0]},
        },
        where="t",
    )
    size = parse_imix("imix:AAB:A=84:B=1400")
    streams = testbed.streams(translated(10), size)
    assert theoretical_fps(streams, testbed.line_rates) == max_theoretical_fps(G, size.mean + 4)


@pytest.mark.parametrize("plans", [("nat44", "gateway_v6"), ("gateway_v4", "nat66")])
def test_a_plan_with_connections_is_in_no_mix(plans: tuple[str, str]) -> None:
    with raises("plan.mix-with-state", match="nat"):
        mix_versions(make_plan(plans[0]), make_plan(plans[1]), (1, 1))


def test_no_address_is_translated_in_one_plan_of_a_mix_and_native_in_the_other() -> None:
    with raises("plan.networks-overlap", match="siit"):
        mix_versions(make_plan("siit"), make_plan("gateway_v4"), (1, 1))
    with raises("plan.networks-overlap", match=r"198\.18\.255\.254 .*gateway-v4"):
        mix_versions(make_plan("gateway_v4"), make_plan("siit"), (1, 1))


def test_a_mix_with_native_background_has_a_stream_for_each_plan() -> None:
    """RFC 8219, 4.4: native IPv6 beside what is translated. The mean of a line is that of both."""
    plan = mix_versions(translated(10), make_plan("gateway_v6", 10), (3, 1))
    streams = plan.streams(100)
    assert [(stream.direction, stream.share, sizes(stream)) for stream in streams] == [
        ("forward", Fraction(3, 4), [[120], [100]]),
        ("forward", Fraction(1, 4), [[100], [100]]),
        ("reverse", Fraction(3, 4), [[100], [120]]),
        ("reverse", Fraction(1, 4), [[100], [100]]),
    ]
    assert plan.smallest_frame_size == 84  # IPv6 on the right, with nothing added
    assert theoretical_fps(streams, {"left": G, "right": G}) == max_theoretical_fps(G, 115)
    assert "3 are IPv6 (left) and IPv4 (right) and 1 are IPv6" in mix_lines(plan, 100)[0]


@pytest.mark.parametrize("size", [64, parse_imix("imix:AAB:A=84:B=1400")])
def test_documents_and_sentences_say_what_is_sent_and_what_arrives(size: FrameSize) -> None:
    """SEED-49."""
    plan = translated(10)
    document = json.loads(json.dumps(describe_plan(plan)))
    assert document["ip_version"] is None
    assert (document["left"]["ip_version"], document["right"]["ip_version"]) == (6, 4)
    assert (document["left"]["added_octets"], document["right"]["added_octets"]) == (20, 0)
    assert document["left"]["peers"]["base"] == "64:ff9b::c613:0"
    assert document["addresses"]["left"]["first"] == "2001:2::1:2"

    profile = Profile(plan=plan, frame_size=size, seed=1, directions=BOTH_DIRECTIONS)
    assert profile.protocol == "UDP over IPv4 and IPv6"
    sent = profile.to_document()["traffic"]["directions"]["reverse"]
    assert (sent["source"]["first"], sent["destination"]["first"]) == ("198.19.0.1", "198.18.0.1")
    assert sent["arrives"]["ip_version"] == 6
    assert sent["arrives"]["source"]["first"] == "64:ff9b::c613:1"
    assert sent["arrives"]["destination"]["last"] == "2001:2::a:2"
    lines = profile.sent_lines
    longer, shorter = ("84", "64") if size == 64 else ("104 to 1420", "84 to 1400")
    assert (
        f"Translated (forward): sent as IPv6, {longer} octets, 2001:2::1:2 .. 2001:2::a:2 to 64:ff9b::c613:1"
        f" .. 64:ff9b::c613:a; arrives as IPv4, {shorter} octets, 198.18.0.1 .. 198.18.0.10 to 198.19.0.1 .."
        " 198.19.0.10."
    ) in lines
    assert any(line.startswith("Translated (reverse): sent as IPv4") for line in lines)
    assert "left 2001:2::1:2 .. 2001:2::a:2, right 198.19.0.1 .. 198.19.0.10" in lines[0]


def test_a_router_s_frames_have_no_such_sentence() -> None:
    profile = Profile(
        plan=make_plan("gateway_v4"), frame_size=64, seed=1, directions=BOTH_DIRECTIONS, vlans={"left": (5,)}
    )
    assert not any("Translated" in line for line in profile.sent_lines)
    assert "arrives" not in profile.to_document()["traffic"]["directions"]["forward"]


@pytest.mark.parametrize("hash_type", ["type1", "type2"])
def test_a_device_hashes_what_is_sent_to_it(hash_type: HashType) -> None:
    """Not what it translates that to: IPv6 on the left, IPv4 on the right."""
    plan = translated(6, source_ports=CLASSIC_SOURCE_PORT, destination_ports=UdpRange(first=7, last=9))
    model = DeviceModel(elements=5, hash_type=hash_type)
    ports = [(0xC020, port) for port in ((7,) if hash_type == "type1" else (7, 8, 9))]
    for direction in BOTH_DIRECTIONS:
        sent = plan.stream_of(direction).sent
        wanted = [0] * model.elements
        for s in range(sent.sources.count):
            for d in range(sent.destinations.count):
                for pair in ports:
                    wanted[
                        element_of(model, sent.sources.address(s), sent.destinations.address(d), pair)
                    ] += 1
        assert predict(plan, model, (direction,)).counts[direction] == tuple(wanted)


def test_a_device_has_the_neighbours_that_it_sends_to() -> None:
    assert neighbor_entries(translated(10)) == 2
    assert neighbor_entries(translated_direct((10, 20)), ("forward",)) == 20
    assert neighbor_entries(translated_direct((10, 20)), ("reverse",)) == 10


def test_the_dut_s_protocols_of_both_sides_are_warned_of() -> None:
    """SEED-06."""
    (warning,) = plan_warnings(translated_direct())
    assert "by Neighbour Discovery and ARP: 65,533 on the left side and 65,533 on the right" in warning


def test_fewer_hosts_are_fewer_on_both_links() -> None:
    for plan in (translated().one_pair(), with_hosts(translated(), 1)):
        assert Traffic(plan=plan).is_one_pair
        assert plan.left.peers is not None
        assert (plan.hosts, plan.left.peers.count) == ((1, 1), 1)


def test_a_plan_of_two_versions_has_no_version_of_its_own() -> None:
    with raises("plan.two-versions", match="IPv6.* IPv4"):
        _ = translated(10).ip_version


def test_the_engine_is_told_what_each_side_has_of_its_own() -> None:
    """RFC 7915: no key where the sides are alike, so that a plan of a router is asked for as ever."""
    asked = translated(10).to_contract()
    assert "ip_version" not in asked
    assert [asked[side]["ip_version"] for side in ("left", "right")] == [6, 4]
    assert [asked[side]["added_octets"] for side in ("left", "right")] == [20, 0]
    assert asked["left"]["peers"]["base"] == "64:ff9b::c613:0"
    assert "peers" not in make_plan("gateway_v6").to_contract()["left"]


@pytest.mark.parametrize(
    ("side", "peers", "code", "named"),
    [
        ("left", None, "plan.peers-missing", "IPv4 .* right .* IPv6 .* left"),
        ("right", None, "plan.peers-missing", "IPv6 .* left .* IPv4 .* right"),
        ("left", PeerAddresses(base="198.19.0.0", offset=2), "plan.address-of-other-version", "IPv4 .* IPv6"),
        ("left", PeerAddresses(base="2001:2::2", offset=12), "plan.peers-overlap-hosts", "2001:2::1:2"),
    ],
)
def test_a_side_that_cannot_address_the_other_is_refused(
    side: SideName, peers: PeerAddresses | None, code: str, named: str
) -> None:
    changed = replace(getattr(translated, side), peers=peers)
    topology = replace(translated, left=changed) if side == "left" else replace(translated, right=changed)
    with raises(code, match=named) as refused:
        topology(10)
    assert refused.value.where == f"plan.{side}"
    check_plan(translated(10))


def test_a_count_for_each_side_is_one_type() -> None:
    plan = make_plan("nets_v4_gateway", (3, 2000 // 8), networks=(4, 5))
    assert (plan.hosts, plan.networks) == ((3, 250), (4, 5))
    assert plan.hosts.times(plan.networks) == (12, 1250)
    assert str(plan.hosts.times(plan.networks)) == "12 x 1,250"
    assert plan.hosts.to_document() == {"left": 3, "right": 250}
    assert (plan.hosts.of("left"), plan.hosts.of("right")) == (3, 250)
    assert Traffic(plan=plan).hosts == plan.hosts
