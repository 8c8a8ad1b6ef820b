# SPDX-License-Identifier: Apache-2.0
"""Hosts on the link: the real engine answers for each of them, has the DUT resolve them, and names those that
it does not reach."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import rdpcap, wrpcap

from evenhand.lab import linux_lab
from evenhand.plan import AddressPlan, make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import ReferenceDut
from evenhand.trial import EngineSession, LearningProgress, find_engine, learn
from tests.errors import raises
from tests.wire.captures import sent_frames, without_time
from tests.wire.wire_session import (
    NOBODY,
    Document,
    dut_of,
    engine,
    memif_cable,
    one_worker,
    open_ports,
    open_to_dut,
    router_beside_tester,
    run_trial,
    thorough,
    valid_trial,
)

pytestmark = pytest.mark.wire
DIRECT = pytest.mark.parametrize(
    "name", ["direct_v4_net24", "direct_v4_net16", "direct_v6", "nets_v4_multi_host", "nets_v6_direct"]
)
DUT_MAC = "02:00:00:00:d0:02"
learn_fast = partial(learn, rate_fps=50_000, wait_s=0.3)


def learning_frames_of(document: Document) -> str:
    """What a trial says of its learning frames."""
    text: str = next(
        deviation["text"] for deviation in document["deviations"] if deviation["requirement"] == "R2544-34"
    )
    return text


def direct(name: str, hosts: int, networks: int | None = None) -> AddressPlan:
    return make_plan(name, hosts, networks=networks) if name.startswith("nets") else make_plan(name, hosts)


@DIRECT
def test_over_a_cable_every_host_is_reached_at_once(name: str, tmp_path: Path) -> None:
    """R2544-35: one frame to each host, both ways; a trial afterwards counts none of them, and says that they
    were sent (R2544-34)."""
    plan = direct(name, 100, 3)
    told: list[LearningProgress] = []
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        before = run_trial(session, trial=1, duration_s=0.1)
        result = learn_fast(session, on_progress=told.append)
        document = valid_trial(session, rate_fps=5_000, duration_s=0.2, trial=2)
    assert result.is_complete
    for side in plan.sides:
        learned = result.sides[side.name]
        assert (learned.host_count, learned.rounds, learned.unreachable) == (
            side.host_range.address_count,
            1,
            (),
        )
    assert told
    assert all(progress.round == 1 for progress in told)
    assert document["verdict"] == "PASS", document["reasons"]
    assert all(d["received_frames"] == d["offered_frames"] for d in document["directions"].values())
    assert (
        learning_frames_of(before)
        == "no learning frames were sent for the hosts on the link; the DUT asks for them, at the latest in"
        " this trial"
    )
    assert (
        learning_frames_of(document)
        == "learning frames for the hosts on the link were sent once for all trials, not again before this"
        " one"
    )


@pytest.mark.parametrize("name", ["direct_v4_net16", "direct_v6", "gateway_v4", "gateway_v6"])
def test_all_hosts_of_a_full_plan_are_reached(name: str, tmp_path: Path) -> None:
    """SEED-20: 65,533 and 65,536 hosts, not a sample of them."""
    plan = make_plan(name)
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        result = learn(session, rate_fps=100_000)
    assert result.is_complete
    assert {side.host_count for side in result.sides.values()} == {plan.left.host_range.address_count}


def test_behind_nobody_every_host_is_unreachable() -> None:
    """The first hundred are named in order, after as many rounds as were asked for."""
    plan = make_plan("direct_v4_net24")
    with engine() as session:
        open_ports(session, plan, "net_null0,no-rx=1", "net_null1,no-rx=1")
        result = learn_fast(session, rounds=2, directions=["forward"])
    assert set(result.sides) == {"right"}
    right = result.sides["right"]
    assert (right.host_count, right.reachable, right.rounds, right.questions_answered) == (253, 0, 2, 0)
    assert right.unreachable == tuple(f"198.19.0.{n}" for n in range(2, 102))


@DIRECT
def test_the_frames_of_learning_lead_to_each_host_once(name: str, tmp_path: Path) -> None:
    """R2544-35: seen in a capture: each destination once, smallest size, from the first host, checksums
    right, no number of a trial."""
    plan = direct(name, 40, 3)
    capture = tmp_path / "left.pcap"
    with engine() as session:
        opened = open_ports(
            session, plan, f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}"
        )
        learn_fast(session, rounds=1, directions=["forward"])
        session.request("close")
    frames = rdpcap(str(capture))
    network = IP if plan.ip_version == 4 else IPv6
    assert sorted(ipaddress.ip_address(f[network].dst) for f in frames) == sorted(_addresses(plan))
    assert {f[network].src for f in frames} == {str(plan.left.host_range.first_address)}
    assert {f[Ether].src for f in frames} == {opened["left"]["mac"]}
    assert {len(f) + 4 for f in frames} == {plan.smallest_frame_size}
    for frame in frames:
        assert bytes(frame[UDP].payload)[:5] == b"\xe5\xe4\x01\x00\x00"
        again = frame.copy()
        del again[UDP].chksum
        assert Ether(bytes(again))[UDP].chksum == frame[UDP].chksum


@pytest.mark.parametrize("host_macs", ["port", "pseudorandom"])
@pytest.mark.parametrize(
    "name",
    [
        "direct_v4_net16",
        "direct_v6",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("nets_v4_multi_host", "nets_v6_direct")),
    ],
)
def test_questions_are_answered_for_hosts_and_nobody_else(name: str, host_macs: str, tmp_path: Path) -> None:
    """SEED-20, SEED-21, R4814-05, R4814-08: hosts, asked of all or of the host alone; not the DUT, not the
    other side."""
    plan = make_plan(name)
    hosts = [
        plan.left.host_range.first_address,
        plan.left.host_range.last_address,
        _addresses(plan, "left", 77)[-1],
    ]
    strangers = [plan.left.dut[-1].ip, plan.right.host_range.first_address, *_edges(plan)]
    asked = [(target, unicast) for target in [*hosts, *strangers] for unicast in (False, True)]
    answers, port_mac = _ask(plan, asked, host_macs, tmp_path / "one")
    assert [target for target, _ in answers] == [str(target) for target, _ in asked if target in hosts]
    macs = {mac for _, mac in answers}
    if host_macs == "port":
        assert macs == {port_mac}
        return
    assert len(macs) == len(set(hosts))
    for octets in (bytes.fromhex(mac.replace(":", "")) for mac in macs):
        assert octets[0] & 3 == 0
        assert octets[1:3] == b"\x00\x01"
    again, _ = _ask(plan, asked, host_macs, tmp_path / "two")
    assert again == answers  # another opening of the same seed: the same set


def test_frames_carry_the_mac_that_their_host_answers_with(tmp_path: Path) -> None:
    """R4814-06, R4814-08: source MACs of the test frames are those of the answers, in every trial the
    same."""
    plan = make_plan("direct_v6", 5)
    hosts = _addresses(plan, "left", 5)
    answers, _ = _ask(plan, [(host, False) for host in hosts], "pseudorandom", tmp_path / "asked")
    mac_of = dict(answers)
    assert len(set(mac_of.values())) == 5
    capture = tmp_path / "left.pcap"
    with engine() as session:
        open_ports(
            session,
            plan,
            f"net_pcap0,tx_pcap={capture}",
            f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}",
            host_macs="pseudorandom",
        )
        # What a stall of this machine makes too late at the end of a trial is not sent.
        sent = [
            run_trial(session, trial=trial, directions=["forward"], rate_fps=200, duration_s=0.5)[
                "directions"
            ]["forward"]["offered_frames"]
            for trial in (1, 2)
        ]
        learn_fast(session, rounds=1, directions=["forward"])
        session.request("close")
        preview = session.request(
            "frames",
            plan=plan.to_contract(),
            frame_size=plan.smallest_frame_size,
            seed=1,
            direction="forward",
            count=100,
            trial=1,
            host_macs="pseudorandom",
            destination_mac=NOBODY[0],
        )["frames"]
    frames = [f for f in rdpcap(str(capture)) if UDP in f]
    assert len(frames) == sum(sent) + 5
    assert {f[IPv6].src for f in frames} == {str(host) for host in hosts}
    assert all(f[Ether].src == mac_of[f[IPv6].src] for f in frames)
    first_trial = [without_time(frame, 6) for frame in sent_frames(capture, 6)[: sent[0]]]
    assert first_trial
    assert first_trial == [without_time(bytes.fromhex(shown["octets"]), 6) for shown in preview][: sent[0]]


def test_hosts_behind_a_gateway_have_no_mac_of_their_own(tmp_path: Path) -> None:
    """R4814-06: refused, with the reason."""
    with engine() as session:
        with raises("engine.bad-request") as refusal:
            open_ports(session, make_plan("gateway_v4"), *memif_cable(tmp_path), host_macs="pseudorandom")
        assert refusal.value.where == "host_macs"


def test_learning_needs_a_resolved_dut_and_an_open_port(tmp_path: Path) -> None:
    with engine() as session:
        with raises("engine.bad-order"):
            learn(session)
        open_ports(session, make_plan("direct_v6"), *memif_cable(tmp_path), dut_macs=None)
        with raises("engine.not-resolved", match="left side"):
            learn(session)
        with raises("engine.bad-rate"):
            learn(session, rate_fps=1e12)


def test_learning_can_be_stopped() -> None:
    """What is known by then is told, and the session goes on."""
    with engine() as session:
        open_ports(session, make_plan("direct_v6"), "net_null0,no-rx=1", "net_null1,no-rx=1")

        def stop(_: LearningProgress) -> None:
            assert session._process.stdin is not None
            session._process.stdin.write(b'{"id":9999,"request":"stop"}\n')
            session._process.stdin.flush()
            progress.append(_)

        progress: list[LearningProgress] = []
        result = learn(session, rate_fps=100, on_progress=lambda p: stop(p) if not progress else None)
        assert result.was_stopped
        assert result.sides["right"].reachable == 0


@pytest.mark.parametrize("name", ["direct_v4_net24", "direct_v6", "nets_v4_multi_host", "nets_v6_direct"])
@pytest.mark.parametrize("host_macs", [pytest.param("port", marks=pytest.mark.slow), "pseudorandom"])
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_kernels_router_learns_every_host(name: str, host_macs: str) -> None:
    """SEED-20, SEED-22, R5180-07: a real DUT asks for each host, gets the right MAC, and forwards to all of
    them in a trial."""
    plan = direct(name, 20, 4)
    with linux_lab(plan, name="learntest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(
            session, plan, lab.device("left"), lab.device("right"), host_macs=host_macs, dut=dut_of(lab)
        )
        result = learn(session, rate_fps=2_000)
        neighbors = [n for n in lab.neighbors() if n.mac is not None and not n.address.startswith("fe80:")]
        document = valid_trial(session, rate_fps=5_000, duration_s=0.5)
    assert result.is_complete, result
    for side in plan.sides:
        expected = {str(address) for address in _addresses(plan, side.name)}
        assert {n.address for n in neighbors if n.side == side.name} == expected
        # The first host is known already: it asked for the DUT.
        assert result.sides[side.name].questions_answered >= len(expected) - 1
        macs = {n.mac for n in neighbors if n.side == side.name}
        assert len(macs) == (1 if host_macs == "port" else len(expected))
    assert document["verdict"] == "PASS", document["reasons"]


@pytest.mark.parametrize("name", ["direct_v4_net24", "direct_v6"])
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_router_that_remembers_other_macs_of_the_hosts_is_told_the_new_ones(name: str) -> None:
    """SEED-22: the kernel's router takes an announcement for an entry that it has, and makes none of it."""
    plan = direct(name, 20)
    macs = [("02:00:00:00:a1:01", "02:00:00:00:a1:02"), ("02:00:00:00:a2:01", "02:00:00:00:a2:02")]
    with linux_lab(plan, name="learntest") as lab:
        for own_macs in macs:
            with engine(lab.engine_command(find_engine())) as session:
                open_to_dut(session, plan, lab.device("left"), lab.device("right"), own_macs=own_macs)
                result = learn(session, rate_fps=2_000)
                assert result.is_complete, result
                known = {
                    n.mac for n in lab.neighbors() if n.mac is not None and not n.address.startswith("fe80:")
                }
            assert known == set(own_macs)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["direct_v4_net24", "direct_v6"])
def test_the_reference_router_is_reached_again_by_a_tester_with_other_macs(name: str) -> None:
    """A memif port draws its MAC anew in each session."""
    plan = direct(name, 20)
    with router_beside_tester(plan) as router:
        macs = set()
        for _ in range(2):
            with engine() as session:
                opened = open_to_dut(session, plan, router.device("left"), router.device("right"))
                result = learn(session, rate_fps=2_000)
                assert result.is_complete, result
                macs.add(opened["left"]["mac"])
    assert len(macs) == 2


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_missing_route_is_found_by_learning() -> None:
    """SEED-19: behind gateways learning sees which hosts the DUT's routes lead to."""
    smaller, plan = make_plan("nets_v4_gateway", 3, networks=2), make_plan("nets_v4_gateway", 3, networks=3)
    with linux_lab(smaller, name="learntest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(session, plan, lab.device("left"), lab.device("right"))
        result = learn(session, rate_fps=2_000, rounds=2, directions=["forward"])
    assert result.sides["right"].reachable == 6
    assert result.sides["right"].unreachable == ("198.19.2.1", "198.19.2.2", "198.19.2.3")


@pytest.mark.parametrize("name", ["direct_v6", *thorough("direct_v4_net24")])
def test_a_dut_that_was_asked_too_fast_is_asked_more_slowly_until_every_host_is_reached(name: str) -> None:
    """Its one element serves 1,000 frames a second and lets 16 wait, so it loses most frames of a first round
    at 20,000 a second."""
    plan = direct(name, 200)
    told: list[LearningProgress] = []
    slow = ReferenceDut(model=DeviceModel(elements=1, rate_fps=1_000, queue_frames=16))
    with router_beside_tester(plan, slow) as router, engine() as session:
        open_to_dut(session, plan, router.device("left"), router.device("right"))
        result = learn(
            session, rate_fps=20_000, wait_s=0.3, rounds=10, directions=["forward"], on_progress=told.append
        )
    assert result.is_complete, result
    rounds = result.sides["right"].rounds
    assert rounds > 1
    assert result.rate_share == 0.5 ** (rounds - 1)
    # A round that reaches the last host ends before it has to say anything.
    assert {0.5**k for k in range(rounds - 1)} <= {progress.rate_share for progress in told}


def _addresses(
    plan: AddressPlan, side: str = "right", most: int = 10_000
) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The first hosts of a side, at most so many of each network."""
    hosts = (plan.left if side == "left" else plan.right).host_range
    networks = 1 if hosts.network_range is None else hosts.network_range.count
    return [hosts.address(h, network) for network in range(networks) for h in range(min(most, hosts.count))]


def _edges(plan: AddressPlan) -> Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Addresses of the left block that are no hosts."""
    if plan.ip_version == 6:
        return [ipaddress.ip_address(a) for a in ("2001:2::3", "2001:2::1:1", "2001:2:0:100::2")]
    last = {"direct_v4_net16": "198.18.255.255"}.get(plan.name, "198.18.7.255")
    return [ipaddress.ip_address(a) for a in ("198.18.0.0", last)]


def _ask(
    plan: AddressPlan,
    questions: Sequence[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, bool]],
    host_macs: str,
    folder: Path,
) -> tuple[list[tuple[str, str]], str]:
    """Ask the left port of an engine: (address, MAC) of each answer in order, and the MAC of the port.

    The questions come out of a file as soon as the port is open, and the answers go into another.
    """
    folder.mkdir()
    wrpcap(
        str(folder / "questions.pcap"), [_question(plan, target, unicast) for target, unicast in questions]
    )
    with engine() as session:
        opened = open_ports(
            session,
            plan,
            f"net_pcap0,rx_pcap={folder / 'questions.pcap'},tx_pcap={folder / 'answers.pcap'}",
            f"net_pcap1,tx_pcap={folder / 'right.pcap'}",
            workers=one_worker(),
            host_macs=host_macs,
        )
        _wait_for_questions(session, len(questions))
        session.request("close")
    answers = []
    for frame in rdpcap(str(folder / "answers.pcap")):
        if ARP in frame and frame[ARP].op == 2:
            assert frame[Ether].src == frame[ARP].hwsrc
            answers.append((frame[ARP].psrc, frame[ARP].hwsrc))
        elif ICMPv6ND_NA in frame:
            assert (frame[ICMPv6ND_NA].R, frame[ICMPv6ND_NA].S, frame[ICMPv6ND_NA].O) == (0, 1, 1)
            assert frame[Ether].src == frame[ICMPv6ND_NA].payload.lladdr
            answers.append((frame[ICMPv6ND_NA].tgt, frame[Ether].src))
    return answers, str(opened["left"]["mac"])


def _wait_for_questions(session: EngineSession, count: int) -> None:
    for _ in range(500):
        counters: Document = session.request("counters")
        if counters["left"]["neighbor"]["requests"] >= count:
            return
        time.sleep(0.02)
    raise AssertionError(counters)


def _question(
    plan: AddressPlan, target: ipaddress.IPv4Address | ipaddress.IPv6Address, unicast: bool
) -> Packet:
    own = str(plan.left.dut[0].ip)
    if target.version == 4:
        return Ether(src=DUT_MAC, dst="02:00:00:00:00:09" if unicast else "ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=DUT_MAC, psrc=own, pdst=str(target)
        )
    low = target.packed[-3:]
    group = ipaddress.ip_address(bytes.fromhex("ff0200000000000000000001ff") + low)
    multicast = "33:33:ff:" + ":".join(f"{octet:02x}" for octet in low)
    return (
        Ether(src=DUT_MAC, dst="02:00:00:00:00:09" if unicast else multicast)
        / IPv6(src=own, dst=str(target if unicast else group), hlim=255)
        / ICMPv6ND_NS(tgt=str(target))
        / ICMPv6NDOptSrcLLAddr(lladdr=DUT_MAC)
    )
