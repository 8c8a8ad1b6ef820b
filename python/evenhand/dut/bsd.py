# SPDX-License-Identifier: Apache-2.0
"""OpenBSD and FreeBSD DUTs, and firewalls made of FreeBSD: ifconfig, route, sysctl, arp and ndp, for sh.

What was there before is kept in files under /var/run, which both systems empty when they start: see
shell_parts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.parts import Parts, Steps, none_of, notes_on_hash, shows_policing
from evenhand.dut.pf import freebsd_first, freebsd_nat, openbsd_first, openbsd_nat, pfsense_first, pfsense_nat
from evenhand.dut.script import SHELL_NOTE, OperatingSystem, Step, neighbor_purpose
from evenhand.dut.shell_parts import (
    END,
    KEPT,
    ShellWords,
    forwarding_step,
    interface_step,
    keep_settings,
    kept_in,
    kept_of,
    note_uses,
    others_use,
    previous_step,
    read_back,
    restore_settings,
    routes_step,
)
from evenhand.plan import IpVersion

_FAMILY = {4: "inet", 6: "inet6"}
_FUNCTIONS = (
    'addresses() { ifconfig -a | awk \'/^[a-z]/ { sub(":.*", "", $1); name = $1 }'
    ' $1 ~ /^inet6?$/ { sub("%.*", "", $2); print $2, name }\'; }',
    # OpenBSD leaves the last zeros out: 198.18/16.
    'table() { netstat -rn -f $1 | awk \'$1 ~ "/" { split($1, to, "/"); n = split(to[1], part, ".");'
    ' if (to[1] !~ ":") while (n++ < 4) to[1] = to[1] ".0"; print to[1] "/" to[2], $2 }\'; }',
    *(
        f"table{version}() {{ table {family}; }}\n"
        f"routes{version}() {{ table {family} | awk '{{ n[$1]++; via[$1] = $2 }}"
        " END { for (to in n) if (n[to] == 1) print to, via[to] }'; }"
        for version, family in _FAMILY.items()
    ),
)
"""See `kept_in`: an address without its length, and a network with its next hop."""


def _add_routes(link: DutLink) -> Sequence[str]:
    """Anew: where several ways may lead to a network, `add` makes another one, and `change` nothing."""
    version, to = link.side.ip_version, " ".join(map(str, link.routes))
    family = _FAMILY[version]
    return (
        f"table{version} | while read -r to via; do case ' {to} ' in *\" $to \"*)"
        f" route -n delete -{family} $to $via ;; esac; done",
        *(f"route -n add -{family} {route} {link.next_hop}" for route in link.routes),
    )


def _give_back(version: IpVersion) -> str:
    return (
        f'grep "^$1 " {KEPT}/before.table{version} | while read -r to via; do route -n add'
        f" -{_FAMILY[version]}"
        " $to $via; done"
    )


_WORDS = ShellWords(
    show_link="ifconfig {name}",
    up="ifconfig {name} up",
    down="ifconfig {name} down",
    address=lambda address, name: f"{address.ip} {name}",
    # Without the word alias the addresses before are lost.
    add_address=lambda address, name: f"ifconfig {name} {_FAMILY[address.version]} alias {address}",
    delete_address="ifconfig $2 $(case $1 in *:*) echo inet6 ;; *) echo inet ;; esac) $1 delete",
    route=lambda link, to: f"{to} {link.next_hop}",
    add_routes=_add_routes,
    delete_route=lambda version: f"route -n delete -{_FAMILY[version]} $1 $2",
    give_back_routes=_give_back,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """Where the systems differ."""

    words: ShellWords
    read_sysctl: str
    """Prints name=value, which sysctl takes back."""
    ipv6_interface: bool
    """Whether an interface may have IPv6 switched off until it is set otherwise."""
    static_arp: str
    """What follows a static ARP entry, so that frames cannot change it."""
    hash: Steps
    policing: Steps
    limits: Steps
    notes_on_ipv6: tuple[str, ...] = ()
    before_nat: Steps = none_of
    nat: Steps = none_of


def _interface(dialect: _Dialect, setup: DutSetup, link: DutLink) -> Step:
    step = interface_step(dialect.words, setup, link)
    if not dialect.ipv6_interface or link.side.ip_version == 4:
        return step
    name, own = link.interface, f"{kept_of(setup)}.{link.side.name}"
    return replace(
        step,
        do=(f"ifconfig {name} inet6 -ifdisabled", note_uses("inet6", [name], own), *step.do),
        undo=(
            *step.undo,
            f"if ! {others_use('inet6', name, own)} && grep -q IFDISABLED {KEPT}/link.{name};"
            f" then ifconfig {name} inet6 ifdisabled; fi",
            f"rm -f {own}.uses-inet6",
        ),
    )


def _static_neighbors(dialect: _Dialect, link: DutLink) -> Step:
    program, ending = ("arp", dialect.static_arp) if link.side.ip_version == 4 else ("ndp", "")
    entries = list(link.static_neighbors())
    lines = (f"{address} {mac}{ending}" for address, mac in entries)
    return Step(
        part="neighbors",
        purpose=neighbor_purpose(link),
        do=("\n".join((f"{program} -f /dev/stdin <<'END'", *lines, "END")),),
        undo=tuple(f"{program} -d {address}" for address, _ in reversed(entries)),
    )


def _forwarding(dialect: _Dialect, setup: DutSetup) -> Step:
    names = {4: "net.inet.ip.forwarding", 6: "net.inet6.ip6.forwarding"}
    return forwarding_step(
        setup,
        [names[version] for version in setup.ip_versions],
        read=dialect.read_sysctl,
        notes=dialect.notes_on_ipv6 if 6 in setup.ip_versions else (),
    )


_THRESHOLD, _NAME = 2048, "net.inet6.ip6.neighborgcthresh"
_MOST_NEIGHBORS = 10_240
"""Kernels since 2021 take no more, and no -1, which meant no limit."""


def _openbsd_limits(setup: DutSetup) -> list[Step]:
    """ND entries above a threshold are collected while they are in use; there is no such limit for ARP."""
    needed = setup.neighbor_entries
    if needed <= _THRESHOLD or setup.plan.ip_version == 4:
        return []
    own = f"{kept_of(setup)}.limits"
    return [
        Step(
            part="limits",
            purpose=f"Room for {needed:,} neighbours of both sides.",
            notes=("The previous value is shown and kept.",),
            do=(
                *keep_settings([_NAME], own, read="sysctl"),
                f"sysctl {_NAME}={_MOST_NEIGHBORS}",
                read_back(_NAME, str(_MOST_NEIGHBORS)),
            ),
            undo=restore_settings([_NAME], own),
        )
    ]


def _openbsd_refuses(setup: DutSetup) -> None:
    if setup.neighbor_entries > _MOST_NEIGHBORS and setup.plan.ip_version == 6:
        raise RequestError(
            f"OpenBSD keeps at most {_MOST_NEIGHBORS:,} IPv6 neighbours that are in use, and this plan needs"
            f" {setup.neighbor_entries:,}",
            code="rig.too-many-neighbors",
            where="--hosts",
            next_step=f"Use {_MOST_NEIGHBORS // 2:,} hosts of each side or fewer, or a gateway plan, which"
            f" needs two"
            " neighbours.",
        )
    of_ixl = [link.interface.startswith("ixl") for link in setup.links]
    if setup.hash_type == "type2" and not all(of_ixl):
        raise _hash_refused(
            "type2", "its drivers hash addresses only, never ports, except that of X710 (ixl)"
        )
    if setup.hash_type == "type1" and any(of_ixl):
        raise _hash_refused("type1", "the driver of X710 (ixl) hashes ports, too")


def _hash_refused(hash_type: str, reason: str) -> RequestError:
    return RequestError(
        f"OpenBSD cannot set a {hash_type} hash: {reason}",
        code="rig.hash-not-settable",
        where="--hash",
        next_step="Leave it out.",
    )


_OPENBSD = _Dialect(
    words=_WORDS,
    read_sysctl="sysctl",
    ipv6_interface=False,
    static_arp=" permanent",
    limits=_openbsd_limits,
    before_nat=openbsd_first,
    nat=openbsd_nat,
    hash=notes_on_hash(
        "It cannot be set on this system. Its drivers hash addresses only, which is type 1; ixl (X710)"
        " hashes ports,"
        " too, which is type 2. The key is 16 bits, repeated; in predict it is --key openbsd."
    ),
    policing=shows_policing(
        "pf is on unless it was switched off, and passes everything with a state for each pair of"
        " addresses and ports. Pseudorandom ports create millions of states; the limit is 100,000"
        " (states, shown here), and frames above it are dropped, so that pf is measured.",
        "pfctl -d turns it off for a test without it, and pfctl -e turns it on again after the test."
        " Neither is done here: you decide whether pf is part of what you measure.",
        do=("pfctl -s info || true", "pfctl -s memory || true"),
    ),
)
_FAST_PATH = (
    "FreeBSD forwards by its fast path only if it need not send redirects: IPv6 if net.inet6.ip6.redirect"
    " is 0, and"
    " before 13.0 IPv4 if net.inet.ip.redirect is 0. They are shown here, and not changed: say in the"
    " report which"
    " path was measured."
)
_SHOW_REDIRECTS = "sysctl -e net.inet.ip.redirect net.inet6.ip6.redirect"
_FREEBSD = _Dialect(
    words=replace(
        _WORDS,
        add_address=lambda address, name: f"ifconfig {name} {_FAMILY[address.version]} {address} alias",
    ),
    read_sysctl="sysctl -e",
    ipv6_interface=True,
    static_arp="",
    limits=lambda setup: [],  # its tables grow with the memory that there is
    notes_on_ipv6=(
        "While it forwards IPv6, FreeBSD renews no default route that it has learned from another router: a"
        " DUT that is reached by one is cut off when its lifetime ends. To keep it: sysctl"
        " net.inet6.ip6.rfc6204w3=1",
    ),
    before_nat=freebsd_first,
    nat=freebsd_nat,
    hash=notes_on_hash(
        "FreeBSD leaves it to the driver of the NIC, or to net.inet.rss if the kernel was built"
        " with options RSS. Find out which fields it uses, and state them in the report."
    ),
    policing=shows_policing(
        "pf, ipfw and ipfilter are off unless rc.conf turns them on; those that are loaded are shown"
        " here (pf, ipfw, ipl). A stateful rule creates a state for each pair of addresses and"
        " ports.",
        _FAST_PATH,
        do=("kldstat || true", _SHOW_REDIRECTS),
    ),
)
_FIREWALL = replace(
    _FREEBSD,
    before_nat=none_of,
    nat=none_of,
    policing=shows_policing(
        "pf is on here, drops what no rule allows, and keeps a state for each pair of addresses and ports;"
        " the limit"
        " is shown (states). 198.18.0.0/15 is among the bogon networks, which an interface can be told to"
        " block.",
        "For a test with rules, allow both interfaces all in the web interface, without blocking bogon or"
        " private"
        " networks; without rules, pfctl -d turns pf off, NAT with it, until the rules are next loaded, and"
        " pfctl -e"
        " turns it on again. Neither is done here: say in the report which of them it was.",
        _FAST_PATH,
        do=("pfctl -s info || true", "pfctl -s memory || true", _SHOW_REDIRECTS),
    ),
)


def _system(title: str, dialect: _Dialect, folder: str, *, run: str = SHELL_NOTE) -> OperatingSystem:
    return OperatingSystem(
        title=title,
        comment="#",
        run=run,
        interfaces=("ix0", "ix1"),
        steps=Parts(
            first=lambda setup: [*dialect.before_nat(setup), previous_step(dialect.words, setup)],
            limits=dialect.limits,
            mtu="ifconfig {name} mtu 9000",
            interface=lambda setup, link: _interface(dialect, setup, link),
            routes=lambda setup, link: routes_step(dialect.words, setup, link),
            neighbors=lambda setup, link: _static_neighbors(dialect, link),
            more=dialect.nat,
            hash=dialect.hash,
            policing=dialect.policing,
            forwarding=lambda setup: [_forwarding(dialect, setup)],
        ).steps,
        begin=kept_in(f"/var/run/evenhand-dut-{folder}", *_FUNCTIONS),
        end=END,
        show_interface="ifconfig {name}",
        longest_interface=15,
    )


_JAIL = "$(ps -o jid= -p $$ | tr -dc 0-9)"
OPENBSD = replace(  # of the routing table, as of a network namespace
    _system("OpenBSD", _OPENBSD, "$(id -R)"), refuse=_openbsd_refuses, nats=("NAT44", "NAT64", "NAT66")
)
FREEBSD = replace(_system("FreeBSD", _FREEBSD, _JAIL), nats=("NAT44", "NAT66"))
_FIREWALL_RUN = (
    "For a root shell (option 8 of the console's menu) that ends at the first error: ssh root@DUT sh -e. The"
    " configuration of {} knows nothing of it: what the web interface applies to these interfaces replaces"
    " it, and a restart undoes it."
)
OPNSENSE = _system("OPNsense", _FIREWALL, _JAIL, run=_FIREWALL_RUN.format("OPNsense"))
PFSENSE = replace(
    _system(
        "pfSense",
        replace(_FIREWALL, before_nat=pfsense_first, nat=pfsense_nat),
        _JAIL,
        run=_FIREWALL_RUN.format("pfSense"),
    ),
    nats=("NAT44", "NAT66"),
)
