# SPDX-License-Identifier: Apache-2.0
"""A Cisco IOS DUT: lines for the privileged prompt; IOS XE takes the same."""

from __future__ import annotations

from evenhand.dut.description import DutSetup
from evenhand.dut.ios_lines import IosWords, ios_parts, nat_step
from evenhand.dut.parts import notes_on_hash, notes_on_limits, shows_policing
from evenhand.dut.script import OperatingSystem, Step
from evenhand.plan import IpVersion


def _routed(name: str) -> tuple[str, ...]:
    _, dot, number = name.partition(".")
    return (f"encapsulation dot1Q {number}",) if dot else ("no switchport",)


def _forwarding(version: IpVersion) -> Step:
    """Whoever reaches the console reaches it over one of them: never taken back."""
    return Step(
        part="forwarding",
        purpose="Forwarding.",
        notes=("It stays on: the router may have had it on before.",),
        do=("ip routing" if version == 4 else "ipv6 unicast-routing",),
    )


def _nat(setup: DutSetup) -> list[Step]:
    """Host k of the inside has address k of the pool: a network becomes another of the same length."""
    nat, (left, right) = setup.plan.nat, setup.links
    if nat is None:
        return []
    inside, list_name = nat.inside.network_address, "EVENHAND"
    rules = (
        (
            f"ip access-list standard {list_name}",
            f" permit {inside} {nat.inside.hostmask}",
            "exit",
            f"ip nat inside source list {list_name} interface {right.interface} overload",
        )
        if nat.is_own_address
        else (
            f"ip nat inside source static network {inside} {nat.pool.network_address} /{nat.pool.prefixlen}",
        )
    )
    sides = ((left.interface, "ip nat inside"), (right.interface, "ip nat outside"))
    # What is in use is not taken away, or only after a question.
    return nat_step(setup, rules=rules, of_interfaces=sides, first=("do clear ip nat translation forced",))


_WORDS = IosWords(
    is_dotted=True,
    show_interface="show running-config interface {name}",
    show_routes=lambda version: "show ip route static" if version == 4 else "show ipv6 route static",
    other_route=r"(?:\[\d+/\d+\] )?via ",
    routed=_routed,
    routed_notes=(
        "no switchport is for ports of a switch; a router refuses that line, and does not need it. A"
        " sub-interface gets the VLAN of its number: if it has another one, change the line encapsulation;"
        " its port must be up and routed already. An interface that was shut down before is not shut down by"
        " the way back.",
    ),
)

CISCO_IOS = OperatingSystem(
    title="Cisco IOS",
    comment="!",
    run="For the privileged prompt (enable). It changes only the running configuration: a restart"
    " undoes it as well. On other interfaces than before, undo the set-up on those first. Its undo removes"
    " these"
    " lines even if they were there before it.",
    interfaces=("GigabitEthernet0/0/0", "GigabitEthernet0/0/1"),
    steps=ios_parts(
        _WORDS,
        limits=notes_on_limits(
            "How many a router keeps depends on its platform: before a long test look at its limits (show"
            " sdm prefer on"
            " switches, show running-config all | include nd cache|arp entry on routers), and at what it"
            " has (show ip"
            " arp summary, show ipv6 neighbors statistics)."
        ),
        hash_steps=notes_on_hash(
            "It cannot be set on this system. The platform determines how frames are spread over cores or"
            " pipelines;"
            " ip cef load-sharing only chooses among several routes. State in the report what the"
            " platform's documents"
            " say."
        ),
        policing=shows_policing(
            "Control plane policing, storm control, ARP inspection, and the sessions of NAT or a zone"
            " based firewall (show policy-map control-plane, show storm-control, show zone-pair security)."
        ),
        forwarding=_forwarding,
        more=_nat,
    ).steps,
    begin=("configure terminal",),
    end=("end",),
    nats=("NAT44",),
)
