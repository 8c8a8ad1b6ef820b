# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a campaign will send, for people; fits 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from evenhand.base.table import Column, Table, make_table
from evenhand.base.terminal_table import Printable
from evenhand.base.units import format_count, format_duration

if TYPE_CHECKING:
    from evenhand.run.campaign.outline import Outline, OutlineRow

A_LONG_TIME_S = 600.0
"""From this time on, in s, seconds are not shown."""


def campaign_plan_report(outline: Outline) -> list[Printable]:
    """A table for each suite, in the order of measuring, with what its points have in common above it; then
    total, deviations, notes."""
    parts: list[Printable] = []
    in_order = sorted(outline.rows, key=lambda row: row.place)
    for suite in dict.fromkeys(row.point.suite for row in in_order):
        rows = [row for row in in_order if row.point.suite == suite]
        parts += [*(Text(line) for line in _suite_lines(suite, rows)), _table(rows), Text("")]
    return [*parts, *(Text(line) for line in campaign_plan_lines(outline))]


def campaign_plan_lines(outline: Outline) -> list[str]:
    """The lines below the tables."""
    points, repetitions = len(outline.rows), outline.repetitions
    order = (
        "in turn" if outline.plan.order == "in-turn" else "shuffled by the seed, single address pairs first"
    )
    return [
        f"{format_count(points)} {'point' if points == 1 else 'points'}, {format_count(repetitions)}"
        f" {'repetition' if repetitions == 1 else 'repetitions'}, seed {outline.plan.seed}, {order}.",
        f"Expected time: {_time(outline.expected_s)}, if no trial is repeated.",
        *(deviation.line for deviation in outline.deviations),
        *(f"Note: {note}" for note in outline.notes),
    ]


def _suite_lines(suite: str, rows: list[OutlineRow]) -> list[str]:
    largest = max(rows, key=lambda row: sum(row.point.hosts))
    goals = dict.fromkeys((row.point.procedure, row.goal) for row in rows)
    rounds = max(row.point.rounds for row in rows)
    in_rounds = (
        [
            f"  The repetitions are made in {rounds} rounds over all points; the order"
            " below is that of the first round."
        ]
        if rounds > 1 and len(rows) > 1
        else []
    )
    return [
        f"{suite}: {' and '.join(largest.point.directions)}",
        f"  {largest.traffic.lines()[0]}",
        *(f"  {procedure}: {goal}." for procedure, goal in goals),
        *in_rounds,
    ]


def _time(expected_s: float) -> str:
    return format_duration(round(expected_s / 60) * 60 if expected_s > A_LONG_TIME_S else round(expected_s))


def _table(rows: list[OutlineRow]) -> Table:
    """Columns in which all rows are alike except for what distinguishes them: place, point, repetitions,
    time."""
    has_hash = any(row.point.hash_type for row in rows)
    return make_table(
        [
            "#order",
            Column("procedure", is_name=True),
            "#octets",
            "#hosts",
            *([Column("hash", is_name=True)] if has_hash else []),
            "#times",
            "#expected",
        ],
        (
            [
                str(row.place),
                row.point.procedure,
                str(row.point.frame_size),
                row.host_words,
                *([row.point.hash_type or "-"] if has_hash else []),
                str(row.point.repetitions),
                _time(row.expected_s),
            ]
            for row in rows
        ),
    )
