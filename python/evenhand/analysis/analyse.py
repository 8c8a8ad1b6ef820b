# SPDX-License-Identifier: Apache-2.0
"""Analysis: everything that is said of a campaign, at once."""

from __future__ import annotations

from pathlib import Path

from evenhand.analysis.bias import bias_verdicts
from evenhand.analysis.curve import curves_of
from evenhand.analysis.model import Analysis, Curve
from evenhand.analysis.plateau import LEAST_FOR_TEST
from evenhand.analysis.published import published_comparisons
from evenhand.analysis.ratios import ratios_of
from evenhand.analysis.testbeds import compare_testbeds
from evenhand.analysis.words import join
from evenhand.run.campaign_record import CampaignRecord, PointState
from evenhand.run.resume_command import again_command


def analyse(record: CampaignRecord) -> Analysis:
    """Read what was measured so far. Never fails for want of results: what cannot be said is said in the
    warnings."""
    curves = curves_of(record)
    return Analysis(
        curves=curves,
        ratios=ratios_of(curves),
        bias=bias_verdicts(record, curves),
        published=published_comparisons(record, curves),
        warnings=tuple(line for curve in curves for line in _warnings(curve, record)),
        testbeds=compare_testbeds(record),
    )


def _warnings(curve: Curve, record: CampaignRecord) -> list[str]:
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
    few = [
        point.label
        for point in curve.points
        if point.state is PointState.MEASURED and len(point.values) < point.asked
    ]
    if few:
        lines.append(f"{curve.title}: fewer repetitions ended with a number than requested: {join(few)}.")
    capped = [point.label for point in curve.measured if point.is_at_least and not point.is_testers]
    if capped:
        lines.append(
            f"{curve.title}: these are lower bounds because the highest load that was tried"
            f" passed: {join(capped)}. Unless that is the line rate, set a higher maximum-rate."
        )
    limited = [point.label for point in curve.measured if point.is_testers]
    if limited:
        again = f" Measure them again: {again_command(Path(record.path.name))}." if record.is_campaign else ""
        lines.append(
            f"{curve.title}: these are lower bounds because the tester could not keep a"
            f" higher load: {join(limited)}.{again}"
        )
    fewest = min((len(point.values) for point in curve.measured), default=LEAST_FOR_TEST)
    is_all_bounds = bool(curve.measured) and all(
        all(point.lower_bounds or (False,)) for point in curve.measured
    )
    if fewest < LEAST_FOR_TEST and not is_all_bounds:
        lines.append(
            f"{curve.title}: the point with the fewest repetitions has {fewest}; its noise can be estimated"
            f" from {LEAST_FOR_TEST} on."
        )
    return lines
