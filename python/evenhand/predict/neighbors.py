# SPDX-License-Identifier: Apache-2.0
"""The draft's second transient: what a growing neighbour table costs a device (A.2.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.plan import BOTH_DIRECTIONS, AddressPlan, Direction, receiving_side


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
