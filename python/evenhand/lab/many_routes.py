# SPDX-License-Identifier: Apache-2.0
"""Routes of a Linux lab's DUT that are too many to be set one by one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evenhand.base.errors import HostError
from evenhand.dut.many_routes import PROTOCOL, SLOWEST_PER_S, ManyRoutes, batch_lines
from evenhand.lab.machine import system_path

PROGRAM = "ip"
_PATIENCE_S = 60.0
_MEMORY_FILE = Path("/proc/meminfo")


def check_many_routes(many: Sequence[ManyRoutes]) -> None:
    """HostError if this machine has too little memory for them, or not the program that sets them."""
    if not many:
        return
    if shutil.which(PROGRAM, path=system_path()) is None:
        raise HostError(
            f"so many routes of the lab need {PROGRAM}, which is not installed",
            code="rig.program-missing",
            where="lab",
            next_step="Install it: sudo apt-get install iproute2",
        )
    needed, left = sum(each.memory_octets for each in many), _memory_left_octets()
    if left is not None and needed > left:
        counts = " and ".join(f"{each.prefixes.count:,} IPv{each.prefixes.version}" for each in many)
        raise HostError(
            f"this machine has {left >> 20:,} MB of memory left, and the DUT's tables of routes need about"
            f" {needed >> 20:,} MB for {counts} routes",
            code="rig.table-of-routes-too-small",
            where="lab",
            next_step="Use fewer routes, or give this machine more memory.",
        )


def set_many_routes(many: ManyRoutes) -> None:
    """Set them, and count them. Call inside the DUT's namespace.

    Raises:
        HostError: The kernel took fewer, or the program did not end.
    """
    family = f"-{many.prefixes.version}"
    patience_s = _PATIENCE_S + many.prefixes.count / SLOWEST_PER_S
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [PROGRAM, family, "-batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            text=True,
            env={"PATH": system_path()},
        )
        assert process.stdin is not None
        try:
            process.stdin.writelines(batch_lines(many))
            process.stdin.close()
            process.wait(patience_s)
        except BrokenPipeError:
            pass  # it has ended at a route that the kernel refused, and has said why
        except subprocess.TimeoutExpired:
            raise HostError(
                f"{PROGRAM} did not end within {patience_s:.0f} s",
                code="rig.routes-too-slow",
                where="lab",
                next_step="Use fewer routes, or try again when this machine is less busy.",
            ) from None
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        reason = " ".join(said.read(1000).split())
    taken = _count(family, many.interface)
    if taken != many.prefixes.count:
        raise HostError(
            f"the kernel took {taken:,} of {many.prefixes.count:,} IPv{many.prefixes.version} routes of the"
            f" {many.side} side{f': {reason}' if reason else ''}",
            code="rig.table-of-routes-too-small",
            where="lab",
            next_step="Use fewer routes, or give this machine more memory.",
        )


def _count(family: str, interface: str) -> int:
    show = [PROGRAM, family, "route", "show", "table", "all", "proto", str(PROTOCOL), "dev", interface]
    with subprocess.Popen(show, stdout=subprocess.PIPE, env={"PATH": system_path()}) as process:
        assert process.stdout is not None
        return sum(1 for _ in process.stdout)


def _memory_left_octets() -> int | None:
    """What the kernel could still give; None if it does not say."""
    for line in _MEMORY_FILE.read_text().splitlines():
        words = line.split()
        if words[0] == "MemAvailable:":
            return int(words[1]) << 10
    return None
