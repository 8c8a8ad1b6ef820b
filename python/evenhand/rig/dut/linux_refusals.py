# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: what a set-up refuses to change there: interfaces that something else needs, and networks that
someone else has already."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence

from evenhand.base.errors import HostError, RequestError
from evenhand.plan import Network
from evenhand.rig.dut.description import DutLink, DutSetup
from evenhand.rig.dut.linux_state import LinuxState, Route
from evenhand.rig.dut.linux_tables import check_rules, foreign_route, routes_of
from evenhand.rig.dut.translator import routes_to_translator


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
