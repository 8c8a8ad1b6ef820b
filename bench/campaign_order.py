# SPDX-License-Identifier: Apache-2.0
"""Whether the order of a campaign makes a verdict: the project's analysis of a DUT that drifts, and has no
effect of its addresses.

17 points of ten repetitions with 0.5 % noise, measured one after the other or in rounds. The exit code is 1
if more than 5 % of the campaigns in rounds get a wrong verdict of any kind. `campaign_order.py 30` makes 30
campaigns a cell.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pieces import record as keep

from evenhand.analysis import analyse
from evenhand.run.campaign.events import Job, jobs
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState, Repetition
from evenhand.spec.file import make_campaign
from evenhand.spec.points import CampaignPlan, expand

CAMPAIGNS = 150
REPETITIONS = 10
NOISE = 0.005
MOST = 0.05
KINDS = ("biased", "shows more", "rise", "fall")
ORDERS = ("one after the other", "rounds", "2 rounds")
Drift = Callable[[int, random.Random], list[float]]


def _walk(count: int, draw: random.Random) -> list[float]:
    """10 % after all of it (standard deviation)."""
    levels, level = [], 1.0
    for _ in range(count):
        level *= 1 + draw.gauss(0, 0.10 / count**0.5)
        levels.append(level)
    return levels


def _step(count: int, draw: random.Random) -> list[float]:
    """8 % less from some moment on."""
    at = draw.randrange(count)
    return [1.0 if i < at else 0.92 for i in range(count)]


def _two_levels(count: int, draw: random.Random) -> list[float]:
    """8 % less in stretches of about twenty repetitions."""
    levels, is_low = [], False
    for _ in range(count):
        is_low ^= draw.random() < 0.05
        levels.append(0.92 if is_low else 1.0)
    return levels


DRIFTS: dict[str, Drift] = {
    "none": lambda count, _: [1.0] * count,
    "warms up by 8 %": lambda count, _: [0.92 + 0.08 * min(1.0, 3 * i / count) for i in range(count)],
    "slows by 8 % at first": lambda count, _: [1 - 0.08 * min(1.0, 3 * i / count) for i in range(count)],
    "slows by 8 % in all": lambda count, _: [1 - 0.08 * i / count for i in range(count)],
    "random walk of 10 %": _walk,
    "step of 8 %": _step,
    "two levels, 8 % apart": _two_levels,
}


def make_plan(order: str, seed: int) -> CampaignPlan:
    """A campaign with the series of the draft."""
    rounds = {"rounds": 2} if order == "2 rounds" else {}
    suite = {
        "name": "a",
        "plan": "direct-v4-net16",
        "hosts": "doubling",
        "repetitions": REPETITIONS,
        **rounds,
    }
    return expand(make_campaign({"name": "order", "seed": seed, "suite": [suite]}, where="campaign_order.py"))


def measured(plan: CampaignPlan, order: str, drift: Drift, seed: int) -> CampaignRecord:
    """What the DUT would have shown."""
    draw = random.Random(seed)
    made: list[Job] = list(jobs(plan))
    if order == ORDERS[0]:
        places = {job.point.key: job.place.point for job in made if job.place.round == 1}
        made.sort(key=lambda job: (places[job.point.key], job.repetition))
    found: dict[str, list[Repetition]] = {}
    for second, (job, level) in enumerate(zip(made, drift(len(made), draw), strict=True)):
        when = f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000Z"
        value = 1e6 * level * (1 + draw.gauss(0, NOISE))
        found.setdefault(job.point.key, []).append(
            Repetition(
                number=job.repetition,
                seed=job.seed,
                testbed="t",
                started_at=when,
                finished_at=when,
                outcome="found",
                value=value,
                result=None,
                searches=(),
            )
        )
    return CampaignRecord(
        path=Path("order.evenhand"),
        name="order",
        is_campaign=True,
        created_at="",
        finished_at="",
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
                repetitions=tuple(sorted(found[point.key], key=lambda repetition: repetition.number)),
            )
            for point in plan.points
        ),
    )


def verdicts_of(record: CampaignRecord) -> dict[str, bool]:
    """Each of them wrong, since there is nothing to find; `withheld`: a drift was seen."""
    analysis = analyse(record)
    (curve,), (bias,) = analysis.curves, analysis.bias
    assert curve.shape is not None
    return {
        "biased": bias.finding == "hides",
        "shows more": bias.finding == "shows_more",
        "rise": curve.shape.rise_end is not None,
        "fall": curve.shape.falls_above is not None,
        "withheld": curve.drift is not None and curve.drift.is_seen,
    }


def simulate(order: str, drift: str, campaigns: int) -> dict[str, float]:
    """How often each verdict comes up, as a share."""
    counts = dict.fromkeys((*KINDS, "withheld"), 0)
    for seed in range(campaigns):
        for kind, is_so in verdicts_of(measured(make_plan(order, seed), order, DRIFTS[drift], seed)).items():
            counts[kind] += is_so
    return {kind: count / campaigns for kind, count in counts.items()}


def main() -> int:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS
    rows: list[dict[str, Any]] = []
    print(f"{'order':20} {'drift':22}" + "".join(f"{kind:>12}" for kind in (*KINDS, "withheld")))
    for order in ORDERS:
        for drift in DRIFTS:
            shares = simulate(order, drift, campaigns)
            rows.append({"order": order, "drift": drift, **shares})
            print(
                f"{order:20} {drift:22}" + "".join(f"{100 * share:10.1f} %" for share in shares.values()),
                flush=True,
            )
    wrong = [row for row in rows if row["order"] != ORDERS[0] and any(row[kind] > MOST for kind in KINDS)]
    keep(
        "campaign_order",
        {"campaigns_per_cell": campaigns, "repetitions": REPETITIONS, "noise": NOISE, "cells": rows},
        {"cells with too many false verdicts": len(wrong)},
    )
    print(
        "campaign_order: "
        + ("all right" if not wrong else f"WRONG: {[(row['order'], row['drift']) for row in wrong]}")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
