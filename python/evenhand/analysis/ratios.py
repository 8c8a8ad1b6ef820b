# SPDX-License-Identifier: Apache-2.0
"""Analysis: results that the draft expects to be about equal, as ratios of medians with their intervals
(SEED-70)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.analysis.condition_words import show_percent, too_coarse
from evenhand.analysis.curve_model import Curve, CurvePoint
from evenhand.analysis.medians import MedianRatio, Pool, median_ratio, settled, show_ratio
from evenhand.analysis.model import Ratio
from evenhand.analysis.noise import noise_of, say_more
from evenhand.analysis.plans import ip_version, is_direct
from evenhand.analysis.ranks import RATIO_LEVEL
from evenhand.procedure.registry import THROUGHPUT
from evenhand.procedure.statistics import Interval

SAME_WITHIN = 0.05
"""Two results are about equal within 5 percent (SEED-70)."""
COARSE = SAME_WITHIN / 2
"""Where searches leave a wider bracket, a difference must be beyond the tolerance with all that the brackets
leave open."""
PRECISIONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
"""Precisions that are recommended; a finer one asks for more than a tester's clock can keep."""


def ratios_of(curves: Sequence[Curve]) -> tuple[Ratio, ...]:
    """Gateway over the plateau of the direct series, and many addresses with type 1 over one pair with ports
    and type 2: for each IP version, frame size and choice of directions that has both."""
    found = []
    for curve, point in _many_behind_gateways(curves):
        alike = [other for other in curves if _is_alike(curve, other)]
        for other in alike:
            plateau = _plateau(other)
            if (
                is_direct(other.key.plan)
                and other.key.hash_type == curve.key.hash_type
                and plateau is not None
            ):
                below = f"the plateau of {other.title}"
                found.append(
                    _ratio(
                        "gateway / plateau",
                        f"{curve.title}, {point.label}",
                        below,
                        median_ratio(settled(point), plateau),
                        _advice(curve, point, _on_plateau(other)),
                    )
                )
        for other in alike:
            pair = next((p for p in other.measured if p.is_one_pair), None)
            if other.key.hash_type == "type2" and pair is not None:
                below = f"{other.title}, one address pair"
                name = "many addresses, type 1 / one pair with ports, type 2"
                ratio = median_ratio(settled(point), settled(pair))
                found.append(
                    _ratio(name, f"{curve.title}, {point.label}", below, ratio, _advice(curve, point, [pair]))
                )
    return tuple(found)


def _many_behind_gateways(curves: Sequence[Curve]) -> Iterator[tuple[Curve, CurvePoint]]:
    """The point with most addresses of each curve whose DUT does not hash ports."""
    for curve in curves:
        many = [point for point in curve.measured if not point.is_one_pair]
        is_gateway = ip_version(curve.key.plan) is not None and not is_direct(curve.key.plan)
        if curve.key.procedure == THROUGHPUT.name and curve.key.hash_type != "type2" and is_gateway and many:
            yield curve, many[-1]


def _is_alike(curve: Curve, other: Curve) -> bool:
    a, b = curve.key, other.key
    return b.procedure == THROUGHPUT.name and (ip_version(a.plan), str(a.frame_size), a.directions) == (
        ip_version(b.plan),
        str(b.frame_size),
        b.directions,
    )


def _plateau(curve: Curve) -> Pool | None:
    """None, if it has no plateau of more than one address pair."""
    if curve.shape is None or not curve.shape.is_plateau_seen:
        return None
    return Pool.of(settled(point) for point in _on_plateau(curve))


def _on_plateau(curve: Curve) -> list[CurvePoint]:
    plateau = () if curve.shape is None else curve.shape.plateau
    return [point for point in curve.measured if point.address_count in plateau]


def _advice(curve: Curve, above: CurvePoint, below: Sequence[CurvePoint]) -> str:
    """How many repetitions would decide."""
    noise = noise_of([*curve.measured, *below])
    fewest = min(len(point.values) for point in (above, *below))
    wanted = noise.repetitions_for(
        now=fewest, point_count=len(below), alpha=(1 - RATIO_LEVEL) / 2, width=COARSE
    )
    return say_more(fewest, wanted, noise)


def _ratio(name: str, above: str, below: str, ratio: MedianRatio, advice: str) -> Ratio:
    is_apart = _is_apart(ratio)
    how = f"it is not known whether they are about equal: {advice}"
    if is_apart is not None:
        within = show_percent(SAME_WITHIN)
        how = f"more than {within} apart" if is_apart else f"about equal, within {within}"
    elif ratio.bound != "none":
        how = "it is not known whether they are about equal, because a lower bound is among them"
    elif (precision := deciding_precision(ratio)) is not None:
        how = f"it is not known whether they are about equal: {too_coarse(ratio.search_width, precision)}"
    sentence = f"{above} over {below}: {show_ratio(ratio)}; {how}."
    return Ratio(
        name=name, above=above, below=below, ratio=ratio, is_flagged=is_apart is True, sentence=sentence
    )


def is_decided(interval: Interval) -> bool:
    """Whether all of it lies on one side of the tolerance, or within."""
    is_inside = interval.low >= 1 - SAME_WITHIN and interval.high <= 1 + SAME_WITHIN
    return is_inside or interval.high < 1 - SAME_WITHIN or interval.low > 1 + SAME_WITHIN


def deciding_precision(ratio: MedianRatio) -> float | None:
    """The coarsest of `PRECISIONS` at which searches with the same results would say whether the two are
    about equal.

    None: it is not their precision that keeps the answer back.
    """
    narrowest = ratio.narrowest
    if narrowest is None or narrowest.low <= 0:
        return None
    for precision in PRECISIONS:
        widened = Interval(
            low=narrowest.low * (1 - precision), high=narrowest.high / (1 - precision), level=narrowest.level
        )
        if precision < ratio.search_width and is_decided(widened):
            return precision
    return None


def _is_apart(ratio: MedianRatio) -> bool | None:
    """Whether the two differ by more than the tolerance; None if the interval of the ratio supports neither
    answer, or there is none."""
    interval = ratio.firm_interval
    if ratio.ratio is None:
        return True
    if interval is None or ratio.bound == "unknown":
        return None
    is_below, is_above = interval.high < 1 - SAME_WITHIN, interval.low > 1 + SAME_WITHIN
    if ratio.bound != "none":
        return True if (is_above if ratio.bound == "at_least" else is_below) else None
    if is_below or is_above:
        return True
    return False if interval.low >= 1 - SAME_WITHIN and interval.high <= 1 + SAME_WITHIN else None
