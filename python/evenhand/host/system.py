# SPDX-License-Identifier: Apache-2.0
"""Host: operating system, engine, hugepages, and CPUs: which there are, and which this process may use."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from evenhand.base.cpu_list import format_cpu_list, parse_cpu_list
from evenhand.base.errors import EvenhandError
from evenhand.base.programs import in_checkout
from evenhand.host.finding import Finding, Part, State, list_folder, read_host_facts, read_number, read_text
from evenhand.testbed import LEAST_MEMORY_MB

TESTED_SYSTEMS = (("debian", "12"), ("debian", "13"))
CPU_FOLDER = Path("sys/devices/system/cpu")
ROUTER_AND_TESTER = 2
"""CPUs that a DUT inside this machine and its tester need: one each."""


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


def check_cpus(root: Path, allowed: Collection[int]) -> Finding:
    """Model and number of the CPUs, those of this process, and whether two of them share a core."""
    model = read_host_facts(root)["cpu_model"] or "unknown model"
    online = parse_cpu_list(read_text(root / CPU_FOLDER / "online")) or tuple(sorted(allowed))
    cores = sorted({siblings for cpu in allowed if len(siblings := _siblings(root, cpu)) > 1})
    found = f"{len(online)} of {model}; this process may use {format_cpu_list(allowed)}"
    if cores:
        found += f"; threads of one core: {' / '.join(format_cpu_list(core) for core in cores)}"
    facts = {
        "model": model,
        "online": list(online),
        "allowed": sorted(allowed),
        "threads_of_one_core": [list(core) for core in cores],
    }
    if len(allowed) >= ROUTER_AND_TESTER:
        return Finding(name="CPUs", found=found, facts=facts)
    advice = "A router inside this machine and its tester need one CPU each"
    if len(online) >= ROUTER_AND_TESTER:
        return Finding(
            name="CPUs",
            found=found,
            state=State.MISSING,
            missing_for=(Part.REFERENCE,),
            facts=facts,
            advice=f"{advice}: allow two.",
            commands=(f"taskset -c {format_cpu_list(online)} evenhand demo",),
        )
    return Finding(
        name="CPUs",
        found=found,
        state=State.MISSING,
        missing_for=(Part.REFERENCE,),
        facts=facts,
        advice=(
            f"{advice}; this machine has one. Give the virtual machine a second CPU, or use another machine."
        ),
    )


def check_isolation(root: Path, allowed: Collection[int]) -> Finding:
    """CPUs that the kernel keeps free of other work (isolcpus) and of its tick (nohz_full)."""
    isolated, tickless = (
        parse_cpu_list(read_text(root / CPU_FOLDER / name)) for name in ("isolated", "nohz_full")
    )
    facts = {"isolated": list(isolated), "nohz_full": list(tickless)}
    found = (
        f"isolcpus: {format_cpu_list(isolated) or 'none'}; nohz_full: {format_cpu_list(tickless) or 'none'}"
    )
    online = parse_cpu_list(read_text(root / CPU_FOLDER / "online")) or tuple(sorted(allowed))
    if set(isolated) - set(allowed):
        # The kernel gives them to no process that does not ask, and what it starts inherits that.
        return Finding(
            name="isolation",
            found=f"{found}; not available to this process",
            state=State.WEAK,
            facts=facts,
            advice="Linux does not place processes on isolated CPUs by itself: start the tester on them,"
            " with this and every other command:",
            commands=(f"taskset -c {format_cpu_list(online)} evenhand check",),
        )
    if isolated and tickless:
        return Finding(name="isolation", found=found, facts=facts)
    if isolated:
        free = format_cpu_list(isolated)
        advice = (
            f"Also keep the kernel's tick off the tester's CPUs: add nohz_full={free}"
            f" rcu_nocbs={free} to the kernel's command line"
        )
    elif len(online) > 2:
        free = format_cpu_list(online[1:])
        advice = (
            "Keep other work off the tester's CPUs. For all CPUs but the first, add"
            f" isolcpus={free} nohz_full={free} rcu_nocbs={free} to the kernel's command line"
        )
    else:
        # A CPU alone for the rest of the host and one for the tester leave none for a DUT on this machine.
        which = "the only CPU" if len(online) == 1 else "these two CPUs"
        return Finding(
            name="isolation",
            found=found,
            state=State.WEAK,
            facts=facts,
            advice=f"Run nothing else on {which} while trials run.",
        )
    return Finding(
        name="isolation",
        found=found,
        state=State.WEAK,
        facts=facts,
        commands=("sudo update-grub",),
        advice=f"{advice} (GRUB_CMDLINE_LINUX in /etc/default/grub), update the boot"
        " configuration, and boot again:",
    )


def check_frequency(root: Path) -> Finding:
    """Whether the CPUs change their frequency with the load."""
    files = (folder / "cpufreq" / "scaling_governor" for folder in list_folder(root / CPU_FOLDER))
    governors = sorted({text for file in files if (text := read_text(file))})
    facts = {"governors": governors}
    if not governors:
        return Finding(
            name="frequency",
            found="fixed, or controlled elsewhere: there is no governor",
            state=State.UNKNOWN,
            facts=facts,
        )
    found = f"governor {', '.join(governors)}"
    if governors == ["performance"]:
        return Finding(name="frequency", found=found, facts=facts)
    return Finding(
        name="frequency",
        found=found,
        state=State.WEAK,
        facts=facts,
        advice="Keep the frequency up; otherwise the first frames of a trial meet a slow CPU.",
        commands=(f"echo performance | sudo tee /{CPU_FOLDER}/cpu*/cpufreq/scaling_governor",),
    )


def _siblings(root: Path, cpu: int) -> tuple[int, ...]:
    """Threads of the core that this CPU is a thread of."""
    return parse_cpu_list(read_text(root / CPU_FOLDER / f"cpu{cpu}" / "topology" / "thread_siblings_list"))
