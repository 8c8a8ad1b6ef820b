# SPDX-License-Identifier: Apache-2.0
"""Station 10: the trials of a search as a table: at the end of a command, and of what a run file has."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.report.plain import visible
from evenhand.run import StoredTrial
from evenhand.search import SearchTrial
from evenhand.trial import TrialResult, Verdict, join_directions


def describe_sending(result: TrialResult) -> str:
    """How long a trial sent, and how long it was to send if it was stopped early."""
    intended = format_duration(result.intended_duration_s)
    if result.stopped_early_s is None:
        return intended
    # Two digits: one that was stopped a little before its end did not send for all of its time.
    return f"{format_duration(float(f'{result.stopped_early_s:.2g}'))} of {intended}"


VERDICT_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.INVALID: "yellow"}
SHOWN_NOTES = ("mistranslated", "queue_filling")
"""Codes of the notes that say why frames were lost, though they are not reasons of the verdict."""


def trials_table(trials: Sequence[SearchTrial | StoredTrial], *, title: str | None = "Trials") -> Table:
    """Every trial in order: load, verdict, loss, and why."""
    table = FittedTable(title)
    for name in ("no.", "load per direction", "duration", "verdict", "loss", "lost", "p99 latency"):
        table.add_column(name, justify="left" if name == "verdict" else "right", no_wrap=True)
    table.add_column("what and why", overflow="fold")
    for trial in trials:
        result = trial.result
        table.add_row(
            str(trial.number),
            f"{format_count(result.intended_fps)} fps",
            describe_sending(result),
            Text(str(result.verdict), style=VERDICT_STYLES[result.verdict]),
            format_ratio(result.loss_ratio) if result.is_valid else "-",
            " + ".join(format_count(direction.lost_frames) for direction in result.directions.values()),
            _p99(result),
            Text(_story(trial)),
        )
    return table


def _p99(result: TrialResult) -> str:
    values = [d.latency.p99_ns for d in result.directions.values() if d.latency.p99_ns is not None]
    return format_duration(max(values) / 1e9) if values else "-"


def _story(trial: SearchTrial | StoredTrial) -> str:
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    remarks = [*trial.result.reasons, *(note for note in trial.result.notes if note.code in SHOWN_NOTES)]
    reasons = "; ".join(reason.text for reason in join_directions(remarks))
    return visible(f"{trial.purpose}{attempt}" + (f": {reasons}" if reasons else ""))
