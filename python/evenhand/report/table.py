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
from evenhand.procedure import LossOutcome, LossTable, Statistics, ThroughputTable
from evenhand.procedure.loss import loss_statistics
from evenhand.procedure.throughput import throughput_statistics
from evenhand.report.page_words import NONE
from evenhand.report.result_entry import (
    PERCENTILES,
    RepeatedEntry,
    describe_limit,
    dut_lines,
    mapping,
    mappings,
    number,
    percentiles_lines,
    show,
    show_percentiles,
    size_of,
    table_of,
    text,
    time_left_out_lines,
    whole,
    words,
)
from evenhand.report.throughput import ceiling_lines, loss_by_direction, read_losses, verification_lines
from evenhand.run.campaign_record import AT_LEAST, is_lower_bound
from evenhand.run.figures import stated_time_left_out
from evenhand.search import MlrGoals, sum_of_losses
from evenhand.trial import TimeLeftOut, Verdict

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


def rows_of(document: Mapping[str, Any]) -> list[RepeatedEntry]:
    """Entries of a result that has a row for each frame size."""
    return [
        RepeatedEntry(repetitions=mappings(row, "repetitions"), labels=size_of(row))
        for row in mappings(document, "rows")
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
    profiles = [row.repetitions[0].profile for row in table.rows]
    rows = mappings(table.to_document(), "rows")
    repetitions = [mappings(row, "repetitions") for row in rows]
    named = [(f"{profile.octets}:", found) for profile, found in zip(profiles, repetitions, strict=True)]
    goal = mapping(repetitions[0][0], "goal")
    first = profiles[0]
    lines = [
        f"{first.protocol}, {first.address_words} ({first.plan.label}), {' and '.join(first.directions)}.",
        *(f"{profile.octets}: theoretical limit {describe_limit(profile)}." for profile in profiles),
        *(
            f"{head} {stopped}."
            for (head, _), row in zip(named, rows, strict=True)
            if (stopped := text(row, "stopped_early"))
        ),
        *(line for head, found in named for line in _one_pair_lines(head, found[0])),
        *([OF_INTERVAL] if max(map(len, repetitions)) > 1 else []),
    ]
    if loss_ratio := number(goal, "loss_ratio"):
        lines.append(
            f"A load passed with a loss ratio of at most {format_ratio(loss_ratio)};"
            " this is not the zero loss of RFC 2544."
        )
        lines += [line for head, found in named for line in _loss_lines(head, found)]
    lines += verification_lines(goal)
    if goal.get("search") == MlrGoals.search:
        lines.append(
            "Each value is that of the strictest goal; --json and the run file contain the values of"
            " all goals."
        )
    lines += [f"{head} {line}" for head, found in named for line in ceiling_lines(found[0])]
    sent = [line for profile in profiles for line in mix_lines(profile.plan, profile.frame_size)]
    counts = Counter(
        {
            verdict: sum(whole(mapping(each, "verdicts"), verdict) for found in repetitions for each in found)
            for verdict in Verdict
        }
    )
    return [
        *lines,
        *dict.fromkeys([*first.sent_lines, *sent]),
        *dut_lines(first.dut),
        f"Trials: {counts.total()} ({', '.join(f'{count} {verdict}' for verdict, count in counts.items())}).",
        *time_left_out_lines(
            TimeLeftOut.together(stated_time_left_out(each) for found in repetitions for each in found)
        ),
    ]


def _one_pair_lines(head: str, document: Mapping[str, Any]) -> list[str]:
    found = mapping(document, "one_pair")
    if not found:
        return []
    bound = "at least " if found.get("is_at_least") is True else ""
    fps = number(found, "throughput_fps_per_direction")
    value = "no throughput" if fps is None else f"{format_count(fps)} fps per direction"
    return [f"{head} before it, {text(found, 'source')}, with 1 address pair: {bound}{value}."]


def _loss_lines(head: str, repetitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each direction lost at the results of this size."""
    lost = loss_by_direction(sum_of_losses(read_losses(each) for each in repetitions))
    return [] if lost is None else [f"{head} lost at the results, over all searches: {lost}."]


def _percentiles_lines(entries: Sequence[RepeatedEntry]) -> list[str]:
    return percentiles_lines(len(entry.repetitions) for entry in entries)


def _throughput_row(repetitions: Sequence[Mapping[str, Any]]) -> list[str | Cell]:
    found = [
        (number(each, "throughput_fps_per_direction"), is_lower_bound(text(each, "outcome"), each))
        for each in repetitions
    ]
    statistics = throughput_statistics(found)
    # A search that ended at its maximum, or at the tester's ceiling, found a lower bound only.
    bound = AT_LEAST if any(is_at_least for _, is_at_least in found) else ""
    limit_fps = next(
        (fps for each in repetitions if (fps := number(each, "theoretical_fps_per_direction"))), None
    )
    share = None if statistics is None or limit_fps is None else statistics.median / limit_fps
    outcomes = Counter(words(each, "outcome") for each in repetitions)
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


def _loss_points(repetitions: Sequence[Mapping[str, Any]]) -> Iterator[_LossPoint]:
    series = [
        (
            {
                share: number(point, "loss_ratio")
                for point in mappings(each, "points")
                if (share := number(point, "share_of_maximum")) is not None
            },
            each.get("outcome") == LossOutcome.LOSSLESS,
        )
        for each in repetitions
    ]
    maximum_fps = next(
        (fps for each in repetitions if (fps := number(mapping(each, "goal"), "max_fps"))), None
    )
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
