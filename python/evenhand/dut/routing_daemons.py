# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT whose routes a daemon makes. FRR: static routes of its configuration, by vtysh. BIRD 2: static
protocols of its configuration, in a file for each side of a plan. The rest is Linux'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.linux import FUNCTIONS, LINUX, LINUX_WORDS, linux_parts
from evenhand.dut.many_routes_scripts import bird_many, frr_many
from evenhand.dut.script import OperatingSystem, Step, route_purpose
from evenhand.dut.shell_parts import END, KEPT, begin_here, forget_uses, intended, kept_of, note_uses
from evenhand.plan import IpVersion, plan_file_name

_WORD = {4: "ip", 6: "ipv6"}
_CONFIGURE = "vtysh -c 'configure terminal' -c"
_FRR_FUNCTIONS = (
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
    begin=begin_here(*_FRR_FUNCTIONS, waits=10),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=LINUX.longest_interface,
    translates=True,
    many_routes=True,
)


_INCLUDE = 'include "evenhand-*.conf";'
_BIRD_FUNCTIONS = (
    *FUNCTIONS,
    "bird_conf=/etc/bird/bird.conf; test -e $bird_conf || bird_conf=/etc/bird.conf",
    # birdc succeeds whatever BIRD answers, and would read the rest of the script.
    "reconfigure() { said=$(birdc configure < /dev/null 2>&1) || true;"
    ' case $said in *econfigur*) ;; *) echo "birdc: $said" >&2; return 1 ;; esac; }',
)


def _routes(setup: DutSetup, link: DutLink) -> Step:
    version, side = link.side.ip_version, link.side.name
    own, name = f"{kept_of(setup)}.{side}", f"{plan_file_name(setup.plan.name)}_{side}"
    what, file = f"routes{version}", f"$(dirname $bird_conf)/evenhand-{name}.conf"
    protocol = (
        f"protocol static evenhand_{name} {{",
        # Above the 200 of other static routes: of two ways to a network BIRD takes this one.
        f"  ipv{version} {{ preference 220; }};",
        *(f"  route {route} via {link.next_hop};" for route in link.routes),
        "}",
    )
    lines = [LINUX_WORDS.route(link, to) for to in link.routes]
    return Step(
        part="routes",
        purpose=route_purpose(link),
        notes=(
            "A kernel protocol of BIRD's must export them, as in Debian's own bird.conf: protocol kernel {"
            f" ipv{version} {{ export all; }}; }}",
        )
        if side == "left"
        else (),
        do=(
            note_uses(what, lines, own),
            "\n".join((f"cat > {file} <<'END'", *protocol, "END")),
            f"grep -qxF '{_INCLUDE}' $bird_conf || echo '{_INCLUDE}' >> $bird_conf",
            "reconfigure",
            intended(what, own),
        ),
        undo=(
            f"rm -f {file}",
            "ls $(dirname $bird_conf)/evenhand-*.conf > /dev/null 2>&1"
            f" || {{ grep -vxF '{_INCLUDE}' $bird_conf > $evenhand/bird; cat $evenhand/bird > $bird_conf;"
            " rm -f $evenhand/bird; }",
            "reconfigure",
            forget_uses(what, own),
        ),
    )


BIRD = OperatingSystem(
    title="BIRD on Linux",
    comment="#",
    run="For a root shell on the host that BIRD runs on, which ends at the first error, such as: ssh root@DUT"
    " sh -e. The undo removes its files next to bird.conf, and the line that includes them.",
    interfaces=LINUX.interfaces,
    steps=replace(linux_parts(), routes=_routes, many=partial(bird_many, include=_INCLUDE)).steps,
    # BIRD hands its routes to the kernel in its own time.
    begin=begin_here(*_BIRD_FUNCTIONS, waits=15),
    end=END,
    show_interface="ip link show dev {name}",
    longest_interface=LINUX.longest_interface,
    translates=True,
    many_routes=True,
)
