# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: the sides of a set-up, the directions between them, and counts per side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from evenhand.base.units import format_count

SideName = Literal["left", "right"]
Direction = Literal["forward", "reverse"]
SIDES: tuple[SideName, SideName] = ("left", "right")
BOTH_DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")


def sending_side(direction: Direction) -> SideName:
    """The side from which the tester sends this direction."""
    return "left" if direction == "forward" else "right"


def receiving_side(direction: Direction) -> SideName:
    """The side on which the frames of this direction arrive at the tester."""
    return "right" if direction == "forward" else "left"


class SideCounts(NamedTuple):
    """A count for each side: hosts of each network, networks, addresses, octets of tags. Equal to, and read
    like, a tuple of two numbers."""

    left: int
    right: int

    def of(self, side: SideName) -> int:
        """The count of this side."""
        return self.left if side == "left" else self.right

    @classmethod
    def largest(cls, all_counts: Iterable[SideCounts]) -> SideCounts:
        """The largest count of each side; ValueError if there are none."""
        return cls(*(max(counts) for counts in zip(*all_counts, strict=True)))

    def times(self, others: tuple[int, int]) -> SideCounts:
        """Side by side: the hosts of each network times the networks are the addresses."""
        return SideCounts(self.left * others[0], self.right * others[1])

    @property
    def written(self) -> str:
        """The counts as an option or a key of a file has them: `65534`, or `65534,253` where the sides
        differ."""
        return str(self.left) if self.left == self.right else f"{self.left},{self.right}"

    def __str__(self) -> str:
        """`65,534 x 253`."""
        return f"{format_count(self.left)} x {format_count(self.right)}"

    def to_document(self) -> dict[str, int]:
        """`{"left": 10, "right": 20}`."""
        return self._asdict()


ONE_EACH = SideCounts(1, 1)
"""One network on each side, or one host: a single address pair."""
NO_TAGS = SideCounts(0, 0)
"""Octets of VLAN tags where no frame has any."""
