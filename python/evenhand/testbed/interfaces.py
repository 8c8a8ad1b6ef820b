# SPDX-License-Identifier: Apache-2.0
"""Testbed: what a port uses on this machine. Refuses what the host itself uses (R6815-01), and files that are
not the tester's."""

from __future__ import annotations

import ctypes
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import TypeVar

from evenhand.base.errors import HostError, RequestError
from evenhand.testbed.default_routes import default_route_interfaces
from evenhand.testbed.device import Device, read_device
from evenhand.testbed.drivers import PCI, Kind
from evenhand.testbed.links import KernelLink, number_of_namespace, read_addresses, read_links

_CLONE_NEWNET = 0x40000000
MOST_NAMESPACES = 1000
"""A host of containers may have some hundred."""
NAMED = Path("/run/netns")
Result = TypeVar("Result")


@dataclass(slots=True)
class DeviceUse:
    """The kernel's devices that have an interface in a namespace that was asked: `0000:01:00.0`,
    `virtio2`."""

    seen: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Those whose interface is in another namespace, and its name."""
    in_the_way: dict[str, str] = field(default_factory=dict)
    """Those that carry a default route, and why that is."""


def other_namespaces(proc: Path = Path("/proc")) -> Iterator[Path]:
    """A path of each network namespace that is known here, but this process's own: of every process that can
    be seen, and of those that `ip netns` has named."""
    known = set()
    with suppress(OSError):
        known.add(_identity(proc / "self/ns/net"))
    named = sorted(NAMED.iterdir()) if NAMED.is_dir() else []
    processes = (proc / name / "ns/net" for name in os.listdir(proc) if name.isdecimal())
    for path in (*named, *processes):
        with suppress(OSError):
            identity = _identity(path)
            if identity not in known and len(known) < MOST_NAMESPACES:
                known.add(identity)
                yield path


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def in_namespace(path: Path, work: Callable[[], Result]) -> Result:
    """Do this in a thread that has entered the namespace. OSError if it cannot be entered, and whatever the
    work raises."""
    found: list[Result] = []
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            finally:
                os.close(descriptor)
            found.append(work())
        except BaseException as error:
            failed.append(error)

    # A thread of its own: it cannot be used again, since it stays there.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


PCI_DEVICES = Path("/sys/bus/pci/devices")
_SHARE_A_WIRE = frozenset({"macvlan", "macvtap", "ipvlan", "ipvtap"})
WITHOUT_INTERFACE = frozenset({"vfio-pci", "uio_pci_generic", "igb_uio", "pci-stub"})
"""Drivers of PCI devices that make no interface."""
KERNEL_VHOST = "/dev/vhost-net"
NOWHERE = "/dev/null"


CANNOT_TELL = (
    "the kernel uses it in a network namespace that cannot be looked into from here, so it cannot be told"
    " whether it carries a default route"
)


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The kernel's interfaces, in the namespace of this process; and what is known of devices whatever
    namespace they are in."""

    names: frozenset[str]
    default_route_of: Mapping[str, str]
    """Interface to why it is in the way: it carries a default route, itself or for an interface stacked on
    it."""
    addresses_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Interface to its IP addresses, without those of the link alone (fe80::)."""
    devices: DeviceUse | None = None
    """None: not asked."""

    def why_not_device(self, folder: Path) -> str | None:
        """Why a PCI device, whose folder of /sys this is, may be in the way: an interface on it carries a
        default route, in whichever namespace, or that cannot be told. None if nothing of the kind is
        known."""
        here = interfaces_of_pci(folder)
        whys = [self.default_route_of[name] for name in here if name in self.default_route_of]
        if whys or self.devices is None:
            return whys[0] if whys else None
        names = _names_of(folder)
        for name in names:
            if name in self.devices.in_the_way:
                return self.devices.in_the_way[name]
        is_seen = bool(here) or any(name in self.devices.seen for name in names)
        return None if is_seen or not _has_kernel_driver(folder) else CANNOT_TELL

    def interface_elsewhere(self, folder: Path) -> str | None:
        """`eth1 in another network namespace`, if a PCI device has its interface there."""
        elsewhere = {} if self.devices is None else self.devices.elsewhere
        return next((elsewhere[name] for name in _names_of(folder) if name in elsewhere), None)


def _names_of(folder: Path) -> list[str]:
    """The names that the kernel has for the device as the parent of an interface."""
    return [folder.name, *(entry.name for entry in folder.glob("virtio[0-9]*"))]


def _has_kernel_driver(folder: Path) -> bool:
    """Whether a driver of the kernel makes an interface of it, somewhere: its module names one."""
    driver = folder / "driver"
    if not driver.exists() or driver.resolve().name in WITHOUT_INTERFACE:
        return False
    return driver.resolve().name != "virtio-pci" or any(
        (each / "driver").exists() for each in folder.glob("virtio[0-9]*")
    )


def read_host_network() -> HostNetwork:
    """Ask the kernel. Default routes count in every table, IPv4 and IPv6, also through bridges, bonds, VLANs,
    macvlans, veth pairs, and what carries an interface from another namespace."""
    links, reasons, found = _read_namespace()
    name_of = {index: link.name for index, link in links.items()}
    addresses = {
        name: tuple(text for owner, text in found if owner == index) for index, name in name_of.items()
    }
    use = DeviceUse()
    _note_devices(use, links, reasons, "")
    for path in other_namespaces():
        with suppress(OSError):
            there, reasons_there, _ = in_namespace(path, _read_namespace)
            _note_devices(use, there, reasons_there, " in another network namespace")
            for index, why in _carried_from(path, links, reasons_there).items():
                reasons.setdefault(index, why)
    return HostNetwork(
        names=frozenset(name_of.values()),
        default_route_of={name_of[index]: why for index, why in reasons.items()},
        addresses_of={name: texts for name, texts in addresses.items() if texts},
        devices=use,
    )


def _note_devices(
    use: DeviceUse, links: Mapping[int, KernelLink], reasons: Mapping[int, str], where: str
) -> None:
    for index, link in links.items():
        if link.device is None:
            continue
        name = f"{link.name}{where}"
        use.seen.add(link.device)
        if where:
            use.elsewhere[link.device] = name
        if index in reasons:
            use.in_the_way[link.device] = f"its interface is {name}, and {reasons[index]}"


def _carried_from(
    path: Path, links: Mapping[int, KernelLink], reasons_there: Mapping[int, str]
) -> dict[int, str]:
    """Interfaces here that an interface of that namespace carries, which is in the way."""
    carried = {
        index: link
        for index, link in links.items()
        if link.namespace is not None
        and link.kind in (*_SHARE_A_WIRE, "vlan")
        and link.other in reasons_there
    }
    if not carried:
        return {}
    with path.open("rb") as namespace:
        number = number_of_namespace(namespace.fileno())
    return {
        index: "it shares a cable with an interface of another network namespace, which a default route uses"
        for index, link in carried.items()
        if link.namespace == number
    }


def _read_namespace() -> tuple[dict[int, KernelLink], dict[int, str], list[tuple[int, str]]]:
    """The interfaces of the namespace that this thread is in; those that carry a default route, and why; and
    the IP addresses of all."""
    links = read_links()
    carriers = default_route_interfaces(AF_INET) | default_route_interfaces(AF_INET6)
    name_of = {index: link.name for index, link in links.items()}
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
    return links, reasons, [*read_addresses(AF_INET), *read_addresses(AF_INET6)]


def _joined_to(refused: int, links: Mapping[int, KernelLink], name_of: Mapping[int, str]) -> dict[int, str]:
    """Interfaces whose frames reach the wire of this one, each with a word why."""
    above = f"{name_of[refused]} above it carries a default route"
    found = {index: above for index, link in links.items() if link.master == refused}
    own = links[refused]
    other = _linked(own, links)
    if other is not None and own.kind != "veth":
        found[other] = above
    for index, link in links.items():
        if link.kind in _SHARE_A_WIRE and _linked(link, links) == refused:
            found[index] = f"it shares a cable with {name_of[refused]}, which a default route uses"
    # What goes into one end of a veth pair comes out of the other: into the bridge, if that is a bridge's
    # port.
    if other is not None and own.kind == "veth" and own.master is not None:
        found[other] = f"its other end, {name_of[refused]}, is in a bridge that carries a default route"
    return found


def _linked(link: KernelLink, links: Mapping[int, KernelLink]) -> int | None:
    """`KernelLink.other`, if it is in this namespace; indices are each namespace's own."""
    return link.other if link.other in links and link.namespace is None else None


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
                next_step="`evenhand check` lists the NICs of this machine.",
            )
        _refuse(f"PCI device {device.name}", network.why_not_device(folder), where)
    for _, interface in device.values(Kind.INTERFACE, Kind.NEW_INTERFACE):
        _refuse(f"interface {interface}", network.default_route_of.get(interface), where)
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
        if path != KERNEL_VHOST:
            _refuse_denied(key, path, where)
        if path != KERNEL_VHOST and os.path.lexists(path) and not _is_socket(path):
            raise RequestError(
                f"{key}={path} exists, but is not a socket",
                code="rig.not-a-socket",
                where=where,
                next_step="Name a socket, or a path that does not exist yet.",
            )


def _refuse_denied(key: str, path: str, where: str) -> None:
    """HostError if the socket is another user's, or in a folder that this user may not look into: then what
    is there is not known, and it cannot be connected to."""
    try:
        facts = os.stat(path)
        is_denied = stat.S_ISSOCK(facts.st_mode) and not os.access(path, os.R_OK | os.W_OK)
    except PermissionError:
        is_denied = True
    except OSError:
        is_denied = False
    if is_denied:
        raise HostError(
            f"{key}={path}: this user has no permission for that socket",
            code="rig.socket-denied",
            where=where,
            next_step="Run it as the user who made the socket, or with sudo.",
        )


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _refuse(what: str, why: str | None, where: str) -> None:
    if why is not None:
        raise RequestError(
            f"{what} is refused: {why}, so test frames could leave the lab",
            code="rig.not-isolated",
            where=where,
            next_step="Use an interface of an isolated test environment (RFC 6815).",
        )
