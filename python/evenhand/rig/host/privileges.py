# SPDX-License-Identifier: Apache-2.0
"""Host: what this process may do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from evenhand.base.programs import in_checkout
from evenhand.rig.host.finding import Finding, Part, State
from evenhand.rig.host.reading import list_folder, read_text
from evenhand.rig.testbed import LEAST_MEMORY_MB

CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
}
"""Name to bit (capability.h)."""
LAB_TOOLS = ("nsenter", "unshare", "mount")
"""Programs that start the engine inside the lab."""


def check_privileges(root: Path) -> Finding:
    """Root, capabilities, limits, and whether a group of vfio is this user's."""
    status, limits = read_text(root / "proc/self/status") or "", read_text(root / "proc/self/limits") or ""
    effective = int(_found(r"^CapEff:\s*([0-9a-f]+)", status) or "0", 16)
    held = {name for name, bit in CAPABILITIES.items() if effective >> bit & 1}
    is_root = (_found(r"^Uid:\s*\d+\s+(\d+)", status) or "") == "0"
    memlock = _found(r"^Max locked memory\s+(\S+)", limits) or "unknown"
    rtprio = _found(r"^Max realtime priority\s+(\S+)", limits) or "unknown"
    facts = {"is_root": is_root, "capabilities": sorted(held), "memlock": memlock, "rtprio": rtprio}
    names = "all of" if held == set(CAPABILITIES) else "none of" if not held else "of"
    shown = CAPABILITIES if held in (set(), set(CAPABILITIES)) else held
    found = (
        f"{'root' if is_root else 'not root'}; {names}"
        f" {', '.join(name.removeprefix('CAP_') for name in sorted(shown))};"
        f" memlock {_octets(memlock)}, rtprio {rtprio}"
    )
    missing = []
    if not is_root or not {"CAP_NET_ADMIN", "CAP_SYS_ADMIN"} <= held:
        missing.append(Part.LAB)
    if "CAP_NET_RAW" not in held:
        missing.append(Part.INTERFACES)
    groups = [device for device in list_folder(root / "dev/vfio") if device.name != "vfio"]
    may_open = any(os.access(device, os.R_OK | os.W_OK) for device in groups)
    may_lock = (
        "CAP_IPC_LOCK" in held
        or memlock == "unlimited"
        or (memlock.isdecimal() and int(memlock) >= LEAST_MEMORY_MB << 20)
    )
    if not is_root and not (may_open and may_lock):
        missing.append(Part.NICS)
    if missing:
        advice = (
            "This is root without its capabilities: run where they are available (in a privileged"
            " container, or on the host itself)."
            if is_root
            else "Use sudo for commands that work with these. The demo on the reference router runs for any"
            " user, but without SYS_NICE its threads have no priority over other programs. To try the Linux"
            " lab:"
        )
        commands = (
            () if is_root else (in_checkout("make demo-linux", installed="sudo evenhand demo --dut linux"),)
        )
        return Finding(
            name="privileges",
            found=found,
            state=State.MISSING,
            missing_for=tuple(missing),
            advice=advice,
            commands=commands,
            facts=facts,
        )
    return Finding(name="privileges", found=found, facts=facts)


def check_namespaces(root: Path, has_program: Callable[[str], bool]) -> Finding:
    """What the Linux lab is made of: network namespaces, a file system for BPF, and the programs that enter
    it."""
    lacking = []
    if not (root / "proc/self/ns/net").exists():
        lacking.append("network namespaces")
    if not (root / "sys/fs/bpf").is_dir():
        lacking.append("BPF (/sys/fs/bpf)")
    programs = [name for name in LAB_TOOLS if not has_program(name)]
    lacking += programs
    facts = {"lacking": lacking}
    if not lacking:
        return Finding(
            name="namespaces", found=f"network namespaces, BPF, {', '.join(LAB_TOOLS)}", facts=facts
        )
    return Finding(
        name="namespaces",
        found=f"lacking: {', '.join(lacking)}",
        state=State.MISSING,
        missing_for=(Part.LAB,),
        facts=facts,
        advice="The Linux lab needs them."
        if programs
        else "The Linux lab needs a kernel that supports them.",
        commands=("sudo apt-get install util-linux mount",) if programs else (),
    )


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def _octets(limit: str) -> str:
    return f"{int(limit) >> 20} MB" if limit.isdecimal() else limit
