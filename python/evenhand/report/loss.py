# SPDX-License-Identifier: Apache-2.0
"""Station 10: frame loss over the load, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import LOSS, SHARE, WHOLE_FPS, format_count, format_duration, format_ratio
from evenhand.base.visible import visible
from evenhand.procedure import FrameLoss, LossOutcome
from evenhand.report.page_words import NONE
from evenhand.report.result_entry import (
    ResultEntry,
    describe_conditions,
    mappings,
    number,
    read_reasons,
    show,
    table_of,
    whole,
)
from evenhand.trial import TrialResult

BAR_CELLS = 20
OUTCOMES = {
    str(LossOutcome.LOSSLESS): "two successive loads lost nothing",
    str(LossOutcome.LOWEST_LOAD): (
        "the lowest load was reached before two successive loads lost nothing; a smaller --step"
        " or a lower --maximum-rate extends the series"
    ),
    str(LossOutcome.STOPPED): "stopped before the end",
}


def loss_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each load, as RFC 2544, 26.3 asks for: input rate in percent of the theoretical one, and loss
    in percent."""
    points = [point for entry in entries for point in mappings(entry.document, "points")]
    is_theoretical = all(number(point, "share_of_theoretical") is not None for point in points)
    share = "share_of_theoretical" if is_theoretical else "share_of_maximum"
    return table_of(
        ((entry.labels, _rows(entry, share)) for entry in entries),
        [
            "#load per direction",
            f"#{'of the theoretical maximum' if is_theoretical else 'of the maximum'}",
            "#offered",
            "#loss",
            "#lost",
            "",
            "trials",
        ],
        title="Frame loss rate",
    )


def loss_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: how it ended, loads that the tester did not keep."""
    outcome = str(entry.document.get("outcome"))
    lines = [f"Outcome: {OUTCOMES.get(outcome, visible(outcome))}."]
    unmeasured = [
        point for point in mappings(entry.document, "points") if number(point, "loss_ratio") is None
    ]
    if unmeasured:
        named = ", ".join(show(number(point, "share_of_maximum"), format_ratio) for point in unmeasured)
        lines.append(
            f"There was no valid trial at {named} of the maximum: the tester itself did"
            " not keep the load, which says nothing about the DUT."
        )
    return lines


def loss_conditions(result: FrameLoss) -> list[str]:
    """What was sent, and how fast."""
    goal = result.goal
    return [
        f"Frame loss rate from {format_count(goal.max_fps)} fps per direction down in steps of"
        f" {format_ratio(goal.step)}, trials of"
        f" {format_duration(goal.duration_s)}; {describe_conditions(result.profile)}."
    ]


def _rows(entry: ResultEntry, share: str) -> Iterator[list[str | Cell]]:
    points = mappings(entry.document, "points")
    numbers = [max(1, whole(point, "attempts")) for point in points]
    # The document has the sum over the directions; each of them is in the trial that decided.
    has_trials = sum(numbers) == len(entry.trials)
    last = 0
    for point, attempts in zip(points, numbers, strict=True):
        last += attempts
        loss_ratio = number(point, "loss_ratio")
        yield [
            measured(number(point, "intended_fps_per_direction"), WHOLE_FPS),
            measured(number(point, share), SHARE),
            measured(number(point, "offered_fps_per_direction"), WHOLE_FPS),
            measured(loss_ratio, LOSS),
            NONE if loss_ratio is None else _lost(point, entry.trials[last - 1] if has_trials else None),
            "" if loss_ratio is None else "█" * _bar_cells(loss_ratio),
            _story(point),
        ]


def _bar_cells(loss_ratio: float) -> int:
    return max(round(min(loss_ratio, 1.0) * BAR_CELLS), int(loss_ratio > 0))


def _lost(point: Mapping[str, Any], trial: TrialResult | None) -> str:
    if trial is None:
        return format_count(whole(point, "lost_frames"))
    return " + ".join(format_count(direction.lost_frames) for direction in trial.directions.values())


def _story(point: Mapping[str, Any]) -> str:
    attempts, has_loss = whole(point, "attempts"), number(point, "loss_ratio") is not None
    invalid = attempts - has_loss  # they go on until one is valid
    repeated = f"{attempts}, {invalid} of them INVALID" if invalid else str(attempts)
    reasons = read_reasons(point)
    return repeated + (f": {reasons}" if reasons else "")
