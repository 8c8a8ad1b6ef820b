# SPDX-License-Identifier: Apache-2.0
"""What the charts of a page show, as documents: points with their values, to be drawn in the browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter
from statistics import median
from typing import Any

from evenhand.analysis import Analysis
from evenhand.analysis.curve_model import Curve, CurvePoint
from evenhand.analysis.inside import counted_queues, cpus_of, seen_of
from evenhand.analysis.trend_model import PointTrend, Trend
from evenhand.base.visible import visible
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.trend import show_begun, show_change, titles_of
from evenhand.run import StoredSearch
from evenhand.run.campaign_record import CampaignRecord, PointRecord, is_median_at_least

MOST_SERIES = 4  # curves of one chart: there are as many colours
MOST_SEARCHES = 12
FEWEST_TRIALS = 3


def charts_of_run(record: CampaignRecord, analysis: Analysis) -> list[dict[str, Any]]:
    """Curves over addresses, then over frame sizes, then the loads that searches tried.

    Args:
        record: With its trials.
    """
    numbers = {found.point.key: number for number, found in enumerate(record.points, start=1)}
    return [*_curves(analysis.curves, numbers), *_sizes(record, numbers), *_searches(record)]


def charts_of_trend(trend: Trend) -> list[dict[str, Any]]:
    """A chart for each point, for the place of its picture: a value for each run, and where it changed."""
    titles = titles_of(trend)
    return [
        {**_trend_chart(trend, point, visible(title)), "figure": f"figure-point-{number}"}
        for number, (point, title) in enumerate(zip(trend.points, titles, strict=True), start=1)
        if point.measured
    ]


def inside_document(trial: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a witness saw inside the DUT in a trial: CPUs, and queues of interfaces. None if there was none.

    Args:
        trial: Its document, of a file of others.
    """
    seen = seen_of(trial)
    cpus = [] if seen is None else cpus_of(seen)
    if seen is None or not cpus:
        return None
    queues = []
    interfaces = seen.get("interfaces")
    for place, interface in interfaces.items() if isinstance(interfaces, Mapping) else ():
        counted = counted_queues(seen, place)
        total = sum(counted.values())
        name = interface.get("name") if isinstance(interface, Mapping) else None
        queues += [
            {
                "interface": visible(str(name or place)),
                "queue": queue,
                "packets": packets,
                "share": packets / total,
            }
            for queue, packets in sorted(counted.items())
            if total
        ]
    dropped = seen.get("dropped_packets")
    return {
        "cpus": [asdict(cpu) for cpu in cpus],
        "queues": queues,
        "dropped_packets": dropped if type(dropped) is int else None,
    }


def _curves(curves: Sequence[Curve], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str, bool], list[Curve]] = {}
    for curve in curves:
        if curve.measured:
            kind = (curve.figure.name, curve.figure.unit, curve.is_over_routes)
            groups.setdefault(kind, []).append(curve)
    for (name, unit, is_over_routes), of_figure in groups.items():
        if len({point.address_count for curve in of_figure for point in curve.measured}) < 2:
            continue  # nothing is over anything
        for first in range(0, len(of_figure), MOST_SERIES):
            yield _chart(
                f"{name[:1].upper()}{name[1:]} over {'routes' if is_over_routes else 'addresses'}",
                x={"label": "routes on a side" if is_over_routes else "addresses on each side", "log": 2},
                y={"label": name, "unit": unit},
                series=[
                    {
                        "label": visible(curve.title),
                        "points": [_of_curve(point, numbers) for point in curve.measured],
                        "breaks": [point.address_count for point in curve.points if not point.values],
                    }
                    for curve in of_figure[first : first + MOST_SERIES]
                ],
            )


def _of_curve(point: CurvePoint, numbers: Mapping[str, int]) -> dict[str, Any]:
    label = point.label if point.routes is not None else f"{point.label} addresses"
    drawn = _point(point.address_count, label, point.values, is_at_least=point.is_at_least)
    return {**drawn, "point": numbers.get(point.key)}


def _sizes(record: CampaignRecord, numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str, str], dict[str, list[PointRecord]]] = {}
    for found in record.points:
        point = found.point
        if found.values and isinstance(point.frame_size, int):
            figure = PROCEDURES[point.procedure].figure
            label = (
                f"{point.suite}: {point.plan}, {max(point.routes)} routes"
                if point.routes is not None
                else f"{point.suite}: {point.plan}, {max(point.addresses)} addresses"
            )
            label += f", {point.hash_type}" if point.hash_type else ""
            groups.setdefault((point.procedure, figure.name, figure.unit), {}).setdefault(label, []).append(
                found
            )
    for (_, name, unit), lines in groups.items():
        several = {
            label: found
            for label, found in lines.items()
            if len({each.point.frame_size for each in found}) > 1
        }
        for first in range(0, len(several), MOST_SERIES):
            yield _chart(
                f"{name[:1].upper()}{name[1:]} over frame sizes",
                x={"label": "frame size with FCS, octets", "log": 0},
                y={"label": name, "unit": unit},
                series=[
                    {
                        "label": visible(label),
                        "points": sorted((_of_size(each, numbers) for each in found), key=itemgetter("x")),
                    }
                    for label, found in list(several.items())[first : first + MOST_SERIES]
                ],
            )


def _of_size(found: PointRecord, numbers: Mapping[str, int]) -> dict[str, Any]:
    size = found.point.frame_size
    bound = is_median_at_least(found.values, found.lower_bounds)
    drawn = _point(float(size), f"{size} octets", found.values, is_at_least=bound)
    return {**drawn, "point": numbers[found.point.key]}


def _searches(record: CampaignRecord) -> Iterator[dict[str, Any]]:
    searches = [
        (visible(f"{found.point.key}, repetition {repetition.number}"), search)
        for found in record.points
        for repetition in found.repetitions
        for search in repetition.searches
        if search.is_measurement and len(search.trials) >= FEWEST_TRIALS
    ]
    for title, search in searches[:MOST_SEARCHES]:
        yield _chart(
            f"Loads that were tried: {title}",
            x={"label": "trial", "log": 0},
            y={"label": "load per direction", "unit": "fps"},
            series=[
                {"label": verdict, "points": points, "verdict": verdict}
                for verdict in ("PASS", "FAIL", "INVALID")
                if (points := list(_trials(search, verdict)))
            ],
        )


def _trials(search: StoredSearch, verdict: str) -> Iterator[dict[str, Any]]:
    for trial in search.trials:
        result = trial.result
        if str(result.verdict) == verdict:
            reasons = "; ".join(visible(reason.text) for reason in result.reasons)
            name = f"trial {trial.number}, {verdict}, {result.loss_ratio:.3%} lost"
            text = f"{name}. {reasons}" if reasons else name
            yield {**_point(trial.number, text, (result.intended_fps,)), "trial": trial.row}


def _trend_chart(trend: Trend, point: PointTrend, title: str) -> dict[str, Any]:
    return {
        **_chart(
            title,
            x={"label": "", "log": 0, "names": [show_begun(run) for run in trend.runs]},
            y={"label": point.figure.name, "unit": point.figure.unit, "is_close": True},
            series=[
                {
                    "label": point.figure.name,
                    "points": [
                        {
                            "x": value.run + 1,
                            "y": found.median,
                            "low": found.minimum,
                            "high": found.maximum,
                            "values": [],
                            "name": visible(
                                f"{trend.runs[value.run].file}, {show_begun(trend.runs[value.run])}"
                            ),
                            "is_at_least": value.is_at_least,
                            "file": trend.runs[value.run].file,
                        }
                        for value in point.measured
                        if (found := value.statistics) is not None
                    ],
                    "breaks": [value.run + 1 for value in point.values if value.statistics is None],
                }
            ],
        ),
        "levels": [
            {"from": level.first_run + 1, "to": level.last_run + 1, "y": level.median}
            for level in point.levels
        ],
        "changes": [
            {"x": change.run + 0.5, "text": visible(show_change(change)), "is_worse": change.is_regression}
            for change in point.changes
        ],
    }


def _chart(title: str, *, x: dict[str, Any], y: dict[str, Any], series: list[Any]) -> dict[str, Any]:
    return {"title": title, "x": x, "y": y, "series": series, "changes": []}


def _point(x: float, name: str, values: Sequence[float], *, is_at_least: bool = False) -> dict[str, Any]:
    return {
        "x": x,
        "y": median(values),
        "low": min(values),
        "high": max(values),
        "values": list(values) if len(values) > 1 else [],
        "name": visible(name),
        "is_at_least": is_at_least,
    }
