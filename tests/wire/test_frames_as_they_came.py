# SPDX-License-Identifier: Apache-2.0
"""Every driver on an interface of the kernel: what is on the wire is what is judged, whatever the kernel
would make of it on the way to the port."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import find_engine
from tests.errors import raises
from tests.wire.lying_dut import Sent, is_test_frame, lying_dut, routed, sequence_of
from tests.wire.veth_cable import ip, veth_cable
from tests.wire.wire_session import engine, open_ports, run_trial, until

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
DEVICES = {
    "net_af_packet": "net_af_packet{},iface={}",
    "net_af_xdp": "net_af_xdp{},iface={},start_queue=0,queue_count=1,force_copy=1,busy_budget=0",
    "net_pcap": "net_pcap{},iface={}",
}
FRAMES = 30
TAG = bytes.fromhex("81000007")
OWN_MACS = ("02:00:00:00:a0:01", "02:00:00:00:a0:02")
AF_XDP = 44
GET_DESCRIPTOR = 438
"""Number of the system call pidfd_getfd."""
KINDS = ("whole", "fragments", "padded", "cut", "checksum", "tagged")


def fragments(frame: bytes) -> list[bytes]:
    """Two of an IPv4 or IPv6 packet, cut behind the first 40 octets of its payload."""
    if frame[12:14] == b"\x08\x00":
        head, payload = frame[14:34], frame[34:]
        found = []
        for offset, part, more in ((0, payload[:40], 0x2000), (5, payload[40:], 0)):
            ip_head = bytearray(head)
            ip_head[2:4] = (20 + len(part)).to_bytes(2, "big")
            ip_head[6:8] = (more | offset).to_bytes(2, "big")
            ip_head[10:12] = bytes(2)
            total = sum(int.from_bytes(ip_head[i : i + 2], "big") for i in range(0, 20, 2))
            total = (total & 0xFFFF) + (total >> 16)
            ip_head[10:12] = (0xFFFF - ((total & 0xFFFF) + (total >> 16))).to_bytes(2, "big")
            found.append(frame[:14] + bytes(ip_head) + part)
        return found
    ip6_head, payload = bytearray(frame[14:54]), frame[54:]
    found = []
    for offset, part, more in ((0, payload[:40], 1), (5, payload[40:], 0)):
        ip6_head[4:6] = (8 + len(part)).to_bytes(2, "big")
        ip6_head[6] = 44
        extension = bytes([17, 0]) + (offset << 3 | more).to_bytes(2, "big") + b"\0\0\0\7"
        found.append(frame[:14] + bytes(ip6_head) + extension + part)
    return found


def spoilt(plan: AddressPlan, side: int, frame: bytes) -> Sent:
    """What goes from left to right: each sixth frame as it should be, the others in five other ways."""
    if side != 0 or not is_test_frame(plan, frame):
        return
    out = routed(plan, frame, bytes.fromhex(OWN_MACS[1].replace(":", "")))
    match KINDS[sequence_of(plan, frame) % len(KINDS)]:
        case "whole":
            yield 1, out
        case "fragments":
            for fragment in fragments(out):
                yield 1, fragment
        case "padded":
            yield 1, out + bytes(4)
        case "cut":
            yield 1, out[:50]
        case "checksum":
            at = 14 + (20 if plan.ip_version == 4 else 40) + 6
            yield 1, out[:at] + bytes([out[at] ^ 0x55]) + out[at + 1 :]
        case "tagged":
            yield 1, out[:12] + TAG + out[12:]


@pytest.mark.parametrize("driver", DEVICES)
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: f"v{plan.ip_version}")
def test_a_port_judges_what_is_on_the_wire(plan: AddressPlan, driver: str) -> None:
    """R2544-05, R2544-06: fragments stay fragments, padding is not cut off and none is added, checksums are
    not made right, tags not taken away: all but the whole frames are lost, with whatever driver."""
    with lying_dut(lambda side, frame: spoilt(plan, side, frame), f"wire{plan.ip_version}") as dut:
        devices = [
            DEVICES[driver].format(k, device.partition("iface=")[2].partition(",")[0])
            for k, device in enumerate((dut.left_device, dut.right_device))
        ]
        with engine(dut.engine_command) as session:
            open_ports(session, plan, *devices, frame_size=128, own_macs=OWN_MACS)
            numbers = count(1)
            # A DUT in Python does not see every frame on a busy host.
            document = until(
                lambda found: (
                    found["verdict"] != "INVALID"
                    and found["directions"]["forward"]["received_frames"] >= FRAMES
                ),
                lambda: run_trial(
                    session,
                    trial=next(numbers),
                    rate_fps=len(KINDS) * FRAMES,
                    duration_s=1,
                    directions=["forward"],
                ),
            )
    forward = document["directions"]["forward"]
    assert (document["verdict"], forward["received_frames"]) == ("FAIL", FRAMES)
    port = document["ports"]["right"]
    came = port["after"]["received_frames"] - port["before"]["received_frames"]
    assert came >= (len(KINDS) + 1) * FRAMES, "each fragment on its own"


def test_an_interface_that_joins_frames_is_no_port() -> None:
    """GRO of UDP makes one large frame of several, before a packet socket sees them: the error has the
    command that switches it off. GRO of TCP alone joins no test frames."""
    with veth_cable() as namespace:
        command: list[str | Path] = ["ip", "netns", "exec", namespace, find_engine()]
        devices = [DEVICES["net_af_packet"].format(number, side) for number, side in enumerate(SIDES)]

        def switch(*words: str) -> None:
            subprocess.run(["ip", "netns", "exec", namespace, *words], check=True)

        with engine(command) as session:
            switch("ethtool", "-K", "right", "gro", "on", "rx-udp-gro-forwarding", "on")
            with raises("engine.no-device", match="right makes one frame of several") as caught:
                open_ports(session, gateway_v4(), *devices)
            assert caught.value.where == "right.device"
            assert caught.value.next_step.endswith("ethtool -K right rx-udp-gro-forwarding off")
            switch(*caught.value.next_step.partition(": ")[2].split())
            open_ports(session, gateway_v4(), *devices)


@contextmanager
def sockets_of(process: int) -> Iterator[list[socket.socket]]:
    """Its packet and XDP sockets, as this process's own."""
    with ExitStack() as stack:
        of_process = os.pidfd_open(process)
        stack.callback(os.close, of_process)
        found = []
        for entry in Path(f"/proc/{process}/fd").iterdir():
            if not os.readlink(entry).startswith("socket:"):
                continue
            copy = ctypes.CDLL(None).syscall(GET_DESCRIPTOR, of_process, int(entry.name), 0)
            assert copy >= 0
            # Python cannot find out the family of an XDP socket by itself.
            unknown = socket.socket(AF_XDP, socket.SOCK_RAW, 0, fileno=copy)
            family = unknown.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN)
            one = stack.enter_context(socket.socket(family, socket.SOCK_RAW, 0, fileno=unknown.detach()))
            if family in (socket.AF_PACKET, AF_XDP):
                found.append(one)
        yield found


@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp"])
def test_a_full_ring_of_the_other_end_does_not_hold_up_the_tester(driver: str) -> None:
    """R2544-05: a frame in that ring counts as its sender's, and the kernel's own room of 208 KiB is fewer
    frames of 218 octets and more than a ring of a veth has. The loss of a DUT that does not keep up would
    look like a tester that does not."""
    with veth_cable() as namespace, engine(["ip", "netns", "exec", namespace, find_engine()]) as session:
        open_ports(session, gateway_v4(), *(DEVICES[driver].format(k, side) for k, side in enumerate(SIDES)))
        with sockets_of(session.pid) as sockets:
            rooms = [one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for one in sockets]
    assert len(rooms) >= len(SIDES)
    assert min(rooms) >= 32 << 20


def test_a_port_that_is_no_veth_keeps_its_room_beside_one_that_is() -> None:
    """What does not fit into its own queue would be dropped by this host, and the DUT charged with it."""
    with veth_cable() as namespace, engine(["ip", "netns", "exec", namespace, find_engine()]) as session:
        made = ("link", "add", "alone", "type", "vxlan", "id", "1", "dstport", "4789")
        ip("-n", namespace, *made, "remote", "192.0.2.1", "dev", "left")
        ip("-n", namespace, "link", "set", "alone", "up")
        open_ports(
            session,
            gateway_v4(),
            *(DEVICES["net_af_packet"].format(k, of) for k, of in enumerate(("alone", "right"))),
        )
        with sockets_of(session.pid) as sockets:
            rooms: dict[str, set[bool]] = {}
            for one in sockets:
                is_wide = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 32 << 20
                rooms.setdefault(one.getsockname()[0], set()).add(is_wide)
    assert rooms["alone"] == {False}
    assert rooms["right"] == {True}
