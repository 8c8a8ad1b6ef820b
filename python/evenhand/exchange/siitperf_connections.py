# SPDX-License-Identifier: Apache-2.0
"""Exchange: the keys and arguments of siitperf's stateful tests (RFC 9693): connections through a DUT that
keeps state."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.base.errors import PlanError
from evenhand.base.units import format_count
from evenhand.exchange.outcome import Became
from evenhand.exchange.siitperf_command import SiitperfCommand
from evenhand.exchange.siitperf_file import SiitperfFile
from evenhand.exchange.siitperf_plan import CLOSEST, FoundPlan, differences_of, try_plan, wanted_side
from evenhand.exchange.siitperf_prefix import host_behind, plan_behind, prefixes_between
from evenhand.plan import make_plan
from evenhand.plan.translation import PREFIX_LENGTHS

NOT_YET = "no plan has connections from IPv4 to IPv6, or other traffic in addition to connections"
STATEFUL_KEYS = ("Stateful", "Enumerate-ports", "Enumerate-ips", "Responder-tuples", "Responder-ports")
INITIATOR_ON_THE_RIGHT = 2
"""Value of `Stateful`."""
_PLANS: Mapping[tuple[int, int], str] = {(4, 4): "nat44", (6, 4): "nat64", (6, 6): "nat66"}
"""Names of plans by the IP version of the initiator and that of the responder."""
ORDERS: Sequence[str | None] = (None, "increasing", "decreasing", "pseudorandom", "pseudorandom")
"""What the values of Enumerate-ports and Enumerate-ips mean."""


def find_with_state(file: SiitperfFile, name: str | None) -> FoundPlan | None:
    """The plan whose left hosts open connections; None if there is none for these IP versions.

    Args:
        file: The file, with the initiator on the left.
        name: The user's choice of a plan.

    Raises:
        RequestError: A key is missing, or the user's plan is not one of these.
    """
    versions = (file.value("IP-L-Vers"), file.value("IP-R-Vers"))
    usual = _PLANS.get(versions)
    if usual is None:
        return None
    plan = make_plan(name or usual)
    if plan.nat is None or plan.nat.title.lower() != usual:
        raise PlanError(
            f"{plan.title} is not the plan of a {usual.upper()}, which this file tests",
            code="exchange.plan-without-state",
            where="--plan",
            next_step=f"Leave it out, or use {usual}.",
        )
    left = wanted_side(file, "L", versions[0])
    if versions != (6, 4):
        return try_plan(usual, (left, wanted_side(file, "R", versions[1])))
    behind = wanted_side(file, "R", 6, "Virt")
    prefix, why_not = _prefix_of_hosts(file), ""
    if name is None:
        name, why_not = plan_behind(usual, [prefix])
    ipv4 = replace(behind, real=host_behind(prefix, behind.real), offset=None)
    found = try_plan(make_plan(name).name, (left, ipv4))
    host_range, nat = found.plan.left.peers, found.plan.nat
    assert host_range is not None
    assert nat is not None
    # The IPv4 hosts follow from their addresses on the IPv6 side, so all is said of these.
    differences = {key: text for key, text in found.differences.items() if not key.startswith("IPv4-R-")}
    differences |= differences_of("IPv6-R-Virt", behind, host_range, CLOSEST)
    if behind.first_address not in (nat.prefix or ()):
        differences["IPv6-R-Virt"] = (
            f"{host_range.first_address} .. {host_range.last_address} instead:"
            f" {why_not or f'the prefix of {found.name} is {nat.prefix}'}"
        )
    return replace(found, differences=differences)


def _prefix_of_hosts(file: SiitperfFile) -> ipaddress.IPv6Network:
    """Behind which the IPv4 hosts of a NAT64 lie: it follows from their address on each side, if the file has
    both; else it has 96 bits."""
    behind = wanted_side(file, "R", 6, "Virt")
    usual = ipaddress.IPv6Network((behind.first_address, PREFIX_LENGTHS[-1]), strict=False)
    if not file.has("IPv4-R-Real") or (behind.offset is not None and not file.has("IPv4-R-offset")):
        return usual
    found = prefixes_between(behind.first_address, wanted_side(file, "R", 4).first_address)
    return found[-1] if found else usual


def order_of(file: SiitperfFile) -> str:
    """The order in which four tuples are used. Where siitperf enumerates none, it repeats them, and they are
    used once here."""
    for key in ("Enumerate-ports", "Enumerate-ips"):
        order: str | None = ORDERS[file.value(key)]
        if order is not None:
            return order
    return "pseudorandom"


def key_row(file: SiitperfFile, key: str, plan: str) -> tuple[Became, str]:
    """What becomes of one of the keys of stateful tests."""
    value = file.value(key)
    if key == "Stateful":
        side = "right" if value == INITIATOR_ON_THE_RIGHT else "left"
        return Became.MAPPED, f"--plan {plan}: the {side} port opens connections"
    if key.startswith("Enumerate"):
        order = ORDERS[value]
        if order is None:
            if ORDERS[file.value("Enumerate-ports")] or ORDERS[file.value("Enumerate-ips")]:
                return Became.MAPPED, "each four tuple is used once"
            return Became.DIFFERS, "each connection has a four tuple of its own: none is used twice"
        if order != order_of(file):
            return Became.DIFFERS, f"--order {order_of(file)}: addresses and ports have one order"
        if order == "pseudorandom":
            return Became.MAPPED, "each four tuple is used once, in pseudorandom order"
        return (
            Became.DIFFERS,
            f"--order {order} of evenhand connections; --established ones are opened in pseudorandom order",
        )
    if ORDERS[value] == "pseudorandom":
        return Became.MAPPED, "each frame of the responder is of any connection"
    return Became.DIFFERS, "each frame of the responder is of any connection, drawn anew"


def argument_row(typed: SiitperfCommand, key: str) -> tuple[Became, str]:
    """What becomes of an argument of stateful tests."""
    arguments = typed.arguments
    value = arguments[key]
    if key == "N":
        return Became.MAPPED, f"--established {value}, or --connections {value}"
    if key == "M":
        if value >= arguments["N"]:
            return Became.MEANINGLESS, "the responder keeps every connection"
        return (
            Became.DIFFERS,
            f"all {format_count(arguments['N'])} connections are kept: each has a place of its own",
        )
    if key == "R":
        return Became.MAPPED, f"--establish-rate {value}"
    if key == "T":
        if value == arguments["global timeout"]:
            return Became.MAPPED, f"--wait-residual {value}ms"
        return (
            Became.DIFFERS,
            f"--wait-residual {arguments['global timeout']}ms: both phases wait as long for the last frames",
        )
    return Became.MEANINGLESS, "phase 2 begins when phase 1 is over, and the waits after it"


def connection_notes(typed: SiitperfCommand | None) -> list[str]:
    """For people."""
    notes = [
        "Each experiment needs an empty table of the DUT: write into the testbed file how it is emptied, such"
        ' as empty_connections = "ssh root@dut conntrack -F" in [dut].'
    ]
    if typed is None:
        notes.append(
            "The number of connections and the rate at which they are opened are given on siitperf's command"
            " line (N and R): with --command, the commands contain both."
        )
    return notes
