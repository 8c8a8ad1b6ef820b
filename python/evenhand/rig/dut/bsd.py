# SPDX-License-Identifier: Apache-2.0
"""OpenBSD and FreeBSD DUTs: ifconfig, route, sysctl, arp and ndp, for sh.

What was there before is kept in files under /var/run, which both systems empty when they start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenhand.plan import plan_file_name
from evenhand.rig.dut.description import DutLink, DutSetup
from evenhand.rig.dut.script import (
    FORWARDING_NOTE,
    SHELL_NOTE,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """Where the two differ."""

    read_sysctl: str
    """Prints name=value, which sysctl takes back."""
    add_address: str
    """Arguments of ifconfig for an address, with the word alias, without which the addresses before are
    lost."""
    ipv6_interface: bool
    """Whether an interface may have IPv6 switched off until it is set otherwise."""
    static_arp: str
    """What follows a static ARP entry, so that frames cannot change it."""
    neighbor_limits: Callable[[DutSetup, str], Step | None]
    hashing: str
    policing: Step


def _make_steps(dialect: _Dialect, setup: DutSetup) -> list[Step]:
    kept = f"/var/run/evenhand-{plan_file_name(setup.plan.name)}"
    limits = dialect.neighbor_limits(setup, kept)
    steps = [] if limits is None else [limits]
    steps += [_interface(dialect, setup, link, kept) for link in setup.links]
    steps += [_routes(setup, link) for link in setup.links if link.routes]
    if setup.has_static_neighbors:
        steps += [_static_neighbors(dialect, setup, link) for link in setup.links]
    if setup.hash_type is not None:
        steps.append(
            Step(part="hash", purpose="Hash: it cannot be set on this system.", notes=(dialect.hashing,))
        )
    steps.append(dialect.policing)
    name = "net.inet.ip.forwarding" if setup.plan.ip_version == 4 else "net.inet6.ip6.forwarding"
    steps.append(
        Step(
            part="forwarding",
            purpose="Forwarding.",
            notes=(FORWARDING_NOTE,),
            do=(
                f"test -s {kept}.forwarding || {dialect.read_sysctl} {name} > {kept}.forwarding",
                f"cat {kept}.forwarding",
                f"sysctl {name}=1",
            ),
            undo=(f"sysctl $(cat {kept}.forwarding)", f"rm -f {kept}.forwarding"),
        )
    )
    return steps


def _interface(dialect: _Dialect, setup: DutSetup, link: DutLink, kept: str) -> Step:
    name, family = link.interface, _family(link)
    file = f"{kept}.{name.replace('/', '-')}"
    needs_ipv6 = dialect.ipv6_interface and link.side.ip_version == 6
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            f"test -s {file} || ifconfig {name} > {file}",
            *((f"ifconfig {name} inet6 -ifdisabled",) if needs_ipv6 else ()),
            f"ifconfig {name} up",
            *(
                f"ifconfig {name} {family} {dialect.add_address.format(address)}"
                for address in link.addresses
            ),
        ),
        undo=(
            *(f"ifconfig {name} {family} {address.ip} delete" for address in reversed(link.addresses)),
            f"grep '^{name}:' {file} | grep -qv '[<,]UP[,>]' && ifconfig {name} down",
            *((f"grep -q IFDISABLED {file} && ifconfig {name} inet6 ifdisabled",) if needs_ipv6 else ()),
            f"rm -f {file}",
        ),
    )


def _routes(setup: DutSetup, link: DutLink) -> Step:
    family = _family(link)
    return Step(
        part="routes",
        purpose=route_purpose(link),
        # A route that is there already is not an error: it is set once more.
        do=tuple(
            f"route -n add -{family} {route} {link.next_hop} || route -n change -{family} {route}"
            f" {link.next_hop}"
            for route in link.routes
        ),
        undo=tuple(f"route -n delete -{family} {route} {link.next_hop}" for route in reversed(link.routes)),
    )


def _static_neighbors(dialect: _Dialect, setup: DutSetup, link: DutLink) -> Step:
    program, ending = ("arp", dialect.static_arp) if link.side.ip_version == 4 else ("ndp", "")
    entries = list(link.static_neighbors())
    lines = (f"{address} {mac}{ending}" for address, mac in entries)
    return Step(
        part="neighbors",
        purpose=neighbor_purpose(link),
        do=("\n".join((f"{program} -f /dev/stdin <<'END'", *lines, "END")),),
        undo=tuple(f"{program} -d {address}" for address, _ in reversed(entries)),
    )


def _openbsd_limits(setup: DutSetup, kept: str) -> Step | None:
    """ND entries above a threshold are collected while they are in use; there is no such limit for ARP."""
    threshold, name = 2048, "net.inet6.ip6.neighborgcthresh"
    if setup.plan.ip_version == 4 or setup.neighbor_entries <= threshold:
        return None
    return Step(
        part="limits",
        purpose=f"Room for {setup.neighbor_entries:,} neighbours of both sides.",
        notes=("-1 means no limit. The previous value is shown and kept.",),
        do=(
            f"test -s {kept}.limits || sysctl {name} > {kept}.limits",
            f"cat {kept}.limits",
            f"sysctl {name}=-1",
        ),
        undo=(f"sysctl $(cat {kept}.limits)", f"rm -f {kept}.limits"),
    )


def _freebsd_limits(setup: DutSetup, kept: str) -> Step | None:
    """FreeBSD's ARP and ND tables grow with the memory that there is."""
    return None


def _family(link: DutLink) -> str:
    return "inet" if link.side.ip_version == 4 else "inet6"


_OPENBSD = _Dialect(
    read_sysctl="sysctl",
    add_address="alias {}",
    ipv6_interface=False,
    static_arp=" permanent",
    neighbor_limits=_openbsd_limits,
    hashing="OpenBSD hashes addresses only, which is type 1. Its key is 16 bits, repeated; in predict it"
    " is --key openbsd.",
    policing=policing_step(
        do=("pfctl -s info || true", "pfctl -s memory || true"),
        notes=(
            "pf is on unless it was switched off, and passes everything with a state for each pair of"
            " addresses and ports. Pseudorandom ports create millions of states; the limit is 100,000"
            " (states, shown here), and frames above it are dropped, so that pf is measured.",
            "pfctl -d turns it off for a test without it, and pfctl -e turns it on again after the test."
            " Neither is done here: you decide whether pf is part of what you measure.",
        ),
    ),
)
_FREEBSD = _Dialect(
    read_sysctl="sysctl -e",
    add_address="{} alias",
    ipv6_interface=True,
    static_arp="",
    neighbor_limits=_freebsd_limits,
    hashing="FreeBSD leaves the hash to the driver of the NIC, or to net.inet.rss if the kernel was built"
    " with options RSS. Find out which fields it uses, and state them in the report.",
    policing=policing_step(
        do=("kldstat || true",),
        notes=(
            "pf, ipfw and ipfilter are off unless rc.conf turns them on; those that are loaded are shown"
            " here (pf, ipfw, ipl). A stateful rule creates a state for each pair of addresses and"
            " ports.",
        ),
    ),
)

OPENBSD = OperatingSystem(
    title="OpenBSD",
    comment="#",
    run=SHELL_NOTE,
    interfaces=("ix0", "ix1"),
    steps=lambda setup: _make_steps(_OPENBSD, setup),
    longest_interface=15,
    impossible_hashes=(("type2", "it hashes addresses only, never ports"),),
)
FREEBSD = OperatingSystem(
    title="FreeBSD",
    comment="#",
    run=SHELL_NOTE,
    interfaces=("ix0", "ix1"),
    steps=lambda setup: _make_steps(_FREEBSD, setup),
    longest_interface=15,
)
