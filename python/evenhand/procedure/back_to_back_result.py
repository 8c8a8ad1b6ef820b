# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a back-to-back test is asked for, and what it found (RFC 9004)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration, format_rate
from evenhand.plan import whole_octets
from evenhand.procedure.descriptor import EXACT, KnownThroughput, LeftOpen, as_number
from evenhand.procedure.profile import (
    Profile,
    WorstTesterFigures,
    attempt_documents,
    burst_rate_without_line_rate,
    plain_deviations,
)
from evenhand.procedure.repetition import each_once
from evenhand.procedure.statistics import Statistics
from evenhand.procedure.throughput import Throughput
from evenhand.results.bursts import BackToBackFound
from evenhand.results.goal import ProcedureGoal, check_above_zero, check_repetitions
from evenhand.search import FULL_LENGTH_S, LengthBracket, Outcome, ThroughputGoal
from evenhand.trial import Deviation, TrialResult, Verdict

REPETITIONS = 50
"""R9004-06."""
LONGEST_BURST_S = 30.0
"""R9004-04."""
NEAR_MAXIMUM = 0.95
"""A result at or above this share of the longest burst that is tried may be the search's limit, not the DUT's
(R9004-04)."""
RAISE = 4.0
"""Factor by which the longest burst is raised after such a result, up to LONGEST_BURST_S."""
RESIDUAL_S = 2.0
"""R9004-03."""


def is_near(frames: int, max_frames: int) -> bool:
    """Whether so long a burst may be the search's limit and not the DUT's (R9004-04)."""
    return frames >= NEAR_MAXIMUM * max_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackGoal(ProcedureGoal):
    """Longest burst, precision of the search, and number of repetitions."""

    rate_fps: float = math.inf
    """Rate within the burst, per direction; UP_TO_LINE_RATE: the maximum theoretical frame rate. Less is a
    deviation."""
    max_burst_s: float = 2.0
    """Longest burst that is tried at first; 30 s at most. If the result is near it, longer bursts are tried,
    up to 30 s."""
    step_frames: int = 1
    """The search ends when its bounds are no further apart."""
    repetitions: int = REPETITIONS
    loss_verifications: int = 0
    """How often a burst that lost frames is sent again before the loss counts (ETSI TST009, 12.3)."""
    throughput_fps: float | None = None
    """Known throughput per direction; None: it is measured first."""
    throughput_source: str | None = None
    """Where it was measured under the same conditions; None: the user stated it, which is a deviation."""
    is_throughput_at_least: bool = False
    """It is a lower bound, which would make the corrected buffer time an upper one: nothing is measured with
    it, unless it is the rate of the bursts."""
    throughput_goal: ThroughputGoal | None = None
    """Goal of the search for it. Default: a `ThroughputGoal`, up to the rate of the bursts."""
    actual_fps: float | None = None
    """Another rate for which the buffer time is reported."""

    def check(self) -> None:
        check_above_zero(self.rate_fps, f"rate {self.rate_fps} fps", where="rate_fps")
        if not 0 < self.max_burst_s <= LONGEST_BURST_S:
            raise RequestError(
                f"bursts of up to {self.max_burst_s:g} s: must be greater than 0 s and at"
                f" most {LONGEST_BURST_S:g} s",
                code="procedure.out-of-range",
                where="max_burst_s",
                next_step=f"Write 2s, or at most {LONGEST_BURST_S:g}s.",
            )
        if math.isfinite(self.rate_fps) and self.max_frames < 1:
            raise RequestError(
                f"a burst of {format_duration(self.max_burst_s)} at {format_rate(self.rate_fps)}"
                " is too short for a single frame",
                code="procedure.burst-too-short",
                where="max_burst_s",
                next_step="Allow longer bursts.",
            )
        if self.step_frames < 1:
            raise RequestError(
                f"a step of {self.step_frames} frames: must be at least 1",
                code="procedure.out-of-range",
                where="step_frames",
                next_step="Write 1.",
            )
        check_repetitions(self.repetitions, REPETITIONS)
        if self.loss_verifications < 0:
            raise RequestError(
                f"{self.loss_verifications} loss verifications: must be at least 0",
                code="procedure.out-of-range",
                where="loss_verifications",
            )
        for rate_fps, where in ((self.throughput_fps, "throughput_fps"), (self.actual_fps, "actual_fps")):
            if rate_fps is not None:
                check_above_zero(rate_fps, f"{rate_fps} fps", where=where)

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase: that of the throughput search if it comes first. Later bursts may be
        longer than the first ones."""
        if self.throughput_fps is not None:
            return self.max_burst_s
        search_s = FULL_LENGTH_S if self.throughput_goal is None else self.throughput_goal.longest_trial_s
        return max(self.max_burst_s, search_s)

    @property
    def max_frames(self) -> int:
        """Frames of the longest burst that is tried at first; the rate must be known."""
        return self.frames_in(self.max_burst_s)

    def frames_in(self, burst_s: float) -> int:
        """Frames of a burst of this duration; the rate must be known."""
        return math.floor(burst_s * self.rate_fps + 1e-6)

    def after(self, known: KnownThroughput) -> BackToBackGoal:
        """The same with a throughput that need not be measured."""
        return replace(
            self,
            throughput_fps=known.fps,
            throughput_source=known.source,
            is_throughput_at_least=known.is_at_least,
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "rate_fps_per_direction": self.rate_fps,
            "max_burst_s": self.max_burst_s,
            "max_burst_frames": self.max_frames,
            "step_frames": self.step_frames,
            "repetitions": self.repetitions,
            "loss_verifications": self.loss_verifications,
            "throughput_fps_per_direction": self.throughput_fps,
            "throughput_source": self.throughput_source,
            **({"is_throughput_at_least": True} if self.is_throughput_at_least else {}),
            "actual_fps_per_direction": self.actual_fps,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstSearch:
    """One repetition: a whole search for the longest burst."""

    bracket: LengthBracket
    trials: tuple[TrialResult, ...]
    attempts: tuple[int, ...]
    """Number of each trial's attempt: 1, or more after INVALID trials."""
    longest_s: float
    """Length up to which bursts were tried, in s: that of the goal, or the length to which it was raised."""
    max_frames: int
    """Frames of the longest burst."""
    is_held_back: bool = False
    """Whether the result is near the longest burst, and the tester could not offer longer ones."""

    @property
    def frames(self) -> int | None:
        """The longest burst without loss, in frames; None if the tester could not decide it."""
        return self.bracket.lower if self.bracket.is_complete else None

    @property
    def outcome(self) -> str:
        """`found`, `at_maximum`, `tester_ceiling` or `stopped`."""
        if any(trial.was_stopped for trial in self.trials):
            return "stopped"
        if self.frames is None:
            return "tester_ceiling"
        return "at_maximum" if self.bracket.upper is None else "found"

    @property
    def is_at_least(self) -> bool:
        """Whether the burst is a lower bound: the longest that was tried passed."""
        return self.outcome == "at_maximum"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBack:
    """Result for one frame size (R9004-07 .. R9004-11)."""

    profile: Profile
    goal: BackToBackGoal
    """The goal, with the rate of the bursts."""
    throughput: Throughput | None
    """The throughput that was measured first; None if it was known already."""
    skipped: str | None
    """Why no burst was sent; None if bursts were (R9004-02)."""
    repetitions: tuple[BurstSearch, ...]
    residual_s: float = RESIDUAL_S
    """Wait after a burst; no shorter than the burst itself."""

    @property
    def throughput_fps(self) -> float | None:
        """Per direction; None if none was found."""
        return self.goal.throughput_fps if self.throughput is None else self.throughput.throughput_fps

    @property
    def values(self) -> tuple[int, ...]:
        """Frames of the longest burst, for each repetition that found one."""
        return tuple(search.frames for search in self.repetitions if search.frames is not None)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the values, in frames."""
        return Statistics.of(self.values)

    @property
    def average_frames(self) -> float | None:
        """The benchmark (R9004-07)."""
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def standard_deviation_frames(self) -> float | None:
        """Standard deviation of the sample, in frames; None with fewer than two values."""
        return sample_deviation(self.values)

    @property
    def implied_buffer_s(self) -> float | None:
        """Duration of the average burst (R9004-08)."""
        return None if self.average_frames is None else self.average_frames / self.goal.rate_fps

    @property
    def corrected_buffer_s(self) -> float | None:
        """The implied time, less the time for the frames that were forwarded meanwhile (R9004-09)."""
        return corrected_s(self.implied_buffer_s, self.throughput_fps, self.goal.rate_fps)

    @property
    def actual_buffer_s(self) -> float | None:
        """The corrected time at the goal's other rate: frames in the buffer, divided by that rate
        (R9004-09)."""
        return at_rate_s(self.corrected_buffer_s, self.goal.rate_fps, self.goal.actual_fps)

    @property
    def is_near_maximum(self) -> bool:
        """Whether a burst was so long that it may have reached the limit of the search (R9004-04)."""
        return any(
            search.frames is not None and is_near(search.frames, search.max_frames)
            for search in self.repetitions
        )

    @property
    def is_at_least(self) -> bool:
        """Whether average, minimum and maximum, and the buffer times, are lower bounds: the longest burst
        that was tried passed."""
        return any(search.is_at_least for search in self.repetitions)

    @property
    def longest_s(self) -> float:
        """Length up to which bursts were tried: that of the goal, or the length to which it was raised after
        a result near it (R9004-04)."""
        return max((search.longest_s for search in self.repetitions), default=self.goal.max_burst_s)

    @property
    def late_frames(self) -> int:
        """Frames that arrived after the residual wait, in all valid trials; with a longer wait they would not
        be lost (R9004-03)."""
        return sum(
            direction.late_frames
            for trial in self.trials
            if trial.is_valid
            for direction in trial.directions.values()
        )

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """Bursts of all repetitions, in order."""
        return tuple(trial for search in self.repetitions for trial in search.trials)

    @property
    def outcome(self) -> str:
        """`measured`; `skipped`; `tester_ceiling` if a repetition could not be decided; or `stopped`."""
        if self.skipped is not None:
            return "skipped"
        outcomes = {search.outcome for search in self.repetitions}
        return next((outcome for outcome in ("stopped", "tester_ceiling") if outcome in outcomes), "measured")

    @property
    def stopped_early(self) -> str | None:
        """Why there are fewer repetitions than requested; None if there are not."""
        if self.skipped is not None:
            return self.skipped
        if len(self.repetitions) == self.goal.repetitions and self.outcome == "measured":
            return None
        why = (
            "it was stopped"
            if self.outcome == "stopped"
            else "the tester itself did not offer the last burst, so it says nothing about the DUT"
        )
        return f"{len(self.values)} of {self.goal.repetitions} repetitions: {why}"

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = [] if self.throughput is None else list(self.throughput.deviations)
        if self.skipped is None:
            found += [*plain_deviations(self.trials, self.profile), *self._own_deviations()]
        each = {(deviation.requirement, deviation.text): deviation for deviation in found}
        return sorted(each.values(), key=lambda deviation: deviation.requirement)

    def _own_deviations(self) -> list[Deviation]:
        goal, profile = self.goal, self.profile
        found = []
        if self.throughput is None and goal.throughput_source is None:
            text = (
                f"the throughput of {format_count(goal.throughput_fps or 0)} fps per direction"
                " was given by the user and not measured first"
            )
            found.append(("R9004-01", text))
        if profile.theoretical_fps is None:
            found.append(("R9004-01", burst_rate_without_line_rate(profile)))
        elif goal.rate_fps < profile.theoretical_fps:
            found.append(
                (
                    "R9004-03",
                    f"frames of a burst follow at {format_count(goal.rate_fps)} fps, not at minimum gap",
                )
            )
        if self.residual_s < RESIDUAL_S:
            found.append(
                (
                    "R9004-03",
                    f"waited {format_duration(self.residual_s)} after a burst instead of"
                    f" {format_duration(RESIDUAL_S)}",
                )
            )
        if self.is_near_maximum:
            why = f"bursts longer than {format_duration(LONGEST_BURST_S)} are not tried"
            if any(search.is_held_back for search in self.repetitions):
                why = "the tester could not offer longer bursts"
            found.append(
                (
                    "R9004-04",
                    (
                        "a result was close to the longest burst of"
                        f" {format_duration(self.longest_s)}, and {why}"
                    ),
                )
            )
        if goal.repetitions < REPETITIONS:
            found.append(("R9004-06", f"{goal.repetitions} repetitions instead of {REPETITIONS}"))
        if 6 in profile.plan.versions:
            found.append(
                (
                    "R5180-17",
                    "RFC 5180 omits back-to-back for IPv6; RFC 8219 includes it, and RFC 9004 defines it",
                )
            )
        return [Deviation(requirement=requirement, text=text) for requirement, text in found]

    def to_document(self) -> dict[str, Any]:
        """The whole result: one row of what `evenhand back-to-back --json` writes."""
        return {
            "frame_size": whole_octets(self.profile.frame_size),
            "asked_repetitions": self.goal.repetitions,
            "stopped_early": self.stopped_early,
            **self.summary(),
            "throughput": None if self.throughput is None else self.throughput.to_document(),
            "tester": WorstTesterFigures.of(self.trials).to_document(),
            "repetitions": [
                {
                    **self.profile.to_document(),
                    "outcome": search.outcome,
                    "longest_burst_frames": search.frames,
                    "shortest_failed_burst_frames": search.bracket.upper,
                    "longest_burst_tried_frames": search.max_frames,
                    "longest_burst_tried_s": search.longest_s,
                    "is_at_least": search.is_at_least,
                    "trials": attempt_documents(
                        zip(search.attempts, search.trials, strict=True), "burst", is_full_length=False
                    ),
                }
                for search in self.repetitions
            ],
        }

    def summary(self) -> dict[str, Any]:
        """The figures of R9004-11, without trials."""
        statistics = self.statistics
        return {
            "outcome": self.outcome,
            "goal": self.goal.to_document(),
            "throughput_fps_per_direction": self.throughput_fps,
            "average_frames": self.average_frames,
            "minimum_frames": None if statistics is None else statistics.minimum,
            "maximum_frames": None if statistics is None else statistics.maximum,
            "standard_deviation_frames": self.standard_deviation_frames,
            "values": list(self.values),
            "statistics": None if statistics is None else statistics.to_document(),
            "implied_buffer_time_s": self.implied_buffer_s,
            "corrected_buffer_time_s": self.corrected_buffer_s,
            "actual_rate_buffer_time_s": self.actual_buffer_s,
            "is_near_maximum": self.is_near_maximum,
            "is_at_least": self.is_at_least,
            "longest_burst_tried_s": self.longest_s,
            "longest_burst_tried_frames": self.goal.frames_in(self.longest_s),
            "late_frames": self.late_frames,
            "verdicts": {
                str(verdict): sum(trial.verdict is verdict for trial in self.trials) for verdict in Verdict
            },
        }


def sample_deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of the sample; None with fewer than two values."""
    if len(values) < 2:
        return None
    average = sum(values) / len(values)
    return math.sqrt(sum((value - average) ** 2 for value in values) / (len(values) - 1))


def corrected_s(implied_s: float | None, throughput_fps: float | None, rate_fps: float) -> float | None:
    """An implied buffer time less what was forwarded meanwhile (R9004-09); None if one of them is not
    known."""
    if implied_s is None or throughput_fps is None:
        return None
    return implied_s * (1 - throughput_fps / rate_fps)


def at_rate_s(corrected: float | None, rate_fps: float, actual_fps: float | None) -> float | None:
    """A corrected buffer time by another rate than that of the bursts (R9004-09)."""
    return None if corrected is None or actual_fps is None else corrected * rate_fps / actual_fps


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackTable:
    """Back-to-back frames by frame size (R9004-11)."""

    rows: tuple[BackToBack, ...]

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of all sizes, each once."""
        return each_once([deviation for row in self.rows for deviation in row.deviations], len(self.rows))

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand back-to-back --json` writes it."""
        return {
            "rows": [row.to_document() for row in self.rows],
            "deviations": [deviation.to_document() for deviation in self.deviations],
        }


def value_of(found: BackToBackFound) -> float | None:
    """The average; of one repetition, its longest burst."""
    return as_number(found.longest_burst_frames if found.average_frames is None else found.average_frames)


def left_open(found: BackToBackFound) -> LeftOpen:
    """The average of the shortest bursts that failed, where each repetition has one."""
    failed = [each.shortest_failed_burst_frames for each in found.repetitions]
    known = [frames for frames in failed if frames is not None]
    return LeftOpen(high=mean(known)) if known and len(known) == len(failed) else EXACT


def why_skipped(
    throughput: Throughput | None, throughput_fps: float | None, goal: BackToBackGoal
) -> str | None:
    """Why no burst is sent; None: they are."""
    if throughput_fps is None:
        outcome = "" if throughput is None else f" ({str(throughput.outcome).replace('_', ' ')})"
        return f"no throughput was found{outcome}, so bursts cannot be corrected by it"
    if throughput_fps >= goal.rate_fps or (
        throughput is not None
        and (throughput.outcome is Outcome.AT_OR_ABOVE_MAXIMUM or throughput.search.is_ceiling_reached)
    ):
        return (
            "the throughput equals the maximum rate, so a burst at that rate cannot fill the buffer; not"
            " tested (RFC 9004, 6.1)"
        )
    if throughput is None and goal.is_throughput_at_least:
        return (
            f"the throughput of {format_count(throughput_fps)} fps per direction is a lower bound, so bursts"
            " cannot be corrected by it"
        )
    return None
