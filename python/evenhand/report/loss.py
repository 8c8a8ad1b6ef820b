# SPDX-License-Identifier: Apache-2.0
"""Station 10: frame loss over the load, for people."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.procedure import FrameLoss, LossOutcome, LossPoint
from evenhand.report.throughput import describe_limit, dut_lines, trials_lines
from evenhand.trial import join_directions

BAR_CELLS = 20


def loss_table(result: FrameLoss) -> Table:
    """A row for each load, as RFC 2544, 26.3 asks for: input rate in percent of the theoretical one, and loss
    in percent."""
    table = FittedTable("Frame loss rate")
    theoretical = result.profile.theoretical_fps
    of = "of the theoretical maximum" if theoretical else "of the maximum"
    for name in ("load per direction", of, "offered", "loss", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("trials", overflow="fold")
    for point in result.points:
        share = point.rate_fps / theoretical if theoretical else point.share
        offered = (
            max(trial.offered_fps for trial in point.trials)
            if point.trial is None
            else point.trial.offered_fps
        )
        table.add_row(
            f"{format_count(point.rate_fps)} fps",
            format_ratio(share),
            f"{format_count(offered)} fps",
            "-" if point.loss_ratio is None else format_ratio(point.loss_ratio),
            "-"
            if point.trial is None
            else " + ".join(format_count(d.lost_frames) for d in point.trial.directions.values()),
            ""
            if point.loss_ratio is None
            else "█" * max(round(point.loss_ratio * BAR_CELLS), int(point.loss_ratio > 0)),
            Text(_story(point)),
        )
    return table


def loss_lines(result: FrameLoss) -> list[str]:
    """What a reader must know of the table: conditions, how it ended, loads that the tester did not keep,
    deviations."""
    profile, goal = result.profile, result.goal
    lines = [
        f"Frame loss rate from {format_count(goal.max_fps)} fps per direction down in steps of"
        f" {format_ratio(goal.step)}, trials of"
        f" {format_duration(goal.duration_s)}; {profile.frames}, {profile.protocol}, {profile.address_words}"
        f" ({profile.plan.label}); theoretical limit {describe_limit(profile)}.",
        f"Outcome: {_describe(result)}.",
    ]
    if result.unmeasured:
        named = ", ".join(format_ratio(point.share) for point in result.unmeasured)
        lines.append(
            f"There was no valid trial at {named} of the maximum: the tester itself did"
            " not keep the load, which says nothing about the DUT."
        )
    lines += [*profile.sent_lines, *dut_lines(profile)]
    lines += trials_lines(result.trials)
    return lines + [deviation.line for deviation in result.deviations]


def _describe(result: FrameLoss) -> str:
    match result.outcome:
        case LossOutcome.LOSSLESS:
            return "two successive loads lost nothing"
        case LossOutcome.LOWEST_LOAD:
            return (
                "the lowest load was reached before two successive loads lost nothing; a smaller --step"
                " or a lower --maximum-rate extends the series"
            )
        case LossOutcome.STOPPED:
            return "stopped before the end"


def _story(point: LossPoint) -> str:
    invalid = sum(not trial.is_valid for trial in point.trials)
    repeated = f"{len(point.trials)}, {invalid} of them INVALID" if invalid else str(len(point.trials))
    reasons = (
        ""
        if point.trial is not None
        else "; ".join(reason.text for reason in join_directions(point.trials[-1].reasons))
    )
    return repeated + (f": {reasons}" if reasons else "")
