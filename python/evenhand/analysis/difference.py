# SPDX-License-Identifier: Apache-2.0
"""Analysis: whether one set of repetitions is lower than another, higher, or about the same, and what it
would take to know.

Where ranks can decide, an exact Mann-Whitney test does. With fewer repetitions, a difference counts from a
limit on, and two sets are about the same only where they would be so with all that the noise of the series
leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from evenhand.analysis.condition_words import as_sentence, show_percent, show_probability, too_coarse
from evenhand.analysis.medians import MeasuredValues, MedianRatio, median_ends, median_ratio, settled
from evenhand.analysis.noise import LEAST_FOR_TEST, Noise, noise_of, say_more
from evenhand.analysis.ranks import least_p_value, lower_p_value
from evenhand.analysis.ratios import COARSE, SAME_WITHIN, deciding_precision, is_decided

DIRECTIONS_OF_TEST = 2
"""One set may be lower, or higher."""
MUCH = 0.25
"""That a set may be lower by more than that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What two sets of values say of each other."""

    kind: str
    """`hides`: the first is lower; `shows_more`: it is higher; `same`; `not_lower`: the same or higher;
    `not_much_lower`: by a quarter at most, if at all; `unknown`."""
    ratio: MedianRatio
    p_value: float | None
    certainty: str
    why: str = ""
    """For an unknown finding: why there is no verdict, and what would give one."""
    more_repetitions: int | None = None
    """For an unknown finding, `not_lower` or `not_much_lower`: how many would, about, for each point, beyond
    those there are."""
    least_ratio: float | None = None
    """For `not_lower` and `not_much_lower`: the lowest that the ratio may be."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How a difference is judged."""

    fewest: int
    """Repetitions of the point that has the fewest."""
    point_count: int
    """How many points the second set consists of."""
    level: float
    """Most probability of a false finding, both directions together."""
    comparisons: int
    """Comparisons among which this one was chosen: the level is divided by them."""
    series: Sequence[MeasuredValues]
    """All points of the series, which show the noise."""

    @property
    def alpha(self) -> float:
        return self.level / self.comparisons

    @cached_property
    def noise(self) -> Noise:
        return noise_of(self.series)


def compare_values(one: MeasuredValues, other: MeasuredValues, measure: Measure) -> Difference:
    """Whether the first are lower than the second, higher, or the same within 5 percent; where that is not
    known, whether they are at least not lower.

    A lower bound can be lower or the same only as far as it seems so: that is "unknown".
    """
    one, other = settled(one), settled(other)
    found = _compare(one, other, measure)
    least = _least_ratio(one, other, found.ratio, measure) if found.kind == "unknown" else None
    if least is None or least < 1 - MUCH:
        return found
    return replace(
        found, kind="not_lower" if least >= 1 - SAME_WITHIN else "not_much_lower", least_ratio=least
    )


def _least_ratio(
    one: MeasuredValues, other: MeasuredValues, ratio: MedianRatio, measure: Measure
) -> float | None:
    """The lowest that the ratio may be, at the level of an interval of it: by ranks, else by the noise of the
    series. None: not known. A lower bound of the first set says as much of it as an exact value."""
    if other.is_at_least or ratio.ratio is None:
        return None
    if ratio.firm_interval is not None:
        return ratio.firm_interval.low
    noise = measure.noise
    return _ends(one, other)[0] - noise.reach(ratio.counts) if noise.freedom else None


def _compare(one: MeasuredValues, other: MeasuredValues, measure: Measure) -> Difference:
    ratio = median_ratio(one, other)
    if ratio.ratio is None:
        return _unknown(ratio, "there is no result with many addresses to compare with")
    is_same = abs(ratio.ratio - 1) < SAME_WITHIN
    if (one.is_at_least and (is_same or ratio.ratio < 1)) or (
        other.is_at_least and (is_same or ratio.ratio > 1)
    ):
        return _unknown(ratio, _capped(one, other))
    more = _more(ratio, measure)
    precision, is_coarse, interval = deciding_precision(ratio), ratio.search_width > COARSE, ratio.interval
    if (interval is None or not is_decided(interval)) and (is_coarse or (is_same and precision is not None)):
        if precision is not None:
            return _unknown(ratio, too_coarse(ratio.search_width, precision))
        width = show_percent(ratio.search_width)
        why = f"the searches stop at {width}, and the repetitions differ widely; {_say(more, measure)}"
        return _unknown(ratio, why, more=more)
    if is_same:
        return _judge_same(one, other, ratio, measure, more)
    kind = "hides" if ratio.ratio < 1 else "shows_more"
    if measure.fewest >= LEAST_FOR_TEST and least_p_value(*ratio.counts) <= measure.alpha:
        if more is not None:  # ranks say less of these values than of normal ones
            more = max(more, measure.fewest // 2)
        return _judge_by_ranks(kind, one, other, ratio, measure, more)
    return _judge_by_spread(kind, one, other, ratio, measure, more)


def _judge_same(
    one: MeasuredValues, other: MeasuredValues, ratio: MedianRatio, measure: Measure, more: int | None
) -> Difference:
    interval, within = ratio.firm_interval, show_percent(SAME_WITHIN)
    if interval is None:
        return _judge_same_by_spread(one, other, ratio, measure, more)
    span = f"{interval.low:.3f} to {interval.high:.3f}"
    certainty = (
        f"The ratio lies between {interval.low:.3f} and {interval.high:.3f} with a probability of at least"
        f" {show_percent(interval.level)} (Hodges-Lehmann interval of {_counts(ratio)})"
    )
    if interval.low >= 1 - SAME_WITHIN and interval.high <= 1 + SAME_WITHIN:
        return Difference(kind="same", ratio=ratio, p_value=None, certainty=f"{certainty}: within {within}.")
    why = f"the interval of the ratio, {span}, is too wide; {_say(more, measure)}"
    return _unknown(ratio, why, f"{certainty}.", more=more)


def _judge_same_by_spread(
    one: MeasuredValues, other: MeasuredValues, ratio: MedianRatio, measure: Measure, more: int | None
) -> Difference:
    """With too few repetitions for an interval by ranks: all of the ratio, wherever the limits of the
    searches lie, and as far as the noise of the series reaches, must be within the tolerance."""
    noise = measure.noise
    if not noise.freedom:
        return Difference(kind="same", ratio=ratio, p_value=None, certainty=_unsure(measure.fewest))
    reach = noise.reach(ratio.counts)
    low, high = (end + sign * reach for end, sign in zip(_ends(one, other), (-1, 1), strict=True))
    of_ratio = (
        f"the repetitions of all points of the series together leave it between {low:.3f} and {high:.3f}"
        f" (Student's t, {noise.freedom} degrees of freedom)"
    )
    too_few = as_sentence(_too_few(measure.fewest))
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        certainty = f"{too_few} for an interval of the ratio by ranks; {of_ratio}."
        return Difference(kind="same", ratio=ratio, p_value=None, certainty=certainty)
    why = (
        f"{_too_few(measure.fewest)}, since those of one point differ by up to {show_percent(noise.spread)};"
        f" {_say(more, measure)}"
    )
    return _unknown(ratio, why, f"Of the ratio, {of_ratio}.", more=more)


def _judge_by_ranks(
    kind: str,
    one: MeasuredValues,
    other: MeasuredValues,
    ratio: MedianRatio,
    measure: Measure,
    more: int | None,
) -> Difference:
    # As close as the brackets of the searches allow.
    lower, upper = (one, other) if kind == "hides" else (other, one)
    p_value = lower_p_value(lower.uppers or lower.values, upper.lowers or upper.values)
    test = (
        f"exact one-sided Mann-Whitney test of {_counts(ratio)}: {show_probability(p_value)}, level"
        f" {measure.level:g} / {measure.comparisons} (Bonferroni)"
    )
    if p_value > measure.alpha:
        why = f"the difference is within the noise; {_say(more, measure)}"
        return _unknown(ratio, why, f"{as_sentence(test)}.", p_value, more=more)
    between, interval = "", ratio.firm_interval
    if interval is not None and interval.low <= 1 <= interval.high:
        why = (
            f"the interval of the ratio, {interval.low:.3f} to {interval.high:.3f}, includes 1;"
            f" {_say(more, measure)}"
        )
        return _unknown(ratio, why, f"{as_sentence(test)}.", p_value, more=more)
    if interval is not None:
        between = (
            f" The ratio lies between {interval.low:.3f} and {interval.high:.3f} with a probability of at"
            f" least {show_percent(interval.level)} (Hodges-Lehmann)."
        )
    certainty = f"The difference exceeds the noise ({test}).{between}"
    return Difference(kind=kind, ratio=ratio, p_value=p_value, certainty=certainty)


def _judge_by_spread(
    kind: str,
    one: MeasuredValues,
    other: MeasuredValues,
    ratio: MedianRatio,
    measure: Measure,
    more: int | None,
) -> Difference:
    """With too few repetitions for a test by ranks: beyond the limit, with the ends of the brackets that are
    closest together."""
    noise = measure.noise
    if not noise.freedom:
        return Difference(kind=kind, ratio=ratio, p_value=None, certainty=_unsure(measure.fewest))
    limit = noise.limit(ratio.counts, measure.alpha)
    low, high = _ends(one, other)
    # Relative to the higher one, so that neither direction is easier.
    difference = 1 - (high if kind == "hides" else 1 / low if low else 1.0)
    spread = (
        f"those of one point differ by up to {show_percent(noise.spread)}, with a standard deviation of"
        f" {show_percent(noise.deviation)} over all points of the series"
    )
    if difference >= limit:
        certainty = (
            f"{as_sentence(_too_few(measure.fewest))} for a test by ranks; the difference exceeds the limit"
            f" of {show_percent(max(limit, SAME_WITHIN))} for so few ({spread})."
        )
        return Difference(kind=kind, ratio=ratio, p_value=None, certainty=certainty)
    return _unknown(
        ratio,
        f"{_too_few(measure.fewest)} to tell a difference of less than {show_percent(limit)} from the noise"
        f" ({spread}); {_say(more, measure)}",
        more=more,
    )


def _ends(one: MeasuredValues, other: MeasuredValues) -> tuple[float, float]:
    """The least and the greatest ratio of the medians that the brackets of the searches leave open."""
    (one_low, one_high), (other_low, other_high) = median_ends(one), median_ends(other)
    return one_low / other_high if other_high else 1.0, one_high / other_low if other_low else float("inf")


def _more(ratio: MedianRatio, measure: Measure) -> int | None:
    """How many repetitions of each point beyond those there are would give a verdict, about."""
    assert ratio.ratio is not None
    wanted = measure.noise.repetitions_for(
        now=measure.fewest,
        point_count=measure.point_count,
        alpha=measure.alpha,
        width=COARSE,
        difference=abs(ratio.ratio - 1),
        least=SAME_WITHIN,
    )
    return None if wanted is None else wanted - measure.fewest


def _say(more: int | None, measure: Measure) -> str:
    wanted = None if more is None else measure.fewest + more
    return say_more(measure.fewest, wanted, measure.noise)


def _unknown(
    ratio: MedianRatio,
    why: str,
    certainty: str = "",
    p_value: float | None = None,
    *,
    more: int | None = None,
) -> Difference:
    return Difference(
        kind="unknown", ratio=ratio, p_value=p_value, certainty=certainty, why=why, more_repetitions=more
    )


def _capped(*found: MeasuredValues) -> str:
    if any(measured.is_testers for measured in found):
        return "a result is only a lower bound, because on this machine no higher load could be decided"
    return (
        "a result is only a lower bound, because the highest load that was tried passed; unless that is the"
        " line rate, set a higher maximum-rate"
    )


def _counts(ratio: MedianRatio) -> str:
    return f"{ratio.counts[0]} and {ratio.counts[1]} values"


def _too_few(fewest: int) -> str:
    return f"{fewest} repetition{' is' if fewest == 1 else 's are'} too few"


def _unsure(fewest: int) -> str:
    return (
        f"The certainty is not known: {_too_few(fewest)} to estimate the noise, so"
        f" {show_percent(SAME_WITHIN)} was taken as the limit."
    )
