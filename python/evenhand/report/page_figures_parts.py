# SPDX-License-Identifier: Apache-2.0
"""Station 10: what the pictures of a campaign take from its record, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from evenhand.report.page_points import trials_of
from evenhand.report.page_words import show_addresses, show_size
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord

T = TypeVar("T")
MOST_CURVES = 4
"""Most curves in one picture: as many as there are colours, markers and dashes. What is more goes into the
next picture."""


def suites_with(
    record: CampaignRecord, procedures: tuple[str, ...]
) -> Iterator[tuple[str, list[PointRecord]]]:
    """Suites with points of these procedures that have begun."""
    for suite in record.suites:
        found = [
            one
            for one in record.points
            if one.point.suite == suite and one.point.procedure in procedures and one.state != "pending"
        ]
        if found:
            yield suite, found


def point_label(found: PointRecord, among: Sequence[PointRecord]) -> str:
    """What distinguishes the point from the others of its suite."""
    points = [one.point for one in among]
    parts = [show_size(found.point)]
    if len({(p.hosts, p.networks) for p in points}) > 1:
        parts.append(show_addresses(found.point))
    if len({p.plan for p in points}) > 1:
        parts.append(found.point.plan)
    if len({p.procedure for p in points}) > 1:
        parts.append(found.point.procedure)
    return ", ".join(parts)


def results_of(found: PointRecord) -> list[Mapping[str, Any]]:
    """Results of the repetitions that have ended."""
    return [one.result for one in found.repetitions if one.finished_at is not None and one.result is not None]


def trials_of_point(found: PointRecord) -> Iterator[StoredTrial]:
    """Trials of all its repetitions."""
    for repetition in found.repetitions:
        yield from trials_of(repetition)


def theoretical_fps_of(found: PointRecord) -> float | None:
    """Per direction, as the results of the point state it."""
    return next(
        (
            fps
            for result in results_of(found)
            if (fps := result.get("theoretical_fps_per_direction")) is not None
        ),
        None,
    )


def in_parts(items: Sequence[T], most: int = MOST_CURVES) -> Iterator[Sequence[T]]:
    """As few parts as possible, and about equal: not four curves and one alone."""
    parts = -(-len(items) // most)
    for part in range(parts):
        yield items[part * len(items) // parts : (part + 1) * len(items) // parts]


def name_of(*parts: str | int) -> str:
    """The name of a file and of ids; the first of several parts has no number."""
    words = [str(part) for part in parts if part != 1]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
