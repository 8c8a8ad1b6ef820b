# SPDX-License-Identifier: Apache-2.0
"""Stations 2 to 7: frames in a tunnel of which the DUT is the other end; on a cable, in captures, and through
a Linux router."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.utils import rdpcap

from evenhand.cli.plan_frames import ask_for_frames
from evenhand.plan import SIDES, AddressPlan, SideName, gateway_v4, gateway_v6, make_plan
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.wire.captures import MAGIC, TAG_AT, without_time
from tests.wire.tunnels import OUTER, VNI, linux_vxlan_end, tunnel, turned
from tests.wire.wire_session import (
    NOBODY,
    Document,
    assert_all_came,
    drop_captures,
    engine,
    memif_cable,
    one_worker,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
BOTH_PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: plan.name)
EACH_TUNNEL = [("vxlan", 4), ("vxlan", 6), ("mpls", 4), ("gre", 4), ("gre", 6), ("ip", 4), ("ip", 6)]
OCTETS = {
    ("vxlan", 4): 50,
    ("vxlan", 6): 70,
    ("mpls", 4): 8,
    ("gre", 4): 24,
    ("gre", 6): 44,
    ("ip", 4): 20,
    ("ip", 6): 40,
}


def open_tunnels(
    session: EngineSession,
    plan: AddressPlan,
    devices: tuple[str, str],
    tunnels: dict[SideName, Document],
    *,
    macs: tuple[str, str] | None = NOBODY,
    **arguments: Any,
) -> None:
    """Open ports of which those that are named are in a tunnel; `macs` of a DUT that is not asked."""
    ports: dict[SideName, Document] = {
        side: {"device": device} for side, device in zip(SIDES, devices, strict=True)
    }
    for number, side in enumerate(SIDES):
        if macs is not None:
            ports[side]["dut_mac"] = macs[number]
        if side in tunnels:
            inner = {"dut_mac": macs[number]} if macs and tunnels[side]["kind"] == "vxlan" else {}
            ports[side]["tunnel"] = {**tunnels[side], **inner}
    options: Document = {"frame_size": plan.smallest_frame_size, "seed": 77, "session": 0, **arguments}
    session.request(
        "open",
        host={"memory_mb": needed_memory_mb(one_worker(), ports)},
        ports=ports,
        workers=one_worker(),
        plan=plan.to_request(),
        **options,
    )


@BOTH_PLANS
@pytest.mark.parametrize(("kind", "outer"), EACH_TUNNEL)
def test_a_tunnel_brings_every_frame_to_its_other_end(
    plan: AddressPlan, kind: str, outer: int, tmp_path: Path
) -> None:
    """Both ends of a cable are the two ends of a tunnel: all frames come, and are as they were sent."""
    of = tunnel(kind, outer)
    with engine() as session:
        open_tunnels(session, plan, memif_cable(tmp_path), {"left": of, "right": turned(of)}, frame_size=1000)
        for direction in valid_trial(session, duration_s=0.1)["directions"].values():
            assert_all_came(direction)


@pytest.mark.parametrize(
    ("of", "other"),
    [
        (tunnel("vxlan"), {"vni": VNI + 1}),
        (tunnel("vxlan", 6), {"udp_port": 8472}),
        (tunnel("mpls"), {"arriving_labels": [1_048_575, 17]}),
        (tunnel("gre"), {"local": "192.0.2.3"}),
        (tunnel("ip", 6), {"remote": "2001:db8::3"}),
    ],
    ids=("vni", "udp-port", "label", "local", "remote"),
)
def test_frames_of_another_tunnel_are_foreign(of: Document, other: Document, tmp_path: Path) -> None:
    """Nothing that is known of the outer headers may be another one."""
    with engine() as session:
        devices = memif_cable(tmp_path)
        open_tunnels(session, gateway_v4(), devices, {"left": of, "right": {**turned(of), **other}})
        forward = valid_trial(session, duration_s=0.1)["directions"]["forward"]
    frames = forward["offered_frames"]
    assert (forward["received_frames"], forward["foreign_frames"]) == (0, frames)
    assert forward["corrupted_frames"] == forward["wrong_length_frames"] == 0


def inner_of(frame: bytes, kind: str, outer: int) -> bytes:
    """What is in the tunnel, as scapy reads it; what is around it is what was asked for."""
    read = Ether(frame)
    assert (read.dst, read.src) == (NOBODY[0], Ether(frame).src)
    of = tunnel(kind, outer)
    if kind == "mpls":
        labels = [(layer.label, layer.s, layer.ttl, layer.cos) for layer in (read[MPLS], read[MPLS].payload)]
        assert labels == [(of["labels"][0], 0, 10, 0), (of["labels"][1], 1, 10, 0)]
        return bytes(read[MPLS].payload.payload)
    header = read[IP if outer == 4 else IPv6]
    assert (header.src, header.dst) == OUTER[outer]
    whole = header.__class__(bytes(header))
    if outer == 4:
        assert (whole.ttl, whole.tos, whole.id, whole.flags, whole.frag) == (64, 0, 0, "DF", 0)
        assert whole.len == len(frame) - 14
        del whole.chksum
        assert header.__class__(bytes(whole)).chksum == header.chksum
    else:
        assert (whole.hlim, whole.tc, whole.plen) == (64, 0, len(frame) - 54)
    if kind == "gre":
        assert bytes(read[GRE])[:2] == b"\0\0"
        return bytes(read[GRE].payload)
    if kind == "ip":
        return bytes(header.payload)
    udp = read[UDP]
    assert (udp.dport, udp.len, udp.sport >= 0xC000) == (4789, len(bytes(udp)), True)
    assert (udp.chksum == 0) == (outer == 4)
    if outer == 6:
        del whole[UDP].chksum
        assert header.__class__(bytes(whole))[UDP].chksum == udp.chksum
    assert (read[VXLAN].flags, read[VXLAN].vni) == (8, VNI)
    return bytes(read[VXLAN].payload)


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: plan.name)
@pytest.mark.parametrize(("kind", "outer"), EACH_TUNNEL)
def test_the_wire_holds_the_frames_of_the_plan_in_the_tunnel(
    plan: AddressPlan, kind: str, outer: int, tmp_path: Path
) -> None:
    """Another reader finds each outer field as the RFC of the tunnel has it, and inside the frames that are
    sent without a tunnel. The preview in the tunnel shows the same outer octets."""
    capture = tmp_path / "left.pcap"
    frames = 100

    def captured() -> tuple[Document, list[Document]]:
        drop_captures(tmp_path)
        with engine() as session:
            devices = (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}")
            open_tunnels(session, plan, devices, {"left": tunnel(kind, outer)})
            document = run_trial(
                session, trial=9, directions=["forward"], duration_s=0.1, rate_fps=frames * 10
            )
            session.request("close")
            shown = session.request(
                "frames",
                plan=plan.to_contract(),
                frame_size=plan.smallest_frame_size,
                seed=77,
                direction="forward",
                count=frames,
                trial=9,
            )["frames"]
            return document, shown

    _, shown = until(lambda found: was_sent_whole(found[0]), captured)
    version, ethernet = plan.left.ip_version, 14
    sent = [frame for frame in map(bytes, rdpcap(str(capture))) if MAGIC in frame]
    assert [len(frame) for frame in sent] == [plan.smallest_frame_size - 4 + OCTETS[kind, outer]] * frames
    inner = [inner_of(frame, kind, outer) for frame in sent]
    if kind == "vxlan":
        inner = [frame[ethernet:] for frame in inner]
    found = [bytes(ethernet) + packet for packet in inner]
    assert all(frame[TAG_AT[version] :].startswith(MAGIC) for frame in found)
    assert [without_time(frame, version)[ethernet:] for frame in found] == [
        without_time(bytes.fromhex(frame["octets"]), version)[ethernet:] for frame in shown
    ]
    inner_macs = {"dut_mac": NOBODY[0]} if kind == "vxlan" else {}
    previewed = ask_for_frames(
        find_engine(None),
        plan,
        size=plan.smallest_frame_size,
        seed=77,
        direction="forward",
        ranges=[(0, frames)],
        around={
            "tunnel": {**tunnel(kind, outer), **inner_macs},
            "source_mac": sent[0][6:12].hex(":"),
            "destination_mac": NOBODY[0],
        },
    )
    headers = OCTETS[kind, outer] + ethernet  # the time of a tag does not change them: inner sums stay right
    for frame, preview in zip(sent, previewed, strict=True):
        assert preview["octets"][: 2 * headers] == frame[:headers].hex()
        assert len(preview["octets"]) == 2 * len(frame)


@pytest.mark.root
@pytest.mark.parametrize("outer", [4, 6], ids=("over-v4", "over-v6"))
@BOTH_PLANS
def test_a_linux_router_decapsulates_and_encapsulates(plan: AddressPlan, outer: int) -> None:
    """VXLAN, RFC 7348: the tester finds the router on the link and in the tunnel, answers it in both, and
    receives each frame of both directions once."""
    with linux_vxlan_end(plan, outer) as namespace, in_namespace(namespace) as session:
        devices = ("net_af_packet0,iface=left", "net_af_packet1,iface=right")
        open_tunnels(session, plan, devices, {"left": tunnel("vxlan", outer)}, macs=None, frame_size=1400)
        session.request("resolve", timeout_s=10)
        for direction in valid_trial(session, rate_fps=2000)["directions"].values():
            assert_all_came(direction, but=("foreign",))  # the router's own multicasts


@pytest.mark.root
def test_a_router_that_answers_in_another_vni_has_lost_every_frame() -> None:
    """RFC 7348: the VNI says whose the frame is. Both directions are judged by themselves."""
    plan = gateway_v4()
    with linux_vxlan_end(plan, 4, answers_in=VNI + 1) as namespace, in_namespace(namespace) as session:
        devices = ("net_af_packet0,iface=left", "net_af_packet1,iface=right")
        open_tunnels(session, plan, devices, {"left": tunnel("vxlan")}, macs=None)
        session.request("resolve", timeout_s=10)
        document = valid_trial(session, rate_fps=2000)
    forward, reverse = document["directions"]["forward"], document["directions"]["reverse"]
    assert document["verdict"] == "FAIL"
    assert_all_came(forward, but=("foreign",))
    assert reverse["received_frames"] == 0
    assert reverse["lost_frames"] == reverse["intended_frames"]
    assert reverse["foreign_frames"] >= reverse["intended_frames"]


def in_namespace(namespace: str) -> EngineSession:
    return EngineSession(["ip", "netns", "exec", namespace, find_engine()])


@pytest.mark.root
def test_a_testbed_file_names_the_tunnel(tmp_path: Path) -> None:
    """The whole way: file, DUT, verdict; the result says what the frames were in, and that a frame size is
    that of the frame inside."""
    plan, testbed = gateway_v6(), tmp_path / "bed.toml"
    local, remote = OUTER[4]
    testbed.write_text(
        f"""isolated_test_environment = true
[left]
device = "net_af_packet0,iface=left"
[left.tunnel]
kind = "vxlan"
local = "{local}"
remote = "{remote}"
vni = {VNI}
[right]
device = "net_af_packet1,iface=right"
[tester]
cpus = [{one_worker()[0]["cpu"]}]
"""
    )
    options = ("--rate", "1000fps", "--duration", "500ms", "--wait-residual", "200ms", "--json", "--no-run")
    lenient = ("--overdue-tolerance", "99%", "--longest-overdue", "10s", "--offered-tolerance", "10%")
    with linux_vxlan_end(plan, 4) as namespace:
        command = ("ip", "netns", "exec", namespace, sys.executable, "-m", "evenhand", "trial")

        def measured() -> Document:
            done = subprocess.run(
                [*command, str(testbed), "--plan", "gateway-v6", *options, *lenient],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode in (0, 1, 3), done.stderr
            found: Document = json.loads(done.stdout)
            return found

        document = until(lambda found: found["trial"]["verdict"] != "INVALID", measured)
    assert document["trial"]["verdict"] == "PASS"
    assert document["tunnels"] == {"left": tunnel("vxlan")}
    assert document["frame_size"] == plan.smallest_frame_size


def test_what_cannot_be_in_a_tunnel_is_refused(tmp_path: Path) -> None:
    """One error each, before any port is opened."""
    plan = gateway_v4()
    devices = memif_cable(tmp_path)
    inside = {**tunnel("gre"), "remote": str(plan.left.dut[0].ip)}
    with engine() as session, raises("engine.bad-request", match=r"10\.0\.0\.1") as refused:
        open_tunnels(session, plan, devices, {"left": inside})
    assert refused.value.where == "left.tunnel"
    same: dict[SideName, Document] = {"left": tunnel("vxlan"), "right": tunnel("vxlan")}
    with engine() as session, raises("engine.bad-request", match="in one tunnel") as refused:
        open_tunnels(session, plan, (devices[0], devices[0]), same)
    assert refused.value.where == "left.tunnel"
    right_host = {**tunnel("gre"), "local": str(plan.right.gateway.ip) if plan.right.gateway else ""}
    with engine() as session, raises("engine.bad-request", match=r"10\.0\.1\.2"):
        open_tunnels(session, plan, (devices[0], devices[0]), {"left": right_host})


@pytest.mark.parametrize(
    ("plan", "of", "size", "code"),
    [
        (make_plan("siit"), tunnel("vxlan"), 128, "engine.bad-request"),
        (make_plan("direct_v4_net24"), tunnel("gre"), 128, "engine.bad-request"),
        (gateway_v6(), tunnel("vxlan", 6), 9216 - 70 + 1, "engine.bad-frame-size"),
    ],
    ids=("translated", "direct", "too-long"),
)
def test_a_preview_refuses_what_a_tester_would(plan: AddressPlan, of: Document, size: int, code: str) -> None:
    with raises(code):
        ask_for_frames(
            find_engine(None),
            plan,
            size=size,
            seed=1,
            direction="forward",
            ranges=[(0, 1)],
            around={"tunnel": of},
        )
