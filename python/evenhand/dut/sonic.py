# SPDX-License-Identifier: Apache-2.0
"""A SONiC switch: config and show, for its shell. The ASIC forwards; Linux' tables are copied to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.linux import FUNCTIONS, LINUX_WORDS, linux_parts
from evenhand.dut.nat import set_up_by_hand
from evenhand.dut.parts import notes_on_hash, shows_policing
from evenhand.dut.script import OperatingSystem, Step
from evenhand.dut.shell_parts import END, KEPT, begin_here, forget_uses, kept_of, note_uses, others_use


def _add_routes(link: DutLink) -> Sequence[str]:
    """`add` alone adds a next hop to a route that is there."""
    return [
        line
        for route in link.routes
        for line in (
            f"for key in 'STATIC_ROUTE|default|{route}' 'STATIC_ROUTE|{route}'; do for via in"
            " $(sonic-db-cli CONFIG_DB HGET \"$key\" nexthop | tr , ' '); do"
            f" config route del prefix {route} nexthop $via; done; done",
            f"config route add prefix {route} nexthop {link.next_hop}",
        )
    ]


_WORDS = replace(
    LINUX_WORDS,
    up="config interface startup {name}",
    down="config interface shutdown {name}",
    add_address=lambda address, name: (
        f"addresses | grep -qxF '{address} {name}' || config interface ip add {name} {address}"
    ),
    delete_address="config interface ip remove $2 $1",
    add_routes=_add_routes,
    delete_route=lambda version: "config route del prefix $1 nexthop $2",
    give_back_routes=lambda version: (
        'grep "^$1 " $evenhand/before.routes'
        f"{version} | while read -r to via dev; do config route add prefix $to nexthop $via; done"
    ),
)


def _limits(setup: DutSetup) -> list[Step]:
    """The limits of the ASIC: more than it has room for stays in Linux' table, and is forwarded slowly or not
    at all."""
    return [
        Step(
            part="limits",
            purpose=f"The ASIC needs {setup.neighbor_entries:,} neighbours and"
            f" {sum(len(link.routes) for link in setup.links):,} routes.",
            notes=(
                "Used and available entries of its tables are shown here (ipv4_neighbor, ipv6_route, ...)."
                " What does"
                " not fit in is forwarded by the switch's CPU, or not at all.",
            ),
            do=("crm show resources all",),
        )
    ]


_NAT_TIMEOUT_S = 600
"""The most that it takes; 300 unless configured otherwise."""


def _refuse(setup: DutSetup) -> None:
    """The addresses of a pool have to be those of an interface, or in its network."""
    nat = setup.plan.nat
    if nat is not None and not nat.is_own_address:
        raise RequestError(
            "SONiC takes a pool in the network of one of its interfaces, and"
            f" that of {setup.plan.title} is in none",
            code="rig.translator-needed",
            where="--os",
            next_step=f"Use nat44-masquerade. {set_up_by_hand(setup.plan)}",
        )


def _nat(setup: DutSetup) -> list[Step]:
    """The first frame of a connection goes through the kernel of the switch, which then tells the ASIC."""
    nat, right = setup.plan.nat, setup.links[1].interface
    if nat is None:
        return []
    name, own, before = "EVENHAND", f"{kept_of(setup)}.nat", f"{KEPT}/nat"
    table = "INTERFACE" if right.startswith("Ethernet") else "PORTCHANNEL_INTERFACE"
    table = "VLAN_INTERFACE" if right.startswith("Vlan") else table
    get = "sonic-db-cli CONFIG_DB HGET"
    last = others_use("nat", "feature", own)
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: its own, and how long a connection is remembered.",
            notes=(
                f"{_NAT_TIMEOUT_S} s is the most that it takes: say so in the testbed file"
                " (connection_timeout). Its"
                " table is the ASIC's, of some 40,000 entries at most. A host keeps its outside port for all"
                " destinations, so all hosts together have no more than 65,535. If config knows no nat, the"
                " container is off: config feature state nat enabled. To empty the table of connections"
                " before each"
                " experiment: sonic-clear nat translations",
            ),
            do=(
                note_uses("nat", ["feature"], own),
                f"test -e {before} || {{ echo \"mode=$({get} 'NAT_GLOBAL|Values' admin_mode)"
                f" timeout=$({get} 'NAT_GLOBAL|Values' nat_udp_timeout)"
                f" zone=$({get} '{table}|{right}' nat_zone)\" > {before}; }}",
                f"config nat add pool {name} {nat.pool[0]} 1024-65534",
                f"config nat add binding {name} {name}",
                f"config nat add interface {right} -nat_zone 1",
                f"config nat set udp-timeout {_NAT_TIMEOUT_S}",
                "config nat feature enable",
                f"test \"$({get} 'NAT_BINDINGS|{name}' nat_pool)\" = {name}"
                " || { echo 'NOT as intended: the NAT should have a binding' >&2; wrong=yes; }",
                "show nat config",
            ),
            undo=(
                f"config nat remove binding {name}",
                f"config nat remove pool {name}",
                f"{last} || {{ . {before}; config nat add interface {right} -nat_zone ${{zone:-0}};"
                " config nat set udp-timeout ${timeout:-300};"
                ' test "$mode" = enabled || config nat feature disable; }',
                f"{last} || rm -f {before}",
                forget_uses("nat", own),
            ),
        )
    ]


SONIC = OperatingSystem(
    title="SONiC",
    comment="#",
    run="For a root shell on the switch that ends at the first error, such as: ssh admin@DUT sudo sh -e."
    " Ports of a"
    " VLAN or a port channel are refused by config: take them out first. Nothing is saved (config save): a"
    " restart"
    " undoes it as well.",
    interfaces=("Ethernet0", "Ethernet4"),
    steps=replace(
        linux_parts(_WORDS),
        mtu="config interface mtu {name} 9100",
        limits=_limits,
        more=_nat,
        hash=notes_on_hash(
            "An ASIC has no cores to spread frames over. Its hash only chooses among several next hops or"
            " ports of a"
            " port channel (show switch-hash global)."
        ),
        policing=shows_policing(
            "ACLs are shown here. Control plane policing (CoPP) limits what neighbours are learned by, and"
            " storm control"
            " what has no known neighbour.",
            do=("show acl table || true",),
        ),
    ).steps,
    # config writes to a data base, from which others take it.
    begin=begin_here(*FUNCTIONS, waits=30),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=15,
    refuse=_refuse,
    nats=("NAT44",),
)
