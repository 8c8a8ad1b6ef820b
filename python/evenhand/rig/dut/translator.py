# SPDX-License-Identifier: Apache-2.0
"""What a stateless translator has to be configured for, and how TAYGA is configured on Linux; for Jool see
jool.py. The Linux lab and the set-up of a DUT both take it from here."""

from __future__ import annotations

from typing import Literal

from evenhand.plan import AddressPlan, Network
from evenhand.plan.translation import Translation

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
