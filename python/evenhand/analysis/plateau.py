# SPDX-License-Identifier: Apache-2.0
"""Analysis: where a curve rises, where it is level, where it falls (SEED-66).
docs/explanation/reading-a-series.md explains why.

A point counts as lower than the plateau if its median is lower by more than RELEVANT, and its repetitions are
lower than those of the plateau by more than their noise: an exact one-sided Mann-Whitney test, in which each
of them counts as high as the lowest load that failed in its search. Where searches leave coarse brackets, the
median must be lower by RELEVANT with these too. Where there are too few repetitions for the test, the median
must be lower by the limit that the noise of all points of the series sets (`evenhand.analysis.noise`). The
plateau is itself chosen by the data, so the level of the test is divided by all the comparisons that any
choice of a plateau could have led to (Bonferroni): noise alone makes it claim a rise or a fall anywhere in a
series with at most probability LEVEL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from evenhand.analysis.condition_words import join, show_percent, show_probability
from evenhand.analysis.curve_model import CurvePoint, PointTest, Shape
from evenhand.analysis.medians import Pool, search_width, settled
from evenhand.analysis.noise import LEAST_FOR_TEST, Noise, noise_of, say_more
from evenhand.analysis.ranks import least_p_value, lower_p_value
from evenhand.analysis.ratios import COARSE, SAME_WITHIN
from evenhand.procedure.descriptor import Figure, show_value

RELEVANT = SAME_WITHIN
"""The draft's "about equal", here as there."""
LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outside:
    """A point that is not on the plateau as it was chosen."""

    point: CurvePoint
    is_tested: bool
    level: float
    """The level of the plateau as it was chosen."""
    limit: float
    """What its median must be lower by, as a share."""
    test: PointTest


def find_shape(
    points: Sequence[CurvePoint], figure: Figure, *, relevant: float = RELEVANT, level: float = LEVEL
) -> Shape | None:
    """The shape of points in ascending order of N, of a figure of which more is better.

    Returns:
        None: fewer than two points have a number, or none has more than a lower bound, or half of those on
        the plateau are 0: then nothing is relative to its level.
    """
    measured = [point for point in points if point.statistics is not None]
    medians = [point.statistics.median for point in points if point.statistics is not None]
    if len(measured) < 2 or max(medians) <= 0 or all(settled(point).is_at_least for point in measured):
        return None
    noise = noise_of(measured)
    first, last = choose_plateau(medians, relevant)
    if median(_values(measured[first : last + 1])) <= 0:
        return None
    comparisons = possible_comparisons(len(measured))
    alpha = level / comparisons
    outside = _compare(measured, first, last, relevant=relevant, alpha=alpha, noise=noise)
    is_lower = [outside[i].test.is_lower if i in outside else False for i in range(len(measured))]
    # What cannot be distinguished from the plateau is not evidence of a rise or a fall, so the plateau is
    # taken to reach there.
    first, last = is_lower.index(False), len(is_lower) - 1 - is_lower[::-1].index(False)
    plateau = measured[first : last + 1]
    pool = Pool.of(settled(point) for point in plateau)
    statistics = pool.statistics
    assert statistics is not None
    if statistics.median <= 0:
        return None
    is_noise_known = all(len(point.values) >= LEAST_FOR_TEST for point in measured) and all(
        o.is_tested for o in outside.values()
    )
    shape = Shape(
        rise_end=measured[first].address_count if first > 0 else None,
        falls_above=measured[last].address_count if last < len(measured) - 1 else None,
        fall_begin=measured[last + 1].address_count if last < len(measured) - 1 else None,
        plateau=tuple(point.address_count for point in plateau),
        statistics=statistics,
        is_noise_known=is_noise_known,
        relevant=relevant,
        level=level,
        comparisons=comparisons,
        is_capped=pool.is_at_least,
        tests=tuple(o.test for o in outside.values()),
        method=_method(relevant, level, comparisons, is_noise_known=is_noise_known),
        sentences=(),
    )
    shape = _with_sentences(shape, points, measured, outside, (first, last), figure)
    more = _more(measured, outside, noise, relevant=relevant, alpha=alpha)
    return replace(shape, sentences=(*shape.sentences, *more))


def choose_plateau(medians: Sequence[float], relevant: float) -> tuple[int, int]:
    """First and last place of the points that may be the plateau: all between those whose median is within
    `relevant` of its level.

    The level begins at the highest median that is not alone, which noise has lifted, and comes down
    to the median of what is within reach of it.
    """
    anchor = next(
        (
            i
            for i in sorted(range(len(medians)), key=lambda i: -medians[i])
            if not _stands_alone(medians, i, relevant)
        ),
        0,
    )
    level, members = medians[anchor], [anchor]
    while True:
        reached = [i for i, value in enumerate(medians) if value >= level * (1 - relevant)]
        if reached == members:
            return members[0], members[-1]
        members, level = reached, min(level, median(medians[i] for i in reached))


def _stands_alone(medians: Sequence[float], place: int, relevant: float) -> bool:
    """One point higher than points on both sides that agree: three of the four next to it, and its neighbours
    among them."""
    if not 0 < place < len(medians) - 1:
        return False
    around = (medians[place - 1] + medians[place + 1]) / 2
    if around <= 0:
        return False
    near = [
        i
        for i in (place - 2, place - 1, place + 1, place + 2)
        if 0 <= i < len(medians) and abs(medians[i] / around - 1) <= relevant
    ]
    return {place - 1, place + 1} <= set(near) and len(near) >= 3 and medians[place] * (1 - relevant) > around


def possible_comparisons(point_count: int) -> int:
    """Comparisons of one point with a plateau that it is not part of: the sum, over all runs of neighbours,
    of the points outside."""
    return (point_count - 1) * point_count * (point_count + 1) // 3


def _values(points: Sequence[CurvePoint]) -> list[float]:
    return [value for point in points for value in point.values]


def _compare(
    measured: Sequence[CurvePoint], first: int, last: int, *, relevant: float, alpha: float, noise: Noise
) -> dict[int, _Outside]:
    reference = _values(measured[first : last + 1])
    level = median(reference)
    found = {}
    for i, point in enumerate(measured):
        if first <= i <= last:
            continue
        change = median(point.values) / level - 1
        counts = len(point.values), len(reference)
        is_tested = (
            min(len(p.values) for p in (point, *measured[first : last + 1])) >= LEAST_FOR_TEST
            and least_p_value(*counts) <= alpha
        )
        # As close to the plateau as the brackets of its searches allow; a lower bound may lie anywhere above.
        highest = settled(point).uppers or point.values
        p_value = lower_p_value(highest, reference) if is_tested else None
        limit = relevant if is_tested else max(relevant, noise.limit(counts, alpha))
        is_beyond = limit == relevant or median(highest) / level - 1 <= -limit
        is_seen = is_beyond if p_value is None else p_value <= alpha
        is_lower = is_seen and _is_relevant(point, level, relevant)
        test = PointTest(address_count=point.address_count, change=change, p_value=p_value, is_lower=is_lower)
        found[i] = _Outside(point=point, is_tested=is_tested, level=level, limit=limit, test=test)
    return found


def _more(
    measured: Sequence[CurvePoint],
    outside: dict[int, _Outside],
    noise: Noise,
    *,
    relevant: float,
    alpha: float,
) -> list[str]:
    """How many repetitions would decide, where noise leaves open whether a point is lower."""
    open_places = [
        o for o in outside.values() if not o.test.is_lower and _is_relevant(o.point, o.level, relevant)
    ]
    if not open_places or not noise.freedom:
        return []
    most = max(open_places, key=lambda o: o.test.change)
    fewest = min(len(point.values) for point in measured)
    wanted = noise.repetitions_for(
        now=fewest,
        point_count=len(measured) - len(outside),
        alpha=alpha,
        width=relevant,
        difference=-most.test.change,
        least=relevant,
    )
    points = join([o.point.label for o in open_places])
    what = "is" if len(open_places) == 1 else "are"
    return [f"Whether {points} {what} lower is not known: {say_more(fewest, wanted, noise)}."]


def _is_relevant(point: CurvePoint, level: float, relevant: float) -> bool:
    """Whether it is lower by what counts. Where searches leave coarse brackets, or lower bounds among its
    values a span, it must be so with all that they leave open."""
    known = settled(point)
    if known.is_at_least:
        return False
    is_open = search_width(point) > COARSE or any(known.lower_bounds)
    return median(known.uppers if is_open else known.values) / level - 1 <= -relevant


def _method(relevant: float, level: float, comparisons: int, *, is_noise_known: bool) -> str:
    test = (
        "A point is lower than the plateau if its median is at least"
        f" {show_percent(relevant)} lower, and if an exact one-sided Mann-Whitney test of"
        " its repetitions against those of the plateau confirms this at the level"
        f" {level:g} / {comparisons} (Bonferroni: each comparison that the choice of the"
        " plateau could have led to)."
    )
    if is_noise_known:
        return test
    return (
        f"{test} If there are too few repetitions for the test, a median that is at least"
        f" {show_percent(relevant)} lower counts as lower, but only if it is also lower by more than the"
        " widest range of the repetitions of one point, and by more than their standard deviation over all"
        " points of the series allows (Student's t at the same level): this is a tolerance, not a test."
    )


def _with_sentences(
    shape: Shape,
    points: Sequence[CurvePoint],
    measured: Sequence[CurvePoint],
    outside: dict[int, _Outside],
    window: tuple[int, int],
    figure: Figure,
) -> Shape:
    first, last = window
    missing = [point for point in points if point.statistics is None]
    plateau = measured[first : last + 1]
    sentences = [
        _rise_sentence(measured, outside, first),
        _plateau_sentence(shape, plateau, figure),
        _fall_sentence(measured, outside, last),
    ]
    capped = [point.label for point in plateau if settled(point).is_at_least]
    if capped:
        are_testers = any(point.is_testers for point in plateau)
        sentences.append(
            f"{join(capped)} passed at the highest load that"
            f" {'the tester kept' if are_testers else 'was tried'}: the plateau is at least that"
            " high there, and may not be"
            f" level.{'' if are_testers else ' Unless that is the line rate, set a higher maximum-rate.'}"
        )
    for edge, after in ((first, False), (last, True)):
        low, high = (edge, edge + 1) if after else (edge - 1, edge)
        if low >= 0 and high < len(measured):
            between = [
                p
                for p in missing
                if measured[low].address_count < p.address_count < measured[high].address_count
            ]
            if between:
                what = "fall begins" if after else "rise ends"
                sentences.append(
                    f"{join([p.label for p in between])} has no number, so where the {what} is"
                    " known only to lie between its neighbours."
                )
    for point in plateau:
        change = median(point.values) / shape.plateau_level - 1
        if settled(point).is_at_least:
            continue
        if (
            change <= -shape.relevant
            and search_width(point) > COARSE
            and not _is_relevant(point, shape.plateau_level, shape.relevant)
        ):
            sentences.append(
                f"The median of {point.label} is {show_percent(-change)} below the plateau, but"
                f" the searches stop at {show_percent(search_width(point))}, so it may not be"
                " lower at all: use a smaller precision."
            )
        elif change <= -shape.relevant:
            sentences.append(
                f"The median of {point.label} is {show_percent(-change)} below the plateau, but"
                " points on both sides of it are not lower, or the difference is within"
                " the noise: it is not reported as a rise or fall."
            )
        elif change >= shape.relevant:
            sentences.append(
                f"The median of {point.label} is {show_percent(change)} above the plateau; no"
                " neighbouring point is."
            )
    if not shape.is_noise_known:
        sentences.append(_few_sentence(measured, outside, shape.relevant))
    return replace(shape, sentences=tuple(sentences))


def _few_sentence(measured: Sequence[CurvePoint], outside: dict[int, _Outside], relevant: float) -> str:
    fewest = min(len(point.values) for point in measured)
    few = f"There are too few repetitions for a test (the fewest of a point: {fewest})"
    spread = noise_of(measured).spread
    limit = max((o.limit for o in outside.values() if not o.is_tested), default=relevant)
    if limit > relevant:
        return (
            f"{few}, and those of one point differ by up to {show_percent(spread)}, so only a change of the"
            f" medians of {show_percent(limit)} or more was taken as a change."
        )
    known = "so" if noise_of(measured).freedom else "the noise is not known, and"
    return f"{few}: {known} a change of the medians of {show_percent(relevant)} was taken as a change."


def _rise_sentence(measured: Sequence[CurvePoint], outside: dict[int, _Outside], first: int) -> str:
    if first == 0:
        start = measured[0].label
        if measured[0].is_single:
            start = "one address pair" if measured[0].routes is None else "one route"
        return f"No rise: {start} is not lower than the plateau."
    sentence = f"Rises up to {measured[first].label}: {_lower(outside[first - 1])}."
    return (
        sentence
        if first < len(measured) - 1
        else (f"{sentence} That is the last point, so it is not known whether the throughput rises further.")
    )


def _plateau_sentence(shape: Shape, plateau: Sequence[CurvePoint], figure: Figure) -> str:
    statistics = shape.statistics
    where = (
        f"Plateau from {plateau[0].label} to {plateau[-1].label}"
        if len(plateau) > 1
        else f"No plateau of two points: {plateau[0].label}"
    )
    return (
        f"{where}: median {show_value(statistics.median, figure)}, minimum"
        f" {show_value(statistics.minimum, figure)}, maximum"
        f" {show_value(statistics.maximum, figure)}, spread {show_percent(statistics.spread)}."
    )


def _fall_sentence(measured: Sequence[CurvePoint], outside: dict[int, _Outside], last: int) -> str:
    if last == len(measured) - 1:
        return f"No fall up to {measured[-1].label}."
    return f"Falls above {measured[last].label}: {_lower(outside[last + 1])}."


def _lower(outside: _Outside) -> str:
    by = f"{outside.point.label} is {show_percent(-outside.test.change)} lower"
    return by if outside.test.p_value is None else f"{by} ({show_probability(outside.test.p_value)})"
