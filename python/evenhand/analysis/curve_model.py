# SPDX-License-Identifier: Apache-2.0
"""Analysis: a figure over the number of addresses, as frozen values: its points, and its shape.

N is always the number of addresses a side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.condition_words import show_percent, show_probability
from evenhand.base.units import format_count
from evenhand.base.validation.document import Documented, at_key
from evenhand.plan import ONE_EACH, Direction, SideCounts
from evenhand.procedure.descriptor import Figure
from evenhand.procedure.statistics import Statistics
from evenhand.run.campaign_record import PointState, is_median_at_least
from evenhand.spec.request import HashType

DRIFT_LEVEL = 0.05
"""Most probability with which a DUT that does not drift seems to."""
RELEVANT_DRIFT = 0.025
"""A smaller drift withholds nothing: half of what counts as a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the DUT changed from round to round."""

    is_in_rounds: bool
    """Any two points were measured over times that overlap. False: a drift and an effect of the addresses
    look the same."""
    rounds: int
    change: float
    """Change from the first to the last round, relative: -0.03 is 3 percent lower."""
    range: float
    """Range between the highest and the lowest round, or block of a point, relative."""
    p_value: float | None
    """The lower of both tests', times their number; None: too few values."""

    @property
    def is_seen(self) -> bool:
        """It is more than noise, and large enough to matter."""
        return self.p_value is not None and self.p_value <= DRIFT_LEVEL and self.size >= RELEVANT_DRIFT

    @property
    def size(self) -> float:
        return max(abs(self.change), self.range)

    @property
    def sentence(self) -> str:
        """What was seen."""
        assert self.p_value is not None
        if abs(self.change) >= self.range / 2:
            way = "lower" if self.change < 0 else "higher"
            what = (
                f"became {show_percent(abs(self.change))} {way} from the first to the last of"
                f" {self.rounds} rounds"
            )
        else:
            what = f"changed by {show_percent(self.range)} between {self.rounds} rounds"
        return f"what the DUT shows {what}, independent of the addresses ({show_probability(self.p_value)})"

    def to_document(self) -> dict[str, Any]:
        return {
            "is_in_rounds": self.is_in_rounds,
            "rounds": self.rounds,
            "change": self.change,
            "range": self.range,
            "p_value": self.p_value,
            "level": DRIFT_LEVEL,
            "is_seen": self.is_seen,
        }


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
    """Key of the point in the campaign."""
    hosts: SideCounts
    """Left, right; in each network, if there are several."""
    networks: SideCounts
    state: PointState
    reason: str | None
    """Why it has no number."""
    asked: int
    """Repetitions."""
    values: tuple[float, ...]
    """Values in the order of the repetitions."""
    statistics: Statistics | None
    """None without a value."""
    predicted: float | None
    """What the DUT's own configuration says, if that is known; no verdict uses it (SEED-07)."""
    lower_bounds: tuple[bool, ...] = ()
    """Which of the values are lower bounds: the highest load that was tried passed, or the tester could not
    keep a higher one. Empty: none."""
    at_tester_ceiling: int = 0
    """How many of them because of the tester."""
    uppers: tuple[float, ...] = ()
    """Upper ends in the order of the values: the lowest load that failed, between which and the value the
    limit lies; infinite of a lower bound. Empty: the values are exact."""
    lowers: tuple[float, ...] = ()
    """Lower ends in the order of the values, where the limit may lie below the value. Empty: it does not."""
    routes: SideCounts | None = None
    """Prefixes of each side that are used, in a series over them."""
    remarks: tuple[str, ...] = ()
    """Why it has fewer values than it should, if it has any, and whether its repetitions disagree."""

    @property
    def is_at_least(self) -> bool:
        """Whether the median is a lower bound."""
        return any(self.lower_bounds) and is_median_at_least(self.values, self.lower_bounds)

    @property
    def is_testers(self) -> bool:
        """Whether it is one because the tester could not keep a higher load."""
        return self.is_at_least and self.at_tester_ceiling > 0

    @property
    def at_maximum(self) -> int:
        """How many of the values are lower bounds."""
        return sum(self.lower_bounds)

    @property
    def address_count(self) -> int:
        """N: addresses a side, or routes in a series over them; the larger, if the sides differ."""
        return max(self.routes) if self.routes is not None else max(self.hosts.times(self.networks))

    @property
    def is_one_pair(self) -> bool:
        return self.hosts == self.networks == ONE_EACH

    @property
    def is_single(self) -> bool:
        """See `Point.is_single`."""
        return self.is_one_pair or self.routes == ONE_EACH

    @property
    def label(self) -> str:
        """`16 x 16`, or `1 x 16 routes`."""
        if self.routes is not None:
            return f"{self.routes} routes"
        left, right = (format_count(h * n) for h, n in zip(self.hosts, self.networks, strict=True))
        return f"{left} x {right}"

    def to_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "hosts": list(self.hosts),
            "networks": list(self.networks),
            **({} if self.routes is None else {"routes": list(self.routes)}),
            "addresses": self.address_count,
            "state": str(self.state),
            "reason": self.reason,
            "asked_repetitions": self.asked,
            "values": list(self.values),
            "uppers": [upper if math.isfinite(upper) else None for upper in self.uppers],
            "at_maximum": self.at_maximum,
            "at_tester_ceiling": self.at_tester_ceiling,
            "statistics": None if self.statistics is None else self.statistics.to_document(),
            "predicted": self.predicted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTest(Documented):
    """One point held against the plateau."""

    address_count: int = at_key("addresses")
    change: float
    """Change of its median, relative to the plateau's level: -0.2 is a fifth lower."""
    p_value: float | None
    """Probability that values of one distribution lie so, or more so (one-sided); None: not tested."""
    is_lower: bool
    """Whether it is lower by more than the relevant effect, and by more than the noise of the repetitions if
    that is known."""


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
    """Statistics of all values on the plateau; the median is its level."""
    is_noise_known: bool
    """False: too few repetitions for the test; changes were judged by the tolerance alone."""
    relevant: float
    """The smallest relative change that counts."""
    level: float
    """Level at which the test was made: most probability with which noise alone makes it claim a rise or a
    fall anywhere."""
    comparisons: int
    """Number by which the level was divided."""
    is_capped: bool
    """The median of a point of the plateau is a lower bound, so the level is one (`Pool.of` says why)."""
    tests: tuple[PointTest, ...]
    """Tests of the points outside the plateau."""
    method: str
    """The test by its name, in a sentence."""
    sentences: tuple[str, ...]
    """Sentences for people: rise, plateau, fall, what is in doubt."""

    @property
    def plateau_level(self) -> float:
        """Level in the unit of the figure."""
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
class Degradation(Documented):
    """R8219-17: how much worse it is with n addresses a side than with one pair."""

    address_count: int = at_key("n")
    """n."""
    percent: float = at_key("xpd_percent")
    """Xpd; negative: it is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One figure over the number of addresses."""

    key: CurveKey
    figure: Figure
    points: tuple[CurvePoint, ...]
    """Points in ascending order of N."""
    shape: Shape | None
    """None: fewer than two points have a number, or less of the figure is better."""
    predicted_plateau: float | None
    """As `CurvePoint.predicted`: with an even load and a table that costs nothing."""
    degradations: tuple[Degradation, ...]
    """Against one address pair (R8219-17); none without that."""
    drift: Drift | None = None
    """Drift of the DUT while these points were measured; None: it is not known when they were, or nothing is
    repeated."""

    @property
    def title(self) -> str:
        return self.key.title

    @property
    def is_over_routes(self) -> bool:
        """Whether N counts routes instead of addresses."""
        return any(point.routes is not None for point in self.points)

    @property
    def measured(self) -> tuple[CurvePoint, ...]:
        """Those with a number."""
        return tuple(point for point in self.points if point.statistics is not None)

    def to_document(self) -> dict[str, Any]:
        return {
            **self.key.to_document(),
            "figure": self.figure.to_document(),
            "points": [point.to_document() for point in self.points],
            "shape": None if self.shape is None else self.shape.to_document(),
            "predicted_plateau": self.predicted_plateau,
            "drift": None if self.drift is None else self.drift.to_document(),
            "degradations": [degradation.to_document() for degradation in self.degradations],
        }
