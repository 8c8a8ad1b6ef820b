# SPDX-License-Identifier: Apache-2.0
"""Results: latency (RFC 8219, 7.2; RFC 2544, 26.2) and packet delay variation (RFC 8219, 7.3): what a test of
delays is asked for, and what it found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.validation.document import at_key, beside
from evenhand.plan import Direction, SideName
from evenhand.results.goal import ProcedureGoal, check_above_zero, check_repetitions
from evenhand.trial import DelayWish, Deviation

COUNTED_S = 60.0
"""Shortest part of a trial whose delays count (RFC 8219, 7.2 and 7.3.1; RFC 2544, 26.2: the tag is sent after
60 of 120 seconds)."""
REPETITIONS = 20
"""R8219-10, R8219-12, R2544-24."""
MOST_TAGGED = 1_000_000
LEAST_FOR_WORST = 1000
"""Values from which on the 99.9th percentile is not their maximum."""


class DelayTest(StrEnum):
    """The test, which determines the figures."""

    LATENCY = "latency"
    """RFC 8219, 7.2: typical and worst-case latency of at least 500 tagged frames (R8219-07..10)."""
    LATENCY_RFC2544 = "latency-rfc2544"
    """RFC 2544, 26.2: the latency of one tagged frame; the average counts (R2544-24)."""
    PDV = "pdv"
    """RFC 8219, 7.3: delay variation over every frame (R8219-12, R8219-13)."""

    @property
    def procedure(self) -> str:
        """The procedure that it is a variant of."""
        return "latency" if self is DelayTest.LATENCY_RFC2544 else str(self)

    @property
    def requirement(self) -> str:
        """The id of the first requirement that describes it."""
        return _REQUIREMENT[self]

    @property
    def headline(self) -> str:
        return "Packet delay variation" if self is DelayTest.PDV else "Latency"


_DURATION_S = {DelayTest.LATENCY: 120.0, DelayTest.LATENCY_RFC2544: 120.0, DelayTest.PDV: 60.0}
_FROM_S = {DelayTest.LATENCY: 60.0, DelayTest.LATENCY_RFC2544: 60.0, DelayTest.PDV: 0.0}
_TAGGED = {DelayTest.LATENCY: 500, DelayTest.LATENCY_RFC2544: 1, DelayTest.PDV: 0}
_REQUIREMENT = {
    DelayTest.LATENCY: "R8219-07",
    DelayTest.LATENCY_RFC2544: "R2544-24",
    DelayTest.PDV: "R8219-12",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayGoal(ProcedureGoal):
    """Load, duration, and number of repetitions. None means the value of the test's RFC; less is reported as
    a deviation."""

    test: DelayTest
    rate_fps: float = at_key("rate_fps_per_direction")
    """Load per direction; the RFCs require the throughput for this frame size."""
    throughput_fps: float | None = at_key("throughput_fps_per_direction", None)
    """The throughput that was measured earlier, per direction; None if it is not known, which is a
    deviation."""
    is_throughput_at_least: bool = at_key(
        "is_throughput_at_least", False, only_if=lambda goal: goal.is_throughput_at_least
    )
    """That throughput is a lower bound, which is a deviation unless it is the line rate."""
    duration_s: float | None = at_key("duration_s", None, written="length_s")
    from_s: float | None = at_key("from_s", None, written="start_s")
    """Frames that are due earlier are excluded. None: as in the RFC, in proportion for a shorter trial."""
    tagged_frames: int | None = at_key("tagged_frames", None, written="tags")
    has_variation: bool = False
    """IPDV too (R8219-13)."""
    repetitions: int = REPETITIONS

    def check(self) -> None:
        check_above_zero(self.rate_fps, f"rate {self.rate_fps} fps", where="rate_fps")
        if self.throughput_fps is not None:
            what, next_step = f"throughput {self.throughput_fps:g} fps", "Omit it if it is not known."
            check_above_zero(self.throughput_fps, what, where="throughput_fps", next_step=next_step)
        check_repetitions(self.repetitions, REPETITIONS)
        what = f"duration {self.length_s} s"
        check_above_zero(self.length_s, what, where="duration_s", next_step="Write 120s.")
        if not 0 <= self.start_s < self.length_s:
            raise RequestError(
                f"delays count from {format_duration(self.start_s)} on, but frames are only"
                f" sent for {format_duration(self.length_s)}",
                code="procedure.delays-after-the-end",
                where="from_s",
                next_step="Count from an earlier time, or send for longer with duration_s.",
            )
        frames = math.floor(self.rate_fps * (self.length_s - self.start_s))
        if not int(self.test is not DelayTest.PDV) <= self.tags <= min(MOST_TAGGED, frames):
            raise RequestError(
                f"{format_count(self.tags)} tagged frames, but only {format_count(frames)} frames"
                f" are sent from {format_duration(self.start_s)} on",
                code="procedure.not-as-many-tags",
                where="tagged_frames",
                next_step=f"Tag 1 to {format_count(min(MOST_TAGGED, frames))} of them.",
            )

    @property
    def length_s(self) -> float:
        """Length of the sending phase."""
        return _DURATION_S[self.test] if self.duration_s is None else self.duration_s

    @property
    def is_full_length(self) -> bool:
        """Whether the trial is as long as the RFC requires."""
        return self.length_s >= _DURATION_S[self.test]

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase."""
        return self.length_s

    @property
    def start_s(self) -> float:
        """Time from which on delays count. In a shorter trial they count sooner, in proportion: after 1.5 s
        if it lasts 3 s instead of 120 s."""
        if self.from_s is not None:
            return self.from_s
        return _FROM_S[self.test] * min(1.0, self.length_s / _DURATION_S[self.test])

    @property
    def tags(self) -> int:
        return _TAGGED[self.test] if self.tagged_frames is None else self.tagged_frames

    @property
    def is_worst_case_maximum(self) -> bool | None:
        """Whether the 99.9th percentile is the highest of the tagged frames' delays, as with fewer than a
        thousand of them (RFC 2330, 11.3). None: this test has no worst-case latency."""
        return self.tags < LEAST_FOR_WORST if self.test is DelayTest.LATENCY else None

    @property
    def wish(self) -> DelayWish:
        """The part of the request to the engine."""
        return DelayWish(from_s=self.start_s, tagged_frames=self.tags, has_variation=self.has_variation)

    @property
    def deviations(self) -> list[Deviation]:
        """Where the goal asks for less than the RFC, and how far the rate is known to be the throughput."""
        requirement = self.test.requirement
        found: list[str] = []
        if self.throughput_fps is None:
            found.append(
                "the throughput for this frame size was not measured before; the rate was given by the user"
            )
        elif self.rate_fps != self.throughput_fps:
            side = "above" if self.rate_fps > self.throughput_fps else "below"
            found.append(
                f"the rate is {side} the throughput of {format_count(self.throughput_fps)} fps per direction"
            )
        if not self.is_full_length:
            found.append(
                f"sent for {format_duration(self.length_s)} instead of"
                f" {format_duration(_DURATION_S[self.test])}"
            )
        if self.start_s < _FROM_S[self.test]:
            found.append(
                f"tagged frames from {format_duration(self.start_s)} on instead of"
                f" {format_duration(_FROM_S[self.test])}"
            )
        if (counted_s := self.length_s - self.start_s) < COUNTED_S:
            found.append(
                f"frames of {format_duration(round(counted_s, 9))} count instead of frames of at"
                f" least {format_duration(COUNTED_S)}"
            )
        if self.tags < _TAGGED[self.test]:
            found.append(f"{self.tags} tagged frames instead of {_TAGGED[self.test]}")
        if self.repetitions < REPETITIONS:
            found.append(f"{self.repetitions} repetitions instead of {REPETITIONS}")
        return [Deviation(requirement=requirement, text=text) for text in found]


DelayName: TypeAlias = Literal[
    "typical", "worst_case", "latency", "pdv", "ipdv_min", "ipdv_median", "ipdv_max"
]
"""A figure that each trial gives of one direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianInterval:
    """Where the median of all possible repetitions lies."""

    low_ns: float | None = None
    high_ns: float | None = None
    level: float
    """Probability that it lies there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayFigure:
    """One figure over the repetitions, in ns. None is the delay of a lost frame, which never comes
    (R8219-16)."""

    count: int
    """Repetitions with a valid trial."""
    median_ns: float | None = None
    average_ns: float | None = None
    """Which R2544-24 requires."""
    minimum_ns: float | None = None
    maximum_ns: float | None = None
    percentile_1_ns: float | None = None
    percentile_99_ns: float | None = None
    median_interval: MedianInterval | None = None
    values: tuple[float | None, ...] = ()
    """One of each valid repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayFigures:
    """What was found in one direction."""

    lost_frames: int = 0
    """In all valid repetitions, among the frames whose delays count."""
    left_out_frames: int = 0
    """Frames that are excluded because the tester was late, in the repetition with the most of them."""
    pdv_resolution_ns: float | None = at_key(
        "pdv_resolution_ns", None, only_if=lambda found: "pdv" in found.of
    )
    """By how much a repetition's PDV may be too high; None if that is not known for any."""
    of: Mapping[DelayName, DelayFigure | None] = beside()
    """None: there is no valid repetition, or no pair of frames arrived for a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLoopDelays:
    """Delays of all frames over the tester's own loop, of one direction."""

    frames: int = 0
    lost_frames: int = 0
    min_ns: float | None = None
    median_ns: float | None = None
    percentile_99_9_ns: float | None = None
    pdv_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLoopFound:
    """What the tester itself adds to a delay at one load."""

    unknown: str | None = None
    """Why it is not known; None if it is."""
    duration_s: float | None = None
    directions: Mapping[Direction, OwnLoopDelays] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """Who stamps a frame's times."""

    taken_by: str = "software"
    hardware: Mapping[SideName, str] = field(default_factory=dict)
    """What each port offers: `none` or `unused`. Delays do not use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayFound:
    """What was found, as a run file has it in addition to the trials."""

    outcome: str
    figures: Mapping[Direction, DelayFigures]
    is_worst_case_maximum: bool | None = None
    """`DelayGoal.is_worst_case_maximum`."""
    own_loop: OwnLoopFound | None = None
    verdicts: Mapping[str, int] = field(default_factory=dict)
    goal: DelayGoal
    stamps: Stamps | None = at_key("stamps", None, only_if=lambda found: False)
    """The whole document of a result has them elsewhere, the run file of a verb nowhere."""

    @property
    def names(self) -> tuple[DelayName, ...]:
        """Figures that any direction has a place for."""
        return tuple(dict.fromkeys(name for figures in self.figures.values() for name in figures.of))

    @property
    def counts(self) -> list[int]:
        """Repetitions of each figure that has any."""
        return [each.count for figures in self.figures.values() for each in figures.of.values() if each]
