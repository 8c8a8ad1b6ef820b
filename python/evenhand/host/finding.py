# SPDX-License-Identifier: Apache-2.0
"""Host: what one check found, what it is enough for, and what to do where it is not."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from evenhand.base.version import VERSION
from evenhand.dut.kernel_parameters import cpu_model, kept_parameters


class Part(StrEnum):
    """What of Evenhand may run on a host."""

    REFERENCE = "reference"
    LAB = "lab"
    INTERFACES = "interfaces"
    NICS = "nics"

    @property
    def label(self) -> str:
        return {
            "reference": "reference router",
            "lab": "Linux lab",
            "interfaces": "kernel interfaces",
            "nics": "NICs",
        }[self]


class State(StrEnum):
    """State of one finding."""

    GOOD = "good"
    WEAK = "weak"
    """All runs; results suffer."""
    MISSING = "missing"
    """Something does not run."""
    UNKNOWN = "unknown"
    """The host does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check."""

    name: str
    found: str
    """What was found, in words."""
    state: State = State.GOOD
    missing_for: tuple[Part, ...] = ()
    """These cannot run because of it."""
    advice: str = ""
    """What to do, a sentence; what is weak or missing always has one."""
    commands: tuple[str, ...] = ()
    """The same as commands, to be typed as they are."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was found, for programs."""

    def __post_init__(self) -> None:
        assert bool(self.missing_for) == (self.state is State.MISSING), self
        assert self.advice or self.state in (State.GOOD, State.UNKNOWN), self

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Finding:
        """What `to_document` has written, on another machine. KeyError, TypeError or ValueError if that is
        not so."""
        return cls(
            name=str(document["name"]),
            found=str(document["found"]),
            state=State(document["state"]),
            missing_for=tuple(Part(part) for part in document["missing_for"]),
            advice=str(document["advice"]),
            commands=tuple(str(command) for command in document["commands"]),
            facts=dict(document["facts"]),
        )

    def to_document(self) -> dict[str, Any]:
        """For `--json` (contract/check.schema.json)."""
        return {
            "name": self.name,
            "state": str(self.state),
            "found": self.found,
            "missing_for": [str(part) for part in self.missing_for],
            "advice": self.advice,
            "commands": list(self.commands),
            "facts": dict(self.facts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReadiness:
    """Whether one part can run here."""

    part: Part
    missing: tuple[str, ...]
    """Names of the findings that are in the way."""

    @property
    def can_run(self) -> bool:
        return not self.missing

    def to_document(self) -> dict[str, Any]:
        return {"part": str(self.part), "can_run": self.can_run, "missing": list(self.missing)}


def read_text(path: Path) -> str | None:
    """Stripped; None if it is not there or not ours to read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """None if there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.isdecimal() else None


def list_folder(path: Path) -> list[Path]:
    """Its entries in order; none if it is not there or not ours to read."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def read_versions() -> dict[str, str]:
    """Versions of Evenhand and Python; the engine's and DPDK's come from its `about`."""
    return {"evenhand": VERSION, "python": platform.python_version()}


def read_host_facts(root: Path = Path("/"), *, host_name: bool = False) -> dict[str, Any]:
    """Machine, CPU, clock, kernel, mitigations, governor, huge pages (SEED-84). What this machine does not
    report is None.

    A run is made to be sent to others: nothing here names the host or who runs it, unless `host_name` asks
    for the name.
    """
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    cpu = root / "sys/devices/system/cpu"
    meminfo = read_text(root / "proc/meminfo") or ""
    command_line = read_text(root / "proc/cmdline")
    return {
        **({"hostname": platform.node()} if host_name else {}),
        "machine": _machine(root / "sys/class/dmi/id"),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(cpuinfo),
        "cpus": os.cpu_count(),
        "sockets": len(
            {text for file in cpu.glob("cpu[0-9]*/topology/physical_package_id") if (text := read_text(file))}
        )
        or None,
        "is_virtual_machine": bool(re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE)),
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_parameters": None if command_line is None else kept_parameters(command_line),
        "distribution": _distribution(read_text(root / "etc/os-release") or ""),
        "mitigations": {file.name: read_text(file) for file in sorted((cpu / "vulnerabilities").glob("*"))},
        "governor": read_text(cpu / "cpu0/cpufreq/scaling_governor"),
        "clock_mhz": _clock_mhz(cpu / "cpu0/cpufreq", cpuinfo),
        "turbo": _turbo(cpu),
        "smt": read_text(cpu / "smt/control"),
        "memory_mb": _number(meminfo, "MemTotal", 1024),
        "hugepages": _number(meminfo, "HugePages_Total", 1),
        "clock_source": read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def _machine(dmi: Path) -> str | None:
    """Maker and model, which many machines share; never a serial number."""
    return (
        " ".join(text for name in ("sys_vendor", "product_name") if (text := read_text(dmi / name))) or None
    )


def _clock_mhz(cpufreq: Path, cpuinfo: str) -> list[int] | None:
    """Lowest and highest that the first CPU is allowed, the same if it is fixed; where nothing governs it,
    what it has."""
    limits = [read_text(cpufreq / f"scaling_{end}_freq") for end in ("min", "max")]
    found = [int(limit) // 1000 for limit in limits if limit is not None and limit.isdecimal()]
    if len(found) == len(limits):
        return found
    has = re.search(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)
    return [round(float(has.group(1)))] * 2 if has else None


def _turbo(cpu: Path) -> str | None:
    """`on` or `off`: Intel's driver says what is off, the others what is on."""
    off, on = read_text(cpu / "intel_pstate/no_turbo"), read_text(cpu / "cpufreq/boost")
    by_intel = {"0": "on", "1": "off"}.get(off or "")
    return by_intel or {"0": "off", "1": "on"}.get(on or "")


def _number(meminfo: str, name: str, divisor: int) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+)", meminfo, re.MULTILINE)
    return int(found.group(1)) // divisor if found else None


def _distribution(os_release: str) -> str | None:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', os_release, re.MULTILINE)
    return found.group(1) if found else None
