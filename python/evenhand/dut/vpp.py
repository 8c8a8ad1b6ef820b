# SPDX-License-Identifier: Apache-2.0
"""A VPP DUT: vppctl, for a shell on the host that VPP runs on. VPP forwards as soon as its interfaces are
up.

`vppctl` succeeds whatever VPP answers, and would read the rest of the script. A command that sets something
answers nothing if it was taken, so an answer ends the script; and what was set is read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.many_routes_scripts import vpp_many
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.parts import Parts, each, shows_policing
from evenhand.dut.script import OperatingSystem, Step, neighbor_purpose
from evenhand.dut.shell_parts import END, ShellWords, interface_step, kept_in, previous_step, routes_step

_DEFAULT_LIMIT = 50_000
"""Neighbours of one IP version that VPP keeps unless configured otherwise."""
_SESSIONS = 1 << 20
"""Connections of each thread; 64,512 unless configured otherwise."""
_FUNCTIONS = (
    'vpp() { said=$(vppctl "$@" < /dev/null 2>&1) || said="$said failed";'
    ' test -z "$said" || { echo "vppctl $*: $said" >&2; return 1; }; }',
    # Before 19.08 without the word L3.
    "addresses() { vppctl show interface address < /dev/null |"
    ' awk \'/^[^ ]/ { name = $1 } $1 == "L3" { print $2, name }'
    " NF == 1 && /^ +[0-9a-f][0-9a-f.:]*[/][0-9]+$/ { print $1, name }'; }",
    # A network with one way is one bucket: "[0] [@5]: ipv4 via 10.0.0.2 NAME: mtu:9000", or "arp-ipv4: via"
    # until the neighbour is known. What is looked up once more has further buckets below.
    "fib() { vppctl show $1 fib < /dev/null | awk '/^[0-9a-f][0-9a-f.:]*[/][0-9]+/ { to = $1; one = 1 }"
    " / buckets:/ && !/ buckets:1 / { one = 0 }"
    ' one && to != "" { for (i = 1; i < NF - 1; i++) if ($i == "via") { sub(":$", "", $(i + 2));'
    ' print to, $(i + 1), $(i + 2); to = "" } }\'; }',
    "routes4() { fib ip; }",
    "routes6() { fib ip6; }",
)


def _add_routes(link: DutLink) -> Sequence[str]:
    """Anew: `add` alone adds a path to one that is there."""
    return [
        line
        for route in link.routes
        for line in (
            f"vppctl ip route del {route} < /dev/null > /dev/null",
            f"vpp ip route add {route} via {link.next_hop} {link.interface}",
        )
    ]


_WORDS = ShellWords(
    show_link="vppctl show interface {name} < /dev/null",
    is_up=" up ",
    up="vpp set interface state {name} up",
    down="vpp set interface state {name} down",
    # One that is there already is refused.
    add_address=lambda address, name: (
        f"addresses | grep -qxF '{address} {name}' || vpp set interface ip address {name} {address}"
    ),
    delete_address="vpp set interface ip address del $2 $1",
    add_routes=_add_routes,
    delete_route=lambda version: "vpp ip route del $1 via $2 $3",
)


def _limits(setup: DutSetup) -> list[Step]:
    if setup.neighbor_entries <= _DEFAULT_LIMIT:
        return []
    limit = f"vpp set ip neighbor-config ip{setup.plan.ip_version} limit"
    return [
        Step(
            part="limits",
            purpose=f"Room for {setup.neighbor_entries:,} neighbours of both sides.",
            notes=(f"{_DEFAULT_LIMIT:,} is the default, and is restored.",),
            do=(
                "vppctl show ip neighbor-config < /dev/null",
                f"{limit} {_DEFAULT_LIMIT + setup.neighbor_entries}",
            ),
            undo=(f"{limit} {_DEFAULT_LIMIT}",),
        )
    ]


def _static_neighbors(link: DutLink) -> Step:
    entries = [f"{link.interface} {address} {mac}" for address, mac in link.static_neighbors()]
    purpose = neighbor_purpose(link)
    add, delete = "set ip neighbor static", "set ip neighbor del static"
    if link.side.is_direct:
        # A command with a count would do for the hosts of an IPv4 network; but it counts the MAC up too, and
        # ours have one.
        return Step(
            part="neighbors",
            purpose=purpose,
            do=_file(link, add, entries),
            undo=_file(link, delete, entries[::-1]),
        )
    return Step(
        part="neighbors",
        purpose=purpose,
        do=tuple(f"vpp {add} {entry}" for entry in entries),
        undo=tuple(f"vpp {delete} {entry}" for entry in reversed(entries)),
    )


def _file(link: DutLink, command: str, entries: list[str]) -> tuple[str, ...]:
    """One process for all lines."""
    path = f"/run/evenhand-neighbors-{link.side.name}"
    lines = (f"{command} {entry}" for entry in entries)
    return ("\n".join((f"cat > {path} <<'END'", *lines, "END")), f"vpp exec {path}", f"rm -f {path}")


def _nat(setup: DutSetup) -> list[Step]:
    """nat44-ed chooses an address of the pool for each connection. What is there already is refused, so it
    goes first."""
    nat, (left, right) = setup.plan.nat, setup.links
    if nat is None:
        return []
    interfaces = f"set interface nat44 in {left.interface} out {right.interface}"
    pool = (
        f"nat44 add interface address {right.interface}"
        if nat.is_own_address
        else f"nat44 add address {nat.pool[1]} - {nat.pool[-2]}"
    )
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: nat44-ed, and how long a connection is remembered.",
            notes=(
                "The plugin stays enabled: somebody else may use it. The undo restores the timeouts that VPP"
                " has by default. To empty the table of connections before each experiment, disable the"
                " plugin, and run this again: vppctl nat44 plugin disable, or nat44 disable in earlier"
                " versions.",
            ),
            do=(
                # The word plugin came later; each version refuses the other's line.
                *(
                    f"vppctl nat44 {enable} sessions {_SESSIONS} < /dev/null > /dev/null"
                    for enable in ("enable", "plugin enable")
                ),
                *(
                    line
                    for command in (pool, interfaces)
                    for line in (f"vppctl {command} del < /dev/null > /dev/null", f"vpp {command}")
                ),
                f"vpp set nat timeout udp {TIMEOUT_S}",
                "vppctl show nat44 interfaces < /dev/null",
            ),
            undo=("vpp set nat timeout reset", f"vpp {interfaces} del", f"vpp {pool} del"),
        )
    ]


def _hash(setup: DutSetup) -> list[Step]:
    return [
        Step(
            part="hash",
            purpose="Hash: it cannot be set while VPP runs.",
            notes=(
                "VPP configures the NIC's hash when it starts: startup.conf, section dpdk, dev ...,"
                " next to num-rx-queues. The hash in use is shown here: state it in the report.",
            ),
            do=tuple(f"vppctl show hardware-interfaces {link.interface} < /dev/null" for link in setup.links),
        )
    ]


VPP = OperatingSystem(
    title="VPP",
    comment="#",
    run="To be saved as a file, and run with sh -e as root on the host that VPP runs on.",
    interfaces=("TenGigabitEthernet5/0/0", "TenGigabitEthernet5/0/1"),
    steps=Parts(
        first=lambda setup: [previous_step(_WORDS, setup)],
        limits=_limits,
        mtu="vppctl set interface mtu packet 9000 {name}",
        interface=lambda setup, link: interface_step(_WORDS, setup, link),
        routes=lambda setup, link: routes_step(_WORDS, setup, link),
        many=vpp_many,
        neighbors=each(_static_neighbors),
        more=_nat,
        hash=_hash,
        policing=lambda setup: shows_policing(
            "Features of the interfaces are shown here: acl-plugin with sessions, policers, NAT, flow"
            " probes.",
            do=tuple(f"vppctl show interface features {link.interface} < /dev/null" for link in setup.links),
        )(setup),
    ).steps,
    begin=kept_in("/run/evenhand-vpp", *_FUNCTIONS),
    many_routes=True,
    end=END,
    show_interface="vppctl show interface {name} < /dev/null | grep -qwF -- {name}",
    nats=("NAT44",),
)
