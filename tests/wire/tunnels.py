# SPDX-License-Identifier: Apache-2.0
"""Tunnels of the wire tests: what a testbed file says of them, and a Linux router that is the other end of
one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from evenhand.plan import SIDES, AddressPlan
from tests.wire.veth_cable import ip

Document = dict[str, Any]
VNI = 4_242
OUTER: dict[int, tuple[str, str]] = {4: ("192.0.2.2", "192.0.2.1"), 6: ("2001:db8::2", "2001:db8::1")}
"""Outer addresses of tester and DUT, by IP version."""
TESTER_MAC = "02:00:00:00:a0:01"
_numbers = count()


def tunnel(kind: str, version: int = 4) -> Document:
    """One of each kind, as in a testbed file; over IPv4 or IPv6."""
    if kind == "mpls":
        return {"kind": kind, "labels": [1_048_575, 16], "arriving_labels": [100, 200]}
    local, remote = OUTER[version]
    return {"kind": kind, "local": local, "remote": remote, **({"vni": VNI} if kind == "vxlan" else {})}


def turned(of: Document) -> Document:
    """The same from the other end."""
    if of["kind"] == "mpls":
        return {**of, "labels": of["arriving_labels"], "arriving_labels": of["labels"]}
    return {**of, "local": of["remote"], "remote": of["local"]}


@contextmanager
def linux_vxlan_end(plan: AddressPlan, outer: int, *, answers_in: int = VNI) -> Iterator[str]:
    """A router in a namespace, whose left side of the plan is in a VXLAN tunnel. Yields the namespace of the
    tester, which has the interfaces `left` and `right`.

    Args:
        outer: IP version of the outer addresses.
        answers_in: The VNI in which it sends; it receives in that of `tunnel`.
    """
    number = next(_numbers)
    tester, dut = (f"evenhand-tunnel-{end}-{os.getpid()}-{number}" for end in ("tester", "dut"))
    length = 24 if plan.left.ip_version == 4 else 64
    local, remote = OUTER[outer]

    def there(*words: str) -> None:
        ip("netns", "exec", dut, *words)

    def add_vxlan(interface: str, vni: int) -> None:
        made = ("link", "add", interface, "type", "vxlan", "id", str(vni), "dstport", "4789")
        ip("-n", dut, *made, "local", remote, "remote", local, "dev", "left")
        ip("-n", dut, "link", "set", interface, "mtu", "8000", "up")

    ip("netns", "add", tester)
    try:
        ip("netns", "add", dut)
        off = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        ip("netns", "exec", tester, "sysctl", "-qw", *off)
        forwards = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        there("sysctl", "-qw", *forwards, "net.ipv6.conf.default.accept_dad=0")
        for place, side in enumerate(SIDES, start=1):
            mac = f"02:00:00:00:a0:{place:02x}"
            ip(
                *("-n", tester, "link", "add", side, "mtu", "9000", "address", mac, "type", "veth"),
                *("peer", "name", side, "netns", dut),
            )
            ip("-n", dut, "link", "set", side, "mtu", "9000")
            for namespace in (tester, dut):
                # Otherwise checksums are left to a NIC that is not there.
                ip("netns", "exec", namespace, "ethtool", "-K", side, "tx", "off", "rx", "off")
                ip("-n", namespace, "link", "set", side, "up")
        end = f"{remote}/{24 if outer == 4 else 64}"
        ip("-n", dut, "address", "add", end, "dev", "left", *_at_once(outer))
        add_vxlan("tunnel", VNI)
        if answers_in != VNI:
            add_vxlan("other", answers_in)
        for interface, of in (("tunnel", plan.left), ("right", plan.right)):
            assert of.gateway is not None
            address = f"{of.dut[0].ip}/{length}"
            ip("-n", dut, "address", "add", address, "dev", interface, *_at_once(of.ip_version))
            leaves = "other" if interface == "tunnel" and answers_in != VNI else interface
            gateway = str(of.gateway.ip)
            if leaves == "other":
                ip("-n", dut, "neigh", "add", gateway, "lladdr", TESTER_MAC, "dev", leaves)
            for route in of.routes:
                ip("-n", dut, "route", "add", str(route), "via", gateway, "dev", leaves, "onlink")
        yield tester
    finally:
        ip("netns", "del", tester)
        ip("netns", "del", dut)


def _at_once(version: int) -> tuple[str, ...]:
    """The address is used without looking for others that have it."""
    return ("nodad",) if version == 6 else ()
