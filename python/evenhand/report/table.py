# SPDX-License-Identifier: Apache-2.0
"""Station 10: one table over frame sizes and repetitions, for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.table import Cell, Table, measured
from evenhand.base.units import LOSS, SHARE, WHOLE_FPS, OneUnit, format_count, format_ratio, one_unit
from evenhand.plan import mix_lines
from evenhand.procedure import FrameLoss, LossTable, Row, Statistics, Throughput, ThroughputTable
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.loss import loss_statistics
from evenhand.procedure.throughput import throughput_statistics
from evenhand.report.page_words import NONE
from evenhand.report.result_entry import (
    PERCENTILES,
    RepeatedEntry,
    count_verdicts,
    describe_limit,
    dut_lines,
    percentiles_lines,
    show,
    show_percentiles,
    size_of,
    table_of,
    time_left_out_lines,
    with_spaces,
)
from evenhand.report.throughput import ceiling_lines, loss_by_direction, one_pair_words, verification_lines
from evenhand.results.loss import LossFound, LossOutcome
from evenhand.results.throughput import ThroughputFound, is_lower_bound
from evenhand.run.campaign_record import AT_LEAST
from evenhand.search import MlrGoals, ThroughputGoal, sum_of_losses
from evenhand.trial import TimeLeftOut

FIGURES = ("#median", "#minimum", "#maximum", *(f"#{name}" for name in PERCENTILES))
INTERVAL = "median's interval (probability, %)"
OF_LIMIT = "of the limit"
OF_INTERVAL = (
    "The interval of the median uses order statistics, so it holds for any distribution of independent"
    " repetitions; the number in brackets is the probability that it covers the median."
)
UNIT = "Frames per second per direction"
CERTAIN = 99.99
"""Percent. No interval of few values is certain, and none is shown so."""


def rows_of(document: Mapping[str, Any], procedure: Procedure) -> list[RepeatedEntry]:
    """Entries of a result that has a row for each frame size."""
    return [
        RepeatedEntry(
            repetitions=[procedure.read(each, "repetitions") for each in row["repetitions"]],
            labels=size_of(row),
        )
        for row in document["rows"]
    ]


def throughput_sizes_table(entries: Sequence[RepeatedEntry], *, leave_out: Sequence[str] = ()) -> Table:
    """A row for each size: what R2544-22 wants as a graph, and the figures over repetitions. Frames per
    second per direction."""
    return table_of(
        ((entry.labels, [_throughput_row(entry.repetitions)]) for entry in entries),
        ["#theoretical limit", *FIGURES, f"#{INTERVAL}", f"#{OF_LIMIT}", "searches"],
        title=f"Throughput, {UNIT.lower()}",
        caption=" ".join([f"{UNIT}.", *_percentiles_lines(entries)]),
        leave_out=leave_out,
    )


def loss_sizes_table(entries: Sequence[RepeatedEntry]) -> Table:
    """A row for each size and load. Loss in percent of the offered frames."""
    found = [(entry.labels, [*_loss_points(entry.repetitions)]) for entry in entries]
    unit = one_unit(
        (
            value
            for _, points in found
            for point in points
            if (statistics := point.statistics) is not None
            for value in (statistics.median, statistics.minimum, statistics.maximum)
        ),
        LOSS,
    )
    titles = (*FIGURES, "#median's interval")
    return table_of(
        ((labels, [_loss_row(point, unit) for point in points]) for labels, points in found),
        [
            "#of the maximum",
            "#load per direction",
            *(f"{title}, {unit.unit}" for title in titles[:-1]),
            f"{titles[-1]}, {unit.unit} (probability, %)",
            "trials",
        ],
        title="Frame loss rate",
        caption=" ".join(_percentiles_lines(entries)),
    )


def table_lines(table: ThroughputTable | LossTable) -> list[str]:
    """What a reader must know of the table: conditions, repetitions, intervals, trials, each once."""
    rows: Sequence[Row[Any]] = table.rows
    profiles = [row.repetitions[0].profile for row in rows]
    named = [(f"{profile.octets}:", row) for profile, row in zip(profiles, rows, strict=True)]
    found: list[Throughput | FrameLoss] = [each for row in rows for each in row.repetitions]
    first, goal = profiles[0], _goal_of(found[0])
    lines = [
        f"{first.protocol}, {first.address_words} ({first.plan.label}), {' and '.join(first.directions)}.",
        *(f"{profile.octets}: theoretical limit {describe_limit(profile)}." for profile in profiles),
        *(f"{head} {row.stopped_early}." for head, row in named if row.stopped_early),
        *(
            []
            if isinstance(table, LossTable)
            else [
                f"{profile.octets}: before it, {one_pair_words(profile.one_pair)}."
                for profile in profiles
                if profile.one_pair is not None
            ]
        ),
        *([OF_INTERVAL] if max(len(row.repetitions) for row in table.rows) > 1 else []),
    ]
    if isinstance(table, ThroughputTable) and goal.loss_ratio:
        lines.append(
            f"A load passed with a loss ratio of at most {format_ratio(goal.loss_ratio)};"
            " this is not the zero loss of RFC 2544."
        )
        losses = [
            (head, sum_of_losses(each.search.losses for each in row.repetitions)) for head, row in named
        ]
        lines += [
            f"{head} lost at the results, over all searches: {lost}."
            for head, each in losses
            if (lost := loss_by_direction(each)) is not None
        ]
    if isinstance(goal, ThroughputGoal):
        lines += verification_lines(goal)
    if isinstance(goal, MlrGoals):
        lines.append(
            "Each value is that of the strictest goal; --json and the run file contain the values of"
            " all goals."
        )
    lines += [
        f"{head} {line}"
        for head, row in named
        for line in ceiling_lines(row.repetitions[0].profile.ceiling, _goal_of(row.repetitions[0]).max_fps)
    ]
    sent = [line for profile in profiles for line in mix_lines(profile.plan, profile.frame_size)]
    trials = [trial for each in found for trial in each.trials]
    return [
        *lines,
        *dict.fromkeys([*first.sent_lines, *sent]),
        *dut_lines(first.dut),
        f"Trials: {len(trials)} ({count_verdicts(trial.verdict for trial in trials)}).",
        *time_left_out_lines(TimeLeftOut.together(TimeLeftOut.of(each.trials) for each in found)),
    ]


def _goal_of(found: Throughput | FrameLoss) -> Any:
    return found.search.goal if isinstance(found, Throughput) else found.goal


def _percentiles_lines(entries: Sequence[RepeatedEntry]) -> list[str]:
    return percentiles_lines(len(entry.repetitions) for entry in entries)


def _throughput_row(repetitions: Sequence[ThroughputFound]) -> list[str | Cell]:
    bounds = [is_lower_bound(each, each.outcome) for each in repetitions]
    statistics = throughput_statistics(
        zip((each.throughput_fps for each in repetitions), bounds, strict=True)
    )
    # A search that ended at its maximum, or at the tester's ceiling, found a lower bound only.
    bound = AT_LEAST if any(bounds) else ""
    limit_fps = next((each.theoretical_fps for each in repetitions if each.theoretical_fps), None)
    share = None if statistics is None or limit_fps is None else statistics.median / limit_fps
    outcomes = Counter(with_spaces(each.outcome) for each in repetitions)
    return [
        show(limit_fps, format_count, none="?"),
        *(cell if cell == NONE else bound + cell for cell in _cells(statistics, _fps)),
        _interval(statistics, _fps),
        measured(share, SHARE, bound=bound),
        ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()),
    ]


@dataclass(frozen=True, slots=True)
class _LossPoint:
    """One load of a size."""

    share: float
    """Share of the maximum."""
    load_fps: float | None
    statistics: Statistics | None
    repetitions: int


def _loss_points(repetitions: Sequence[LossFound]) -> Iterator[_LossPoint]:
    series = [
        (
            {point.share_of_maximum: point.loss_ratio for point in each.points},
            each.outcome == LossOutcome.LOSSLESS,
        )
        for each in repetitions
    ]
    maximum_fps = next((each.goal.max_fps for each in repetitions if each.goal.max_fps < math.inf), None)
    for share, statistics in loss_statistics(series).items():
        yield _LossPoint(
            share=share,
            load_fps=None if maximum_fps is None else maximum_fps * share,
            statistics=statistics,
            repetitions=len(repetitions),
        )


def _loss_row(point: _LossPoint, unit: OneUnit) -> list[str | Cell]:
    counted = 0 if point.statistics is None else point.statistics.count
    return [
        measured(point.share, SHARE),
        measured(point.load_fps, WHOLE_FPS),
        *_cells(point.statistics, unit.write),
        _interval(point.statistics, unit.write),
        f"{counted} of {point.repetitions}",
    ]


def _cells(statistics: Statistics | None, write: Callable[[float], str]) -> list[str]:
    """The cells below FIGURES."""
    if statistics is None:
        return [NONE] * len(FIGURES)
    middle = [write(value) for value in (statistics.median, statistics.minimum, statistics.maximum)]
    return [*middle, *show_percentiles(statistics, write)]


def _interval(statistics: Statistics | None, write: Callable[[float], str]) -> str:
    """`794,000 .. 801,000 (97.85)`: its ends and its probability in percent; of one value none."""
    if statistics is None or statistics.count < 2:
        return NONE
    interval = statistics.median_interval
    low, high = ("" if math.isinf(value) else write(value) for value in (interval.low, interval.high))
    ends = f"{low} .. {high}" if high else f">= {low}"
    return f"{ends} ({min(100 * interval.level, CERTAIN):.2f})"


def _fps(value: float) -> str:
    return format_count(round(value))
