# SPDX-License-Identifier: Apache-2.0
"""Measured values side by side: one unit and one number of decimals for all of a kind, so that a reader
compares them at a glance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SIGNIFICANT = 4
"""Digits that the smallest value keeps."""
MOST_DECIMALS = 6
"""Of a millisecond a nanosecond; of a percent a hundred-millionth."""
WHOLE_FPS = "whole fps"
"""Kind of loads that are shown in full, as `--rate` takes them."""
_SCALES: dict[str, Sequence[tuple[str, float]]] = {
    "fps": (("Gfps", 1e9), ("Mfps", 1e6), ("kfps", 1e3), ("fps", 1.0)),
    "us": (("ms", 1e3),),
    "s": (("s", 1.0),),
    "ratio": (("%", 0.01),),
    WHOLE_FPS: (("fps", 1.0),),
}
"""Kinds of values by the unit in which they are kept: units in which people read them, and their factors. Of
several the largest in which no value is below 1. Delays are read in milliseconds, as RFC 8219 asks."""


@dataclass(frozen=True, slots=True)
class OneUnit:
    """How all values of a kind are written."""

    unit: str
    factor: float
    """The unit in the unit in which values are kept."""
    decimals: int

    def write(self, value: float) -> str:
        """`5.200`, without the unit."""
        return f"{value / self.factor:,.{self.decimals}f}"


def one_unit(values: Iterable[float], kind: str) -> OneUnit:
    """
    Args:
        values: Without any the unit is the smallest.
        kind: The unit in which they are kept: fps, us, s, ratio, `WHOLE_FPS`; anything else is a count.
    """
    known = [abs(value) for value in values if math.isfinite(value)]
    above = [value for value in known if value]
    scales = _SCALES.get(kind, ((kind, 1.0),))
    least = min(above, default=0.0)
    # 999.96 kfps would be written as "1000.0 kfps": the next unit takes over where rounding does.
    unit, factor = next((scale for scale in scales if least >= scale[1] * 0.99995), scales[-1])
    if kind not in _SCALES or kind == WHOLE_FPS:
        return OneUnit(unit, factor, 0)
    places = SIGNIFICANT - 1 - math.floor(math.log10(least / factor)) if least else 0
    decimals = min(max(places, 0), MOST_DECIMALS)
    # Zeros that all of them would end in say nothing.
    while decimals and all(f"{value / factor:.{decimals}f}".endswith("0") for value in known):
        decimals -= 1
    return OneUnit(unit, factor, decimals)


def write_alone(value: float, kind: str) -> str:
    """One value with its unit, where it has no column: `5.2 kfps`, `0.0125 ms`."""
    unit = one_unit([value], kind)
    return f"{unit.write(value)} {unit.unit}".rstrip()
