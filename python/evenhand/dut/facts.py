# SPDX-License-Identifier: Apache-2.0
"""DUT: what a Linux router is made of and how it is set, read by one command (R2544-02, SEED-81, SEED-84).
Changes nothing.

Runs are made to be sent to others: neither the name of the host nor its whole kernel command line is kept,
and no MAC.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.folders import read_state, replace_state, state_file
from evenhand.dut.facts_interface import COMMANDS, DEVICE, number_in, read_interface
from evenhand.dut.kernel_parameters import cpu_model, kept_parameters
from evenhand.dut.nat import BUCKETS, FOLDER, MOST, TIMEOUTS
from evenhand.dut.readings import END, MARK, split_parts
from evenhand.dut.readings_queues import understood
from evenhand.dut.shell import Shell

FACTS_TIMEOUT_S = 120.0
READ_THERE = " (read on the DUT)"
"""Behind every fact that the user did not write."""
_CPU = "/sys/devices/system/cpu"
_SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv6/conf/all/disable_ipv6",
    *(f"net/ipv{version}/neigh/default/gc_thresh{step}" for version in (4, 6) for step in (1, 2, 3)),
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv4/icmp_ratelimit",
    "net/ipv6/icmp/ratelimit",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    *(f"{FOLDER}/{name}" for name in (MOST, BUCKETS, *TIMEOUTS)),
    "net/bridge/bridge-nf-call-iptables",
)
"""Settings that switch forwarding, limit neighbours, or show something between the two interfaces. What is
not there is left out."""
_OF_INTERFACE = (
    "net/ipv4/conf/{0}/rp_filter",
    "net/ipv4/conf/{0}/forwarding",
    "net/ipv6/conf/{0}/forwarding",
    "net/ipv4/neigh/{0}/base_reachable_time_ms",
    "net/ipv6/neigh/{0}/base_reachable_time_ms",
    "net/ipv4/neigh/{0}/unres_qlen_bytes",
    "net/ipv6/neigh/{0}/unres_qlen_bytes",
)
CHANGED_BY_SET_UP = ("sysctls", "hash", "channels", "mtu", "qdisc")
"""Keys, anywhere in the facts, of what a campaign may set from point to point: no change of the DUT."""


def facts_command(interfaces: Mapping[str, str]) -> str:
    """One command of `sh` that prints what `parse_facts` reads of these interfaces, by their places."""
    lines = [
        'export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"',
        f'part() {{ echo "{MARK} $*"; }}',
        'answered() { answer=$("$@" 2>&1); echo exit $?; printf \'%s\\n\' "$answer"; }',
        "part kernel; uname -s; uname -r; uname -v; uname -m",  # never -n
        "part system; grep '^PRETTY_NAME=' /etc/os-release",
        "part machine; cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name 2>/dev/null",
        "part cpuinfo; grep -m 3 -E '^(cpu family|model|model name)[[:space:]]*:' /proc/cpuinfo",
        "grep -m 1 '^cpu MHz' /proc/cpuinfo; grep -m 1 -o -w hypervisor /proc/cpuinfo",
        f"part cpus; grep -c '^processor' /proc/cpuinfo; cat {_CPU}/online",
        f"cat {_CPU}/cpu[0-9]*/topology/physical_package_id | sort -u | wc -l",
        *(
            f"part {name}; cat {_CPU}/{path} 2>/dev/null{more}"
            for name, path, more in (
                ("smt", "smt/control", ""),
                ("isolated", "isolated", ""),
                ("no_turbo", "intel_pstate/no_turbo", ""),
                ("boost", "cpufreq/boost", ""),
                ("governors", "cpu[0-9]*/cpufreq/scaling_governor", " | sort | uniq -c"),
                ("clock_min", "cpu0/cpufreq/scaling_min_freq", ""),
                ("clock_max", "cpu0/cpufreq/scaling_max_freq", ""),
            )
        ),
        "part memory; grep '^MemTotal' /proc/meminfo",
        "part clock_source; cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        f"part mitigations; cd {_CPU}/vulnerabilities 2>/dev/null && grep . *; cd /",
        "part command_line; cat /proc/cmdline",
        "part sysctls; for name in "
        + " ".join(shlex.quote(name) for name in _sysctls(interfaces.values()))
        + "; do"
        ' [ -r "/proc/sys/$name" ] && echo "$name $(cat "/proc/sys/$name" | tr \'\\t\' \' \')"; done',
    ]
    for place, interface in interfaces.items():
        lines += [
            f"part interface {place} {name}; answered {words.format(shlex.quote(interface))}"
            for name, words in COMMANDS.items()
        ]
        lines.append(f"name={shlex.quote(interface)}; part interface {place} device; {DEVICE}")
    return "\n".join([*lines, f"part {END}"])


def read_facts(shell: Shell, interfaces: Mapping[str, str], *, where: str) -> dict[str, Any]:
    """All facts, in one round trip. What the DUT does not report is None, or is given with the DUT's own
    answer.

    Raises:
        HostError: It cannot be reached, is not Linux, or has no such interface.
    """
    return read_facts_and_macs(shell, interfaces, where=where)[0]


def read_facts_and_macs(
    shell: Shell, interfaces: Mapping[str, str], *, where: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The same, and in addition to the facts, which are kept, the MACs of all interfaces, where they have
    one. Errors as `read_facts`."""
    answer = shell.run(facts_command(interfaces), timeout_s=FACTS_TIMEOUT_S)
    return parse_facts(answer.stdout, interfaces, where=where), read_macs(answer.stdout, interfaces)


def read_macs(text: str, places: Iterable[str]) -> dict[str, str]:
    """MACs in the output of `facts_command`."""
    parts = split_parts(text)
    found = {
        place: re.search(r"link/ether ([0-9a-f:]{17})", parts.get(f"interface {place} link", ""))
        for place in places
    }
    return {place: mac[1] for place, mac in found.items() if mac is not None}


def parse_facts(text: str, interfaces: Mapping[str, str], *, where: str) -> dict[str, Any]:
    """The output of `facts_command` for these. HostError as in `read_facts`."""
    parts = split_parts(text)
    kernel = parts.get("kernel", "").splitlines()
    if END not in parts or len(kernel) < 4 or kernel[0] != "Linux":
        raise HostError(
            "the DUT's facts could not be read: its answer is not that of a Linux system, or it was cut off",
            code="rig.dut-answer-not-understood",
            where=where,
            next_step='Name its system in the testbed file (dut.os); facts are read only for "linux".',
        )
    with understood("itself", where=where):
        return _facts(parts, kernel, interfaces, where=where)


def _facts(
    parts: Mapping[str, str], kernel: Sequence[str], interfaces: Mapping[str, str], *, where: str
) -> dict[str, Any]:
    count, online, sockets = (*parts.get("cpus", "").splitlines(), None, None, None)[:3]
    cpuinfo = parts.get("cpuinfo", "")
    memory = re.search(r"(\d+) kB", parts.get("memory", ""))
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', parts.get("system", ""))
    return {
        "system": pretty[1] if pretty else None,
        "kernel": kernel[1],
        "kernel_version": kernel[2],
        "architecture": kernel[3],
        "machine": " ".join(parts.get("machine", "").split()) or None,
        "is_virtual_machine": "hypervisor" in cpuinfo.splitlines(),
        "cpu_model": cpu_model(cpuinfo),
        "cpus": number_in(count),
        "cpus_online": online,
        "cpus_isolated": _text(parts, "isolated"),
        "sockets": number_in(sockets) or None,
        "smt": _text(parts, "smt"),
        "governors": {
            words[1]: int(words[0])
            for line in parts.get("governors", "").splitlines()
            if len(words := line.split()) == 2
        },
        "clock_mhz": _clock_mhz(parts, cpuinfo),
        "turbo": {"0": "on", "1": "off"}.get(_text(parts, "no_turbo") or "")
        or {"0": "off", "1": "on"}.get(_text(parts, "boost") or ""),
        "memory_mb": int(memory[1]) // 1024 if memory else None,
        "clock_source": _text(parts, "clock_source"),
        "mitigations": dict(
            line.split(":", 1) for line in parts.get("mitigations", "").splitlines() if ":" in line
        ),
        "kernel_parameters": kept_parameters(parts.get("command_line", "")),
        "sysctls": {
            name.replace("/", "."): value
            for line in parts.get("sysctls", "").splitlines()
            for name, _, value in [line.partition(" ")]
        },
        "interfaces": {
            place: read_interface(
                name,
                {
                    key.removeprefix(f"interface {place} "): part
                    for key, part in parts.items()
                    if key.startswith(f"interface {place} ")
                },
                where=where,
            )
            for place, name in interfaces.items()
        },
    }


def reported_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a DUT that a report shows, by the keys of the testbed file's `[dut.facts]` (`DutFacts`);
    only those that the DUT reported.

    `policing` is not among them: only its owner knows what in a router may drop frames.
    """
    clock, governors = facts["clock_mhz"], ", ".join(facts["governors"])
    low_high = (
        None
        if clock is None
        else f"{clock[0]} MHz"
        if clock[0] == clock[1]
        else f"{clock[0]} to {clock[1]} MHz"
    )
    interfaces = facts["interfaces"]
    found = {
        "machine": facts["machine"],
        "system": facts["system"],
        "kernel": f"{facts['kernel']} ({facts['architecture']})",
        "cpu_model": facts["cpu_model"],
        "sockets": facts["sockets"],
        "cores": facts["cpus"]
        and f"{facts['cpus']} CPUs" + (f", online {facts['cpus_online']}" if facts["cpus_online"] else ""),
        "clock": low_high and low_high + (f", governor {governors}" if governors else ""),
        "turbo": facts["turbo"],
        "hyper_threading": facts["smt"],
        "memory_size": facts["memory_mb"] and f"{facts['memory_mb']} MB",
        "nic": _all(interfaces, lambda interface: interface["pci"] and f"PCI {interface['pci']}"),
        "driver": _all(interfaces, _driver),
        "kernel_parameters": " ".join(facts["kernel_parameters"]) or "none that affect the measurement",
        "flow_hash": _all(interfaces, lambda interface: _hash_words(interface["hash"]["fields"])),
    }
    return {name: str(value) for name, value in found.items() if value}


def with_facts(written: Mapping[str, str | None], facts: Mapping[str, Any]) -> dict[str, str | None]:
    """The facts that the testbed file states; for others what was read on the DUT, with its source."""
    read = reported_facts(facts)
    return {
        name: value if value is not None or name not in read else read[name] + READ_THERE
        for name, value in written.items()
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is another than it was, as `kernel: 6.1.0 was 5.10.0`; without what a campaign itself sets."""
    old, new = dict(_flat(before)), dict(_flat(now))
    return [
        f"{name}: {_shown(new.get(name))}, and was {_shown(old.get(name))}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def without_set_up(facts: Any) -> Any:
    """The facts without what a campaign may set from point to point."""
    if isinstance(facts, Mapping):
        return {key: without_set_up(value) for key, value in facts.items() if key not in CHANGED_BY_SET_UP}
    return facts


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        # Interrupts: their numbers change each time a driver is loaded.
        value = {
            str(item.get("name") or item.get("irq")): item.get("cpus")
            for item in value
            if isinstance(item, Mapping)
        }
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in CHANGED_BY_SET_UP:
                yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _shown(value: Any) -> str:
    text = (
        "unknown" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)
    )
    return (text if len(text) <= 80 else f"{text[:77]}...") or "nothing"


def _sysctls(interfaces: Iterable[str]) -> list[str]:
    return [*_SYSCTLS, *(name.format(interface) for interface in interfaces for name in _OF_INTERFACE)]


def _clock_mhz(parts: Mapping[str, str], cpuinfo: str) -> list[int] | None:
    """Lowest and highest that the first CPU is allowed; where nothing governs it, what it has."""
    limits = [number_in(_text(parts, name)) for name in ("clock_min", "clock_max")]
    if None not in limits:
        return [limit // 1000 for limit in limits if limit is not None]
    has = re.search(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)
    return [round(float(has[1]))] * 2 if has else None


def _driver(interface: Mapping[str, Any]) -> str | None:
    firmware = f", firmware {interface['firmware']}" if interface["firmware"] else ""
    return (
        interface["driver"]
        and f"{interface['driver']} {interface['driver_version'] or ''}".rstrip() + firmware
    )


def _hash_words(fields: Mapping[str, str]) -> str | None:
    """`type 1 (udp4 sd, udp6 sd)`: what both say, if it is one of the draft's."""
    if not fields:
        return None
    kinds = {"sd": "type 1", "sdfn": "type 2"}
    each = {kinds.get(word) for word in fields.values()}
    said = ", ".join(f"{protocol} {word}" for protocol, word in fields.items())
    return f"{each.pop()} ({said})" if len(each) == 1 and None not in each else said


def _all(
    interfaces: Mapping[str, Mapping[str, Any]], word: Callable[[Mapping[str, Any]], str | None]
) -> str | None:
    """What is so of all of them, or of each by its place."""
    words = {place: word(interface) for place, interface in interfaces.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{place} {each or 'unknown'}" for place, each in words.items())


def _text(parts: Mapping[str, str], name: str) -> str | None:
    return parts.get(name, "").strip() or None


VERSION = 1
MOST_KEPT = 100
"""DUTs. The oldest are forgotten."""
MOST_SHOWN = 8


def changes_since_last(destination: str, interfaces: Iterable[str], facts: Mapping[str, Any]) -> str | None:
    """What is another than it was at the last run on this DUT, in a sentence; None if nothing is, or it was
    never seen.

    The facts are kept for the next time. Where nothing can be written, nothing is compared the next time.
    """
    key = " ".join([destination, *interfaces])
    kept = _read()
    before = kept.pop(key, None)
    entries = {key: {"read_at": datetime.now(UTC).isoformat(timespec="seconds"), "facts": facts}, **kept}
    with contextlib.suppress(OSError):
        replace_state(
            state_file("duts.json"), {"version": VERSION, "duts": dict(list(entries.items())[:MOST_KEPT])}
        )
    if before is None:
        return None
    found = differences(before["facts"], facts)
    if not found:
        return None
    more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return (
        f"The DUT is not as it was during the last run on it ({before['read_at'][:16]}):"
        f" {'; '.join(found[:MOST_SHOWN])}{more}."
    )


def _read() -> dict[str, dict[str, Any]]:
    duts = read_state(state_file("duts.json"), version=VERSION, key="duts")
    return {key: entry for key, entry in duts.items() if _is_entry(entry)} if isinstance(duts, dict) else {}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("facts"), dict)
        and isinstance(entry.get("read_at"), str)
    )
