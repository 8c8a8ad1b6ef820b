# SPDX-License-Identifier: Apache-2.0
"""A Cisco IOS DUT: lines for the privileged prompt; IOS XE takes the same."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.script import (
    OperatingSystem,
    Step,
    interface_purpose,
    neighbor_purpose,
    policing_step,
    route_purpose,
)
from evenhand.plan import Interface, Network


def _steps(setup: DutSetup) -> list[Step]:
    steps = []
    if setup.plan.is_direct:
        steps.append(
            Step(
                part="limits",
                purpose=f"Neighbours: this plan needs {setup.neighbor_entries:,} entries.",
                notes=(
                    "The number of entries that such a router keeps depends on its platform: check it"
                    " before a long test (show ip arp summary, show ipv6 neighbors statistics).",
                ),
            )
        )
    steps += [_interface(link) for link in setup.links]
    steps += [_routes(link) for link in setup.links if link.routes]
    if setup.has_static_neighbors:
        steps += [_static_neighbors(link) for link in setup.links]
    if setup.hash_type is not None:
        steps.append(
            Step(
                part="hash",
                purpose="Hash: it cannot be set on this system.",
                notes=(
                    "The platform determines how frames are spread over cores or pipelines; ip cef"
                    " load-sharing only chooses among several routes. State in the report what the"
                    " platform's documents say.",
                ),
            )
        )
    steps.append(
        policing_step(
            notes=(
                "Control plane policing, storm control, ARP inspection, and the sessions of NAT or a zone"
                " based firewall (show "
                "policy-map control-plane, show storm-control, show zone-pair security).",
            )
        )
    )
    steps.append(_forwarding(setup))
    return steps


def _interface(link: DutLink) -> Step:
    addresses = [_address(address, is_first=n == 0) for n, address in enumerate(link.addresses)]
    name = link.interface
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        do=(f"interface {name}", *(f" {address}" for address in addresses), " no shutdown", "exit"),
        # A primary address goes only after all secondary ones.
        undo=(
            f"interface {name}",
            " shutdown",
            *(f" no {address}" for address in reversed(addresses)),
            "exit",
        ),
    )


def _address(address: Interface, *, is_first: bool) -> str:
    if isinstance(address, IPv4Interface):
        return f"ip address {address.ip} {address.netmask}{'' if is_first else ' secondary'}"
    return f"ipv6 address {address}"


def _routes(link: DutLink) -> Step:
    routes = [f"{_route(route)} {link.next_hop}" for route in link.routes]
    return Step(
        part="routes",
        purpose=route_purpose(link),
        do=tuple(routes),
        undo=tuple(f"no {route}" for route in reversed(routes)),
    )


def _route(route: Network) -> str:
    return (
        f"ip route {route.network_address} {route.netmask}"
        if isinstance(route, IPv4Network)
        else f"ipv6 route {route}"
    )


def _static_neighbors(link: DutLink) -> Step:
    entries = [
        f"arp {address} {_mac(mac)} arpa"
        if address.version == 4
        else f"ipv6 neighbor {address} {link.interface} {_mac(mac)}"
        for address, mac in link.static_neighbors()
    ]
    return Step(
        part="neighbors",
        purpose=neighbor_purpose(link),
        do=tuple(entries),
        undo=tuple(f"no {entry}" for entry in reversed(entries)),
    )


def _forwarding(setup: DutSetup) -> Step:
    if setup.plan.ip_version == 4:
        # On by default, and the console may be reached over it: never taken back.
        return Step(
            part="forwarding",
            purpose="Forwarding.",
            notes=("IOS has it on unless it was switched off. It stays on.",),
            do=("ip routing",),
        )
    return Step(
        part="forwarding",
        purpose="Forwarding, if IPv6 was not routed before.",
        do=("ipv6 unicast-routing",),
        undo=("no ipv6 unicast-routing",),
    )


def _mac(mac: str) -> str:
    """The MAC in three groups: 0200.0000.0001."""
    digits = mac.replace(":", "")
    return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"


CISCO_IOS = OperatingSystem(
    title="Cisco IOS",
    comment="!",
    run="For the privileged prompt (enable). It changes only the running configuration: a restart"
    " undoes it as well.",
    interfaces=("GigabitEthernet0/0/0", "GigabitEthernet0/0/1"),
    steps=_steps,
    begin=("configure terminal",),
    end=("end",),
)
