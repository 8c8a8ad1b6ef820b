# SPDX-License-Identifier: Apache-2.0
"""Station 10: latency and delay variation, for people: the tables of RFC 8219 and RFC 2544."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.base.table import Column, Table
from evenhand.base.units import format_count, format_duration
from evenhand.procedure import DelayResult, DelayTest
from evenhand.procedure.delay_result import own_loop_figure
from evenhand.procedure.statistics import FEWEST_FOR_PERCENTILES
from evenhand.report.hardware_stamps import STAMPS
from evenhand.report.page_words import NONE
from evenhand.report.result_entry import (
    PERCENTILES,
    ResultEntry,
    by_direction,
    describe_conditions,
    last_invalid_lines,
    mapping,
    number,
    percentiles_lines,
    table_of,
    text,
    whole,
)
from evenhand.run.figures import is_worst_the_maximum

DEFINITION = (
    "A delay lasts from building a frame to having received all of it. It includes what the tester"
    " itself adds, and the time of the frame on both links, which RFC 1242 excludes."
)
WHAT_COUNTS = (
    "The delay of a frame counts from its own stamp, so a late departure does not spoil the trial: only"
    " frames that left overdue, or right behind overdue frames, are excluded. A trial with more than a"
    " tenth of its frames excluded is INVALID."
)
NAMES = {
    "typical": "typical (median)",
    "worst_case": "worst case (99.9th percentile)",
    "latency": "latency",
    "pdv": "PDV (99.9th percentile minus minimum)",
    "ipdv_min": "IPDV minimum",
    "ipdv_median": "IPDV median",
    "ipdv_max": "IPDV maximum",
}
AVERAGED = "latency"
"""The figure of RFC 2544, which wants the average over the repetitions, not the median."""


def delay_table(entries: Sequence[ResultEntry]) -> Table:
    """A row for each direction and figure: over the repetitions the median (of RFC 2544's latency the
    average), and the spread (R8219-11, R8219-12)."""
    tests = {text(mapping(entry.document, "goal"), "test") for entry in entries}
    is_averaged = str(DelayTest.LATENCY_RFC2544) in tests
    is_variation = tests == {str(DelayTest.PDV)}
    definition = "" if is_variation else f"{DEFINITION} "
    middle = "median" if not is_averaged else "average" if len(tests) == 1 else "median (RFC 2544: average)"
    numbers = (middle, "own loop", "minimum", "maximum", *PERCENTILES)
    return table_of(
        ((entry.labels, _rows(entry)) for entry in entries),
        [
            Column("direction", is_name=True),
            "figure",
            *(f"#{name}, ms" for name in numbers),
            "#lost",
            "#repetitions",
            "#excluded",
        ],
        title=DelayTest.PDV.headline if is_variation else DelayTest.LATENCY.headline,
        caption=" ".join(
            [
                f"Over the repetitions. Excluded: the most in any of them. {definition}{WHAT_COUNTS}",
                *percentiles_lines(_counts(entries)),
                *_few_tags_lines([entry.document for entry in entries]),
                *_resolution_lines([entry.document for entry in entries]),
            ]
        ),
        fold=("repetitions", "excluded"),
    )


def delay_lines(entry: ResultEntry) -> list[str]:
    """What a reader must know of the table: definition, what the tester did."""
    document = entry.document
    return [
        _repetitions_line(document),
        DEFINITION,
        WHAT_COUNTS,
        *percentiles_lines(_counts([entry])),
        *_few_tags_lines([document]),
        *_resolution_lines([document]),
        *_own_loop_lines(document),
        *last_invalid_lines(document, entry.trials),
    ]


def delay_conditions(result: DelayResult) -> list[str]:
    """What was sent, and how fast."""
    goal = result.goal
    return [
        f"{goal.test.headline} at {format_count(goal.rate_fps)} fps per direction;"
        f" {describe_conditions(result.profile)}."
    ]


def _rows(entry: ResultEntry) -> Iterator[list[str]]:
    repetitions = _valid_repetitions(entry.document)
    for direction, figures in by_direction(entry.document, "figures"):
        for name in _figures_of(entry.document):
            found = mapping(figures, name)
            own = _own_loop_ns(entry, direction, name)
            yield [
                direction,
                NAMES[name],
                *_numbers(found, name, "not known" if own is None else _milliseconds(own)),
                format_count(whole(figures, "lost_frames")),
                str(whole(found, "count") or repetitions),
                format_count(whole(figures, "left_out_frames")),
            ]


def _numbers(found: Mapping[str, Any], name: str, own_loop: str) -> list[str]:
    if not found:
        return [NONE] * 6
    ends = (
        [NONE, NONE]
        if whole(found, "count") < FEWEST_FOR_PERCENTILES
        else [_milliseconds(number(found, f"percentile_{share}_ns")) for share in (1, 99)]
    )
    middle = number(found, "average_ns" if name == AVERAGED else "median_ns")
    spread = [_milliseconds(number(found, key)) for key in ("minimum_ns", "maximum_ns")]
    return [_milliseconds(middle), own_loop, *spread, *ends]


def _figures_of(document: Mapping[str, Any]) -> list[str]:
    """Names of the figures that any direction has a place for."""
    found = {name for _, figures in by_direction(document, "figures") for name in figures}
    return [name for name in NAMES if name in found]


def _own_loop_ns(entry: ResultEntry, direction: str, figure: str) -> float | None:
    """The same figure of the tester's own loop, in ns. The document has no differences of consecutive frames:
    these are in the trial."""
    if entry.own_loop is not None:
        return own_loop_figure(entry.own_loop, direction, figure)
    found = mapping(mapping(mapping(entry.document, "own_loop"), "directions"), direction)
    names = {"worst_case": "percentile_99_9_ns", "pdv": "pdv_ns", "typical": "median_ns"}
    return number(found, names.get(figure, "median_ns" if figure == AVERAGED else ""))


def _counts(entries: Sequence[ResultEntry]) -> list[int]:
    """Repetitions of each figure that has any."""
    return [
        count
        for entry in entries
        for _, figures in by_direction(entry.document, "figures")
        for name in NAMES
        if (count := whole(mapping(figures, name), "count"))
    ]


def _valid_repetitions(document: Mapping[str, Any]) -> int:
    return max(
        (
            whole(mapping(figures, name), "count")
            for _, figures in by_direction(document, "figures")
            for name in NAMES
        ),
        default=0,
    )


def _repetitions_line(document: Mapping[str, Any]) -> str:
    goal = mapping(document, "goal")
    tags = whole(goal, "tagged_frames")
    counted = f"{format_count(tags)} tagged" if tags else "all"
    length, start = (format_duration(number(goal, key) or 0.0) for key in ("duration_s", "from_s"))
    return (
        f"{_valid_repetitions(document)} of {whole(goal, 'repetitions')} repetitions of {length} each, with"
        f" {counted} frames that are due from {start} on. A lost frame counts as infinitely late."
    )


def _few_tags_lines(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """With fewer than a thousand values, the 99.9th percentile is the highest (RFC 2330, 11.3)."""
    tags = {whole(mapping(each, "goal"), "tagged_frames") for each in documents if is_worst_the_maximum(each)}
    if not tags:
        return []
    return [
        f"With {' or '.join(map(format_count, sorted(tags)))} tagged frames in a repetition the 99.9th"
        " percentile is their maximum; with 1,000 or more it is not."
    ]


def _resolution_lines(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The worst resolution of each direction; none for files that do not state it."""
    found: dict[str, float] = {}
    for document in documents:
        for direction, figures in by_direction(document, "figures"):
            width_ns = number(figures, "pdv_resolution_ns")
            if width_ns is not None:
                found[direction] = max(width_ns, found.get(direction, 0.0))
    ends = ", ".join(f"{direction} {format_duration(width / 1e9)}" for direction, width in found.items())
    return (
        [f"PDV may be too high by at most the width of its class of the histogram: {ends}."] if ends else []
    )


def _own_loop_lines(document: Mapping[str, Any]) -> list[str]:
    """What the tester itself adds, and who took the stamps; nothing where the document does not state it."""
    own = mapping(document, "own_loop")
    lines: list[str] = []
    if unknown := text(own, "unknown"):
        lines = [f"What the tester's own loop adds at this load is not known: {unknown}."]
    elif own:
        shares = "; ".join(
            f"{direction}: median {_milliseconds(number(delays, 'median_ns'))} ms, 99.9th percentile"
            f" {_milliseconds(number(delays, 'percentile_99_9_ns'))} ms"
            for direction, delays in by_direction(own, "directions")
        )
        lasted = format_duration(number(own, "duration_s") or 0.0)
        lines = [
            f"Share of the tester's own loop at this load, {shares}: its two ports were"
            f" connected to each other inside this machine for {lasted},"
            " over all frames. It is included in the delays; nothing is subtracted."
        ]
    hardware = mapping(mapping(document, "stamps"), "hardware")
    stamps = ", ".join(
        f"{side}: {STAMPS.get(text(hardware, side), text(hardware, side))}" for side in hardware
    )
    return [*lines, f"Stamps are taken by software. Hardware stamps: {stamps}."] if stamps else lines


def _milliseconds(value_ns: float | None) -> str:
    """The unit that RFC 8219 asks for, down to a nanosecond. None is the delay of a lost frame, which never
    comes (R8219-16)."""
    return f"{value_ns / 1e6:.6f}" if value_ns is not None and math.isfinite(value_ns) else "infinite"
