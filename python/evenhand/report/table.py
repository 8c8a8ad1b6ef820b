# SPDX-License-Identifier: Apache-2.0
"""Station 10: one table over frame sizes and repetitions, for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from rich.table import Table

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count, format_ratio
from evenhand.plan import FrameSize, Imix, describe_size, mix_lines
from evenhand.procedure import FrameLoss, LossTable, Row, Statistics, Throughput, ThroughputTable
from evenhand.report.throughput import (
    ceiling_lines,
    describe_limit,
    dut_lines,
    loss_by_direction,
    verification_lines,
)
from evenhand.run.campaign_record import AT_LEAST
from evenhand.search import MlrGoals, ThroughputGoal, sum_of_losses
from evenhand.trial import Verdict

FIGURES = ("median", "minimum", "maximum", "1st percentile", "99th percentile")


def throughput_sizes_table(table: ThroughputTable) -> Table:
    """A row for each size: what R2544-22 wants as a graph, and the figures over repetitions. Frames per
    second per direction."""
    shown = _table(
        "Throughput, frames per second per direction",
        ("octets", "theoretical", *FIGURES, "median's interval", "searches"),
    )
    for row in table.rows:
        statistics = table.statistics(row)
        limit = row.repetitions[0].profile.theoretical_fps
        cells = [cell if cell == "-" else _bound(row) + cell for cell in _cells(statistics, _fps)]
        interval = _interval(statistics, percent=False)
        shown.add_row(
            describe_row(row.frame_size),
            "?" if limit is None else format_count(limit),
            *cells,
            interval,
            _outcomes(row),
        )
    return shown


def loss_sizes_table(table: LossTable) -> Table:
    """A row for each size and load. Loss in percent of the offered frames."""
    shown = _table(
        "Frame loss rate",
        ("octets", "of the maximum", "load per direction", *FIGURES, "median's interval", "trials"),
    )
    for row in table.rows:
        maximum_fps = row.repetitions[0].goal.max_fps
        for share, statistics in table.statistics(row).items():
            cells, interval = _cells(statistics, format_ratio), _interval(statistics, percent=True)
            counted = f"{0 if statistics is None else statistics.count} of {len(row.repetitions)}"
            shown.add_row(
                describe_row(row.frame_size),
                format_ratio(share),
                f"{format_count(maximum_fps * share)} fps",
                *cells,
                interval,
                counted,
            )
    return shown


def describe_row(size: FrameSize) -> str:
    """The cell below "octets"."""
    return f"{float(size.mean):.6g} ({size})" if isinstance(size, Imix) else str(size)


def table_lines(table: ThroughputTable | LossTable) -> list[str]:
    """What a reader must know of the table: conditions, repetitions, intervals, trials, deviations, each
    once."""
    rows: list[Row[Throughput] | Row[FrameLoss]] = [*table.rows]
    results: list[Throughput | FrameLoss] = [result for row in rows for result in row.repetitions]
    profile = results[0].profile
    lines = [
        f"{profile.protocol}, {profile.address_words} ({profile.plan.label}),"
        f" {' and '.join(profile.directions)}."
    ]
    lines += [
        f"{describe_size(row.frame_size)}: theoretical limit {describe_limit(row.repetitions[0].profile)}."
        for row in rows
    ]
    lines += [
        f"{describe_size(row.frame_size)}: {row.stopped_early}."
        for row in rows
        if row.stopped_early is not None
    ]
    for row in rows:
        one_pair = row.repetitions[0].profile.single_pair
        if one_pair is not None:
            value = (
                "no throughput"
                if one_pair.throughput_fps is None
                else f"{format_count(one_pair.throughput_fps)} fps per direction"
            )
            bound = "at least " if one_pair.is_at_least else ""
            lines.append(
                f"{describe_size(row.frame_size)}: before it, {one_pair.source}, with 1 address pair:"
                f" {bound}{value}."
            )
    if max(len(row.repetitions) for row in rows) > 1:
        lines.append(
            "The interval of the median uses order statistics, so it holds for any distribution of"
            " independent repetitions; the number in brackets is the probability that it covers the"
            " median."
        )
    if isinstance(table, ThroughputTable):
        goal = results[0].search.goal if isinstance(results[0], Throughput) else None
        if goal is not None and goal.loss_ratio:
            lines.append(
                f"A load passed with a loss ratio of at most {format_ratio(goal.loss_ratio)};"
                " this is not the zero loss of RFC 2544."
            )
        lines += [line for row in table.rows for line in _loss_lines(row)]
        lines += verification_lines(goal) if isinstance(goal, ThroughputGoal) else []
        if isinstance(goal, MlrGoals):
            lines.append(
                "Each value is that of the strictest goal; --json and the run file contain the values of"
                " all goals."
            )
        lines += [
            f"{row.frame_size} octets: {line}"
            for row in table.rows
            for line in _ceiling_lines(row.repetitions[0])
        ]
    sent = [line for row in rows for line in mix_lines(row.repetitions[0].profile.plan, row.frame_size)]
    lines += [*dict.fromkeys([*profile.sent_lines, *sent]), *dut_lines(profile)]
    trials = [trial for result in results for trial in _trials(result)]
    counts = ", ".join(f"{sum(trial is verdict for trial in trials)} {verdict}" for verdict in Verdict)
    lines.append(f"Trials: {len(trials)} ({counts}).")
    return lines + [deviation.line for deviation in table.deviations]


def _loss_lines(row: Row[Throughput]) -> list[str]:
    """What each direction lost at the results of this size, if the searches allowed for a loss."""
    if not any(result.search.goal.loss_ratio for result in row.repetitions):
        return []
    lost = loss_by_direction(sum_of_losses(result.search.losses for result in row.repetitions))
    return (
        []
        if lost is None
        else [f"{describe_size(row.frame_size)}: lost at the results, over all searches: {lost}."]
    )


def _ceiling_lines(found: Throughput) -> list[str]:
    return ceiling_lines(found.search.goal, found.profile)


def _trials(result: Throughput | FrameLoss) -> list[Verdict]:
    if isinstance(result, Throughput):
        return [trial.result.verdict for trial in result.search.trials]
    return [trial.verdict for trial in result.trials]


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = FittedTable(title)
    for name in columns[:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    return table


def show_percentiles(statistics: Statistics, show: Callable[[float], str]) -> list[str]:
    """The 1st and the 99th; one value has none."""
    return (
        ["-", "-"]
        if statistics.count < 2
        else [show(statistics.percentile_1), show(statistics.percentile_99)]
    )


def _cells(statistics: Statistics | None, show: Callable[[float], str]) -> list[str]:
    """The cells below FIGURES."""
    if statistics is None:
        return ["-"] * len(FIGURES)
    middle = [show(value) for value in (statistics.median, statistics.minimum, statistics.maximum)]
    return [*middle, *show_percentiles(statistics, show)]


def _interval(statistics: Statistics | None, *, percent: bool) -> str:
    """`794,000 .. 801,000 (97.9 % probability)`; of one value none."""
    if statistics is None or statistics.count < 2:
        return "-"
    interval = statistics.median_interval
    low, high = (
        "" if math.isinf(value) else format_ratio(value) if percent else format_count(round(value))
        for value in (interval.low, interval.high)
    )
    ends = f"{low} .. {high}" if high else f">= {low}"
    return f"{ends} ({format_ratio(interval.level)} probability)"


def _fps(value: float) -> str:
    return format_count(round(value))


def _bound(row: Row[Throughput]) -> str:
    """A search that ended at its maximum, or at the tester's limit, found a lower bound only."""
    return AT_LEAST if any(result.is_at_least for result in row.repetitions) else ""


def _outcomes(row: Row[Throughput]) -> str:
    counts = Counter(str(result.outcome).replace("_", " ") for result in row.repetitions)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
