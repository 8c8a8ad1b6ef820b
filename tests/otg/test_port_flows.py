# SPDX-License-Identifier: Apache-2.0
"""Several OTG flows of one port as flows of a plan; what cannot be sent together is refused by its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evenhand.otg.flow_counts import PlanFlows
from evenhand.otg.refusals import OtgError
from evenhand.otg.traffic import OtgTraffic, traffic_of
from evenhand.plan import FieldPattern, cycle_of
from tests.otg.configs import DSCPS, LABEL, SHARES, SIZE, config, devices, document, several

Change = Callable[[dict[str, Any]], None]
VOICE, VIDEO, REST = 0, 1, 2


def read(made: Any, change: Change = lambda found: None, **options: Any) -> OtgTraffic:
    return traffic_of(document(made, change), **options)


def refusals(change: Change, made: Any = None, **options: Any) -> list[str]:
    with pytest.raises(OtgError) as caught:
        read(several() if made is None else made, change, **options)
    assert (caught.value.kind, caught.value.status) == ("validation", 400)
    return caught.value.errors


@pytest.mark.parametrize("version", [4, 6])
def test_flows_of_a_port_are_those_of_the_plan_in_exact_shares(version: int) -> None:
    found = read(several(version))
    assert found.directions == ("forward", "reverse")
    assert [flow.places for flow in found.flows] == [(0,), (1,), (2,)] * 2
    flows = found.plan.flows
    assert [flow.name for flow in flows] == [f"{name} there" for name in SHARES]
    assert [flow.share for flow in flows] == list(SHARES.values())
    assert [flow.dscp for flow in flows] == list(DSCPS.values())
    assert [flow.flow_label for flow in flows] == [0, LABEL if version == 6 else 0, 0]
    assert [flow.destination_port for flow in flows] == [5060, 6000, 6000]
    assert {(flow.source_port, flow.frame_size, flow.loss_at_most) for flow in flows} == {(None, None, None)}
    assert (found.plan.source_ports.first, found.plan.source_ports.last) == (5000, 5000)
    assert found.plan.name == f"gateway_v{version}"
    assert found.rates_of(found.directions) == (1000.0, None)
    assert (found.frame_size, found.duration_s) == (SIZE, 1.0)
    assert [found.mean_octets_of(direction) for direction in found.directions] == [SIZE, SIZE]


@pytest.mark.parametrize(
    ("rates", "shares", "fps"),
    [
        ([{"choice": "mbps", "mbps": "10"}] * 3, (1, 1, 1), 3e7 / 8 / 148),
        (
            [{"choice": "percentage", "percentage": n} for n in (0.1, 12.5, 25.0)],
            (1, 125, 250),
            0.376 * 1e9 / 8 / 148,
        ),
        ([{"choice": "pps", "pps": n} for n in ("333", "333", "334")], (333, 333, 334), 1000),
        (
            [{"choice": "bps", "bps": "1184"}, {"choice": "kbps", "kbps": "1184"}, {"pps": "1"}],
            (1, 1000, 1),
            1002,
        ),
    ],
)
def test_rates_are_exact_shares_of_their_sum(
    rates: list[dict[str, Any]], shares: tuple[int, ...], fps: float
) -> None:
    def change(found: dict[str, Any]) -> None:
        for flow, rate in zip(found["flows"], rates, strict=True):
            flow["rate"], flow["duration"] = rate, {"choice": "continuous"}

    found = read(several(names="there"), change, line_rates_bps={"left": 1e9})
    assert tuple(flow.share for flow in found.plan.flows) == shares
    assert found.rates_of(["forward"])[0] == pytest.approx(fps)
    assert found.duration_s == 86_400


def test_sizes_ports_and_names_of_their_own() -> None:
    """A size in bits has another rate of frames; a name that no plan has becomes a number."""

    def change(found: dict[str, Any]) -> None:
        for flow, size in zip(found["flows"], (64, 570, 1518), strict=True):
            flow["size"] = {"choice": "fixed", "fixed": size}
            flow["duration"] = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 2.0}}
        found["flows"][REST]["name"] = "<rest>"
        drawn = {"choice": "random", "random": {"min": 1024, "max": 65535, "count": 10**6}}
        for flow in found["flows"][1:]:
            flow["packet"][2]["udp"]["src_port"] = drawn

    found = read(several(names="there"), change)
    assert found.frame_size == 1518
    assert [flow.frame_size for flow in found.plan.flows] == [64, 570, 1518]
    drawn = FieldPattern(first=1024, count=64512)
    assert [flow.source_port for flow in found.plan.flows] == [5000, drawn, drawn]
    assert [flow.name for flow in found.plan.flows] == ["flow 1", "flow 2", "flow 3"]
    assert [flow.name for flow in found.flows][REST] == "<rest>"
    assert found.mean_octets_of("forward") * 10 == 64 + 3 * 570 + 6 * 1518
    assert found.mean_octets_of("reverse") == 0
    assert found.largest_octets == 1518


@pytest.mark.parametrize(
    ("priority", "dscp", "ecn"),
    [
        ({"choice": "raw", "raw": {"choice": "value", "value": 184}}, 46, 0),
        ({"choice": "raw", "raw": {"choice": "value", "value": 186}}, 46, 2),
        ({"choice": "dscp", "dscp": {"phb": {"choice": "value", "value": 63}}}, 63, 0),
        ({"choice": "dscp", "dscp": {"phb": {"value": 63}, "ecn": {"value": 3}}}, 63, 3),
        ({"choice": "dscp", "dscp": {"ecn": {"choice": "value", "value": 1}}}, 0, 1),
        ({"choice": "tos", "tos": {"precedence": {"value": 7}, "delay": {"value": 1}}}, 60, 0),
        ({"choice": "tos", "tos": {"reliability": {"choice": "value", "value": 1}}}, 1, 0),
        ({"choice": "tos", "tos": {"monetary": {"value": 1}, "unused": {"value": 1}}}, 0, 3),
    ],
)
def test_one_flow_alone_has_marks_too(priority: dict[str, Any], dscp: int, ecn: int) -> None:
    def change(found: dict[str, Any]) -> None:
        found["flows"][0]["packet"][1]["ipv4"]["priority"] = priority

    found = read(config(names=("only",)), change)
    (flow,) = found.plan.flows
    assert (flow.name, flow.share, flow.dscp, flow.ecn) == ("only", 1, dscp, ecn)
    assert found.flows[0].places == ()
    assert read(config(names=("only",))).plan.flows == ()


def test_a_priority_is_that_of_the_tags() -> None:
    made = several(names="there")
    for flow, priority in zip(made.flows, (5, 4, 0), strict=True):
        flow.packet.clear()
        flow.packet.ethernet().vlan().ipv4().udp()
        _, vlan, ip, udp = flow.packet
        vlan.id.value, vlan.priority.value = 100, priority
        ip.src.value, ip.dst.value = "198.18.0.1", "198.19.0.1"
        udp.src_port.value, udp.dst_port.value = 5000, 6000
    found = read(made)
    assert found.vlans == {"left": (100,)}
    assert [flow.vlan_priority for flow in found.plan.flows] == [5, 4, 0]


def test_flows_of_a_port_have_vlans_of_their_own() -> None:
    """The innermost tag of the first flow is that of its side, in which ARP and ND stay."""

    def change(found: dict[str, Any]) -> None:
        inner: list[dict[str, Any]] = [
            {"choice": "value", "value": 100},
            {"choice": "values", "values": [7, 5, 7]},
            {"choice": "increment", "increment": {"start": 200, "step": 2, "count": 3}},
        ]
        for flow, vlan in zip(found["flows"], inner, strict=True):
            outer = {"choice": "vlan", "vlan": {"id": {"choice": "value", "value": 9}}}
            flow["packet"][1:1] = [outer, {"choice": "vlan", "vlan": {"id": vlan}}]

    made = several(names="there")
    found = read(made, change)
    assert found.vlans == {"left": (9, 100)}
    assert [flow.vlan for flow in found.plan.flows] == [
        0,
        FieldPattern(values=(7, 5, 7), mode="increment"),
        FieldPattern(first=200, count=3, step=2, mode="increment"),
    ]

    def unlike(found: dict[str, Any]) -> None:
        change(found)
        found["flows"][2]["packet"][1]["vlan"]["id"]["value"] = 10

    assert refusals(unlike, made)[0].startswith("flows[2].packet: its VLANs (10, 200) are unlike (9, 100)")


@pytest.mark.parametrize("version", [4, 6])
def test_flows_between_devices_have_their_addresses(version: int) -> None:
    made = devices(version)
    again = made.flows[0].clone()
    again.name, again.rate.pps, again.duration.fixed_packets.packets = "more", 6000, 600
    made.flows.append(again)
    made.flows.remove(1)
    found = read(made)
    assert [(flow.name, flow.share) for flow in found.plan.flows] == [("there", 1), ("more", 3)]
    assert len(found.stations) == 2


def set_in(flow: int, *path: Any, to: Any) -> Change:
    def change(found: dict[str, Any]) -> None:
        at: Any = found["flows"][flow]
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = to

    return change


def many(found: dict[str, Any]) -> None:
    first = found["flows"][0]
    found["flows"] = [{**first, "name": f"f{n}"} for n in range(65)]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (many, "flows[64]"),
        (set_in(1, "duration", to={"choice": "continuous"}), "flows[1].duration"),
        (set_in(1, "duration", "fixed_packets", "packets", to=299), "flows[1].duration"),
        (
            set_in(1, "duration", to={"choice": "burst", "burst": {"bursts": 2, "packets": 5}}),
            "flows[1].duration.burst",
        ),
        (
            set_in(1, "size", to={"choice": "increment", "increment": {"start": 64, "end": 66}}),
            "flows[1].size",
        ),
        (
            set_in(1, "packet", 1, "ipv4", "src", to={"choice": "value", "value": "198.18.0.9"}),
            "flows[1].packet",
        ),
        (
            set_in(
                1,
                "packet",
                1,
                "ipv4",
                "src",
                to={
                    "choice": "increment",
                    "increment": {"start": "198.18.0.1", "step": "0.0.0.1", "count": 2},
                },
            ),
            "flows[1].packet[1].ipv4.src",
        ),
        (
            set_in(1, "packet", 2, "udp", "src_port", to={"choice": "values", "values": [5, 6] * 513}),
            "flows[1].packet[2].udp.src_port",
        ),
        (
            set_in(1, "packet", 0, "ethernet", to={"src": {"choice": "value", "value": "02:00:00:00:00:01"}}),
            "flows[1].packet",
        ),
        (set_in(1, "packet", 1, "ipv4", "time_to_live", to={"value": 64}), "flows[1].ipv4.time_to_live"),
        (
            set_in(1, "packet", 1, "ipv4", "priority", to={"raw": {"value": 256}, "choice": "raw"}),
            "flows[1].packet[1].ipv4.priority.raw",
        ),
        (
            set_in(1, "packet", 1, "ipv4", "priority", to={"dscp": {"ecn": {"choice": "value", "value": 4}}}),
            "flows[1].packet[1].ipv4.priority.dscp.ecn",
        ),
        (
            set_in(
                1, "packet", 1, "ipv4", "priority", to={"dscp": {"phb": {"choice": "values", "values": [64]}}}
            ),
            "flows[1].packet[1].ipv4.priority.dscp.phb",
        ),
        (set_in(1, "packet", 1, "ipv4", "protocol", to={"value": 6}), "flows[1].packet[1].ipv4.protocol"),
        (set_in(4, "rate", "pps", to="301"), "flows[4].duration"),
    ],
)
def test_what_flows_of_a_port_cannot_have_is_refused_by_its_key(change: Change, key: str) -> None:
    errors = refusals(change)
    assert any(error.startswith(f"{key}:") for error in errors), errors


def stepping(version: int, *, names: tuple[str, ...] = ("only",), **fields: dict[str, Any]) -> Any:
    """A flow whose fields have these patterns; sizes, UDP ports, and marks by their keys."""
    made = config(version, names=names, hosts=1)
    for flow in made.flows:
        _, ip, udp = flow.packet
        places = {
            "size": flow.size,
            "src_port": udp.src_port,
            "dst_port": udp.dst_port,
            "dscp": ip.priority.dscp.phb if version == 4 else ip.traffic_class,
            "ecn": ip.priority.dscp.ecn if version == 4 else None,
            "flow_label": None if version == 4 else ip.flow_label,
        }
        for name, pattern in fields.items():
            ((choice, inner),) = pattern.items()
            if isinstance(inner, list):
                setattr(places[name], choice, inner)
                continue
            for key, value in inner.items():
                setattr(getattr(places[name], choice), key, value)
    return made


@pytest.mark.parametrize("version", [4, 6])
def test_ports_in_any_order_and_with_any_step_are_those_of_frame_after_frame(version: int) -> None:
    """Frame k has the k-th of each field, and again from the first one after the last."""
    made = stepping(
        version,
        src_port={"values": [5010, 5015, 5010, 5005]},
        dst_port={"decrement": {"start": 6500, "step": 100, "count": 6}},
    )
    found = read(made)
    (flow,) = found.plan.flows
    assert flow.source_port == FieldPattern(values=(5010, 5015, 5010, 5005), mode="increment")
    assert flow.destination_port == FieldPattern(first=6000, count=6, step=100, mode="decrement")
    assert [flow.places for flow in found.flows] == [()]
    back = stepping(version, names=("there", "back"), src_port={"values": [7, 9, 8]})
    assert [flow.source_port for flow in read(back).plan.flows] == [
        FieldPattern(values=(7, 9, 8), mode="increment")
    ]


def test_flows_of_a_port_have_patterns_of_their_own() -> None:
    def change(found: dict[str, Any]) -> None:
        video, rest = found["flows"][1:]
        video["packet"][2]["udp"]["src_port"] = {"choice": "values", "values": [5, 6]}
        phb = {"choice": "increment", "increment": {"start": 8, "step": 8, "count": 3}}
        rest["packet"][1]["ipv4"]["priority"] = {"choice": "dscp", "dscp": {"phb": phb}}

    voice, video, rest = read(several(names="there"), change).plan.flows
    assert [voice.source_port, rest.source_port] == [5000, 5000]
    assert video.source_port == FieldPattern(first=5, count=2, mode="increment")
    assert rest.dscp == FieldPattern(first=8, count=3, step=8, mode="increment")


@pytest.mark.parametrize("version", [4, 6])
def test_sizes_and_marks_step_with_them(version: int) -> None:
    marks = [0, 46, 10] if version == 4 else [0, 46 << 2, 10 << 2]
    made = stepping(
        version, size={"increment": {"start": 100, "end": 150, "step": 50}}, dscp={"values": marks}
    )
    found = read(made)
    assert [(flow.frame_size, flow.dscp) for flow in found.plan.flows] == [
        (100, FieldPattern(values=(0, 10, 46), mode="increment")),
        (150, FieldPattern(values=(46, 0, 10), mode="increment")),
    ]
    assert [found.mean_octets_of("forward"), found.largest_octets, found.frame_size] == [125, 150, 150]
    if version == 6:
        labels = stepping(6, flow_label={"increment": {"start": 5, "step": 7, "count": 3}})
        assert [flow.flow_label for flow in read(labels).plan.flows] == [
            FieldPattern(first=5, count=3, step=7, mode="increment")
        ]


def test_a_range_of_ports_beside_others_is_still_that_of_the_plan() -> None:
    """Its length does not count: it goes on by the numbers of the frames."""
    made = stepping(
        4, src_port={"increment": {"start": 1000, "count": 5000, "step": 1}}, dst_port={"values": [7, 9, 8]}
    )
    found = read(made)
    (flow,) = found.plan.flows
    assert (flow.source_port, flow.destination_port) == (
        None,
        FieldPattern(values=(7, 9, 8), mode="increment"),
    )
    ports = found.plan.source_ports
    assert (ports.first, ports.last, ports.mode) == (1000, 5999, "increment")
    falling = read(stepping(4, src_port={"values": [9, 8, 7]})).plan
    assert (falling.flows, falling.source_ports.mode, falling.source_ports.first) == ((), "decrement", 7)


PORT = "flows[0].packet[2].udp.src_port"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"size": {"increment": {"start": 100, "end": 164, "step": 1}}}, "flows[0].size"),
        ({"src_port": {"increment": {"start": 65535, "step": 1, "count": 2}}}, PORT),
        ({"src_port": {"values": [0, 5]}}, PORT),
        ({"size": {"increment": {"start": 200, "end": 100, "step": 1}}}, "flows[0].size.increment"),
        ({"size": {"increment": {"start": 64, "end": 10**9, "step": 1}}}, "flows[0].size"),
        ({"size": {"random": {"min": 100, "max": 99}}}, "flows[0].size.random"),
        ({"size": {"random": {"min": 63, "max": 99}}}, "flows[0].size"),
        ({"size": {"random": {"min": 64, "max": 65}}, "dscp": {"values": [1, 2]}}, "flows[0].size"),
        ({"dscp": {"values": [*range(64)]}, "ecn": {"values": [0, 1, 2, 3, 0]}}, "flows[0].packet"),
        (
            {"dscp": {"values": [*range(64)]}, "ecn": {"values": [1, *range(4)] * 13}},
            "flows[0].packet[1].ipv4.priority.dscp",
        ),
    ],
)
def test_patterns_that_cannot_be_sent_are_refused_by_their_key(fields: dict[str, Any], key: str) -> None:
    errors = refusals(lambda found: None, stepping(4, **fields))
    assert any(error.startswith(f"{key}:") for error in errors), errors


@pytest.mark.parametrize("version", [4, 6])
def test_directions_that_are_alike_have_the_same_flows_and_others_their_own(version: int) -> None:
    made = stepping(version, names=("there", "back"), src_port={"values": [7, 9, 8]})
    (flow,) = read(made).plan.flows
    assert (flow.direction, flow.source_port) == (None, FieldPattern(values=(7, 9, 8), mode="increment"))
    made.flows[1].packet[2].src_port.values = [7, 8, 10]
    assert [(flow.direction, flow.source_port) for flow in read(made).plan.flows] == [
        ("forward", FieldPattern(values=(7, 9, 8), mode="increment")),
        ("reverse", FieldPattern(values=(7, 8, 10), mode="increment")),
    ]
    made.flows[1].packet[2].src_port.value = 5
    found = read(made)
    assert [flow.source_port for flow in found.plan.flows] == [
        FieldPattern(values=(7, 9, 8), mode="increment"),
        5,
    ]
    assert [flow.destination_port for flow in found.plan.flows] == [None, None]
    assert found.plan.destination_ports.first == 6000


def test_a_direction_can_have_more_flows_than_the_other() -> None:
    def change(found: dict[str, Any]) -> None:
        del found["flows"][4:]
        found["flows"][3]["packet"][1]["ipv4"]["priority"] = {"dscp": {"phb": {"value": 1}}}

    found = read(several(), change)
    assert [(flow.direction, flow.dscp) for flow in found.plan.flows] == [
        *(("forward", dscp) for dscp in DSCPS.values()),
        ("reverse", 1),
    ]
    assert [flow.places for flow in found.flows] == [(0,), (1,), (2,), ()]
    rate_fps, rates = found.rates_of(found.directions)
    assert rate_fps == 1000
    assert rates is not None


def test_shares_that_no_sequence_has_are_refused() -> None:
    def change(found: dict[str, Any]) -> None:
        for flow, pps in zip(found["flows"], ("1", "99999", "1"), strict=True):
            flow["rate"], flow["duration"] = {"choice": "pps", "pps": pps}, {"choice": "continuous"}

    assert refusals(change, several(names="there"))[0].startswith(
        "flows[0].rate: these shares are exact only"
    )


def test_while_it_runs_each_is_counted_by_itself() -> None:
    flows = read(several(names="there")).plan.flows
    counting = PlanFlows(cycle=cycle_of(flows), octets=(100, 200, 300))
    counts = counting.after_so_many(25, (1, 2, 11), (), 1.0)
    assert [each.frames_tx for each in counts] == [
        2 * share + cycle_of(flows)[:5].count(place) for place, share in enumerate(SHARES.values())
    ]
    assert [(each.frames_rx, each.octets_rx, each.rx_fps) for each in counts] == [
        (1, 100, 1),
        (2, 400, 2),
        (11, 3300, 11),
    ]
    assert [each.octets_tx for each in counts] == [
        n * c.frames_tx for n, c in zip((100, 200, 300), counts, strict=True)
    ]
    later = counting.after_so_many(125, (5, 4, 21), counts, 0.5)
    assert [each.tx_fps for each in later] == [20, 60, 120]
    assert [each.rx_fps for each in later] == [8, 4, 20]
    assert not any(each.is_loss_known for each in later)
    assert counting.after_so_many(0, (0, 3, 0), (), 1.0)[1].frames_tx == 3
