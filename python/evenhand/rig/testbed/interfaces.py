# SPDX-License-Identifier: Apache-2.0
"""Testbed: what a port uses on this host. Refuses what the host itself uses (R6815-01), and files that are
not the tester's."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.rig.testbed.device import Device, read_device
from evenhand.rig.testbed.drivers import PCI, Kind

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

PCI_DEVICES = Path("/sys/bus/pci/devices")
_SHARE_A_WIRE = frozenset({"macvlan", "macvtap", "ipvlan", "ipvtap"})
_LINK_SCOPE = 253
KERNEL_VHOST = "/dev/vhost-net"
NOWHERE = "/dev/null"


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The kernel's interfaces, in the namespace of this process."""

    names: frozenset[str]
    default_route_of: Mapping[str, str]
    """Interface to why it is in the way: it carries a default route, itself or for an interface stacked on
    it."""
    addresses_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Interface to its IP addresses, without those of the link alone (fe80::)."""


def read_host_network() -> HostNetwork:
    """Ask the kernel. Default routes count in every table, IPv4 and IPv6, also through bridges, bonds, VLANs,
    macvlans, veth pairs."""
    with pyroute2.IPRoute() as ip:
        links = {link["index"]: link for link in ip.get_links()}
        carriers: set[int] = set()
        for family in (AF_INET, AF_INET6):
            for route in ip.get_routes(family=family):
                if route["dst_len"] != 0 or route.get_attr("RTA_DST") is not None:
                    continue
                hops = route.get_attr("RTA_MULTIPATH") or []
                carriers.update(hop["oif"] for hop in hops)
                if route.get_attr("RTA_OIF"):
                    carriers.add(route.get_attr("RTA_OIF"))
        found = [
            (address["index"], str(address.get_attr("IFA_LOCAL") or address.get_attr("IFA_ADDRESS")))
            for family in (AF_INET, AF_INET6)
            for address in ip.get_addr(family=family)
            if address["scope"] != _LINK_SCOPE
        ]
    name_of = {index: str(link.get_attr("IFLA_IFNAME")) for index, link in links.items()}
    addresses = {
        name: tuple(text for owner, text in found if owner == index) for index, name in name_of.items()
    }
    reasons: dict[int, str] = {
        index: "it carries a default route" for index in carriers if name_of.get(index, "lo") != "lo"
    }
    pending = list(reasons)
    while pending:
        refused = pending.pop()
        for index, why in _joined_to(refused, links, name_of).items():
            if index not in reasons:
                reasons[index] = why
                pending.append(index)
    return HostNetwork(
        names=frozenset(name_of.values()),
        default_route_of={name_of[index]: why for index, why in reasons.items()},
        addresses_of={name: texts for name, texts in addresses.items() if texts},
    )


def _joined_to(refused: int, links: Mapping[int, Any], name_of: Mapping[int, str]) -> dict[int, str]:
    """Interfaces whose frames reach the wire of this one, each with a word why."""
    above = f"{name_of[refused]} above it carries a default route"
    found = {index: above for index, link in links.items() if link.get_attr("IFLA_MASTER") == refused}
    lower = _linked(links[refused], links)
    if lower is not None and _kind(links[refused]) != "veth":
        found[lower] = above
    for index, link in links.items():
        if _kind(link) in _SHARE_A_WIRE and _linked(link, links) == refused:
            found[index] = f"it shares a cable with {name_of[refused]}, which a default route uses"
    # What goes into one end of a veth pair comes out of the other: into the bridge, if that is a bridge's
    # port.
    peer = _linked(links[refused], links)
    if (
        peer is not None
        and _kind(links[refused]) == "veth"
        and links[refused].get_attr("IFLA_MASTER") is not None
    ):
        found[peer] = f"its other end, {name_of[refused]}, is in a bridge that carries a default route"
    return found


def _kind(link: Any) -> str | None:
    kind: str | None = (link.get_attr("IFLA_LINKINFO") or {}).get("kind")
    return kind


def _linked(link: Any, links: Mapping[int, Any]) -> int | None:
    """The interface below, or the other end of a veth pair, if it is in this namespace; indices are each
    namespace's own."""
    index: int | None = link.get_attr("IFLA_LINK")
    return index if index in links and link.get_attr("IFLA_LINK_NETNSID") is None else None


def interfaces_of_pci(folder: Path) -> list[str]:
    """The kernel's interfaces on a PCI device, whose folder of /sys this is. Those of virtio hang on a device
    in between."""
    return sorted(
        interface.name for pattern in ("net/*", "virtio*/net/*") for interface in folder.glob(pattern)
    )


def interface_of(device: str) -> str | None:
    """The existing interface of the kernel that a software port uses; None for PCI devices and ports without
    one."""
    return next((name for _, name in read_device(device).values(Kind.INTERFACE)), None)


def check_device(text: str, network: HostNetwork, *, where: str, pci_devices: Path = PCI_DEVICES) -> None:
    """Refuse a port that is not allowed, does not exist, or that the host itself needs. Starts nothing,
    changes nothing.

    Raises:
        HostError: There is no such interface, PCI device or file.
        RequestError: Its string is refused (`read_device`); its interface carries a default route (R6815-01);
            a file that it would write is there already, or what it takes for a socket is not one.
    """
    device = read_device(text, where=where)
    if device.driver == PCI:
        folder = pci_devices / device.name
        if not folder.exists():
            raise HostError(
                f"PCI device {device.name} does not exist",
                code="rig.port-missing",
                where=where,
                next_step="`evenhand check` lists the NICs of this host.",
            )
        for interface in interfaces_of_pci(folder):
            _refuse_default_route(interface, network, where)
    for _, interface in device.values(Kind.INTERFACE, Kind.NEW_INTERFACE):
        _refuse_default_route(interface, network, where)
    for _, interface in device.values(Kind.INTERFACE):
        if interface not in network.names:
            raise HostError(
                f"interface {interface} does not exist",
                code="rig.port-missing",
                where=where,
                next_step="Check its name with `ip link`, and correct the device.",
            )
    _check_files(device, where)


def _check_files(device: Device, where: str) -> None:
    for key, path in device.values(Kind.SOURCE):
        if not Path(path).is_file():
            raise HostError(
                f"{key}={path} is not a file",
                code="rig.capture-missing",
                where=where,
                next_step="Name an existing capture (pcap).",
            )
    for key, path in device.values(Kind.TARGET):
        if path != NOWHERE and os.path.lexists(path):
            raise RequestError(
                f"{key}={path} already exists, and is not overwritten",
                code="rig.file-exists",
                where=where,
                next_step="Name a new file.",
            )
    is_abstract = device.driver == "net_memif" and device.value("socket-abstract", "yes") == "yes"
    for key, path in () if is_abstract else device.values(Kind.SOCKET):
        if path != KERNEL_VHOST and os.path.lexists(path) and not _is_socket(path):
            raise RequestError(
                f"{key}={path} exists, but is not a socket",
                code="rig.not-a-socket",
                where=where,
                next_step="Name a socket, or a path that does not exist yet.",
            )


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _refuse_default_route(interface: str, network: HostNetwork, where: str) -> None:
    why = network.default_route_of.get(interface)
    if why is not None:
        raise RequestError(
            f"interface {interface} is refused: {why}, so test frames could leave the lab",
            code="rig.not-isolated",
            where=where,
            next_step="Use an interface of an isolated test environment (RFC 6815).",
        )
