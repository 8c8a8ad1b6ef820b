# SPDX-License-Identifier: Apache-2.0
"""Configurations of OTG for tests, as a script writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import snappi
from google.protobuf import json_format
from snappi import otg_pb2 as pb

STARTS = {4: ("198.18.0.1", "198.19.0.1"), 6: ("2001:2::2", "2001:2:0:8000::2")}
STEPS = {4: "0.0.0.1", 6: "::1:0"}
SIZE = 128


def config(
    version: int = 4,
    *,
    packets: int | None = 200,
    pps: int = 2000,
    hosts: int = 4,
    names: tuple[str, ...] = ("there", "back"),
) -> Any:
    """Flows between the hosts of a gateway plan, in both directions or one."""
    made = snappi.Config()
    made.ports.add(name="p1", location="left")
    made.ports.add(name="p2", location="right")
    left, right = STARTS[version]
    ends = (("p1", "p2", left, right), ("p2", "p1", right, left))
    for name, (sender, receiver, source, destination) in zip(names, ends, strict=False):
        flow = made.flows.add(name=name)
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = sender, [receiver]
        flow.size.fixed, flow.rate.pps = SIZE, pps
        if packets is None:
            assert flow.duration.continuous is not None  # to choose it
        else:
            flow.duration.fixed_packets.packets = packets
        flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = True
        flow.packet.ethernet()
        ip = flow.packet.ipv4()[-1] if version == 4 else flow.packet.ipv6()[-1]
        for field, start in ((ip.src, source), (ip.dst, destination)):
            field.increment.start, field.increment.step = start, STEPS[version]
            field.increment.count = hosts
        udp = flow.packet.udp()[-1]
        udp.src_port.value, udp.dst_port.value = 5000, 6000
    return made


def document(made: Any, change: Callable[[dict[str, Any]], None] = lambda found: None) -> dict[str, Any]:
    """The configuration as the server reads it."""
    message = json_format.Parse(made.serialize(), pb.Config())
    found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    change(found)
    return found


LINKS = {
    4: (("203.0.113.2", "203.0.113.1", 24), ("192.0.2.2", "192.0.2.1", 24)),
    6: (("2001:db8:1::2", "2001:db8:1::1", 64), ("2001:db8:2::2", "2001:db8:2::1", 64)),
}


def devices(version: int = 4, *, packets: int = 200, pps: int = 2000) -> Any:
    """Flows between two devices, in both directions, with addresses that no named plan has."""
    made = snappi.Config()
    for number, (address, gateway, prefix) in enumerate(LINKS[version], 1):
        made.ports.add(name=f"p{number}")
        device = made.devices.add(name=f"d{number}")
        ethernet = device.ethernets.add(name=f"d{number}.eth", mac=f"02:00:00:00:01:0{number}")
        ethernet.connection.port_name = f"p{number}"
        addresses = ethernet.ipv4_addresses if version == 4 else ethernet.ipv6_addresses
        addresses.add(name=f"d{number}.ip", address=address, gateway=gateway, prefix=prefix)
    for name, sender, receiver in (("there", "d1.ip", "d2.ip"), ("back", "d2.ip", "d1.ip")):
        flow = made.flows.add(name=name)
        flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = [sender], [receiver]
        flow.size.fixed, flow.rate.pps, flow.duration.fixed_packets.packets = SIZE, pps, packets
        flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = True
        flow.packet.ethernet()
        _ = flow.packet.ipv4() if version == 4 else flow.packet.ipv6()
        udp = flow.packet.udp()[-1]
        udp.src_port.value, udp.dst_port.value = 5000, 6000
    return made


SHARES = {"voice": 1, "video": 3, "rest": 6}
DSCPS = {"voice": 46, "video": 34, "rest": 0}
LABEL = 0xABCDE
"""The flow label of video, in IPv6."""


def several(version: int = 4, *, pps: int = 100, packets: int | None = 100, names: str = "there back") -> Any:
    """Three flows that leave one port, or each of both, between one pair of hosts, each with a DSCP; voice
    has a port of its own.

    Args:
        pps: The rate of voice; the others have their shares.
        packets: The same; None: continuous.
    """
    pair = config(version, packets=packets, hosts=1, names=tuple(names.split()))
    made = snappi.Config()
    for port in pair.ports:
        made.ports.add(name=port.name, location=port.location)
    for each in pair.flows:
        for name, share in SHARES.items():
            flow = each.clone()
            flow.name, flow.rate.pps = f"{name} {each.name}", share * pps
            if packets is not None:
                flow.duration.fixed_packets.packets = share * packets
            _, ip, udp = flow.packet
            if version == 6:
                ip.traffic_class.value = DSCPS[name] << 2
                ip.flow_label.value = LABEL if name == "video" else 0
            elif name == "video":
                ip.priority.tos.precedence.value, ip.priority.tos.throughput.value = 4, 1
            else:
                ip.priority.dscp.phb.value = DSCPS[name]
            udp.dst_port.value = 5060 if name == "voice" else 6000
            made.flows.append(flow)
    return made
