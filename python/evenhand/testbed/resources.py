# SPDX-License-Identifier: Apache-2.0
"""Testbed: what of this machine a port takes for itself, so that no two testers have the same."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.locks import Resource
from evenhand.plan import SideName
from evenhand.testbed.device import Device, read_device
from evenhand.testbed.drivers import PCI, Kind
from evenhand.testbed.interfaces import PCI_DEVICES, interfaces_of_pci

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


LEAST_MEMORY_MB = 512
"""With hugepages, of which DPDK takes more when it needs more. Enough for rings of the usual size and up to
four streams a side."""

_DEFAULT_RING_FRAMES = 2048
_LEAST_RECEIVE_BUFFERS = 16383
_LEAST_TRANSMIT_BUFFERS = 8191
_ANSWER_BUFFERS = 4095
_PAGE_OCTETS = 4096
"""Without hugepages a buffer begins a page of its own, if it does not share it with others."""
_AROUND_OCTETS = 512
"""Headroom, and what DPDK keeps of each buffer."""
_MARGIN = 1.1
"""For what is not a buffer. Measured with `net_null`: 2 to 4 % for 1 to 8 streams, 1 to 4 queues, rings of
2048 to 16384."""


def needed_memory_mb(
    workers: Sequence[Mapping[str, Any]], ports: Mapping[SideName, Mapping[str, Any]], frame_size: int = 64
) -> int:
    """Mebibytes for these workers, ports and frames of the contract's `open`, without hugepages.
    DPDK keeps 48 octets for each page that it is given, also for those that it never uses.

    A port has a pool of buffers for all its receive queues, one for each stream and one for answers to
    neighbours, as in `engine/port/dpdk_port.cpp`.
    """
    pages = len(ports) * _ANSWER_BUFFERS
    for side, port in ports.items():
        streams = sum(sender["side"] == side for worker in workers for sender in worker.get("senders", ()))
        queues = sum(
            receiver["side"] == side for worker in workers for receiver in worker.get("receivers", ())
        )
        buffers = max(
            _LEAST_RECEIVE_BUFFERS, 4 * queues * port.get("receive_ring_frames", _DEFAULT_RING_FRAMES)
        )
        buffers += streams * max(
            _LEAST_TRANSMIT_BUFFERS, 2 * port.get("transmit_ring_frames", _DEFAULT_RING_FRAMES)
        )
        # The slots of a packet socket's ring have a size of their own, and buffers must hold one.
        slot = re.search(r",framesz=(\d+)", port.get("device", ""))
        largest = frame_size if slot is None else max(frame_size, int(slot[1]))
        pages += buffers * -(-(largest + _AROUND_OCTETS) // _PAGE_OCTETS)
    return int(pages * _PAGE_OCTETS * _MARGIN) // (1 << 20) + 1


_NOTHING = re.compile("")
_SIZES = re.compile(r"[0-9]{1,7}(?:,[0-9]{1,7}){0,7}")
ALLOWED: Mapping[str, tuple[re.Pattern[str], str]] = {
    "--no-pci": (_NOTHING, ""),
    "--no-hpet": (_NOTHING, ""),
    "--legacy-mem": (_NOTHING, ""),
    "--match-allocations": (_NOTHING, ""),
    "--single-file-segments": (_NOTHING, ""),
    "--log-level": (re.compile(r"[A-Za-z0-9_.*:,-]{1,100}"), "such as 8, or pmd.net.memif:debug"),
    "--socket-mem": (_SIZES, "megabytes for each NUMA node, such as 1024,1024"),
    "--socket-limit": (_SIZES, "megabytes for each NUMA node, such as 1024,1024"),
    "--iova-mode": (re.compile("pa|va"), "pa or va"),
    "--vfio-intr": (re.compile("legacy|msi|msix"), "legacy, msi or msix"),
    "--force-max-simd-bitwidth": (re.compile("0|64|128|256|512"), "0, 64, 128, 256 or 512"),
}
"""Option, form of its value, and that for people."""

INSTEAD: Mapping[str, tuple[str, str]] = {
    "--vdev": ("adds a port that has not been checked", "Name ports as left.device and right.device."),
    "--allow": ("adds a port that has not been checked", "Name ports as left.device and right.device."),
    "--block": ("is not needed: only the two ports are used", "Leave it out."),
    "-a": ("adds a port that has not been checked", "Name ports as left.device and right.device."),
    "-w": ("adds a port that has not been checked", "Name ports as left.device and right.device."),
    "-b": ("is not needed: only the two ports are used", "Leave it out."),
    "-d": ("loads a library and runs its code", "Omit it; all of DPDK's drivers are available."),
    "-l": ("takes CPUs", "Name them as tester.cpus."),
    "-c": ("takes CPUs", "Name them as tester.cpus."),
    "--lcores": ("takes CPUs", "Name them as tester.cpus."),
    "--main-lcore": ("takes CPUs", "Name them as tester.cpus."),
    "-m": ("is the memory", "Write it as tester.memory."),
    "--no-huge": ("determines how memory is allocated", "Use tester.hugepages."),
    "--in-memory": ("determines how memory is allocated", "Use tester.hugepages."),
    "--huge-dir": (
        "names a folder in which files are created and removed",
        "Omit it; with tester.hugepages it is not needed.",
    ),
    "--huge-unlink": (
        "removes files of other programs",
        "Omit it; with tester.hugepages no hugepages are created.",
    ),
    "--file-prefix": ("names folders that DPDK creates anywhere", "Omit it; each engine has its own."),
    "--proc-type": ("joins other DPDK programs", "Omit it; the tester runs on its own."),
    "--trace-dir": ("names a folder in which files are created", "Leave it out."),
}
"""What people may try, why not, and what to write instead."""


def check_eal_arguments(arguments: Sequence[str], *, where: str) -> None:
    """Each is a text of its own, `--name=value`.

    Raises:
        RequestError: One is not in ALLOWED, its value has another form, or it is written twice.
    """
    seen: set[str] = set()
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name not in ALLOWED:
            # -m512 and -dlib.so are the short ones with their values.
            short = name[:2] if name[:1] == "-" and name[:2] != "--" else name
            why, instead = INSTEAD.get(
                short,
                (
                    "is not one of the options that are known to be harmless",
                    f"Known here: {', '.join(ALLOWED)}.",
                ),
            )
            raise RequestError(
                f"{argument[:100]!r} is refused: {short} {why}",
                code="rig.eal-argument-refused",
                where=where,
                next_step=instead,
            )
        form, says = ALLOWED[name]
        if bool(equals) != bool(says) or not form.fullmatch(value):
            expected = f"write {name}=VALUE, {says}" if says else f"{name} has no value"
            raise RequestError(
                f"{argument[:100]!r}: {expected}",
                code="rig.eal-argument-value",
                where=where,
                next_step="Correct it there.",
            )
        if name in seen:
            raise RequestError(
                f"{name} appears twice", code="rig.eal-argument-twice", where=where, next_step="Name it once."
            )
        seen.add(name)
