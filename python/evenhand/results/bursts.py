# SPDX-License-Identifier: Apache-2.0
"""Results: what was found with bursts: the longest without loss (RFC 9004), and the smallest interval between
them (RFC 2544, 21)."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenhand.base.validation.document import at_key
from evenhand.results.throughput import SearchAsked, ThroughputFound


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFound:
    """The smallest interval between bursts of one size."""

    burst_frames: int = 0
    interval_s: float | None = None
    """From the beginning of a burst to the beginning of the next."""
    gap_s: float | None = None
    """From the end of a burst to the beginning of the next."""
    failed_interval_s: float | None = None
    mean_fps: float | None = at_key("mean_fps_per_direction", None)
    search: ThroughputFound = field(default_factory=ThroughputFound)


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstFound(IntervalFound):
    """What was found for each size; in the run file of a verb each is a result of its own."""

    outcome: str = ""
    intervals: tuple[IntervalFound, ...] = ()
    goal: SearchAsked | None = None

    @property
    def each(self) -> tuple[IntervalFound, ...]:
        return self.intervals or (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackAsked:
    """What was asked for (`BackToBackGoal`), as far as results are read by it."""

    rate_fps: float | None = at_key("rate_fps_per_direction", None)
    max_burst_s: float | None = None
    max_burst_frames: int | None = None
    step_frames: int | None = None
    repetitions: int = 0
    loss_verifications: int = 0
    throughput_fps: float | None = at_key("throughput_fps_per_direction", None)
    throughput_source: str | None = None
    actual_fps: float | None = at_key("actual_fps_per_direction", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestBurst:
    """One repetition."""

    outcome: str = ""
    is_at_least: bool | None = None
    longest_burst_frames: int | None = None
    shortest_failed_burst_frames: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackFound(LongestBurst):
    """What was found for one frame size; in the run file of a verb each repetition is a result of its own."""

    goal: BackToBackAsked | None = None
    values: tuple[float, ...] = ()
    """Frames of the longest burst, of each repetition that found one."""
    average_frames: float | None = None
    minimum_frames: float | None = None
    maximum_frames: float | None = None
    standard_deviation_frames: float | None = None
    implied_s: float | None = at_key("implied_buffer_time_s", None)
    corrected_s: float | None = at_key("corrected_buffer_time_s", None)
    actual_rate_s: float | None = at_key("actual_rate_buffer_time_s", None)
    throughput_fps: float | None = at_key("throughput_fps_per_direction", None)
    throughput: ThroughputFound | None = None
    """The search for it, if it was measured first."""
    is_near_maximum: bool = False
    longest_tried_s: float | None = at_key("longest_burst_tried_s", None)
    longest_tried_frames: int | None = at_key("longest_burst_tried_frames", None)
    late_frames: int = 0
    stopped_early: str | None = None
    repetitions: tuple[LongestBurst, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is not that of one repetition."""
        return self.goal is not None or self.outcome == "skipped"
