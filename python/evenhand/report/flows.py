# SPDX-License-Identifier: Apache-2.0
"""Station 10: tables of several flows at once."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.report.export_column import FlowPlace
from evenhand.report.flow_rows import flow_places
from evenhand.trial import TrialResult

JUDGED_TITLES = ("#judged frames", "#lost of these")
"""Columns of trials that are judged by their clean time."""
_HEADINGS = (
    "",
    "#octets",
    "#offered frames",
    "#lost frames",
    *JUDGED_TITLES,
    "#lost",
    "#may lose",
    "#duplicates",
    "#out of order",
    "#median delay",
    "#99.9 %",
)


def has_flows(result: TrialResult) -> bool:
    return any(True for _ in flow_places(result))


def flows_table(result: TrialResult) -> Table:
    """A row for each flow of each direction."""
    rows = [_row(place) for place in flow_places(result)]
    return make_table(*without_judged(_HEADINGS, rows, is_clean=result.is_judged_by_clean_time))


def without_judged(
    titles: Sequence[str], rows: Sequence[Sequence[Cell | str]], *, is_clean: bool
) -> tuple[list[str], list[list[Cell | str]]]:
    """Without the columns of `JUDGED_TITLES`, where no trial was judged by its clean time: they would say the
    same as those in front of them."""
    kept = [at for at, title in enumerate(titles) if is_clean or title not in JUDGED_TITLES]
    return [titles[at] for at in kept], [[row[at] for at in kept] for row in rows]


def failed_flows(result: TrialResult) -> list[str]:
    """Flows that lost more than their own limit, over both directions: `voice lost 3 of 30,000 frames (at
    most 0 %)`."""
    found: dict[str, list[FlowPlace]] = {}
    for place in flow_places(result):
        found.setdefault(place.flow.name, []).append(place)
    failed = []
    for name, places in found.items():
        lost = sum(place.judged.lost_frames for place in places)
        judged = sum(place.judged.frames for place in places)
        most = places[0].flow.loss_at_most
        if most is not None and lost > most * judged:
            failed.append(
                f"{name} lost {format_count(lost)} of {format_count(judged)} frames (at most"
                f" {format_ratio(most)})"
            )
    return failed


def _row(place: FlowPlace) -> list[str]:
    of_class, flow = place.of_class, place.flow
    return [
        f"{place.direction}, {flow.name}",
        str(of_class.frame_size),
        format_count(of_class.offered_frames),
        format_count(of_class.lost_frames),
        format_count(place.judged.frames),
        format_count(place.judged.lost_frames),
        format_ratio(place.loss_ratio),
        "" if flow.loss_at_most is None else format_ratio(flow.loss_at_most),
        format_count(flow.duplicated_frames),
        format_count(flow.reordered_frames),
        show_delay(flow.latency.p50_ns),
        show_delay(flow.latency.p999_ns),
    ]


def show_delay(delay_ns: float | None) -> str:
    return "none" if delay_ns is None else f"{delay_ns / 1000:.4g} us"
