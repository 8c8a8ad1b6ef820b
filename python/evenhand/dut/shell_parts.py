# SPDX-License-Identifier: Apache-2.0
"""Steps of a set-up for a shell: the same for all systems that have one, in commands of each.

Interfaces, addresses and routes are noted before they are set, and read back after it; an undo leaves what
another set-up uses, and what was there before the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.kept import (
    KEPT,
    forget_uses,
    intended,
    keep_settings,
    leave,
    note_new_uses,
    others_use,
    read_back,
    restore_settings,
)
from evenhand.dut.script import FORWARDING_NOTE, Step, interface_purpose, route_purpose
from evenhand.plan import Interface, IpVersion, Network, plan_file_name


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
