# SPDX-License-Identifier: Apache-2.0
"""Station 8: what a throughput search is asked for, what it reports on the way, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from evenhand.base.errors import RequestError
from evenhand.base.units import format_duration, format_rate
from evenhand.base.validation.typed_fields import check_types
from evenhand.search.search_trial import (
    DirectionLoss,
    Purpose,
    SearchTrial,
    Uncharged,
    losses_document,
    losses_in,
    uncharged_attempts,
)
from evenhand.trial import TrialResult, Verdict

FULL_LENGTH_S = 60.0
"""R2544-20."""
DEFAULT_INVALID_RETRIES = 2
DEFAULT_PATIENCE = 8


def check_loads(max_fps: float, min_fps: float | None) -> None:
    """RequestError unless a search can go from the one to the other."""
    if not max_fps > 0:
        raise RequestError(
            f"maximum rate {max_fps} fps: must be greater than 0",
            code="search.out-of-range",
            where="max_fps",
            next_step="Use, for example, 1Mfps.",
        )
    if min_fps is not None and not 0 < min_fps <= max_fps:
        raise RequestError(
            f"minimum rate {format_rate(min_fps)}: must be greater than 0 and at most the"
            f" maximum {format_rate(max_fps)}",
            code="search.out-of-range",
            where="min_fps",
            next_step="Use a rate below the maximum, or omit it.",
        )


def check_retries(invalid_retries: int, patience: int) -> None:
    """RequestError for fewer than none."""
    for retries, where in ((invalid_retries, "invalid_retries"), (patience, "patience")):
        if retries < 0:
            raise RequestError(
                f"{retries} repetitions: must be at least 0",
                code="search.out-of-range",
                where=where,
                next_step="Use 0 for none.",
            )


class Outcome(StrEnum):
    """How a search ended."""

    FOUND = "found"
    AT_OR_ABOVE_MAXIMUM = "at_or_above_maximum"
    """The maximum itself passed: there is no upper bound (MLR-10)."""
    BELOW_MINIMUM = "below_minimum"
    TESTER_CEILING = "tester_ceiling"
    """A load stayed INVALID, or the maximum was the tester's own ceiling and passed: the tester ended the
    search, not the DUT. The highest load that a full-length trial has confirmed is a lower bound."""
    STOPPED = "stopped"


def outcome_at_maximum(*, is_max_ceiling: bool) -> Outcome:
    """Outcome of a search whose maximum passed."""
    return Outcome.TESTER_CEILING if is_max_ceiling else Outcome.AT_OR_ABOVE_MAXIMUM


def is_outcome_at_least(outcome: str) -> bool:
    """Whether a load that passed in a search that ended so is a lower bound."""
    return outcome in (Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.TESTER_CEILING)


def found_to(
    outcome: Outcome, lower_fps: float | None, upper_fps: float | None, wanted: float
) -> float | None:
    """How far the bounds of a result that was found are apart, as a share of the upper one; None if it is no
    more than wanted."""
    if outcome is not Outcome.FOUND or lower_fps is None or upper_fps is None:
        return None
    apart_fps = upper_fps - lower_fps
    return apart_fps / upper_fps if apart_fps > wanted * upper_fps else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputGoal:
    """Where to search, how long the trials are, and when the search may stop. Loads are per direction."""

    search: ClassVar[str] = "binary"
    """The search that this goal is for, as `--search` names it."""
    max_fps: float
    """Highest load that is tried: the line rate, or the user's maximum."""
    is_max_ceiling: bool = False
    """The maximum is the tester's own ceiling: if it passes, the tester ended the search."""
    min_fps: float | None = None
    """Lowest load that is tried; default a thousandth of the maximum, and a frame in the shortest trial
    (MLR-12)."""
    precision: float = 0.005
    """The search stops when the bracket is no wider than this share of its upper bound; 0 < x < 1."""
    duration_s: float = 5.0
    """Length of the trials of the search."""
    final_duration_s: float = FULL_LENGTH_S
    """Length of the trial that confirms the result (R2544-20)."""
    loss_ratio: float = 0.0
    """Largest loss ratio that passes; the measurer judges by the same. Named in the result if it is not 0."""
    loss_verifications: int = 0
    """How often a trial with too much loss is repeated before the loss counts; it passes if one repetition
    does (ETSI TST009 12.3, binary search with loss verification). 0 is RFC 2544. Named in the result if it is
    not 0."""
    plain_loss_ratio: float = 1.0
    """A loss above this counts at once, regardless of `loss_verifications`: an absence of a CPU does not
    explain it."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    """How often an INVALID trial is repeated before its load is given up, if the tester did not offer the
    load."""
    patience: int = DEFAULT_PATIENCE
    """How often an INVALID trial is repeated if the load was offered, but the host disturbed the trial for a
    moment, or if the trial confirms the result: that trial is longer, so it is disturbed more easily, and
    without it the whole search is lost. `invalid_retries` and `patience` are named in the result if they are
    not the defaults."""
    known_fps: float | None = None
    """The result of an earlier search, for this or a neighbouring point. The search begins there, with a
    full-length trial, instead of at the maximum; both bounds are proven again in any case."""
    is_guided: bool = False
    """Begin near the limit that the forwarding rate of the first lossy trial suggests. Trials are the same,
    only fewer."""
    stops_early: bool = True
    """Whether a trial of the search may end as soon as more frames were lost than the whole trial may lose.
    If such a trial leaves a doubt, the load that bounds the result is tried once more to the end."""
    max_trials: int = 200
    """Ends a search that would not end otherwise, because the device behaves inconsistently."""

    def __post_init__(self) -> None:
        check_types(self)
        check_loads(self.max_fps, self.min_fps)
        if not 0 < self.precision < 1:
            raise RequestError(
                f"precision {self.precision}: must be between 0 and 1",
                code="search.out-of-range",
                where="precision",
                next_step="Use 0.5%.",
            )
        if not self.duration_s > 0:
            raise RequestError(
                f"duration {self.duration_s} s: must be greater than 0",
                code="search.out-of-range",
                where="duration_s",
                next_step="Use, for example, 5s.",
            )
        if self.final_duration_s < self.duration_s:
            raise RequestError(
                f"the final trial of {format_duration(self.final_duration_s)} is shorter than the trials of"
                " the search, "
                f"{format_duration(self.duration_s)}",
                code="search.durations-contradict",
                where="final_duration_s",
                next_step="Make the final trial at least as long.",
            )
        if not 0 <= self.loss_ratio < 1:
            raise RequestError(
                f"loss ratio {self.loss_ratio}: must be at least 0 and less than 1",
                code="search.out-of-range",
                where="loss_ratio",
                next_step="Use 0.",
            )
        if self.loss_verifications < 0:
            raise RequestError(
                f"{self.loss_verifications} loss verifications: must be at least 0",
                code="search.out-of-range",
                where="loss_verifications",
                next_step="Use 0 for none.",
            )
        check_retries(self.invalid_retries, self.patience)
        if self.known_fps is not None and not self.known_fps > 0:
            raise RequestError(
                f"known rate {self.known_fps} fps: must be greater than 0",
                code="search.out-of-range",
                where="known_fps",
            )
        if not 0 < self.plain_loss_ratio <= 1:
            raise RequestError(
                f"plain loss ratio {self.plain_loss_ratio}: must be greater than 0 and at most 1",
                code="search.out-of-range",
                where="plain_loss_ratio",
            )

    @property
    def longest_trial_s(self) -> float:
        """Length of the sending phase."""
        return self.final_duration_s

    @property
    def lowest_fps(self) -> float:
        """The minimum load in use."""
        if self.min_fps is not None:
            return self.min_fps
        return min(self.max_fps, max(self.max_fps / 1000, 1 / self.duration_s))

    def to_document(self) -> dict[str, Any]:
        return {
            "search": self.search,
            "max_fps": self.max_fps,
            **({"is_max_ceiling": True} if self.is_max_ceiling else {}),
            "min_fps": self.lowest_fps,
            "precision": self.precision,
            "duration_s": self.duration_s,
            "final_duration_s": self.final_duration_s,
            "loss_ratio": self.loss_ratio,
            "loss_verifications": self.loss_verifications,
            "plain_loss_ratio": self.plain_loss_ratio,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
            "known_fps": self.known_fps,
            "is_guided": self.is_guided,
            "stops_early": self.stops_early,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """Progress: a trial begins."""

    number: int
    purpose: Purpose
    attempt: int
    rate_fps: float
    duration_s: float
    remaining_trials: int
    """Expected number of trials from this one on."""
    remaining_s: float
    """Expected time from now on."""
    remaining_most_s: float | None = None
    """The longest that it may take, where that depends on the DUT, and `remaining_s` is the shortest; None:
    it takes about `remaining_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinished:
    """Progress: a trial has ended, with the bounds after it."""

    trial: SearchTrial
    lower_fps: float
    upper_fps: float | None
    remaining_trials: int
    remaining_s: float
    quantity: str = "throughput"
    """The quantity between the bounds, as text: a load, per direction."""
    remaining_most_s: float | None = None
    """See `TrialStarted`."""


SearchEvent = TrialStarted | TrialFinished
ProgressCallback = Callable[[SearchEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputResult:
    """What a search found; all its trials, in order."""

    goal: ThroughputGoal
    outcome: Outcome
    throughput_fps: float | None
    """Per direction, confirmed by a full-length trial. At the tester's ceiling the highest load that one has
    confirmed, if any was: a lower bound. None otherwise."""
    upper_fps: float | None
    """Lowest load that failed."""
    trials: tuple[SearchTrial, ...]

    @property
    def is_at_least(self) -> bool:
        """Whether the throughput is a lower bound: maximum or tester ended the search, not the DUT
        (MLR-10)."""
        return self.throughput_fps is not None and is_outcome_at_least(self.outcome)

    @property
    def is_ceiling_reached(self) -> bool:
        """Whether the tester's own ceiling was the maximum, and passed."""
        return self.goal.is_max_ceiling and self.throughput_fps == self.goal.max_fps

    @property
    def highest_passed_fps(self) -> float | None:
        """Highest intended load below every failed load that passed in any trial, short ones included."""
        passed = (t.load_fps for t in self.trials if t.result.is_pass)
        return max((load for load in passed if self.upper_fps is None or load < self.upper_fps), default=None)

    @property
    def highest_offered_fps(self) -> float | None:
        """Highest load that a valid trial really offered."""
        return max((t.result.offered_fps for t in self.trials if t.result.is_valid), default=None)

    @property
    def found_to(self) -> float | None:
        """How far the bounds of a result that was found are apart, as a share of the upper one; None if it is
        no more than the goal's precision. Between them too little time was clean (MLR-10)."""
        return found_to(self.outcome, self.throughput_fps, self.upper_fps, self.goal.precision)

    @property
    def uncharged(self) -> Uncharged | None:
        """Attempts with loss at the throughput that were INVALID, and so not charged; None if there were
        none."""
        goal = self.goal
        return uncharged_attempts(
            self.trials, self.throughput_fps, precision=goal.precision, patience=goal.patience
        )

    @property
    def final_trial(self) -> TrialResult | None:
        """The full-length trial that confirmed the throughput."""
        at_result = (
            t.result for t in reversed(self.trials) if t.is_full_length and t.load_fps == self.throughput_fps
        )
        return next(
            (result for result in at_result if result.is_pass or self.outcome is not Outcome.TESTER_CEILING),
            None,
        )

    @property
    def losses(self) -> dict[str, DirectionLoss]:
        """What each direction lost in the trial that the throughput rests on: the one that confirmed it, else
        the longest that passed."""
        passed = [t.result for t in self.trials if t.result.is_pass and t.load_fps == self.throughput_fps]
        proof = self.final_trial or max(passed, key=lambda trial: trial.intended_duration_s, default=None)
        return {} if proof is None else losses_in([proof])

    @property
    def sustainable_fps(self) -> float | None:
        """Where a queue of the DUT was filling in the trial that confirmed the throughput: the load it would
        sustain. A longer trial would refute the throughput; the verdict of the trial that was made remains
        valid."""
        final = self.final_trial
        if final is None or final.sustainable_fps is None or self.throughput_fps is None:
            return None
        allowed_fps = final.sustainable_fps / (1 - self.goal.loss_ratio)
        return final.sustainable_fps if allowed_fps < self.throughput_fps else None

    def count(self, verdict: Verdict) -> int:
        return sum(t.result.verdict is verdict for t in self.trials)

    def to_document(self) -> dict[str, Any]:
        """For JSON and storage; the trials' own documents are kept beside it."""
        return {
            "outcome": str(self.outcome),
            "throughput_fps_per_direction": self.throughput_fps,
            "is_at_least": self.is_at_least,
            "upper_fps_per_direction": self.upper_fps,
            "highest_passed_fps_per_direction": self.highest_passed_fps,
            "highest_offered_fps_per_direction": self.highest_offered_fps,
            "loss_by_direction": losses_document(self.losses),
            "sustainable_fps_per_direction": self.sustainable_fps,
            "verdicts": {str(verdict): self.count(verdict) for verdict in Verdict},
            "uncharged": None if self.uncharged is None else self.uncharged.to_document(),
            "goal": self.goal.to_document(),
        }
