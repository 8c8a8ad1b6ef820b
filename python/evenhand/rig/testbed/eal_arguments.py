# SPDX-License-Identifier: Apache-2.0
"""Testbed: which of DPDK's own options may be given to it. What is not here is refused: some load code, take
devices or make folders.

The engine has the same table (engine/port/device_string.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evenhand.base.errors import RequestError

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
