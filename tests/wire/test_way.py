# SPDX-License-Identifier: Apache-2.0
"""Before the first trial: a few frames in each direction, and a hint that names what was seen where none gets
through."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from evenhand.base.errors import HostError
from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure.dut_checks import check_way, way_notes
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.wire.veth_cable import ip
from tests.wire.wire_session import Document, engine, open_ports

pytestmark = [pytest.mark.wire, pytest.mark.root]


@dataclass(frozen=True)
class LinuxDut:
    """A router under Linux in a namespace of its own; what its two interfaces have is changed at will."""

    name: str
    plan: AddressPlan

    def run(self, *words: str) -> None:
        subprocess.run(["ip", "netns", "exec", self.name, *words], check=True, timeout=20)

    def set(self, **values: int) -> None:
        self.run("sysctl", "-qw", *(f"{key.replace('__', '.')}={value}" for key, value in values.items()))

    def forward(self, on: int) -> None:
        self.set(net__ipv4__ip_forward=on, net__ipv6__conf__all__forwarding=on)

    def configure(self, left: str, right: str) -> None:
        """The addresses and routes of the plan's sides on these interfaces, and no others."""
        for interface in ("left", "right"):
            ip("-n", self.name, "address", "flush", "dev", interface, "scope", "global")
            ip("-n", self.name, "neigh", "flush", "dev", interface)
        for side, interface in zip(self.plan.sides, (left, right), strict=True):
            for address in side.dut:
                nodad = ("nodad",) if address.version == 6 else ()
                ip("-n", self.name, "address", "add", str(address), "dev", interface, *nodad)
        for side in self.plan.sides:
            assert side.gateway is not None
            for route in side.routes:
                ip("-n", self.name, "route", "replace", str(route), "via", str(side.gateway.ip))


@contextmanager
def linux_dut(plan: AddressPlan) -> Iterator[tuple[LinuxDut, str]]:
    """The DUT, and the namespace of a tester at the other ends of its cables."""
    name = f"evenhand-way-{os.getpid()}"
    tester = f"{name}-tester"
    made = []
    try:
        for each in (name, tester):
            ip("netns", "add", each)
            made.append(each)
        dut = LinuxDut(name, plan)
        for side in ("left", "right"):
            ip("-n", tester, "link", "add", side, "type", "veth", "peer", "name", side, "netns", name)
            ip("netns", "exec", tester, "sysctl", "-qw", f"net.ipv6.conf.{side}.disable_ipv6=1")
            for each in (name, tester):
                ip("-n", each, "link", "set", side, "up")
            dut.set(**{f"net__ipv4__conf__{side}__rp_filter": 0})
        dut.set(net__ipv4__conf__all__rp_filter=0)
        yield dut, tester
    finally:
        for each in made:
            ip("netns", "del", each)


def look(session: EngineSession) -> Document:
    return session.request("resolve", timeout_s=2, try_directions=list(BOTH_DIRECTIONS))


def hint_of(answer: Document) -> tuple[str, str]:
    (hint,) = answer["hints"]
    return hint["code"], hint["what"]


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: plan.name)
def test_what_lets_no_frame_through_is_named_before_the_first_trial(plan: AddressPlan) -> None:
    """Left and right swapped, a gateway on the other side, no forwarding, another VLAN: each was a loss of
    100 % without a word, or \"did not answer\"."""
    is_v4 = plan.ip_version == 4
    with (
        linux_dut(plan) as (dut, namespace),
        engine(["ip", "netns", "exec", namespace, find_engine()]) as session,
    ):
        dut.configure("left", "right")
        dut.forward(1)
        open_ports(session, plan, "net_af_packet0,iface=left", "net_af_packet1,iface=right", dut_macs=None)
        good = look(session)
        assert "hints" not in good
        assert all(way["received_frames"] for way in good["way"].values())
        check_way(good, where="")

        dut.forward(0)
        code, what = hint_of(off := look(session))
        assert code == "not_forwarded"
        assert "none came out on the right side" in what
        check_way(off, where="")  # it is told, and measured all the same
        assert len(list(way_notes(off))) == 1

        dut.forward(1)
        dut.configure("right", "left")
        if is_v4:  # it answers ARP on any interface
            code, what = hint_of(swapped := look(session))
            assert code == "sides_swapped"
            assert "asks on the left side for 10.0.1.2" in what
            with raises("procedure.sides-swapped"):
                check_way(swapped, where="testbed.toml")
            dut.set(net__ipv4__conf__all__arp_ignore=1)
        with pytest.raises(HostError, match="left and right are swapped"):
            look(session)
