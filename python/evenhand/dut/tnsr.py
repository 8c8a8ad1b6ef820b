# SPDX-License-Identifier: Apache-2.0
"""A TNSR DUT: lines of its configuration mode. It manages VPP, whose own commands it would undo."""

from __future__ import annotations

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.ios_lines import negated
from evenhand.dut.parts import Parts, each, line_step, notes_on_hash, shows_policing
from evenhand.dut.script import (
    Check,
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    route_purpose,
)

_DEFAULT_LIMIT = 50_000
"""Neighbours of one IP version that VPP keeps unless configured otherwise."""


def _limits(setup: DutSetup) -> list[Step]:
    needed, version = setup.neighbor_entries, setup.plan.ip_version
    if needed <= _DEFAULT_LIMIT:
        return []
    return [
        line_step(
            "limits",
            f"Room for {needed:,} neighbours of both sides.",
            [f"neighbor cache-options ipv{version} max-number {_DEFAULT_LIMIT + needed}"],
            negate=lambda line: f"no {line.rpartition(' ')[0]}",
            notes=(f"{_DEFAULT_LIMIT:,} is the default, and is restored.",),
        )
    ]


def _interface(link: DutLink) -> Step:
    word = "ip" if link.side.ip_version == 4 else "ipv6"
    lines = [f"{word} address {address}" for address in link.addresses]
    begin = f"interface {link.interface}"
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(begin, *(f" {line}" for line in lines), " enable", "exit"),
        undo=(begin, *(f" no {line}" for line in reversed(lines)), "exit"),
        checks=(
            Check(
                command=f"show interface {link.interface} ipv{link.side.ip_version}",
                expected=tuple(map(str, link.addresses)),
            ),
        ),
    )


def _routes(link: DutLink) -> Step:
    """A next hop has a number, so a second set-up replaces the first's."""
    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=(
            "route table default",
            *(
                line
                for route in link.routes
                for line in (f" route {route}", f"  next-hop 0 via {link.next_hop} {link.interface}", " exit")
            ),
            "exit",
        ),
        undo=("route table default", *(f" no route {route}" for route in reversed(link.routes)), "exit"),
        checks=(
            Check(
                command="show route table default",
                expected=tuple(f"{route} via {link.next_hop}" for route in link.routes),
            ),
        ),
    )


def _static_neighbors(link: DutLink) -> Step:
    return line_step(
        "neighbors",
        neighbor_purpose(link),
        [f"neighbor {link.interface} {address} {mac}" for address, mac in link.static_neighbors()],
        negate=negated,
    )


TNSR = OperatingSystem(
    title="TNSR",
    comment="#",
    run="For the prompt of its CLI. Leave out the comments if it refuses them. What is said in a context is"
    " committed from the candidate to the running database when it is left (exit); if that is refused, TNSR"
    " says so, and throws away what was in the candidate. It is not saved (configuration copy running"
    " startup), so a restart undoes it as well. On other interfaces than before, undo the set-up on those"
    " first. Its undo removes these lines even if they were there before it.",
    interfaces=("TenGigabitEthernet5/0/0", "TenGigabitEthernet5/0/1"),
    steps=Parts(
        limits=_limits,
        mtu="interface {name}, mtu 9000",
        interface=each(_interface),
        routes=each(_routes),
        neighbors=each(_static_neighbors),
        hash=notes_on_hash(
            "The data plane configures it when it starts: dataplane dpdk dev ID network num-rx-queues sets"
            " the"
            " queues, and show dataplane cpu threads the cores. State in the report what was configured."
        ),
        policing=shows_policing(
            "ACLs of the interfaces (show acl, show interface NAME access-list), NAT (show nat config), and"
            " policers."
        ),
    ).steps,
    begin=("configure",),
    end=("exit",),
)
