# SPDX-License-Identifier: Apache-2.0
"""Analysis: everything that is said of a campaign, at once."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.bias import bias_verdicts
from evenhand.analysis.condition_words import join
from evenhand.analysis.curve import curves_of
from evenhand.analysis.curve_model import Curve
from evenhand.analysis.model import Analysis
from evenhand.analysis.noise import LEAST_FOR_TEST
from evenhand.analysis.published import published_comparisons
from evenhand.analysis.ratios import ratios_of
from evenhand.analysis.testbeds import compare_testbeds
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState
from evenhand.run.point_document import again_advice


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
