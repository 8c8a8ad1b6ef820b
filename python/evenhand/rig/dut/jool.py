# SPDX-License-Identifier: Apache-2.0
"""Jool on a Linux DUT, which translates in the kernel: how it is configured, without state (`jool_siit`, RFC
7915) and with it (`jool`, RFC 6146), and what it is asked.

    left -- routing -- Jool, before the kernel routes what it has made -- right

It keeps connections in tables of its own, not in the kernel's.
"""

from __future__ import annotations

import ipaddress

from evenhand.plan import HostRange
from evenhand.plan.nat import Nat
from evenhand.plan.translation import Translation

JOOL_INSTANCE = "evenhand"
JOOL_MODULES = ("jool", "jool_siit")
JOOL_PACKAGES = ("jool-dkms", "jool-tools")
JOOL_INSTALL = f"apt-get install linux-headers-$(uname -r) {' '.join(JOOL_PACKAGES)}"
MOST_POOL_ADDRESSES = 32
"""Most addresses of a pool, with state. For each new connection Jool copies the list of them all, so it does
not suit thousands."""
SESSIONS = "JSTAT_SESSIONS"
"""Its counter of connections that are there now."""
_SCRIPT = "/run/evenhand-jool"
"""Script of the instance with state, which is made anew when its table is emptied."""
_NAT64 = f"jool --instance {JOOL_INSTANCE}"
_IS_NAT64 = f"{_NAT64} stats display > /dev/null 2>&1"


def start_jool(translation: Translation) -> tuple[str, ...]:
    """Commands that load the module and make an instance, anew if there is one."""
    lines = [
        "modprobe jool_siit",
        f"jool_siit instance remove {JOOL_INSTANCE} > /dev/null 2>&1 || true",
        f"jool_siit instance add {JOOL_INSTANCE} --netfilter --pool6 {translation.prefix}",
    ]
    if translation.needs_mapping:
        lines.append(
            f"jool_siit --instance {JOOL_INSTANCE} eamt add"
            f" {translation.ipv6_hosts_as_ipv4} {translation.ipv6_hosts}"
        )
    return (*lines, f"jool_siit --instance {JOOL_INSTANCE} eamt display")


def stop_jool() -> tuple[str, ...]:
    """The module stays: without an instance it does nothing."""
    return (f"jool_siit instance remove {JOOL_INSTANCE}",)


def start_jool_nat64(nat: Nat, pool: HostRange, timeout_s: int) -> tuple[str, ...]:
    """The same with state, and how long a connection is remembered.

    Args:
        pool: The addresses that the other side expects of the hosts.
    """
    assert nat.prefix is not None
    hours, rest = divmod(timeout_s, 3600)
    made = (
        f"jool instance add {JOOL_INSTANCE} --netfilter --pool6 {nat.prefix}",
        # Without --force it refuses ports that the kernel might give to a program of the DUT.
        *(f"{_NAT64} pool4 add --udp {network} 1-65535 --force" for network in pool_of(pool)),
        f"{_NAT64} global update udp-timeout {hours}:{rest // 60:02}:{rest % 60:02}",
    )
    return (
        "modprobe jool",
        f"jool instance remove {JOOL_INSTANCE} > /dev/null 2>&1 || true",
        "\n".join((f"cat > {_SCRIPT} <<'END'", *made, "END")),
        f"sh -e {_SCRIPT}",
        f"{_NAT64} pool4 display",
        f"{_NAT64} global display",
    )


def stop_jool_nat64() -> tuple[str, ...]:
    """Its connections go with it."""
    return (f"jool instance remove {JOOL_INSTANCE}", f"rm -f {_SCRIPT}")


def pool_of(host_range: HostRange) -> list[ipaddress.IPv4Network]:
    """The first of these addresses, as few networks."""
    first = ipaddress.IPv4Address(int(host_range.first_address))
    last = first + min(host_range.count, MOST_POOL_ADDRESSES) - 1
    return list(ipaddress.summarize_address_range(first, last))


def or_of_jool(command: str, of_jool: str) -> str:
    """A command of `sh` that runs the second one where Jool keeps the connections, else the first."""
    return f"if {_IS_NAT64}; then {of_jool}; else {command}; fi"


def empty_jool() -> str:
    """See `nat.empty_command`: Jool can forget all connections only with its instance. What is measured is
    that; making the instance anew comes after it."""
    count = f"{jool_counters_command('jool')} | sed -n 's/^{SESSIONS},//p'"
    return (
        f"{count} && began=$(date +%s%N) && jool instance remove {JOOL_INSTANCE} > /dev/null"
        f" && ended=$(date +%s%N) && sh -e {_SCRIPT} > /dev/null && echo $((ended - began))"
    )


def jool_timeout() -> str:
    """See `nat.timeout_command`; Jool writes H:MM:SS."""
    return (
        f"{_NAT64} global display --csv --no-headers | awk -F '[,:]' '$1 == \"udp-timeout\""
        " { print $2 * 3600 + $3 * 60 + $4 }'"
    )


def jool_counters_command(program: str) -> str:
    """A command that prints what an instance of `jool` or `jool_siit` counts: a name and a number in each
    line. Nothing where none is."""
    return f"{program} --instance {JOOL_INSTANCE} stats display --all --csv --no-headers 2>/dev/null"


def read_jool_counters(text: str) -> dict[str, int]:
    """What it has printed."""
    rows = (line.split(",") for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
