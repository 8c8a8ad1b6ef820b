# SPDX-License-Identifier: Apache-2.0
"""What a trial may take for a frame of its own, and what happens to its ports meanwhile: replays, links that
go, MACs that contradict."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

from evenhand.lab import LinuxLab, linux_lab
from evenhand.lab.namespaces import run_inside
from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import find_engine
from tests.errors import raises
from tests.lab.lab_wire import gateway_of
from tests.wire.wire_session import (
    NOBODY,
    PATIENT,
    Document,
    dut_of,
    engine,
    memif_cable,
    one_worker,
    open_ports,
    open_to_dut,
    run_trial,
    thorough,
    valid_trial,
)

pytestmark = pytest.mark.wire
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)


def codes(document: Document) -> set[str]:
    return {reason["code"] for reason in document["reasons"]}


@pytest.mark.parametrize("plan", [gateway_v4(), *thorough(gateway_v6())], ids=lambda p: p.name)
def test_a_replayed_capture_is_never_a_pass(plan: AddressPlan, tmp_path: Path) -> None:
    """Issue: left into nothing, right a file with the frames of `plan frames` for trial 1, played again and
    again: PASS, 1,000 received."""
    shown: Document = {
        "plan": plan.to_contract(),
        "frame_size": plan.smallest_frame_size,
        "seed": 1,
        "direction": "forward",
        "count": 1_000,
    }
    with engine() as session:
        for session_number in (0, None):
            frames = session.request("frames", **shown, trial=1, destination_mac=NOBODY[0])["frames"]
            replay = tmp_path / "replay.pcap"
            wrpcap(str(replay), [Ether(bytes.fromhex(frame["octets"])) for frame in frames])
            arguments: Document = {} if session_number is None else {"session": session_number}
            ports = {
                side: {"device": device, "dut_mac": mac}
                for side, device, mac in (
                    ("left", "net_null0,no-rx=1", NOBODY[0]),
                    (
                        "right",
                        f"net_pcap1,rx_pcap={replay},tx_pcap={tmp_path}/{session_number}.pcap,infinite_rx=1",
                        NOBODY[1],
                    ),
                )
            }
            session.request(
                "open",
                ports=ports,
                workers=one_worker(),
                plan=plan.to_contract(),
                frame_size=plan.smallest_frame_size,
                seed=1,
                **arguments,
            )
            document = run_trial(session, rate_fps=10_000, duration_s=0.1, directions=["forward"])
            session.request("close")
            assert document["verdict"] != "PASS", document["directions"]
            forward = document["directions"]["forward"]
            assert forward["received_frames"] == 0
            # With the session's own number they are of this trial, but not of its time.
            assert forward["wrong_time_frames" if session_number == 0 else "stale_frames"] > 1_000


def test_a_session_draws_its_number_and_frames_carry_it(tmp_path: Path) -> None:
    """What an earlier session left in a queue is stale, although every run begins with trial 1."""
    numbers = set()
    for _ in range(3):
        with engine() as session:
            opened = session.request(
                "open",
                ports={
                    side: {"device": device, "dut_mac": mac}
                    for side, device, mac in zip(
                        ("left", "right"), memif_cable(tmp_path), NOBODY, strict=True
                    )
                },
                workers=one_worker(),
                plan=gateway_v4().to_contract(),
                frame_size=64,
                seed=1,
            )
            numbers.add(opened["session"])
            assert valid_trial(session, duration_s=0.1)["verdict"] == "PASS"
    assert len(numbers) > 1


def test_one_device_on_both_sides_is_named() -> None:
    with engine() as session, raises("engine.bad-request", match="net_null0"):
        open_ports(session, gateway_v4(), "net_null0,no-rx=1", "net_null0")


@contextmanager
def flapping(lab: LinuxLab, interface: str) -> Iterator[threading.Event]:
    """When the event is set, the DUT's end of a cable goes down for 200 ms."""
    wanted = threading.Event()

    def flap() -> None:
        if not wanted.wait(30):
            return
        for state in ("down", "up"):
            subprocess.run(["ip", "-n", lab.dut_namespace, "link", "set", interface, state], check=True)
            time.sleep(0.2)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield wanted
    finally:
        wanted.set()
        thread.join()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@PLANS
def test_a_link_that_flaps_in_a_trial_makes_it_invalid(plan: AddressPlan) -> None:
    """Issue: a second without link was FAIL, since the link was looked at before and after only."""
    with linux_lab(plan, name="flaptest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        with flapping(lab, lab.dut_interface("right")) as flap:

            def on_event(event: Document) -> None:
                if event["phase"] == "sending":
                    flap.set()

            document = run_trial(session, rate_fps=2_000, duration_s=2, on_event=on_event)
    assert document["verdict"] == "INVALID"
    assert "link" in codes(document)


def mac_of(interface: str) -> str:
    return (Path("/sys/class/net") / interface / "address").read_text().strip()


def contradiction(plan: AddressPlan) -> Packet:
    """The DUT's address on the left, with a MAC that nobody has."""
    address, mac = str(plan.left.dut[0].ip), "02:00:00:00:de:ad"
    if plan.ip_version == 4:
        return Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=mac, psrc=address, pdst=gateway_of(plan.left)
        )
    answer = ICMPv6ND_NA(tgt=address, R=1, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)
    return Ether(src=mac, dst="33:33:00:00:00:01") / IPv6(src=address, dst="ff02::1", hlim=255) / answer


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@PLANS
def test_a_static_mac_stays_whatever_is_announced(plan: AddressPlan) -> None:
    """Issue: an ARP or ND from the DUT's address overwrote it, while `resolve` still said static, and all
    frames went to nobody."""
    with linux_lab(plan, name="mactest") as lab, engine(lab.engine_command(find_engine())) as session:
        macs = {
            side: run_inside(lab.dut_namespace, partial(mac_of, lab.dut_interface(side))) for side in SIDES
        }
        open_ports(
            session,
            plan,
            lab.device("left"),
            lab.device("right"),
            dut_macs=(macs["left"], macs["right"]),
            dut=dut_of(lab),
        )
        frame = bytes(contradiction(plan))

        def announce() -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
                wire.bind((lab.dut_interface("left"), 0))
                for _ in range(10):
                    wire.send(frame)

        run_inside(lab.dut_namespace, announce)
        document = valid_trial(session, rate_fps=2_000, duration_s=0.5, limits=PATIENT)
        resolved = session.request("resolve")
    assert document["verdict"] == "PASS", document["reasons"]
    assert resolved["left"] == {"dut_mac": macs["left"], "static": True}
