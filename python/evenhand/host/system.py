# SPDX-License-Identifier: Apache-2.0
"""Host: operating system, engine, hugepages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.programs import in_checkout
from evenhand.host.finding import Finding, Part, State, list_folder, read_host_facts, read_number, read_text
from evenhand.testbed import LEAST_MEMORY_MB

TESTED_SYSTEMS = (("debian", "12"), ("debian", "13"))


def check_system(root: Path) -> Finding:
    """Kernel and distribution."""
    facts = read_host_facts(root)
    release = dict(
        re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', read_text(root / "etc/os-release") or "", re.MULTILINE)
    )
    distribution = facts["distribution"] or "unknown distribution"
    machine = ", a virtual machine" if facts["is_virtual_machine"] else ""
    found = f"{distribution}, Linux {facts['kernel']}, {facts['architecture']}{machine}"
    keys = ("distribution", "kernel", "architecture", "is_virtual_machine")
    shown = {key: facts[key] for key in keys}
    if (release.get("ID"), release.get("VERSION_ID")) in TESTED_SYSTEMS:
        return Finding(name="system", found=found, facts=shown)
    return Finding(
        name="system",
        found=found,
        state=State.WEAK,
        facts=shown,
        advice="Evenhand is tested on Debian 12 and 13; verify that it works here:",
        commands=(in_checkout("make test", installed="evenhand demo"),),
    )


def check_engine(about: Mapping[str, Any] | EvenhandError) -> Finding:
    """The engine and its DPDK, or why there is none."""
    if isinstance(about, EvenhandError):
        return Finding(
            name="engine",
            found=str(about),
            state=State.MISSING,
            missing_for=tuple(Part),
            facts={"version": None, "dpdk": None},
            advice=in_checkout(
                "Build it, in a clone of the repository:",
                installed="Install its package, of the same version:",
            ),
            commands=(in_checkout("make build", installed="sudo apt install ./evenhand-engine_*.deb"),),
        )
    return Finding(
        name="engine",
        found=f"evenhand-engine {about['version']}, DPDK {about['dpdk']}",
        facts={key: about[key] for key in ("version", "dpdk")},
    )


def check_hugepages(root: Path) -> Finding:
    """Hugepages of each size, and how many of them are free."""
    pages = []
    for folder in list_folder(root / "sys/kernel/mm/hugepages"):
        size = re.fullmatch(r"hugepages-(\d+)kB", folder.name)
        total, free = read_number(folder / "nr_hugepages"), read_number(folder / "free_hugepages")
        if size and total is not None and free is not None:
            pages.append({"size_kb": int(size[1]), "total": total, "free": free})
    pages.sort(key=lambda page: page["size_kb"])
    facts = {"sizes": pages}
    if not pages:
        return Finding(
            name="hugepages",
            found="this kernel does not support them",
            state=State.MISSING,
            missing_for=(Part.NICS,),
            facts=facts,
            advice="NICs need a kernel with hugepages (CONFIG_HUGETLBFS).",
        )
    found = "; ".join(f"{_size(page['size_kb'])}: {page['free']} of {page['total']} free" for page in pages)
    free_mb = sum(page["free"] * page["size_kb"] for page in pages) // 1024
    if free_mb >= LEAST_MEMORY_MB:
        return Finding(name="hugepages", found=found, facts=facts)
    needed = 2 * LEAST_MEMORY_MB * 1024 // pages[0]["size_kb"]
    return Finding(
        name="hugepages",
        found=found,
        state=State.MISSING,
        missing_for=(Part.NICS,),
        facts=facts,
        advice=f"NICs take their buffers from hugepages, at least {LEAST_MEMORY_MB} MB;"
        f" software ports need none. To reserve {2 * LEAST_MEMORY_MB} MB:",
        commands=(
            f"echo {needed} | sudo tee"
            f" /sys/kernel/mm/hugepages/hugepages-{pages[0]['size_kb']}kB/nr_hugepages",
        ),
    )


def _size(kilobytes: int) -> str:
    for unit, factor in (("GB", 1024 * 1024), ("MB", 1024)):
        if kilobytes >= factor:
            return f"{kilobytes // factor} {unit}"
    return f"{kilobytes} kB"
