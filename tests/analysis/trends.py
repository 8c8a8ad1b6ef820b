# SPDX-License-Identifier: Apache-2.0
"""Nights of runs by hand, with the noise of real ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from evenhand.analysis.trend import trend
from evenhand.analysis.trend_model import PointTrend, Trend
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from tests.analysis.records import point, record

FIRST_NIGHT = datetime(2026, 10, 1, 2, 0, tzinfo=UTC)
REPETITIONS = 5
WITHIN = 0.003
"""Noise of the repetitions of a run, as a share: less than that between runs."""


def bed(kernel: str = "6.1.0-29", **dut: str) -> dict[str, dict[str, Any]]:
    """What a run file has of a testbed."""
    facts = {"machine": "some router", "cpu_model": "a CPU", "system": "Debian 12", "kernel": kernel, **dut}
    return {"lab": {"dut": facts, "tester": {"machine": "some tester", "cpu_model": "another CPU"}}}


def night(
    number: int, *points: PointRecord, testbeds: Mapping[str, Mapping[str, Any]] | None = None
) -> CampaignRecord:
    """A run of the night with this number, from 0."""
    made = record(*points, name=f"night-{number:03}", testbeds=bed() if testbeds is None else testbeds)
    when = (FIRST_NIGHT + timedelta(days=number)).isoformat(timespec="milliseconds")
    return replace(made, created_at=when.replace("+00:00", "Z"))


def repeated(value: float, draw: random.Random, repetitions: int = REPETITIONS) -> list[float]:
    return [value * (1 + draw.gauss(0, WITHIN)) for _ in range(repetitions)]


def nights(
    levels: Sequence[float | None], *, noise: float = 0.01, seed: int = 1, **of_point: Any
) -> list[CampaignRecord]:
    """A run for each level, of one point: the level times the noise of its night; None: no number.

    Args:
        noise: Relative standard deviation from night to night.
    """
    draw = random.Random(f"nights {seed}")
    made = []
    for number, level in enumerate(levels):
        shift = 1 + draw.gauss(0, noise)
        values: list[float | None] = [None] if level is None else [*repeated(level * shift, draw)]
        made.append(night(number, point(16, values, **of_point)))
    return made


def trend_of(
    levels: Sequence[float | None], *, noise: float = 0.01, seed: int = 1, **of_point: Any
) -> PointTrend:
    """The one point of `nights`."""
    (found,) = trend(nights(levels, noise=noise, seed=seed, **of_point)).points
    return found


def changes_at(found: PointTrend) -> list[int]:
    """The first run of each new level."""
    return [change.run for change in found.changes]


def share(holds: Callable[[int], bool], seeds: int) -> float:
    """The share of so many seeded series for which it holds."""
    return sum(holds(seed) for seed in range(seeds)) / seeds


def example_trend(nights_count: int = 40) -> Trend:
    """What a page of a month shows: IPv4 and IPv6, a fall with a new kernel, a stray, a gap, lower bounds."""
    draw = random.Random("example")
    made = []
    for number in range(nights_count):
        is_new = number >= nights_count * 5 // 8
        fall = 0.952 if is_new else 1.0
        rise = 1.07 if number >= nights_count // 4 else 1.0
        stray = 0.9 if number == nights_count // 2 else 1.0

        def values(level: float) -> list[float | None]:
            return [*repeated(level * (1 + draw.gauss(0, 0.006)), draw)]

        gap: list[float | None] = [None]
        points = [
            point(1, values(152_000.0), plan="gateway-v4", suite="IPv4"),
            point(
                65534,
                gap if number in (5, 6) else values(1_210_000 * rise * stray),
                plan="gateway-v4",
                suite="IPv4",
                reason="hook failed" if number in (5, 6) else None,
            ),
            point(1, values(149_000.0), plan="gateway-v6", frame_size=84, suite="IPv6"),
            point(65536, values(1_180_000 * fall), plan="gateway-v6", frame_size=84, suite="IPv6"),
            point(
                65536, values(500_000.0), plan="gateway-v6", frame_size=1518, suite="IPv6", maximum=497_000.0
            ),
            point(
                16, values(42.0 / fall), plan="gateway-v6", frame_size=84, procedure="latency", suite="IPv6"
            ),
        ]
        kernel = "6.1.0-30-amd64" if is_new else "6.1.0-29-amd64"
        made.append(night(number, *points, testbeds=bed(kernel)))
    return trend(made)
