# SPDX-License-Identifier: Apache-2.0
"""Routers on a stick: the kernel, in namespaces of ours, with both sides of a plan on one interface."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from evenhand.plan import AddressPlan, SideName
from tests.wire.tunnels import OUTER
from tests.wire.veth_cable import ip

VNI_OF: dict[SideName, int] = {"left": 100, "right": 200}
_numbers = count()


def sysctl(namespace: str, *settings: str) -> None:
    ip("netns", "exec", namespace, "sysctl", "-qw", *settings)


def add_tunnels(dut: str, outer: int) -> None:
    """Two VXLAN tunnels on `eth1`, between the same ends."""
    local, remote = OUTER[outer]
    end = (f"{remote}/24",) if outer == 4 else (f"{remote}/64",)
    ip("-n", dut, "address", "add", *end, "dev", "eth1", *(["nodad"] if outer == 6 else []))
    ip("netns", "exec", dut, "ethtool", "-K", "eth1", "tx", "off")  # checksums, which no NIC adds here
    for vni in VNI_OF.values():
        made = ("link", "add", f"vxlan{vni}", "type", "vxlan", "id", str(vni), "dstport", "4789")
        ip("-n", dut, *made, "local", remote, "remote", local, "dev", "eth1")
        ip("-n", dut, "link", "set", f"vxlan{vni}", "up")


@contextmanager
def kernel_on_a_stick(
    plan: AddressPlan, outer: int | None = None, arms: Sequence[str] = ("arm",)
) -> Iterator[str]:
    """The namespace of the tester, in which each of these interfaces leads to a router of its own that has
    both sides of the plan on one interface.

    Args:
        outer: Each side is in a VXLAN tunnel instead, VNI_OF says which, over this IP version.
    """
    tester, *duts = (f"evenhand-arm-{os.getpid()}-{next(_numbers)}" for _ in ("", *arms))
    made = []
    try:
        for name in (tester, *duts):
            ip("netns", "add", name)
            made.append(name)
        for arm, dut in zip(arms, duts, strict=True):
            ip("-n", tester, "link", "add", arm, "type", "veth", "peer", "name", "eth1", "netns", dut)
            sysctl(tester, f"net.ipv6.conf.{arm}.disable_ipv6=1")
            ip("-n", tester, "link", "set", arm, "up")
            set_up_router(plan, dut, outer)
        yield tester
    finally:
        for name in made:
            ip("netns", "del", name)


def set_up_router(plan: AddressPlan, dut: str, outer: int | None) -> None:
    """Both sides of the plan on `eth1` of this namespace."""
    ip("-n", dut, "link", "set", "eth1", "up")
    sysctl(dut, "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    sysctl(dut, "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.eth1.send_redirects=0")
    if outer is not None:
        add_tunnels(dut, outer)
    for side in (plan.left, plan.right):
        assert side.gateway is not None
        nodad = ["nodad"] if plan.ip_version == 6 else []
        interface = "eth1" if outer is None else f"vxlan{VNI_OF[side.name]}"
        ip("-n", dut, "address", "add", str(side.dut[0]), "dev", interface, *nodad)
        for network in side.host_networks:
            ip("-n", dut, "route", "add", str(network), "via", str(side.gateway.ip))
