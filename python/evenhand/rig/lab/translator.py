# SPDX-License-Identifier: Apache-2.0
"""The translator of a Linux lab whose plan has one IP version on each side: TAYGA in the DUT's namespace.

    ehdl-NAME (IPv6) -- forwarding -- nat64 -- TAYGA -- nat64 -- forwarding -- ehdr-NAME (IPv4)

It is a program that reads and writes a tun device, so every frame is forwarded twice by the kernel and once
translated in between; all of it on the DUT's CPU.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan.translation import Translation
from evenhand.rig.lab.machine import end_processes, processes_with, system_path
from evenhand.rig.lab.napi import MOST_URGENT
from evenhand.rig.lab.state import STATE_DIRECTORY

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

PROGRAM = "tayga"
INSTALL = "sudo systemctl mask tayga; sudo apt-get install --no-install-recommends tayga"
"""Debian's package starts a service that sets up an interface and NAT on this host, which no lab needs."""
INTERFACE = "nat64"
_OWN_ADDRESS = "192.0.2.1"
"""Of TAYGA itself, for its ICMP errors: no host has it (RFC 5737)."""
_PATIENCE_S = 5.0


def check_translator() -> None:
    """HostError if the program or the kernel's tun device is missing."""
    if shutil.which(PROGRAM, path=system_path()) is None:
        raise HostError(
            "the plan needs a translator as DUT, and TAYGA is not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install it without its own service: {INSTALL}",
        )
    if not Path("/dev/net/tun").exists():
        raise HostError(
            "the translator needs a tun device, and there is none",
            code="rig.no-tun-device",
            where="/dev/net/tun",
            next_step="Load the module: sudo modprobe tun.",
        )


def translator_processes(name: str) -> list[int]:
    """Ids of the TAYGA of this lab."""
    return processes_with(b"--nodetach", str(_folder(name)).encode())


def start_translator(name: str, translation: Translation, cpu: int, mtu: int) -> None:
    """Start it. Call inside the DUT's namespace, which then has its routes to it; it stays there when this
    process ends.

    Raises:
        HostError: It does not start; with what it printed.
    """
    check_translator()
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "tayga.conf"
    config.write_text(tayga_config(translation))
    program = shutil.which(PROGRAM, path=system_path()) or PROGRAM
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "--config", str(config), "--nodetach"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    os.sched_setaffinity(process.pid, {cpu})
    os.setpriority(os.PRIO_PROCESS, process.pid, MOST_URGENT)
    with pyroute2.IPRoute() as ip:
        index = _wait_for_interface(ip, process, log)
        ip.link("set", index=index, mtu=mtu, state="up")
        ip.route("add", dst=str(translation.ipv6_hosts_as_ipv4), oif=index)
        ip.route("add", dst=str(translation.prefix), oif=index, family=socket.AF_INET6)


def end_translator(name: str) -> None:
    """End it, if there is one. Nothing is not an error."""
    end_processes(lambda: translator_processes(name))
    shutil.rmtree(_folder(name), ignore_errors=True)


def tayga_config(translation: Translation) -> str:
    """As tayga.conf(5) has it. IPv6 hosts behind the prefix need no mapping, and may have none."""
    lines = [f"tun-device {INTERFACE}", f"ipv4-addr {_OWN_ADDRESS}", f"prefix {translation.prefix}"]
    if translation.needs_mapping:
        lines.append(f"map {translation.ipv6_hosts_as_ipv4} {translation.ipv6_hosts}")
    return "\n".join(lines) + "\n"


def _wait_for_interface(ip: pyroute2.IPRoute, process: subprocess.Popen[bytes], log: Path) -> int:
    give_up = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up and process.poll() is None:
        found = ip.link_lookup(ifname=INTERFACE)
        if found:
            return int(found[0])
        time.sleep(0.02)
    said = log.read_text(errors="replace").strip().splitlines()
    raise HostError(
        f"the translator did not start: {said[-1] if said else 'it printed nothing'}",
        code="rig.translator-does-not-start",
        where="lab",
        next_step=f"See what it printed: {log}.",
    )


def _folder(name: str) -> Path:
    return STATE_DIRECTORY / f"{name}.translator"
