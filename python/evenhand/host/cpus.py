# SPDX-License-Identifier: Apache-2.0
"""Host: which CPUs there are, which this process may use, and what else may run on them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from evenhand.base.cpu_list import format_cpu_list, parse_cpu_list
from evenhand.host.finding import Finding, Part, State, list_folder, read_host_facts, read_text

CPU_FOLDER = Path("sys/devices/system/cpu")
ROUTER_AND_TESTER = 2
"""CPUs that a DUT inside this machine and its tester need: one each."""


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
