# SPDX-License-Identifier: Apache-2.0
"""Analysis: the median of one set of repetitions over that of another, what is known of it, and values of
several points as one set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from evenhand.analysis.condition_words import show_percent
from evenhand.analysis.ranks import RATIO_LEVEL, ratio_interval
from evenhand.base.lazy_import import lazy_import
from evenhand.procedure.statistics import Interval, Statistics

if TYPE_CHECKING:
    import jumpavg
else:
    jumpavg = lazy_import("jumpavg")


RatioBound: TypeAlias = Literal["none", "at_least", "at_most", "unknown"]
"""What is known of a ratio: itself; that the true one is at least or at most as high; or, with two lower
bounds, nothing."""
LEAST_LEVEL = RATIO_LEVEL
"""Lowest level of a ratio's interval that is shown, or decides anything: four repetitions in both sets have
0.971, three have 0.9."""


class MeasuredValues(Protocol):
    """Repetitions of which a ratio can be made: a point, or several."""

    @property
    def values(self) -> tuple[float, ...]: ...
    @property
    def is_at_least(self) -> bool:
        """Whether the median is a lower bound."""

    @property
    def is_testers(self) -> bool:
        """Whether it is one because the tester could not keep a higher load."""

    @property
    def lower_bounds(self) -> tuple[bool, ...]:
        """Which of the values are lower bounds; empty: none."""

    @property
    def lowers(self) -> tuple[float, ...]:
        """How low each value may really be; empty: not lower than it is."""

    @property
    def uppers(self) -> tuple[float, ...]:
        """How high each value may really be, as the lowest load that failed in its search; infinite of a
        lower bound among others that are none; empty: the values are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Values of several points that are taken for one level, such as those of a plateau."""

    values: tuple[float, ...]
    is_at_least: bool = False
    """What the DUT does there is a lower bound."""
    uppers: tuple[float, ...] = ()
    lowers: tuple[float, ...] = ()
    is_testers: bool = False
    """Because the tester could not keep a higher load."""
    lower_bounds: tuple[bool, ...] = ()
    """Which of the values are lower bounds; empty: none."""

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the values; None without one."""
        return Statistics.of(self.values, lower_bounds=self.lower_bounds)

    @classmethod
    def of(cls, points: Iterable[MeasuredValues]) -> Self:
        """A lower bound as soon as the median of one of the points is.

        That point may be higher than the others by any amount. Then they are not of one level, and how many
        of all values passed at the highest load says nothing of it: the points beside it do not show how high
        it is.
        """
        found = tuple(points)
        return cls(
            values=tuple(value for point in found for value in point.values),
            is_at_least=any(point.is_at_least for point in found),
            is_testers=any(point.is_testers for point in found),
            uppers=tuple(upper for point in found for upper in point.uppers or point.values),
            lowers=tuple(lower for point in found for lower in point.lowers or point.values),
            lower_bounds=tuple(
                is_bound for point in found for is_bound in point.lower_bounds or (False,) * len(point.values)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianRatio:
    """The median of one set of values over that of another."""

    ratio: float | None
    """None: the lower one is 0 and the upper is not."""
    interval: Interval | None
    """Interval of the factor between both sets (Hodges-Lehmann), with the exact level of the Mann-Whitney
    distribution. None where an end is not a number."""
    counts: tuple[int, int]
    """Values above and below the line."""
    bound: RatioBound = "none"
    """What is known of the ratio where a median is a lower bound itself."""
    search_width: float = 0.0
    """How wide the brackets of the searches are, as a share of their upper ends: the median of the set where
    it is the larger."""
    narrowest: Interval | None = None
    """The interval as it would be if the searches left no brackets."""

    @property
    def firm_interval(self) -> Interval | None:
        """The interval; None if there is none, or if there are too few repetitions for one that says
        anything."""
        return None if self.interval is None or self.interval.level < LEAST_LEVEL else self.interval

    @property
    def is_different(self) -> bool | None:
        """Whether the interval leaves out 1; None with too few values for an interval that says anything, or
        where a median is a lower bound and hides it."""
        interval = self.firm_interval
        if interval is None or self.bound == "unknown":
            return None
        if self.bound != "none":
            is_beyond = interval.low > 1 if self.bound == "at_least" else interval.high < 1
            return True if is_beyond else None
        return not interval.low <= 1 <= interval.high

    def to_document(self) -> dict[str, Any]:
        interval = None
        if self.interval is not None:
            interval = {"low": self.interval.low, "high": self.interval.high, "level": self.interval.level}
        return {
            "ratio": self.ratio,
            "interval": interval,
            "counts": list(self.counts),
            "bound": self.bound,
            "search_width": self.search_width,
        }


def settled(measured: MeasuredValues) -> MeasuredValues:
    """The same with no bound of its median, where the lower bounds among the values leave that open between
    two values only: one of three may lie anywhere above, and the median is one of the other two, or between
    them.

    Each lower bound counts as infinite at its upper end, so whatever is judged by the ends holds wherever
    they are. What is a lower bound without an end stays one.
    """
    if not measured.is_at_least or not measured.lower_bounds or all(measured.lower_bounds):
        return measured
    ends = tuple(
        math.inf if is_bound else upper
        for upper, is_bound in zip(measured.uppers or measured.values, measured.lower_bounds, strict=True)
    )
    if not math.isfinite(median(ends)):
        return measured
    return Pool(
        values=measured.values,
        uppers=ends,
        lowers=measured.lowers or measured.values,
        lower_bounds=measured.lower_bounds,
    )


def median_ends(measured: MeasuredValues) -> tuple[float, float]:
    """Between which the median lies, wherever each value is in its bracket; of `settled` values also wherever
    lower bounds are. Neither end is below 0."""
    return median(measured.lowers or measured.values), median(measured.uppers or measured.values)


def median_ratio(above: MeasuredValues, below: MeasuredValues) -> MedianRatio:
    """The ratio of the medians of two sets of independent repetitions, neither of which may be empty. The
    interval holds whatever the true limits are within the brackets of their searches."""
    upper, lower = (Statistics.of(of.values, lower_bounds=of.lower_bounds) for of in (above, below))
    if upper is None or lower is None:
        raise ValueError("nothing to compare")
    ratio = upper.median / lower.median if lower.median else (1.0 if upper.median == 0 else None)
    interval = _with(
        ratio,
        ratio_interval(
            above.values,
            below.values,
            above_uppers=above.uppers,
            below_uppers=below.uppers,
            above_lowers=above.lowers,
            below_lowers=below.lowers,
        ),
    )
    narrowest = _with(ratio, ratio_interval(above.values, below.values))
    bounds: dict[tuple[bool, bool], RatioBound] = {
        (True, False): "at_least",
        (False, True): "at_most",
        (True, True): "unknown",
    }
    bound = bounds.get((above.is_at_least, below.is_at_least), "none")
    width = max(search_width(above), search_width(below))
    return MedianRatio(
        ratio=ratio,
        interval=interval,
        counts=(upper.count, lower.count),
        bound=bound,
        search_width=width,
        narrowest=narrowest,
    )


def _with(ratio: float | None, interval: Interval | None) -> Interval | None:
    """With odd samples, the ratio of medians may lie outside the interval: then the interval is extended to
    it."""
    if interval is None or ratio is None:
        return interval
    return Interval(low=min(interval.low, ratio), high=max(interval.high, ratio), level=interval.level)


def search_width(measured: MeasuredValues) -> float:
    """How wide the brackets of the searches are, as a share of their upper ends: the median; 0 of exact
    values."""
    lows, highs = measured.lowers or measured.values, measured.uppers or measured.values
    widths = [(high - low) / high for low, high in zip(lows, highs, strict=True) if 0 < high < math.inf]
    return median(widths) if widths else 0.0


def show_ratio(ratio: MedianRatio) -> str:
    """`0.991 (0.985 .. 0.998 with 95.7 %)`, `at least 0.991`; `0.991` with too few repetitions for an
    interval."""
    if ratio.ratio is None:
        return "no ratio: the denominator is 0"
    if ratio.bound == "unknown":
        return "no ratio: both are lower bounds"
    text = f"{ratio.ratio:.3f}"
    if ratio.bound != "none":
        return f"{ratio.bound.replace('_', ' ')} {text}"
    interval = ratio.firm_interval
    return (
        text
        if interval is None
        else f"{text} ({interval.low:.3f} .. {interval.high:.3f} with {show_percent(interval.level)})"
    )


FEWEST_RUNS = 6
"""Fewest numbers of a series that is cut into levels. In fewer, even a change of five deviations is seldom
found."""
SHORTEST_LEVEL = 2
"""Fewest numbers of a level. One alone among others of another level is set aside: the next one shows whether
it was the first of a new level, or a stray."""
MOST_APART = 3
"""At most one number in so many is set aside; a series with more of them has no levels."""
RESOLUTION = 0.002
"""Share of the median below which differences do not count: finer than the brackets of usual searches
(0.5 %), and coarser than what jumpavg takes by itself. A group costs fewer bits then, so a change is found
earlier, and false alarms stay as rare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Which numbers of a series are of one level, by their places from 0."""

    groups: tuple[tuple[int, ...], ...]
    """Groups in order; each number is in one of them, or set aside."""
    apart: tuple[int, ...] = ()
    """Set aside, in ascending order."""


def find_levels(values: Sequence[float]) -> Levels:
    """The levels of a series, at least one.

    Numbers are taken as exact, and none may be below 0. ValueError if there are none.
    """
    if not values:
        raise ValueError("nothing to cut into levels")
    kept, apart = list(range(len(values))), list[int]()
    while len(kept) >= FEWEST_RUNS and max(values[i] for i in kept) > 0:
        groups = _cut(values, kept)
        alone = [group[0] for group in groups if len(group) < SHORTEST_LEVEL]
        if not alone:
            return Levels(groups=groups, apart=tuple(sorted(apart)))
        apart += alone
        kept = [place for place in kept if place not in alone]
        if len(apart) * MOST_APART > len(values):
            return Levels(groups=(tuple(range(len(values))),))
    return Levels(groups=(tuple(kept),), apart=tuple(sorted(apart)))


def _cut(values: Sequence[float], kept: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    numbers = [float(values[place]) for place in kept]
    unit = RESOLUTION * (median(numbers) or max(numbers))
    groups, begin = list[tuple[int, ...]](), 0
    for group in jumpavg.classify(numbers, unit=unit):
        end = begin + len(group.run_list)
        groups.append(tuple(kept[begin:end]))
        begin = end
    return tuple(groups)
