# SPDX-License-Identifier: Apache-2.0
"""A Junos DUT: set and delete commands of its configuration mode. Junos always forwards, IPv4 and IPv6."""

from __future__ import annotations

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.script import (
    OperatingSystem,
    Part,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)


def _steps(setup: DutSetup) -> list[Step]:
    steps = []
    if setup.plan.is_direct:
        steps.append(
            Step(
                part="limits",
                purpose=f"Neighbours: this plan needs {setup.neighbor_entries:,} entries.",
                notes=(
                    "The number of entries that such a router keeps depends on its platform, and on ARP"
                    " and ND cache protection: check it before a long test (show arp no-resolve |"
                    " count, show ipv6 neighbors | count).",
                ),
            )
        )
    steps += [_interface(setup, link) for link in setup.links]
    steps += [_routes(setup, link) for link in setup.links if link.routes]
    if setup.has_static_neighbors:
        steps += [_static_neighbors(setup, link) for link in setup.links]
    if setup.hash_type is not None:
        steps.append(
            Step(
                part="hash",
                purpose="Hash: it is not changed.",
                notes=(
                    "The platform determines how frames are spread over the forwarding engine;"
                    " forwarding-options hash-key only chooses among several routes or links. State in"
                    " the report what the platform's documents say.",
                ),
            )
        )
    steps.append(
        policing_step(
            notes=(
                "DDoS protection of the control plane, the ARP policer and flow sessions of SRX (show"
                " ddos-protection protocols "
                "violations, show interfaces policers, show security flow status), and filters on the"
                " interfaces.",
            )
        )
    )
    return steps


def _interface(setup: DutSetup, link: DutLink) -> Step:
    return _set_step(
        "interfaces",
        interface_purpose(link),
        [f"{_family(setup, link)} address {address}" for address in link.addresses],
    )


def _routes(setup: DutSetup, link: DutLink) -> Step:
    table = "routing-options static" if link.side.ip_version == 4 else "routing-options rib inet6.0 static"
    return _set_step(
        "routes",
        route_purpose(link),
        [f"{table} route {route} next-hop {link.next_hop}" for route in link.routes],
        cut=" next-hop",
    )


def _static_neighbors(setup: DutSetup, link: DutLink) -> Step:
    protocol = "arp" if link.side.ip_version == 4 else "ndp"
    entries = list(link.static_neighbors())
    statements = []
    for number, (neighbor, mac) in enumerate(entries):
        # An entry is written below the interface address of its network; with the hosts on the link, network
        # n has the n-th.
        own = link.addresses[number // link.side.host_range.count if link.side.is_direct else 0]
        statements.append(f"{_family(setup, link)} address {own} {protocol} {neighbor} mac {mac}")
    return _set_step("neighbors", neighbor_purpose(link), statements, cut=" mac")


def _set_step(part: Part, purpose: str, statements: list[str], *, cut: str | None = None) -> Step:
    """Statements to set; to delete one, it is named up to `cut`, for without it the statement before would
    remain, empty."""
    named = [statement if cut is None else statement.partition(cut)[0] for statement in statements]
    return Step(
        part=part,
        purpose=purpose,
        do=tuple(f"set {statement}" for statement in statements),
        undo=tuple(f"delete {statement}" for statement in reversed(named)),
    )


def _family(setup: DutSetup, link: DutLink) -> str:
    device, _, unit = link.interface.partition(".")
    return f"interfaces {device} unit {unit or 0} family {'inet' if link.side.ip_version == 4 else 'inet6'}"


JUNOS = OperatingSystem(
    title="Junos",
    comment="#",
    run="For the operational prompt. Nothing changes before the commit at the end.",
    interfaces=("ge-0/0/0", "ge-0/0/1"),
    steps=_steps,
    begin=("configure",),
    end=("commit and-quit",),
)
