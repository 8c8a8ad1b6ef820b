# SPDX-License-Identifier: Apache-2.0
"""Campaign: what it reports while it runs, in addition to what its procedures report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evenhand.procedure import ProcedureEvent
from evenhand.run.campaign.jobs import Job, Place
from evenhand.run.campaign_record import HookRun
from evenhand.spec.point import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBegan:
    """A point is measured from now on: all of it, or what a round has of it."""

    point: Point
    place: Place | None = None
    """None: it cannot be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionBegan:
    """One of its repetitions is."""

    job: Job
    stored_trials: int
    """Trials that it has from before it was cut short; they are not made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionEnded:
    """It has ended, and is stored."""

    job: Job
    outcome: str
    value: float | None
    is_at_least: bool = False
    """The value is a lower bound."""
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEnded:
    """Nothing more will be measured of it."""

    point: Point
    reason: str | None
    """Why it ended before all its repetitions were made; None if they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEnded:
    """A command of the user's has ended."""

    hook: HookRun
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointArrived:
    """A point, or what one testbed had to measure of it, was measured elsewhere, and is stored."""

    point: Point
    testbed: str | None
    """None: it came to nothing."""
    reason: str | None
    """Why it gets no more repetitions."""
    durations_s: tuple[float, ...]
    """Durations of its repetitions, in s."""
    verdicts: Mapping[str, int]
    """Numbers of its trials by verdict."""
    testbed_count: int
    """Testbeds that measure at the same time."""


CampaignEvent = PointBegan | RepetitionBegan | RepetitionEnded | PointEnded | HookEnded | PointArrived
OnCampaignEvent = Callable[[CampaignEvent | ProcedureEvent], None]


def ignore(event: CampaignEvent | ProcedureEvent) -> None:
    """Ignore the event."""
