# SPDX-License-Identifier: Apache-2.0
"""An Arista EOS DUT: lines as IOS has them, in a session that is committed as a whole."""

from __future__ import annotations

from dataclasses import replace

from evenhand.dut.description import DutSetup
from evenhand.dut.ios_lines import IosWords, ios_parts, nat_step
from evenhand.dut.parts import notes_on_hash, notes_on_limits, shows_policing
from evenhand.dut.script import OperatingSystem, Step
from evenhand.plan import IpVersion


def _routed(name: str) -> tuple[str, ...]:
    _, dot, number = name.partition(".")
    return (f"encapsulation dot1q vlan {number}",) if dot else ("no switchport",)


def _forwarding(version: IpVersion) -> Step:
    return Step(
        part="forwarding",
        purpose="Forwarding.",
        notes=("It is off unless configured, and stays on: the switch may have had it on before.",),
        do=("ip routing" if version == 4 else "ipv6 unicast-routing",),
    )


def _nat(setup: DutSetup) -> list[Step]:
    """It chooses an address of the pool for each connection."""
    nat, name = setup.plan.nat, "evenhand"
    if nat is None:
        return []
    rules = (
        f"ip access-list standard {name}",
        f" permit {nat.inside}",
        "exit",
        *(
            ()
            if nat.is_own_address
            else (f"ip nat pool {name} {nat.pool[1]} {nat.pool[-2]} prefix-length {nat.pool.prefixlen}",)
        ),
    )
    by = "overload" if nat.is_own_address else f"pool {name}"
    outside = setup.links[1].interface
    steps = nat_step(
        setup, rules=rules, of_interfaces=((outside, f"ip nat source dynamic access-list {name} {by}"),)
    )
    size = (
        "Its table is the ASIC's: some thousand connections on most of them, none on some (show hardware"
        " capacity)."
    )
    return [replace(step, notes=(*step.notes, size)) for step in steps]


ARISTA_EOS = OperatingSystem(
    title="Arista EOS",
    comment="!",
    run="For the privileged prompt (enable). Nothing changes before the commit; write memory is not said,"
    " so a restart"
    " undoes it as well. On other interfaces than before, undo the set-up on those first. Its undo removes"
    " these"
    " lines even if they were there before it.",
    interfaces=("Ethernet1", "Ethernet2"),
    steps=ios_parts(
        IosWords(
            is_dotted=False,
            show_interface="show running-config interfaces {name}",
            show_routes=lambda version: "show ip route static" if version == 4 else "show ipv6 route static",
            other_route=r", \S+ via ",
            routed=_routed,
            routed_notes=(
                "A port is one of a switch until no switchport. A sub-interface gets the VLAN of its number:"
                " if it has another one, change the line encapsulation; its port must be up and routed"
                " already. An interface that was shut down before is not shut down by the way back.",
            ),
        ),
        limits=notes_on_limits(
            "How many it keeps depends on the ASIC and its profile: before a long test look at the limits"
            " (show"
            " hardware capacity), and at what it has (show arp summary, show ipv6 neighbors summary)."
        ),
        hash_steps=notes_on_hash(
            "An ASIC has no cores to spread frames over. Its hash only chooses among several routes or the"
            " ports of a"
            " port channel (show load-balance profile)."
        ),
        policing=shows_policing(
            "Control plane policing (show policy-map interface control-plane), storm control (show"
            " storm-control),"
            " access lists (show ip access-lists summary); show hardware counter drop says what was"
            " dropped, and why."
        ),
        forwarding=_forwarding,
        more=_nat,
    ).steps,
    # Without a name it is a new one: EOS does not open a session again that was committed.
    begin=("configure session",),
    end=("commit",),
    nats=("NAT44",),
)
