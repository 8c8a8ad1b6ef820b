# SPDX-License-Identifier: Apache-2.0
"""Testbed: refuse ports that would send test frames into the network that the host itself uses (R6815-01)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET, AF_INET6

from pyroute2 import IPRoute

from evenhand.errors import HostError, RequestError

_PCI = re.compile(r"^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$", re.IGNORECASE)
_VIRTUAL = re.compile(r"^(?:net|eth)_([a-z_]+?)\d*$")
_EXISTING_INTERFACE_KEYS: Mapping[str, tuple[str, ...]] = {
    "af_xdp": ("iface",),
    "af_packet": ("iface",),
    "pcap": ("iface", "rx_iface", "rx_iface_in", "tx_iface"),
    "tap": ("remote",),
}
"""Arguments that name an interface of the kernel which must exist."""
_CREATED_INTERFACE_KEYS: Mapping[str, tuple[str, ...]] = {"tap": ("iface",), "virtio_user": ("iface",)}
"""Arguments that name an interface which the driver creates."""


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The kernel's interfaces, in the namespace of this process."""

    names: frozenset[str]
    default_route_of: Mapping[str, str]
    """Interface to why it is in the way: it carries a default route, itself or for an interface stacked on it."""


def read_host_network() -> HostNetwork:
    """Ask the kernel. Default routes count in every table, IPv4 and IPv6, also through bridges, bonds, VLANs."""
    with IPRoute() as ip:
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
    name_of = {index: str(link.get_attr("IFLA_IFNAME")) for index, link in links.items()}
    reasons: dict[int, str] = {index: "it carries a default route" for index in carriers if name_of.get(index, "lo") != "lo"}
    pending = list(reasons)
    while pending:
        upper = pending.pop()
        below = [index for index, link in links.items() if link.get_attr("IFLA_MASTER") == upper]
        # The other end of a veth pair is named as its link too, but lies in another namespace or is a way of its own.
        if links[upper].get_attr("IFLA_LINK") in links and (links[upper].get_attr("IFLA_LINKINFO") or {}).get("kind") != "veth":
            below.append(links[upper].get_attr("IFLA_LINK"))
        for index in below:
            if index not in reasons:
                reasons[index] = f"{name_of[upper]} above it carries a default route"
                pending.append(index)
    return HostNetwork(names=frozenset(name_of.values()), default_route_of={name_of[index]: why for index, why in reasons.items()})


def interfaces_of_pci(folder: Path) -> list[str]:
    """The kernel's interfaces on a PCI device, whose folder of /sys this is. Those of virtio hang on a device in between."""
    return sorted(interface.name for pattern in ("net/*", "virtio*/net/*") for interface in folder.glob(pattern))


def interface_of(device: str) -> str | None:
    """The existing interface of the kernel that a software port stands on; None for PCI devices and ports without one."""
    name, *arguments = device.split(",")
    virtual = _VIRTUAL.match(name)
    values = dict(argument.partition("=")[::2] for argument in arguments)
    keys = _EXISTING_INTERFACE_KEYS.get(virtual.group(1), ()) if virtual else ()
    return next((values[key] for key in keys if key in values), None)


def check_device(device: str, network: HostNetwork, *, where: str, pci_devices: Path = Path("/sys/bus/pci/devices")) -> None:
    """Refuse a port that does not exist, or that the host itself needs. Starts nothing.

    Raises:
        HostError: There is no such interface or PCI device.
        RequestError: It carries a default route (R6815-01), or names no interface where its driver needs one.
    """
    name, *arguments = device.split(",")
    pci = _PCI.match(name)
    if pci:
        folder = pci_devices / f"{(pci.group(1) or '0000').lower()}:{pci.group(2).lower()}"
        if not folder.exists():
            raise HostError(f"there is no PCI device {name}", where=where, next_step="`evenhand check` lists the NICs of this host.")
        for interface in interfaces_of_pci(folder):
            _refuse_default_route(interface, network, where)
        return
    virtual = _VIRTUAL.match(name)
    driver = virtual.group(1) if virtual else ""
    values = dict(argument.partition("=")[::2] for argument in arguments)
    for key in (*_EXISTING_INTERFACE_KEYS.get(driver, ()), *_CREATED_INTERFACE_KEYS.get(driver, ())):
        interface_name = values.get(key)
        if interface_name is None:
            continue
        if interface_name in network.names:
            _refuse_default_route(interface_name, network, where)
        elif key in _EXISTING_INTERFACE_KEYS.get(driver, ()):
            raise HostError(
                f"interface {interface_name} does not exist", where=where, next_step="Look for it with `ip link`, and correct the device."
            )
    if driver in ("af_xdp", "af_packet") and "iface" not in values:
        raise RequestError(f"{name} names no interface", where=where, next_step=f"Write `{name},iface=NAME`.")


def _refuse_default_route(interface: str, network: HostNetwork, where: str) -> None:
    why = network.default_route_of.get(interface)
    if why is not None:
        raise RequestError(
            f"interface {interface} is refused: {why}, so test frames could leave the lab",
            where=where,
            next_step="Use an interface of an isolated test environment (RFC 6815).",
        )
