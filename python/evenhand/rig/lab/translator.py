# SPDX-License-Identifier: Apache-2.0
"""The translator of a Linux lab whose plan has one IP version on each side: TAYGA in the DUT's namespace.

    ehdl-NAME (IPv6) -- forwarding -- tun device -- TAYGA -- tun device -- forwarding -- ehdr-NAME (IPv4)

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
from evenhand.rig.dut.translator import INTERFACE, TAYGA_INSTALL, routes_to_translator, tayga_config
from evenhand.rig.lab.machine import end_processes, processes_with, system_path
from evenhand.rig.lab.state import STATE_DIRECTORY
from evenhand.rig.lab.urgency import make_urgent

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

PROGRAM = "tayga"
INSTALL = "; ".join(f"sudo {command}" for command in TAYGA_INSTALL.split("; "))
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
    make_urgent(process.pid)
    with pyroute2.IPRoute() as ip:
        index = _wait_for_interface(ip, process, log)
        ip.link("set", index=index, mtu=mtu, state="up")
        for route in routes_to_translator(translation):
            family = socket.AF_INET if route.version == 4 else socket.AF_INET6
            ip.route("add", dst=str(route), oif=index, family=family)


def end_translator(name: str) -> None:
    """End it, if there is one. Nothing is not an error."""
    end_processes(lambda: translator_processes(name))
    shutil.rmtree(_folder(name), ignore_errors=True)


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
