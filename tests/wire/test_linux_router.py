# SPDX-License-Identifier: Apache-2.0
"""The whole way once: the real engine, the kernel's real router in a namespace, and what is seen inside that
namespace."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.sendrecv import srp1
from scapy.utils import rdpcap

from evenhand.lab import LinuxLab, linux_lab
from evenhand.lab.namespaces import run_inside
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.lab.lab_wire import gateway_of
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    PATIENT,
    Document,
    dut_of,
    engine,
    open_ports,
    open_to_dut,
    run_trial,
    until,
    valid_trial,
)

pytestmark = [pytest.mark.wire, pytest.mark.root]
LOAD_FPS = 5_000
"""The DUT's veth ring holds 50 ms of it."""


@pytest.fixture(params=[gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def rig(request: pytest.FixtureRequest) -> Iterator[tuple[AddressPlan, LinuxLab, EngineSession, Document]]:
    """A lab for the plan, and an engine on it with both ports open and the DUT resolved."""
    plan: AddressPlan = request.param
    with linux_lab(plan, name="wiretest") as lab, engine(lab.engine_command(find_engine())) as session:
        opened = open_to_dut(session, plan, lab.device("left"), lab.device("right"), seed=42, dut=dut_of(lab))
        yield plan, lab, session, opened


Rig = tuple[AddressPlan, LinuxLab, EngineSession, Document]


def test_full_range_trial_through_the_router(rig: Rig) -> None:
    """SEED-18, SEED-19, SEED-22: all hosts are reached through two neighbour entries, which the DUT resolved
    by asking the tester."""
    plan, lab, session, _ = rig
    document = valid_trial(session, rate_fps=LOAD_FPS, duration_s=1)
    assert document["verdict"] == "PASS", document["reasons"]
    assert all(d["received_frames"] == LOAD_FPS for d in document["directions"].values())
    assert all(d["corrupted_frames"] == 0 for d in document["directions"].values())
    answered = {n.address for n in lab.neighbors() if n.mac is not None and not n.address.startswith("fe80:")}
    assert answered == {gateway_of(plan.left), gateway_of(plan.right)}


def test_frames_inside_the_namespace_are_those_of_plan_frames(rig: Rig, tmp_path: Path) -> None:
    """SEED-40, SEED-47, D3: a capture on the DUT's own interface shows addresses, ports, checksums and
    numbers as previewed."""
    plan, lab, session, opened = rig
    for _ in range(MOST_ATTEMPTS):  # until this machine lets the DUT see all of them
        captured, trial = _capture(
            lab,
            tmp_path,
            lambda: run_trial(session, trial=5, rate_fps=LOAD_FPS, duration_s=0.5, directions=["forward"]),
        )
        if trial["verdict"] != "INVALID":
            break
    frames = [
        f
        for f in captured
        if UDP in f
        and bytes(f[UDP].payload)[:5] == b"\xe5\xe4\x01\x00\x05"
        and f[Ether].src == opened["left"]["mac"]
    ]
    count = LOAD_FPS // 2
    assert len(frames) == count
    shown = session.request(
        "frames",
        plan=plan.to_contract(),
        frame_size=plan.smallest_frame_size,
        seed=42,
        direction="forward",
        count=count,
        trial=5,
    )["frames"]
    network = IP if plan.ip_version == 4 else IPv6
    for frame, preview in zip(frames, shown, strict=True):
        payload = bytes(frame[UDP].payload)
        assert int.from_bytes(payload[6:12], "big") == preview["sequence"]
        assert (frame[network].src, frame[network].dst) == (preview["source"], preview["destination"])
        assert (frame[UDP].sport, frame[UDP].dport) == (preview["source_port"], preview["destination_port"])
        assert _checksums_are_right(frame, network)


def test_forwarding_switched_off_is_a_failure_not_an_error(rig: Rig) -> None:
    """D5: a device that forwards nothing FAILs with loss ratio 1."""
    _, lab, session, _ = rig
    lab.set_forwarding(False)
    document = valid_trial(session, rate_fps=LOAD_FPS)
    assert document["verdict"] == "FAIL"
    assert document["loss_ratio"] == 1
    lab.set_forwarding(True)
    assert valid_trial(session, trial=MOST_ATTEMPTS + 1, rate_fps=LOAD_FPS)["verdict"] == "PASS"


@pytest.mark.thorough
def test_an_engine_stopped_for_300_ms_makes_the_trial_invalid(rig: Rig) -> None:
    """D5: the tester's own stall is told as such and never charged to the device."""
    _, _, session, _ = rig
    results: list[Document] = []
    sending = threading.Event()

    def on_event(event: Document) -> None:
        if event["phase"] == "sending" and event["sent_frames"] > 0:
            sending.set()

    runner = threading.Thread(
        target=lambda: results.append(
            run_trial(session, rate_fps=50_000, duration_s=3, on_event=on_event, limits={})
        )
    )
    runner.start()
    assert sending.wait(30)
    os.killpg(session._process.pid, signal.SIGSTOP)
    time.sleep(0.3)
    os.killpg(session._process.pid, signal.SIGCONT)
    runner.join(60)
    assert results[0]["verdict"] == "INVALID"
    assert "sender_overdue" in {reason["code"] for reason in results[0]["reasons"]}
    assert results[0]["directions"]["forward"]["sender"]["max_overdue_us"] >= 250_000


@pytest.mark.two_cpus
def test_neighbours_are_answered_before_during_and_between_trials(rig: Rig) -> None:
    """SEED-18, R2544-25: the gateway is answered at any time, also while frames fly; a host behind it never
    is."""
    plan, lab, session, opened = rig
    mac = opened["left"]["mac"]

    def ask(target: object, patience_s: float = 3, retries: int = 3) -> Packet | None:
        # Asked again as a kernel does: a busy host may lose a question.
        return run_inside(lab.dut_namespace, lambda: _ask(lab, plan, str(target), patience_s, retries))

    assert _answered_mac(ask(gateway_of(plan.left))) == mac
    answers: list[Packet | None] = []

    def ask_during_the_trial(event: Document) -> None:
        if event["phase"] == "learning":
            answers.clear()
        if event["phase"] == "sending":
            answers.append(ask(gateway_of(plan.left)))

    numbers = count(1, MOST_ATTEMPTS)
    # Events wait while one is handled: where this machine made a question be asked anew, the later ones come
    # behind the trial.
    document = until(
        lambda found: found["directions"]["reverse"]["neighbor_frames"] >= len(answers),
        lambda: valid_trial(
            session,
            trial=next(numbers),
            rate_fps=1_000,
            duration_s=2,
            on_event=ask_during_the_trial,
            limits=PATIENT,
        ),
    )
    assert answers
    assert all(_answered_mac(answer) == mac for answer in answers)
    assert document["verdict"] == "PASS", document["reasons"]
    assert _answered_mac(ask(gateway_of(plan.left))) == mac
    for host in (
        plan.left.host_range.first_address,
        plan.left.host_range.last_address,
        gateway_of(plan.right),
    ):
        assert ask(host, patience_s=1, retries=0) is None


def test_an_unresolved_dut_is_named(tmp_path: Path) -> None:
    """SEED-22: without an answer nothing is sent, and the fault tells address and side."""
    with (
        linux_lab(gateway_v6(), name="wiretest") as lab,
        engine(lab.engine_command(find_engine())) as session,
    ):
        open_ports(session, gateway_v4(), lab.device("left"), lab.device("right"), dut_macs=None)
        with raises("engine.not-resolved", match=r"10\.0\.0\.1 .* left side"):
            session.request("resolve", timeout_s=1)
        with raises("engine.not-resolved", match="MAC on the left side"):
            run_trial(session)


def test_af_packet_ports_forward_too() -> None:
    """D1: the same engine on another kind of port."""
    plan = gateway_v4(100)
    with linux_lab(plan, name="wiretest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(
            session, plan, lab.device("left", "af_packet"), lab.device("right", "af_packet"), dut=dut_of(lab)
        )
        document = valid_trial(session, rate_fps=1_000)
    assert document["verdict"] == "PASS", document["reasons"]


def _capture(lab: LinuxLab, folder: Path, work: Callable[[], Document]) -> tuple[list[Packet], Document]:
    """What the DUT's left interface sees while `work` runs, and what that returns."""
    file = folder / "dut.pcap"
    command = [
        "ip",
        "netns",
        "exec",
        lab.dut_namespace,
        "tcpdump",
        "-U",
        "-w",
        str(file),
        "-i",
        lab.dut_interface("left"),
        "-Q",
        "in",
        "udp",
    ]
    tcpdump = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tcpdump.stderr is not None
    try:
        while "listening" not in (line := tcpdump.stderr.readline()):
            assert line, "tcpdump did not start"
        result = work()
        time.sleep(0.5)
    finally:
        tcpdump.terminate()
        tcpdump.communicate(timeout=10)
    return list(rdpcap(str(file))), result


def _checksums_are_right(frame: Packet, network: type[Packet]) -> bool:
    again = frame.copy()
    del again[UDP].chksum
    if network is IP:
        del again[IP].chksum
    again = Ether(bytes(again))
    return bool(
        again[UDP].chksum == frame[UDP].chksum != 0
        and (network is IPv6 or again[IP].chksum == frame[IP].chksum)
    )


def _ask(lab: LinuxLab, plan: AddressPlan, target: str, patience_s: float, retries: int) -> Packet | None:
    """Ask from the DUT's left interface who has `target`."""
    interface = lab.dut_interface("left")
    own_mac = (Path("/sys/class/net") / interface / "address").read_text().strip()
    own = str(plan.left.dut[0].ip)
    if plan.ip_version == 4:
        question = Ether(src=own_mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=own_mac, psrc=own, pdst=target
        )
    else:
        question = (
            Ether(src=own_mac, dst="33:33:ff:00:00:02")
            / IPv6(src=own, dst="ff02::1:ff00:2", hlim=255)
            / ICMPv6ND_NS(tgt=target)
            / ICMPv6NDOptSrcLLAddr(lladdr=own_mac)
        )
    answer: Packet | None = srp1(question, iface=interface, timeout=patience_s, retry=retries, verbose=False)
    return answer


def _answered_mac(answer: Packet | None) -> str | None:
    if answer is None:
        return None
    if ARP in answer:
        return str(answer[ARP].hwsrc)
    assert ICMPv6ND_NA in answer
    return str(answer[Ether].src)
