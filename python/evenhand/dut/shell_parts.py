# SPDX-License-Identifier: Apache-2.0
"""Steps of a set-up for a shell: the same for all systems that have one, in commands of each.

Interfaces, addresses and routes are noted before they are set, and read back after it; an undo leaves what
another set-up uses, and what was there before the first. For this, scripts keep on the DUT what was there
before the first set-up, and what each set-up uses, so that they are undone in any order and nothing of
anybody else's is taken away.

The files are in a folder that the system empties when it starts, as the settings are gone then.

    before.addresses, before.routes4 ...    what was there before the first set-up
    link.NAME                               the interface before
    PLAN.SIDE.uses-addresses ...            what a set-up uses, a line for each
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.script import FORWARDING_NOTE, Step, interface_purpose, route_purpose
from evenhand.plan import Interface, IpVersion, Network, plan_file_name

KEPT = "$evenhand"
"""The folder, as the shell knows it after the first commands."""
_FOLDER = "/run/evenhand-dut-$(readlink /proc/self/ns/net | tr -dc 0-9)"
KEPT_HERE = f"export evenhand={_FOLDER}"
"""The folder of a Linux network namespace."""

_FUNCTIONS = (
    'used() { grep -lsxF -- "$2" $evenhand/*.uses-$1 | grep -qvFx "$3.uses-$1"; }',
    'was() { grep -qsxF -- "$2" $evenhand/before.$1; }',
    "keep() { test -e $evenhand/before.$1 || $1 > $evenhand/before.$1; }",
    # What this plan used before and does not any more, as after a set-up on other interfaces.
    "gone() { test ! -e $2.uses-$1 || grep -vxF -f $2.new $2.uses-$1 | while read -r line; do used $1"
    ' "$line" $2'
    ' || was $1 "$line" || echo "$line"; done; mv $2.new $2.uses-$1; }',
    "same() { $1 > $evenhand/now; ! grep -vxF -f $evenhand/now $2.uses-$1 > $evenhand/not; }",
    "intended() { tries=$waits; until same $1 $2; do tries=$((tries - 1)); if [ $tries -lt 1 ]; then sed"
    ' "s/^/NOT as'
    ' intended, $1: /" $evenhand/not >&2; wrong=yes; break; fi; sleep 1; done; rm -f $evenhand/now'
    " $evenhand/not; }",
)
_WAIT = (
    # A script goes on after the command that sent it was killed: what it has not done yet would come after
    # the undo, and stay.
    "runs() { test -e $evenhand/pid && ! grep -qx $$ $evenhand/pid"
    " && kill -0 $(cat $evenhand/pid) 2> /dev/null; }",
    "tries=10; while runs && test $tries -gt 0; do sleep 1; tries=$((tries - 1)); done",
    "echo $$ > $evenhand/pid",
)
"""Commands that wait for the script before, for at most 10 s."""
END = (
    "rm -f $evenhand/pid",
    "ls $evenhand/*.uses-* > /dev/null 2>&1 || rm -f $evenhand/before.*",
    "rmdir $evenhand 2> /dev/null || true",
    'test -z "$wrong"',
)
"""Commands after all others. The script fails if what was set is not so."""


def kept_in(folder: str, *functions: str, waits: int = 1) -> tuple[str, ...]:
    """Commands before all others: they make that folder, and the functions of the shell that others call.

    Args:
        functions: Functions of the system's own: `addresses`, `routes4`, `routes6` print what is there.
        waits: How often it is looked whether all is as intended, a second apart: some systems only note a
            command, and carry it out later.
    """
    return (
        f"export evenhand={folder}",
        "mkdir -p $evenhand",
        *_WAIT,
        f"wrong= waits={waits}",
        *_FUNCTIONS,
        *functions,
    )


def begin_here(*functions: str, waits: int = 1) -> tuple[str, ...]:
    """The same in the folder of this Linux network namespace."""
    return kept_in(_FOLDER, *functions, waits=waits)


def others_use(what: str, used: str, own: str) -> str:
    """A test of the shell: whether another set-up uses this too."""
    return f"used {what} '{used}' {own}"


def leave(what: str, used: str, own: str) -> str:
    """A test of the shell: whether another set-up uses this too, or it was there before the first."""
    return f"{others_use(what, used, own)} || was {what} '{used}'"


def note_uses(what: str, used: Iterable[str], own: str) -> str:
    """Write down what this set-up uses, for the others' `others_use`."""
    return f"printf '%s\\n' {' '.join(map(shlex.quote, used))} > {own}.uses-{what}"


def note_new_uses(what: str, used: Iterable[str], own: str, *, take_away: str) -> tuple[str, ...]:
    """The same, and take away what the same plan used before.

    Args:
        take_away: Commands that do so for the line in `$line`, and for its words in `$1` and on.
    """
    return (
        f"printf '%s\\n' {' '.join(map(shlex.quote, used))} > {own}.new",
        f"gone {what} {own} | while read -r line; do set -- $line; {{ {take_away}; }} || true; done",
    )


def intended(what: str, own: str) -> str:
    """Look whether all that this set-up uses is there."""
    return f"intended {what} {own}"


def forget_uses(what: str, own: str) -> str:
    return f"rm -f {own}.uses-{what}"


def keep_settings(names: Iterable[str], own: str, *, read: str) -> tuple[str, ...]:
    """Keep what they were before the first set-up, and that this one uses them; and show it.

    Args:
        read: A command that prints `name=value`, or the same with blanks, of the name behind it.
    """
    names = list(names)
    return (
        *(f"grep -qs '^{name} *=' {KEPT}/sysctls || {read} {name} >> {KEPT}/sysctls" for name in names),
        note_uses("sysctls", names, own),
        f"cat {KEPT}/sysctls",
    )


def restore_settings(names: Iterable[str], own: str) -> tuple[str, ...]:
    """Restore those that no other set-up uses."""
    return (
        *(
            f"{others_use('sysctls', name, own)}"
            f" || sysctl \"$(grep '^{name} *=' {KEPT}/sysctls | sed 's/ *= */=/')\""
            for name in names
        ),
        forget_uses("sysctls", own),
        f"ls {KEPT}/*.uses-sysctls > /dev/null 2>&1 || rm -f {KEPT}/sysctls",
    )


def read_back(setting: str, wanted: str, *, read: str = "sysctl -n") -> str:
    """A command that says so if the setting has another value: `sysctl` succeeds when it is refused."""
    return (
        f'test "$({read} {setting})" = {wanted}'
        f" || {{ echo 'NOT as intended, {setting}: it should be {wanted}' >&2; wrong=yes; }}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellWords:
    """Commands of one system. Those in braces are given names and addresses."""

    show_link: str = "ip -o link show dev {name}"
    is_up: str = "[<,]UP[,>]"
    """What `show_link` prints of an interface that is up, as an expression of grep."""
    up: str = "ip link set dev {name} up"
    down: str = "ip link set dev {name} down"
    address: Callable[[Interface, str], str] = lambda address, name: f"{address} {name}"
    """The address as the function `addresses` of the system prints it."""
    add_address: Callable[[Interface, str], str]
    delete_address: str
    """With `$1` and `$2` for the words of the same line."""
    add_routes: Callable[[DutLink], Sequence[str]]
    """Each replaces what leads there otherwise."""
    delete_route: Callable[[IpVersion], str]
    """Deletes the route of `$1` to its next hop `$2`; `$3` is the interface, where `route` has it."""
    route: Callable[[DutLink, Network], str] = lambda link, to: f"{to} {link.next_hop} {link.interface}"
    """The route as the functions `routes4` and `routes6` print it, which print nothing of a network that
    several ways lead to."""
    give_back_routes: Callable[[IpVersion], str] | None = None
    """Brings back what led before the first set-up to the network in `$1`."""


def kept_of(setup: DutSetup) -> str:
    """What the paths of this set-up's files begin with."""
    return f"{KEPT}/{plan_file_name(setup.plan.name)}"


def _link_file(name: str) -> str:
    """VPP has slashes in its names."""
    return f"{KEPT}/link.{name.replace('/', '_')}"


def previous_step(words: ShellWords, setup: DutSetup) -> Step:
    """Keeps what the interfaces were."""
    kept = kept_of(setup)
    names = [link.interface for link in setup.links]
    file = f"{KEPT}/link.$(echo $1 | tr / _)"
    away = f"grep -q '{words.is_up}' {file} || {words.down.format(name='$1')}; rm -f {file}"
    return Step(
        part="interfaces",
        purpose="The previous state of the interfaces, kept so that it can be restored.",
        do=(
            "keep addresses",
            *(
                f"test -s {_link_file(name)} || {words.show_link.format(name=name)} > {_link_file(name)}"
                for name in names
            ),
            *note_new_uses("links", names, kept, take_away=away),
        ),
        undo=(
            forget_uses("links", kept),
            *(f"{others_use('links', name, kept)} || rm -f {_link_file(name)}" for name in names),
        ),
    )


def interface_step(words: ShellWords, setup: DutSetup, link: DutLink, *, notes: tuple[str, ...] = ()) -> Step:
    kept, name = kept_of(setup), link.interface
    own = f"{kept}.{link.side.name}"
    lines = [words.address(address, name) for address in link.addresses]
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(
            words.up.format(name=name),
            *note_new_uses("addresses", lines, own, take_away=words.delete_address),
            *(words.add_address(address, name) for address in link.addresses),
            intended("addresses", own),
        ),
        undo=(
            *(
                f"{leave('addresses', line, own)} || {{ set -- {line}; {words.delete_address}; }}"
                for line in reversed(lines)
            ),
            forget_uses("addresses", own),
            # What is routed over a link that goes down is lost, so the last that uses it takes it down.
            f"if ! {others_use('links', name, kept)} && ! grep -q '{words.is_up}' {_link_file(name)};"
            f" then {words.down.format(name=name)}; fi",
        ),
        notes=notes,
    )


def routes_step(words: ShellWords, setup: DutSetup, link: DutLink) -> Step:
    own, version = f"{kept_of(setup)}.{link.side.name}", link.side.ip_version
    lines, what = [words.route(link, to) for to in link.routes], f"routes{version}"
    delete = words.delete_route(version)
    back = "" if words.give_back_routes is None else f"; {words.give_back_routes(version)}"
    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=(
            f"keep {what}",
            *(() if words.give_back_routes is None else (f"keep table{version}",)),
            *note_new_uses(what, lines, own, take_away=delete),
            *words.add_routes(link),
            intended(what, own),
        ),
        undo=(
            *(
                f"{leave(what, line, own)} || {{ set -- {line}; {delete}{back}; }}"
                for line in reversed(lines)
            ),
            forget_uses(what, own),
        ),
    )


def forwarding_step(
    setup: DutSetup, names: Sequence[str], *, read: str, write: str = "sysctl", notes: tuple[str, ...] = ()
) -> Step:
    """Settings of the kernel that are to be 1."""
    own = f"{kept_of(setup)}.forwarding"
    return Step(
        part="forwarding",
        purpose="Forwarding.",
        notes=(FORWARDING_NOTE, *notes),
        do=(
            *keep_settings(names, own, read=read),
            *(f"{write} {name}=1" for name in names),
            *(read_back(name, "1") for name in names),
        ),
        undo=restore_settings(names, own),
    )
