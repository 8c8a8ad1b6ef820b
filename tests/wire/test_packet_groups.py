# SPDX-License-Identifier: Apache-2.0
"""Engines on packet sockets in one network namespace: the kernel's groups of them (PACKET_FANOUT) are each
one port's, whatever processes and interfaces are numbered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenhand.plan import gateway_v4
from evenhand.testbed import lay_out_workers
from evenhand.trial import EngineSession, find_engine
from tests.wire.veth_cable import ip, veth_cable
from tests.wire.wire_session import cpus, engine, open_ports, valid_trial

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
INDEX = 1000


def process_of(session: EngineSession) -> int:
    """The process of its engine."""
    return session._process.pid


def devices(name: str, queues: int) -> list[str]:
    return [f"net_af_packet{n},iface={name}{n},qpairs={queues},framecnt=512" for n in range(2)]


@pytest.mark.parametrize("queues", [1, 2])
def test_ports_open_whose_driver_asks_for_one_group(queues: int) -> None:
    """DPDK numbers it process id XOR interface index, and the kernel takes no group for two interfaces. All
    sockets of one port are in one group: frames are neither lost nor doubled."""
    with veth_cable() as namespace:
        command: list[str | Path] = ["ip", "netns", "exec", namespace, find_engine()]
        with engine(command) as first, engine(command) as second:
            difference = process_of(first) ^ process_of(second)
            for name, index in (("a", INDEX), ("b", INDEX ^ difference)):
                add = ("link", "add", f"{name}0", "index", str(index), "type", "veth", "peer", f"{name}1")
                ip("-n", namespace, *add)
                for number in range(2):
                    ip("-n", namespace, "link", "set", f"{name}{number}", "addrgenmode", "none", "up")
            for session, name in ((first, "a"), (second, "b")):
                workers = lay_out_workers(cpus()[:1], queues)
                open_ports(session, gateway_v4(), *devices(name, queues), workers=workers)
            for session in (first, second):
                document = valid_trial(session)
                assert document["verdict"] == "PASS", document["reasons"]
