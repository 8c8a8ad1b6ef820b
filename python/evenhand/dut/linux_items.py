# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: what a set-up changes there, in the order of doing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutSetup
from evenhand.dut.items import Item, NotTakenError
from evenhand.dut.linux import DEFAULT_LIMITS
from evenhand.dut.linux_moves import LinuxReader, check_interfaces, check_networks
from evenhand.dut.linux_nic import (
    NO_WISHES,
    NicWishes,
    hash_items,
    nat_items,
    nic_items,
    routes_of,
    rule_items,
)
from evenhand.dut.linux_state import LinuxState
from evenhand.dut.many_routes import check_many_routes, check_memory, many_routes_of
from evenhand.dut.nat import TAYGA_INSTALL, TAYGA_INTERFACE, routes_to_translator, tayga_config
from evenhand.plan.translation import Translation


def linux_items(setups: Sequence[DutSetup], state: LinuxState, *, nics: NicWishes = NO_WISHES) -> list[Item]:
    """What these set-ups, one for each IP version and pair, mean for a DUT in this state, in the order of
    doing.

    What is so already stays an item: it must be so at the end.

    Raises:
        RequestError: See `check_interfaces` and `check_networks`; or what is there is in the way.
        NotTakenError: The DUT has no such limit, channels, hash, key or table, or could not be given back its
            own; or it has no translator.
    """
    check_memory([many for setup in setups for many in many_routes_of(setup)], state)
    found: dict[tuple[str, tuple[str, ...]], Item] = {}
    ours = {link.interface for setup in setups for link in setup.links}
    for setup in setups:
        check_interfaces([(link.side.name, link.interface) for link in setup.links], state)
        check_networks(setup, state, ours=ours)
        # The table of neighbours is one, whatever pair they are of.
        neighbors = sum(
            each.neighbor_entries for each in setups if set(each.ip_versions) == set(setup.ip_versions)
        )
        for item in _items(setup, state, nics, neighbors=neighbors):
            found.setdefault((item.kind, item.key), item)
    # Forwarding comes last: nothing is forwarded by half a set-up.
    return sorted(
        found.values(), key=lambda item: item.kind == "sysctl" and item.key[0].endswith("/forwarding")
    )


def _items(setup: DutSetup, state: LinuxState, nics: NicWishes, *, neighbors: int) -> Iterator[Item]:
    reader, names = LinuxReader(state), [link.interface for link in setup.links]

    def item(kind: str, *key: str, wanted: str) -> Item:
        now = reader.value_of(Item(kind, key, None, None))  # type: ignore[arg-type]
        return Item(kind, key, now, wanted)  # type: ignore[arg-type]

    for name in names:
        learned = " ".join(
            sorted(
                each
                for each, text in state.neighbors.get(name, {}).items()
                if not text.endswith(" permanent")
            )
        )
        yield Item("learned", (name,), learned, learned)
        # An address that is there may go when the interface is set down again.
        for address, options in state.links[name].addresses.items():
            if options is not None:
                yield Item("address", (name, address), options, options)
    yield from _limits(setup, neighbors, state)
    for name in names:
        yield item("link", name, wanted="up")
    for link in setup.links:
        no_wait = "nodad" if link.side.ip_version == 6 else ""
        for own in link.addresses:
            if str(own) not in state.links[link.interface].addresses:
                yield Item("address", (link.interface, str(own)), None, no_wait)
    table = () if setup.table is None else (str(setup.table),)
    for network, way in routes_of(setup).items():
        yield item("route", network, *table, wanted=way)
    for many in many_routes_of(setup):
        check_many_routes(many, state)
        yield Item("routes", many.key, None, many.value)
    if table:
        yield from rule_items(setup, state)
    for link in setup.links:
        for neighbor, mac in link.static_neighbors():
            yield item("neighbor", link.interface, str(neighbor), wanted=f"{mac} permanent")
    if setup.translation is not None:
        yield from _translator(setup, setup.translation, state)
    if setup.plan.nat is not None:
        yield from nat_items(setup, setup.plan.nat, state)
    for name in names:
        yield from nic_items(name, state, nics)
        if setup.hash_type is not None:
            yield from hash_items(name, state, setup.hash_type)
    yield from _forwarding(setup, state)


def _limits(setup: DutSetup, needed: int, state: LinuxState) -> Iterator[Item]:
    """Room for the plan on top of what the kernel has room for anyway; a limit is never lowered (SEED-23)."""
    if needed <= DEFAULT_LIMITS["gc_thresh1"]:
        return
    # From the largest down: thresh1 must never be above thresh3.
    for limit, default in reversed(DEFAULT_LIMITS.items()):
        path = f"net/ipv{setup.plan.ip_version}/neigh/default/{limit}"
        now = state.sysctls.get(path)
        if now is None:
            raise NotTakenError(
                f"the DUT has no {path.replace('/', '.')} to make room for {needed:,}"
                " neighbours, because it is a container",
                code="rig.dut-setting-missing",
                where="[dut] ssh",
                next_step="Set the limit on the host of the container, or use a gateway plan, which needs"
                " two neighbours.",
            )
        yield Item("sysctl", (path,), now, str(max(int(now), default + needed)))


def _translator(setup: DutSetup, translation: Translation, state: LinuxState) -> Iterator[Item]:
    """TAYGA, and what the kernel routes to it."""
    if not state.has_tayga:
        raise NotTakenError(
            "the plan needs a translator, and the DUT has no TAYGA",
            code="rig.translator-missing-on-dut",
            where="[dut] ssh",
            next_step=f"Install it on the DUT, without a service of its own: {TAYGA_INSTALL}",
        )
    if state.tayga is not None:
        raise RequestError(
            f"the DUT already has an interface {TAYGA_INTERFACE}",
            code="rig.translator-already-there",
            where="[dut] ssh",
            next_step="It belongs to a printed set-up: undo that (evenhand dut setup --undo), or run on the"
            f" DUT: ip link del {TAYGA_INTERFACE}",
        )
    (ipv6,) = setup.links_of(6)
    yield Item("translator", ("TAYGA", ipv6.interface), None, tayga_config(translation))
    for route in routes_to_translator(translation):
        yield Item("route", (str(route),), None, f"dev {TAYGA_INTERFACE}")


def _forwarding(setup: DutSetup, state: LinuxState) -> Iterator[Item]:
    """For IPv4 the interfaces alone; for IPv6 older kernels forward by the switch of all interfaces alone."""
    for version in setup.ip_versions:
        yield from _forwarding_of(version, setup, state)


def _forwarding_of(version: int, setup: DutSetup, state: LinuxState) -> Iterator[Item]:
    begin = f"net/ipv{version}/conf"
    own = [f"{begin}/{link.interface}/forwarding" for link in setup.links if link.side.ip_version == version]
    switch = f"{begin}/all/forwarding"
    if version == 6 and state.sysctls.get(switch) != "1":
        _check_advertisements(state)
        others = [
            path
            for path in state.sysctls
            if path.startswith(f"{begin}/") and path.endswith("/forwarding") and path != switch
        ]
        _check_names(others)
        own = [switch, *others]
    for path in own:
        if path not in state.sysctls:
            raise NotTakenError(
                f"the DUT has no {path.replace('/', '.')}",
                code="rig.dut-setting-missing",
                where="[dut] ssh",
                next_step=f"Enable IPv{version} on the DUT.",
            )
        yield Item("sysctl", (path,), state.sysctls[path], "1")


def _check_names(paths: Iterable[str]) -> None:
    """The switch for all interfaces also changes the switch of each interface, which is restored by name."""
    for path in paths:
        if "\ufffd" in path:  # see `Shell`: octets that are not UTF-8
            raise RequestError(
                "the DUT has an interface whose name is not UTF-8, so its own setting could not be restored:"
                f" {path.replace('/', '.')}",
                code="rig.interface-name-not-utf8",
                where="[dut] ssh",
                next_step="Give it another name there: ip link set dev OLD name NEW",
            )


def _check_advertisements(state: LinuxState) -> None:
    """A router forgets what other routers have advertised to it: perhaps the way to this very connection."""
    for route in state.routes:
        for name in route.interfaces:
            if route.is_learned and state.sysctls.get(f"net/ipv6/conf/{name}/accept_ra") != "2":
                raise RequestError(
                    f"{name} of the DUT has learned {route.prefix} from a router, and would"
                    " lose it when it forwards IPv6",
                    code="rig.route-would-be-lost",
                    where="[dut] ssh",
                    next_step=(
                        "Make it accept router advertisements anyway: sysctl -w"
                        f" net.ipv6.conf.{name}.accept_ra=2"
                    ),
                )
