# SPDX-License-Identifier: Apache-2.0
"""Systems whose configuration is lines as IOS has them: an interface with its addresses below it, routes, and
`no` before what is taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.parts import Parts, Steps, each, line_step, none_of
from evenhand.dut.script import Check, Step, interface_purpose, neighbor_purpose, route_purpose
from evenhand.plan import Interface, IpVersion, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class IosWords:
    """Where they differ."""

    is_dotted: bool
    """Whether an IPv4 network is written with a mask, and not with a prefix length."""
    show_interface: str
    show_routes: Callable[[IpVersion], str]
    other_route: str
    """What another path to the same network begins with, as an expression."""
    routed: Callable[[str], tuple[str, ...]]
    """Lines that make this interface one that is routed, with notes on them in `routed_notes`."""
    routed_notes: tuple[str, ...]


def ios_parts(
    words: IosWords,
    *,
    limits: Steps,
    hash_steps: Steps,
    policing: Steps,
    forwarding: Callable[[IpVersion], Step],
    more: Steps = none_of,
) -> Parts:
    return Parts(
        limits=limits,
        mtu="interface {name}, mtu 9000",
        interface=each(lambda link: _interface(words, link)),
        routes=each(lambda link: _routes(words, link)),
        neighbors=each(_static_neighbors),
        more=more,
        hash=hash_steps,
        policing=policing,
        forwarding=lambda setup: [forwarding(version) for version in setup.ip_versions],
    )


def _interface(words: IosWords, link: DutLink) -> Step:
    addresses = [_address(words, address, is_first=n == 0) for n, address in enumerate(link.addresses)]
    name = link.interface
    return Step(
        part="interfaces",
        purpose=interface_purpose(link),
        notes=words.routed_notes if link.side.name == "left" else (),
        do=(
            f"interface {name}",
            *(f" {line}" for line in (*words.routed(name), *addresses, "no shutdown")),
            "exit",
        ),
        # A primary address goes only after all secondary ones. Whether the interface was up is not known.
        undo=(f"interface {name}", *(f" no {address}" for address in reversed(addresses)), "exit"),
        checks=(Check(command=words.show_interface.format(name=name), expected=tuple(addresses)),),
    )


def _address(words: IosWords, address: Interface, *, is_first: bool) -> str:
    if address.version == 6:
        return f"ipv6 address {address}"
    written = f"{address.ip} {address.netmask}" if words.is_dotted else str(address)
    return f"ip address {written}{'' if is_first else ' secondary'}"


def _routes(words: IosWords, link: DutLink) -> Step:
    return line_step(
        "routes",
        route_purpose(link),
        [f"{_route(words, route)} {link.next_hop}" for route in link.routes],
        negate=negated,
        checks=(
            Check(
                command=words.show_routes(link.side.ip_version),
                expected=tuple(f"{route} [1/0] via {link.next_hop}" for route in link.routes),
                other=words.other_route,
                # Below "172.16.0.0/24 is subnetted" IOS leaves the length out.
                otherwise=tuple(
                    f"{route.network_address if words.is_dotted else route} [1/0] via {link.next_hop}"
                    for route in link.routes
                ),
            ),
        ),
    )


def _route(words: IosWords, route: Network) -> str:
    if not isinstance(route, IPv4Network):
        return f"ipv6 route {route}"
    return f"ip route {route.network_address} {route.netmask}" if words.is_dotted else f"ip route {route}"


def _static_neighbors(link: DutLink) -> Step:
    return line_step(
        "neighbors",
        neighbor_purpose(link),
        [
            f"arp {address} {_mac(mac)} arpa"
            if address.version == 4
            else f"ipv6 neighbor {address} {link.interface} {_mac(mac)}"
            for address, mac in link.static_neighbors()
        ],
        negate=negated,
    )


def nat_step(
    setup: DutSetup,
    *,
    rules: Iterable[str],
    of_interfaces: Iterable[tuple[str, str]],
    first: Iterable[str] = (),
) -> list[Step]:
    """A NAT44, and how long it remembers a connection.

    Args:
        rules: Lines that translate.
        of_interfaces: An interface, and its line.
        first: Commands before the lines are taken back.
    """
    assert setup.plan.nat is not None
    lines = [*rules, f"ip nat translation udp-timeout {TIMEOUT_S}"]
    named = list(of_interfaces)
    below = [line for line in lines if not line.startswith(" ")]
    return [
        Step(
            part="nat",
            purpose=f"{setup.plan.nat.title}: its own, and how long a connection is remembered.",
            notes=("To empty the table of connections before each experiment: clear ip nat translation *",),
            do=(
                *lines,
                *(word for name, line in named for word in (f"interface {name}", f" {line}", "exit")),
            ),
            undo=(
                *(word for name, line in named for word in (f"interface {name}", f" no {line}", "exit")),
                *first,
                *(negated(_named(line)) for line in reversed(below) if line != "exit"),
            ),
        )
    ]


def _named(line: str) -> str:
    """As far as a line must be said to be taken back: a pool by its name, a time without its value."""
    is_short = line.startswith(("ip nat pool ", "ip nat translation "))
    return " ".join(line.split()[:4]) if is_short else line


def negated(line: str) -> str:
    return f"no {line}"


def _mac(mac: str) -> str:
    """The MAC in three groups: 0200.0000.0001."""
    digits = mac.replace(":", "")
    return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"
