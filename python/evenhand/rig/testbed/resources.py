# SPDX-License-Identifier: Apache-2.0
"""Testbed: what of this host a port takes for itself, so that no two testers have the same."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.base.locks import Resource
from evenhand.rig.testbed.device import Device, read_device
from evenhand.rig.testbed.drivers import PCI, Kind
from evenhand.rig.testbed.interfaces import PCI_DEVICES, interfaces_of_pci

OWN_NAMESPACE = Path("/proc/self/ns/net")


def resources_of(text: str, *, namespace: Path = OWN_NAMESPACE) -> list[Resource]:
    """The PCI device, interfaces, socket or written file of a device string; none for ports inside the
    process.

    Args:
        namespace: The file of the network namespace that the port is opened in.
    """
    device = read_device(text)
    inside = namespace.stat().st_ino
    interfaces = [name for _, name in device.values(Kind.INTERFACE, Kind.NEW_INTERFACE)]
    found = []
    if device.driver == PCI:
        found.append(Resource(key=f"pci {device.name}", label=f"PCI device {device.name}"))
        interfaces += interfaces_of_pci(PCI_DEVICES / device.name)
    found += [Resource(key=f"interface {inside} {name}", label=f"interface {name}") for name in interfaces]
    if device.driver == "net_memif":
        return [_memif(device, inside)]
    for _, path in device.values(Kind.TARGET):
        found.append(Resource(key=f"file {os.path.realpath(path)}", label=f"the file {path}"))
    for _, path in device.values(Kind.SOCKET):
        found.append(Resource(key=f"socket {os.path.realpath(path)}", label=f"the socket {path}"))
    return found


def _memif(device: Device, inside: int) -> Resource:
    """One end of a cable. The other end may be this tester's other port."""
    path = device.value("socket", "/run/memif.sock")
    is_abstract = device.value("socket-abstract", "yes") == "yes"
    place = f"@{inside} {path}" if is_abstract else os.path.realpath(path)
    end = f"{device.value('role', 'client')}, id {int(device.value('id', '0'))}"
    return Resource(key=f"memif {place} {end}", label=f"the memif socket {path} ({end})")
