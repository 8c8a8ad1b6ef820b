# SPDX-License-Identifier: Apache-2.0
"""DUT: its interfaces that are measured, a pair for each engine, and the name of each one's place, which all
documents call it by."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.plan import SIDES, SideName

InterfacePair = tuple[str, str]
"""Left, right: interfaces as the DUT names them."""


def place_of(side: SideName, number: int) -> str:
    """Place of one side of pair `number`, from 0: `left`; `left-2` is that of the second engine."""
    return side if number == 0 else f"{side}-{number + 1}"


def by_place(pairs: Sequence[InterfacePair]) -> dict[str, str]:
    """The interfaces of these pairs: left, right, left-2, right-2, ..."""
    return {
        place_of(side, number): name
        for number, pair in enumerate(pairs)
        for side, name in zip(SIDES, pair, strict=True)
    }


def is_of_side(place: str, side: SideName) -> bool:
    """Whether the place is one of that side."""
    return place.partition("-")[0] == side
