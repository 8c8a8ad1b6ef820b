# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT with several pairs of interfaces that have the same addresses: what comes in on a pair is
routed by a table of its own, and so leaves on that pair alone.

A rule for each interface chooses the table. Devices of VRF would do the same, but each frame would pass one
more of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.base.errors import RequestError
from evenhand.rig.dut.description import DutSetup
from evenhand.rig.dut.items import Item, Move, NotTakenError
from evenhand.rig.dut.linux_state import LinuxState, Route
from evenhand.rig.dut.reading import quote

PRIORITY = 7300
"""Priority of the rules; the main table's is 32766."""
_STRICT, _LOOSE = "1", "2"
"""Values of rp_filter."""


def routes_of(setup: DutSetup) -> dict[str, str]:
    """All routes that the pair needs, by their networks: in the main table the kernel makes those of the
    links by itself."""
    linked = {
        str(address.network): f"dev {link.interface}" for link in setup.links for address in link.addresses
    }
    behind = {
        str(route): f"via {link.next_hop} dev {link.interface}"
        for link in setup.links
        for route in link.routes
    }
    return (linked if setup.table is not None else {}) | behind


def check_rules(setup: DutSetup, state: LinuxState) -> None:
    """Nothing else may choose or fill the table of this pair.

    Raises:
        RequestError: There is another rule, or another route in the table.
        NotTakenError: The DUT's kernel has no rules.
    """
    wanted = _lookup(setup)
    for link in setup.links:
        version = link.side.ip_version
        rules = state.rules.get(str(version))
        if rules is None:
            raise NotTakenError(
                f"several engines need a table of routes for each, but the DUT's kernel has no rules for"
                f" IPv{version}",
                code="rig.dut-setting-missing",
                where="[dut] ssh",
                next_step="Use a kernel with policy routing (CONFIG_IP_MULTIPLE_TABLES,"
                " CONFIG_IPV6_MULTIPLE_TABLES), as all kernels of Debian have it.",
            )
        other = next((rule for rule in rules.get(link.interface, ()) if rule != wanted), None)
        if other is not None:
            raise RequestError(
                f"the DUT already has a rule for packets that arrive on {link.interface}: {other}",
                code="rig.other-rule-on-dut",
                where=f"[dut] {link.side.name}",
                next_step=f"Remove it on the DUT: ip -{version} rule del iif {link.interface} {other}",
            )


def foreign_route(setup: DutSetup, state: LinuxState) -> Route | None:
    """A route in the pair's table that is not its own."""
    wanted = routes_of(setup)
    return next(
        (
            route
            for route in state.routes
            if route.table == str(setup.table) and wanted.get(route.prefix) != route.text
        ),
        None,
    )


def rule_items(setup: DutSetup, state: LinuxState) -> Iterator[Item]:
    """The rules, and what they need of the reverse path filter: a neighbour's question is for the DUT itself,
    and of several interfaces to one network the strict filter takes those of the first one alone."""
    for link in setup.links:
        name, version = link.interface, link.side.ip_version
        if version == 4 and _reverse_path_filter(name, state) == _STRICT:
            path = f"net/ipv4/conf/{name}/rp_filter"
            yield Item("sysctl", (path,), state.sysctls[path], _LOOSE)
        key = (name, str(version))
        yield Item("rule", key, value_of_rule(key, state, _lookup(setup)), _lookup(setup))


def value_of_rule(key: tuple[str, ...], state: LinuxState, wanted: str | None) -> str | None:
    """The rule, if it is there."""
    name, version = key
    return wanted if wanted in state.rules.get(version, {}).get(name, ()) else None


def move_rule(item: Item, now: str | None, target: str | None) -> list[Move]:
    """It is never another one that is there: see `check_rules`."""
    name, version = item.key
    verb, rule = ("del", now) if target is None else ("add", target)
    return [Move(item, f"ip -{version} rule {verb} iif {quote(name)} {rule}")]


def _lookup(setup: DutSetup) -> str:
    return f"lookup {setup.table} pref {PRIORITY}"


def _reverse_path_filter(name: str, state: LinuxState) -> str:
    """The kernel takes the larger one of the interface's own and that of all."""
    return max(state.sysctls.get(f"net/ipv4/conf/{each}/rp_filter", "0") for each in ("all", name))
