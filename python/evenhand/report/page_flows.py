# SPDX-License-Identifier: Apache-2.0
"""Station 10: what became of each flow at a point: in the trials that decide its result, all repetitions
together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.procedure.registry import LOSS
from evenhand.report.export_column import FlowPlace
from evenhand.report.flows import JUDGED_TITLES, flow_places, show_delay, without_judged
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import PointRecord, Repetition
from evenhand.trial import FlowLatency

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
        _row(f"{format_count(trials[which])} {which}", name, direction, places)
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


def _row(which: str, name: str, direction: str, places: Sequence[FlowPlace]) -> list[str | Cell]:
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
