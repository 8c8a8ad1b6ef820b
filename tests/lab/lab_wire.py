# SPDX-License-Identifier: Apache-2.0
"""A tester for the lab's tests: plain sockets in the tester's namespace that send frames and answer the DUT's
ARP and ND."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from evenhand.lab import LinuxLab
from evenhand.lab.namespaces import run_inside
from evenhand.plan import AddressPlan, PlanSide, SideName

GUARD_S = 10.0
"""How long to wait for a frame before the test fails; nothing is measured with it."""
ETH_P_ALL = 3


def gateway_of(side: PlanSide) -> str:
    """The tester's own address there, of a plan whose hosts are behind gateways."""
    assert side.gateway is not None
    return str(side.gateway.ip)


class Wire:
    """Both tester ports; `plan` says who answers for which gateway."""

    def __init__(self, lab: LinuxLab, plan: AddressPlan) -> None:
        self.plan = plan
        self.sockets: dict[SideName, socket.socket] = {
            side: run_inside(lab.tester_namespace, partial(_open, lab.tester_interface(side)))
            for side in ("left", "right")
        }
        self.dut_mac: dict[SideName, str] = {
            side: run_inside(lab.dut_namespace, partial(_mac, lab.dut_interface(side)))
            for side in ("left", "right")
        }
        self.tester_mac: dict[SideName, str] = {
            side: run_inside(lab.tester_namespace, partial(_mac, lab.tester_interface(side)))
            for side in ("left", "right")
        }
        self.resolved: list[str] = []
        """Addresses the DUT asked for, in order."""

    def frame(self, origin: SideName, source_host: int, destination_host: int, payload: bytes) -> Packet:
        sides = {"left": self.plan.left, "right": self.plan.right}
        target = sides["right" if origin == "left" else "left"]
        source, destination = (
            str(sides[origin].host_range.address(source_host)),
            str(target.host_range.address(destination_host)),
        )
        ethernet = Ether(src=self.tester_mac[origin], dst=self.dut_mac[origin])
        network = (
            IP(src=source, dst=destination, ttl=10)
            if self.plan.ip_version == 4
            else IPv6(src=source, dst=destination, hlim=10)
        )
        return Ether(bytes(ethernet / network / UDP(sport=4000, dport=5000) / payload))

    def send(self, side: SideName, frame: Packet) -> None:
        self.sockets[side].send(bytes(frame))

    def receive_udp(self, side: SideName) -> Packet:
        """The next UDP frame on this side."""
        return self.receive(side, lambda frame: frame.haslayer(UDP) and not frame.haslayer(ICMP))

    def ping_dut(self) -> None:
        """Ping the DUT from the left gateway and wait for the answer: what was sent there before has been
        looked at."""
        source, destination = gateway_of(self.plan.left), str(self.plan.left.dut[0].ip)
        if self.plan.ip_version == 4:
            request: Packet = IP(src=source, dst=destination) / ICMP()
        else:
            request = IPv6(src=source, dst=destination) / ICMPv6EchoRequest()
        self.send("left", Ether(src=self.tester_mac["left"], dst=self.dut_mac["left"]) / request)
        self.receive(
            "left",
            lambda frame: frame.haslayer(ICMPv6EchoReply) or (frame.haslayer(ICMP) and frame[ICMP].type == 0),
        )

    def receive(self, side: SideName, is_wanted: Callable[[Packet], object]) -> Packet:
        """The next such frame on this side; the DUT's questions on both sides are answered meanwhile."""
        sides = {s.fileno(): name for name, s in self.sockets.items()}
        while True:
            ready, _, _ = select.select(list(sides), [], [], GUARD_S)
            assert ready, f"no frame on the {side} side"
            for descriptor in ready:
                here = sides[descriptor]
                octets, address = self.sockets[here].recvfrom(2048)
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                frame = Ether(octets)
                if here == side and is_wanted(frame):
                    return frame
                self._answer(here, frame)

    def _answer(self, side: SideName, frame: Packet) -> None:
        gateway = gateway_of(self.plan.left if side == "left" else self.plan.right)
        mac = self.tester_mac[side]
        if ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst == gateway:
            answer: Packet = ARP(op=2, hwsrc=mac, psrc=gateway, hwdst=frame[ARP].hwsrc, pdst=frame[ARP].psrc)
        elif ICMPv6ND_NS in frame and frame[ICMPv6ND_NS].tgt == gateway:
            answer = (
                IPv6(src=gateway, dst=frame[IPv6].src)
                / ICMPv6ND_NA(tgt=gateway, R=1, S=1, O=1)
                / ICMPv6NDOptDstLLAddr(lladdr=mac)
            )
        else:
            return
        self.resolved.append(gateway)
        self.send(side, Ether(src=mac, dst=frame.src) / answer)


@contextmanager
def wire(lab: LinuxLab, plan: AddressPlan) -> Iterator[Wire]:
    tester = Wire(lab, plan)
    try:
        yield tester
    finally:
        for s in tester.sockets.values():
            s.close()


def _open(interface: str) -> socket.socket:
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.bind((interface, ETH_P_ALL))
    return s


def _mac(interface: str) -> str:
    with open(f"/sys/class/net/{interface}/address") as file:
        return file.read().strip()
