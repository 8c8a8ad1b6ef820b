# SPDX-License-Identifier: Apache-2.0
"""Campaign records by hand: what a DUT would have shown, without measuring it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from evenhand.plan import ONE_EACH, Direction, SideCounts, make_plan
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState, Repetition
from evenhand.spec.request import HashType, Point

DOUBLING = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65533)
BOTH: tuple[Direction, ...] = ("forward", "reverse")
WHEN = "2026-11-22T08:00:00Z"
FIRST = datetime(2026, 11, 22, 8, tzinfo=UTC)
_RECORDS = count()
"""No two records are one run: each begins a millisecond after the last."""


def point(
    hosts: int,
    values: Sequence[float | None],
    *,
    suite: str = "direct",
    procedure: str = "throughput",
    plan: str = "direct-v4-net16",
    frame_size: int | str = 64,
    hash_type: HashType | None = "type1",
    plan_options: Mapping[str, Any] | None = None,
    goal: Mapping[str, Any] | None = None,
    asked: int | None = None,
    state: PointState | None = None,
    reason: str | None = None,
    directions: tuple[Direction, ...] = BOTH,
    testbed: str = "lab",
    maximum: float = math.inf,
    kept: Mapping[int, float] | None = None,
    failed: Mapping[int, float] | None = None,
    why_no_value: str | None = None,
) -> PointRecord:
    """A point whose repetitions ended with these values; None: with none. `maximum`: the highest load that
    was tried.

    `kept`: repetitions, by number, in which the tester kept no higher load than this. `failed`: at which load
    they failed, at least.
    """
    kept, failed = kept or {}, failed or {}
    has_value = any(value is not None for value in values)
    repetitions = tuple(
        Repetition(
            number=number,
            seed=number,
            procedure=procedure,
            testbed=testbed,
            started_at=WHEN,
            finished_at=WHEN,
            outcome=(
                "tester_ceiling"
                if value is None or number in kept
                else "at_or_above_maximum"
                if value >= maximum
                else "found"
            ),
            value=None if value is None else min(value, maximum, kept.get(number, math.inf)),
            result=(
                {"is_at_least": True}
                if number in kept
                else {"upper_fps_per_direction": failed[number]}
                if number in failed
                else None
            ),
            searches=(),
            reason=why_no_value if value is None else None,
        )
        for number, value in enumerate(values, start=1)
    )
    return PointRecord(
        point=Point(
            key=f"{suite}/{procedure}/{frame_size}/n={hosts}",
            suite=suite,
            number=0,
            procedure=procedure,
            plan=plan,
            plan_options=plan_options or {},
            hosts=SideCounts(hosts, hosts),
            networks=ONE_EACH,
            frame_size=frame_size,
            directions=directions,
            hash_type=hash_type,
            goal=goal or {},
            repetitions=len(values) if asked is None else asked,
        ),
        state=state
        or (PointState.MEASURED if has_value else PointState.NO_NUMBER if values else PointState.PENDING),
        reason=reason,
        hooks=(),
        repetitions=repetitions,
    )


def record(
    *points: PointRecord,
    name: str = "a",
    spec: Mapping[str, Any] | None = None,
    testbeds: Mapping[str, Mapping[str, Any]] | None = None,
    versions: Mapping[str, str] | None = None,
    host: Mapping[str, Any] | None = None,
) -> CampaignRecord:
    began = (FIRST + timedelta(milliseconds=next(_RECORDS))).isoformat(timespec="milliseconds")
    return CampaignRecord(
        path=Path(f"{name}.evenhand"),
        name=name,
        is_campaign=True,
        created_at=began.replace("+00:00", "Z"),
        finished_at=WHEN,
        commands=(("evenhand", "run"),),
        versions=versions or {"evenhand": "0.1.0"},
        host=host or {"cpu_model": "some"},
        spec=spec or {},
        testbeds=testbeds or {},
        points=tuple(
            replace(
                of,
                repetitions=tuple(
                    # Whoever says when it was measured is asking about that.
                    replace(one, started_at=began) if one.started_at == WHEN else one
                    for one in of.repetitions
                ),
            )
            for of in points
        ),
    )


def noisy(value: float, repetitions: int, noise: float, seed: int = 1) -> list[float]:
    """Values about this one; `noise` is the relative standard deviation."""
    draw = random.Random(f"{seed} {value} {repetitions}")
    return [value * (1 + draw.gauss(0, noise)) for _ in range(repetitions)]


def router_config(
    elements: int,
    hash_type: HashType = "type1",
    *,
    free_entries: int = 0,
    growth: float = 0.0,
    table: tuple[int, ...] = (),
) -> dict[str, Any]:
    """What a run file has of a reference router: 50 kfps an element."""
    from evenhand.predict import DeviceModel, NeighborCost
    from evenhand.reference import ReferenceDut

    dut = ReferenceDut(
        model=DeviceModel(elements=elements, hash_type=hash_type, rate_fps=50_000, table=table),
        neighbor_cost=NeighborCost(free_entries=free_entries, growth=growth) if free_entries else None,
    )
    config = dut.router_config(make_plan("direct-v4-net16"), {"left": "l", "right": "r"}, cpu=0)
    return {"kind": "reference", "version": "0.1.0", "config": config}
