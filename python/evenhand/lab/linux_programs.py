# SPDX-License-Identifier: Apache-2.0
"""Programs that a Linux lab needs besides the kernel: which of them its plan and rules need, and which of
these this machine lacks, all of them at once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import HostError, RequestError
from evenhand.lab import nft, translator
from evenhand.lab.build import translations_of
from evenhand.lab.machine import system_path
from evenhand.plan import AddressPlan


@dataclass(frozen=True, slots=True)
class _Need:
    what: str
    """What needs it."""
    program: str
    name: str
    """For people."""
    install: str


def check_linux_programs(plan: AddressPlan, rules: int) -> None:
    """HostError that names all programs that such a lab needs and this machine does not have.

    Args:
        rules: Number of rules of its firewall.
    """
    needs = (
        [_Need("a translator as DUT", translator.PROGRAM, "TAYGA", translator.INSTALL)]
        if (translations_of(plan))
        else []
    )
    ruled = [*(["the NAT"] if plan.nat is not None else []), *(["the firewall"] if rules else [])]
    if ruled:
        needs.append(_Need(" and ".join(ruled), nft.PROGRAM, nft.PROGRAM, nft.INSTALL))
    lacking = [need for need in needs if shutil.which(need.program, path=system_path()) is None]
    if lacking:
        named = ", and ".join(f"{need.name} for {need.what}" for need in lacking)
        raise HostError(
            f"the lab needs {named}, which {'are' if len(lacking) > 1 else 'is'} not installed",
            code="rig.program-missing",
            where="lab",
            next_step=f"Install {'them' if len(lacking) > 1 else 'it'}:"
            f" {'; '.join(need.install for need in lacking)}",
        )


def require_root(why: str = "to create network namespaces", *, lab: str = "Linux") -> None:
    """HostError if this process is not root's."""
    if os.geteuid() != 0:
        raise HostError(
            f"the {lab} lab needs root, {why}",
            code="rig.root-needed",
            where="lab",
            next_step="Run the same command with sudo.",
        )


def share_cpus(dut_cpu: int | None) -> tuple[int, tuple[int, ...]]:
    """The DUT's CPU and the tester's: never the same one, unless there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    if dut_cpu is None:
        dut_cpu = allowed[0]
    elif not (dut_cpu >= 0 and Path(f"/sys/devices/system/cpu/cpu{dut_cpu}").exists()):
        raise RequestError(
            f"CPU {dut_cpu} does not exist",
            code="rig.no-such-cpu",
            where="dut_cpu",
            next_step=f"Use one of: {', '.join(map(str, allowed))}.",
        )
    return dut_cpu, tuple(cpu for cpu in allowed if cpu != dut_cpu) or (dut_cpu,)
