# SPDX-License-Identifier: Apache-2.0
"""A SONiC switch: config and show, for its shell. The ASIC forwards; Linux' tables are copied to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.kept import END, begin_here
from evenhand.dut.linux import FUNCTIONS, LINUX_WORDS, linux_parts
from evenhand.dut.parts import notes_on_hash, shows_policing
from evenhand.dut.script import OperatingSystem, Step


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
)
