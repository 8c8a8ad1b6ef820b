# SPDX-License-Identifier: Apache-2.0
"""What a stateless translator has to be configured for, and how TAYGA is configured on Linux; for Jool see
jool.py. The Linux lab and the set-up of a DUT both take it from here."""

from __future__ import annotations

import ipaddress
from typing import Literal

from evenhand.plan import AddressPlan, HostRange, Network
from evenhand.plan.translation import Nat, Translation

Translator = Literal["tayga", "jool"]
INTERFACE = "evenhand-siit"
"""TAYGA's tun device."""
TAYGA_INSTALL = "systemctl mask tayga; apt-get install --no-install-recommends tayga"
"""Debian's package starts a service that sets up an interface and NAT, which no test needs."""
_OWN_ADDRESS = "192.0.2.1"
"""Address of TAYGA itself, for its ICMP errors: no host has it (RFC 5737)."""


def tayga_config(translation: Translation) -> str:
    """The configuration as tayga.conf(5) has it. IPv6 hosts behind the prefix need no mapping, and may have
    none."""
    lines = [f"tun-device {INTERFACE}", f"ipv4-addr {_OWN_ADDRESS}", f"prefix {translation.prefix}"]
    if translation.needs_mapping:
        lines.append(f"map {translation.ipv6_hosts_as_ipv4} {translation.ipv6_hosts}")
    return "\n".join(lines) + "\n"


def routes_to_translator(translation: Translation) -> tuple[Network, Network]:
    """What the kernel hands to TAYGA: the IPv6 hosts as IPv4 knows them, and everything behind the prefix
    that it has no longer route for."""
    return translation.ipv6_hosts_as_ipv4, translation.prefix


def start_tayga(config: str, *, files: str, like: str) -> tuple[str, ...]:
    """Commands of `sh` that start it, unless it runs already.

    Args:
        config: See `tayga_config`.
        files: What the paths of its files begin with.
        like: The interface of the IPv6 side, whose MTU it gets.
    """
    return (
        f"cat > {files}.conf <<'END'\n{config}END",
        f"ip link show dev {INTERFACE} > /dev/null 2>&1 || tayga --config {files}.conf --mktun",
        f"ip link set dev {INTERFACE} up mtu"
        f" $(ip -o link show dev {like} | sed 's/.* mtu \\([0-9]*\\) .*/\\1/')",
        f"echo 1 > /proc/sys/net/ipv4/conf/{INTERFACE}/forwarding",
        f"{_runs(files)} > /dev/null 2>&1 || tayga --config {files}.conf --pidfile {files}.pid",
        # It writes its id there a moment after it has gone into the background.
        f"timeout 5 sh -c 'until {_runs(files)}; do sleep 0.1; done' > /dev/null 2>&1",
    )


def stop_tayga(*, files: str) -> tuple[str, ...]:
    """Commands that end it and remove what it has made; the routes to its interface go with that. Nothing is
    not an error."""
    return (
        f"pkill -F {files}.pid tayga 2> /dev/null || true",
        f"! ip link show dev {INTERFACE} > /dev/null 2>&1 || ip link del dev {INTERFACE}",
        f"rm -f {files}.conf {files}.pid",
    )


def show_tayga(*, files: str) -> str:
    """A command that prints the configuration that it runs with, or one line if something else is in its
    place; it fails if nothing is."""
    there = f"ip link show dev {INTERFACE} > /dev/null 2>&1"
    runs = f"{_runs(files)} > /dev/null 2>&1"
    is_up = f"ip link show up dev {INTERFACE} | grep -q ."
    is_other = f"{{ {there} || {runs}; }} && echo other"
    return f"if {there} && {runs} && {is_up}; then cat {files}.conf; else {is_other}; fi"


def _runs(files: str) -> str:
    """Both must fit: the number may be another process's by now."""
    return f"pgrep -F {files}.pid tayga"


def set_up_by_hand(plan: AddressPlan) -> str:
    """All that a translator or a NAT needs for this plan, as one sentence."""
    translation = plan.translation
    needed = []
    if translation is not None:
        needed.append(f"the translation prefix {translation.prefix}")
        if translation.needs_mapping:
            needed.append(
                f"the mapping {translation.ipv6_hosts_as_ipv4} = {translation.ipv6_hosts} (RFC 7757)"
            )
    if plan.nat is not None:
        needed.append(f"the hosts {plan.nat.inside} behind the pool {plan.nat.pool}")
        if plan.nat.prefix is not None:
            needed.append(f"the translation prefix {plan.nat.prefix}")
    for side in plan.sides:
        needed.append(f"on the {side.name} interface {', '.join(map(str, side.dut))}")
        if side.gateway is not None:
            needed += [f"the route to {route} by {side.gateway.ip}" for route in side.routes]
    versions = " and ".join(f"IPv{version}" for version in sorted({side.ip_version for side in plan.sides}))
    return f"Set it up by hand: {', '.join(needed)}, and forwarding of {versions}."


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
