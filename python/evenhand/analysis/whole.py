# SPDX-License-Identifier: Apache-2.0
"""Analysis: everything that is said of a campaign, at once; and its points as curves over the number of
addresses (SEED-65, SEED-72) or routes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from evenhand.analysis.bias import bias_verdicts
from evenhand.analysis.condition_words import join
from evenhand.analysis.curve_model import Curve, CurveKey, CurvePoint, Degradation
from evenhand.analysis.device import KnownDevice, known_device
from evenhand.analysis.drift import drift_of, heed_in_shape
from evenhand.analysis.model import Analysis
from evenhand.analysis.noise import LEAST_FOR_TEST
from evenhand.analysis.plateau import find_shape
from evenhand.analysis.published import published_comparisons
from evenhand.analysis.ratios import ratios_of
from evenhand.analysis.testbeds import compare_testbeds
from evenhand.procedure.registry import PROCEDURES, THROUGHPUT
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState
from evenhand.run.point_document import again_advice, remarks_of_point
from evenhand.spec.request import ROUTES, Point

_Alike: TypeAlias = tuple[str, ...]


def curves_of(record: CampaignRecord) -> tuple[Curve, ...]:
    """A curve for each suite, procedure, plan, frame size and setting of the DUT, in the order of the
    campaign."""
    groups: dict[_Alike, list[PointRecord]] = {}
    for point in record.points:
        groups.setdefault(_what_stays(point.point), []).append(point)
    curves: list[Curve] = []
    for points in groups.values():
        key = _key(points[0].point, taken={curve.key for curve in curves})
        curves.append(_curve(key, points, known_device(record, points)))
    return tuple(curves)


def degradations_of(points: Sequence[CurvePoint], *, is_higher_better: bool) -> tuple[Degradation, ...]:
    """Xpd of R8219-17 by the medians: from one address pair to n addresses a side, or from one route to n,
    in percent; positive is worse.

    None of a lower bound, nor against one.
    """
    known = [point for point in points if not point.is_at_least]
    one = next(
        (point.statistics.median for point in known if point.is_single and point.statistics is not None), None
    )
    if one is None or one == 0:
        return ()
    sign = -1 if is_higher_better else 1
    return tuple(
        Degradation(
            address_count=point.address_count,
            percent=sign * (point.statistics.median - one) / one * 100 + 0.0,
        )
        for point in known
        if point.statistics is not None and not point.is_single
    )


def _curve(key: CurveKey, records: Sequence[PointRecord], device: KnownDevice | None) -> Curve:
    figure = PROCEDURES[key.procedure].figure
    predictable = device if key.procedure == THROUGHPUT.name else None
    points = tuple(
        sorted(
            (_curve_point(record, predictable) for record in records),
            key=lambda point: (point.address_count, point.hosts),
        )
    )
    drift = drift_of(records)
    return Curve(
        key=key,
        figure=figure,
        points=points,
        shape=heed_in_shape(find_shape(points, figure), drift) if figure.is_higher_better else None,
        drift=drift,
        predicted_plateau=None if predictable is None else predictable.plateau_fps(records[-1]),
        degradations=degradations_of(points, is_higher_better=figure.is_higher_better),
    )


def _curve_point(record: PointRecord, device: KnownDevice | None) -> CurvePoint:
    point = record.point
    return CurvePoint(
        key=point.key,
        hosts=point.hosts,
        networks=point.networks,
        routes=point.routes,
        state=record.state,
        reason=record.reason,
        remarks=tuple(remarks_of_point(record)),
        asked=point.repetitions,
        values=record.values,
        statistics=record.statistics,
        lower_bounds=record.lower_bounds,
        at_tester_ceiling=record.at_tester_ceiling,
        uppers=record.uppers,
        lowers=record.lowers,
        predicted=None if device is None else device.throughput_fps(record),
    )


def _key(point: Point, *, taken: set[CurveKey]) -> CurveKey:
    variant = 1
    while True:
        key = CurveKey(
            suite=point.suite,
            procedure=point.procedure,
            plan=point.plan,
            frame_size=point.frame_size,
            hash_type=point.hash_type,
            directions=point.directions,
            variant=variant,
        )
        if key not in taken:
            return key
        variant += 1


def _what_stays(point: Point) -> _Alike:
    what_stays_of_plan = {
        key: value for key, value in point.plan_options.items() if key != ROUTES or point.routes is None
    }
    return (
        point.suite,
        point.procedure,
        point.plan,
        str(point.frame_size),
        str(point.hash_type),
        *point.directions,
        str(point.routes is None),
        json.dumps([what_stays_of_plan, point.goal], sort_keys=True, default=str),
    )


def analyse(record: CampaignRecord) -> Analysis:
    """Read what was measured so far. Never fails for want of results: what cannot be said is said in the
    warnings."""
    curves = curves_of(record)
    return Analysis(
        curves=curves,
        ratios=ratios_of(curves),
        bias=bias_verdicts(record, curves),
        published=published_comparisons(record, curves),
        warnings=(
            *(line for curve in curves for line in _warnings(curve)),
            *_too_few(curves),
            *_again(record),
        ),
        testbeds=compare_testbeds(record),
    )


def _warnings(curve: Curve) -> list[str]:
    lines = []
    for point in curve.points:
        if point.state is PointState.NO_NUMBER:
            lines.append(
                f"{curve.title}: {point.label} has no number: {point.reason or 'no reason is stored'}."
            )
    unfinished = [
        point.label for point in curve.points if point.state in (PointState.PENDING, PointState.BEGUN)
    ]
    if unfinished:
        lines.append(f"{curve.title}: not finished: {join(unfinished)}.")
    lines += [
        f"{curve.title}: {point.label}: {remark}."
        for point in curve.points
        if point.state is not PointState.NO_NUMBER
        for remark in point.remarks
    ]
    capped = [point.label for point in curve.measured if point.is_at_least and not point.is_testers]
    if capped:
        lines.append(
            f"{curve.title}: these are lower bounds because the highest load that was tried"
            f" passed: {join(capped)}. Unless that is the line rate, set a higher maximum-rate."
        )
    limited = [point.label for point in curve.measured if point.is_testers]
    if limited:
        lines.append(
            f"{curve.title}: these are lower bounds because the tester could not keep a"
            f" higher load: {join(limited)}."
        )
    return lines


def _too_few(curves: Sequence[Curve]) -> list[str]:
    """Curves whose noise is not known, in one line for all that have as few."""
    titles: dict[int, list[str]] = {}
    for curve in curves:
        fewest = min((len(point.values) for point in curve.measured), default=LEAST_FOR_TEST)
        is_all_bounds = bool(curve.measured) and all(
            all(point.lower_bounds or (False,)) for point in curve.measured
        )
        if fewest < LEAST_FOR_TEST and not is_all_bounds:
            titles.setdefault(fewest, []).append(curve.title)
    return [
        (
            f"{each[0]}: the point with the fewest repetitions has {fewest}; its noise"
            if len(each) == 1
            else f"{len(each)} curves have a point with no more than {fewest}"
            f" repetition{'s' if fewest > 1 else ''} ({'; '.join(each)}); their noise"
        )
        + f" is judged together with that of all points of the curve, and by ranks from {LEAST_FOR_TEST} on."
        for fewest, each in sorted(titles.items(), reverse=True)
    ]


def _again(record: CampaignRecord) -> list[str]:
    """How to repeat what may be repeated of a campaign that has ended."""
    if not record.is_campaign or record.finished_at is None or record.merged_from:
        return []
    advice = again_advice(
        record.path,
        undecided=sum(found.undecided for found in record.points),
        ended_early=sum(
            found.stopped_early is not None or (found.reason is not None and not _has_all(found))
            for found in record.points
        ),
        on_page=True,
    )
    return [] if advice is None else [f"{advice}."]


def _has_all(found: PointRecord) -> bool:
    """Whether each repetition that was asked for has ended, with a value or without."""
    return sum(each.finished_at is not None for each in found.repetitions) >= found.point.repetitions
