# SPDX-License-Identifier: Apache-2.0
"""What a lab needs of this machine: root, and CPUs of its own."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.base.errors import HostError, RequestError


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
