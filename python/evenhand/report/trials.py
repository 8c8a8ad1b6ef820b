# SPDX-License-Identifier: Apache-2.0
"""Station 10: the trials of a search as a table: at the end of a command, and of what a run file has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenhand.base.one_unit import WHOLE_FPS
from evenhand.base.table import Cell, Column, Table, make_table, measured
from evenhand.base.units import format_count, format_duration, format_rate, format_ratio
from evenhand.report.page_words import NONE
from evenhand.report.plain import visible
from evenhand.run import StoredTrial
from evenhand.search import SearchTrial
from evenhand.trial import TrialResult, join_directions, show_share

SAME = 1.0005
"""A duration of three digits does not show more."""


def describe_sending(result: TrialResult) -> str:
    """How long a trial sent, and how long it was to send if it was stopped early or waited for clean time."""
    intended = format_duration(result.intended_duration_s)
    if result.stopped_early_s is None and result.sent_s <= result.intended_duration_s * SAME:
        return intended
    if result.sent_s > result.intended_duration_s:
        return f"{format_duration(float(f'{result.sent_s:.3g}'))} for {intended} of clean time"
    # Two digits: one that was stopped a little before its end did not send for all of its time.
    return f"{format_duration(float(f'{result.sent_s:.2g}'))} of {intended}"


SHOWN_NOTES = (
    "mistranslated",
    "queue_filling",
    "wrong_address",
    "wrong_port",
    "wrong_payload",
    "wrong_length",
    "corrupted",
    "returned",
)
"""Codes of the notes that say why frames were lost, though they are not reasons of the verdict."""


def trials_table(
    trials: Sequence[SearchTrial | StoredTrial],
    *,
    title: str = "Trials",
    loss_over_time: Callable[[TrialResult], Any] | None = None,
) -> Table:
    """Every trial in order: load, verdict, loss, and why.

    Args:
        loss_over_time: For a page: draws the loss of a trial. The table then also has the loads that were
            really offered, or says that they were the intended ones; and the share of the time that was left
            out, if any trial was judged by its clean time.
    """
    has_left_out = loss_over_time is not None and any(
        trial.result.is_judged_by_clean_time for trial in trials
    )
    is_exact = loss_over_time is None or all(
        format_rate(trial.result.offered_fps) == format_rate(trial.result.intended_fps) for trial in trials
    )
    titles: list[str | Column] = [
        "#no.",
        "#load per direction",
        *([] if is_exact else ["#offered"]),
        "#duration",
        *(["#left out"] if has_left_out else []),
        Column("verdict", is_name=True),
        "#loss",
        "#lost",
        "#p99 latency",
        "what and why",
    ]
    rows = (
        _row(trial, is_exact=is_exact, has_left_out=has_left_out, loss_over_time=loss_over_time)
        for trial in trials
    )
    caption = "" if loss_over_time is None or not is_exact else "All loads were offered as intended."
    return make_table(titles, rows, title=title, caption=caption)


def _row(
    trial: SearchTrial | StoredTrial,
    *,
    is_exact: bool,
    has_left_out: bool,
    loss_over_time: Callable[[TrialResult], Any] | None,
) -> list[str | Cell]:
    result, verdict = trial.result, str(trial.result.verdict)
    return [
        str(trial.number),
        measured(result.intended_fps, WHOLE_FPS),
        *([] if is_exact else [measured(result.offered_fps, WHOLE_FPS)]),
        describe_sending(result),
        *([_left_out(result)] if has_left_out else []),
        Cell(verdict, verdict),
        Cell(
            format_ratio(result.loss_ratio) if result.is_valid else NONE,
            spark="" if loss_over_time is None else loss_over_time(result),
        ),
        " + ".join(format_count(direction.lost_frames) for direction in result.directions.values()),
        _p99(result),
        _story(trial),
    ]


def _left_out(result: TrialResult) -> str:
    """Of a valid trial that was judged by its clean time."""
    share = result.left_out_share if result.is_valid else None
    return NONE if share is None else show_share(share)


def _p99(result: TrialResult) -> Cell:
    values = [d.latency.p99_ns for d in result.directions.values() if d.latency.p99_ns is not None]
    return measured(max(values) / 1e3 if values else None, "us")


def _story(trial: SearchTrial | StoredTrial) -> str:
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    remarks = [*trial.result.reasons, *(note for note in trial.result.notes if note.code in SHOWN_NOTES)]
    reasons = "; ".join(reason.text for reason in join_directions(remarks))
    return visible(f"{trial.purpose}{attempt}" + (f": {reasons}" if reasons else ""))
