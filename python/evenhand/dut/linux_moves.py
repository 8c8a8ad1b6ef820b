# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: the value that each thing has there, and the commands that bring it to another."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from evenhand.base.errors import HostError, RequestError
from evenhand.dut.description import DutLink, DutSetup
from evenhand.dut.items import Item, Move
from evenhand.dut.linux_nic import (
    check_rules,
    foreign_route,
    move_nat,
    move_rule,
    nic_move_of,
    routes_of,
    value_of_rule,
)
from evenhand.dut.linux_state import NOWHERE, TAYGA_FILES, LinuxState, Route
from evenhand.dut.nat import routes_to_translator, start_tayga, stop_tayga
from evenhand.dut.readings_queues import quote
from evenhand.plan import Network


@dataclass(frozen=True, slots=True)
class LinuxReader:
    """See `items.Reader`."""

    state: LinuxState

    def value_of(self, item: Item) -> str | None:
        state, (first, *rest) = self.state, item.key
        match item.kind:
            case "sysctl":
                # Nothing can be set on an interface that is gone.
                return state.sysctls.get(first, item.before)
            case "link":
                link = state.links.get(first)
                return item.before if link is None else "up" if link.is_up else "down"
            case "address":
                link = state.links.get(first)
                return (
                    None if link is None or rest[0] not in link.addresses else link.addresses[rest[0]] or ""
                )
            case "route":
                route = state.route(first, *rest)
                return None if route is None else route.text
            case "routes":
                return state.many_routes.get((first, rest[0], rest[1]))
            case "rule":
                return value_of_rule(item.key, state, item.wanted)
            case "neighbor":
                found = state.neighbors.get(first, {}).get(rest[0])
                return found if found is not None and found.endswith(" permanent") else None
            case "translator":
                return state.tayga
            case "nat":
                return state.nat
            case "hash":
                return state.hashes.get((first, rest[0]))
            case "receive_hashing":
                return state.receive_hashing.get(first)
            case "channels":
                return state.channels.get(first)
            case "hash_key":
                return state.hash_keys.get(first)
            case "hash_table":
                return state.hash_tables.get(first)
            case "learned":
                known = set((item.before or "").split())
                learned = {
                    address
                    for address, text in state.neighbors.get(first, {}).items()
                    if not text.endswith(" permanent")
                }
                return item.before if learned <= known else " ".join(sorted(learned))


def move_of(item: Item, now: str | None, target: str | None) -> list[Move]:
    """What brings the item from its value now to that one."""
    first, rest = item.key[0], item.key[1:]

    def ip(*words: str) -> list[Move]:
        return [Move(item, " ".join(words), is_batch=True)]

    match item.kind:
        case "sysctl":
            return [Move(item, f"echo {quote(target or '')} > {quote(f'/proc/sys/{first}')}")]
        case "link":
            return ip("link set dev", first, target or "down")
        case "address":
            return ip("address del" if target is None else "address add", rest[0], "dev", first, target or "")
        case "route":
            verb, to = ("del", now or "") if target is None else ("add", target)
            table = [f"table {name}" for name in rest]
            return ip("route", verb, *((to, first) if to in NOWHERE else (first, to)), *table)
        case "rule":
            return move_rule(item, now, target)
        case "neighbor" if target is None:
            return ip("neighbor del", rest[0], "dev", first)
        case "neighbor":
            return (
                ip("neighbor replace", rest[0], "lladdr", target.split()[0], "dev", first, "nud permanent")
                if target
                else []
            )
        case "translator":
            return [_move_tayga(item, now, target)]
        case "nat":
            return [move_nat(item, now, target)]
        case "learned":
            extra = set((now or "").split()) - set((target or "").split())
            return [move for address in sorted(extra) for move in ip("neighbor del", address, "dev", first)]
        case _:
            return nic_move_of(item, target)


def _move_tayga(item: Item, now: str | None, target: str | None) -> Move:
    lines = ["exec 9>&-", "set -e"]  # 9 is the lock of the set-up, which what stays would keep
    if now is not None or target is None:
        lines += stop_tayga(files=TAYGA_FILES)
    if target is not None:
        lines += start_tayga(target, files=TAYGA_FILES, like=item.key[1])
    return Move(item, "\n".join(lines))


def shell_lines(moves: Iterable[Move]) -> list[tuple[str, list[Move]]]:
    """Commands of the shell, each with the moves that it makes: lines of `ip` that follow each other in one
    process."""
    lines: list[tuple[str, list[Move]]] = []
    batch: list[Move] = []
    for move in [*moves, None]:
        if move is not None and move.is_batch:
            batch.append(move)
            continue
        if batch:
            lines.append(
                ("\n".join(("ip -force -batch - <<'END'", *(each.command for each in batch), "END")), batch)
            )
            batch = []
        if move is not None:
            lines.append((move.command, [move]))
    return lines


def check_interfaces(named: Sequence[tuple[str, str]], state: LinuxState) -> None:
    """Refuse interfaces that are not there, that are not two links, or that something else needs.

    Args:
        named: Left and right, each with its interface.
    """
    if not state.carrying:
        raise HostError(
            "the DUT does not report which of its interfaces carries this connection; that interface"
            " must never be changed",
            code="rig.ssh-interface-unknown",
            where="[dut] ssh",
            next_step="Check SSH_CONNECTION on the DUT, and whether `ip route get` finds a route back.",
        )
    defaults = state.carriers(name for route in state.routes if route.is_default for name in route.interfaces)
    for side, name in named:
        where = f"[dut] {side}"
        found = state.links.get(name)
        if found is None:
            others = (
                ", ".join(
                    other
                    for other in state.links
                    if other != "lo" and other not in state.kept_from | defaults
                )
                or "none"
            )
            raise RequestError(
                f"the DUT has no interface {name!r}",
                code="rig.dut-interface-missing",
                where=where,
                next_step=f"Its unused interfaces are: {others}.",
            )
        if name in state.kept_from:
            raise RequestError(
                f"{name} carries the SSH connection",
                code="rig.carries-ssh",
                where=where,
                next_step="It is never changed. Name the interface that the tester is connected to.",
            )
        if name in defaults:
            raise RequestError(
                f"{name} carries a default route of the DUT",
                code="rig.carries-default-route",
                where=where,
                next_step="It is never changed. Name the interface that the tester is connected to, or"
                " remove that route.",
            )
        if found.is_in_vrf:
            raise RequestError(
                f"{name} is a member of the VRF {found.master}, which has a table of routes of its own",
                code="rig.member-of-a-vrf",
                where=where,
                next_step="Evenhand sets routes of the main table. Take it out of the VRF: ip link set dev"
                f" {name} nomaster",
            )
        if found.master is not None:
            raise RequestError(
                f"{name} is a port of {found.master}, and cannot have addresses of its own",
                code="rig.port-of-a-bridge",
                where=where,
                next_step=f"Name {found.master}, or remove {name} from it.",
            )
    left, right = (state.links[name] for _, name in named)
    if right.name == left.lower and left.name == right.lower:
        raise RequestError(
            f"{left.name} and {right.name} are the two ends of one cable",
            code="rig.ends-of-one-cable",
            where="[dut] left, right",
            next_step="Name the interfaces that are connected to the tester's two ports.",
        )


def check_networks(setup: DutSetup, state: LinuxState, *, ours: Collection[str]) -> None:
    """Nothing that the set-up takes may be someone else's already: the way back would not restore it.

    Args:
        ours: The interfaces of all pairs, which have the same addresses.
    """
    own = [link.interface for link in setup.links]
    taken = [
        (net, link)
        for link in setup.links
        for net in (*(address.network for address in link.addresses), *link.routes)
    ]
    translated = _translated_networks(setup)
    if setup.plan.nat is not None:
        translated.append((setup.plan.nat.pool, setup.links[1]))
    taken += [(network, of) for network, of in translated]
    for name, link in state.links.items():
        if name in ours and name not in own:
            continue
        for text in link.addresses:
            address = ipaddress.ip_interface(text)
            for network, of in taken:
                is_ours = str(address) in {str(each) for each in of.addresses}
                may_be_here = name == of.interface and network.version == of.side.ip_version
                if address.version == network.version and address.ip in network and not may_be_here:
                    raise RequestError(
                        f"{name} of the DUT has the address {address}, which is in {network}"
                        f" of the {of.side.name} side",
                        code="rig.dut-address-in-test-network",
                        where=f"[dut] {of.side.name}",
                        next_step="Remove that address"
                        + (", or swap left and right." if is_ours and name in own else "."),
                    )
    for network, of in taken:
        if state.peer is not None and ipaddress.ip_address(state.peer) in network:
            raise RequestError(
                f"the SSH connection comes from {state.peer}, which is in {network} of the"
                f" {of.side.name} side",
                code="rig.ssh-from-test-network",
                where="[dut] ssh",
                next_step="The DUT would send its answers to the tester. Connect to it from another address.",
            )
    for of in setup.links if setup.table is None else ():
        for network in of.routes:
            route = state.route(str(network))
            if route is not None and route.text != routes_of(setup)[str(network)]:
                raise _other_route(route, of.side.name)
    for network, of in translated:
        route = state.route(str(network))
        if route is not None:
            raise _other_route(route, of.side.name)
    if setup.table is not None:
        check_rules(setup, state)
        route = foreign_route(setup, state)
        if route is not None:
            raise _other_route(route, setup.links[0].side.name)


def _translated_networks(setup: DutSetup) -> list[tuple[Network, DutLink]]:
    """The networks that are routed to the translator, each with the link of the hosts that are in it."""
    if setup.translation is None:
        return []
    by_version: dict[int, DutLink] = {link.side.ip_version: link for link in setup.links}
    of = {4: by_version[6], 6: by_version[4]}
    return [(network, of[network.version]) for network in routes_to_translator(setup.translation)]


def _other_route(route: Route, side: str) -> RequestError:
    of_table = "" if route.table == "main" else f" table {route.table}"
    return RequestError(
        f"the DUT already has another route to {route.prefix}{of_table and ' in'}{of_table}: {route.text}",
        code="rig.other-route-to-test-network",
        where=f"[dut] {side}",
        next_step=f"Remove it on the DUT: ip route del {route.prefix}{of_table}",
    )
