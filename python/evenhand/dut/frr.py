# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT whose routes FRR makes: static routes of its configuration, by vtysh. The rest is Linux'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.dut.description import DutLink
from evenhand.dut.linux import FUNCTIONS, LINUX, LINUX_WORDS, linux_parts
from evenhand.dut.many_routes_scripts import frr_many
from evenhand.dut.script import OperatingSystem
from evenhand.dut.shell_parts import END, KEPT, begin_here
from evenhand.plan import IpVersion

_WORD = {4: "ip", 6: "ipv6"}
_CONFIGURE = "vtysh -c 'configure terminal' -c"
_FUNCTIONS = (
    *(function for function in FUNCTIONS if not function.startswith("table")),
    # What FRR's own configuration has: a network, its next hop, and the interface if it is named.
    "table() { vtysh -c 'show running-config' | awk -v word=$1 '$1 == word && $2 == \"route\" "
    "{ print $3, $4, $5, $6, $7 }'; }",
    *(f"table{version}() {{ table {word}; }}" for version, word in _WORD.items()),
)


def _add_routes(link: DutLink) -> Sequence[str]:
    """A route with another next hop would be another path, so those are removed first."""
    version, to = link.side.ip_version, " ".join(map(str, link.routes))
    word = _WORD[version]
    return (
        f"table{version} | while read -r to way; do case ' {to} ' in *\" $to \"*)"
        f' {_CONFIGURE} "no {word} route $to $way" ;; esac; done',
        *(f"{_CONFIGURE} '{word} route {route} {link.next_hop} {link.interface}'" for route in link.routes),
    )


def _give_back(version: IpVersion) -> str:
    return (
        f'grep "^$1 " {KEPT}/before.table{version}'
        f' | while read -r line; do {_CONFIGURE} "{_WORD[version]} route $line"; done'
    )


FRR = OperatingSystem(
    title="FRR on Linux",
    comment="#",
    run="For a root shell on the host that FRR runs on, which ends at the first error, such as: ssh root@DUT"
    " sh -e. zebra and staticd must run. FRR's file is not written: a restart of FRR undoes the routes as"
    " well.",
    interfaces=LINUX.interfaces,
    steps=replace(
        linux_parts(
            replace(
                LINUX_WORDS,
                add_routes=_add_routes,
                delete_route=lambda version: f'{_CONFIGURE} "no {_WORD[version]} route $1 $2 $3"',
                give_back_routes=_give_back,
            )
        ),
        many=frr_many,
    ).steps,
    # staticd hands a route to zebra, which hands it to the kernel: a moment later it is there.
    begin=begin_here(*_FUNCTIONS, waits=10),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=LINUX.longest_interface,
    translates=True,
    many_routes=True,
)
