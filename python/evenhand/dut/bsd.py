# SPDX-License-Identifier: Apache-2.0
"""OpenBSD and FreeBSD DUTs: ifconfig, route, sysctl, arp and ndp, for sh.

What was there before is kept in files under /var/run, which both systems empty when they start, as Linux'
set-ups keep it: see linux_kept.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.linux_state import END, KEPT, forget_uses, kept_in, note_uses, others_use, pattern_of
from evenhand.dut.script import (
    FORWARDING_NOTE,
    SHELL_NOTE,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)
from evenhand.plan import plan_file_name


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
    neighbor_limits: Callable[[_Dialect, DutSetup, str], Step | None]
    hashing: str
    policing: Step


def _make_steps(dialect: _Dialect, setup: DutSetup) -> list[Step]:
    kept = f"{KEPT}/{plan_file_name(setup.plan.name)}"
    limits = dialect.neighbor_limits(dialect, setup, kept)
    steps = [] if limits is None else [limits]
    steps.append(_previous_interfaces(setup, kept))
    steps += [_interface(dialect, link, kept) for link in setup.links]
    steps += [_routes(link, kept) for link in setup.links if link.routes]
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
            do=(*_keep_sysctl(dialect, name, kept, "forwarding"), f"sysctl {name}=1"),
            undo=_restore_sysctl(name, kept, "forwarding"),
        )
    )
    return steps


def _keep_sysctl(dialect: _Dialect, name: str, kept: str, part: str) -> tuple[str, ...]:
    """Keep what it was before the first set-up, and that this one uses it; and show it."""
    return (
        f"grep -qs '^{name}=' {KEPT}/sysctls || {dialect.read_sysctl} {name} >> {KEPT}/sysctls",
        note_uses("sysctls", [name], f"{kept}.{part}"),
        f"cat {KEPT}/sysctls",
    )


def _restore_sysctl(name: str, kept: str, part: str) -> tuple[str, ...]:
    """Restore it, unless another set-up uses it."""
    own = f"{kept}.{part}"
    return (
        f"{others_use('sysctls', name, own)} || sysctl \"$(grep '^{name}=' {KEPT}/sysctls)\"",
        forget_uses("sysctls", own),
        f"ls {KEPT}/*.uses-sysctls > /dev/null 2>&1 || rm -f {KEPT}/sysctls",
    )


def _link_file(name: str) -> str:
    """What ifconfig said of the interface before the first set-up."""
    return f"{KEPT}/link.{name}"


def _previous_interfaces(setup: DutSetup, kept: str) -> Step:
    names: Sequence[str] = [link.interface for link in setup.links]
    return Step(
        part="interfaces",
        purpose="The previous state of the interfaces, kept so that it can be restored.",
        do=(
            *(f"test -s {_link_file(name)} || ifconfig {name} > {_link_file(name)}" for name in names),
            note_uses("links", names, kept),
        ),
        undo=(
            forget_uses("links", kept),
            *(f"{others_use('links', name, kept)} || rm -f {_link_file(name)}" for name in names),
        ),
    )


def _interface(dialect: _Dialect, link: DutLink, kept: str) -> Step:
    name, family = link.interface, _family(link)
    file, own = _link_file(name), f"{kept}.{link.side.name}"
    needs_ipv6 = dialect.ipv6_interface and link.side.ip_version == 6
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            *((f"ifconfig {name} inet6 -ifdisabled", note_uses("inet6", [name], own)) if needs_ipv6 else ()),
            f"ifconfig {name} up",
            *(
                f"ifconfig {name} {family} {dialect.add_address.format(address)}"
                for address in link.addresses
            ),
            note_uses("addresses", (f"{address} {name}" for address in link.addresses), own),
        ),
        undo=(
            *(
                f"{others_use('addresses', f'{address} {name}', own)}"
                f" || ifconfig {name} {family} {address.ip} delete"
                for address in reversed(link.addresses)
            ),
            forget_uses("addresses", own),
            # The last set-up that uses the interface takes it down.
            f"if ! {others_use('links', name, kept)}"
            f" && grep '^{pattern_of(name)}:' {file} | grep -qv '[<,]UP[,>]';"
            f" then ifconfig {name} down; fi",
            *(
                (
                    f"if ! {others_use('inet6', name, own)} && grep -q IFDISABLED {file};"
                    f" then ifconfig {name} inet6 ifdisabled; fi",
                    forget_uses("inet6", own),
                )
                if needs_ipv6
                else ()
            ),
        ),
    )


def _routes(link: DutLink, kept: str) -> Step:
    family, own = _family(link), f"{kept}.{link.side.name}"
    routes = [f"{route} {link.next_hop}" for route in link.routes]
    return Step(
        part="routes",
        purpose=route_purpose(link),
        # A route that is there already is not an error: it is set once more.
        do=(
            *(f"route -n add -{family} {route} || route -n change -{family} {route}" for route in routes),
            note_uses("routes", routes, own),
        ),
        undo=(
            *(
                f"{others_use('routes', route, own)} || route -n delete -{family} {route}"
                for route in reversed(routes)
            ),
            forget_uses("routes", own),
        ),
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


def _openbsd_limits(dialect: _Dialect, setup: DutSetup, kept: str) -> Step | None:
    """ND entries above a threshold are collected while they are in use; there is no such limit for ARP."""
    threshold, name = 2048, "net.inet6.ip6.neighborgcthresh"
    if setup.plan.ip_version == 4 or setup.neighbor_entries <= threshold:
        return None
    return Step(
        part="limits",
        purpose=f"Room for {setup.neighbor_entries:,} neighbours of both sides.",
        notes=("-1 means no limit. The previous value is shown and kept.",),
        do=(*_keep_sysctl(dialect, name, kept, "limits"), f"sysctl {name}=-1"),
        undo=_restore_sysctl(name, kept, "limits"),
    )


def _freebsd_limits(dialect: _Dialect, setup: DutSetup, kept: str) -> Step | None:
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
    begin=kept_in("/var/run/evenhand-dut-$(id -R)"),  # of the routing table, as of a network namespace
    end=END,
    longest_interface=15,
    impossible_hashes=(("type2", "it hashes addresses only, never ports"),),
)
FREEBSD = OperatingSystem(
    title="FreeBSD",
    comment="#",
    run=SHELL_NOTE,
    interfaces=("ix0", "ix1"),
    steps=lambda setup: _make_steps(_FREEBSD, setup),
    begin=kept_in("/var/run/evenhand-dut-$(ps -o jid= -p $$ | tr -dc 0-9)"),  # of the jail
    end=END,
    longest_interface=15,
)
