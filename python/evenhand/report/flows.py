# SPDX-License-Identifier: Apache-2.0
"""Station 10: tables of several flows at once."""

from __future__ import annotations

from evenhand.base.table import Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.report.export_column import FlowPlace
from evenhand.report.flow_rows import flow_places, loss_ratio_of
from evenhand.trial import TrialResult

_HEADINGS = (
    "",
    "#octets",
    "#offered frames",
    "#lost frames",
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
    return make_table(_HEADINGS, [_row(place) for place in flow_places(result)])


def failed_flows(result: TrialResult) -> list[str]:
    """Flows that lost more than their own limit, over both directions: `voice lost 3 of 30,000 frames (at
    most 0 %)`."""
    found: dict[str, list[FlowPlace]] = {}
    for place in flow_places(result):
        found.setdefault(place.flow.name, []).append(place)
    failed = []
    for name, places in found.items():
        lost = sum(place.of_class.lost_frames for place in places)
        offered = sum(place.of_class.offered_frames for place in places)
        most = places[0].flow.loss_at_most
        if most is not None and lost > most * offered:
            failed.append(
                f"{name} lost {format_count(lost)} of {format_count(offered)} frames (at most"
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
        format_ratio(loss_ratio_of(place) or 0.0),
        "" if flow.loss_at_most is None else format_ratio(flow.loss_at_most),
        format_count(flow.duplicated_frames),
        format_count(flow.reordered_frames),
        show_delay(flow.latency.p50_ns),
        show_delay(flow.latency.p999_ns),
    ]


def show_delay(delay_ns: float | None) -> str:
    return "none" if delay_ns is None else f"{delay_ns / 1000:.4g} us"
