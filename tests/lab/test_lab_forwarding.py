# SPDX-License-Identifier: Apache-2.0
"""The DUT of the Linux lab is a router: real frames go through it."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

from evenhand.lab import linux_lab
from evenhand.plan import AddressPlan, SideName, make_plan
from tests.lab.lab_wire import gateway_of, wire

pytestmark = pytest.mark.root
PLANS = pytest.mark.parametrize(
    "plan", [make_plan("gateway_v4"), make_plan("gateway_v6")], ids=lambda p: p.name
)


@PLANS
@pytest.mark.parametrize("origin", ["left", "right"])
def test_a_frame_crosses_the_dut_with_its_hop_limit_lowered_and_nothing_else_changed(
    plan: AddressPlan, origin: SideName, lab_name: str
) -> None:
    """SEED-13, SEED-14, SEED-16, SEED-17: addresses and routes are such that the DUT forwards by itself."""
    target: SideName = "right" if origin == "left" else "left"
    with linux_lab(plan, name=lab_name) as lab, wire(lab, plan) as tester:
        sent = tester.frame(origin, 0, plan.right.host_range.count - 1, b"evenhand test frame")
        tester.send(origin, sent)
        got = tester.receive_udp(target)
    assert got.src == tester.dut_mac[target]
    assert got.dst == tester.tester_mac[target]
    if plan.ip_version == 4:
        assert got[IP].ttl == 9
        expected = sent[IP].copy()
        expected.ttl, expected.chksum = 9, None
        assert bytes(got[IP]) == bytes(expected)  # None: scapy fills in the right checksum
    else:
        assert got[IPv6].hlim == 9
        expected = sent[IPv6].copy()
        expected.hlim = 9
        assert bytes(got[IPv6]) == bytes(expected)


@PLANS
def test_the_dut_resolves_its_two_gateways_and_nobody_else(plan: AddressPlan, lab_name: str) -> None:
    """SEED-19: two entries whatever the number of hosts, found by ARP or ND; there are none before the first
    frame."""
    ways: tuple[tuple[SideName, SideName], ...] = (("left", "right"), ("right", "left"))
    with linux_lab(plan, name=lab_name) as lab, wire(lab, plan) as tester:
        assert lab.neighbors() == []
        for host in (0, 1, 255, 256, 40_000, plan.left.host_range.count - 1):
            for origin, target in ways:
                tester.send(origin, tester.frame(origin, host, host, b"x" * 18))
                tester.receive_udp(target)
        neighbors = lab.neighbors()
    assert [(n.side, n.address) for n in neighbors] == [
        ("left", gateway_of(plan.left)),
        ("right", gateway_of(plan.right)),
    ]
    assert [n.mac for n in neighbors] == [tester.tester_mac["left"], tester.tester_mac["right"]]
    assert set(tester.resolved) == {n.address for n in neighbors}


@PLANS
def test_a_dut_whose_forwarding_is_off_loses_every_frame(plan: AddressPlan, lab_name: str) -> None:
    """The check "forwarding off ends FAIL" needs a DUT that is up and silent, and whole again afterwards."""
    with linux_lab(plan, name=lab_name) as lab, wire(lab, plan) as tester:
        tester.send("left", tester.frame("left", 0, 0, b"1 before"))
        assert bytes(tester.receive_udp("right")[UDP].payload).startswith(b"1 before")
        lab.set_forwarding(False)
        tester.send("left", tester.frame("left", 0, 0, b"2 while off"))
        tester.send("left", tester.frame("left", 1, 1, b"3 while off"))
        tester.ping_dut()  # else the two might still wait in the DUT's ring when forwarding is on again
        lab.set_forwarding(True)
        tester.send("left", tester.frame("left", 0, 0, b"4 after"))
        assert bytes(tester.receive_udp("right")[UDP].payload).startswith(b"4 after")
