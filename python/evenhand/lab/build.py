# SPDX-License-Identifier: Apache-2.0
"""Make the two namespaces of a Linux lab: the router (DUT) and the tester's ends of the two links."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import
from evenhand.dut.many_routes import ManyRoutes, costs, many_routes_over
from evenhand.dut.nat import NatPorts, translation_of
from evenhand.lab.many_routes import set_many_routes
from evenhand.lab.namespaces import host_errors, make_namespace, namespace_path, remove_namespace, run_inside
from evenhand.lab.napi import pin_napi
from evenhand.lab.nft import start_firewall
from evenhand.lab.translator import start_nat, start_translator
from evenhand.lab.xdp import attach_xdp, pass_program
from evenhand.plan import SIDES, AddressPlan, Interface, PlanSide, SideName
from evenhand.plan.translation import Translation

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

OFFLOADS = (
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "rx-gro",
)
"""Switched off at all four ends: a frame arrives as it was sent, and no frame leaves with a checksum for a
NIC to fill in."""
MOST_PROBES = "20"
"""How often the DUT asks for a host that it knows, before it forgets it; 3 by default. The kernel asks for
hosts that went stale together by the thousand at once, and a veth ring holds 256 questions. Frames flow
meanwhile, and are lost only if it forgets."""
RING_FRAMES = 256
"""Frames of a veth pair's ring: what waits for the DUT while it does not run (the kernel's
VETH_RING_SIZE)."""
USUAL_MAX_FRAME_SIZE = 1518
AROUND_PACKET = 18
"""Ethernet header and FCS: what a frame has beyond its packet, whose size the MTU limits."""
LARGEST_XDP_MTU = 3000
"""An XDP program that knows no fragments wants each packet in one page, with room for what the kernel keeps
there."""
PACKET_HEAD_OCTETS = 80
"""What the kernel puts before a frame in the ring of a packet socket, and a little more."""
_IFA_F_NODAD = 0x02


@dataclass(frozen=True, slots=True)
class LabNames:
    """Every name a lab of this name uses."""

    lab: str

    @property
    def tester_namespace(self) -> str:
        return f"evenhand-{self.lab}-tester"

    @property
    def dut_namespace(self) -> str:
        return f"evenhand-{self.lab}-dut"

    def tester_interface(self, side: SideName) -> str:
        return f"eht{side[0]}-{self.lab}"

    def dut_interface(self, side: SideName) -> str:
        """Unique on the host, because NAPI threads are known by it; the first 10 characters show the side."""
        return f"ehd{side[0]}-{self.lab}"


def build(
    names: LabNames,
    plan: AddressPlan,
    dut_cpu: int,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
    rules: int = 0,
) -> None:
    """Make and set up everything; the caller removes what is there if this raises."""
    mtu = largest_frame_size - AROUND_PACKET
    make_namespace(names.dut_namespace)
    make_namespace(names.tester_namespace)
    with host_errors("set up the DUT", where=names.dut_namespace):
        run_inside(names.dut_namespace, lambda: write_sysctls(_dut_sysctls(plan)))
    with host_errors("set up the tester", where=names.tester_namespace):
        run_inside(names.tester_namespace, lambda: _build_tester(names, mtu))
    with host_errors("set up the DUT", where=names.dut_namespace):
        run_inside(names.dut_namespace, lambda: _build_dut(names, plan, dut_cpu, mtu))
    for many in many_routes_of_lab(names, plan):
        with host_errors("set the DUT's routes", where=names.dut_namespace):
            run_inside(names.dut_namespace, partial(set_many_routes, many))
    for translation in translations_of(plan):
        with host_errors("start the translator", where=names.dut_namespace):
            run_inside(names.dut_namespace, partial(start_translator, names.lab, translation, dut_cpu, mtu))
    if plan.nat is not None:
        with host_errors("set up the NAT", where=names.dut_namespace):
            run_inside(names.dut_namespace, lambda: start_nat(plan, names.dut_interface("right"), nat_ports))
    if rules:
        with host_errors("set up the firewall", where=names.dut_namespace):
            run_inside(names.dut_namespace, lambda: start_firewall(rules))


def route_costs(name: str, plan: AddressPlan) -> list[str]:
    """Memory and time of a lab's routes, to be said before it is set up; empty if they are few."""
    return costs(many_routes_of_lab(LabNames(name), plan))


def translations_of(plan: AddressPlan) -> list[Translation]:
    """What the DUT must translate without state, of each plan of a mix."""
    found = map(translation_of, plan.plans)
    return [each for each in found if each is not None]


def demolish(names: LabNames) -> None:
    """Remove what is there of the lab; nothing is not an error."""
    for namespace in (names.tester_namespace, names.dut_namespace):
        if not namespace_path(namespace).exists():
            continue
        # A run killed between the name and the namespace leaves only the name, and nothing to enter.
        with suppress(OSError):
            # By hand and not with the namespace: a process left inside would keep links and NAPI threads
            # alive.
            run_inside(namespace, lambda: _remove_links(names))
        remove_namespace(namespace)


def write_sysctls(values: dict[str, str]) -> None:
    """Set sysctls of the namespace that the caller is in; names with slashes, as under /proc/sys."""
    for name, value in values.items():
        path = Path("/proc/sys") / name
        if not path.exists() and name.startswith("net/ipv6/") and "disable" in name:
            continue  # a kernel without IPv6 has it disabled already
        with host_errors(f"set {name.replace('/', '.')} = {value}", where="sysctl"):
            path.write_text(value)


def _dut_sysctls(plan: AddressPlan) -> dict[str, str]:
    values = {
        "net/ipv4/conf/all/rp_filter": "0",
        "net/ipv4/conf/default/rp_filter": "0",
        "net/ipv4/ip_forward": "1" if 4 in plan.versions else "0",
    }
    ipv6 = Path("/proc/sys/net/ipv6").exists()
    has_v6 = 6 in plan.versions
    if has_v6 and not ipv6:
        raise HostError(
            "this kernel has no IPv6",
            code="rig.kernel-without-ipv6",
            where="lab",
            next_step="Use an IPv4 plan, or boot without ipv6.disable=1.",
        )
    for scope in ("all", "default"):
        conf = f"net/ipv6/conf/{scope}"
        values[f"{conf}/disable_ipv6"] = "0" if has_v6 else "1"
        if ipv6:
            values[f"{conf}/accept_dad"] = "0"
            values[f"{conf}/accept_ra"] = "0"
            values[f"{conf}/forwarding"] = "1" if has_v6 else "0"
    return values


def tester_sysctls() -> dict[str, str]:
    """No protocol of this kernel speaks on the tester's ports: the tester itself answers and sends
    (R6815-02)."""
    return {
        "net/ipv4/ip_forward": "0",
        "net/ipv6/conf/all/disable_ipv6": "1",
        "net/ipv6/conf/default/disable_ipv6": "1",
    }


def _build_tester(names: LabNames, mtu: int) -> None:
    write_sysctls(tester_sysctls())
    with pyroute2.IPRoute() as ip, namespace_path(names.dut_namespace).open() as dut:
        for number, side in enumerate(SIDES, start=1):
            # Both ends are born where they belong, so no daemon of the host ever sees them.
            with host_errors(
                "make a veth pair", where=names.tester_interface(side), next_step="Try: modprobe veth"
            ):
                ip.link(
                    "add",
                    kind="veth",
                    ifname=names.tester_interface(side),
                    address=f"02:00:00:00:a0:{number:02x}",
                    num_tx_queues=1,
                    num_rx_queues=1,
                    mtu=mtu,
                    peer={
                        "ifname": names.dut_interface(side),
                        "address": f"02:00:00:00:d0:{number:02x}",
                        "num_tx_queues": 1,
                        "num_rx_queues": 1,
                        "mtu": mtu,
                        "net_ns_fd": dut.fileno(),
                    },
                )
            _switch_offloads_off(names.tester_interface(side))
            ip.link("set", index=index_of(ip, names.tester_interface(side)), state="up")


def _build_dut(names: LabNames, plan: AddressPlan, dut_cpu: int, mtu: int) -> None:
    with pyroute2.IPRoute() as ip, pass_program(has_fragments=mtu > LARGEST_XDP_MTU) as program:
        ip.link("set", index=index_of(ip, "lo"), state="up")
        for side in plan.sides:
            interface = names.dut_interface(side.name)
            index = index_of(ip, interface)
            ip.link("set", index=index, state="up")
            attach_xdp(ip, interface, program)
            _switch_offloads_off(interface)  # after XDP, which switches GRO on
            pin_napi(interface, dut_cpu)
            # Two plans of a mix may have the same link.
            has: set[Interface] = set()
            for own in (each.side(side.name) for each in plan.plans):
                _add_addresses(ip, interface, own, has)
                has.update(own.dut)


def _add_addresses(ip: pyroute2.IPRoute, interface: str, side: PlanSide, has: Collection[Interface]) -> None:
    index = index_of(ip, interface)
    if side.is_direct:
        write_sysctls({f"net/ipv{side.ip_version}/neigh/{interface}/ucast_solicit": MOST_PROBES})
    flags = {"flags": _IFA_F_NODAD} if side.ip_version == 6 else {}
    for dut in side.dut:
        if dut not in has:
            ip.addr("add", index=index, address=str(dut.ip), prefixlen=dut.network.prefixlen, **flags)
    if side.gateway is not None:
        for route in side.routes:
            ip.route("add", dst=str(route), gateway=str(side.gateway.ip), oif=index)


def many_routes_of_lab(names: LabNames, plan: AddressPlan) -> list[ManyRoutes]:
    """The routes of its DUT that are too many to be set one by one, of each plan of a mix."""
    interfaces: dict[SideName, str] = {side: names.dut_interface(side) for side in SIDES}
    return [many for each in plan.plans for many in many_routes_over(each, interfaces)]


def _switch_offloads_off(interface: str) -> None:
    with pyroute2.Ethtool() as ethtool:
        offloads = ethtool.get_features(interface)
        for name in OFFLOADS:
            if name in offloads.features:
                offloads.features[name].enable = False
        ethtool.set_features(interface, offloads)
        still_on = read_offloads(interface)
    for name, is_on in still_on.items():
        if is_on:
            raise HostError(
                f"{name} cannot be switched off",
                code="rig.offload-stays-on",
                where=interface,
                next_step="Please report that this kernel is not supported.",
            )


def read_offloads(interface: str) -> dict[str, bool]:
    """The offloads that matter, from inside the interface's namespace."""
    with pyroute2.Ethtool() as ethtool:
        features = ethtool.get_features(interface).features
        return {name: bool(features[name].enable) for name in OFFLOADS if name in features}


def _remove_links(names: LabNames) -> None:
    ours = {name for side in SIDES for name in (names.tester_interface(side), names.dut_interface(side))}
    with pyroute2.IPRoute() as ip:
        for interface in ours:
            for index in ip.link_lookup(ifname=interface):
                ip.link("del", index=index)


def index_of(ip: pyroute2.IPRoute, interface: str) -> int:
    found = ip.link_lookup(ifname=interface)
    if not found:
        raise HostError(
            "the interface has disappeared",
            code="rig.interface-gone",
            where=interface,
            next_step="Run lab up again.",
        )
    return int(found[0])
