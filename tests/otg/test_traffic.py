# SPDX-License-Identifier: Apache-2.0
"""What of an OTG configuration is sent, and that everything else is refused by its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from evenhand.otg.refusals import HONOURED, OtgError
from evenhand.otg.server import Places
from evenhand.otg.traffic import LONGEST_S, OtgTraffic, traffic_of
from evenhand.otg.transmission import as_it_was_sent
from evenhand.plan import SideName
from tests.docs.documents import table_rows
from tests.errors import raises
from tests.otg.configs import SIZE, STARTS, config, document

Change = Callable[[dict[str, Any]], None]


def custom(octets: str) -> dict[str, Any]:
    return {"choice": "custom", "custom": {"bytes": octets}}


def refusals(change: Change, **options: Any) -> list[str]:
    with pytest.raises(OtgError) as caught:
        traffic_of(document(config(), change), **options)
    assert (caught.value.kind, caught.value.status) == ("validation", 400)
    return caught.value.errors


@pytest.mark.parametrize("version", [4, 6])
def test_flows_of_both_directions_are_the_plan_with_these_addresses(version: int) -> None:
    found = traffic_of(document(config(version)))
    assert found.plan.name == f"gateway_v{version}"
    assert [str(side.host_range.first_address) for side in found.plan.sides] == list(STARTS[version])
    assert [side.host_range.count for side in found.plan.sides] == [4, 4]
    assert {side.host_range.mode for side in found.plan.sides} == {"increment"}
    assert (found.plan.source_ports.first, found.plan.source_ports.last) == (5000, 5000)
    assert (found.plan.destination_ports.first, found.plan.destination_ports.last) == (6000, 6000)
    assert (found.frame_size, found.duration_s) == (SIZE, 0.1)
    assert {(flow.rate_fps, flow.packets) for flow in found.flows} == {(2000.0, 200)}
    assert found.directions == ("forward", "reverse")
    assert [(flow.port_tx, flow.port_rx) for flow in found.flows] == [("p1", "p2"), ("p2", "p1")]


@pytest.mark.parametrize("version", [4, 6])
def test_one_flow_between_one_pair_is_one_direction(version: int) -> None:
    made = config(version, hosts=1, names=("only",))
    found = traffic_of(document(made))
    assert found.directions == ("forward",)
    assert found.plan.pairs == 1


def test_the_plan_of_the_dut_is_taken_where_several_have_these_addresses() -> None:
    name = "direct-v4-net24"
    plan = traffic_of(document(config(names=("only",), hosts=1)), plans=("gateway-v4",)).plan
    assert plan.name == "gateway_v4"
    errors = None
    try:
        traffic_of(document(config(names=("only",), hosts=1)), plans=(name,))
    except OtgError as error:
        errors = error.errors
    assert errors is not None
    assert f"the nearest, {name}" in errors[0]


def flow_of(found: dict[str, Any], number: int = 0) -> dict[str, Any]:
    flow: dict[str, Any] = found["flows"][number]
    return flow


@pytest.mark.parametrize(
    ("rate", "line_bps", "fps"),
    [
        ({"choice": "pps", "pps": "7"}, None, 7.0),
        ({"choice": "bps", "bps": str((SIZE + 20) * 8 * 5)}, None, 5.0),
        ({"choice": "mbps", "mbps": "1184"}, None, 1e6),
        ({"choice": "gbps", "gbps": 1}, None, 1e9 / 1184),
        ({"choice": "percentage", "percentage": 50}, 1e9, 5e8 / 1184),
    ],
)
def test_bits_are_those_on_the_wire(rate: dict[str, Any], line_bps: float | None, fps: float) -> None:
    """OTG's least rate of 672 bit/s is one frame of 64 octets with preamble and gap."""

    def change(found: dict[str, Any]) -> None:
        for flow in found["flows"]:
            flow |= {"rate": rate, "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 9}}}

    traffic = traffic_of(document(config(), change), line_rates_bps={"left": line_bps, "right": line_bps})
    assert traffic.flows[0].rate_fps == pytest.approx(fps)
    assert traffic.flows[0].packets == 9
    assert traffic.duration_s == pytest.approx(9 / fps)


def test_a_share_of_an_unknown_line_rate_is_refused() -> None:
    def change(found: dict[str, Any]) -> None:
        for flow in found["flows"]:
            flow["rate"] = {"choice": "percentage", "percentage": 1}

    assert any("flows[0].rate: percentage" in error for error in refusals(change))


@pytest.mark.parametrize(("flows", "names"), [(1, ("a",)), (2, ("a", "b"))])
def test_a_continuous_flow_ends_when_no_more_can_be_recorded(flows: int, names: tuple[str, ...]) -> None:
    found = traffic_of(document(config(packets=None, names=names)))
    assert (found.flows[0].packets, found.duration_s) == (None, LONGEST_S[flows])


def test_values_in_even_steps_are_an_increment() -> None:
    def change(found: dict[str, Any]) -> None:
        fields = flow_of(found)["packet"]
        fields[1]["ipv4"]["src"] = {"choice": "values", "values": ["198.18.0.1", "198.18.0.2"]}
        fields[2]["udp"]["src_port"] = {"choice": "values", "values": [7, 8, 9]}

    made = document(config(names=("only",)), change)
    plan = traffic_of(made).plan
    assert plan.left.host_range.count == 2
    assert (plan.source_ports.first, plan.source_ports.last, plan.source_ports.mode) == (7, 9, "increment")


def test_a_random_sequence_must_be_as_long_as_the_flow() -> None:
    """A frame here is drawn anew: a sequence that repeats earlier is another load on caches and tables."""

    def change(found: dict[str, Any], count: int) -> None:
        for flow in found["flows"]:
            drawn = {"min": 1024, "max": 65535, "seed": 1, "count": count}
            flow["packet"][2]["udp"]["src_port"] = {"choice": "random", "random": drawn}

    errors = refusals(lambda found: change(found, 199))
    assert "flows[0].packet[2].udp.src_port: random with a count of 199" in errors[0]
    assert "at least 200" in errors[0]
    found = traffic_of(document(config(), lambda found: change(found, 200)))
    assert (found.plan.source_ports.mode, found.plan.source_ports.first) == ("pseudorandom", 1024)


def test_macs_are_those_of_the_ports() -> None:
    def change(found: dict[str, Any]) -> None:
        flow_of(found)["packet"][0]["ethernet"] = {
            "src": {"choice": "value", "value": "02:00:00:00:00:07"},
            "dst": {"choice": "auto", "auto": "00:00:00:00:00:00"},
        }

    assert traffic_of(document(config(), change)).macs["left"] == {"mac": "02:00:00:00:00:07"}


def test_the_same_configuration_has_the_same_seed_and_another_one_another() -> None:
    seeds = [traffic_of(document(config(pps=pps))).seed for pps in (1000, 1000, 1001)]
    assert seeds[0] == seeds[1] != seeds[2]


def set_in(*path: Any, to: Any) -> Change:
    """Change a value of the configuration; the last part of the path may be new."""

    def change(found: dict[str, Any]) -> None:
        at: Any = found
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (set_in("devices", to=[{"name": "d", "bgp": {"x": 1}}]), "devices[0].bgp"),
        (set_in("captures", to=[{"name": "c", "filters": [1]}]), "captures[0].filters"),
        (set_in("lags", to=[{"name": "l"}]), "lags"),
        (set_in("flows", to=[]), "flows"),
        (set_in("ports", 0, "location", to="eth0"), "ports[0].location"),
        (set_in("ports", 1, "name", to="p1"), "ports[1].name"),
        (set_in("layer1", to=[{"name": "l", "port_names": ["no"]}]), "layer1[0].port_names"),
        (set_in("layer1", to=[{"name": "l", "flow_control": {"x": 1}}]), "layer1[0].flow_control"),
        (set_in("flows", 0, "name", to=""), "flows[0].name"),
        (set_in("flows", 1, "name", to="there"), "flows[1].name"),
        (set_in("flows", 0, "tx_rx", "port", "tx_name", to="no"), "flows[0].tx_rx.port.tx_name"),
        (set_in("flows", 0, "tx_rx", "port", "rx_names", to=["p1"]), "flows[0].tx_rx.port.rx_names"),
        (set_in("flows", 0, "tx_rx", to={"choice": "device", "device": {}}), "flows[0].tx_rx"),
        (
            set_in(
                "flows", 0, "size", to={"choice": "weight_pairs", "weight_pairs": {"predefined": "tcp_imix"}}
            ),
            "flows[0].size",
        ),
        (
            set_in(
                "flows",
                0,
                "size",
                to={
                    "choice": "weight_pairs",
                    "weight_pairs": {"choice": "custom", "custom": [{"weight": 0.5}]},
                },
            ),
            "flows[0].size",
        ),
        (
            set_in("flows", 0, "duration", to={"choice": "burst", "burst": {"bursts": 10**9}}),
            "flows[0].duration.burst",
        ),
        (
            set_in("flows", 0, "duration", "fixed_packets", "gap", to=20),
            "flows[0].duration.fixed_packets.gap",
        ),
        (
            set_in("flows", 0, "duration", "fixed_packets", "delay", to={"nanoseconds": 5}),
            "flows[0].duration.fixed_packets.delay",
        ),
        (set_in("flows", 0, "duration", "fixed_packets", "packets", to=10**9), "flows[0].duration"),
        (set_in("flows", 0, "payload", to={"choice": "fixed"}), "flows[0].payload"),
        (set_in("flows", 0, "payload", to={"fixed": {"pattern": "2e"}}), "flows[0].payload.fixed"),
        (set_in("flows", 0, "metrics", "latency", "mode", to="cut_through"), "flows[0].metrics.latency.mode"),
        (set_in("flows", 0, "metrics", "rx_tx_ratio", to={"choice": "x"}), "flows[0].metrics.rx_tx_ratio"),
        (set_in("flows", 0, "packet", 2, to={"choice": "tcp", "tcp": {}}), "flows[0].packet[2].tcp.src_port"),
        (set_in("flows", 0, "packet", 2, to={"choice": "icmpv6", "icmpv6": {}}), "flows[0].packet[2].icmpv6"),
        (set_in("flows", 0, "packet", 2, to={"choice": "vxlan", "vxlan": {}}), "flows[0].packet[2].vxlan"),
        (
            lambda found: flow_of(found)["packet"].extend([custom("2e"), custom("2e")]),
            "flows[0].packet[3].custom",
        ),
        (set_in("flows", 0, "packet", 2, to=custom("2e")), "flows[0].packet[2].custom"),
        (lambda found: flow_of(found)["packet"].append(custom("2e2")), "flows[0].packet[3].custom.bytes"),
        (
            lambda found: flow_of(found)["packet"].append(custom("2e" * 129)),
            "flows[0].packet[3].custom.bytes",
        ),
        (lambda found: flow_of(found)["packet"].__delitem__(slice(1, None)), "flows[0].packet"),
        (lambda found: flow_of(found)["packet"].clear(), "flows[0].packet"),
        (lambda found: flow_of(found)["packet"][2]["udp"].pop("src_port"), "flows[0].packet[2].udp.src_port"),
        (
            set_in("flows", 0, "packet", 1, "ipv4", "dont_fragment", to={"choice": "value"}),
            "flows[0].packet[1].ipv4.dont_fragment",
        ),
        (
            set_in("flows", 0, "packet", 1, "ipv4", "time_to_live", to={"choice": "value", "value": 64}),
            "flows[0].ipv4.time_to_live",
        ),
        (
            set_in("flows", 0, "packet", 1, "ipv4", "src", to={"choice": "value", "value": "10.0.0.1"}),
            "flows",
        ),
        (set_in("flows", 1, "rate", "pps", to="1"), "flows[0].duration"),
        (set_in("flows", 1, "tx_rx", "port", to={"tx_name": "p1", "rx_names": ["p2"]}), "flows[1].packet"),
        (set_in("options", to={"protocol_options": {"x": 1}}), "options.protocol_options"),
        (
            set_in("options", to={"port_options": {"data_integrity": True}}),
            "options.port_options.data_integrity",
        ),
    ],
)
def test_what_is_not_honoured_is_refused_by_its_key(change: Change, key: str) -> None:
    """Never dropped: a script that believes that it sent something else would draw wrong conclusions."""
    errors = refusals(change)
    assert any(error.startswith(f"{key}:") for error in errors), errors


def test_a_payload_is_that_of_its_flow_and_needs_room() -> None:
    """However its octets are written."""

    def change(found: dict[str, Any]) -> None:
        flow_of(found)["packet"].append(custom("0x48:65 6C6c6f"))
        flow_of(found)["size"] = {"choice": "fixed", "fixed": size}

    size = 69
    found = traffic_of(document(config(names=("only",), hosts=1), change))
    assert [flow.payload for flow in found.plan.flows] == [b"Hello"]
    assert "payload of 5 octets" in found.plan.flows[0].words
    size = 68
    assert any("69 at least" in error for error in refusals(change))


def test_ports_have_the_names_that_a_script_gives_them() -> None:
    def change(found: dict[str, Any]) -> None:
        found["ports"][0]["location"], found["ports"][1]["location"] = "b:1", "eth7"

    locations: dict[str, SideName] = {"b:1": "right", "eth7": "left"}
    found = traffic_of(document(config(names=("only",), hosts=1)), locations=locations)
    assert [port.side for port in found.ports] == ["left", "right"]
    turned = document(config(names=("only",), hosts=1), change)
    for field, address in (("src", "198.19.0.1"), ("dst", "198.18.0.1")):
        flow_of(turned)["packet"][1]["ipv4"][field] = {"choice": "value", "value": address}
    found = traffic_of(turned, locations=locations)
    assert [(port.location, port.side) for port in found.ports] == [("b:1", "right"), ("eth7", "left")]
    assert found.directions == ("reverse",)
    assert "must be left, right, eth7" in refusals(change, locations={"eth7": "left"})[0]


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("version", [4, 6])
def test_a_flow_without_a_receiver_arrives_at_the_other_port(version: int, ports: int) -> None:
    def change(found: dict[str, Any]) -> None:
        del flow_of(found)["tx_rx"]["port"]["rx_names"], found["ports"][ports:]

    found = traffic_of(document(config(version, names=("only",)), change))
    assert found.notes[0].startswith("flows[0].tx_rx.port: names no port that receives")
    assert [(flow.port_tx, flow.port_rx) for flow in found.flows] == [("p1", "p2" if ports == 2 else "")]


@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_without_a_header_behind_ip_has_udps_which_a_warning_says(version: int) -> None:
    """Such a flow has addresses and no ports: one flow for every hash."""

    def change(found: dict[str, Any]) -> None:
        ip = flow_of(found)["packet"][1][f"ipv{version}"]
        ip["protocol" if version == 4 else "next_header"] = {"choice": "auto"}
        flow_of(found)["packet"].pop()
        flow_of(found)["payload"] = {"choice": "increment_byte"}

    found = traffic_of(document(config(version, names=("only",)), change))
    assert [note.partition(":")[0] for note in found.notes] == ["flows[0].payload", "flows[0].packet"]
    assert "from port 49184 to port 7" in found.notes[1]
    ports = found.plan.source_ports, found.plan.destination_ports
    assert [(each.first, each.last) for each in ports] == [(49184, 49184), (7, 7)]
    assert found.plan.flows == ()


@pytest.mark.parametrize("locations", [("a",), ("a", "a"), ("a", ""), ("a", "b", "c")])
def test_two_ports_have_two_names(locations: tuple[str, ...]) -> None:
    with raises("otg.wrong-locations"):
        Places(locations=locations)


def test_all_reasons_are_named_at_once_and_not_without_end() -> None:
    def change(found: dict[str, Any]) -> None:
        found["ports"] += [{"name": f"q{n}", "nothing": 1} for n in range(100)]
        found |= {f"unknown{n}": 1 for n in range(100)}

    errors = refusals(change)
    assert len(errors) == 21
    assert errors[-1].startswith("and ")


def test_a_speed_is_compared_with_that_of_the_port() -> None:
    layer = set_in("layer1", to=[{"name": "l", "port_names": ["p1"], "speed": "speed_10_gbps"}])
    assert traffic_of(document(config(), layer), line_rates_bps={"left": 1e10}).notes == ()
    assert "layer1[0].speed" in traffic_of(document(config(), layer)).notes[0]
    assert "has 1 Gbit/s" in refusals(layer, line_rates_bps={"left": 1e9})[0]


def test_a_stopped_trial_is_one_of_the_length_that_was_sent() -> None:
    """What the client ended needs no excuse; what it lost counts all the same."""
    early = {"code": "stopped_early", "text": "sending ended"}
    document = {"verdict": "INVALID", "reasons": [early], "stopped_early_s": 2.5, "intended_duration_s": 9}
    assert as_it_was_sent(document) == {"verdict": "PASS", "reasons": [], "intended_duration_s": 2.5}
    loss = {"code": "loss", "text": "forward: lost"}
    lost = as_it_was_sent({**document, "verdict": "FAIL", "reasons": [loss, early]})
    assert (lost["verdict"], lost["reasons"]) == ("FAIL", [loss])
    late = {"code": "sender_overdue", "text": "late"}
    spoiled = as_it_was_sent({**document, "reasons": [late, early]})
    assert (spoiled["verdict"], spoiled["reasons"]) == ("INVALID", [late])
    whole = {"verdict": "INVALID", "reasons": [late], "intended_duration_s": 9}
    assert as_it_was_sent(whole) == whole


def test_the_reference_lists_every_key_that_is_honoured() -> None:
    listed = {
        row[0].strip("`"): tuple(key.strip("` ") for key in row[1].split(","))
        for row in table_rows("docs/reference/otg.md", "object of the configuration")
    }
    assert listed == dict(HONOURED)


@pytest.mark.parametrize(
    ("pairs", "octets"),
    [
        (
            {"choice": "custom", "custom": [{"size": 128, "weight": 2.0}, {"size": 512, "weight": 1.0}]},
            {128: 2, 512: 1},
        ),
        ({"choice": "predefined", "predefined": "imix"}, {64: 7, 570: 4, 1518: 1}),
        ({"choice": "custom", "custom": [{"size": 128, "weight": 2.0}]}, {128: 1}),
    ],
)
def test_sizes_with_weights_are_a_sequence(pairs: dict[str, Any], octets: dict[int, int]) -> None:
    def change(found: dict[str, Any]) -> None:
        for flow in found["flows"]:
            flow["size"] = {"choice": "weight_pairs", "weight_pairs": pairs}
            flow["rate"] = {"choice": "mbps", "mbps": "1"}

    found = traffic_of(document(config(), change))
    size = found.frame_size
    assert Counter([size] if isinstance(size, int) else size.octets) == octets
    mean = sum(of * count for of, count in octets.items()) / sum(octets.values())
    assert found.flows[0].rate_fps == pytest.approx(1e6 / 8 / (mean + 20))


def test_directions_keep_the_names_of_their_flows() -> None:
    def change(found: dict[str, Any]) -> None:
        found["flows"].reverse()

    found: OtgTraffic = traffic_of(document(config(), change))
    assert [(flow.name, flow.direction) for flow in found.flows] == [
        ("back", "reverse"),
        ("there", "forward"),
    ]
