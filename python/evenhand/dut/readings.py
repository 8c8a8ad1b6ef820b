# SPDX-License-Identifier: Apache-2.0
"""DUT: counters of a Linux router at one moment, all read by one command. Pure functions over its output."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evenhand.base.errors import HostError
from evenhand.dut.nat import JOOL_MODULES, SESSIONS, jool_counters_command, read_jool_counters
from evenhand.dut.readings_queues import (
    FILTER,
    NO_PERL,
    Queues,
    kernel_queues_command,
    read_kernel_queues,
    read_queues,
    understood,
)

MARK = "@@evenhand"
"""Begins the line above each part of the output."""
END = "end"
"""The last part: without it the output was cut off."""
NO_SUCH_COMMAND = 127
_TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_IDLE = frozenset({"idle", "iowait", "steal"})
"""Stolen time is not the DUT's doing."""
_LINK = {
    "received_packets": ("rx", "packets"),
    "sent_packets": ("tx", "packets"),
    "receive_drops": ("rx", "dropped"),
    "receive_misses": ("rx", "missed_errors"),
    "receive_errors": ("rx", "errors"),
    "send_drops": ("tx", "dropped"),
    "send_errors": ("tx", "errors"),
}
"""Our names, and those of `ip -s -s -j link`."""
_IP_COUNTERS = {
    "forwarded_packets": ("ForwDatagrams", "OutForwDatagrams"),
    "discards": ("InDiscards", "InDiscards"),
    "send_discards": ("OutDiscards", "OutDiscards"),
    "no_routes": ("OutNoRoutes", "InNoRoutes"),
    "header_errors": ("InHdrErrors", "InHdrErrors"),
    "address_errors": ("InAddrErrors", "InAddrErrors"),
}
"""Our names, those of IPv4 in /proc/net/snmp, and those of IPv6 in /proc/net/snmp6."""
_CONNECTION_COUNTERS = ("invalid", "insert_failed", "drop", "early_drop")
"""Counters of /proc/net/stat/nf_conntrack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """Time of one CPU since it was started; seconds."""

    busy_s: float
    """Busy time with its interrupts, without what a hypervisor took."""
    softirq_s: float
    """The part of it in softirqs: where a kernel forwards, unless a thread does it (threaded NAPI,
    ksoftirqd), which counts as system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceReading:
    """One test interface. Packets are frames of any kind that were seen by it, not those of the test
    alone."""

    name: str
    counters: Mapping[str, int]
    """Counters by the names of `_LINK`; only what the DUT reports."""
    queues: Queues
    of_nic: Mapping[str, int]
    """What the NIC itself counts of losses, by the driver's own names."""
    no_queues: str | None
    """Why nothing is known of the queues: the DUT's own answer."""
    neighbors: Mapping[str, int]
    """Entries of its neighbour table, by `ipv4` and `ipv6`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All counters at one moment."""

    uptime_s: float
    cpus: Mapping[int, CpuTime]
    softnet: Mapping[int, Mapping[str, int]]
    """Counters by CPU: `processed`, `dropped` (its backlog was full), `squeezed` (work was left when its time
    was up)."""
    ip: Mapping[str, Mapping[str, int]]
    """Counters by `ipv4` and `ipv6`, then by the names of `_IP_COUNTERS`."""
    connections: Mapping[str, int] = field(default_factory=dict)
    """`entries` in its table of connections, and the names of `_CONNECTION_COUNTERS`; empty if it tracks
    none, or does not report it. For Jool with state, its own table."""
    jool: Mapping[str, int] = field(default_factory=dict)
    """What Jool counts, by its own names; empty where there is none."""
    interfaces: Mapping[str, InterfaceReading] = field(default_factory=dict)
    """Interfaces by their places."""


def reading_command(interfaces: Mapping[str, str]) -> str:
    """One command of `sh` that prints what `parse_reading` reads. Changes nothing.

    The NIC's counters come first: drivers such as ixgbe fetch those of the hardware only when they are asked
    for them.

    Args:
        interfaces: Names by their places, `left` and `right`; with several engines, `left-2` and so on, too.
    """
    lines = []
    for place, interface in interfaces.items():
        name = shlex.quote(interface)
        lines += [
            f"answer=$(ethtool -S {name} 2>&1); code=$?; echo '{MARK} queues {place}'; echo exit $code",
            f'if [ $code = 0 ]; then printf "%s\\n" "$answer" | grep -E {shlex.quote(FILTER)} | head -n 5000',
            'else printf "%s\\n" "$answer" | head -n 3; fi',
            f"echo '{MARK} kernel queues {place}'",
            kernel_queues_command(name),
            f"echo '{MARK} link {place}'; ip -s -s -j link show dev {name} 2>&1",
            f"echo '{MARK} neighbors {place}'; ip -4 neigh show dev {name} | wc -l; ip -6 neigh show dev"
            f" {name} | wc -l",
        ]
    return "\n".join(
        [
            'export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"',
            *lines,
            f"echo '{MARK} ip'; grep '^Ip:' /proc/net/snmp; grep '^Ip6' /proc/net/snmp6 2>/dev/null",
            f"echo '{MARK} connections'; cat /proc/sys/net/netfilter/nf_conntrack_count"
            " /proc/net/stat/nf_conntrack 2>/dev/null",
            *(f"echo '{MARK} {program}'; {jool_counters_command(program)}" for program in JOOL_MODULES),
            # Its CPU is in the 13th column since Linux 5.10; before that a CPU that is off had no line.
            f"echo '{MARK} softnet'; awk '{{ print $1, $2, $3, $13 }}' /proc/net/softnet_stat",
            f"echo '{MARK} cpus'; getconf CLK_TCK; grep '^cpu[0-9]' /proc/stat",
            f"echo '{MARK} uptime'; cat /proc/uptime; echo '{MARK} {END}'",
        ]
    )


def parse_reading(text: str, interfaces: Mapping[str, str], *, where: str) -> Reading:
    """The output of `reading_command` for these.

    Raises:
        HostError: It is not that of a Linux system, or was cut off, or an interface is not there.
    """
    parts = split_parts(text)
    if END not in parts or not parts.get("cpus") or not parts.get("uptime"):
        raise HostError(
            "the DUT's counters could not be read: its answer is not that of a Linux system, or it was"
            " cut off",
            code="rig.dut-answer-not-understood",
            where=where,
            next_step="Log in there, and check whether cat /proc/stat and ip -s link work.",
        )
    with understood("its counters", where=where):
        return _reading(parts, interfaces, where=where)


def _reading(parts: Mapping[str, str], interfaces: Mapping[str, str], *, where: str) -> Reading:
    jool = {program: read_jool_counters(parts.get(program, "")) for program in JOOL_MODULES}
    of_jool = jool["jool"]
    return Reading(
        uptime_s=float(parts["uptime"].split()[0]),
        cpus=_read_cpus(parts["cpus"]),
        softnet=_read_softnet(parts.get("softnet", "")),
        ip=_read_ip(parts.get("ip", "")),
        connections={"entries": of_jool[SESSIONS]}
        if SESSIONS in of_jool
        else _read_connections(parts.get("connections", "")),
        jool=of_jool or jool["jool_siit"],
        interfaces={
            place: _read_interface(name, place, parts, where=where) for place, name in interfaces.items()
        },
    )


def split_parts(text: str) -> dict[str, str]:
    """What is below each mark, by the words after it."""
    parts: dict[str, list[str]] = {}
    below: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"{MARK} "):
            below = parts.setdefault(line.removeprefix(f"{MARK} ").strip(), [])
        else:
            below.append(line)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def split_exit(part: str) -> tuple[int, str]:
    """A part that begins with `exit N`: the code, and the answer below it."""
    first, _, rest = part.partition("\n")
    found = re.fullmatch(r"exit ([0-9]+)", first)
    return (int(found[1]), rest) if found else (NO_SUCH_COMMAND, part)


def words_of_answer(code: int, answer: str) -> str:
    """What a program said when it refused, in a line; never empty."""
    if code == NO_SUCH_COMMAND:
        return "ethtool is not installed on the DUT"
    said = " ".join(line.strip() for line in answer.splitlines() if line.strip())
    return said[:200] or f"exit code {code}"


def _read_cpus(part: str) -> dict[int, CpuTime]:
    per_second, *lines = part.split("\n")
    ticks_per_second = int(per_second)
    cpus = {}
    for line in lines:
        name, *values = line.split()
        ticks = dict(zip(_TICKS, map(int, values), strict=False))
        busy = sum(count for kind, count in ticks.items() if kind not in _IDLE)
        cpus[int(name.removeprefix("cpu"))] = CpuTime(
            busy_s=busy / ticks_per_second, softirq_s=ticks.get("softirq", 0) / ticks_per_second
        )
    return cpus


def _read_softnet(part: str) -> dict[int, dict[str, int]]:
    found = {}
    for row, line in enumerate(part.split("\n")):
        words = line.split()
        if len(words) >= 3:
            cpu = int(words[3], 16) if len(words) > 3 else row
            found[cpu] = {
                key: int(word, 16)
                for key, word in zip(("processed", "dropped", "squeezed"), words, strict=False)
            }
    return found


def _read_ip(part: str) -> dict[str, dict[str, int]]:
    lines = [line.split() for line in part.split("\n")]
    heads = [words[1:] for words in lines if words[:1] == ["Ip:"]]
    v4 = dict(zip(*heads, strict=False)) if len(heads) == 2 else {}
    v6 = {
        words[0].removeprefix("Ip6"): words[1]
        for words in lines
        if len(words) == 2 and words[0].startswith("Ip6")
    }
    return {
        version: {
            ours: int(known[names[column]])
            for ours, names in _IP_COUNTERS.items()
            if known.get(names[column], "").isdecimal()
        }
        for column, (version, known) in enumerate((("ipv4", v4), ("ipv6", v6)))
    }


def _read_connections(part: str) -> dict[str, int]:
    """The number of entries, and below it a table with a row for each CPU; either may be missing."""
    first, _, table = part.partition("\n")
    if not first.isdecimal():
        return {}
    names, *rows = [line.split() for line in table.split("\n")]
    per_cpu = [dict(zip(names, row, strict=False)) for row in rows if row]
    counters = {
        name: sum(int(row[name], 16) for row in per_cpu)
        for name in _CONNECTION_COUNTERS
        if per_cpu and name in names
    }
    return {"entries": int(first), **counters}


def _read_interface(name: str, place: str, parts: Mapping[str, str], *, where: str) -> InterfaceReading:
    link = parts.get(f"link {place}", "")
    try:
        statistics = json.loads(link)[0]["stats64"]
    except (ValueError, LookupError, TypeError):
        raise HostError(
            f"the DUT does not report its interface {name!r}: {words_of_answer(1, link)}",
            code="rig.dut-interface-missing",
            where=where,
            next_step="Name its interfaces in the testbed file (dut.left, dut.right) as `ip link` shows them"
            " on the DUT.",
        ) from None
    code, answer = split_exit(parts.get(f"queues {place}", ""))
    queues, of_nic = read_queues(answer) if code == 0 else ({}, {})
    of_kernel = parts.get(f"kernel queues {place}", "")
    # A driver counts a packet in one of the two places, or the same in both.
    for number, counters in read_kernel_queues(of_kernel).items():
        own = queues.get(number, {})
        queues[number] = {name: max(counters.get(name, 0), own.get(name, 0)) for name in {**counters, **own}}
    why = (
        words_of_answer(code, answer)
        if code
        else "its driver has no counters per queue that are known to Evenhand"
    )
    if of_kernel == NO_PERL:
        why += ", and perl is not installed, which could ask the kernel for its own"
    return InterfaceReading(
        name=name,
        counters=dict(_counters(statistics)),
        queues=dict(sorted(queues.items())),
        of_nic=of_nic,
        no_queues=None if queues else why,
        neighbors=dict(
            zip(("ipv4", "ipv6"), map(int, parts.get(f"neighbors {place}", "").split()), strict=False)
        ),
    )


def _counters(statistics: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, int]]:
    for ours, (way, theirs) in _LINK.items():
        value = statistics.get(way, {}).get(theirs)
        if isinstance(value, int):
            yield ours, value
