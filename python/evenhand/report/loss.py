# SPDX-License-Identifier: Apache-2.0
"""Station 10: frame loss over the load, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import LOSS, SHARE, WHOLE_FPS, format_count, format_duration, format_ratio
from evenhand.base.visible import visible
from evenhand.procedure import FrameLoss, LossOutcome
from evenhand.report.page_words import NONE
from evenhand.report.result_entry import ResultEntry, describe_conditions, table_of
from evenhand.results.loss import LossAtLoad
from evenhand.trial import TrialResult, join_directions

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
    points = [point for entry in entries for point in entry.found.points]
    is_theoretical = all(point.share_of_theoretical is not None for point in points)
    return table_of(
        ((entry.labels, _rows(entry, is_theoretical)) for entry in entries),
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
    outcome = entry.found.outcome
    lines = [f"Outcome: {OUTCOMES.get(outcome, visible(outcome))}."]
    unmeasured = [point for point in entry.found.points if point.loss_ratio is None]
    if unmeasured:
        named = ", ".join(format_ratio(point.share_of_maximum) for point in unmeasured)
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


def _rows(entry: ResultEntry, is_theoretical: bool) -> Iterator[list[str | Cell]]:
    points: Sequence[LossAtLoad] = entry.found.points
    numbers = [max(1, point.attempts) for point in points]
    # The document has the sum over the directions; each of them is in the trial that decided.
    has_trials = sum(numbers) == len(entry.trials)
    last = 0
    for point, attempts in zip(points, numbers, strict=True):
        last += attempts
        loss_ratio = point.loss_ratio
        yield [
            measured(point.intended_fps, WHOLE_FPS),
            measured(point.share_of_theoretical if is_theoretical else point.share_of_maximum, SHARE),
            measured(point.offered_fps, WHOLE_FPS),
            measured(loss_ratio, LOSS),
            NONE if loss_ratio is None else _lost(point, entry.trials[last - 1] if has_trials else None),
            "" if loss_ratio is None else "█" * _bar_cells(loss_ratio),
            _story(point),
        ]


def _bar_cells(loss_ratio: float) -> int:
    return max(round(min(loss_ratio, 1.0) * BAR_CELLS), int(loss_ratio > 0))


def _lost(point: LossAtLoad, trial: TrialResult | None) -> str:
    if trial is None:
        return format_count(point.lost_frames or 0)
    return " + ".join(format_count(direction.lost_frames) for direction in trial.directions.values())


def _story(point: LossAtLoad) -> str:
    invalid = point.attempts - (point.loss_ratio is not None)  # they go on until one is valid
    repeated = f"{point.attempts}, {invalid} of them INVALID" if invalid else str(point.attempts)
    reasons = "; ".join(visible(reason.text) for reason in join_directions(point.reasons))
    return repeated + (f": {reasons}" if reasons else "")
