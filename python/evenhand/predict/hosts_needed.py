# SPDX-License-Identifier: Apache-2.0
"""How many hosts a side needs until the load of a device is even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Direction, receiving_side
from evenhand.plan.host_list import HostList
from evenhand.predict.loads import Prediction, predict
from evenhand.predict.model import DeviceModel

EVEN_TOLERANCE = Fraction(5, 100)


def with_hosts(plan: AddressPlan, host_count: int) -> AddressPlan:
    """The plan with the first `host_count` hosts of each side, or of each of its networks (SEED-42)."""
    return plan.with_counts(host_count)


def maximum_hosts(plan: AddressPlan) -> int:
    """Per side, or per network where the plan has several; the smaller side decides."""
    return min(plan.hosts)


def has_listed_hosts(plan: AddressPlan) -> bool:
    """Whether a side's hosts are those of a list, or a flow has hosts of its own, of which there are no first
    2, 4, 8 to be taken."""
    return any(isinstance(side.host_range, HostList) for side in plan.sides) or any(
        flow.left or flow.right for flow in plan.flows
    )


def even_limit(model: DeviceModel, tolerance: Fraction | float = EVEN_TOLERANCE) -> Fraction:
    """Busiest to mean up to which a load counts as even: within the tolerance of the best that the table
    allows.

    36 elements cannot share 128 entries evenly: 1.125 is all that any traffic can reach, and what the plateau
    of a measured series then is. Where the elements share the table evenly, this is 1 + tolerance.
    """
    return model.table_unevenness * (1 + Fraction(tolerance).limit_denominator(10**6))


def smallest_even_hosts(
    plan: AddressPlan,
    model: DeviceModel,
    tolerance: Fraction | float = EVEN_TOLERANCE,
    directions: Sequence[Direction] = BOTH_DIRECTIONS,
) -> int | None:
    """The smallest N such that the load is even with N hosts per side (or network), and with every greater
    number up to all of the plan.

    "And every greater number", because single lucky numbers (powers of two, mostly) can be even before the
    load is.

    Returns:
        None if the load is not even with all hosts of the plan, or if these are those of a list.
    """
    if has_listed_hosts(plan):
        return None
    limit = even_limit(model, tolerance)
    host_count = maximum_hosts(plan)
    while host_count >= 1:
        prediction = predict(with_hosts(plan, host_count), model, directions)
        unevenness = prediction.busiest_to_mean
        if unevenness > limit:
            return host_count + 1 if host_count < maximum_hosts(plan) else None
        # With fewer hosts no element gets more combinations than now, so the busiest has at most what it has
        # now, while the mean falls with the number of combinations, which is N x N at least where both sides
        # vary. All numbers down to the one where even that bound holds are even: the next to look at is the
        # one below.
        host_count = min(host_count, _least_with(host_count, limit / unevenness)) - 1
    return 1


def doubling_series(
    plan: AddressPlan, model: DeviceModel, directions: Sequence[Direction] = BOTH_DIRECTIONS
) -> list[Prediction]:
    """1, 2, 4, ... hosts per side, and all that the plan has (SEED-65); of hosts of a list one, and all."""
    maximum = maximum_hosts(plan)
    if has_listed_hosts(plan):
        return [predict(with_hosts(plan, 1), model, directions), predict(plan, model, directions)]
    points = [2**exponent for exponent in range(maximum.bit_length()) if 2**exponent < maximum]
    return [predict(with_hosts(plan, host_count), model, directions) for host_count in [*points, maximum]]


def _least_with(host_count: int, slack: Fraction) -> int:
    """The least n >= 1 with (host_count / n)^2 <= slack, where slack >= 1."""
    square = host_count * host_count * slack.denominator
    root = max(1, isqrt(square // slack.numerator))
    while root * root * slack.numerator < square:
        root += 1
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborCost:
    """Frames become dearer when the neighbour table outgrows the caches, for all elements alike."""

    free_entries: int
    """Entries that cost nothing; 0: the table costs nothing."""
    growth: float
    """Additional cost of a frame for each doubling beyond: 0.1 is ten percent."""

    def __post_init__(self) -> None:
        """ValueError: a table cannot have fewer entries than none, or make a frame cheaper."""
        if self.free_entries < 0 or self.growth < 0:
            raise ValueError(f"{self.free_entries} free entries and a growth of {self.growth} cannot be")

    def factor(self, entries: int) -> float:
        """Factor by which a frame is dearer than with an empty table, as `router/elements/elements.hpp` has
        it."""
        if self.free_entries == 0 or entries <= self.free_entries:
            return 1.0
        return 1.0 + self.growth * math.log2(entries / self.free_entries)


def neighbor_entries(plan: AddressPlan, directions: Sequence[Direction] = BOTH_DIRECTIONS) -> int:
    """How many neighbours a device has once it has forwarded to every destination: hosts on the link, or the
    gateways before them."""
    return sum(plan.side(receiving_side(direction)).dut_neighbors for direction in dict.fromkeys(directions))
