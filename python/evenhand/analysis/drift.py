# SPDX-License-Identifier: Apache-2.0
"""Analysis: whether the DUT drifted while a series was measured, and whether its order keeps a drift apart
from the addresses.

Each value is taken relative to the median of its point on its testbed. Without a drift, the order in which a
point's repetitions were made says nothing of them. Two tests ask whether it does: the seasonal Kendall test
(Hirsch and Slack) for a trend over time, and a permutation test within points of whether repetitions that
were made in the same round, or in one block, are alike. The level is divided by both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from evenhand.analysis.condition_words import as_sentence
from evenhand.analysis.curve_model import CurvePoint, Drift, Shape
from evenhand.analysis.medians import MedianRatio
from evenhand.analysis.model import BiasVerdict
from evenhand.base.lazy_import import lazy_import
from evenhand.run.campaign_record import PointRecord, Repetition

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")

SAFE = 2.0
"""A change that is this many times larger than the drift is kept: in no order could the drift have made
it."""
LEAST_IN_ROUND = 4
"""Fewest points of a round that show its level."""
PERMUTATIONS = 999
LEAST_OF_BLOCK = 3
ONE_AFTER_THE_OTHER = (
    "The repetitions of each point were made one after the other, so a DUT that drifted in the meantime"
    " would look the same."
)


@dataclass(frozen=True, slots=True)
class _Value:
    point: str
    number: int
    """Number of its repetition."""
    relative: float
    """Logarithm, relative to the median of its point."""
    round: int
    block: int
    """Among those of its point: what was measured without another point in between."""


def drift_of(points: Sequence[PointRecord]) -> Drift | None:
    """Drift of points that were measured in turns; None where their files do not say when, or no two have two
    repetitions."""
    made = _in_turns(points)
    times: dict[str, list[str]] = {}
    for started_at, _, name, _ in made:
        times.setdefault(name, []).append(started_at)
    repeated = [found for found in times.values() if len(found) > 1]
    if len(repeated) < 2:
        return None
    is_in_rounds = max(found[0] for found in repeated) <= min(found[-1] for found in repeated)
    values = _relative([(name, repetition) for _, _, name, repetition in made])
    numbers = _whole_rounds(values)
    levels = [median(value.relative for value in values if value.round == number) for number in numbers]
    p_value = None
    if is_in_rounds and len(numbers) > 1:
        p_value = min(1.0, 2 * min(_trend_p_value(values), _alike_p_value(values)))
    return Drift(
        is_in_rounds=is_in_rounds,
        rounds=len(numbers),
        change=math.expm1(levels[-1] - levels[0]),
        range=math.expm1(max(max(levels) - min(levels), _between_blocks(values))),
        p_value=p_value,
    )


def without_rounds(points: Sequence[CurvePoint], records: Sequence[PointRecord]) -> list[CurvePoint] | None:
    """The same points, of each of whose values is taken what it has in common with the others of its round.

    A drift that all points share is gone then, since each round has them once, in random order. What is left
    of k values of a round varies less by the square root of (k - 1) / k, since their own level is among what
    was taken; it is multiplied by as much. A round of fewer than LEAST_IN_ROUND points shows no level: its
    values stay, and their drift is noise.

    Returns:
        None: fewer than two rounds show their level, as where points have several repetitions in one: it
            takes so long that the DUT drifts in the meantime.
    """
    rounds: list[dict[str, _Value]] = [{}]
    for value in _relative([(name, repetition) for _, _, name, repetition in _in_turns(records)]):
        if value.point in rounds[-1]:
            rounds.append({})
        rounds[-1][value.point] = value
    shown = [found for found in rounds if len(found) >= LEAST_IN_ROUND]
    if len(shown) < 2:
        return None
    factors = {}
    for of_round in shown:
        level = median(value.relative for value in of_round.values())
        widened = math.sqrt(len(of_round) / (len(of_round) - 1))
        for value in of_round.values():
            left = (value.relative - level) * widened
            factors[value.point, value.number] = math.exp(left - value.relative)
    found = []
    for point, record in zip(points, records, strict=True):
        scale = [
            factors.get((_name(record, r), r.number), 1.0)
            for r in record.repetitions
            if r.finished_at is not None and r.value is not None
        ]
        values_of, lowers, uppers = (
            tuple(value * factor for value, factor in zip(ends, scale, strict=True)) if ends else ()
            for ends in (point.values, point.lowers, point.uppers)
        )
        found.append(replace(point, values=values_of, lowers=lowers, uppers=uppers))
    return found


def withholds(drift: Drift, kind: str, ratio: MedianRatio | None) -> bool:
    """Whether a drift is seen in the rounds that could have made such a finding."""
    if not (drift.is_in_rounds and drift.is_seen):
        return False
    share = None if ratio is None else ratio.ratio
    return kind == "same" or share is None or abs(share - 1) <= SAFE * drift.size


def heed_in_verdict(verdict: BiasVerdict, drift: Drift | None) -> BiasVerdict:
    """The verdict as it may be said beside such a drift."""
    if drift is None or verdict.finding == "unknown":
        return verdict
    if not drift.is_in_rounds:
        return replace(verdict, certainty=f"{verdict.certainty} {ONE_AFTER_THE_OTHER}")
    if not drift.is_seen:
        return verdict
    if not withholds(drift, verdict.finding, verdict.ratio):
        return replace(
            verdict,
            certainty=f"{verdict.certainty} {as_sentence(drift.sentence)}; this is too small to explain it.",
        )
    sentence = (
        f"No verdict: {drift.sentence}. Let the DUT warm up, or find out what changes, and measure again."
    )
    return replace(verdict, finding="unknown", hashes_ports=None, sentence=sentence)


def heed_in_shape(shape: Shape | None, drift: Drift | None) -> Shape | None:
    """The shape as it may be claimed beside such a drift."""
    has_claim = shape is not None and (shape.rise_end is not None or shape.falls_above is not None)
    if shape is None or drift is None or not has_claim:
        return shape
    if not drift.is_in_rounds:
        return replace(shape, sentences=(*shape.sentences, ONE_AFTER_THE_OTHER))
    if not drift.is_seen or all(
        abs(test.change) > SAFE * drift.size for test in shape.tests if test.is_lower
    ):
        return shape
    sentence = f"No rise or fall is reported: {drift.sentence}."
    return replace(
        shape, rise_end=None, falls_above=None, fall_begin=None, sentences=(sentence, *shape.sentences[1:2])
    )


def _name(record: PointRecord, repetition: Repetition) -> str:
    return f"{record.point.key} {repetition.testbed}"


def _in_turns(points: Sequence[PointRecord]) -> list[tuple[str, int, str, Repetition]]:
    """Repetitions with a value in the order of measuring, behind when they began and the name of their point;
    none if all began at once, as in files that do not say when."""
    made = [
        (r.started_at, number, _name(record, r), r)
        for number, record in enumerate(points)
        for r in record.repetitions
        if r.finished_at is not None and r.value is not None and r.value > 0
    ]
    return sorted(made, key=lambda each: each[:3]) if len({each[0] for each in made}) > 1 else []


def _relative(made: Sequence[tuple[str, Repetition]]) -> list[_Value]:
    """Values in the order of measuring. A round ends when a point comes again after another one."""
    by_point: dict[str, list[float]] = {}
    for name, repetition in made:
        by_point.setdefault(name, []).append(math.log(repetition.value or 1.0))
    of_point = {name: median(values) for name, values in by_point.items()}
    found: list[_Value] = []
    number, seen, blocks = 1, set[str](), dict[str, int]()
    for name, group in groupby(made, key=lambda item: item[0]):
        if name in seen:
            number, seen = number + 1, set()
        seen.add(name)
        blocks[name] = blocks.get(name, 0) + 1
        found += [
            _Value(
                point=name,
                number=r.number,
                relative=math.log(r.value or 1.0) - of_point[name],
                round=number,
                block=blocks[name],
            )
            for _, r in group
        ]
    return found


def _whole_rounds(values: Sequence[_Value]) -> list[int]:
    """Numbers of the rounds, without a last one that has not come to all points of the one before: the level
    of a few points is not that of all."""
    points: dict[int, set[str]] = {}
    for value in values:
        points.setdefault(value.round, set()).add(value.point)
    numbers = sorted(points)
    if len(numbers) > 1 and not points[numbers[-1]] >= points[numbers[-2]]:
        numbers.pop()
    return numbers


def _between_blocks(values: Sequence[_Value]) -> float:
    """The largest difference between two blocks of a point, where blocks have values enough for a median."""
    found = 0.0
    for of_point in _by_point(values):
        blocks: dict[int, list[float]] = {}
        for value in of_point:
            blocks.setdefault(value.block, []).append(value.relative)
        medians = [median(block) for block in blocks.values() if len(block) >= LEAST_OF_BLOCK]
        found = max(found, max(medians) - min(medians)) if medians else found
    return found


def _trend_p_value(values: Sequence[_Value]) -> float:
    """Two-sided, of Kendall's S summed over points; its variance heeds equal values."""
    total, variance = 0, 0.0
    for of_point in _by_point(values):
        relative = [value.relative for value in of_point]
        total += sum((b > a) - (b < a) for a, b in combinations(relative, 2))
        n = len(relative)
        ties = [relative.count(value) for value in set(relative)]
        variance += (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    if variance == 0:
        return 1.0
    return math.erfc(max(0, abs(total) - 1) / math.sqrt(2 * variance))


def _alike_p_value(values: Sequence[_Value]) -> float:
    """The p value, from repetitions that were shuffled within their points: how often those of a round, or of
    a block, would be as alike."""
    columns: list[np.ndarray[Any, Any]] = []
    shuffled: list[np.ndarray[Any, Any]] = []
    draw = np.random.default_rng(1)
    for of_point in _by_point(values):
        relative = np.array([value.relative for value in of_point])
        order = relative.argsort(kind="stable")
        ranks = np.empty(len(relative))
        for value in np.unique(relative):
            ranks[relative == value] = np.flatnonzero(relative[order] == value).mean()
        ranks = (ranks - ranks.mean()) / len(ranks)
        columns.append(ranks[None, :])
        shuffled.append(draw.permuted(np.tile(ranks, (PERMUTATIONS, 1)), axis=1))
    table = np.concatenate([np.hstack(columns), np.hstack(shuffled)])
    whole = [value for of_point in _by_point(values) for value in of_point]
    kinds: list[Callable[[_Value], Any]] = [
        lambda value: value.round,
        lambda value: (value.point, value.block),
    ]
    found = []
    for kind in kinds:
        groups = [kind(value) for value in whole]
        names = sorted(set(groups))
        if len(names) == len(whole):
            continue  # single values have nothing to be alike to
        member = np.array([[group == name for name in names] for group in groups], dtype=float)
        score = ((table @ member) ** 2 / member.sum(axis=0)).sum(axis=1)
        found.append((1 + int((score[1:] >= score[0] - 1e-12).sum())) / (1 + PERMUTATIONS))
    return min(1.0, len(found) * min(found, default=1.0))


def _by_point(values: Sequence[_Value]) -> list[list[_Value]]:
    found: dict[str, list[_Value]] = {}
    for value in values:
        found.setdefault(value.point, []).append(value)
    return [of_point for of_point in found.values() if len(of_point) > 1]
