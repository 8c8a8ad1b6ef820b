# SPDX-License-Identifier: Apache-2.0
"""How often noise alone makes a verdict, and how often a real effect is found. Needs no engine.

Each cell: SERIES series of a DUT that does not change, with normal noise, analysed as a campaign is. All that
is found is false: "biased", "shows more", a rise, a fall. The exit code is 1 if more than 5 % of the series
of a cell get a verdict on the choice of addresses that is false, or more than 5 % a false rise or fall; or
if more than 5 % of those in which one pair hides a little more than the tolerance are called not biased.
Beside them: series in which one address pair hides a share, and whether as many repetitions as "No verdict"
asks for give one. `false_verdicts.py 100 7` makes 100 series a cell, from seed 7. The same seed gives the
same result on any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from pieces import IS_SHORT, at_length, record

from evenhand.analysis.bias import bias_verdicts
from evenhand.analysis.whole import curves_of
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState, Repetition
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand

SERIES = at_length(400, 3)
SEED = 52
MOST = 0.05
REPETITIONS = range(2, 11)
NOISES = (0.01, 0.03, 0.05, 0.1)
"""Relative standard deviation of a repetition."""
POINTS = (3, 7, 17)
PLANS = ("gateway-v4", "direct-v4-net16")
AT_LIMIT = 0.0501
"""Just too much to be "Not biased"."""
HIDDEN = 0.2
"""Share that the pair hides in the series with an effect."""
EFFECT_NOISE = 0.03
EFFECT_REPETITIONS = (3, 4, 5, 6, 10)
OPEN = ("unknown", "not_much_lower")
"""Findings that do not say whether a DUT is biased."""
MUCH_HIDDEN = 0.2501
"""Just too much to be "Not strongly biased"."""
COMMON_NOISES = (0.03, 0.1)
"""Noise that all points of a round have in common."""
COMMON_REPETITIONS = (3, 5, 10)
COMMON_POINTS = (4, 7)
WHEN = "2026-01-01T00:00:00.000Z"
"""All at one time: no drift is looked for, which would withhold some of what is false."""


@lru_cache
def points_of(plan: str, count: int, repetitions: int) -> tuple[Any, ...]:
    """Points of a series that doubles the addresses a side."""
    suite = {
        "name": "a",
        "plan": plan,
        "hosts": [min(2**n, 65533) for n in range(count)],
        "repetitions": repetitions,
    }
    document = {"name": "verdicts", "seed": 1, "suite": [suite]}
    return tuple(expand(make_campaign(document, where="false_verdicts.py")).points)


def measured(plan: str, values: Sequence[Sequence[float]], *, in_rounds: bool = False) -> CampaignRecord:
    """A campaign that found these values, by point and repetition; one after the other in rounds, or all at
    one time."""
    points = points_of(plan, len(values), len(values[0]))
    return CampaignRecord(
        path=Path("verdicts.evenhand"),
        name="verdicts",
        is_campaign=True,
        created_at=WHEN,
        finished_at=WHEN,
        commands=(),
        versions={},
        host={},
        spec={},
        testbeds={},
        points=tuple(
            PointRecord(
                point=point,
                state=PointState.MEASURED,
                reason=None,
                hooks=(),
                repetitions=tuple(
                    Repetition(
                        number=number,
                        seed=number,
                        testbed="t",
                        started_at=f"2026-01-01T00:{number:02}:{place:02}.000Z" if in_rounds else WHEN,
                        finished_at=WHEN,
                        outcome="found",
                        value=value,
                        result=None,
                        searches=(),
                    )
                    for number, value in enumerate(of_point, start=1)
                ),
            )
            for place, (point, of_point) in enumerate(zip(points, values, strict=True))
        ),
    )


def found_in(plan: str, values: Sequence[Sequence[float]], *, in_rounds: bool = False) -> dict[str, Any]:
    """Finding of the verdict, whether a rise or a fall was seen, and how many repetitions more would
    decide."""
    campaign = measured(plan, values, in_rounds=in_rounds)
    curves = curves_of(campaign)
    (verdict,) = bias_verdicts(campaign, curves)
    shape = curves[0].shape
    assert shape is not None
    return {
        "finding": verdict.finding,
        "is_rise": shape.rise_end is not None,
        "is_fall": shape.falls_above is not None,
        "more": verdict.more_repetitions,
    }


def draw_series(
    draw: Random, *, points: int, repetitions: int, noise: float, hidden: float = 0.0
) -> list[list[float]]:
    levels = [1e6 * (1 - hidden), *[1e6] * (points - 1)]
    return [[level * max(0.0, 1 + draw.gauss(0, noise)) for _ in range(repetitions)] for level in levels]


def unchanging(
    plan: str, points: int, repetitions: int, noise: float, *, series: int, seed: int
) -> dict[str, Any]:
    """Shares of false verdicts of one cell."""
    draw = Random(f"{seed} {plan} {points} {repetitions} {noise}")
    counts = dict.fromkeys(
        ("hides", "shows_more", "same", "not_lower", "not_much_lower", "unknown", "verdict", "shape"), 0
    )
    for _ in range(series):
        found = found_in(plan, draw_series(draw, points=points, repetitions=repetitions, noise=noise))
        counts[found["finding"]] += 1
        counts["verdict"] += found["finding"] in ("hides", "shows_more")
        counts["shape"] += found["is_rise"] or found["is_fall"]
    shares = {name: count / series for name, count in counts.items()}
    return {"plan": plan, "points": points, "repetitions": repetitions, "noise": noise, **shares}


def with_effect(points: int, repetitions: int, noise: float, *, series: int, seed: int) -> dict[str, Any]:
    """Shares of series in which one pair hides HIDDEN, by what was found."""
    draw = Random(f"{seed} effect {points} {repetitions} {noise}")
    counts = {"hides": 0, "rise": 0, "shows_more": 0, "same": 0, "not_lower": 0, "not_much_lower": 0}
    for _ in range(series):
        values = draw_series(draw, points=points, repetitions=repetitions, noise=noise, hidden=HIDDEN)
        found = found_in(PLANS[0], values)
        counts["rise"] += found["is_rise"]
        if found["finding"] in counts:
            counts[found["finding"]] += 1
    shares = {name: count / series for name, count in counts.items()}
    return {"points": points, "repetitions": repetitions, "noise": noise, "hidden": HIDDEN, **shares}


def unbiased_share(hidden: float, repetitions: int, noise: float, *, series: int, seed: int) -> float:
    """The share of series, of a DUT of which one pair hides so much, that are called "Not biased"."""
    draw = Random(f"{seed} unbiased {hidden} {repetitions} {noise}")
    found = [
        found_in(PLANS[0], draw_series(draw, points=7, repetitions=repetitions, noise=noise, hidden=hidden))
        for _ in range(series)
    ]
    return sum(each["finding"] in ("same", "not_lower") for each in found) / series


def with_common_noise(
    hidden: float, points: int, repetitions: int, common: float, *, series: int, seed: int
) -> dict[str, Any]:
    """Shares of findings where the points of a round have a part of their noise in common, which is a drift
    of the DUT and is taken out."""
    draw = Random(f"{seed} common {hidden} {points} {repetitions} {common}")
    kinds = ("hides", "shows_more", "same", "not_lower", *OPEN)
    noise = NOISES[-1] if hidden == MUCH_HIDDEN else EFFECT_NOISE
    counts = dict.fromkeys(kinds, 0)
    for _ in range(series):
        values = draw_series(draw, points=points, repetitions=repetitions, noise=noise, hidden=hidden)
        levels = [max(0.1, 1 + draw.gauss(0, common)) for _ in range(repetitions)]
        shared = [[value * level for value, level in zip(each, levels, strict=True)] for each in values]
        counts[found_in(PLANS[0], shared, in_rounds=True)["finding"]] += 1
    shares = {kind: count / series for kind, count in counts.items()}
    wrong = {
        0.0: shares["hides"] + shares["shows_more"],
        AT_LIMIT: shares["same"] + shares["not_lower"] + shares["shows_more"],
        MUCH_HIDDEN: sum(shares[kind] for kind in kinds if kind not in ("hides", "unknown")),
    }[hidden]
    return {
        "hidden": hidden,
        "points": points,
        "repetitions": repetitions,
        "noise": noise,
        "common": common,
        "wrong": wrong,
        **shares,
    }


def asked_for(hidden: float, repetitions: int, noise: float, *, series: int, seed: int) -> dict[str, Any]:
    """For the series without a verdict, how many repetitions more they ask for, and what comes of so many."""
    draw = Random(f"{seed} asked {hidden} {repetitions} {noise}")
    asked: list[int] = []
    decided = wrong = 0
    for _ in range(series):
        values = draw_series(draw, points=7, repetitions=repetitions, noise=noise, hidden=hidden)
        first = found_in(PLANS[0], values)
        if first["finding"] not in OPEN or first["more"] is None:
            continue
        asked.append(first["more"])
        further = draw_series(draw, points=7, repetitions=first["more"], noise=noise, hidden=hidden)
        again = found_in(PLANS[0], [a + b for a, b in zip(values, further, strict=True)])
        decided += again["finding"] not in OPEN
        wrong += again["finding"] not in (*OPEN, *(("hides",) if hidden else ("same", "not_lower")))
    return {
        "hidden": hidden,
        "repetitions": repetitions,
        "noise": noise,
        "asked_share": len(asked) / series,
        "median_more": median(asked) if asked else None,
        "decided_of_asked": decided / len(asked) if asked else None,
        "wrong_share": wrong / series,
    }


def main() -> int:
    series, seed = (int(sys.argv[i]) if len(sys.argv) > i else value for i, value in ((1, SERIES), (2, SEED)))
    cells = []
    print(
        f"{series} series a cell that do not change: false verdicts, false rise or fall; not biased;"
        " no verdict"
    )
    for repetitions in REPETITIONS:
        for noise in NOISES:
            for points in POINTS:
                for plan in PLANS:
                    cell = unchanging(plan, points, repetitions, noise, series=series, seed=seed)
                    cells.append(cell)
                    print(
                        f"{repetitions:2} repetitions, noise {noise:4.0%}, {points:2} points, {plan:15}:"
                        f" {cell['verdict']:6.1%} {cell['shape']:6.1%} {cell['same']:6.1%}"
                        f" {cell['unknown']:6.1%}",
                        flush=True,
                    )
    effects = [
        with_effect(points, repetitions, EFFECT_NOISE, series=series, seed=seed)
        for repetitions in EFFECT_REPETITIONS
        for points in POINTS
    ]
    for cell in effects:
        print(
            f"one pair hides {HIDDEN:.0%}, noise {EFFECT_NOISE:.0%}, {cell['repetitions']:2} repetitions,"
            f" {cell['points']:2} points: biased {cell['hides']:6.1%}, a rise {cell['rise']:6.1%}"
        )
    asked = [
        asked_for(hidden, repetitions, noise, series=max(series // 4, 3), seed=seed)
        for hidden in (0.0, 0.1, HIDDEN)
        for noise in (0.01, 0.03, 0.05)
        for repetitions in (2, 3, 5)
    ]
    for row in asked:
        if row["asked_share"]:
            print(
                f"one pair hides {row['hidden']:.0%}, noise {row['noise']:.0%}, {row['repetitions']}"
                f" repetitions: {row['asked_share']:.0%} without a verdict ask for {row['median_more']:.0f}"
                f" more (median), which give {row['decided_of_asked']:.0%} of them one,"
                f" {row['wrong_share']:.1%} of all a wrong one"
            )
    unbiased = [
        {
            "repetitions": repetitions,
            "noise": noise,
            "share": unbiased_share(AT_LIMIT, repetitions, noise, series=series, seed=seed),
        }
        for repetitions in REPETITIONS
        for noise in NOISES
    ]
    for row in unbiased:
        print(
            f"one pair hides {AT_LIMIT:.2%}, noise {row['noise']:.0%}, {row['repetitions']:2} repetitions:"
            f" {row['share']:.1%} are called not biased"
        )
    in_common = [
        with_common_noise(hidden, points, repetitions, common, series=series, seed=seed)
        for hidden in (0.0, AT_LIMIT, MUCH_HIDDEN)
        for points in COMMON_POINTS
        for repetitions in COMMON_REPETITIONS
        for common in COMMON_NOISES
    ]
    for row in in_common:
        print(
            f"one pair hides {row['hidden']:.2%}, noise {row['noise']:.0%} and {row['common']:.0%} in common,"
            f" {row['repetitions']:2} repetitions, {row['points']} points: {row['wrong']:.1%} wrong verdicts,"
            f" {row['unknown']:.0%} none"
        )
    wrong = [
        *(row for row in in_common if row["wrong"] > MOST),
        *(cell for cell in cells if max(cell["verdict"], cell["shape"]) > MOST),
        *(row for row in unbiased if row["share"] > MOST),
    ]
    worst = max(max(cell["verdict"], cell["shape"]) for cell in cells)
    found = min(cell["hides"] for cell in effects if cell["repetitions"] >= 4)
    record(
        "false_verdicts",
        {
            "series_per_cell": series,
            "seed": seed,
            "cells": cells,
            "effects": effects,
            "at_limit": unbiased,
            "in_common": in_common,
            "asked": asked,
        },
        {
            "cells with too many false verdicts": len(wrong),
            "share of false verdicts in the worst cell": worst,
            f"share of {HIDDEN:.0%} hidden found with 4 repetitions or more, least": found,
        },
    )
    count = len(cells) + len(unbiased) + len(in_common)
    print(
        f"false_verdicts: {count - len(wrong)} of {count} cells within {MOST:.0%}, the worst"
        f" {worst:.1%}" + "".join(f"; not: {cell}" for cell in wrong)
    )
    return 1 if wrong and not IS_SHORT else 0


if __name__ == "__main__":
    sys.exit(main())
