# SPDX-License-Identifier: Apache-2.0
"""Station 10: tables of results that documents ask for: R2544-23, R8219-11, R8219-12, R9004-11."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from evenhand.analysis import Analysis
from evenhand.base.units import format_count, format_duration, format_line_rate, format_ratio
from evenhand.procedure.registry import BACK_TO_BACK, IPDV, LATENCY, PDV, PROCEDURES, THROUGHPUT
from evenhand.report.page_words import (
    DASH,
    NONE,
    Table,
    make_table,
    median_of,
    show_addresses,
    show_median,
    show_ns,
    show_protocol,
    show_range,
    show_size,
    show_value,
)
from evenhand.run.campaign_record import AT_LEAST, CampaignRecord, PointRecord
from evenhand.run.figures import is_worst_the_maximum

FOLDED = ("suite", "protocol", "addresses", "media", "rate", "metric")
"""Columns that a table does without where all rows have the same there."""
OF_DIRECTION = ("suite", "frame size", "direction", "#rate", "media")
WORST_OF = {"typical": "worst_case", "latency": ""}
"""Name of the typical latency in documents, by RFC 8219 and by RFC 2544; and that of the worst case, where
there is one."""
VARIATIONS = {
    "pdv": "PDV",
    "ipdv_min": "IPDV, minimum",
    "ipdv_median": "IPDV, median",
    "ipdv_max": "IPDV, maximum",
}


WHAT_COUNTS = (
    "Excluded: the largest number of frames of a run that the tester sent late, or right behind late"
    " ones; a delay counts from the frame's own stamp, so they affect no other frame."
)
OF_RESOLUTION = "PDV may be too high by at most {}, the width of its class of the histogram."
OF_FEW_TAGS = (
    "With {} tagged frames in a run the 99.9th percentile, the worst case, is their maximum; with 1,000"
    " or more it is not."
)


def throughput_table(record: CampaignRecord) -> Table | None:
    """R2544-23: each advertised rate with its frame size, protocol and theoretical limit; for suites over
    frame sizes."""
    found = [one for one in record.points if one.point.procedure == THROUGHPUT.name and one.values]
    suites: dict[str, set[Any]] = {}
    for one in found:
        suites.setdefault(one.point.suite, set()).add(one.point.frame_size)
    rows = []
    for one in found:
        if len(suites[one.point.suite]) < 2:
            continue
        limit, median = _limit_fps(one), median_of(one)
        share = (
            NONE
            if limit is None or median is None
            else f"{AT_LEAST if one.is_at_least else ''}{format_ratio(median / limit)}"
        )
        rows.append(
            [
                one.point.suite,
                show_size(one.point),
                show_protocol(one.point),
                show_addresses(one.point),
                show_median(one),
                show_range(one),
                "unknown" if limit is None else show_value(limit, "fps"),
                share,
                str(len(one.values)),
            ]
        )
    titles = [
        "suite",
        "frame size",
        "protocol",
        "addresses",
        "#throughput",
        "#range",
        "#theoretical limit",
        "#of the limit",
        "#repetitions",
    ]
    return make_table(titles, rows, caption="Medians per direction.", fold=FOLDED) if rows else None


def latency_table(record: CampaignRecord) -> Table | None:
    """R8219-11: a row for each frame size and direction: rate, media, typical and worst case latency,
    percentiles of the runs."""
    rows = []
    tags = {
        int(result["goal"]["tagged_frames"])
        for _, result in _results(record, LATENCY.name)
        if is_worst_the_maximum(result)
    }
    for beginning, figures in _directions(record, LATENCY.name):
        name = next((name for name in WORST_OF if figures.get(name)), None)
        if name is None:
            continue
        typical, worst = figures[name], figures.get(WORST_OF[name])
        rows.append(
            [
                *beginning,
                show_ns(typical["median_ns"] if name == "typical" else typical["average_ns"]),
                NONE if not worst else show_ns(worst["median_ns"]),
                _percentiles(typical),
                str(typical["count"]),
                format_count(figures.get("lost_frames") or 0),
                format_count(figures.get("left_out_frames") or 0),
            ]
        )
    titles = [
        *OF_DIRECTION,
        "#typical latency",
        "#worst case latency",
        "#1st to 99th percentile",
        "#runs",
        "#lost",
        "#left out",
    ]
    caption = (
        "Medians of the runs (RFC 8219, 7.2); for RFC 2544's latency the average. Percentiles: of the"
        " typical latency over the runs."
    )
    caption += f" {WHAT_COUNTS}"
    if tags:
        caption += f" {OF_FEW_TAGS.format(' or '.join(format_count(count) for count in sorted(tags)))}"
    return make_table(titles, rows, caption=caption, fold=FOLDED) if rows else None


def variation_table(record: CampaignRecord) -> Table | None:
    """R8219-12, R8219-13."""
    rows = []
    widest_ns = 0.0
    for beginning, figures in chain(_directions(record, PDV.name), _directions(record, IPDV.name)):
        widest_ns = max(widest_ns, figures.get("pdv_resolution_ns") or 0.0)
        for name, title in VARIATIONS.items():
            if figures.get(name):
                figure = figures[name]
                ends = (
                    [NONE, NONE]
                    if figure["count"] < 2
                    else [_milliseconds(figure[f"percentile_{share}_ns"]) for share in (1, 99)]
                )
                rows.append(
                    [
                        *beginning,
                        title,
                        _milliseconds(figure["median_ns"]),
                        *ends,
                        str(figure["count"]),
                        format_count(figures.get("lost_frames") or 0),
                        format_count(figures.get("left_out_frames") or 0),
                    ]
                )
    titles = [
        *OF_DIRECTION,
        "metric",
        "#median, ms",
        "#1st percentile, ms",
        "#99th percentile, ms",
        "#runs",
        "#lost",
        "#left out",
    ]
    caption = f"Over the runs (RFC 8219, 7.3). {WHAT_COUNTS}"
    if widest_ns:
        caption += f" {OF_RESOLUTION.format(show_ns(widest_ns))}"
    return make_table(titles, rows, caption=caption, fold=FOLDED) if rows else None


def burst_table(record: CampaignRecord) -> Table | None:
    """R9004-11: a row for each frame size, with the number of repetitions, the step and the longest burst
    that was tried."""
    rows = []
    for one, whole in _results(record, BACK_TO_BACK.name):
        for result in whole.get("rows") or [whole]:
            goal = result.get("goal") or {}
            bound = AT_LEAST if result.get("is_at_least") is True else ""
            longest = result.get("longest_burst_tried_frames")
            rows.append(
                [
                    one.point.suite,
                    show_size(one.point),
                    _bounded(bound, _count(result.get("average_frames"))),
                    f"{_bounded(bound, _count(result.get('minimum_frames')))} {DASH}"
                    f" {_bounded(bound, _count(result.get('maximum_frames')))}",
                    _count(result.get("standard_deviation_frames")),
                    _bounded(bound, _seconds(result.get("corrected_buffer_time_s"))),
                    _bounded(bound, _seconds(result.get("implied_buffer_time_s"))),
                    str(len(result.get("values") or [])),
                    _count(goal.get("step_frames")),
                    _count(goal.get("max_burst_frames") if longest is None else longest),
                ]
            )
    titles = [
        "suite",
        "frame size",
        "#average burst, frames",
        "#minimum to maximum",
        "#standard deviation",
        "#corrected buffer time",
        "#implied buffer time",
        "#N",
        "#step, frames",
        "#longest burst tried",
    ]
    return make_table(titles, rows, caption="Back-to-back frames (RFC 9004).", fold=FOLDED) if rows else None


def figures_table(record: CampaignRecord, procedures: tuple[str, ...]) -> Table | None:
    """One number of each point of procedures that have no table of their own."""
    rows = [
        [
            one.point.suite,
            PROCEDURES[one.point.procedure].figure.name,
            show_size(one.point),
            show_addresses(one.point),
            show_median(one),
            show_range(one),
            str(len(one.values)),
        ]
        for one in record.points
        if one.point.procedure in procedures and one.values
    ]
    return (
        make_table(
            ["suite", "metric", "frame size", "addresses", "#result", "#range", "#repetitions"],
            rows,
            fold=FOLDED,
        )
        if rows
        else None
    )


def published_table(analysis: Analysis) -> Table | None:
    """A comparison with the draft's Figure 7 (SEED-66)."""
    rows = []
    for comparison in analysis.published:
        predicted = (_up_to(comparison.predicted_rise_end), _above(comparison.predicted_falls_above))
        rows.append(
            [
                comparison.curve.title,
                "found here",
                _up_to(comparison.found_rise_end),
                _above(comparison.found_falls_above),
            ]
        )
        if comparison.is_predicted:
            rows.append(["", "predicted from the DUT's configuration", *predicted])
        rows += [
            ["", f"published: {row.name}, {row.dut}", _up_to(row.rise_end), _above(row.falls_above)]
            for row in comparison.rows
        ]
    return (
        make_table(
            ["series", "source", "rises up to", "falls above"],
            rows,
            caption="Compared with Figure 7 of the draft.",
        )
        if rows
        else None
    )


def media(one: PointRecord) -> str:
    """What the ports are: `10 Gbps`, or the driver of ports without a line rate."""
    for repetition in one.repetitions:
        for search in repetition.searches:
            port = (search.setup.get("opened") or {}).get("left") or {}
            rate = port.get("line_rate_bps") or (repetition.result or {}).get("line_rate_bps")
            if rate is not None:
                return f"Ethernet, {format_line_rate(rate)}"
            if port.get("driver"):
                return str(port["driver"])
    return NONE


def _results(record: CampaignRecord, procedure: str) -> Iterator[tuple[PointRecord, Mapping[str, Any]]]:
    for one in record.points:
        if one.point.procedure == procedure:
            for repetition in one.repetitions:
                if repetition.finished_at is not None and repetition.result is not None:
                    yield one, repetition.result


def _directions(record: CampaignRecord, procedure: str) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """The columns of `OF_DIRECTION`, and the figures of that direction."""
    for one, result in _results(record, procedure):
        for direction, figures in (result.get("figures") or {}).items():
            yield [one.point.suite, show_size(one.point), direction, _rate(result), media(one)], figures


def _limit_fps(one: PointRecord) -> float | None:
    found = (
        repetition.result.get("theoretical_fps_per_direction")
        for repetition in one.repetitions
        if repetition.result is not None
    )
    return next((limit for limit in found if limit is not None), None)


def _rate(result: Mapping[str, Any]) -> str:
    return show_value((result.get("goal") or {}).get("rate_fps_per_direction"), "fps")


def _percentiles(figure: Mapping[str, Any]) -> str:
    """One value alone has none."""
    if figure["count"] < 2:
        return NONE
    return f"{show_ns(figure['percentile_1_ns'])} {DASH} {show_ns(figure['percentile_99_ns'])}"


def _milliseconds(value_ns: float | None) -> str:
    return "infinite" if value_ns is None else f"{value_ns / 1e6:.4g}"


def _bounded(bound: str, text: str) -> str:
    return text if text == NONE else bound + text


def _seconds(value_s: float | None) -> str:
    return NONE if value_s is None else format_duration(value_s)


def _count(value: float | None) -> str:
    return NONE if value is None else format_count(round(value, 1))


def _up_to(count: int | None) -> str:
    return "no rise" if count is None else f"{format_count(count)} x {format_count(count)}"


def _above(count: int | None) -> str:
    return "no fall" if count is None else f"{format_count(count)} x {format_count(count)}"
