# SPDX-License-Identifier: Apache-2.0
"""Exchange: what a siitperf.conf says of the tester: MACs, CPUs, directions."""

from __future__ import annotations

from evenhand.exchange.siitperf_file import Part, SiitperfFile
from evenhand.exchange.testbed_text import ImportedPort


def mac_of(file: SiitperfFile, key: str) -> tuple[str, str] | None:
    if not file.has(key) or not is_own_mac(file.value(key)):
        return None
    return file.value(key), key


def is_own_mac(mac: str) -> bool:
    """Whether a port can have it: no group address, and not all zero."""
    return not int(mac[:2], 16) & 1 and bool(int(mac.replace(":", ""), 16))


def port_facts(file: SiitperfFile, part: Part) -> ImportedPort:
    return ImportedPort(mac=mac_of(file, f"MAC-{part}-Tester"), dut_mac=mac_of(file, f"MAC-{part}-DUT"))


def cpu_keys(file: SiitperfFile) -> list[str]:
    """The file's CPU keys in the order of the testbed file: four CPUs are two senders and two receivers, two
    have a port each."""
    if not file.value("Reverse"):
        keys = ["CPU-L-Send", "CPU-R-Recv"]
    elif not file.value("Forward"):
        keys = ["CPU-L-Recv", "CPU-R-Send"]
    else:
        keys = ["CPU-L-Send", "CPU-R-Send", "CPU-L-Recv", "CPU-R-Recv"]
    return [key for key in keys if file.has(key)]


def cpus_of(file: SiitperfFile) -> list[int]:
    return list(dict.fromkeys(file.value(key) for key in cpu_keys(file)))


def direction_option(file: SiitperfFile) -> list[str]:
    if file.value("Forward") and file.value("Reverse"):
        return []
    return ["--direction", "forward" if file.value("Forward") else "reverse"]
