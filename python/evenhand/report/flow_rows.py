# SPDX-License-Identifier: Apache-2.0
"""Station 10: the flows of a trial as rows for programs: one for each flow of each direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from evenhand.report.export_column import ExportColumn, FlowPlace, RowPlace, Value
from evenhand.run.unread_results import may_have, sought
from evenhand.trial import FlowResult, TrialResult

_FLOW = sought(r'"flow"')
"""Is in each document of a trial whose frames are of flows."""


def flow_places(result: TrialResult) -> Iterator[FlowPlace]:
    """In the order of the directions and of the plan; none where frames are of no flows."""
    if not may_have(result, _FLOW):
        return
    for direction, of_direction in result.directions.items():
        for of_class in of_direction.classes:
            if of_class.flow is not None:
                yield FlowPlace(direction, of_class, of_class.flow, result.judged(of_class))


def _of(get: Callable[[FlowPlace], Value]) -> Callable[[RowPlace], Value]:
    return lambda place: None if place.flow is None else get(place.flow)


def loss_ratio_of(place: FlowPlace) -> float | None:
    """The loss ratio of this flow in this direction, 0 to 1, of frames that are judged; None if none is."""
    return place.loss_ratio if place.judged.frames else None


_COUNTS: Mapping[str, Callable[[FlowResult], int]] = {
    "duplicated_frames": lambda f: f.duplicated_frames,
    "reordered_frames": lambda f: f.reordered_frames,
    "late_frames": lambda f: f.late_frames,
    "remarked_frames": lambda f: f.remarked_frames,
}
_DELAYS: Mapping[str, Callable[[FlowResult], float | None]] = {
    "latency_min_ns": lambda f: f.latency.min_ns,
    "latency_mean_ns": lambda f: f.latency.mean_ns,
    "latency_p50_ns": lambda f: f.latency.p50_ns,
    "latency_p99_ns": lambda f: f.latency.p99_ns,
    "latency_p999_ns": lambda f: f.latency.p999_ns,
    "latency_max_ns": lambda f: f.latency.max_ns,
}


def _of_flow(get: Callable[[FlowResult], Value]) -> Callable[[RowPlace], Value]:
    return _of(lambda place: get(place.flow))


FLOW_COLUMNS = (
    ExportColumn("direction", "text", _of(lambda place: place.direction)),
    ExportColumn("flow", "text", _of_flow(lambda f: f.name)),
    ExportColumn("flow_frame_size", "integer", _of(lambda place: place.of_class.frame_size)),
    ExportColumn("offered_frames", "integer", _of(lambda place: place.of_class.offered_frames)),
    ExportColumn("received_frames", "integer", _of(lambda place: place.of_class.received_frames)),
    ExportColumn("lost_frames", "integer", _of(lambda place: place.of_class.lost_frames)),
    ExportColumn("judged_frames", "integer", _of(lambda place: place.judged.frames), is_of_clean_time=True),
    ExportColumn(
        "judged_lost_frames", "integer", _of(lambda place: place.judged.lost_frames), is_of_clean_time=True
    ),
    ExportColumn("loss_ratio", "real", _of(loss_ratio_of)),
    ExportColumn("loss_at_most", "real", _of_flow(lambda f: f.loss_at_most)),
    *(ExportColumn(name, "integer", _of_flow(get)) for name, get in _COUNTS.items()),
    *(ExportColumn(name, "real", _of_flow(get)) for name, get in _DELAYS.items()),
)
