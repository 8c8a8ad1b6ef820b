# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: the routes of a side that are too many to be set, read and noted one by one.

They go there in one process of `ip -batch`, marked with a number of the kernel's for whoever made a route. By
that mark they are counted, kept out of what else is read, and taken away in one go, also after a process that
was killed half way.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.base.errors import RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.dut.description import DutSetup
from evenhand.dut.items import Item, Move, NotTakenError
from evenhand.dut.linux_state import LinuxState
from evenhand.dut.readings_queues import quote
from evenhand.dut.shell import Answer
from evenhand.plan import Address, AddressPlan, IpVersion, Network, PrefixSet, SideName

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")


ROUTE_OCTETS: Mapping[IpVersion, int] = {4: 160, 6: 850}
"""Memory of a route in the kernel, measured with a million of each on Linux 6.18, and rounded up."""
ROUTES_PER_S = 12_500
"""What a busy computer took of either IP version, for people."""
SLOWEST_PER_S = 4_000
"""What the slowest does, for time limits."""
SAID_FROM = 100_000
"""Routes from which on time and memory are said first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyRoutes:
    """The routes of one side to one next hop."""

    side: SideName
    prefixes: PrefixSet
    next_hop: Address
    interface: str
    table: str = "main"

    @property
    def key(self) -> tuple[str, str, str]:
        """What its item and the DUT's report have in common."""
        return self.interface, str(self.prefixes.version), self.table

    @property
    def value(self) -> str:
        """As `LinuxState.many_routes` has it when all of them are there."""
        return f"{self.prefixes.count} via {self.next_hop}"

    @property
    def memory_octets(self) -> int:
        """What they take of the kernel's memory."""
        return ROUTE_OCTETS[self.prefixes.version] * self.prefixes.count

    @property
    def cost(self) -> str:
        """Memory and time, for people."""
        count, version = self.prefixes.count, self.prefixes.version
        return (
            f"{count:,} IPv{version} routes of the {self.side} side: they take about"
            f" {self.memory_octets >> 20:,} MB of the kernel's memory, and"
            f" some {max(1, round(count / ROUTES_PER_S))} s to be set"
        )


def many_routes_of(setup: DutSetup) -> list[ManyRoutes]:
    """Those of each side that has more than are listed one by one."""
    interfaces = {link.side.name: link.interface for link in setup.links}
    return many_routes_over(setup.plan, interfaces, "main" if setup.table is None else str(setup.table))


def many_routes_over(
    plan: AddressPlan, interfaces: Mapping[SideName, str], table: str = "main"
) -> list[ManyRoutes]:
    """The same of a plan alone, without the other one of a mix."""
    return [
        ManyRoutes(
            side=side.name,
            prefixes=side.prefixes,
            next_hop=side.gateway.ip,
            interface=interfaces[side.name],
            table=table,
        )
        for side in plan.sides
        if side.prefixes is not None and not side.routes and side.gateway is not None
    ]


def costs(many: Iterable[ManyRoutes]) -> list[str]:
    """What is to be said before so many routes are set."""
    return [each.cost for each in many if each.prefixes.count >= SAID_FROM]


def longest_s(items: Iterable[Item]) -> float:
    """How long the slowest DUT may take for these items' routes."""
    return sum(
        int((item.wanted or "0").split()[0]) / SLOWEST_PER_S for item in items if item.kind == "routes"
    )


def check_many_routes(many: ManyRoutes, state: LinuxState) -> None:
    """Refuse what would not fit, or would take what is someone else's.

    Raises:
        RequestError: A route or an address of the DUT is in the way.
        NotTakenError: The DUT has too little memory, or lacks a program.
    """
    where, version = f"[dut] {many.side}", many.prefixes.version
    if "awk" in state.missing_for_nat:
        raise NotTakenError(
            "the DUT has no awk, which counts its routes",
            code="rig.program-missing-on-dut",
            where="the DUT's PATH",
            next_step="Install it on the DUT: apt-get install mawk",
        )
    if many.key in state.many_routes:
        raise RequestError(
            f"the DUT already has routes with the mark of Evenhand's (protocol {PROTOCOL}) over"
            f" {many.interface}",
            code="rig.other-route-to-test-network",
            where=where,
            next_step=f"Remove them on the DUT: ip -{version} route flush table {many.table} proto"
            f" {PROTOCOL} dev {many.interface}",
        )
    for what, text in _own_addresses(state):
        prefix = _prefix_with(many.prefixes, ipaddress.ip_address(text))
        if prefix is not None:
            raise RequestError(
                f"{what} {text}, which is in {prefix} of the {many.side} side",
                code="rig.dut-address-in-test-network",
                where=where,
                next_step="Leave that prefix out, or use other addresses there.",
            )
    for route in state.routes:
        if route.table != many.table or route.is_default:
            continue
        network = ipaddress.ip_network(route.prefix)
        is_link = route.text.startswith("dev ") and many.interface not in route.interfaces
        inside = is_link and _touches(many.prefixes, network)
        prefix = _prefix_with(many.prefixes, network.network_address)
        if inside or (prefix is not None and network.prefixlen >= prefix.prefixlen):
            raise RequestError(
                f"the DUT already has another route to {route.prefix}, among the {many.prefixes.count:,}"
                f" prefixes of the {many.side} side: {route.text}",
                code="rig.other-route-to-test-network",
                where=where,
                next_step="Leave out the prefixes around it, or remove it on the DUT: ip route del"
                f" {route.prefix}",
            )


def check_memory(many: Sequence[ManyRoutes], state: LinuxState) -> None:
    """NotTakenError if the kernel has no room for all of them."""
    needed, left = sum(each.memory_octets for each in many), state.memory_left_octets
    if left is None or needed <= left:
        return
    counts = " and ".join(f"{each.prefixes.count:,} IPv{each.prefixes.version}" for each in many)
    raise NotTakenError(
        f"the DUT has {left >> 20:,} MB of memory left, and its tables of routes need about"
        f" {needed >> 20:,} MB for {counts} routes",
        code="rig.table-of-routes-too-small",
        where="[dut] ssh",
        next_step="Use fewer routes, or give the DUT more memory.",
    )


def move_routes(item: Item, now: str | None, target: str | None, many: Sequence[ManyRoutes]) -> list[Move]:
    """What brings them from what is there now to all of them, or to none."""
    interface, version, table = item.key
    moves = []
    if now is not None:
        moves.append(
            Move(item, f"ip -{version} route flush table {table} proto {PROTOCOL} dev {quote(interface)}")
        )
    if target is not None:
        (wanted,) = (each for each in many if each.key == item.key)
        # Only the prefixes go over the network. It ends at the first that is refused, as a full table would
        # refuse all others.
        words = quote(f"s|.*|route add & {_way(wanted)}|")
        begin = f"sed {words} <<'END' | ip -{version} -batch -"
        moves.append(Move(item, "\n".join((begin, *wanted.prefixes.texts(), "END"))))
    return moves


def batch_lines(many: ManyRoutes) -> Iterator[str]:
    """Lines of `ip -batch` that set them."""
    way = _way(many)
    return (f"route add {text} {way}\n" for text in many.prefixes.texts())


def _way(many: ManyRoutes) -> str:
    table = "" if many.table == "main" else f" table {many.table}"
    return f"via {many.next_hop} dev {many.interface} proto {PROTOCOL}{table}"


def not_taken(item: Item, now: str | None, said: str) -> NotTakenError:
    """For people: how many of them are there, and why there are no more."""
    interface, version, table = item.key
    taken, wanted = (int((text or "0").split()[0]) for text in (now, item.wanted))
    reason = f": {' '.join(said.split())[:200]}" if said else ""
    return NotTakenError(
        f"the DUT took {taken:,} of {wanted:,} IPv{version} routes over {interface} into its table"
        f" {table}{reason}",
        code="rig.table-of-routes-too-small",
        where="[dut] ssh",
        next_step="Nothing was sent, and the DUT is in its previous state. Use fewer routes, or make room for"
        " them on the DUT.",
    )


def _own_addresses(state: LinuxState) -> Iterator[tuple[str, str]]:
    for name, link in state.links.items():
        for text in link.addresses:
            yield f"{name} of the DUT has the address", text.split("/")[0]
    if state.peer is not None:
        yield "the SSH connection comes from", state.peer


def _prefix_with(prefixes: PrefixSet, address: Address) -> Network | None:
    """The prefix that has this address, if there is one."""
    number = prefixes.find(address)
    return None if number is None else next(prefixes.single(number).as_networks())


def _touches(prefixes: PrefixSet, network: Network) -> bool:
    """Whether a prefix begins in that network."""
    if prefixes.version != network.version:
        return False
    first = prefixes.first_addresses()
    bounds = (int(network.network_address), int(network.broadcast_address))
    (low_high, low_low), (high_high, high_low) = (
        (np.uint64(end >> 64), np.uint64(end & (1 << 64) - 1)) for end in bounds
    )
    is_above = (first.high > low_high) | ((first.high == low_high) & (first.low >= low_low))
    is_below = (first.high < high_high) | ((first.high == high_high) & (first.low <= high_low))
    return bool((is_above & is_below).any())


IP_VERSIONS: tuple[IpVersion, ...] = (4, 6)
PROTOCOL = 173
"""The mark: a number of rtnetlink's that no routing daemon uses."""


def count_command(version: IpVersion) -> str:
    """Prints interface, table, next hop and number of all routes with the mark."""
    return (
        f"ip -{version} route show table all proto {PROTOCOL} | awk '"
        '{ via = dev = "-"; table = "main"; for (i = 2; i < NF; i++) { if ($i == "via") via = $(i + 1);'
        ' else if ($i == "dev") dev = $(i + 1); else if ($i == "table") table = $(i + 1) }'
        ' n[dev " " table " " via]++ } END { for (way in n) print way, n[way] }\''
    )


def read_counts(answers: Mapping[IpVersion, Answer]) -> dict[tuple[str, str, str], str]:
    """See `LinuxState.many_routes`."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for version, answer in answers.items():
        for line in answer.stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[3].isdecimal():
                dev, table, via, count = words
                found.setdefault((dev, str(version), table), []).append(f"{count} via {via}")
    return {key: ", ".join(sorted(texts)) for key, texts in found.items()}


def others_command(version: IpVersion) -> str:
    """As `ip -j route show table all` without routes that have the mark: of a million, the answer would be a
    hundred megabytes. What is cut out leaves the JSON ragged: see `mended`."""
    show = f"ip -j -{version} route show table all"
    return (
        f"if ip -{version} route show table all proto {PROTOCOL} 2> /dev/null | grep -q .; then {show}"
        f" | tr '{{' '\\n' | grep -v '\"protocol\":\"{PROTOCOL}\"' | tr '\\n' '{{'; else {show}; fi"
    )


def mended(text: str) -> str:
    """JSON again: without the rest of what was cut out at its end."""
    bare = text.rstrip("{, \n")
    return f"{bare}]" if bare and not bare.endswith("]") else bare or "[]"


def read_memory(answer: Answer) -> int | None:
    """Octets that the kernel could still give; None if it does not say."""
    words = answer.stdout.split()
    return int(words[1]) << 10 if len(words) == 3 and words[1].isdecimal() else None
