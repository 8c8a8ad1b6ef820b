# SPDX-License-Identifier: Apache-2.0
"""Campaign: what a campaign will send, and how long it should take, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand.base.time_span import TimeSpan
from evenhand.base.units import format_count
from evenhand.plan import ONE_EACH, Traffic, describe_mix, plan_warnings
from evenhand.rig import REFERENCE
from evenhand.run.campaign.events import jobs
from evenhand.run.campaign.time_left import ceiling_of, preparing_s, time_of
from evenhand.spec.frames import read_size
from evenhand.spec.points import CampaignPlan
from evenhand.spec.request import Point, goal_in_words, plan_of
from evenhand.trial import Deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineRow:
    """One point as it will be measured."""

    point: Point
    place: int
    """Place in the order of measuring, from 1."""
    traffic: Traffic
    """Addresses and UDP ports that are sent."""
    goal: str
    """The goal in words."""
    expected: TimeSpan
    """Expected time of all its repetitions."""

    @property
    def host_words(self) -> str:
        """`16 x 16`, of networks `253 x 253 in 256 x 256 networks`, of routes `1 x 16 routes`."""
        if self.point.routes is not None:
            return f"{self.point.routes} routes"
        left, right = (format_count(count) for count in self.point.hosts)
        if self.point.networks == ONE_EACH:
            return f"{left} x {right}"
        return (
            f"{left} x {right} in {' x '.join(format_count(count) for count in self.point.networks)} networks"
        )

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        point = self.point
        return {
            "place": self.place,
            "key": point.key,
            "suite": point.suite,
            "number": point.number,
            "procedure": point.procedure,
            "plan": point.plan,
            "plan_options": dict(point.plan_options),
            "hosts": list(point.hosts),
            **({} if point.routes is None else {"routes": list(point.routes)}),
            "networks": list(point.networks),
            "frame_size": point.frame_size,
            "mix": describe_mix(plan_of(point), read_size(point.frame_size)),
            "directions": list(point.directions),
            "hash_type": point.hash_type,
            "goal": dict(point.goal),
            "repetitions": point.repetitions,
            "sent": self.traffic.to_document(host_macs=point.goal["host-macs"]),
            "expected_s": self.expected.stated_s,
            "expected_most_s": self.expected.stated_most_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A whole campaign before it is measured."""

    plan: CampaignPlan
    rows: tuple[OutlineRow, ...]
    """Rows in the order of the file."""
    deviations: tuple[Deviation, ...]
    """Deviations that the file itself asks for."""
    notes: tuple[str, ...]
    """What may spoil results, or has to be done by hand."""

    @property
    def expected(self) -> TimeSpan:
        """Expected time of all points, and of what comes before them."""
        points = [row.point for row in self.rows]
        ceilings_s = sum(dict(ceiling_of(point) for point in points).values())
        before_s = preparing_s(points, finds_rules=self.plan.rules == "auto")
        return TimeSpan.sum(row.expected for row in self.rows).then(ceilings_s + before_s)

    @property
    def repetitions(self) -> int:
        """Number of repetitions of all points."""
        return sum(row.point.repetitions for row in self.rows)

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.plan.name,
            "testbed": self.plan.spec["testbed"],
            "seed": self.plan.seed,
            "round_order": self.plan.round_order,
            "points": [row.to_document() for row in self.rows],
            "repetitions": self.repetitions,
            "expected_s": self.expected.stated_s,
            "expected_most_s": self.expected.stated_most_s,
            "deviations": [deviation.to_document() for deviation in self.deviations],
            "notes": list(self.notes),
        }


def describe(
    plan: CampaignPlan, *, is_set_up: bool = False, left: Mapping[str, int] | None = None
) -> Outline:
    """Every point with what it will send, its place in the order of measuring, and the time that it should
    take.

    Args:
        is_set_up: The campaign sets up its DUT by itself.
        left: Repetitions that are left of each point, by its key, where the campaign goes on; a point that
            is not in it has none. None: it begins.
    """
    places: dict[str, int] = {}
    for job in jobs(plan):
        places.setdefault(job.point.key, len(places) + 1)
    rows = []
    ended = 0
    for point in plan.points:
        if left is not None:
            if not left.get(point.key):
                ended += 1
                continue
            point = replace(point, repetitions=left[point.key])
        traffic = Traffic(plan=plan_of(point), directions=point.directions)
        place = places[point.key]
        rows.append(
            OutlineRow(
                point=point, place=place, traffic=traffic, goal=goal_in_words(point), expected=time_of(point)
            )
        )
    return Outline(
        plan=plan,
        rows=tuple(rows),
        deviations=tuple(deviations_of(plan)),
        notes=(
            *([f"{ended} of {len(plan.points)} points have ended and are not shown"] if ended else []),
            *_notes(plan, is_set_up=is_set_up),
        ),
    )


def deviations_of(plan: CampaignPlan) -> list[Deviation]:
    """Deviations of the suites that have no point with a single address pair (SEED-02, SEED-85)."""
    suites = dict.fromkeys(point.suite for point in plan.points)
    over_routes = {point.suite for point in plan.points if point.routes is not None}
    with_one = {point.suite for point in plan.points if point.is_one_pair}
    return [
        Deviation(
            requirement="SEED-02",
            text=f"suite {suite!r} has no point with a single address pair"
            f" ({'a series over routes' if suite in over_routes else 'one-pair-first = false'})",
        )
        for suite in suites
        if suite not in with_one
    ]


def _notes(plan: CampaignPlan, *, is_set_up: bool) -> list[str]:
    notes = list(plan.notes)
    for suite in dict.fromkeys(point.suite for point in plan.points):
        of_suite = [point for point in plan.points if point.suite == suite]
        notes += [
            f"{suite}: {warning}"
            for warning in plan_warnings(plan_of(max(of_suite, key=lambda point: sum(point.hosts))))
        ]
    if is_set_up or plan.testbed == REFERENCE:
        return notes
    unhooked = [
        suite
        for suite, hooks in plan.suite_hooks.items()
        if hooks.before_suite is None and hooks.before_point is None
    ]
    settings: Mapping[tuple[str, str | None], str] = {
        (point.plan, point.hash_type): point.suite for point in plan.points if point.suite in unhooked
    }
    if len({(point.plan, point.hash_type) for point in plan.points}) > 1 and settings:
        wanted = ", ".join(
            f"{name}{f' with {hash_type}' if hash_type else ''}" for name, hash_type in settings
        )
        notes.append(
            f"The DUT must be set up differently during this campaign ({wanted}), but no"
            " hook does this: name a DUT that is set up over SSH in dut of the testbed file, or write"
            " before-suite or before-point commands, or a separate file for each set-up."
        )
    return notes
