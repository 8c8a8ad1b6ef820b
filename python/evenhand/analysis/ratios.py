# SPDX-License-Identifier: Apache-2.0
"""Analysis: results that the draft expects to be about equal, as ratios of medians with their intervals (SEED-70)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.analysis.device import ip_version, is_direct
from evenhand.analysis.model import Curve, CurvePoint, MedianRatio, Ratio, RatioBound
from evenhand.analysis.words import show_percent
from evenhand.procedure.statistics import Interval, Statistics

SAME_WITHIN = 0.05
"""Two results are about equal within 5 percent (SEED-70)."""


def median_ratio(
    above: Sequence[float], below: Sequence[float], *, above_is_at_least: bool = False, below_is_at_least: bool = False
) -> MedianRatio:
    """Of the medians of two sets of independent repetitions, neither of which may be empty.

    Args:
        above_is_at_least: The upper median is a lower bound; and likewise the other one.
    """
    upper, lower = Statistics.of(above), Statistics.of(below)
    if upper is None or lower is None:
        raise ValueError("nothing to compare")
    interval = None
    if lower.median_interval.low > 0:
        interval = Interval(
            low=upper.median_interval.low / lower.median_interval.high,
            high=upper.median_interval.high / lower.median_interval.low,
            level=upper.median_interval.level * lower.median_interval.level,
        )
    ratio = upper.median / lower.median if lower.median else (1.0 if upper.median == 0 else None)
    bounds: dict[tuple[bool, bool], RatioBound] = {(True, False): "at_least", (False, True): "at_most", (True, True): "unknown"}
    bound = bounds.get((above_is_at_least, below_is_at_least), "none")
    return MedianRatio(ratio=ratio, interval=interval, counts=(upper.count, lower.count), bound=bound)


def show_ratio(ratio: MedianRatio) -> str:
    """`0.991 (0.985 .. 0.998 with 95.7 %)`, `at least 0.991`."""
    if ratio.ratio is None:
        return "no ratio: the one below is 0"
    if ratio.bound == "unknown":
        return "no ratio: both passed at the highest load that was tried"
    text = f"{ratio.ratio:.3f}"
    if ratio.bound != "none":
        return f"{ratio.bound.replace('_', ' ')} {text}"
    if ratio.interval is None or min(ratio.counts) < 2:
        return text
    return f"{text} ({ratio.interval.low:.3f} .. {ratio.interval.high:.3f} with {show_percent(ratio.interval.level)})"


def ratios_of(curves: Sequence[Curve]) -> tuple[Ratio, ...]:
    """Gateway over the plateau of the direct series, and many addresses with type 1 over one pair with ports and type 2: for each IP
    version, frame size and choice of directions that has both."""
    found = []
    for curve, point in _many_behind_gateways(curves):
        alike = [other for other in curves if _is_alike(curve, other)]
        for other in alike:
            plateau = _plateau_values(other)
            if is_direct(other.key.plan) and other.key.hash_type == curve.key.hash_type and plateau:
                below = f"the plateau of {other.title}"
                ratio = median_ratio(
                    point.values, plateau, above_is_at_least=point.is_at_least,
                    below_is_at_least=other.shape is not None and other.shape.is_capped,
                )  # fmt: skip
                found.append(_ratio("gateway / plateau", f"{curve.title}, {point.label}", below, ratio))
        for other in alike:
            pair = next((p for p in other.measured if p.is_single_pair), None)
            if other.key.hash_type == "type2" and pair is not None:
                below = f"{other.title}, one address pair"
                name = "many addresses, type 1 / one pair with ports, type 2"
                ratio = median_ratio(point.values, pair.values, above_is_at_least=point.is_at_least, below_is_at_least=pair.is_at_least)
                found.append(_ratio(name, f"{curve.title}, {point.label}", below, ratio))
    return tuple(found)


def _many_behind_gateways(curves: Sequence[Curve]) -> Iterator[tuple[Curve, CurvePoint]]:
    """The point with most addresses of each curve whose DUT does not hash ports."""
    for curve in curves:
        many = [point for point in curve.measured if not point.is_single_pair]
        is_gateway = ip_version(curve.key.plan) is not None and not is_direct(curve.key.plan)
        if curve.key.procedure == "throughput" and curve.key.hash_type != "type2" and is_gateway and many:
            yield curve, many[-1]


def _is_alike(curve: Curve, other: Curve) -> bool:
    a, b = curve.key, other.key
    return (
        b.procedure == "throughput"
        and (ip_version(a.plan), str(a.frame_size), a.directions) == (ip_version(b.plan), str(b.frame_size), b.directions)
    )  # fmt: skip


def _plateau_values(curve: Curve) -> list[float]:
    """None, if it has no plateau of more than one address pair."""
    if curve.shape is None or not curve.shape.is_plateau_seen:
        return []
    return [value for point in curve.measured if point.addresses in curve.shape.plateau for value in point.values]


def _ratio(name: str, above: str, below: str, ratio: MedianRatio) -> Ratio:
    is_apart = ratio.ratio is None or abs(ratio.ratio - 1) > SAME_WITHIN
    is_certain = (
        ratio.bound == "none" or ratio.ratio is None or (ratio.bound == "at_least" and ratio.ratio > 1)
        or (ratio.bound == "at_most" and ratio.ratio < 1)
    )  # fmt: skip
    is_flagged = is_apart and is_certain
    how = f"more than {show_percent(SAME_WITHIN)} apart" if is_flagged else f"about equal, within {show_percent(SAME_WITHIN)}"
    if not is_flagged and ratio.bound != "none":
        how = "whether they are about equal is not known; give a higher maximum-rate"
    sentence = f"{above} over {below}: {show_ratio(ratio)}; {how}."
    return Ratio(name=name, above=above, below=below, ratio=ratio, is_flagged=is_flagged, sentence=sentence)
