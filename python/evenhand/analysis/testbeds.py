# SPDX-License-Identifier: Apache-2.0
"""Analysis: testbeds that do not agree on a point that more than one of them has measured.

Two testbeds differ at a point if an exact two-sided Mann-Whitney test of their repetitions says so, in which
the lower ones count as high as the lowest loads that failed in their searches, at a level that is divided by
all the pairs that are compared in the campaign (Bonferroni): where all testbeds are alike, noise makes any of
them differ anywhere with at most probability LEVEL. A difference is reported however small it is; one below
RELEVANT is reported as such. Where there are too few repetitions for that test, medians that are RELEVANT
apart count, if that is more than the limit that the noise of all points sets (`evenhand.analysis.noise`): a
tolerance, not a test.
"""

from __future__ import annotations

from itertools import combinations
from math import inf
from statistics import median

from evenhand.analysis.condition_words import join, show_percent, show_probability
from evenhand.analysis.medians import Pool
from evenhand.analysis.model import BedDifference, BedsVerdict
from evenhand.analysis.noise import LEAST_FOR_TEST, Noise, noise_of
from evenhand.analysis.plateau import LEVEL, RELEVANT
from evenhand.analysis.ranks import least_p_value, lower_p_value
from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import CampaignRecord, PointRecord, is_median_at_least


def values_by_testbed(record: PointRecord) -> dict[str, tuple[float, ...]]:
    """The figures of a point's repetitions, by the testbed that measured them; in order of their first
    ones."""
    found: dict[str, list[float]] = {}
    for repetition in record.repetitions:
        if repetition.finished_at is not None and repetition.value is not None:
            found.setdefault(repetition.testbed, []).append(repetition.value)
    return {name: tuple(values) for name, values in found.items()}


def _uppers_on(record: PointRecord, testbed: str) -> tuple[float, ...]:
    """How high each of the values there may really be: up to the lowest load that failed; a lower bound
    anywhere above."""
    found = (
        r
        for r in record.repetitions
        if r.testbed == testbed and r.finished_at is not None and r.value is not None
    )
    return tuple(inf if r.is_at_least else r.upper or r.value or 0.0 for r in found)


def _lowers_on(record: PointRecord, testbed: str) -> tuple[float, ...]:
    """How low each of the values there may really be."""
    found = (
        r
        for r in record.repetitions
        if r.testbed == testbed and r.finished_at is not None and r.value is not None
    )
    return tuple((r.value or 0.0) if r.lower is None else r.lower for r in found)


def compare_testbeds(
    record: CampaignRecord, *, relevant: float = RELEVANT, level: float = LEVEL
) -> BedsVerdict | None:
    """Which testbeds disagree where. None: no point was measured by more than one."""
    shared = [(found, values_by_testbed(found)) for found in record.points]
    # Which of two does more is not known where both passed at the highest load.
    pairs = [
        (found, values, pair)
        for found, values in shared
        for pair in combinations(values, 2)
        if not all(_is_at_least(found, name) for name in pair)
    ]
    if not pairs:
        return None
    alpha = level / len(pairs)
    noise = noise_of(_known_on(found, name) for found, values in shared for name in values)
    tests = [
        _compare(found, values, pair, relevant=relevant, alpha=alpha, noise=noise)
        for found, values, pair in pairs
    ]
    different = tuple(test for test in tests if test.is_different)
    names = tuple(dict.fromkeys(name for _, values in shared if len(values) > 1 for name in values))
    points = len({found.point.key for found, _, _ in pairs})
    where = "1 point was" if points == 1 else f"{points} points were"
    first = f"{where} measured by more than one of the testbeds {join(names)}."
    agreed = f"{first} They agree: no difference exceeds the noise."
    return BedsVerdict(
        testbeds=names,
        tests=tuple(tests),
        sentences=(
            (first, *(_sentence(test, record, relevant) for test in different)) if different else (agreed,)
        ),
        method=_method(
            relevant, level, len(pairs), is_noise_known=all(test.p_value is not None for test in tests)
        ),
    )


def _known_on(record: PointRecord, testbed: str) -> Pool:
    """The values that a testbed measured of a point, and which of them are lower bounds."""
    found = [r for r in record.repetitions if r.testbed == testbed and r.finished_at is not None]
    return Pool(
        values=tuple(r.value for r in found if r.value is not None),
        lower_bounds=tuple(r.is_at_least for r in found if r.value is not None),
    )


def _is_at_least(record: PointRecord, testbed: str) -> bool:
    """Whether the median there is a lower bound."""
    found = [
        repetition
        for repetition in record.repetitions
        if repetition.testbed == testbed and repetition.value is not None
    ]
    return is_median_at_least([r.value for r in found if r.value is not None], [r.is_at_least for r in found])


def _compare(
    found: PointRecord,
    values: dict[str, tuple[float, ...]],
    pair: tuple[str, str],
    *,
    relevant: float,
    alpha: float,
    noise: Noise,
) -> BedDifference:
    one, other = (values[name] for name in pair)
    medians = median(one), median(other)
    change = None if medians[0] == 0 else medians[1] / medians[0] - 1
    is_tested = (
        min(len(one), len(other)) >= LEAST_FOR_TEST and 2 * least_p_value(len(one), len(other)) <= alpha
    )
    uppers = tuple(_uppers_on(found, name) for name in pair)
    lowers = tuple(_lowers_on(found, name) for name in pair)
    # As close as the brackets of the searches allow.
    p_value = (
        min(1.0, 2 * min(lower_p_value(uppers[0], lowers[1]), lower_p_value(uppers[1], lowers[0])))
        if is_tested
        else None
    )
    least = (
        0.0
        if change is None
        else median(lowers[1]) / median(uppers[0]) - 1
        if change > 0
        else 1 - median(uppers[1]) / median(lowers[0])
        if median(lowers[0])
        else 0.0
    )
    limit = max(relevant, noise.limit((len(one), len(other)), alpha / 2))
    is_apart = medians[0] != medians[1] if change is None else least >= limit
    return BedDifference(
        key=found.point.key,
        testbeds=pair,
        medians=medians,
        change=change,
        p_value=p_value,
        is_different=is_apart if p_value is None else p_value <= alpha,
    )


def _sentence(test: BedDifference, record: CampaignRecord, relevant: float) -> str:
    point = next(found.point for found in record.points if found.point.key == test.key)
    one, other = (show_value(value, PROCEDURES[point.procedure].figure) for value in test.medians)
    by = (
        ""
        if test.change is None
        else f", {show_percent(abs(test.change))} {'more' if test.change > 0 else 'less'}"
    )
    how = (
        "there are too few repetitions for a test" if test.p_value is None else show_probability(test.p_value)
    )
    small = (
        f", though less than {show_percent(relevant)}"
        if test.change is not None and abs(test.change) < relevant
        else ""
    )
    return (
        f"Testbeds {test.testbeds[0]} and {test.testbeds[1]} disagree on {point.key}: median {one} and"
        f" {other}{by} ({how}){small}."
    )


def _method(relevant: float, level: float, comparisons: int, *, is_noise_known: bool) -> str:
    test = (
        "Two testbeds disagree on a point if an exact two-sided Mann-Whitney test of their"
        f" repetitions shows a difference at the level {level:g} / {comparisons}"
        " (Bonferroni: each pair of testbeds at each point)."
    )
    if is_noise_known:
        return test
    return (
        f"{test} If there are too few repetitions for the test, medians that differ by"
        f" {show_percent(relevant)} count as different, if that is more than the repetitions of one testbed"
        " at one point do, and more than their standard deviation over all points allows (Student's t at the"
        " same level): this is a tolerance, not a test."
    )
