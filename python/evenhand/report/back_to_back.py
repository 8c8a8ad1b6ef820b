# SPDX-License-Identifier: Apache-2.0
"""Station 10: back-to-back frames, for people: the table of RFC 9004, section 7."""

from __future__ import annotations

from rich.table import Table

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_duration
from evenhand.procedure import BackToBack, BackToBackTable
from evenhand.report.throughput import describe_limit, dut_lines, trials_lines
from evenhand.run.campaign_record import AT_LEAST
from evenhand.trial import join_directions

COLUMNS = (
    "octets",
    "average",
    "minimum",
    "maximum",
    "std. dev.",
    "corrected buffer time",
    "throughput",
    "repetitions",
)


def back_to_back_table(table: BackToBackTable) -> Table:
    """A row for each size; bursts in frames, per direction (R9004-11)."""
    shown = FittedTable("Back-to-back frames, per direction")
    for name in COLUMNS:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in table.rows:
        statistics = row.statistics
        bound = AT_LEAST if row.is_at_least else ""
        throughput_bound = AT_LEAST if row.throughput is not None and row.throughput.is_at_least else ""
        least, most = (None, None) if statistics is None else (statistics.minimum, statistics.maximum)
        figures = (row.average_frames, least, most, row.standard_deviation_frames)
        shown.add_row(
            str(row.profile.frame_size),
            *(("" if i == 3 else bound) + _frames(figure) for i, figure in enumerate(figures)),
            "-" if row.corrected_buffer_s is None else bound + format_duration(row.corrected_buffer_s),
            "-"
            if row.throughput_fps is None
            else f"{throughput_bound}{format_count(round(row.throughput_fps))} fps",
            "skipped" if row.skipped is not None else f"{len(row.values)} of {row.goal.repetitions}",
        )
    return shown


def back_to_back_lines(table: BackToBackTable) -> list[str]:
    """What a reader must know of the table: conditions, the search, what each size showed, deviations, each
    once."""
    profile, goal = table.rows[0].profile, table.rows[0].goal
    verified = (
        f", a burst with loss sent again up to {goal.loss_verifications} times (ETSI TST009 12.3)"
        if goal.loss_verifications
        else ""
    )
    lines = [
        f"{profile.protocol}, {profile.address_words} ({profile.plan.label}),"
        f" {' and '.join(profile.directions)}.",
        f"Binary search for the burst to {_counted(goal.step_frames, 'frame')}, bursts of up"
        f" to {format_duration(goal.max_burst_s)}; {goal.repetitions} repetitions{verified}. The"
        " benchmark is the average.",
    ]
    for row in table.rows:
        lines += _row_lines(row)
    if any(row.corrected_buffer_s is not None for row in table.rows):
        lines.append(
            "Implied buffer time: the duration of the average burst. Corrected: the implied time reduced"
            " by what was forwarded meanwhile."
        )
    lines += [*profile.sent_lines, *dut_lines(profile)]
    trials = [trial for row in table.rows for trial in row.trials]
    if trials:
        lines += trials_lines(trials, what="Bursts")
    return lines + [deviation.line for deviation in table.deviations]


def _row_lines(row: BackToBack) -> list[str]:
    head, goal = f"{row.profile.octets}:", row.goal
    lines = [
        f"{head} bursts at {format_count(goal.rate_fps)} fps per direction, at most"
        f" {format_count(goal.max_frames)} frames; theoretical limit {describe_limit(row.profile)}."
    ]
    if goal.throughput_source is not None:
        lines.append(f"{head} throughput as measured before, in {goal.throughput_source}.")
    if row.stopped_early is not None:
        lines.append(f"{head} {row.stopped_early}.")
    if row.implied_buffer_s is not None and row.corrected_buffer_s is not None:
        bound, actual = "at least " if row.is_at_least else "", ""
        if row.actual_buffer_s is not None and goal.actual_fps is not None:
            at_rate = bound + format_duration(row.actual_buffer_s)
            actual = f"; at {format_count(goal.actual_fps)} fps, the rate of interest, {at_rate}"
        implied, corrected = (
            bound + format_duration(time_s) for time_s in (row.implied_buffer_s, row.corrected_buffer_s)
        )
        lines.append(f"{head} buffer time implied {implied}, corrected {corrected}{actual}.")
    if row.longest_s > goal.max_burst_s:
        lines.append(
            f"{head} a result was close to the longest burst of"
            f" {format_duration(goal.max_burst_s)}, so bursts of up to"
            f" {format_duration(row.longest_s)} were tried (RFC 9004, 6.2)."
        )
    if row.is_near_maximum:
        lines.append(
            f"{head} a burst was close to the longest that was tried, so this may be the"
            " limit of the search and not of the DUT."
        )
    if row.late_frames:
        late = f"{_counted(row.late_frames, 'frame')} arrived after the residual wait and counted as lost"
        lines.append(f"{head} {late}: repeat with a longer --wait-residual.")
    if row.outcome == "tester_limit":
        reasons = "; ".join(reason.text for reason in join_directions(row.trials[-1].reasons))
        lines.append(f"{head} the last burst was INVALID: {reasons}.")
    return lines


def _frames(value: float | None) -> str:
    return "-" if value is None else format_count(round(value, 1))


def _counted(count: int, what: str) -> str:
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"
