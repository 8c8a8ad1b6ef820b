# SPDX-License-Identifier: Apache-2.0
"""Station 9: what must be known of the host to believe or repeat a run."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import evenhand
from evenhand.series.kernel_parameters import kept_parameters


def read_versions() -> dict[str, str]:
    """Versions of Evenhand and Python; the engine's and DPDK's come from its `about`."""
    return {"evenhand": evenhand.__version__, "python": platform.python_version()}


def read_host_facts(root: Path = Path("/"), *, host_name: bool = False) -> dict[str, Any]:
    """CPU, kernel, mitigations, governor, huge pages. What this host does not tell is None.

    A run is made to be sent to others: nothing here names the host or who runs it, unless `host_name` asks for the name.
    """
    cpuinfo = _read(root / "proc/cpuinfo") or ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    cpu = root / "sys/devices/system/cpu"
    meminfo = _read(root / "proc/meminfo") or ""
    command_line = _read(root / "proc/cmdline")
    return {
        **({"hostname": platform.node()} if host_name else {}),
        "architecture": platform.machine(),
        "cpu_model": model.group(1).strip() if model else None,
        "cpus": os.cpu_count(),
        "is_virtual_machine": bool(re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE)),
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_parameters": None if command_line is None else kept_parameters(command_line),
        "distribution": _distribution(_read(root / "etc/os-release") or ""),
        "mitigations": {file.name: _read(file) for file in sorted((cpu / "vulnerabilities").glob("*"))},
        "governor": _read(cpu / "cpu0/cpufreq/scaling_governor"),
        "smt": _read(cpu / "smt/control"),
        "memory_mb": _number(meminfo, "MemTotal", 1024),
        "hugepages": _number(meminfo, "HugePages_Total", 1),
        "clock_source": _read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _number(meminfo: str, name: str, divisor: int) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+)", meminfo, re.MULTILINE)
    return int(found.group(1)) // divisor if found else None


def _distribution(os_release: str) -> str | None:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', os_release, re.MULTILINE)
    return found.group(1) if found else None
