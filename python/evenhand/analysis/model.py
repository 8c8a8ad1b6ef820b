# SPDX-License-Identifier: Apache-2.0
"""Analysis: what the series of a campaign say together, as frozen values. Nothing here measures, reads a
file, or knows how it will be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.analysis.curve_model import Curve, CurveKey
from evenhand.analysis.medians import MedianRatio
from evenhand.base.validation.document import Documented, at_key
from evenhand.procedure.statistics import Statistics
from evenhand.spec.request import HashType


@dataclass(frozen=True, slots=True, kw_only=True)
class BedDifference(Documented):
    """One point on two testbeds."""

    key: str = at_key("point")
    """Key of the point."""
    testbeds: tuple[str, str]
    medians: tuple[float, float]
    """Medians in the unit of the procedure's figure."""
    change: float | None
    """Change from the first to the second, as a share of it; None if that is 0."""
    p_value: float | None
    """Two-sided; None: too few repetitions for a test."""
    is_different: bool
    """Whether they differ by more than their noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedsVerdict(Documented):
    """Whether the testbeds of a campaign agree."""

    testbeds: tuple[str, ...]
    """Testbeds that have a point in common with another one."""
    tests: tuple[BedDifference, ...]
    """Each pair at each point."""
    sentences: tuple[str, ...]
    """Sentences for people: which disagree, and where."""
    method: str

    @property
    def different(self) -> tuple[BedDifference, ...]:
        """Those that disagree."""
        return tuple(test for test in self.tests if test.is_different)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Two results that the draft expects to be about equal (SEED-70)."""

    name: str
    """`gateway / plateau`."""
    above: str
    """What is divided; the title of its curve, and its addresses."""
    below: str
    ratio: MedianRatio
    is_flagged: bool
    """It is more than 5 percent from 1."""
    sentence: str

    def to_document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "above": self.above,
            "below": self.below,
            **self.ratio.to_document(),
            "is_flagged": self.is_flagged,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasVerdict:
    """What one address pair shows of this DUT, from results alone (SEED-07)."""

    plan: str
    """Plan of the curve with many addresses."""
    frame_size: int | str
    hash_type: HashType | None
    """What the DUT was set to, as the campaign says; distinguishes DUT settings, and is used for nothing
    else."""
    finding: str
    """`hides`, `same`, `shows_more`, `not_lower` (the same or more), `not_much_lower` (by a quarter at most,
    if at all), or `unknown`."""
    hashes_ports: bool | None
    """False: ports alone spread no load. None: these results cannot say."""
    one_pair: Statistics | None
    many: Statistics | None
    many_addresses: int | None
    ratio: MedianRatio | None
    """One pair over many addresses: what one pair shows."""
    p_value: float | None
    """The p value of the exact Mann-Whitney test, one-sided; None with too few repetitions."""
    sentence: str
    """Plain: a report's first line."""
    certainty: str
    """How sure it is, and by which statistic, in a sentence; empty where the verdict's own sentence says
    all."""
    predicted: str = ""
    """What the hash and the table of a DUT whose configuration is known make of these addresses; empty if it
    is not known."""
    more_repetitions: int | None = None
    """For an unknown finding, `not_lower` or `not_much_lower`, how many repetitions of each point would
    decide, about, beyond those there are; None if no number of them would."""

    @property
    def hidden(self) -> float | None:
        """The share of the DUT's performance that one pair hides; negative if it shows more."""
        return None if self.ratio is None or self.ratio.ratio is None else 1 - self.ratio.ratio

    def to_document(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "frame_size": self.frame_size,
            "hash_type": self.hash_type,
            "finding": self.finding,
            "hashes_ports": self.hashes_ports,
            "hidden_share": self.hidden,
            "one_pair": None if self.one_pair is None else self.one_pair.to_document(),
            "many": None if self.many is None else self.many.to_document(),
            "many_addresses": self.many_addresses,
            "ratio": None if self.ratio is None else self.ratio.to_document(),
            "p_value": self.p_value,
            "sentence": self.sentence,
            "certainty": self.certainty,
            "predicted": self.predicted,
            "more_repetitions": self.more_repetitions,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow(Documented):
    """What was published of a series."""

    name: str
    """`Case 1 of Figure 7`."""
    dut: str
    """System, IP version, cores."""
    ip_version: int
    rise_end: int
    falls_above: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A series next to Figure 7 and next to what the DUT's configuration predicts (SEED-66)."""

    curve: CurveKey
    found_rise_end: int | None
    found_falls_above: int | None
    is_predicted: bool
    """Whether elements, hash and neighbour cost of the DUT are known, as those of a reference router are."""
    predicted_rise_end: int | None
    predicted_falls_above: int | None
    rows: tuple[PublishedRow, ...]
    """Rows of Figure 7 for the same IP version; if the campaign says what was published of it, that alone."""
    sentences: tuple[str, ...]
    """Where they differ, and why."""

    def to_document(self) -> dict[str, Any]:
        predicted = (
            {"rise_end": self.predicted_rise_end, "falls_above": self.predicted_falls_above}
            if self.is_predicted
            else None
        )
        return {
            "curve": self.curve.to_document(),
            "found": {"rise_end": self.found_rise_end, "falls_above": self.found_falls_above},
            "predicted": predicted,
            "published": [row.to_document() for row in self.rows],
            "sentences": list(self.sentences),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All that is said of a campaign."""

    curves: tuple[Curve, ...]
    """Curves in the order of the campaign."""
    ratios: tuple[Ratio, ...]
    bias: tuple[BiasVerdict, ...]
    """One for each setting of the DUT, IP version and frame size; the first is for the report's first
    line."""
    published: tuple[PublishedComparison, ...]
    """A comparison for each direct series of throughput that has a shape."""
    warnings: tuple[str, ...]
    """Too few repetitions, points without a number, what could not be said."""
    testbeds: BedsVerdict | None = None
    """Whether they agree; None: no point was measured by more than one."""

    @property
    def verdict(self) -> str:
        """The sentence for a report's first line."""
        return (
            self.bias[0].sentence
            if self.bias
            else "No verdict yet: results with one address pair and with many are needed."
        )

    def curve(self, key: CurveKey) -> Curve:
        return next(curve for curve in self.curves if curve.key == key)

    def to_document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "curves": [curve.to_document() for curve in self.curves],
            "ratios": [ratio.to_document() for ratio in self.ratios],
            "bias": [verdict.to_document() for verdict in self.bias],
            "published": [comparison.to_document() for comparison in self.published],
            "warnings": list(self.warnings),
            "testbeds": None if self.testbeds is None else self.testbeds.to_document(),
        }
