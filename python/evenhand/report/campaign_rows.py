# SPDX-License-Identifier: Apache-2.0
"""Station 10: a campaign as tables of plain values, for programs: its points, their repetitions, their
trials, the flows of these.

docs/reference/export.md lists the columns; a test holds it against these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from evenhand.analysis.inside import SeenTrial, seen_trial
from evenhand.procedure import Statistics
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.export_column import ExportColumn, RowPlace, Value
from evenhand.report.flows import FLOW_COLUMNS, flow_places
from evenhand.results.delay import DelayFound
from evenhand.run import CampaignRecord, PointRecord, Repetition, StoredSearch, StoredTrial
from evenhand.run.figures import losses_of, time_left_out_at, time_left_out_of
from evenhand.run.point_document import point_of
from evenhand.spec.request import Point
from evenhand.trial import DirectionResult, TimeLeftOut, Verdict

TableName = Literal["points", "repetitions", "trials", "flows"]
_DIRECTIONS = ("forward", "reverse")


def columns_of(record: CampaignRecord, table: TableName) -> list[ExportColumn]:
    """The columns of `COLUMNS` that this record has."""
    has_clean_time = any(
        place.trial is not None and place.trial.result.is_judged_by_clean_time
        for place in _places(record, "trials")
    )
    return [column for column in COLUMNS[table] if has_clean_time or not column.is_of_clean_time]


def rows_of(record: CampaignRecord, table: TableName) -> Iterator[dict[str, Value]]:
    """In the order in which they were asked for or made."""
    columns = columns_of(record, table)
    for place in _places(record, table):
        yield {column.name: column.of(place) for column in columns}


def verdicts_of(trials: Iterable[StoredTrial]) -> Counter[Verdict]:
    """How many there are of each."""
    return Counter(trial.result.verdict for trial in trials)


def trials_of(record: PointRecord) -> list[StoredTrial]:
    """All that were made for it, those of repetitions that were cut short too."""
    return [
        trial
        for repetition in record.repetitions
        for search in repetition.searches
        for trial in search.trials
    ]


def _places(record: CampaignRecord, table: TableName) -> Iterator[RowPlace]:
    if table == "flows":
        for place in _places(record, "trials"):
            if place.trial is not None:
                yield from (replace(place, flow=flow) for flow in flow_places(place.trial.result))
        return
    for point in record.points:
        if table == "points":
            yield RowPlace(record=point)
            continue
        for repetition in point.repetitions:
            if table == "repetitions":
                yield RowPlace(record=point, repetition=repetition)
                continue
            for search in repetition.searches:
                yield from (
                    RowPlace(record=point, repetition=repetition, search=search, trial=trial)
                    for trial in search.trials
                )
    if table == "trials":
        for search in record.other_searches:
            yield from (RowPlace(search=search, trial=trial) for trial in search.trials)


def _point(get: Callable[[PointRecord], Value]) -> Callable[[RowPlace], Value]:
    return lambda place: None if place.record is None else get(place.record)


def _repetition(get: Callable[[Repetition], Value]) -> Callable[[RowPlace], Value]:
    return lambda place: None if place.repetition is None else get(place.repetition)


def _search(get: Callable[[StoredSearch], Value]) -> Callable[[RowPlace], Value]:
    return lambda place: None if place.search is None else get(place.search)


def _trial(get: Callable[[StoredTrial], Value]) -> Callable[[RowPlace], Value]:
    return lambda place: None if place.trial is None else get(place.trial)


def _statistic(get: Callable[[Statistics], float]) -> Callable[[RowPlace], Value]:
    def of(record: PointRecord) -> Value:
        statistics = record.statistics
        return None if statistics is None else get(statistics)

    return _point(of)


def _count(verdict: Verdict) -> Callable[[RowPlace], Value]:
    def of(place: RowPlace) -> Value:
        if place.repetition is not None:
            return verdicts_of(trial for search in place.repetition.searches for trial in search.trials)[
                verdict
            ]
        return None if place.record is None else verdicts_of(trials_of(place.record))[verdict]

    return of


def _direction(name: str, get: Callable[[DirectionResult], Value]) -> Callable[[RowPlace], Value]:
    def of(trial: StoredTrial) -> Value:
        direction = next((result for key, result in trial.result.directions.items() if key == name), None)
        return None if direction is None else get(direction)

    return _trial(of)


def _is_worst_case_maximum(repetition: Repetition) -> Value:
    """None where there is no worst-case latency."""
    found = repetition.found
    return found.goal.is_worst_case_maximum if isinstance(found, DelayFound) else None


def _loss_ratio(direction: str) -> Callable[[RowPlace], Value]:
    return _repetition(lambda repetition: losses_of(repetition).get(direction))


def _under(get: Callable[[Point], Value]) -> Callable[[RowPlace], Value]:
    """The value of the point, or, where there is none, of the search. A file whose search does not state it
    has no value."""

    def of(place: RowPlace) -> Value:
        if place.record is not None:
            return get(place.record.point)
        try:
            return None if place.search is None else get(point_of(place.search))
        except ValueError:
            return None

    return of


_CONDITIONS = (
    ExportColumn("point", "text", _point(lambda p: p.point.key)),
    ExportColumn("suite", "text", _point(lambda p: p.point.suite)),
    ExportColumn("procedure", "text", _point(lambda p: p.point.procedure)),
    ExportColumn("plan", "text", _under(lambda c: c.plan)),
    ExportColumn("hosts_left", "integer", _under(lambda c: c.hosts.left)),
    ExportColumn("hosts_right", "integer", _under(lambda c: c.hosts.right)),
    ExportColumn("networks_left", "integer", _under(lambda c: c.networks.left)),
    ExportColumn("networks_right", "integer", _under(lambda c: c.networks.right)),
    ExportColumn("routes_left", "integer", _under(lambda c: None if c.routes is None else c.routes.left)),
    ExportColumn("routes_right", "integer", _under(lambda c: None if c.routes is None else c.routes.right)),
    ExportColumn("frame_size", "text", _under(lambda c: str(c.frame_size))),
    ExportColumn("directions", "text", _under(lambda c: " ".join(c.directions))),
    ExportColumn("hash_type", "text", _under(lambda c: c.hash_type)),
)
_VERDICTS = tuple(
    ExportColumn(f"trials_{verdict.lower()}", "integer", _count(verdict)) for verdict in Verdict
)
_FIGURE = (
    ExportColumn("figure", "text", _point(lambda p: PROCEDURES[p.point.procedure].figure.name)),
    ExportColumn("unit", "text", _point(lambda p: PROCEDURES[p.point.procedure].figure.unit)),
)
_OF_REPETITION = (
    ExportColumn("repetition", "integer", _repetition(lambda r: r.number)),
    # As text: it has 64 bits without a sign, and many readers make a float of it.
    ExportColumn("seed", "text", lambda place: _seed(place)),
    ExportColumn("testbed", "text", lambda place: _testbed(place)),
)


def _seed(place: RowPlace) -> Value:
    source = place.repetition or place.search
    return None if source is None else str(source.seed)


def _testbed(place: RowPlace) -> Value:
    if place.repetition is not None:
        return place.repetition.testbed
    return None if place.search is None else place.search.setup.get("name")


def _uncharged(repetition: Repetition) -> int | None:
    """Attempts with loss that were not charged at the throughput. None where the result, which may hold
    anything, does not have them."""
    stated = None if repetition.result is None else repetition.result.get("uncharged", False)
    if stated is None and repetition.result is not None:
        return 0
    if not isinstance(stated, dict):
        return None
    counts = [stated.get(key) for key in ("uncharged_at_load", "uncharged_near")]
    whole = [
        count
        for count in counts
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**31
    ]
    return sum(whole) if len(whole) == len(counts) else None


_COUNTS: Mapping[str, Callable[[DirectionResult], int]] = {
    "intended_frames": lambda d: d.intended_frames,
    "offered_frames": lambda d: d.offered_frames,
    "received_frames": lambda d: d.received_frames,
    "lost_frames": lambda d: d.lost_frames,
    "duplicated_frames": lambda d: d.duplicated_frames,
    "reordered_frames": lambda d: d.reordered_frames,
    "late_frames": lambda d: d.late_frames,
    "corrupted_frames": lambda d: d.corrupted_frames,
}
_MEASURES: Mapping[str, Callable[[DirectionResult], float | None]] = {
    "offered_fps": lambda d: d.offered_fps,
    "forwarding_rate_fps": lambda d: d.forwarding_rate_fps,
    "latency_min_ns": lambda d: d.latency.min_ns,
    "latency_mean_ns": lambda d: d.latency.mean_ns,
    "latency_p50_ns": lambda d: d.latency.p50_ns,
    "latency_p99_ns": lambda d: d.latency.p99_ns,
    "latency_p999_ns": lambda d: d.latency.p999_ns,
    "latency_max_ns": lambda d: d.latency.max_ns,
}
_OF_DIRECTIONS = tuple(
    column
    for name in _DIRECTIONS
    for column in (
        *(ExportColumn(f"{name}_{key}", "integer", _direction(name, get)) for key, get in _COUNTS.items()),
        *(ExportColumn(f"{name}_{key}", "real", _direction(name, get)) for key, get in _MEASURES.items()),
    )
)


def _seen(get: Callable[[SeenTrial], Value]) -> Callable[[RowPlace], Value]:
    def of(trial: StoredTrial) -> Value:
        seen = seen_trial(trial)
        return None if seen is None else get(seen)

    return _trial(of)


_INSIDE = (
    ExportColumn("dut_busiest_cpu", "integer", _seen(lambda s: s.busiest.cpu)),
    ExportColumn("dut_busiest_cpu_share", "real", _seen(lambda s: s.busiest.busy)),
    ExportColumn("dut_busiest_cpu_softirq_share", "real", _seen(lambda s: s.busiest.softirq)),
    ExportColumn("dut_mean_cpu_share", "real", _seen(lambda s: s.mean_busy)),
    ExportColumn("dut_dropped_packets", "integer", _seen(lambda s: s.dropped_packets)),
)


def _left_out(get: Callable[[TimeLeftOut], Value]) -> Callable[[RowPlace], Value]:
    """The time left out of the repetition; in a row of a point, of all that have ended."""

    def of(place: RowPlace) -> Value:
        found = (
            time_left_out_of(place.repetition)
            if place.repetition is not None
            else None
            if place.record is None
            else time_left_out_at(place.record)
        )
        return None if found is None else get(found)

    return of


_TIME_LEFT_OUT = (
    ExportColumn("time_left_out_share", "real", _left_out(lambda t: t.share), is_of_clean_time=True),
    ExportColumn(
        "most_time_left_out_share", "real", _left_out(lambda t: t.most_share), is_of_clean_time=True
    ),
    ExportColumn("trials_cut", "integer", _left_out(lambda t: t.cut_trials), is_of_clean_time=True),
)

_OF_TRIAL = (
    ExportColumn("search", "text", _search(lambda s: s.name)),
    ExportColumn("kind", "text", _search(lambda s: s.kind)),
    ExportColumn("trial", "integer", _trial(lambda t: t.number)),
    ExportColumn("purpose", "text", _trial(lambda t: t.purpose)),
    ExportColumn("attempt", "integer", _trial(lambda t: t.attempt)),
    ExportColumn("is_full_length", "flag", _trial(lambda t: t.is_full_length)),
    ExportColumn("verdict", "text", _trial(lambda t: str(t.result.verdict))),
)
_LOAD = (
    ExportColumn("started_at", "text", _trial(lambda t: t.result.started_at)),
    ExportColumn("intended_fps", "real", _trial(lambda t: t.result.intended_fps)),
)
_LEFT_OUT_OF_TRIAL = ExportColumn(
    "time_left_out_share", "real", _trial(lambda t: t.result.left_out_share), is_of_clean_time=True
)

COLUMNS: Mapping[TableName, tuple[ExportColumn, ...]] = {
    "points": (
        *_CONDITIONS,
        ExportColumn("state", "text", _point(lambda p: str(p.state))),
        ExportColumn("reason", "text", _point(lambda p: p.reason or p.stopped_early)),
        ExportColumn("repetitions_asked", "integer", _point(lambda p: p.point.repetitions)),
        ExportColumn(
            "repetitions_finished",
            "integer",
            _point(lambda p: sum(r.finished_at is not None for r in p.repetitions)),
        ),
        *_FIGURE,
        ExportColumn("values", "integer", _point(lambda p: len(p.values))),
        ExportColumn("at_maximum", "integer", _point(lambda p: p.at_maximum)),
        ExportColumn("at_tester_ceiling", "integer", _point(lambda p: p.at_tester_ceiling)),
        ExportColumn("median", "real", _statistic(lambda s: s.median)),
        ExportColumn("median_upper", "real", _point(lambda p: p.median_upper)),
        ExportColumn("minimum", "real", _statistic(lambda s: s.minimum)),
        ExportColumn("maximum", "real", _statistic(lambda s: s.maximum)),
        *_VERDICTS,
        *_TIME_LEFT_OUT,
    ),
    "repetitions": (
        *_CONDITIONS,
        *_OF_REPETITION,
        ExportColumn("started_at", "text", _repetition(lambda r: r.started_at)),
        ExportColumn("finished_at", "text", _repetition(lambda r: r.finished_at)),
        ExportColumn("outcome", "text", _repetition(lambda r: r.outcome)),
        ExportColumn("reason", "text", _repetition(lambda r: r.reason)),
        *_FIGURE,
        ExportColumn("value", "real", _repetition(lambda r: r.value)),
        ExportColumn("is_at_least", "flag", _repetition(lambda r: r.is_at_least)),
        ExportColumn("upper", "real", _repetition(lambda r: r.upper)),
        ExportColumn("is_worst_case_maximum", "flag", _repetition(_is_worst_case_maximum)),
        *(ExportColumn(f"{name}_loss_ratio", "real", _loss_ratio(name)) for name in _DIRECTIONS),
        ExportColumn("uncharged_attempts", "integer", _repetition(_uncharged)),
        *_VERDICTS,
        *_TIME_LEFT_OUT,
    ),
    "trials": (
        *_CONDITIONS,
        *_OF_REPETITION,
        *_OF_TRIAL,
        ExportColumn(
            "reasons",
            "text",
            _trial(lambda t: " ".join(dict.fromkeys(reason.code for reason in t.result.reasons))),
        ),
        ExportColumn("sustainable_fps", "real", _trial(lambda t: t.result.sustainable_fps)),
        *_LOAD,
        ExportColumn("intended_duration_s", "real", _trial(lambda t: t.result.intended_duration_s)),
        ExportColumn("stopped_early_s", "real", _trial(lambda t: t.result.stopped_early_s)),
        ExportColumn("loss_ratio_limit", "real", _trial(lambda t: t.result.loss_ratio_limit)),
        ExportColumn("loss_ratio", "real", _trial(lambda t: t.result.loss_ratio)),
        *_OF_DIRECTIONS,
        *_INSIDE,
        _LEFT_OUT_OF_TRIAL,
    ),
    "flows": (*_CONDITIONS, *_OF_REPETITION, *_OF_TRIAL, *_LOAD, *FLOW_COLUMNS, _LEFT_OUT_OF_TRIAL),
}
