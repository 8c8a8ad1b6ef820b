# SPDX-License-Identifier: Apache-2.0
"""How often the interval of a ratio covers the truth, and how wide it is beside the quotient of two medians'
intervals. Needs no engine.

Each cell: PAIRS pairs of samples of one distribution, apart by a known factor. The same seed gives the same
result on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from pieces import at_length, record

from evenhand.analysis.ranks import ratio_interval
from evenhand.procedure.statistics import median_interval

PAIRS = at_length(8_000, 10)
FACTOR = 1.03
NOISE = 0.01
SEED = 28
SIZES = ((4, 4), (5, 10), (10, 10), (10, 50), (20, 20))
"""Repetitions above and below the line; 10 and 50 are one point against a plateau of five."""
BRACKET = 0.005
"""The default precision of a search."""
WITHIN = 0.01
"""How far coverage may be from its stated level."""

DRAWS: dict[str, Callable[[Random], float]] = {
    "normal": lambda draw: draw.gauss(0, NOISE),
    "skewed": lambda draw: NOISE * draw.expovariate(1),
    "two modes": lambda draw: draw.gauss(0, NOISE) + (5 * NOISE if draw.random() < 0.4 else 0),
}
"""The logarithm of a value over that of its level."""


def cell(
    draw: Random, noise: Callable[[Random], float], above_count: int, below_count: int
) -> dict[str, Any]:
    """Coverage and mean widths of one kind of noise and two sizes of samples."""
    covered = of_medians_covered = 0
    width = of_medians_width = level = of_medians_level = 0.0
    for _ in range(PAIRS):
        above = [1000 * FACTOR * math.exp(noise(draw)) for _ in range(above_count)]
        below = [1000 * math.exp(noise(draw)) for _ in range(below_count)]
        interval = ratio_interval(above, below)
        upper, lower = median_interval(sorted(above)), median_interval(sorted(below))
        assert interval is not None
        low, high = upper.low / lower.high, upper.high / lower.low
        covered += interval.low <= FACTOR <= interval.high
        of_medians_covered += low <= FACTOR <= high
        width += interval.high - interval.low
        of_medians_width += high - low
        level, of_medians_level = interval.level, upper.level * lower.level
    return {
        "level": level,
        "coverage": covered / PAIRS,
        "mean_width": width / PAIRS,
        "of_medians": {
            "level": of_medians_level,
            "coverage": of_medians_covered / PAIRS,
            "mean_width": of_medians_width / PAIRS,
        },
        "width_to_of_medians": width / of_medians_width,
    }


def searched(draw: Random) -> dict[str, Any]:
    """Ten repetitions each of searches that stop within BRACKET: with the brackets, and with the lower ends
    taken for exact."""
    with_brackets = without = 0
    for _ in range(PAIRS):
        limits = [
            [fps * math.exp(draw.gauss(0, NOISE / 10)) for _ in range(10)] for fps in (1000 * FACTOR, 1000)
        ]
        # The searches of all repetitions of a point end at the same loads; those of the two points do not lie
        # alike.
        (above, above_uppers), (below, below_uppers) = (_ends(values, draw.random()) for values in limits)
        widened = ratio_interval(above, below, above_uppers=above_uppers, below_uppers=below_uppers)
        exact = ratio_interval(above, below)
        assert widened is not None
        assert exact is not None
        with_brackets += widened.low <= FACTOR <= widened.high
        without += exact.low <= FACTOR <= exact.high
        level = widened.level
    return {
        "precision": BRACKET,
        "noise": NOISE / 10,
        "level": level,
        "coverage": with_brackets / PAIRS,
        "coverage_without": without / PAIRS,
    }


def _ends(limits: list[float], offset: float) -> tuple[list[float], list[float]]:
    """Highest load that passes and lowest that fails, on a grid of loads BRACKET apart."""
    step = -math.log(1 - BRACKET)
    places = [math.floor(math.log(limit) / step - offset) + offset for limit in limits]
    return [math.exp(place * step) for place in places], [math.exp((place + 1) * step) for place in places]


def main() -> None:
    draw = Random(SEED)
    cells = {}
    for name, noise in DRAWS.items():
        for above, below in SIZES:
            found = cells[f"{name}, {above} and {below}"] = cell(draw, noise, above, below)
            print(
                f"{name:10} {above:3} and {below:3}: level {found['level']:.4f}, coverage"
                f" {found['coverage']:.4f}; of two medians"
                f" {found['of_medians']['coverage']:.4f}; width {found['width_to_of_medians']:.2f} of theirs"
            )
    of_searches = searched(draw)
    print(
        f"searches to {BRACKET:.1%}, 10 and 10: level {of_searches['level']:.4f}, coverage"
        f" {of_searches['coverage']:.4f};"
        f" {of_searches['coverage_without']:.4f} without the brackets"
    )
    off = {name: found for name, found in cells.items() if abs(found["coverage"] - found["level"]) > WITHIN}
    print(
        f"{len(cells) - len(off)} of {len(cells)} within {WITHIN} of their level"
        + "".join(f"; not: {name}" for name in off)
    )
    settings = {"pairs": PAIRS, "factor": FACTOR, "noise": NOISE, "seed": SEED}
    record(
        "ratio_coverage",
        {**settings, "cells": cells, "searches": of_searches, "cells_off": sorted(off)},
        {
            "cells further from their level than allowed": len(off),
            "coverage of searches": of_searches["coverage"],
        },
    )


if __name__ == "__main__":
    main()
