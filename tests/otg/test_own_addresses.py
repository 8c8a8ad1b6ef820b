# SPDX-License-Identifier: Apache-2.0
"""What devices, lists of values, tags, bursts and unlike rates of a configuration become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import snappi

from evenhand.otg.refusals import OtgError
from evenhand.otg.traffic import traffic_of
from evenhand.plan import HostList
from evenhand.trial import Burst
from tests.otg.configs import config, devices, document

ADDRESSES = {
    4: ("203.0.113.2", "203.0.113.1", "192.0.2.2"),
    6: ("2001:db8:1::2", "2001:db8:1::1", "2001:db8:2::2"),
}


def refused(made: Any, change: Callable[[dict[str, Any]], None] = lambda found: None, **options: Any) -> str:
    with pytest.raises(OtgError) as caught:
        traffic_of(document(made, change), **options)
    return "\n".join(caught.value.errors)


@pytest.mark.parametrize("version", [4, 6])
def test_devices_are_hosts_on_the_dut_s_links(version: int) -> None:
    """Their gateway is the DUT's address; without addresses of its own, a flow has those of its devices."""
    found = traffic_of(document(devices(version)))
    left, right = found.plan.sides
    address, gateway, other = ADDRESSES[version]
    assert (str(left.host_range.first_address), str(left.dut[0].ip), left.gateway) == (address, gateway, None)
    assert str(right.host_range.first_address) == other
    assert [flow.port_tx for flow in found.flows] == ["p1", "p2"]
    assert found.macs["left"]["mac"] == "02:00:00:00:01:01"
    assert [station.ethernet for station in found.stations] == ["d1.eth", "d2.eth"]


def test_hosts_behind_a_device_are_routed_to_it() -> None:
    made = devices(4)
    for flow, name in zip(made.flows, ("src", "dst"), strict=True):
        field = getattr(flow.packet[1], name)
        field.increment.start, field.increment.step, field.increment.count = "198.18.0.0", "0.0.1.0", 256
    left = traffic_of(document(made)).plan.left
    assert (str(left.gateway), left.host_range.count, left.host_range.mode) == (
        "203.0.113.2/24",
        256,
        "increment",
    )


def test_devices_that_are_nowhere_are_refused() -> None:
    made = devices(4)
    made.flows[0].tx_rx.device.tx_names = ["nobody"]
    assert "flows[0].tx_rx.device.tx_names: 'nobody'" in refused(made)
    made = devices(4)
    made.devices[0].ethernets[0].ipv4_addresses[0].gateway = "203.0.114.1"
    assert "is not on the link" in refused(made)
    made = devices(4)
    made.devices[0].ethernets[0].connection.port_name = "p9"
    assert "devices[0].ethernets[0].connection.port_name" in refused(made)
    assert "the DUT has 10.0.0.1/24 there" in refused(devices(4), plans=("gateway-v4",))


@pytest.mark.parametrize(
    ("values", "mode", "count"),
    [
        (["198.18.0.1", "198.18.7.9", "198.18.200.3"], "increment", 3),
        (["198.18.9.1", "198.18.4.1", "198.18.0.7"], "decrement", 3),
        (["198.18.0.1", "198.18.0.4", "198.18.0.7"], "increment", 3),
    ],
)
def test_values_that_do_not_step_evenly_are_a_list(values: list[str], mode: str, count: int) -> None:
    made = config(4, names=("only",))
    made.flows[0].packet[1].src.values = values
    side = traffic_of(document(made)).plan.left
    assert isinstance(side.host_range, HostList)
    assert (side.host_range.mode, side.host_range.address_count) == (mode, count)
    assert side.host_range.first_address == min(map(type(side.host_range.first_address), values))


def test_values_in_no_order_are_refused() -> None:
    made = config(4, names=("only",))
    made.flows[0].packet[1].src.values = ["198.18.0.1", "198.18.0.9", "198.18.0.4"]
    assert "neither rise nor fall" in refused(made)


def test_the_dut_s_networks_hold_what_is_sent_where_it_is_known() -> None:
    """Any of its hosts in any order, but no other address: the DUT would not forward it."""
    made = config(4, names=("only",))
    made.flows[0].packet[1].src.values = ["198.18.0.1", "198.18.7.9"]
    plan = traffic_of(document(made), plans=("gateway-v4",)).plan
    assert (plan.name, str(plan.left.dut[0])) == ("gateway_v4", "10.0.0.1/24")
    made.flows[0].packet[1].src.values = ["198.18.0.1", "198.20.7.9"]
    assert "no network that the DUT has on the left" in refused(made, plans=("gateway-v4",))


def test_directions_may_differ_in_rate_if_they_take_the_same_time() -> None:
    made = config(4, packets=200, pps=2000)
    made.flows[1].rate.pps, made.flows[1].duration.fixed_packets.packets = 500, 50
    found = traffic_of(document(made))
    assert [(flow.rate_fps, flow.packets) for flow in found.flows] == [(2000, 200), (500, 50)]
    rate_fps, rates = found.rates_of(("forward", "reverse"))
    assert (rate_fps, rates and rates.by_direction(rate_fps)) == (2000, {"forward": 2000, "reverse": 500})
    assert found.rates_of(("reverse",)) == (500, None)
    made.flows[1].duration.fixed_packets.packets = 51
    assert "both take the same time" in refused(made)


def test_bursts_are_frames_at_the_rate_and_then_the_gap() -> None:
    made = config(4, names=("only",), pps=1000)
    burst = made.flows[0].duration.burst
    burst.bursts, burst.packets, burst.inter_burst_gap.microseconds = 3, 10, 40_000
    found = traffic_of(document(made))
    assert found.burst == Burst(frames=10, interval_s=0.05)
    assert found.duration_s == pytest.approx(0.15)
    assert found.flows[0].packets == 30
    burst.inter_burst_gap.bytes = 1250
    assert "the line rate is not known" in refused(made)
    gaps = traffic_of(document(made), line_rates_bps={"left": 1e9})
    assert gaps.burst is not None
    assert (gaps.burst.frames, round(gaps.burst.interval_s, 8)) == (10, 0.01001)


def test_a_tag_is_that_of_the_port() -> None:
    made = config(4, names=("only",))
    made.flows[0].packet.clear()
    made.flows[0].packet.ethernet().vlan().ipv4().udp()
    _, vlan, ip, udp = made.flows[0].packet
    vlan.id.value, ip.src.value, ip.dst.value = 100, "198.18.0.1", "198.19.0.1"
    udp.src_port.value = udp.dst_port.value = 9
    assert traffic_of(document(made)).vlans == {"left": (100,)}
    vlan.cfi.value = 1
    assert "packet[1].vlan.cfi" in refused(made)


def test_captures_are_of_ports_that_there_are() -> None:
    made = config(4)
    made.captures.add(name="c", port_names=["p1", "p9"])
    assert "captures[0].port_names: there is no port 'p9'" in refused(made)
    made.captures[0].port_names = ["p1"]
    made.captures[0].format = snappi.Capture.PCAPNG
    assert "captures[0].format" in refused(made)


@pytest.mark.parametrize(
    ("version", "left", "right"),
    [
        (4, "10.0.0.1", "10.0.0.2"),
        (4, "10.0.1.5", "20.0.0.1"),
        (4, "192.168.254.1", "10.0.0.1"),
        (6, "2001:2:0:1000::1", "2001:2:0:9000::5"),
    ],
)
def test_links_that_nobody_named_are_out_of_the_hosts_way(version: int, left: str, right: str) -> None:
    """Scripts for two ports and a cable often have hosts in the networks that such links have here."""
    made = config(version, hosts=1)
    for flow, (source, destination) in zip(made.flows, ((left, right), (right, left)), strict=True):
        flow.packet[1].src.value, flow.packet[1].dst.value = source, destination
    plan = traffic_of(document(made)).plan
    assert [str(side.host_range.first_address) for side in plan.sides] == [left, right]
    for side in plan.sides:
        assert not any(host.host_range.first_address in side.dut[0].network for host in plan.sides)
        assert side.gateway in side.dut[0].network


def test_a_device_without_a_flow_is_named() -> None:
    made = devices(4)
    other = made.devices.add(name="d9").ethernets.add(name="d9.eth", mac="02:00:00:00:01:09")
    other.connection.port_name = "p1"
    other.ipv4_addresses.add(name="d9.ip", address="10.9.9.2", gateway="10.9.9.1", prefix=24)
    notes = traffic_of(document(made)).notes
    assert [note for note in notes if note.startswith("devices: ")] == [
        "devices: d9.ip (10.9.9.2) is in no flow: nobody answers for it, and its gateway is not asked for"
    ]
    assert not any(note.startswith("devices") for note in traffic_of(document(devices(6))).notes)


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ({"id": 0}, "id: 0"),
        ({"id": 4095}, "id: 4095"),
        ({"tpid": "x9100"}, "tpid"),
        ({"priority": 3}, "priority"),
    ],
)
def test_devices_have_plain_tags(tag: dict[str, Any], said: str) -> None:
    """As snappi writes them: with its defaults of type and priority."""
    made = devices(4)
    for device in made.devices:
        device.ethernets[0].vlans.add(name=f"{device.name}.vlan", id=100)
    assert traffic_of(document(made)).vlans == {"left": (100,), "right": (100,)}

    def change(found: dict[str, Any]) -> None:
        found["devices"][0]["ethernets"][0]["vlans"][0].update(tag)

    assert f"devices[0].ethernets[0].vlans[0].{said}" in refused(made, change)
