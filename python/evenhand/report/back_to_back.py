# SPDX-License-Identifier: Apache-2.0
"""Station 10: back-to-back frames, for people: the table of RFC 9004, section 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import MEAN_FRAMES, WHOLE_FPS, format_count, format_duration, format_ratio
from evenhand.plan import describe_size
from evenhand.procedure import BackToBackTable, BurstIntervals
from evenhand.procedure.back_to_back_result import at_rate_s, corrected_s, sample_deviation
from evenhand.report.result_entry import (
    ResultEntry,
    describe_conditions,
    describe_limit,
    dut_lines,
    last_reasons,
    mapping,
    mappings,
    number,
    show,
    size_of,
    table_of,
    text,
    trials_lines,
    whole,
    with_spaces,
)
from evenhand.run.campaign_record import AT_LEAST, TESTER_CEILING, is_lower_bound
from evenhand.search import Outcome

IN_LINES = ("implied buffer time", "step", "longest burst tried")
"""Columns that a terminal does without: the lines below its table have the same."""
TIMES = (
    "Implied buffer time: the duration of the average burst. Corrected: the implied time reduced by what"
    " was forwarded meanwhile."
)


def back_to_back_table(entries: Sequence[ResultEntry], *, leave_out: Sequence[str] = ()) -> Table:
    """A row for each size; bursts in frames, per direction (R9004-11)."""
    return table_of(
        (
            ({**size_of(row), **entry.labels}, [_row(row)])
            for entry in entries
            for row in mappings(entry.document, "rows") or [entry.document]
        ),
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
    bursts: Sequence[Mapping[str, Any]], goal: Mapping[str, Any], before: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The result of the verb: its run file has the longest burst of each repetition as a result of its own.
    None if these are whole results.

    Args:
        goal: The goal of the bursts.
        before: The throughput that was measured first; empty if it was known from before.
    """
    rate_fps = number(goal, "rate_fps_per_direction")
    if not rate_fps or not bursts or any("longest_burst_frames" not in burst for burst in bursts):
        return None
    values = [frames for burst in bursts if (frames := number(burst, "longest_burst_frames")) is not None]
    average = sum(values) / len(values) if values else None
    # A lower bound would make the corrected buffer time an upper one.
    is_limited = before.get("outcome") == TESTER_CEILING
    known = None if is_limited else number(before, "throughput_fps_per_direction")
    throughput_fps = number(goal, "throughput_fps_per_direction") or known
    implied = None if average is None else average / rate_fps
    corrected = corrected_s(implied, throughput_fps, rate_fps)
    return {
        "goal": goal,
        "values": values,
        "average_frames": average,
        "minimum_frames": min(values, default=None),
        "maximum_frames": max(values, default=None),
        "standard_deviation_frames": sample_deviation(values),
        "implied_buffer_time_s": implied,
        "corrected_buffer_time_s": corrected,
        "actual_rate_buffer_time_s": at_rate_s(
            corrected, rate_fps, number(goal, "actual_fps_per_direction") or None
        ),
        "throughput_fps_per_direction": throughput_fps,
        "throughput": before,
        "is_at_least": any(is_lower_bound(text(burst, "outcome"), burst) for burst in bursts),
    }


def back_to_back_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: the search, what it showed."""
    goal = mapping(entry.document, "goal")
    return [
        *([_search_line(goal)] if goal else []),
        *_row_lines(entry.document, "", entry.trials),
        *([] if number(entry.document, "corrected_buffer_time_s") is None else [TIMES]),
    ]


def back_to_back_sizes_lines(result: BackToBackTable) -> list[str]:
    """The same of several sizes, with what was sent, each once."""
    profile, document = result.rows[0].profile, result.to_document()
    rows = mappings(document, "rows")
    lines = [
        f"{profile.protocol}, {profile.address_words} ({profile.plan.label}),"
        f" {' and '.join(profile.directions)}.",
        _search_line(mapping(rows[0], "goal")),
    ]
    for live, row in zip(result.rows, rows, strict=True):
        head = f"{describe_size(live.profile.frame_size)}: "
        lines.append(
            f"{head}bursts at {format_count(live.goal.rate_fps)} fps per direction, at most"
            f" {format_count(live.goal.max_frames)} frames; theoretical limit {describe_limit(live.profile)}."
        )
        lines += _row_lines(row, head, live.trials)
    if any(number(row, "corrected_buffer_time_s") is not None for row in rows):
        lines.append(TIMES)
    trials = [trial for row in result.rows for trial in row.trials]
    return [
        *lines,
        *profile.sent_lines,
        *dut_lines(profile.dut),
        *(trials_lines(trials, what="Bursts") if trials else []),
    ]


def _row(row: Mapping[str, Any]) -> list[str | Cell]:
    goal = mapping(row, "goal")
    bound = AT_LEAST if row.get("is_at_least") is True else ""
    before = mapping(row, "throughput")
    throughput_bound = AT_LEAST if before.get("is_at_least") is True else ""
    longest = number(row, "longest_burst_tried_frames") or number(goal, "max_burst_frames")
    values = row.get("values")
    return [
        *(_frames(number(row, key), bound) for key in _FRAMES),
        _frames(number(row, "standard_deviation_frames")),
        *(_time(number(row, f"{key}_buffer_time_s"), bound) for key in _BUFFERS),
        measured(number(row, "throughput_fps_per_direction"), WHOLE_FPS, bound=throughput_bound),
        "skipped"
        if row.get("outcome") == "skipped"
        else f"{len(values) if isinstance(values, list | tuple) else 0} of {whole(goal, 'repetitions')}",
        show(number(goal, "step_frames"), _whole),
        show(longest, _whole),
    ]


_FRAMES = ("average_frames", "minimum_frames", "maximum_frames")
_BUFFERS = ("corrected", "implied")


def _search_line(goal: Mapping[str, Any]) -> str:
    verifications, step = whole(goal, "loss_verifications"), whole(goal, "step_frames")
    verified = (
        f", a burst with loss sent again up to {verifications} times (ETSI TST009 12.3)"
        if verifications
        else ""
    )
    return (
        f"Binary search for the burst to {_counted(step, 'frame')}, bursts of up to"
        f" {format_duration(number(goal, 'max_burst_s') or 0.0)}; {whole(goal, 'repetitions')}"
        f" repetitions{verified}. The benchmark is the average."
    )


def _row_lines(row: Mapping[str, Any], head: str, trials: Sequence[Any]) -> list[str]:
    """What one size showed.

    Args:
        head: `64 octets: `, where there are several.
    """
    goal, lines = mapping(row, "goal"), []
    if source := text(goal, "throughput_source"):
        lines.append(f"throughput as measured before, in {source}.")
    if stopped_early := text(row, "stopped_early"):
        lines.append(f"{stopped_early}.")
    implied, corrected, actual = (
        number(row, f"{key}_buffer_time_s") for key in ("implied", "corrected", "actual_rate")
    )
    if implied is not None and corrected is not None:
        bound = "at least " if row.get("is_at_least") is True else ""
        at_rate = ""
        if actual is not None:
            rate = format_count(number(goal, "actual_fps_per_direction") or 0.0)
            at_rate = f"; at {rate} fps, the rate of interest, {bound}{format_duration(actual)}"
        lines.append(
            f"buffer time implied {bound}{format_duration(implied)}, corrected"
            f" {bound}{format_duration(corrected)}{at_rate}."
        )
    longest_s, asked_s = number(row, "longest_burst_tried_s"), number(goal, "max_burst_s")
    if longest_s is not None and asked_s is not None and longest_s > asked_s:
        lines.append(
            f"a result was close to the longest burst of {format_duration(asked_s)}, so bursts of up to"
            f" {format_duration(longest_s)} were tried (RFC 9004, 6.2)."
        )
    if row.get("is_near_maximum") is True:
        lines.append(
            "a burst was close to the longest that was tried, so this may be the limit of the search and"
            " not of the DUT."
        )
    if late := whole(row, "late_frames"):
        lines.append(
            f"{_counted(late, 'frame')} arrived after the residual wait and counted as lost: repeat with a"
            " longer --wait-residual."
        )
    if row.get("outcome") == "tester_ceiling" and trials:
        lines.append(f"the last burst was INVALID: {last_reasons(trials)}.")
    return [f"{head}{line}" if head else line[:1].upper() + line[1:] for line in lines]


def _time(value_s: float | None, bound: str) -> Cell:
    return measured(None if value_s is None else value_s * 1e6, "us", bound=bound)


def _whole(frames: float) -> str:
    return format_count(round(frames))


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
        ((entry.labels, _rows(entry.document)) for entry in entries),
        ["#frames", "#interval", "#gap", "#with loss", "#mean load per direction", "search"],
        title="Smallest interval between bursts without loss",
        caption=DEFINITION,
    )


def burst_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: what the columns are, how it was searched."""
    goal = mapping(entry.document, "goal") or mapping(mapping(entry.document, "search"), "goal")
    precision = number(goal, "precision")
    duration_s, final_s = number(goal, "duration_s"), number(goal, "final_duration_s")
    if precision is None or duration_s is None or final_s is None:
        return [DEFINITION]
    return [
        f"{DEFINITION} Binary search to {format_ratio(precision)} of the interval, trials of"
        f" {format_duration(duration_s)}, the result confirmed by one of {format_duration(final_s)}."
    ]


def burst_conditions(result: BurstIntervals) -> list[str]:
    """What was sent, and how fast."""
    return [
        f"Bursts at {format_count(result.goal.rate_fps)} fps per direction;"
        f" {describe_conditions(result.profile)}."
    ]


def _rows(document: Mapping[str, Any]) -> Iterator[list[str | Cell]]:
    # In the run file of the verb, each size of bursts is a result of its own.
    for interval in mappings(document, "intervals") or [document]:
        times = (number(interval, key) for key in ("interval_s", "gap_s", "failed_interval_s"))
        mean_fps = number(interval, "mean_fps_per_direction")
        yield [
            format_count(whole(interval, "burst_frames")),
            *(measured(None if time_s is None else time_s * 1e6, "us") for time_s in times),
            measured(mean_fps, WHOLE_FPS),
            _story(interval),
        ]


def _story(interval: Mapping[str, Any]) -> str:
    search = mapping(interval, "search")
    outcome = str(search.get("outcome"))
    lowest_fps = number(mapping(search, "goal"), "min_fps")
    if outcome == Outcome.BELOW_MINIMUM and lowest_fps:
        largest_s = whole(interval, "burst_frames") / lowest_fps
        return f"no interval up to {format_duration(largest_s)} is without loss"
    return STORIES.get(outcome, with_spaces(outcome))
