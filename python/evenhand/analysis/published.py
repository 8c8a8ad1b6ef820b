# SPDX-License-Identifier: Apache-2.0
"""Analysis: a series next to the rows of the draft's Figure 7 and next to what the DUT's own configuration
predicts (SEED-66).

A difference is explained by what is known, never tuned away: the published routers had other hash keys,
tables and caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from evenhand.analysis.condition_words import show_percent
from evenhand.analysis.curve_model import Curve, Shape
from evenhand.analysis.model import PublishedComparison, PublishedRow
from evenhand.analysis.plans import ip_version, is_direct
from evenhand.analysis.plateau import find_shape
from evenhand.base.units import format_count
from evenhand.procedure.registry import THROUGHPUT
from evenhand.procedure.statistics import Statistics
from evenhand.run.campaign_record import CampaignRecord

FIGURE_7 = (
    PublishedRow(
        name="Case 1 of Figure 7",
        dut="Debian 11.7, IPv4, 16 cores",
        ip_version=4,
        rise_end=16,
        falls_above=4096,
    ),
    PublishedRow(
        name="Case 2 of Figure 7",
        dut="Debian 11.7, IPv6, 16 cores",
        ip_version=6,
        rise_end=4,
        falls_above=4096,
    ),
    PublishedRow(
        name="Case 3 of Figure 7",
        dut="OpenBSD 7.3, IPv4, 16 cores",
        ip_version=4,
        rise_end=8,
        falls_above=None,
    ),
    PublishedRow(
        name="Case 4 of Figure 7",
        dut="Ubuntu 22.04 LTS, IPv4, 36 cores",
        ip_version=4,
        rise_end=64,
        falls_above=2048,
    ),
)
"""Rows with hosts on the link and a hash of addresses only."""


def published_comparisons(record: CampaignRecord, curves: Sequence[Curve]) -> tuple[PublishedComparison, ...]:
    """One for each series of throughput over addresses on the link that has three points or more, and whose
    plateau is not a lower bound."""
    return tuple(
        _comparison(curve, curve.shape, _rows_for(record, curve))
        for curve in curves
        if curve.shape is not None
        and not curve.shape.is_capped
        and curve.key.procedure == THROUGHPUT.name
        and curve.key.hash_type != "type2"
        and is_direct(curve.key.plan)
        and ip_version(curve.key.plan) is not None
        and len(curve.measured) >= 3
    )


def predicted_shape(curve: Curve) -> Shape | None:
    """The shape of the prediction, at the points that were measured and by the same rule; None if nothing is
    known of the DUT."""
    points = [
        replace(
            point,
            values=(point.predicted,),
            statistics=Statistics.of([point.predicted]),
            # What the searches left open is of the measured values.
            uppers=(),
            lowers=(),
            lower_bounds=(),
            at_tester_ceiling=0,
        )
        for point in curve.measured
        if point.predicted is not None
    ]
    return find_shape(points, curve.figure) if len(points) == len(curve.measured) else None


def show_span(rise_end: int | None, falls_above: int | None) -> str:
    """`rises up to 16 x 16, falls above 4,096 x 4,096`."""
    rise = "does not rise" if rise_end is None else f"rises up to {_square(rise_end)}"
    return f"{rise}, {'does not fall' if falls_above is None else f'falls above {_square(falls_above)}'}"


def _comparison(curve: Curve, shape: Shape, rows: tuple[PublishedRow, ...]) -> PublishedComparison:
    expected = predicted_shape(curve)
    sentences = [f"Found: {show_span(shape.rise_end, shape.falls_above)}."]
    if expected is None:
        sentences.append(
            "The elements and the hash of the DUT are not known, so there is no prediction: it is a"
            " black box."
        )
    else:
        sentences += _against_prediction(curve, shape, expected)
    for row in rows:
        sentences += _against_row(curve, shape, expected, row)
    return PublishedComparison(
        curve=curve.key,
        found_rise_end=shape.rise_end,
        found_falls_above=shape.falls_above,
        is_predicted=expected is not None,
        predicted_rise_end=None if expected is None else expected.rise_end,
        predicted_falls_above=None if expected is None else expected.falls_above,
        rows=rows,
        sentences=tuple(sentences),
    )


def _against_prediction(curve: Curve, shape: Shape, expected: Shape) -> list[str]:
    span = show_span(expected.rise_end, expected.falls_above)
    if (shape.rise_end, shape.falls_above) == (expected.rise_end, expected.falls_above):
        return [f"The DUT's own configuration predicts the same: {span}."]
    # What one of them counts as plateau and the other does not: how far from it is each there?
    apart = [
        point
        for point in curve.measured
        if (point.address_count in shape.plateau) != (point.address_count in expected.plateau)
    ]
    shares = [
        f"{point.label} is predicted at {show_percent((point.predicted or 0) / expected.plateau_level)} of"
        " the plateau and was found at"
        f" {show_percent(median(point.values) / shape.plateau_level)}"
        for point in apart
    ]
    return [
        f"The DUT's own configuration predicts: {span}. {'; '.join(shares)}; {show_percent(shape.relevant)}"
        " below it is the limit."
    ]


def _against_row(curve: Curve, shape: Shape, expected: Shape | None, row: PublishedRow) -> list[str]:
    published = f"{row.name} ({row.dut}): {show_span(row.rise_end, row.falls_above)}"
    if (shape.rise_end, shape.falls_above) == (row.rise_end, row.falls_above):
        return [f"{published}; the same as here."]
    return [
        f"{published}.",
        *_rise_difference(curve, shape, expected, row),
        *_fall_difference(curve, shape, expected, row),
    ]


def _rise_difference(curve: Curve, shape: Shape, expected: Shape | None, row: PublishedRow) -> list[str]:
    if shape.rise_end == row.rise_end:
        return []
    there = next((point for point in curve.measured if point.address_count == row.rise_end), None)
    if there is None:
        return [f"{_square(row.rise_end)} was not measured."]
    found = (
        f"At {there.label} this DUT was at {show_percent(median(there.values) / shape.plateau_level)} of"
        " its plateau"
    )
    if expected is None or there.predicted is None:
        return [
            f"{found}: when the load becomes even depends on the number of its elements, its hash key and"
            " its table."
        ]
    share = there.predicted / expected.plateau_level
    return [
        f"{found}, and its hash, key and table predict {show_percent(share)} there; the key of the published"
        " DUT is not known."
    ]


def _fall_difference(curve: Curve, shape: Shape, expected: Shape | None, row: PublishedRow) -> list[str]:
    if shape.falls_above == row.falls_above:
        return []
    if expected is not None and expected.falls_above == shape.falls_above:
        if shape.falls_above is None:
            return [
                "The neighbour table costs this DUT nothing, or too little to measure, up to the largest"
                " number measured."
            ]
        return [
            f"The neighbour table of this DUT begins to cost beyond {_square(shape.falls_above)}, as it is"
            " configured to."
        ]
    if (
        shape.falls_above is None
        and row.falls_above is not None
        and curve.measured[-1].address_count <= row.falls_above
    ):
        return [f"This series ends at {curve.measured[-1].label}, before the published fall."]
    return [
        "The number at which a neighbour table begins to cost depends on the caches of the DUT and on"
        " how it stores its neighbours."
    ]


def _rows_for(record: CampaignRecord, curve: Curve) -> tuple[PublishedRow, ...]:
    """What the campaign says was published of such a series, if it does; else the rows of Figure 7 with its
    IP version."""
    version = ip_version(curve.key.plan)
    tables = record.spec.get("published") or ()
    own = [
        _row(table, version)
        for table in tables
        if isinstance(table, Mapping) and table.get("plan") in (None, curve.key.plan)
    ]
    return tuple(row for row in own if row is not None) or tuple(
        row for row in FIGURE_7 if row.ip_version == version
    )


def _row(table: Mapping[str, Any], version: int | None) -> PublishedRow | None:
    """The row of a campaign's `[[published]]`; None if it states no rise."""
    rise_end, falls_above = table.get("rises-up-to"), table.get("falls-above")
    if not isinstance(rise_end, int) or version is None:
        return None
    same = [
        row
        for row in FIGURE_7
        if (row.ip_version, row.rise_end, row.falls_above) == (version, rise_end, falls_above)
    ]
    dut = (table.get("dut") or {}).get("system") or "as published"
    own = PublishedRow(
        name=str(table.get("name")),
        dut=str(dut),
        ip_version=version,
        rise_end=rise_end,
        falls_above=falls_above,
    )
    return same[0] if same else own


def _square(address_count: int) -> str:
    return f"{format_count(address_count)} x {format_count(address_count)}"
