# SPDX-License-Identifier: Apache-2.0
"""The real reference router: between our tester's ports, between files of scapy's frames, and behind another
generator."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import rdpcap, wrpcap

from evenhand.base.errors import HostError
from evenhand.base.programs import ROUTER, find_program
from evenhand.plan import AddressPlan, make_plan
from evenhand.predict import DeviceModel, HashType, predict
from evenhand.reference import Defects, ReferenceDut, ReferenceRouter, Stall, reference_router
from tests.errors import raises
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    QUIET_FPS,
    Document,
    cpus,
    engine,
    open_ports,
    open_to_dut,
    proved,
    router_beside_tester,
    run_trial,
    thorough,
    until,
    was_sent_whole,
)

CONTRACT = Path(__file__).parents[2] / "contract"
pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("_router")]
LEFT_MAC, RIGHT_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
DUT_LEFT, DUT_RIGHT = "02:00:00:00:d0:01", "02:00:00:00:d0:02"


def measure(
    router: ReferenceRouter,
    plan: AddressPlan,
    *,
    frame_size: int | None = None,
    opened: Document | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """A trial through the router, which is found by ARP or ND.

    Args:
        opened: What else stands in the request that opens the ports.
    """
    with engine() as session:
        open_to_dut(
            session,
            plan,
            router.device("left"),
            router.device("right"),
            frame_size=frame_size,
            **(opened or {}),
        )
        return run_trial(session, **arguments)


@pytest.mark.parametrize(
    ("name", "hosts", "hash_type"),
    [
        ("gateway-v4", None, "type1"),
        ("gateway-v6", 1, "type2"),
        *thorough(("gateway-v4", 1, "type1"), ("gateway-v6", None, "type1")),
        *proved(("gateway-v6", 1, "type1"), ("gateway-v4", 1, "type2")),
        *proved(("gateway-v4", None, "type2"), ("gateway-v6", None, "type2")),
    ],
)
def test_the_elements_that_work_are_those_that_were_predicted(
    name: str, hosts: int | None, hash_type: HashType
) -> None:
    """RSS-01, RSS-03, RSS-04, SEED-01, SEED-71: prediction in Python and router in C++ choose the same
    element for each frame.

    IPv4 and IPv6, one address pair and all addresses: the engine sends what the plan says, and the router
    forwards it.
    """
    plan = make_plan(name, hosts)
    model = DeviceModel(elements=16, hash_type=hash_type, rate_fps=200_000, queue_frames=4096)
    prediction = predict(plan, model)

    def forwarded() -> tuple[Document, Document]:
        with router_beside_tester(plan, ReferenceDut(model=model)) as router:
            return measure(router, plan), router.counters()

    document, counters = until(lambda found: was_sent_whole(found[0]), forwarded)
    jsonschema.validate(counters, json.loads((CONTRACT / "router-reply.schema.json").read_text()))
    served = [element["served_frames"] for element in counters["elements"]]
    received = sum(direction["received_frames"] for direction in document["directions"].values())
    assert sum(served) == received == 2 * QUIET_FPS * 0.5
    assert {i for i, frames in enumerate(served) if frames} == {
        i for i, count in enumerate(prediction.total_counts) if count
    }
    assert counters["neighbors"]["entries"] == 2  # SEED-19


@pytest.mark.slow
@pytest.mark.two_cpus
@pytest.mark.parametrize("name", ["gateway-v4", "gateway-v6"])
def test_a_router_that_holds_frames_for_seconds_is_not_stopped_early(name: str) -> None:
    """R2544-19: it loses none, so a trial that may stop early passes as one that may not."""
    plan = make_plan(name)
    stall = Stall(every_ms=5000, for_ms=3500, queue_frames=16384)
    with reference_router(plan, ReferenceDut(stall=stall)) as router:
        document = measure(
            router,
            plan,
            rate_fps=1000,
            duration_s=9,
            stop_when_failed=True,
            waits={"after_routing_s": 0, "after_learning_s": 0, "residual_s": 4, "restabilize_s": 0},
            limits={"longest_overdue_us": 1e5, "overdue_tolerance": 1},
        )
    assert document["verdict"] != "FAIL", document["reasons"]
    assert "stopped_early_s" not in document
    assert sum(direction["lost_frames"] for direction in document["directions"].values()) == 0


def test_a_silent_memif_tells_of_queues_that_nobody_polls() -> None:
    """The tester cannot see how many queues the other end sends on; Open vSwitch answers on its queue 1. It
    can say that this may be it."""
    with router_beside_tester(make_plan("gateway-v6")) as router, engine() as session:
        open_ports(
            session, make_plan("gateway-v4"), router.device("left"), router.device("right"), dut_macs=None
        )
        with raises("engine.not-resolved", match=r"10\.0\.0\.1 .*no frame at all") as error:
            session.request("resolve", timeout_s=0.5)
    assert "raise receive_queues" in error.value.next_step


@pytest.mark.parametrize("name", ["gateway-v4", "gateway-v6"])
def test_seeded_defects_are_counted_exactly(name: str) -> None:
    """R2544-06, R2544-07: one loss, one duplicate, one swap and one corrupted octet are found among all the
    others, and nothing else.

    `make prove` does it with a million frames.
    """
    plan = make_plan(name)
    at: dict[str, tuple[int, ...]] = {
        "loss": (2_000,),
        "duplication": (4_000,),
        "reordering": (6_000,),
        "corruption": (8_000,),
    }
    for _ in range(MOST_ATTEMPTS):
        with router_beside_tester(plan, ReferenceDut(defects=Defects(at=at))) as router:
            document = measure(router, plan, rate_fps=QUIET_FPS, duration_s=0.5)
            counters = router.counters()
        directions = document["directions"].values()
        refused = sum(counters[side]["transmit_dropped_frames"] for side in ("left", "right"))
        if (
            refused == 0
            and was_sent_whole(document)
            and all(d["receiver"]["gap_frames"] == 0 for d in directions)
        ):
            break
        # Else the machine took the tester's CPU away: not every frame left, or the rings overflowed, and
        # those losses are real.
    assert counters["defects"] == {
        "lost_frames": 1,
        "duplicated_frames": 1,
        "reordered_frames": 1,
        "corrupted_frames": 1,
    }
    found = {
        kind: sum(d[f"{kind}_frames"] for d in directions)
        for kind in ("duplicated", "reordered", "corrupted", "received", "foreign")
    }
    # The corrupted frame is no test frame any more: with the lost one, two are missing.
    assert found == {"duplicated": 1, "reordered": 1, "corrupted": 1, "received": 20_000 - 2, "foreign": 0}


def test_a_hash_of_addresses_only_loses_what_one_element_cannot_serve() -> None:
    """SEED-71: far above one element's rate and far below the router's."""
    model = DeviceModel(elements=16, rate_fps=5_000, queue_frames=64)
    losses = {}
    for hosts in (1, None):
        plan = make_plan("gateway-v4", hosts)
        with router_beside_tester(plan, ReferenceDut(model=model)) as router:
            losses[hosts] = measure(router, plan, rate_fps=QUIET_FPS)["loss_ratio"]
    assert losses[1] > 0.5
    assert losses[None] < 0.1


def run_on_files(
    folder: Path, plan: AddressPlan, left: Sequence[Packet], right: Sequence[Packet], *, expected: int
) -> tuple[list[Packet], list[Packet], dict[str, Any]]:
    """What the router makes of these frames: out of the left port, out of the right one, and its counters."""
    for side, frames in (("left", left), ("right", right)):
        wrpcap(
            str(folder / f"{side}-in.pcap"),
            frames or [Ether(dst="02:ff:ff:ff:ff:ff", type=0x88B5) / (b"\0" * 46)],
        )
    devices = {
        side: f"net_pcap{i},rx_pcap={folder}/{side}-in.pcap,tx_pcap={folder}/{side}-out.pcap"
        for i, side in enumerate(("left", "right"))
    }
    dut = ReferenceDut(static_neighbors=neighbors(plan))
    config = dut.router_config(plan, {"left": devices["left"], "right": devices["right"]}, cpu=cpus()[0])
    config["ports"]["left"]["mac"], config["ports"]["right"]["mac"] = DUT_LEFT, DUT_RIGHT
    (folder / "router.json").write_text(json.dumps(config))
    with subprocess.Popen(
        [find_program(ROUTER), folder / "router.json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        give_up = time.monotonic() + 30
        while True:
            process.stdin.write('{"request":"counters"}\n')
            process.stdin.flush()
            counters = json.loads(process.stdout.readline())
            if (
                counters["left"]["transmitted_frames"] + counters["right"]["transmitted_frames"] >= expected
                or time.monotonic() > give_up
            ):
                break
            time.sleep(0.05)
        process.stdin.close()
        last = json.loads(process.stdout.readlines()[-1])
        assert last["event"] == "stopped"
        assert process.wait(20) == 0
    return list(rdpcap(str(folder / "left-out.pcap"))), list(rdpcap(str(folder / "right-out.pcap"))), last


def neighbors(plan: AddressPlan) -> dict[str, str]:
    assert plan.left.gateway is not None
    assert plan.right.gateway is not None
    return {str(plan.left.gateway.ip): LEFT_MAC, str(plan.right.gateway.ip): RIGHT_MAC}


@pytest.mark.parametrize("version", [4, 6])
def test_frames_of_another_maker_are_forwarded_right(tmp_path: Path, version: int) -> None:
    """R2544-40: hop, MACs and checksums as scapy computes them; what must not be forwarded is not."""
    plan = make_plan(f"gateway-v{version}")

    def net(source: object, destination: object, hops: int = 64) -> Packet:
        source, destination = str(source), str(destination)
        return (
            IP(src=source, dst=destination, ttl=hops)
            if version == 4
            else IPv6(src=source, dst=destination, hlim=hops)
        )

    ether = Ether(src=LEFT_MAC, dst=DUT_LEFT)
    hosts = [(plan.left.host_range.address(i), plan.right.host_range.address(65_000 - i)) for i in range(50)]
    good = [
        ether / net(source, destination) / UDP(sport=1000 + i, dport=7) / (b"payload" * (1 + i))
        for i, (source, destination) in enumerate(hosts)
    ]
    source, destination = hosts[0]
    bad = [
        ether / net(source, destination, hops=1) / UDP() / b"expired",
        ether / net(source, "203.0.113.1" if version == 4 else "2001:db8::1") / UDP() / b"no route",
        Ether(src=LEFT_MAC, dst="02:00:00:00:d0:99") / net(source, destination) / UDP() / b"to another",
    ]
    _, right, counters = run_on_files(tmp_path, plan, good[:25] + bad + good[25:], [], expected=len(good))
    assert len(right) == len(good)
    for sent, got in zip(good, right, strict=True):
        expected = Ether(bytes(sent))
        expected.src, expected.dst = DUT_RIGHT, RIGHT_MAC
        if version == 4:
            expected[IP].ttl -= 1
            del expected[IP].chksum
        else:
            expected[IPv6].hlim -= 1
        assert bytes(got)[: len(sent)] == bytes(expected)
    left = counters["left"]
    assert (left["expired_frames"], left["no_route_frames"], left["other_mac_frames"]) == (1, 1, 1)


def test_the_router_answers_for_its_own_addresses(tmp_path: Path) -> None:
    """SEED-22: ARP, solicitations and echo, of both families, as scapy asks and reads them."""
    for version in (4, 6):
        folder = tmp_path / str(version)
        folder.mkdir()
        plan = make_plan(f"gateway-v{version}")
        assert plan.left.gateway is not None
        me, dut = str(plan.left.gateway.ip), str(plan.left.dut[0].ip)
        if version == 4:
            asked = [
                Ether(src=LEFT_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=LEFT_MAC, psrc=me, pdst=dut),
                Ether(src=LEFT_MAC, dst="ff:ff:ff:ff:ff:ff")
                / ARP(op=1, hwsrc=LEFT_MAC, psrc=me, pdst="10.0.0.77"),
                Ether(src=LEFT_MAC, dst=DUT_LEFT) / IP(src=me, dst=dut) / ICMP(id=7, seq=1) / b"echo me",
            ]
        else:
            group, group_mac = "ff02::1:ff00:1", "33:33:ff:00:00:01"
            asked = [
                Ether(src=LEFT_MAC, dst=group_mac)
                / IPv6(src=me, dst=group, hlim=255)
                / ICMPv6ND_NS(tgt=dut)
                / (b"\x01\x01" + bytes.fromhex(LEFT_MAC.replace(":", ""))),
                Ether(src=LEFT_MAC, dst=group_mac)
                / IPv6(src=me, dst=group, hlim=255)
                / ICMPv6ND_NS(tgt=dut + "77"),
                Ether(src=LEFT_MAC, dst=DUT_LEFT)
                / IPv6(src=me, dst=dut)
                / ICMPv6EchoRequest(id=7, seq=1, data=b"echo me"),
            ]
        left, right, _ = run_on_files(folder, plan, asked, [], expected=2)
        assert right == []
        assert len(left) == 2
        answer, echo = left
        assert answer.src == DUT_LEFT
        assert answer.dst == LEFT_MAC
        if version == 4:
            assert (answer[ARP].op, answer[ARP].psrc, answer[ARP].hwsrc) == (2, dut, DUT_LEFT)
            assert echo[ICMP].type == 0
        else:
            assert answer.payload.payload.name == "ICMPv6 Neighbor Discovery - Neighbor Advertisement"
            assert answer.payload.payload.tgt == dut
            assert echo.payload.payload.name == "ICMPv6 Echo Reply"
        assert b"echo me" in bytes(echo)
        layer = IP if version == 4 else IPv6
        again = Ether(bytes(echo))
        again[layer].payload.delfieldval("chksum" if version == 4 else "cksum")
        assert bytes(Ether(bytes(again)))[: len(bytes(echo))] == bytes(echo)


@pytest.mark.two_cpus
@pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="testpmd is not installed")
def test_another_generator_drives_the_router(tmp_path: Path) -> None:
    """testpmd sends through it at whatever rate it likes: all that is received is forwarded or counted as
    dropped."""
    plan = make_plan("gateway-v4", 1)
    model = DeviceModel(elements=4, rate_fps=50_000, queue_frames=64)
    with reference_router(plan, ReferenceDut(model=model, static_neighbors=neighbors(plan))) as router:
        macs = {side: router.ready[side]["mac"] for side in ("left", "right")}
        prefix = f"testpmd-{os.getpid()}"
        command = [
            "dpdk-testpmd",
            "--no-huge",
            "-m",
            "1024",
            "--no-shconf",
            f"--file-prefix={prefix}",
            "--no-pci",
            "--no-telemetry",
            f"--lcores=0@{cpus()[-1]},1@{cpus()[-1]}",
            f"--vdev={router.device('left')}",
            f"--vdev={router.device('right')}",
            "--",
            "--forward-mode=txonly",
            "--tx-ip=198.18.0.1,198.19.0.1",
            f"--eth-peer=0,{macs['left']}",
            f"--eth-peer=1,{macs['right']}",
            "--total-num-mbufs=32768",
            "--stats-period=1",
            "--no-lsc-interrupt",
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
        )
        try:
            give_up = time.monotonic() + 40
            while (counters := router.counters())["left"]["received_frames"] < 200_000:
                assert process.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.2)
        finally:
            process.kill()  # while it floods: the router lives
            process.wait(20)
            for folder in ("/run", os.environ.get("XDG_RUNTIME_DIR", "/tmp"), "/tmp"):
                shutil.rmtree(Path(folder) / "dpdk" / prefix, ignore_errors=True)
        counters = router.counters()
        left = counters["left"]
        elements = counters["elements"]
        assert (
            left["malformed_frames"]
            == left["martian_frames"]
            == left["no_route_frames"]
            == left["expired_frames"]
            == 0
        )
        # What testpmd sends into the right port has the left's source address, and goes to 198.19.0.1 as
        # well.
        taken = sum(
            side["received_frames"] - side["local_frames"] - side["ignored_frames"]
            for side in (left, counters["right"])
        )
        assert sum(element["served_frames"] + element["dropped_frames"] for element in elements) == taken
        assert sum(element["dropped_frames"] for element in elements) > 0


def test_the_router_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """After `kill -9` of its starter there is no busy router left on a CPU."""
    script = (
        "import time\nfrom evenhand.plan import make_plan\nfrom evenhand.reference import ReferenceDut,"
        " reference_router\n"
        "with reference_router(make_plan('gateway-v4'), ReferenceDut(), cpus=CPUS) as r:\n"
        "    print(r._process.pid, flush=True)\n    time.sleep(60)\n"
    ).replace("CPUS", repr(cpus()[:1] * 2))
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    router = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    give_up = time.monotonic() + 20
    while is_alive(router):
        assert time.monotonic() < give_up
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_bad_configuration_is_a_fault_with_its_place(tmp_path: Path) -> None:
    config = ReferenceDut().router_config(
        make_plan("gateway-v4"), {"left": "net_ring0", "right": "net_ring1"}, cpu=0
    )
    config["ports"]["left"]["address"] = config["ports"]["left"].pop("addresses")
    file = tmp_path / "router.json"
    file.write_text(json.dumps(config))
    done = subprocess.run(
        [find_program(ROUTER), file], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    fault = json.loads(done.stdout)["fault"]
    jsonschema.validate(
        json.loads(done.stdout), json.loads((CONTRACT / "router-reply.schema.json").read_text())
    )
    assert fault["where"].startswith("ports.left.ad")
    assert "evenhand-router:" in done.stderr


def test_a_router_that_has_gone_is_what_is_told() -> None:
    """The tester would say that its port cannot be started."""

    def use_one_that_is_killed() -> None:
        with router_beside_tester(make_plan("gateway-v4", 4)) as router:
            os.kill(router.thread, signal.SIGKILL)
            while not router.has_ended:
                time.sleep(0.01)
            raise HostError("the device cannot be started", code="engine.no-device")

    with raises("rig.router-ended", match="-9"):
        use_one_that_is_killed()
