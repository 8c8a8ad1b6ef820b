# SPDX-License-Identifier: Apache-2.0
"""The reference router as a translator of addresses and ports: its frames beside those that scapy builds, and
its table as it is emptied."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import rdpcap, wrpcap

from evenhand.base.programs import ROUTER, find_program
from evenhand.plan import make_plan
from evenhand.reference import ReferenceDut
from tests.errors import raises
from tests.wire.test_reference_router import CONTRACT, DUT_LEFT, DUT_RIGHT, LEFT_MAC, RIGHT_MAC, neighbors
from tests.wire.wire_session import cpus, router_beside_tester

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("_router")]
HOSTS = 40
PREFIX = ipaddress.IPv6Network("2001:2:0:64::/96")


@dataclass(frozen=True)
class Kind:
    """NAT44, NAT66 or NAT64, with the inside on the left."""

    plan: str
    pool: str
    prefix: str | None = None

    @property
    def inside(self) -> int:
        return 4 if self.plan == "gateway-v4" else 6

    @property
    def outside(self) -> int:
        return ipaddress.ip_address(self.pool).version

    def peer_inside(self, peer: str) -> str:
        if self.prefix is None:
            return peer
        return str(PREFIX.network_address + int(ipaddress.IPv4Address(peer)))


KINDS = {
    "nat44": Kind("gateway-v4", "198.51.100.1"),
    "nat66": Kind("gateway-v6", "2001:db8::1:0:0"),
    "nat64": Kind("siit", "198.51.100.1", str(PREFIX)),
}


class Process:
    """A router between files of frames."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, request: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"request": request}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        jsonschema.validate(answer, json.loads((CONTRACT / "router-reply.schema.json").read_text()))
        return answer

    def wait_for(self, frames: int) -> dict[str, Any]:
        """Its counters when so many have left, or when it is clear that they do not."""
        give_up = time.monotonic() + 30
        while True:
            counters = self.ask("counters")
            left = counters["left"]["transmitted_frames"] + counters["right"]["transmitted_frames"]
            if left >= frames or time.monotonic() > give_up:
                return counters
            time.sleep(0.05)


@contextmanager
def router_on_files(
    folder: Path, kind: Kind, left: list[Packet], right: list[Packet], **options: object
) -> Iterator[Process]:
    plan = make_plan(kind.plan)
    filler = Ether(dst="02:ff:ff:ff:ff:ff", type=0x88B5) / (b"\0" * 46)
    # The answers stand so far behind that the first looks at the ports do not find them.
    wrpcap(str(folder / "left-in.pcap"), left)
    wrpcap(str(folder / "right-in.pcap"), [filler] * 2000 + right)
    devices = [
        f"net_pcap{i},rx_pcap={folder}/{side}-in.pcap,tx_pcap={folder}/{side}-out.pcap"
        for i, side in enumerate(("left", "right"))
    ]
    config = ReferenceDut(static_neighbors=neighbors(plan)).router_config(
        plan, {"left": devices[0], "right": devices[1]}, cpu=cpus()[0]
    )
    config["ports"]["left"]["mac"], config["ports"]["right"]["mac"] = DUT_LEFT, DUT_RIGHT
    config.pop("translation", None)
    config["nat"] = {"inside": "left", "pool": {"first": kind.pool, "count": 1}, **options}
    if kind.prefix is not None:
        config["nat"]["prefix"] = kind.prefix
    jsonschema.validate(config, json.loads((CONTRACT / "router-config.schema.json").read_text()))
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
        yield Process(process)
        process.stdin.close()
        assert json.loads(process.stdout.readlines()[-1])["event"] == "stopped"
        assert process.wait(20) == 0


def packet(
    version: int, macs: tuple[str, str], ends: tuple[str, str], ports: tuple[int, int], hops: int, length: int
) -> Packet:
    source, destination = ends
    net = (
        IPv6(src=source, dst=destination, hlim=hops, tc=0xB8)
        if version == 6
        else IP(src=source, dst=destination, ttl=hops, tos=0xB8, flags="DF")
    )
    return Ether(src=macs[0], dst=macs[1]) / net / UDP(sport=ports[0], dport=ports[1]) / (b"payload" * length)


def same(kind: Kind, got: Packet, expected: Packet) -> bool:
    if kind.prefix is not None and IP in expected:
        expected[IP].id, expected[IP].flags = got[IP].id, got[IP].flags
        assert got[IP].flags == ("DF" if len(expected[IP]) > 1260 else 0)
    return bytes(got)[: len(bytes(expected))] == bytes(expected)


@pytest.mark.parametrize("name", KINDS)
def test_frames_of_another_maker_are_translated_right_both_ways(name: str, tmp_path: Path) -> None:
    """RFC 3022, 6146: addresses, ports and checksums as scapy has them; two hosts with the same port and peer
    get different ones."""
    kind = KINDS[name]
    plan = make_plan(kind.plan)
    hosts = [str(plan.left.host_range.address(i)) for i in range(HOSTS)]
    peers = [str(plan.right.host_range.address(i)) for i in range(HOSTS)]
    # Every second host has the port and the peer of the one before it.
    flows = [(hosts[i], peers[i // 2], 5000 + 2 * (i // 2), 5000 + i) for i in range(HOSTS)]
    left = [
        packet(kind.inside, (LEFT_MAC, DUT_LEFT), (host, kind.peer_inside(peer)), (port, 7), 64, 1 + 4 * i)
        for i, (host, peer, port, _) in enumerate(flows)
    ]
    right = [
        packet(kind.outside, (RIGHT_MAC, DUT_RIGHT), (peer, kind.pool), (7, outside), 64, 1 + 4 * i)
        for i, (_, peer, _, outside) in enumerate(flows)
    ]
    stray = packet(kind.outside, (RIGHT_MAC, DUT_RIGHT), (peers[0], kind.pool), (8, 5000), 64, 1)
    with router_on_files(tmp_path, kind, left, [*right, stray]) as router:
        counters = router.wait_for(2 * HOSTS)
    nat = counters["nat"]
    assert (nat["created"], nat["entries"], nat["translated_frames"]) == (HOSTS, HOSTS, 2 * HOSTS)
    assert (nat["unknown_frames"], nat["refused_frames"], nat["exhausted_ports"]) == (1, 0, 0)
    out = list(rdpcap(str(tmp_path / "right-out.pcap")))
    for i, ((_, peer, _, outside), got) in enumerate(zip(flows, out, strict=True)):
        ends = (kind.pool, peer)
        expected = packet(kind.outside, (DUT_RIGHT, RIGHT_MAC), ends, (outside, 7), 63, 1 + 4 * i)
        assert same(kind, got, expected)
    back = list(rdpcap(str(tmp_path / "left-out.pcap")))
    for i, ((host, peer, port, _), got) in enumerate(zip(flows, back, strict=True)):
        ends = (kind.peer_inside(peer), host)
        expected = packet(kind.inside, (DUT_LEFT, LEFT_MAC), ends, (7, port), 63, 1 + 4 * i)
        assert same(kind, got, expected)


def test_a_flush_empties_the_table_and_takes_as_long_as_was_said(tmp_path: Path) -> None:
    """RFC 9693: the rate at which connections are torn down is that of the configuration."""
    kind = KINDS["nat44"]
    plan = make_plan(kind.plan)
    left = [
        packet(4, (LEFT_MAC, DUT_LEFT), (str(host), str(plan.right.host_range.address(0))), (5000, 7), 64, 1)
        for host in (plan.left.host_range.address(i) for i in range(HOSTS))
    ]
    with router_on_files(tmp_path, kind, left, [], flush_us_per_entry=5000) as router:
        assert router.wait_for(HOSTS)["nat"]["entries"] == HOSTS
        before = time.monotonic()
        flushed = router.ask("flush")
        took = time.monotonic() - before
        assert flushed["event"] == "flushed"
        assert flushed["entries"] == HOSTS
        assert HOSTS * 5000e-6 <= flushed["seconds"] <= took
        after = router.ask("counters")["nat"]
        assert (after["entries"], after["flushed"], after["most_entries"]) == (0, HOSTS, HOSTS)
        assert router.ask("flush")["entries"] == 0


def test_a_router_without_connections_has_none_to_flush() -> None:
    with (
        router_beside_tester(make_plan("gateway-v4")) as router,
        raises("router.bad-request", match="no connections"),
    ):
        router.flush()
