# SPDX-License-Identifier: Apache-2.0
"""How often `find_levels` finds what is not there, and what is: over seeded series, so the same each time.

`python -m tests.analysis.alarm_rates` prints the two tables of docs/explanation/trends.md.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from evenhand.analysis.medians import FEWEST_RUNS, find_levels

SEEDS = 200
NOISE = 0.01
"""Relative standard deviation between runs."""
STEP = 0.95
LENGTHS = (6, 10, 20, 40)
PLACES = ((5, 5), (10, 10), (18, 2), (17, 3))
"""Runs before and after the step."""
NOISES = (0.005, 0.01, 0.02)
Kind = Callable[[random.Random, int], list[float]]


def independent(draw: random.Random, count: int) -> list[float]:
    """Normal, with deviation 1."""
    return [draw.gauss(0, 1) for _ in range(count)]


def heavy(draw: random.Random, count: int) -> list[float]:
    """Student's t with three degrees of freedom, with deviation 1: now and then one is far away."""
    return [
        draw.gauss(0, 1) / math.sqrt(sum(draw.gauss(0, 1) ** 2 for _ in range(3)) / 3) / math.sqrt(3)
        for _ in range(count)
    ]


def correlated(draw: random.Random, count: int) -> list[float]:
    """Each is drawn towards the one before by 0.4; deviation 1."""
    found = [draw.gauss(0, 1)]
    while len(found) < count:
        found.append(0.4 * found[-1] + math.sqrt(1 - 0.4**2) * draw.gauss(0, 1))
    return found


KINDS: dict[str, Kind] = {
    "independent, normal": independent,
    "heavy tails": heavy,
    "correlated by 0.4": correlated,
}


def alarms(kind: Kind, count: int) -> int:
    """In how many of `SEEDS` series of noise alone a change is found."""
    return sum(len(find_levels(_series(kind, count, seed, NOISE)).groups) > 1 for seed in range(SEEDS))


def alarms_on_any_night(kind: Kind) -> int:
    """The same of series that grow from the fewest runs to the longest of `LENGTHS`, and are looked at each
    night: those with a change on any of them."""
    longest = LENGTHS[-1]
    return sum(
        any(len(find_levels(values[:night]).groups) > 1 for night in range(FEWEST_RUNS, longest + 1))
        for values in (_series(kind, longest, seed, NOISE) for seed in range(SEEDS))
    )


def detections(before: int, after: int, noise: float) -> tuple[int, int]:
    """In how many of `SEEDS` series a fall of 5 % is found at the right run, and at that or one
    beside it."""
    exact = near = 0
    for seed in range(SEEDS):
        values = _series(independent, before + after, seed, noise)
        stepped = [value * (STEP if place >= before else 1) for place, value in enumerate(values)]
        begins = [group[0] for group in find_levels(stepped).groups[1:]]
        exact += begins == [before]
        near += len(begins) == 1 and abs(begins[0] - before) <= 1
    return exact, near


def _series(kind: Kind, count: int, seed: int, noise: float) -> list[float]:
    draw = random.Random(f"alarms {seed} {count}")
    return [1e6 * (1 + noise * each) for each in kind(draw, count)]


def alarm_rows() -> list[list[str]]:
    """The rows of the first table."""
    return [[str(count), *(_percent(alarms(kind, count)) for kind in KINDS.values())] for count in LENGTHS]


def any_night_row() -> list[str]:
    """The last row of the first table."""
    return [
        f"{LENGTHS[0]} to {LENGTHS[-1]}, each night",
        *(_percent(alarms_on_any_night(kind)) for kind in KINDS.values()),
    ]


def detection_rows() -> list[list[str]]:
    """The rows of the second table."""
    return [
        [str(before), str(after), *(" / ".join(map(_percent, detections(before, after, n))) for n in NOISES)]
        for before, after in PLACES
    ]


def _percent(count: int) -> str:
    return f"{100 * count / SEEDS:.1f} %"


if __name__ == "__main__":
    for row in [*alarm_rows(), any_night_row(), *detection_rows()]:
        print(f"| {' | '.join(row)} |")
