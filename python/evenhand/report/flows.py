# SPDX-License-Identifier: Apache-2.0
"""Station 10: flows of a trial: rows for programs, one for each flow of each direction, and tables;
and what became of each flow at a point: in the trials that decide its result, all repetitions together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.procedure.registry import LOSS
from evenhand.report.export_column import ExportColumn, FlowPlace, RowPlace, Value
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import PointRecord, Repetition
from evenhand.run.unread_results import may_have, sought
from evenhand.trial import FlowLatency, FlowResult, TrialResult

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


_TITLES = (
    "trials",
    "flow",
    "direction",
    "#octets",
    "#offered frames",
    "#lost frames",
    *JUDGED_TITLES,
    "#lost",
    "#may lose",
    "#duplicates",
    "#out of order",
    "#remarked",
    "#median delay",
    "#99.9 %",
)
_CAPTION = (
    "Flows in the trials that decide the result: frames of all repetitions together, delays as the medians of"
    " their trials."
)


def shown_flows(found: PointRecord) -> Table | None:
    """None where frames are of no flows."""
    groups: dict[tuple[str, str, str], list[FlowPlace]] = {}
    trials: dict[str, int] = {}
    is_clean = False
    for repetition in found.repetitions:
        for trial in repetition.deciding_trials:
            which = _which(repetition, trial)
            trials[which] = trials.get(which, 0) + 1
            is_clean = is_clean or trial.result.is_judged_by_clean_time
            for place in flow_places(trial.result):
                groups.setdefault((which, place.flow.name, place.direction), []).append(place)
    rows = [
        _row_of_point(f"{format_count(trials[which])} {which}", name, direction, places)
        for (which, name, direction), places in groups.items()
    ]
    if not rows:
        return None
    return make_table(*without_judged(_TITLES, rows, is_clean=is_clean), caption=_CAPTION)


def _which(repetition: Repetition, trial: StoredTrial) -> str:
    verdict = "that passed" if trial.result.is_pass else "that failed"
    if repetition.procedure == LOSS.name:
        return f"at {format_count(trial.result.intended_fps)} fps {verdict}"
    return verdict


def _row_of_point(which: str, name: str, direction: str, places: Sequence[FlowPlace]) -> list[str | Cell]:
    first = places[0]
    offered = sum(place.of_class.offered_frames for place in places)
    lost = sum(place.of_class.lost_frames for place in places)
    judged = sum(place.judged.frames for place in places)
    judged_lost = sum(place.judged.lost_frames for place in places)
    ratio, most = judged_lost / judged if judged else 0.0, first.flow.loss_at_most
    return [
        which,
        name,
        direction,
        str(first.of_class.frame_size),
        format_count(offered),
        format_count(lost),
        format_count(judged),
        format_count(judged_lost),
        Cell(format_ratio(ratio), style="flag" if most is not None and ratio > most else ""),
        "" if most is None else format_ratio(most),
        format_count(sum(place.flow.duplicated_frames for place in places)),
        format_count(sum(place.flow.reordered_frames for place in places)),
        format_count(sum(place.flow.remarked_frames for place in places)),
        show_delay(_median(places, lambda latency: latency.p50_ns)),
        show_delay(_median(places, lambda latency: latency.p999_ns)),
    ]


def _median(places: Sequence[FlowPlace], get: Callable[[FlowLatency], float | None]) -> float | None:
    delays = [delay for place in places if (delay := get(place.flow.latency)) is not None]
    return median(delays) if delays else None
