# SPDX-License-Identifier: Apache-2.0
"""Evenhand as a performance traffic generator of DPDK's test suite (DTS), driven over the Open Traffic
Generator API. docs/how-to/be-the-generator-of-others.md says where to put it."""

import time
from dataclasses import dataclass
from typing import Any

import snappi  # type: ignore[import-untyped, unused-ignore]
from framework.testbed_model.traffic_generator.performance_traffic_generator import (  # type: ignore[import-not-found, unused-ignore]
    PerformanceTrafficGenerator,
    PerformanceTrafficStats,
)
from scapy.layers.inet import IP, UDP  # type: ignore[import-untyped, unused-ignore]
from scapy.layers.inet6 import IPv6  # type: ignore[import-untyped, unused-ignore]

FCS_OCTETS = 4
LOOK_EVERY_S = 0.2


@dataclass(slots=True)
class EvenhandTrafficStats(PerformanceTrafficStats):  # type: ignore[misc, unused-ignore]
    """With the verdict of the trial: rates of an INVALID one say nothing of the DUT."""

    verdict: str = ""


class EvenhandTrafficGenerator(PerformanceTrafficGenerator):  # type: ignore[misc, unused-ignore]
    """Sends the packet from both ports, with source and destination exchanged on the right one."""

    def __init__(self, tg_node: Any, config: Any) -> None:
        """`config.location` is where `evenhand otg TESTBED` listens, such as https://127.0.0.1:8443."""
        super().__init__(tg_node=tg_node, config=config)
        self._api = snappi.api(location=config.location, verify=False)

    def calculate_traffic_and_stats(
        self, packet: Any, duration: float, send_mpps: float | None = None
    ) -> PerformanceTrafficStats:
        """Rates are those of both directions together; octets are those of the frames with their FCS.

        Raises:
            RuntimeError: The trial was INVALID, or the packet cannot be sent.
        """
        self._api.set_config(_config_of(packet, duration, send_mpps))
        self._set_state("start")
        found = self._metrics()
        while any(metric.transmit != "stopped" for metric in found):
            time.sleep(LOOK_EVERY_S)
            found = self._metrics()
        verdict = "; ".join(self._set_state("stop"))
        if verdict.startswith("INVALID"):
            raise RuntimeError(verdict)
        sent, received = (sum(getattr(each, name) for each in found) for name in ("frames_tx", "frames_rx"))
        octets = len(packet) + FCS_OCTETS
        return EvenhandTrafficStats(
            tx_pps=sent / duration,
            tx_bps=sent * octets / duration,
            rx_pps=received / duration,
            rx_bps=received * octets / duration,
            frame_size=len(packet),
            verdict=verdict,
        )

    def close(self) -> None:
        """Nothing of it is left in the server."""
        self._api.set_config(snappi.Config())

    def _set_state(self, state: str) -> list[str]:
        wanted = self._api.control_state()
        wanted.traffic.flow_transmit.state = state
        return list(self._api.set_control_state(wanted).warnings or [])

    def _metrics(self) -> list[Any]:
        wanted = self._api.metrics_request()
        wanted.flow.flow_names = []
        return list(self._api.get_metrics(wanted).flow_metrics)


def _config_of(packet: Any, duration: float, send_mpps: float | None) -> Any:
    ip = packet.getlayer(IP) or packet.getlayer(IPv6)
    udp = packet.getlayer(UDP)
    if ip is None or udp is None:
        raise RuntimeError(f"only UDP over IPv4 or IPv6 can be sent, not {packet.summary()}")
    made = snappi.Config()
    for name in ("left", "right"):
        made.ports.add(name=name, location=name)
    ends = (("left", ip.src, ip.dst, udp.sport, udp.dport), ("right", ip.dst, ip.src, udp.sport, udp.dport))
    for name, source, destination, source_port, destination_port in ends:
        flow = made.flows.add(name=f"from {name}")
        flow.tx_rx.port.tx_name = name
        flow.tx_rx.port.rx_names = ["right" if name == "left" else "left"]
        flow.size.fixed = len(packet) + FCS_OCTETS
        if send_mpps is None:
            flow.rate.percentage = 100
        else:
            flow.rate.pps = round(send_mpps * 1e6)
        flow.duration.fixed_seconds.seconds = duration
        flow.metrics.enable = True
        flow.packet.ethernet()
        header = flow.packet.ipv4()[-1] if ip.version == 4 else flow.packet.ipv6()[-1]
        header.src.value, header.dst.value = source, destination
        ports = flow.packet.udp()[-1]
        ports.src_port.value, ports.dst_port.value = source_port, destination_port
    return made
