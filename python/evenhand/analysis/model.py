# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a series says, as frozen values. Nothing here measures, reads a file, or knows how it will
be shown.

N is always the number of addresses a side. `performance` means: of a figure where more is better the figure
itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.drift_model import Drift
from evenhand.analysis.medians import MedianRatio
from evenhand.analysis.testbeds_model import BedsVerdict
from evenhand.base.units import format_count
from evenhand.plan import ONE_EACH, Direction, SideCounts
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.statistics import Statistics
from evenhand.run.campaign_record import PointState, is_median_at_least
from evenhand.spec.point import HashType


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveKey:
    """What the points of a curve share; only the number of addresses varies."""

    suite: str
    procedure: str
    plan: str
    frame_size: int | str
    hash_type: HashType | None
    directions: tuple[Direction, ...]
    variant: int = 1
    """Counts the curves that are equal in all that, and differ in options of the plan or in the goal."""

    @property
    def title(self) -> str:
        """`direct: throughput, 64 octets, type1`."""
        size = f"{self.frame_size} octets" if isinstance(self.frame_size, int) else self.frame_size
        parts = [self.procedure, size, *([] if self.hash_type is None else [self.hash_type])]
        parts += [f"{self.directions[0]} only"] if len(self.directions) == 1 else []
        return f"{self.suite}: {', '.join(parts)}" + (f" ({self.variant})" if self.variant > 1 else "")

    def to_document(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "procedure": self.procedure,
            "plan": self.plan,
            "frame_size": self.frame_size,
            "hash_type": self.hash_type,
            "directions": list(self.directions),
            "variant": self.variant,
            "title": self.title,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One number of addresses, and what its repetitions found."""

    key: str
    """Of the point in the campaign."""
    hosts: SideCounts
    """Left, right; in each network, if there are several."""
    networks: SideCounts
    state: PointState
    reason: str | None
    """Why it has no number."""
    asked: int
    """Repetitions."""
    values: tuple[float, ...]
    """In the order of the repetitions."""
    statistics: Statistics | None
    """None without a value."""
    predicted: float | None
    """What the DUT's own configuration says, if that is known; no verdict uses it (SEED-07)."""
    lower_bounds: tuple[bool, ...] = ()
    """Which of the values are lower bounds: the highest load that was tried passed, or the tester could not
    keep a higher one. Empty: none."""
    at_tester_limit: int = 0
    """How many of them because of the tester."""
    uppers: tuple[float, ...] = ()
    """In the order of the values: the lowest load that failed, between which and the value the limit lies;
    infinite of a lower bound. Empty: the values are exact."""
    remarks: tuple[str, ...] = ()
    """Why it has fewer values than it should, if it has any, and whether its repetitions disagree."""

    @property
    def is_at_least(self) -> bool:
        """Whether the median is a lower bound."""
        return any(self.lower_bounds) and is_median_at_least(self.values, self.lower_bounds)

    @property
    def is_testers(self) -> bool:
        """Whether it is one because the tester could not keep a higher load."""
        return self.is_at_least and self.at_tester_limit > 0

    @property
    def at_maximum(self) -> int:
        """How many of the values are lower bounds."""
        return sum(self.lower_bounds)

    @property
    def addresses(self) -> int:
        """N: addresses a side; the larger, if the sides differ."""
        return max(self.hosts.times(self.networks))

    @property
    def is_single_pair(self) -> bool:
        return self.hosts == self.networks == ONE_EACH

    @property
    def label(self) -> str:
        """`16 x 16`."""
        left, right = (format_count(h * n) for h, n in zip(self.hosts, self.networks, strict=True))
        return f"{left} x {right}"

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "hosts": list(self.hosts),
            "networks": list(self.networks),
            "addresses": self.addresses,
            "state": str(self.state),
            "reason": self.reason,
            "asked_repetitions": self.asked,
            "values": list(self.values),
            "uppers": [upper if math.isfinite(upper) else None for upper in self.uppers],
            "at_maximum": self.at_maximum,
            "at_tester_limit": self.at_tester_limit,
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "predicted": self.predicted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTest:
    """One point held against the plateau."""

    addresses: int
    change: float
    """Of its median, relative to the plateau's level: -0.2 is a fifth lower."""
    p_value: float | None
    """That values of one distribution lie so, or more so (one-sided); None: not tested."""
    is_lower: bool
    """By more than the relevant effect, and by more than the noise of the repetitions if that is known."""

    def to_document(self) -> dict[str, Any]:
        return {
            "addresses": self.addresses,
            "change": self.change,
            "p_value": self.p_value,
            "is_lower": self.is_lower,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Rise, plateau and fall of a curve (SEED-66)."""

    rise_end: int | None
    """N of the first point of the plateau, "rises up to"; None: no rise was seen."""
    falls_above: int | None
    """N of the last point of the plateau, "falls above"; None: no fall was seen."""
    fall_begin: int | None
    """N of the first point that is lower; None likewise."""
    plateau: tuple[int, ...]
    """N of its points, at least one."""
    statistics: Statistics
    """Of all values on the plateau; the median is its level."""
    is_noise_known: bool
    """False: too few repetitions for the test; changes were told from the tolerance alone."""
    relevant: float
    """The smallest relative change that counts."""
    level: float
    """At which the test was made: most probability with which noise alone makes it claim a rise or a fall
    anywhere."""
    comparisons: int
    """By which the level was divided."""
    is_capped: bool
    """The median of a point of the plateau is a lower bound, so the level is one (`Pool.of` says why)."""
    tests: tuple[PointTest, ...]
    """Of the points outside the plateau."""
    method: str
    """The test by its name, in a sentence."""
    sentences: tuple[str, ...]
    """For people: rise, plateau, fall, what is in doubt."""

    @property
    def plateau_level(self) -> float:
        """In the unit of the figure."""
        return self.statistics.median

    @property
    def is_plateau_seen(self) -> bool:
        """False: only one point is as high as the highest."""
        return len(self.plateau) > 1

    def to_document(self) -> dict[str, Any]:
        return {
            "rise_end": self.rise_end,
            "falls_above": self.falls_above,
            "fall_begin": self.fall_begin,
            "plateau": list(self.plateau),
            "plateau_level": self.plateau_level,
            "plateau_spread": self.statistics.spread,
            "statistics": self.statistics.to_document(),
            "is_noise_known": self.is_noise_known,
            "relevant_change": self.relevant,
            "test_level": self.level,
            "comparisons": self.comparisons,
            "is_capped": self.is_capped,
            "tests": [test.to_document() for test in self.tests],
            "method": self.method,
            "sentences": list(self.sentences),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One figure over the number of addresses."""

    key: CurveKey
    figure: Figure
    points: tuple[CurvePoint, ...]
    """In ascending order of N."""
    shape: Shape | None
    """None: fewer than two points have a number, or less of the figure is better."""
    predicted_plateau: float | None
    """As `CurvePoint.predicted`: with an even load and a table that costs nothing."""
    degradations: tuple[Degradation, ...]
    """Against one address pair (R8219-17); none without that."""
    drift: Drift | None = None
    """Of the DUT, while these points were measured; None: it is not known when they were, or nothing is
    repeated."""

    @property
    def title(self) -> str:
        return self.key.title

    @property
    def measured(self) -> tuple[CurvePoint, ...]:
        """Those with a number."""
        return tuple(point for point in self.points if point.statistics is not None)

    def to_document(self) -> dict[str, Any]:
        return {
            **self.key.to_document(),
            "figure": {
                "name": self.figure.name,
                "unit": self.figure.unit,
                "is_higher_better": self.figure.is_higher_better,
            },
            "points": [point.to_document() for point in self.points],
            "shape": None if self.shape is None else self.shape.to_document(),
            "predicted_plateau": self.predicted_plateau,
            "drift": None if self.drift is None else self.drift.to_document(),
            "degradations": [degradation.to_document() for degradation in self.degradations],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """R8219-17: how much worse it is with n addresses a side than with one pair."""

    addresses: int
    """n."""
    percent: float
    """Xpd; negative: it is better."""

    def to_document(self) -> dict[str, Any]:
        return {"n": self.addresses, "xpd_percent": self.percent}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Two results that the draft expects to be about equal (SEED-70)."""

    name: str
    """`gateway / plateau`."""
    above: str
    """Of what; the title of its curve, and its addresses."""
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
    """Of the curve with many addresses."""
    frame_size: int | str
    hash_type: HashType | None
    """What the DUT was set to, as the campaign says; tells DUT settings apart, and nothing else."""
    finding: str
    """`hides`, `same`, `shows_more`, or `unknown`."""
    hashes_ports: bool | None
    """False: ports alone spread no load. None: these results cannot say."""
    one_pair: Statistics | None
    many: Statistics | None
    many_addresses: int | None
    ratio: MedianRatio | None
    """One pair over many addresses: what one pair shows."""
    p_value: float | None
    """Of the exact Mann-Whitney test, one-sided; None with too few repetitions."""
    sentence: str
    """Plain: a report's first line."""
    certainty: str
    """How sure it is, and by which statistic, in a sentence; empty where the verdict's own sentence says
    all."""
    predicted: str = ""
    """What the hash and the table of a DUT whose configuration is known make of these addresses; empty if it
    is not known."""

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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """What was published of a series."""

    name: str
    """`Case 1 of Figure 7`."""
    dut: str
    """System, IP version, cores."""
    ip_version: int
    rise_end: int
    falls_above: int | None

    def to_document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dut": self.dut,
            "ip_version": self.ip_version,
            "rise_end": self.rise_end,
            "falls_above": self.falls_above,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A series beside Figure 7 and beside what the DUT's configuration predicts (SEED-66)."""

    curve: CurveKey
    found_rise_end: int | None
    found_falls_above: int | None
    is_predicted: bool
    """Whether elements, hash and neighbour cost of the DUT are known, as those of a reference router are."""
    predicted_rise_end: int | None
    predicted_falls_above: int | None
    rows: tuple[PublishedRow, ...]
    """Of Figure 7 those of the same IP version; if the campaign says what was published of it, that alone."""
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
    """In the order of the campaign."""
    ratios: tuple[Ratio, ...]
    bias: tuple[BiasVerdict, ...]
    """One for each setting of the DUT, IP version and frame size; the first is for the report's first
    line."""
    published: tuple[PublishedComparison, ...]
    """For each direct series of throughput that has a shape."""
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
