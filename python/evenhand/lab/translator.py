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
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import
from evenhand.dut.connections import Emptied
from evenhand.dut.nat import (
    BUCKETS,
    COUNT,
    FOLDER,
    MOST,
    TAYGA_INSTALL,
    TAYGA_INTERFACE,
    TIMEOUT_S,
    TIMEOUTS,
    NatPorts,
    nat_rules,
    routes_to_translator,
    tayga_config,
)
from evenhand.lab.machine import end_processes, processes_with, system_path
from evenhand.lab.napi import make_urgent
from evenhand.lab.nft import set_rules
from evenhand.lab.state import STATE_DIRECTORY
from evenhand.plan import AddressPlan
from evenhand.plan.translation import Translation

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
        found = ip.link_lookup(ifname=TAYGA_INTERFACE)
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


_SYSCTLS = Path("/proc/sys") / FOLDER
_STATISTICS = ("found", "invalid", "insert", "insert_failed", "drop", "early_drop", "error", "clash_resolve")


def start_nat(plan: AddressPlan, outside: str, ports: NatPorts) -> None:
    """Set the rules, the timeouts and a route. Call inside the DUT's namespace.

    Args:
        outside: Its interface to the right.

    Raises:
        HostError: No nft, or the kernel refuses its rules.
    """
    assert plan.nat is not None
    set_rules(nat_rules(plan.nat, outside, ports), what="the NAT")
    # After the rules: where it is a module, they have loaded it.
    for name in TIMEOUTS:
        (_SYSCTLS / name).write_text(str(TIMEOUT_S))
    if plan.nat.is_own_address:
        return  # the kernel answers what belongs to no connection
    with pyroute2.IPRoute() as ip:
        # Answers to known connections are translated back before they are routed. All others end here: an
        # error message for each would be a frame that no one asked for.
        family = socket.AF_INET if plan.nat.pool.version == 4 else socket.AF_INET6
        ip.route("add", dst=str(plan.nat.pool), type="blackhole", family=family)


def empty_table() -> Emptied:
    """Delete all connections. Call inside the DUT's namespace."""
    connections = int((_SYSCTLS / COUNT).read_text())
    with pyroute2.NFCTSocket() as table:
        began = time.monotonic()
        table.flush()
        seconds = time.monotonic() - began
    return Emptied(seconds=seconds, connections=connections)


def read_timeout() -> float:
    """Seconds without a frame after which a connection is forgotten. Call inside the DUT's namespace."""
    return float(min(int((_SYSCTLS / name).read_text()) for name in TIMEOUTS))


def read_table() -> dict[str, Any]:
    """How large the table is, how long it remembers, and what the kernel has counted of it since the lab is
    up. Call inside the DUT's namespace."""
    with pyroute2.NFCTSocket() as table:
        per_cpu = [dict(row["attrs"]) for row in table.stat()]
    counted = {
        name: sum(int(cpu.get(f"CTA_STATS_{name.upper()}", 0)) for cpu in per_cpu) for name in _STATISTICS
    }
    return {
        **{
            f"net.netfilter.{name}": int((_SYSCTLS / name).read_text()) for name in (MOST, BUCKETS, *TIMEOUTS)
        },
        "counted": {"connections": int((_SYSCTLS / COUNT).read_text()), **counted},
    }
