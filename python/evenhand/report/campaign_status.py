# SPDX-License-Identifier: Apache-2.0
"""Station 10: how far a campaign is, and what it has found so far: for people, and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.base.table import Cell, Column, Table, make_table
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import WHOLE_FPS, format_count, format_duration
from evenhand.base.visible import visible
from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.page_words import measured_cells, time_share_cell
from evenhand.report.plain import WHY_BOUND
from evenhand.run import PointState
from evenhand.run.campaign_status import CampaignStatus, PointStatus
from evenhand.run.figures import RunningTrial
from evenhand.run.folder import resume_command
from evenhand.run.point_document import again_advice
from evenhand.trial import TIME_LEFT_OUT

SILENT_S = 10.0
"""It is written once a second, and a hook or an opening of the ports takes some."""


def format_figure(procedure: str, value: float) -> str:
    """A procedure's number with its unit."""
    figure = PROCEDURES[procedure].figure
    match figure.unit:
        case "s":
            return format_duration(value) if value else "0 s"
        case _:
            return show_value(value, figure)


def campaign_table(status: CampaignStatus) -> Table:
    """A row for each point: how many of its repetitions have a value, as in `evenhand show`, and its
    number."""
    has_left_out = any(point.time_left_out is not None for point in status.points)
    rows: Iterator[list[str | Cell]] = (
        [
            visible(point.point.key),
            f"{len(point.values)} of {point.point.repetitions}",
            *measured_cells(point, _kind(point)),
            format_count(point.trial_count),
            *([time_share_cell(point.time_left_out)] if has_left_out else []),
        ]
        for point in status.points
    )
    return make_table(
        # Keys are copied into --point of `evenhand show`.
        [
            Column("point", is_name=True),
            "#repetitions",
            "#result",
            "#minimum",
            "#maximum",
            "#trials",
            *(["#left out"] if has_left_out else []),
        ],
        rows,
        title=visible(f"{status.name}: rates are per direction"),
    )


def _kind(point: PointStatus) -> str:
    """Rates in full, as they may be copied."""
    unit = PROCEDURES[point.point.procedure].figure.unit
    return WHOLE_FPS if unit == "fps" else unit


def campaign_lines(status: CampaignStatus, left: TimeSpan) -> list[str]:
    """Points, trials, time left; and why points have no number."""
    done = status.count(PointState.MEASURED, PointState.NO_NUMBER)
    trials = sum(status.verdicts.values())
    counts = ", ".join(
        f"{format_count(status.verdicts.get(verdict, 0))} {verdict}"
        for verdict in ("PASS", "FAIL", "INVALID")
    )
    lines = [
        f"Points: {done} of {len(status.points)} have ended, {status.count(PointState.NO_NUMBER)} of them"
        " without a number."
    ]
    if (now := status.round) is not None:
        lines.append(
            f"Round {now.round} of {now.rounds} ({now.suite}): {now.points_done} of {now.point_count} points."
        )
    lines.append(f"Trials: {format_count(trials)} ({counts}).")
    of_all = _bounds_of_all(status)
    lines += of_all
    lines.append(_going_on(status, left))
    if status.running is not None:
        lines.append(_running(status.running))
    lines += [
        f"{point.point.key}: {line}."
        for point in status.points
        for line in _why(point, with_bounds=not of_all)
    ]
    lines += _again(status)
    lines += [f"Note: {note}." for note in status.notes]
    return [visible(line) for line in lines]


def campaign_document(status: CampaignStatus, left: TimeSpan) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "run": str(status.path),
        "name": status.name,
        "created_at": status.created_at,
        "finished_at": status.finished_at,
        "worker": status.worker,
        "left_s": left.stated_s,
        "left_most_s": left.stated_most_s,
        "round": None if status.round is None else status.round.to_document(),
        "running": None if status.running is None else _running_document(status.running),
        "trials": {"PASS": 0, "FAIL": 0, "INVALID": 0, **status.verdicts},
        "points_without_number": status.count(PointState.NO_NUMBER),
        "points": [
            {
                "key": point.point.key,
                "suite": point.point.suite,
                "procedure": point.point.procedure,
                "state": str(point.state),
                "reason": point.reason,
                "asked_repetitions": point.point.repetitions,
                "finished_repetitions": point.finished,
                "figure": PROCEDURES[point.point.procedure].figure.name,
                "unit": PROCEDURES[point.point.procedure].figure.unit,
                "values": list(point.values),
                "at_maximum": point.at_maximum,
                "at_tester_ceiling": point.at_tester_ceiling,
                "trials": point.trial_count,
                **({} if point.time_left_out is None else {TIME_LEFT_OUT: point.time_left_out.to_document()}),
            }
            for point in status.points
        ],
        "notes": list(status.notes),
    }


def _running(running: RunningTrial) -> str:
    trial = "" if running.trial is None else f", trial {running.trial}"
    where = f"Now: {running.point}, repetition {running.repetition}{trial}"
    silence = (
        f" There has been no sign of it for {format_duration(round(running.age_s))}."
        if running.age_s > SILENT_S
        else ""
    )
    if running.total_s <= 0:
        return f"{where}.{silence}"
    return (
        f"{where}: {running.phase}, {running.share:.0%} of the trial,"
        f" {_seconds(running.elapsed_s)} elapsed, {_seconds(running.left_s)} left.{silence}"
    )


def _seconds(time_s: float) -> str:
    return format_duration(round(time_s)) if time_s >= 0.5 else "0 s"


def _running_document(running: RunningTrial) -> dict[str, Any]:
    return {
        "point": running.point,
        "repetition": running.repetition,
        "trial": running.trial,
        "phase": running.phase,
        "percent": 100 * running.share,
        "elapsed_s": running.elapsed_s,
        "left_s": running.left_s,
        "total_s": running.total_s,
        "age_s": running.age_s,
    }


def _why(point: PointStatus, *, with_bounds: bool) -> list[str]:
    """Why it has no number, or fewer values than repetitions that have ended: a column of values alone shows
    neither. It also says what else its numbers do not show.

    Args:
        with_bounds: Say which values are lower bounds too.
    """
    reasons = list(point.remarks)
    if not with_bounds:
        return reasons
    of_maximum = point.at_maximum - point.at_tester_ceiling
    if point.at_tester_ceiling:
        reasons.append(
            f"{_bounds(point.at_tester_ceiling, len(point.values))}, because the tester could not keep a"
            " higher load"
        )
    if of_maximum:
        reasons.append(
            f"{_bounds(of_maximum, len(point.values))}, because the {_highest(point)} that was tried passed"
        )
    return reasons


def _highest(point: PointStatus) -> str:
    return "longest burst" if PROCEDURES[point.point.procedure].figure.unit == "frames" else "highest load"


def _bounds(count: int, of: int) -> str:
    if of == 1:
        return "its only number is a lower bound"
    if count == of:
        return f"all of its {of} numbers are lower bounds"
    return f"{count} of its {of} numbers {'is a lower bound' if count == 1 else 'are lower bounds'}"


def _bounds_of_all(status: CampaignStatus) -> list[str]:
    """A sentence if no number says where the DUT's limit is."""
    bounds = [is_bound for point in status.points for is_bound in point.lower_bounds]
    if not bounds or not all(bounds):
        return []
    of_tester = sum(point.at_tester_ceiling for point in status.points)
    why = (
        "the tester could not keep a higher load on this machine, or the host may have caused the loss there"
        if of_tester == len(bounds)
        else WHY_BOUND
    )
    return [f"Every number is a lower bound: {why}."]


def _again(status: CampaignStatus) -> list[str]:
    """How to repeat what may be repeated. Nothing is, before the campaign has ended."""
    advice = again_advice(
        status.path,
        undecided=sum(point.undecided for point in status.points),
        ended_early=sum(point.ended_early for point in status.points),
    )
    # Nothing is left of it but what may be repeated. One that was interrupted is resumed first.
    has_ended = status.worker is None and status.finished_at is not None
    return [f"{advice}."] if advice is not None and has_ended and not status.is_merged else []


def _going_on(status: CampaignStatus, left: TimeSpan) -> str:
    about = f"{left.words} left"
    if status.finished_at is not None:
        return f"Finished at {status.finished_at}."
    if status.worker is not None:
        return f"It is being measured by {status.worker}; {about}."
    return (
        f"It is not being measured now; {about}. Resume with:"
        f" {resume_command(status.path, Path(status.source))}"
    )
