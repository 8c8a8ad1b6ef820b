# SPDX-License-Identifier: Apache-2.0
"""Several flows at once: exact shares, evenly spread, from `[[flow]]` tables; refused where they contradict
themselves."""

from __future__ import annotations

import json
from collections import Counter
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.base.errors import EvenhandError
from evenhand.plan import (
    AddressPlan,
    Flow,
    SideCounts,
    check_flow_directions,
    flows_in,
    has_limits,
    make_own_plan,
    mix_lines,
    mix_request,
    parse_imix,
    with_routes,
)
from evenhand.plan.flow_hosts import FlowPrefixes
from evenhand.plan.flows import DSCP_NAMES, flow_cycle
from tests.errors import raises

CONTRACT = Path(__file__).parents[2] / "contract"
V4 = {
    "left": {"dut": "10.0.0.1/24", "gateway": "10.0.0.2", "hosts": "198.18.0.0/16"},
    "right": {"dut": "10.0.1.1/24", "gateway": "10.0.1.2", "hosts": "198.19.0.0/16"},
}
V6 = {
    "left": {"dut": "2001:2:0:1000::1/64", "gateway": "2001:2:0:1000::2", "hosts": "2001:2::/64"},
    "right": {"dut": "2001:2:0:9000::1/64", "gateway": "2001:2:0:9000::2", "hosts": "2001:2:0:8000::/64"},
}


def own(*flows: dict[str, Any], sides: dict[str, Any] | None = None) -> AddressPlan:
    return make_own_plan({**(sides or V4), "flow": list(flows)}, where="edge.toml", name="edge")


@pytest.mark.parametrize(
    ("said", "shares"),
    [
        ([{}, {}, {}], (1, 1, 1)),
        ([{"share": 10}, {"share": 90}], (1, 9)),
        ([{"share": "12.5 %"}, {"share": "87.5%"}], (1, 7)),
        ([{"rate": "250kfps"}, {"rate": "1Mfps"}, {"rate": "1.5fps"}], (500_000, 2_000_000, 3)),
        ([{"rate": "250kfps"}, {"rate": "1Mfps"}], (1, 4)),
    ],
)
def test_shares_are_in_lowest_terms(said: list[dict[str, Any]], shares: tuple[int, ...]) -> None:
    flows = [{"name": f"f{number}", **each} for number, each in enumerate(said)]
    if sum(shares) > 65_536:
        with raises("plan.flow-shares", match="edge.toml: flow.share"):
            own(*flows)
        return
    assert tuple(flow.share for flow in own(*flows).flows) == shares


@pytest.mark.parametrize("shares", [(1,), (1, 9), (3, 5, 7), (1,) * 64, (1, 2, 1000), (30_000, 35_536)])
def test_a_cycle_has_each_share_exactly_and_spreads_it(shares: tuple[int, ...]) -> None:
    cycle = flow_cycle(shares)
    assert Counter(cycle) == {index: share for index, share in enumerate(shares) if share}
    period = len(cycle)
    for index, share in enumerate(shares):
        places = [place for place, of in enumerate(cycle) if of == index]
        gaps = [(b - a) % period or period for a, b in zip(places, places[1:] + places[:1], strict=True)]
        assert max(gaps) <= period / share + len(shares) + 1


def test_flows_that_exchange_their_places_have_exact_shares_in_a_drawn_order() -> None:
    """The others stay where they are without it; each seed has an order of its own."""
    shares, together = (2, 1, 3), flow_cycle((3, 3))
    cycle = flow_cycle(shares, (5, 5, None))
    turns = 65_536 // 6
    assert Counter(cycle) == {index: share * turns for index, share in enumerate(shares)}
    assert [index == 2 for index in cycle] == [index == 1 for index in together] * turns
    drawn = [index for index in cycle if index != 2]
    after_one = Counter(b for a, b in pairwise(drawn) if a == 1)
    assert abs(after_one[1] - sum(after_one.values()) / 3) < 6 * (sum(after_one.values()) * 2 / 9) ** 0.5
    assert flow_cycle(shares, (6, 6, None)) != cycle == flow_cycle(shares, (5, 5, None))
    assert flow_cycle(shares, (None,) * 3) == flow_cycle(shares)
    plan = own({"name": "a", "shuffle": 5, "share": 2}, {"name": "b", "shuffle": 5, "share": 1})
    assert [flow["shuffle"] for flow in plan.to_document()["flows"]] == [5, 5]
    asked = mix_request(plan, 84)["mix"]
    assert asked["cycle"] == list(flow_cycle((2, 1), (5, 5)))
    assert all("shuffle" not in each for each in asked["classes"])
    assert mix_lines(plan, 84) == [
        "Flows: of every 65535 frames of a direction, 43690 of a (order drawn with the seed 5); 21845 of b"
        " (order drawn with the seed 5)."
    ]


@pytest.mark.parametrize(("said", "ecn"), [(2, 2), ("ECT(0)", 2), ("ect(1)", 1), ("CE", 3), ("Not-ECT", 0)])
def test_ecn_is_a_number_or_a_name(said: object, ecn: int) -> None:
    """RFC 3168."""
    plan = own({"name": "a", "ecn": said}, {"name": "b"})
    assert plan.flows[0].ecn == ecn
    classes = mix_request(plan, 84)["mix"]["classes"]
    assert [each.get("ecn") for each in classes] == [ecn or None, None]
    assert ("ECN" in plan.flows[0].words) == (ecn > 0)


def test_the_engine_gets_what_a_flow_says() -> None:
    plan = own(
        {"name": "voice", "share": 1, "dscp": "ef", "destination-port": 5060, "loss-at-most": "0%"},
        {"name": "bulk", "share": 2, "frame_size": 1518, "source-port": 7, "vlan-priority": 1},
    )
    assert mix_request(plan, 84) == {
        "mix": {
            "classes": [
                {
                    "name": "voice",
                    "dscp": 46,
                    "destination_port": 5060,
                    "frame_size": 84,
                    "loss_at_most": 0.0,
                },
                {"name": "bulk", "vlan_priority": 1, "source_port": 7, "frame_size": 1518},
            ],
            "cycle": [1, 0, 1],
        }
    }
    assert has_limits(plan.flows)
    assert "flows" not in plan.to_request()
    assert [flow["name"] for flow in plan.to_document()["flows"]] == ["voice", "bulk"]
    assert plan.streams(84)[0].sent.octets == (1518, 84, 1518)
    assert mix_lines(plan, 84) == [
        "Flows: of every 3 frames of a direction, 1 of voice (DSCP 46, destination port 5060, may lose at"
        " most 0 %); 2 of bulk (VLAN priority 1, source port 7, 1518 octets)."
    ]


def test_a_payload_is_sent_in_front_of_the_tag_and_makes_the_smallest_frame_larger() -> None:
    plan = own({"name": "a", "payload": "48656C6c6f"}, {"name": "b", "frame-size": 128})
    (a, b) = mix_request(plan, 84)["mix"]["classes"]
    assert (a["payload"], "payload" in b) == ("48656c6c6f", False)
    assert plan.smallest_frame_size == 69
    assert plan.flows[0].words == "a (payload of 5 octets)"
    for wrong, text in (("4", "are no octets"), ("", "are no octets"), ("00" * 129, "129 octets"), (7, "7")):
        with pytest.raises(EvenhandError, match=text):
            own({"name": "a", "payload": wrong})
    with pytest.raises(EvenhandError, match="68 octets") as caught:
        own({"name": "a", "payload": "48656c6c6f", "frame-size": 68})
    assert "at least 69" in str(caught.value.next_step)


ONE_WAY: list[dict[str, Any]] = [
    {"name": "calls", "share": 2, "dscp": "EF", "loss-at-most": 0},
    {"name": "down", "share": 4, "direction": "forward", "frame-size": 1518},
    {"name": "up", "share": 6, "direction": "reverse"},
]


@pytest.mark.parametrize("sides", [V4, V6])
def test_directions_can_have_other_flows(sides: dict[str, Any]) -> None:
    plan = own(*ONE_WAY, sides=sides)
    asked = mix_request(plan, 84)
    calls, up = asked["reverse_mix"]["classes"]
    assert (calls["name"], up) == ("calls", {"name": "up", "frame_size": 84})
    assert [each["name"] for each in asked["mix"]["classes"]] == ["calls", "down"]
    assert (Counter(asked["mix"]["cycle"]), Counter(asked["reverse_mix"]["cycle"])) == (
        {0: 1, 1: 2},
        {0: 1, 1: 3},
    )
    assert mix_request(plan, 84, "forward") == {"mix": asked["mix"]}
    assert mix_request(plan, 84, "reverse") == {"mix": asked["reverse_mix"]}
    forward, reverse = plan.streams(84)
    assert [float(each.sent.mean_octets) for each in (forward, reverse)] == [(84 + 2 * 1518) / 3, 84.0]
    assert [each.get("direction") for each in plan.to_document()["flows"]] == [None, "forward", "reverse"]
    assert mix_lines(plan, 84) == [
        "Flows: of every 3 frames of the forward direction, 1 of calls (DSCP 46, may lose at most 0 %); 2 of"
        " down (1518 octets).",
        "Flows: of every 4 frames of the reverse direction, 1 of calls (DSCP 46, may lose at most 0 %); 3 of"
        " up.",
    ]
    schema = json.loads((CONTRACT / "request.schema.json").read_text())
    for mix in asked.values():
        jsonschema.validate(mix, {"$ref": "#/$defs/mix", "$defs": schema["$defs"]})


def test_shares_of_each_direction_add_up() -> None:
    plan = own(
        {"name": "a", "share": "10 %"},
        {"name": "b", "share": "90 %", "direction": "forward"},
        {"name": "c", "share": "90 %", "direction": "reverse"},
    )
    assert [flow.share for flow in flows_in(plan.flows, "reverse")] == [1, 9]
    with raises("plan.flow-shares", match="add up to 10 %"):
        own({"name": "a", "share": "10 %"}, {"name": "b", "share": "90 %", "direction": "forward"})


def test_one_name_may_be_that_of_a_flow_of_each_direction() -> None:
    calls = {"name": "calls", "destination-port": 5060, "direction": "forward", "loss-at-most": 0}
    answers = {**calls, "direction": "reverse", "source-port": 5060}
    assert len(own(calls, answers).flows) == 2
    for other in ({**answers, "loss-at-most": 0.1}, {**answers, "direction": "forward"}):
        with raises("plan.flow-named-twice", match="flow.name"):
            own(calls, other)
    with raises("plan.flow-named-twice", match="flow.name"):
        own(calls, answers, answers)


def test_flows_of_one_direction_are_for_that_direction_alone() -> None:
    plan = own({"name": "a", "direction": "reverse"}, {"name": "b", "direction": "reverse"})
    assert plan.flow_directions == ("reverse",)
    assert mix_request(plan, 84) == mix_request(plan, 84, "reverse")
    check_flow_directions(plan.flows, ["reverse"])
    check_flow_directions((), ["forward", "reverse"])
    with raises("plan.no-flow-of-direction", match="the forward direction"):
        check_flow_directions(plan.flows, ["forward", "reverse"])
    with raises("plan.no-flow-of-direction"):
        mix_request(plan, 84, "forward")


def test_64_flows_may_be_sent_in_each_direction() -> None:
    each = [{"name": f"{way}{n}", "direction": way} for way in ("forward", "reverse") for n in range(64)]
    assert len(own(*each).flows) == 128
    with raises("plan.too-many-flows"):
        own(*each, {"name": "a"})


def test_a_plan_without_flows_is_none() -> None:
    plan = make_own_plan(V4, where="edge.toml", name="edge")
    assert plan.flows == ()
    assert mix_request(plan, 84) == {}
    assert "flows" not in plan.to_document()


def test_names_of_code_points() -> None:
    """RFC 2474, RFC 2597, RFC 3246."""
    named = {name: DSCP_NAMES[name] for name in ("CS1", "CS7", "AF11", "AF23", "AF43", "EF")}
    assert named == {"CS1": 8, "CS7": 56, "AF11": 10, "AF23": 22, "AF43": 38, "EF": 46}


def test_ipv6_flows_have_labels() -> None:
    plan = own({"name": "a", "flow-label": 0xFFFFF}, {"name": "b"}, sides=V6)
    assert plan.flows[0] == Flow(name="a", share=1, flow_label=0xFFFFF)


@pytest.mark.parametrize(
    ("flows", "code", "where"),
    [
        ([{"name": "a", "share": "50 %"}, {"name": "b", "share": "49 %"}], "plan.flow-shares", "flow.share"),
        ([{"name": "a", "share": "50 %"}, {"name": "b", "share": 1}], "plan.flow-shares", "flow.share"),
        ([{"name": "a", "share": 1, "rate": "1kfps"}], "plan.flow-shares", "flow.share"),
        ([{"name": "a", "share": 1}, {"name": "b"}], "plan.flow-shares", "flow.share"),
        ([{"name": "a"}, {"name": "a"}], "plan.flow-named-twice", "flow.name"),
        ([{"name": f"f{n}"} for n in range(65)], "plan.too-many-flows", "flow"),
        ([{"name": "a", "flow-label": 1}], "plan.flow-label-in-ipv4", "flow.flow-label"),
        ([{"name": "a", "dscp": "best"}], "plan.not-a-dscp", "flow.dscp"),
        ([{"name": "a", "dscp": 64}], "plan.not-a-field-value", "flow.dscp"),
        ([{"name": "a", "ecn": 4}], "base.out-of-range", "flow.ecn"),
        ([{"name": "a", "shuffle": -1}], "base.out-of-range", "flow.shuffle"),
        ([{"name": "a", "share": 0}], "plan.not-a-flow-share", "flow.share"),
        ([{"name": "a", "frame-size": 63}], "base.out-of-range", "flow.frame-size"),
        ([{"name": "a", "loss-at-most": "101%"}], "base.out-of-range", "flow.loss-at-most"),
        ([{"name": "a", "colour": "red"}], "base.unknown-key", "flow.colour"),
        ([{"name": "a", "dscp": [46, 64]}], "plan.not-a-field-value", "flow.dscp"),
        ([{"name": "a", "dscp": []}], "plan.not-a-field-pattern", "flow.dscp"),
        ([{"name": "a", "dscp": "46-40"}], "plan.not-a-field-pattern", "flow.dscp"),
        ([{"name": "a", "dscp": {"first": 1}}], "plan.not-a-field-pattern", "flow.dscp"),
        ([{"name": "a", "dscp": {"values": [1], "mode": "any"}}], "plan.not-a-field-pattern", "flow.dscp"),
        ([{"name": "a", "dscp": {"values": [1], "step": 2}}], "plan.not-a-field-pattern", "flow.dscp"),
        (
            [{"name": "a", "source-port": {"first": 1, "last": 4, "step": 2}}],
            "plan.not-a-field-pattern",
            "flow.source-port",
        ),
        (
            [{"name": "a", "source-port": {"first": 65000, "count": 99, "step": 9}}],
            "plan.not-a-field-value",
            "flow.source-port",
        ),
        (
            [{"name": "a", "source-port": {"first": 1, "count": 0}}],
            "plan.not-a-field-pattern",
            "flow.source-port",
        ),
        ([{"name": "a", "flow-label": "0-9"}], "plan.flow-label-in-ipv4", "flow.flow-label"),
        ([{"name": "a", "vlan": 0}], "plan.not-a-field-value", "flow.vlan"),
        ([{"name": "a", "vlan": "4000-4095"}], "plan.not-a-field-value", "flow.vlan"),
        ([{"name": "a", "vlan": "blue"}], "plan.not-a-field-pattern", "flow.vlan"),
        ([{"name": "a", "direction": "both"}], "base.not-one-of", "flow.direction"),
        ([{"name": "a", "left": "198.19.0.1"}], "plan.flow-hosts", "flow.left"),
        ([{"name": "a", "left": "198.18.255.254-198.19.0.5"}], "plan.flow-hosts", "flow.left"),
        ([{"name": "a", "left": ["198.18.0.1", "2001:2::1"]}], "plan.flow-hosts", "flow.left"),
        ([{"name": "a", "right": 5}], "plan.not-a-field-pattern", "flow.right"),
        ([{"name": "a", "right": "198.18.5.0/24"}], "plan.flow-hosts", "flow.right"),
        ([{"name": "a", "right": ["198.19.5.0/24", "2001:2::/64"]}], "plan.mixed-versions", "flow.right"),
        ([{"name": "a", "right": ["198.19.5.0/24", "198.19.5.7"]}], "plan.prefixes-overlap", "flow.right"),
        ([{"name": "a", "right": "198.19.5.1/24"}], "plan.not-a-prefix", "flow.right"),
        ([{"name": "a", "right": ["198.19.5.0/24", 7]}], "plan.flow-hosts", "flow.right"),
        (
            [{"name": "a", "right": "198.19.5.0/30", "dscp": "0-2", "lock-step": ["right", "dscp"]}],
            "plan.lock-step",
            "flow.lock-step",
        ),
        ([{"name": "a", "lock-step": ["dscp", "left"]}], "plan.lock-step", "flow.lock-step"),
        ([{"name": "a", "lock-step": ["colour"]}], "plan.lock-step", "flow.lock-step"),
        ([{"name": "a", "dscp": [1, 2], "lock-step": ["dscp"]}], "plan.lock-step", "flow.lock-step"),
        (
            [{"name": "a", "dscp": [1, 2], "source-port": "1-3", "lock-step": ["dscp", "source-port"]}],
            "plan.lock-step",
            "flow.lock-step",
        ),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(
    flows: list[dict[str, Any]], code: str, where: str
) -> None:
    with raises(code, match=f"edge.toml: {where}"):
        own(*flows)


def test_a_flow_too_small_for_ipv6_is_refused() -> None:
    with raises("plan.flow-too-small", match="edge.toml: flow.frame-size"):
        own({"name": "a", "frame-size": 83}, sides=V6)


def test_flows_and_several_sizes_are_refused() -> None:
    plan = own({"name": "a"}, {"name": "b"})
    with raises("plan.flows-with-imix", match="frame_size"):
        mix_request(plan, parse_imix("imix:aaafg"))


def in_document(flow: dict[str, Any], sides: dict[str, Any] | None = None) -> dict[str, Any]:
    return own({"name": "a", **flow}, sides=sides).flows[0].to_document()


@pytest.mark.parametrize(
    ("key", "said", "asked"),
    [
        ("source-port", "5060-5099", {"first": 5060, "count": 40, "step": 1, "mode": "pseudorandom"}),
        ("source-port", "5060-5099:increment", {"first": 5060, "count": 40, "step": 1, "mode": "increment"}),
        (
            "source-port",
            {"first": 1000, "last": 1990, "step": 10, "mode": "decrement"},
            {"first": 1000, "count": 100, "step": 10, "mode": "decrement"},
        ),
        (
            "source-port",
            {"first": 7, "count": 3},
            {"first": 7, "count": 3, "step": 1, "mode": "pseudorandom"},
        ),
        ("source-port", "0x10-0x1F", {"first": 16, "count": 16, "step": 1, "mode": "pseudorandom"}),
        ("source-port", "80", 80),
        ("dscp", ["EF", "af41", 0], {"values": [46, 34, 0], "mode": "pseudorandom"}),
        ("dscp", "CS1-CS2", {"first": 8, "count": 9, "step": 1, "mode": "pseudorandom"}),
        ("dscp", {"values": [1, "CS1"], "mode": "increment"}, {"values": [1, 8], "mode": "increment"}),
        ("vlan-priority", "0-7:decrement", {"first": 0, "count": 8, "step": 1, "mode": "decrement"}),
        ("vlan", 7, 7),
        ("vlan", ["100", 4094], {"values": [100, 4094], "mode": "pseudorandom"}),
        (
            "vlan",
            {"first": 100, "last": 190, "step": 10},
            {"first": 100, "count": 10, "step": 10, "mode": "pseudorandom"},
        ),
    ],
)
def test_a_field_can_have_several_values(key: str, said: object, asked: object) -> None:
    assert in_document({key: said})[key.replace("-", "_")] == asked


@pytest.mark.parametrize("is_v4", [True, False])
def test_a_flow_can_have_hosts_of_its_own(is_v4: bool) -> None:
    """In IPv6, of a prefix as well, whose hosts are a list of addresses."""
    one, other = ("198.18.0.5", "198.19.0.9") if is_v4 else ("2001:2::5", "2001:2:0:8000:1::9")
    found = in_document(
        {"left": {"first": one, "count": 3, "step": 256, "mode": "increment"}, "right": [other]},
        V4 if is_v4 else V6,
    )
    assert found["left_host"] == {"first": one, "count": 3, "step": 256, "mode": "increment"}
    assert found["right_host"] == {"values": [other], "mode": "pseudorandom"}


PREFIXES: dict[int, tuple[list[str], str, int, str]] = {
    4: (["198.18.9.0/24", "198.18.5.7", "198.18.0.0/30"], "198.18.5.0/24", 256 + 1 + 3, "198.18.0.1"),
    6: (["2001:2::5:0:0/96", "2001:2::7"], "2001:2::/66", (1 << 32) + 1, "2001:2::7"),
}


@pytest.mark.parametrize("version", [4, 6])
def test_a_flow_can_have_all_hosts_of_prefixes(version: int) -> None:
    """Those of them that are hosts of the side: 198.18.0.0 is none."""
    written, single, count, first = PREFIXES[version]
    plan = own(
        {"name": "a", "left": written, "dscp": 1},
        {"name": "b", "left": single},
        sides=V4 if version == 4 else V6,
    )
    one, other = (flow.left for flow in plan.flows)
    assert isinstance(one, FlowPrefixes)
    assert isinstance(other, FlowPrefixes)
    assert (one.host_list.address_count, one.host_list.entry_count) == (count, len(written))
    assert str(one.host_list.first_address) == first
    asked = mix_request(plan, 84)["mix"]
    schema = json.loads((CONTRACT / "request.schema.json").read_text())
    jsonschema.validate(asked, {"$ref": "#/$defs/mix", "$defs": schema["$defs"]})
    listed = asked["classes"][0]["left_host"]["list"]
    assert Path(listed["path"]).read_bytes() == one.host_list.entries
    assert plan.to_document()["flows"][0]["left_host"]["prefixes"] == [str(each) for each in one.prefixes]
    assert f"left hosts {single}" in plan.flows[1].words
    assert plan.has_files
    assert plan.one_pair().flows[0].left is None
    assert not plan.one_pair().has_files


@pytest.mark.parametrize("choose", ["entry", "host"])
def test_a_prefix_of_a_flow_has_a_part_of_each_of_the_sides_prefixes(choose: str) -> None:
    sides = {
        "left": V4["left"],
        "right": {
            "dut": "10.0.1.1/24",
            "gateway": "10.0.1.2",
            "hosts": ["198.19.0.0/24", "198.19.1.0/25", "198.19.4.0/24", "198.19.8.0/24"],
            "choose": choose,
        },
    }
    plan = own({"name": "a", "right": ["198.19.0.128/25", "198.19.1.0/24", "198.19.4.0/22"]}, sides=sides)
    found = plan.flows[0].right
    assert isinstance(found, FlowPrefixes)
    assert found.host_list.choose == choose
    octets = found.host_list.entries
    ends = [str(IPv4Address(octets[at : at + 4])) for at in range(0, len(octets), 4)]
    assert ends == [
        *("198.19.0.128", "198.19.0.254"),
        *("198.19.1.1", "198.19.1.126"),
        *("198.19.4.1", "198.19.4.254"),
    ]
    # In a series over routes, what is used of them; refused where a prefix has nothing of it.
    whole = with_routes(plan, SideCounts(1, 4))
    assert whole.flows == plan.flows
    with raises("plan.flow-hosts", match="routes"):
        with_routes(plan, SideCounts(1, 1))


def test_fields_in_lock_step_say_so() -> None:
    flow = {"dscp": [46, 0], "destination-port": "5060-5061", "lock-step": ["dscp", "destination_port"]}
    found = in_document({**flow, "source-port": [1, 2]})
    assert found["dscp"]["lock_step"]
    assert found["destination_port"]["lock_step"]
    assert "lock_step" not in found["source_port"]


def test_a_flow_says_in_words_what_varies() -> None:
    plan = own(
        {
            "name": "a",
            "left": "198.18.0.5-198.18.0.8:increment",
            "dscp": ["EF", "AF41", 0],
            "source-port": {"first": 1000, "last": 1990, "step": 10},
            "destination-port": list(range(20, 30)),
        }
    )
    assert plan.flows[0].words == (
        "a (left hosts 198.18.0.5 .. 198.18.0.8, increment, DSCP 46, 34 or 0, source port 1000 .. 1990 in"
        " steps of 10, destination port 10 values from 20 to 29)"
    )


def test_one_pair_is_that_of_all_flows() -> None:
    """SEED-02: hosts of a flow's own, and what goes with them in lock-step, are left out."""
    flow = {"name": "a", "left": ["198.18.0.5", "198.18.0.6"], "dscp": [1, 2], "lock-step": ["left", "dscp"]}
    plan = own(flow, {"name": "b"})
    assert plan.with_counts(7).flows == plan.flows
    with raises("plan.flow-hosts", match="hosts"):
        plan.with_counts(5)
    single = plan.one_pair().flows[0]
    assert (single.left, single.lock_step) == (None, ())
    assert single.to_document() == {
        "name": "a",
        "share": 1,
        "dscp": {"values": [1, 2], "mode": "pseudorandom"},
    }


@pytest.mark.parametrize("is_v4", [True, False])
def test_requests_with_patterns_are_those_of_the_contract(is_v4: bool) -> None:
    flow = {
        "dscp": {"first": 0, "count": 64},
        "source-port": [1, 2],
        "left": ["198.18.0.5" if is_v4 else "2001:2::5"],
        "right": {"first": "198.19.0.5" if is_v4 else "2001:2:0:8000::5", "count": 9},
        "vlan": "1-4094",
        "lock-step": [],
    } | ({} if is_v4 else {"flow-label": "0-0xFFFFF"})
    schema = json.loads((CONTRACT / "request.schema.json").read_text())
    asked = mix_request(own({"name": "a", **flow}, sides=V4 if is_v4 else V6), 84)["mix"]
    jsonschema.validate(asked, {"$ref": "#/$defs/mix", "$defs": schema["$defs"]})


@pytest.mark.parametrize("last", ["f", "ff", "9", "FF", "ff:increment"])
def test_a_range_of_ipv6_may_end_in_letters(last: str) -> None:
    """They are no mode."""
    sides = {side: dict(V6[side]) for side in ("left", "right")}
    plan = own({"name": "a", "left": f"2001:2::2-2001:2::{last}"}, sides=sides)
    assert plan.flows is not None
