# SPDX-License-Identifier: Apache-2.0
"""Station 10: tables of results that documents ask for: R2544-23, R8219-11, R8219-12, R9004-11."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.analysis import Analysis
from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count, format_line_rate
from evenhand.plan import SIDES, parse_imix, unlike_line_rates
from evenhand.procedure.descriptor import Section
from evenhand.procedure.registry import (
    BACK_TO_BACK,
    IPDV,
    LATENCY,
    LOSS,
    PDV,
    PROCEDURES,
    THROUGHPUT,
    Procedure,
    procedures_in,
)
from evenhand.report.back_to_back import back_to_back_table
from evenhand.report.figures import Picture
from evenhand.report.found import report_of
from evenhand.report.page_figures import Pictures
from evenhand.report.page_inside import inside_of
from evenhand.report.page_words import (
    NONE,
    measured_cells,
    show_addresses,
    show_protocol,
    show_value,
    unit_of,
)
from evenhand.report.result_entry import RepeatedEntry, ResultEntry, mapping, number, size_label, table_of
from evenhand.report.stored_results import joined_entry, stored_entry
from evenhand.report.table import INTERVAL, throughput_sizes_table
from evenhand.results.throughput import ThroughputFound
from evenhand.run.campaign_record import CampaignRecord, PointRecord


def throughput_table(record: CampaignRecord) -> Table | None:
    """R2544-23: each advertised rate with its frame size, protocol and theoretical limit; for suites over
    frame sizes."""
    found = [one for one in record.points if one.point.procedure == THROUGHPUT.name and one.values]
    suites: dict[str, set[Any]] = {}
    for one in found:
        suites.setdefault(one.point.suite, set()).add(one.point.frame_size)
    entries = [
        RepeatedEntry(
            repetitions=[
                replace(
                    repetition.found or ThroughputFound(),
                    outcome=repetition.outcome or "",
                    is_at_least=repetition.is_at_least,
                    throughput_fps=repetition.value,
                )
                for repetition in one.repetitions
                if repetition.finished_at is not None
            ],
            labels=_labels(one),
        )
        for one in found
        if len(suites[one.point.suite]) > 1
    ]
    # The interval of the exports has the whole bracket of each search, that of the verb's table has not.
    return throughput_sizes_table(entries, leave_out=(INTERVAL,)) if entries else None


def latency_table(record: CampaignRecord) -> Table | None:
    """R8219-11: rate, media, typical and worst case latency, percentiles of the repetitions."""
    return _results_table(record, LATENCY)


def variation_table(record: CampaignRecord) -> Table | None:
    """R8219-12, R8219-13."""
    return _results_table(record, PDV, IPDV)


def burst_table(record: CampaignRecord) -> Table | None:
    """R9004-11: a row for each frame size, with the number of repetitions, the step and the longest burst
    that was tried."""
    entries = _entries(record, BACK_TO_BACK)
    return back_to_back_table(entries) if entries else None


def figures_table(record: CampaignRecord, procedures: tuple[str, ...]) -> Table | None:
    """Results of one procedure; of procedures that have no table of their own, one number of each point."""
    if len(procedures) == 1 and not report_of(PROCEDURES[procedures[0]]).is_of_figures:
        return _results_table(record, PROCEDURES[procedures[0]])
    found = [one for one in record.points if one.point.procedure in procedures and one.values]
    rows: list[tuple[Mapping[str, str], list[list[str | Cell]]]] = [
        (_labels(one), [[PROCEDURES[one.point.procedure].figure.name, *_figures(one), str(len(one.values))]])
        for one in found
    ]
    titles = ["metric", "#result", "#minimum", "#maximum", "#repetitions"]
    return table_of(rows, titles, title="", fold=("metric",)) if found else None


def _figures(one: PointRecord) -> tuple[Cell, Cell, Cell]:
    """One value alone is no range."""
    median, low, high = measured_cells(one, unit_of(one.point))
    return (median, low, high) if len(one.values) > 1 else (median, Cell(NONE), Cell(NONE))


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
            opened = search.setup.get("opened") or {}
            port = opened.get("left") or {}
            rates = {side: (opened.get(side) or {}).get("line_rate_bps") for side in SIDES}
            if None not in rates.values() and len(set(rates.values())) > 1:
                return f"Ethernet, {unlike_line_rates(rates)}"
            rate = port.get("line_rate_bps") or (repetition.result or {}).get("line_rate_bps")
            if rate is not None:
                return f"Ethernet, {format_line_rate(rate)}"
            if port.get("driver"):
                return str(port["driver"])
    return NONE


def _results_table(record: CampaignRecord, *procedures: Procedure) -> Table | None:
    """By the table of the first of them."""
    entries = _entries(record, *procedures)
    return report_of(procedures[0]).table(entries) if entries else None


def _entries(record: CampaignRecord, *procedures: Procedure) -> list[ResultEntry]:
    """All results of them, in the order of the procedures."""
    points = [
        one
        for procedure in procedures
        for one in record.points
        if one.point.procedure == procedure.name and one.results
    ]
    are_repeated = any(len(one.results) > 1 for one in points)
    found: list[ResultEntry] = []
    for one in points:
        joined = joined_entry(record, one, _result_labels(one))
        repeated = [
            stored_entry(
                record,
                repetition,
                {**_result_labels(one), **({"#repetition": str(repetition.number)} if are_repeated else {})},
            )
            for repetition in one.results
        ]
        found += repeated if joined is None else [joined]
    return found


def _result_labels(one: PointRecord) -> dict[str, str]:
    result = one.results[0].result or {}
    rate_fps = number(mapping(result, "goal") or one.point.goal, "rate_fps_per_direction")
    more = {"#rate": show_value(rate_fps, "fps"), "media": media(one)}
    return {**_labels(one), **{name: text for name, text in more.items() if text != NONE}}


def _labels(one: PointRecord) -> dict[str, str]:
    size = one.point.frame_size
    return {
        "suite": one.point.suite,
        **size_label(size if isinstance(size, int) else parse_imix(size)),
        "protocol": show_protocol(one.point),
        "addresses": show_addresses(one.point),
    }


def _up_to(count: int | None) -> str:
    return "no rise" if count is None else f"{format_count(count)} x {format_count(count)}"


def _above(count: int | None) -> str:
    return "no fall" if count is None else f"{format_count(count)} x {format_count(count)}"


_TABLES: Mapping[str, Callable[[CampaignRecord], Table | None]] = {
    THROUGHPUT.name: throughput_table,
    LOSS.name: lambda record: None,  # its picture has all
    LATENCY.name: latency_table,
    PDV.name: variation_table,
    IPDV.name: variation_table,
    BACK_TO_BACK.name: burst_table,
}
"""Tables of procedures that find more than a number; a procedure without one is shown by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading with what is below it."""

    anchor: str
    title: str
    pictures: Sequence[Picture]
    tables: Sequence[Table]


def sections_of(record: CampaignRecord, pictures: Pictures) -> list[PageSection]:
    """Those with content. The first picture of the page is not shown twice."""
    inside = inside_of(record)
    first, *others = (
        PageSection(
            anchor=section.anchor,
            title=section.title,
            pictures=[each for each in pictures.by_section[section] if each not in pictures.first],
            tables=list(_tables(record, section)),
        )
        for section in Section
    )
    sections = [
        first,
        PageSection(anchor="inside", title="Inside the DUT", pictures=inside.pictures, tables=inside.tables),
        *others,
        PageSection(anchor="over-time", title="Loss over time", pictures=pictures.histories, tables=()),
    ]
    return [section for section in sections if section.pictures or section.tables]


def _tables(record: CampaignRecord, section: Section) -> Iterator[Table]:
    names = procedures_in(section)
    numbers = tuple(name for name in names if name not in _TABLES)
    made = [table(record) for table in dict.fromkeys(_TABLES[name] for name in names if name in _TABLES)]
    made += [
        figures_table(record, some)
        for some in ((numbers,) if section is Section.OTHERS else ((name,) for name in numbers))
    ]
    yield from (table for table in made if table is not None)
