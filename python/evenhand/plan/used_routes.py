# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: fewer prefixes than a side has, for a series over routes. The DUT keeps all."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from evenhand.base.errors import PlanError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan.flows import fit_flows
from evenhand.plan.host_list import HostList
from evenhand.plan.model import AddressPlan
from evenhand.plan.sides import PlanSide, SideCounts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_import("numpy")


def routes_of(plan: AddressPlan) -> SideCounts | None:
    """Prefixes that frames go to and come from, on each side: 1 where hosts are no list of prefixes. None if
    they are one on neither side."""
    if not any(map(_is_listed, plan.sides)):
        return None
    left, right = (_count(side) for side in plan.sides)
    return SideCounts(left, right)


def with_routes(plan: AddressPlan, counts: SideCounts | int) -> AddressPlan:
    """The same set-up of the DUT, of which hosts of only so many prefixes are used.

    They are the first in an order that the prefixes' own octets decide (SHA-256 and splitmix64), so that they
    are spread over the whole table, the same in every run, and among those of any larger count.

    Args:
        counts: A single number is that of the sides with several prefixes.

    Raises:
        PlanError: There are not so many, or no list of prefixes at all; or a flow has hosts of none of them.
    """
    most = routes_of(plan)
    if most is None:
        raise PlanError(
            f"{plan.title} has several prefixes on neither side",
            code="plan.no-list-of-prefixes",
            where="routes",
            next_step="Omit it, or use a plan file with hosts = [...], prefixes or routes on a side.",
        )
    if isinstance(counts, int):
        counts = SideCounts(*(counts if _is_listed(side) else 1 for side in plan.sides))
    for side, asked, there in zip(plan.sides, counts, most, strict=True):
        if not 1 <= asked <= there:
            raise PlanError(
                f"{asked:,} routes: {plan.title} has 1 to {there:,} on the {side.name}",
                code="plan.count-out-of-range",
                where="routes",
                next_step="Use fewer, or give the plan file more prefixes.",
            )
    left, right = (_fewer(side, count) for side, count in zip(plan.sides, counts, strict=True))
    flows = fit_flows(plan.flows, {"left": left.host_range, "right": right.host_range})
    return replace(plan, left=left, right=right, flows=flows)


def _is_listed(side: PlanSide) -> bool:
    prefixes = side.prefixes
    return prefixes is not None and prefixes.count > 1 and isinstance(side.host_range, HostList)


def _count(side: PlanSide) -> int:
    return side.host_range.entry_count if isinstance(side.host_range, HostList) and _is_listed(side) else 1


def _fewer(side: PlanSide, count: int) -> PlanSide:
    hosts = side.host_range
    if not isinstance(hosts, HostList) or count == _count(side):
        return side
    rows = np.frombuffer(hosts.entries, dtype=np.uint8).reshape(hosts.entry_count, -1)
    chosen = np.sort(_order(hosts.digest, hosts.entry_count)[:count])
    return replace(side, host_range=replace(hosts, entries=rows[chosen].tobytes()))


@lru_cache(maxsize=2)
def _order(digest: str, entry_count: int) -> NDArray[np.intp]:
    """The numbers of all entries, those that are used first at the beginning. No generator of numpy's: their
    sequences may change with its version."""
    mixed = np.arange(1, entry_count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(int(digest[:16], 16))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")
