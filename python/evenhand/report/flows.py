# SPDX-License-Identifier: Apache-2.0
"""Station 10: tables of several flows at once."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.base.table import Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.trial import ClassCount, FlowResult, TrialResult

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
    return any(True for _ in _flows(result))


def flows_table(result: TrialResult) -> Table:
    """A row for each flow of each direction."""
    return make_table(_HEADINGS, [_row(*each) for each in _flows(result)])


def _flows(result: TrialResult) -> Iterator[tuple[str, ClassCount, FlowResult]]:
    for name, direction in result.directions.items():
        for of_class in direction.classes:
            if of_class.flow is not None:
                yield name, of_class, of_class.flow


def _row(direction: str, of_class: ClassCount, flow: FlowResult) -> list[str]:
    lost = of_class.lost_frames / of_class.offered_frames if of_class.offered_frames else 0.0
    return [
        f"{direction}, {flow.name}",
        str(of_class.frame_size),
        format_count(of_class.offered_frames),
        format_count(of_class.lost_frames),
        format_ratio(lost),
        "" if flow.loss_at_most is None else format_ratio(flow.loss_at_most),
        format_count(flow.duplicated_frames),
        format_count(flow.reordered_frames),
        _delay(flow.latency.p50_ns),
        _delay(flow.latency.p999_ns),
    ]


def _delay(delay_ns: float | None) -> str:
    return "none" if delay_ns is None else f"{delay_ns / 1000:.4g} us"
