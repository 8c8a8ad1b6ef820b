# SPDX-License-Identifier: Apache-2.0
"""Station 10: back-to-back frames, for people: the table of RFC 9004, section 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import MEAN_FRAMES, WHOLE_FPS, format_count, format_duration, format_ratio
from evenhand.base.validation.document import from_document
from evenhand.base.visible import visible
from evenhand.plan import describe_size
from evenhand.procedure import BackToBackTable, BurstIntervals
from evenhand.procedure.back_to_back_result import at_rate_s, corrected_s, sample_deviation
from evenhand.report.result_entry import (
    ResultEntry,
    describe_conditions,
    describe_limit,
    dut_lines,
    last_reasons,
    show,
    size_of,
    table_of,
    trials_lines,
    with_spaces,
)
from evenhand.results.bursts import BackToBackAsked, BackToBackFound, BurstFound, IntervalFound
from evenhand.results.throughput import ThroughputFound
from evenhand.run.campaign_record import AT_LEAST, TESTER_CEILING
from evenhand.search import Outcome
from evenhand.trial import TrialResult

IN_LINES = ("implied buffer time", "step", "longest burst tried")
"""Columns that a terminal does without: the lines below its table have the same."""
TIMES = (
    "Implied buffer time: the duration of the average burst. Corrected: the implied time reduced by what"
    " was forwarded meanwhile."
)


def back_to_back_table(entries: Sequence[ResultEntry], *, leave_out: Sequence[str] = ()) -> Table:
    """A row for each size; bursts in frames, per direction (R9004-11)."""
    return table_of(
        (({**size_of(entry.document), **entry.labels}, [_row(entry.found)]) for entry in entries),
        [
            "#average",
            "#minimum",
            "#maximum",
            "#std. dev.",
            "#corrected buffer time",
            "#implied buffer time",
            "#throughput",
            "#repetitions",
            "#step",
            "#longest burst tried",
        ],
        title="Back-to-back frames, per direction",
        caption=f"Bursts in frames per direction (RFC 9004). {TIMES}",
        fold=("step", "longest burst tried"),
        leave_out=leave_out,
    )


def join_bursts(
    bursts: Sequence[BackToBackFound], asked: Mapping[str, Any], before: ThroughputFound | None
) -> BackToBackFound | None:
    """The result of the verb: its run file has the longest burst of each repetition as a result of its own.
    None if these are whole results.

    Args:
        asked: The goal of the bursts, as its point has it.
        before: The throughput that was measured first; None if it was known from before.
    """
    goal = from_document(BackToBackAsked, asked, "points.document.goal")
    rate_fps = goal.rate_fps
    if not rate_fps or not bursts or any(burst.is_whole for burst in bursts):
        return None
    values = tuple(burst.longest_burst_frames for burst in bursts if burst.longest_burst_frames is not None)
    average = sum(values) / len(values) if values else None
    # A lower bound would make the corrected buffer time an upper one.
    known = None if before is None or before.outcome == TESTER_CEILING else before.throughput_fps
    throughput_fps = goal.throughput_fps or known
    implied = None if average is None else average / rate_fps
    corrected = corrected_s(implied, throughput_fps, rate_fps)
    return BackToBackFound(
        goal=goal,
        values=values,
        average_frames=average,
        minimum_frames=min(values, default=None),
        maximum_frames=max(values, default=None),
        standard_deviation_frames=sample_deviation(values),
        implied_s=implied,
        corrected_s=corrected,
        actual_rate_s=at_rate_s(corrected, rate_fps, goal.actual_fps or None),
        throughput_fps=throughput_fps,
        throughput=before,
        is_at_least=any(burst.is_at_least for burst in bursts),
    )


def back_to_back_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: the search, what it showed."""
    found: BackToBackFound = entry.found
    return [
        *([] if found.goal is None else [_search_line(found.goal)]),
        *_row_lines(found, "", entry.trials),
        *([] if found.corrected_s is None else [TIMES]),
    ]


def back_to_back_sizes_lines(result: BackToBackTable, rows: Sequence[BackToBackFound]) -> list[str]:
    """The same of several sizes, with what was sent, each once."""
    profile = result.rows[0].profile
    lines = [
        f"{profile.protocol}, {profile.address_words} ({profile.plan.label}),"
        f" {' and '.join(profile.directions)}.",
        _search_line(rows[0].goal or BackToBackAsked()),
    ]
    for live, row in zip(result.rows, rows, strict=True):
        head = f"{describe_size(live.profile.frame_size)}: "
        lines.append(
            f"{head}bursts at {format_count(live.goal.rate_fps)} fps per direction, at most"
            f" {format_count(live.goal.max_frames)} frames; theoretical limit {describe_limit(live.profile)}."
        )
        lines += _row_lines(row, head, live.trials)
    if any(row.corrected_s is not None for row in rows):
        lines.append(TIMES)
    trials = [trial for row in result.rows for trial in row.trials]
    return [
        *lines,
        *profile.sent_lines,
        *dut_lines(profile.dut),
        *(trials_lines(trials, what="Bursts") if trials else []),
    ]


def _row(found: BackToBackFound) -> list[str | Cell]:
    goal, before = found.goal or BackToBackAsked(), found.throughput
    bound = AT_LEAST if found.is_at_least else ""
    longest = found.longest_tried_frames or goal.max_burst_frames
    frames = (found.average_frames, found.minimum_frames, found.maximum_frames)
    return [
        *(_frames(value, bound) for value in frames),
        _frames(found.standard_deviation_frames),
        *(_time(value_s, bound) for value_s in (found.corrected_s, found.implied_s)),
        measured(
            found.throughput_fps,
            WHOLE_FPS,
            bound=AT_LEAST if before is not None and before.is_at_least else "",
        ),
        "skipped" if found.outcome == "skipped" else f"{len(found.values)} of {goal.repetitions}",
        show(goal.step_frames, format_count),
        show(longest, format_count),
    ]


def _search_line(goal: BackToBackAsked) -> str:
    verifications = goal.loss_verifications
    verified = (
        f", a burst with loss sent again up to {verifications} times (ETSI TST009 12.3)"
        if verifications
        else ""
    )
    return (
        f"Binary search for the burst to {_counted(goal.step_frames or 0, 'frame')}, bursts of up to"
        f" {format_duration(goal.max_burst_s or 0.0)}; {goal.repetitions}"
        f" repetitions{verified}. The benchmark is the average."
    )


def _row_lines(found: BackToBackFound, head: str, trials: Sequence[TrialResult]) -> list[str]:
    """What one size showed.

    Args:
        head: `64 octets: `, where there are several.
    """
    goal, lines = found.goal or BackToBackAsked(), []
    if goal.throughput_source:
        lines.append(f"throughput as measured before, in {visible(goal.throughput_source)}.")
    if found.stopped_early:
        lines.append(f"{visible(found.stopped_early)}.")
    if found.implied_s is not None and found.corrected_s is not None:
        bound = "at least " if found.is_at_least else ""
        at_rate = ""
        if found.actual_rate_s is not None:
            rate = format_count(goal.actual_fps or 0.0)
            at_rate = f"; at {rate} fps, the rate of interest, {bound}{format_duration(found.actual_rate_s)}"
        lines.append(
            f"buffer time implied {bound}{format_duration(found.implied_s)}, corrected"
            f" {bound}{format_duration(found.corrected_s)}{at_rate}."
        )
    longest_s, asked_s = found.longest_tried_s, goal.max_burst_s
    if longest_s is not None and asked_s is not None and longest_s > asked_s:
        lines.append(
            f"a result was close to the longest burst of {format_duration(asked_s)}, so bursts of up to"
            f" {format_duration(longest_s)} were tried (RFC 9004, 6.2)."
        )
    if found.is_near_maximum:
        lines.append(
            "a burst was close to the longest that was tried, so this may be the limit of the search and"
            " not of the DUT."
        )
    if found.late_frames:
        lines.append(
            f"{_counted(found.late_frames, 'frame')} arrived after the residual wait and counted as lost:"
            " repeat with a longer --wait-residual."
        )
    if found.outcome == TESTER_CEILING and trials:
        lines.append(f"the last burst was INVALID: {last_reasons(trials)}.")
    return [f"{head}{line}" if head else line[:1].upper() + line[1:] for line in lines]


def _time(value_s: float | None, bound: str = "") -> Cell:
    return measured(None if value_s is None else value_s * 1e6, "us", bound=bound)


def _frames(value: float | None, bound: str = "") -> Cell:
    return measured(value, MEAN_FRAMES, bound=bound)


def _counted(count: int, what: str) -> str:
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"


DEFINITION = (
    "Interval: from the beginning of a burst to the beginning of the next; gap: from the end of a burst"
    " to the beginning of the next."
)
STORIES = {
    str(Outcome.AT_OR_ABOVE_MAXIMUM): "none needed: bursts without a gap between them passed",
    str(Outcome.TESTER_CEILING): "the tester itself did not keep the load, which says nothing about the DUT",
    str(Outcome.STOPPED): "stopped before the end",
}


def burst_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each size of bursts."""
    return table_of(
        ((entry.labels, map(_interval_row, entry.found.each)) for entry in entries),
        ["#frames", "#interval", "#gap", "#with loss", "#mean load per direction", "search"],
        title="Smallest interval between bursts without loss",
        caption=DEFINITION,
    )


def burst_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: what the columns are, how it was searched."""
    found: BurstFound = entry.found
    goal = found.goal or found.search.goal
    if goal.precision is None or goal.duration_s is None or goal.final_duration_s is None:
        return [DEFINITION]
    return [
        f"{DEFINITION} Binary search to {format_ratio(goal.precision)} of the interval, trials of"
        f" {format_duration(goal.duration_s)}, the result confirmed by one of"
        f" {format_duration(goal.final_duration_s)}."
    ]


def burst_conditions(result: BurstIntervals) -> list[str]:
    """What was sent, and how fast."""
    return [
        f"Bursts at {format_count(result.goal.rate_fps)} fps per direction;"
        f" {describe_conditions(result.profile)}."
    ]


def _interval_row(found: IntervalFound) -> list[str | Cell]:
    times = (found.interval_s, found.gap_s, found.failed_interval_s)
    return [
        format_count(found.burst_frames),
        *(_time(time_s) for time_s in times),
        measured(found.mean_fps, WHOLE_FPS),
        _story(found),
    ]


def _story(found: IntervalFound) -> str:
    outcome, lowest_fps = found.search.outcome, found.search.goal.min_fps
    if outcome == Outcome.BELOW_MINIMUM and lowest_fps:
        largest_s = found.burst_frames / lowest_fps
        return f"no interval up to {format_duration(largest_s)} is without loss"
    return STORIES.get(outcome, with_spaces(outcome))
