# SPDX-License-Identifier: Apache-2.0
"""Station 8: how long a binary search will still take: as long as its rest on a device whose limit lies where
the losses until now point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, expm1, log1p
from typing import TYPE_CHECKING, cast

from evenhand.search.attempts import sent_longer
from evenhand.search.bracket import LoadBracket
from evenhand.search.model import ThroughputGoal
from evenhand.search.search_trial import SearchTrial
from evenhand.trial import DirectionResult, Measurer, TrialResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

LIKELY_SHARE = 1 / 3
"""Share of the maximum at which a limit is taken to lie of which nothing is known."""

TrialTime = Callable[[float, bool], float]
"""Seconds that a trial takes in all, from its load, and whether it passes: for trials whose length follows
from their load."""


@dataclass(frozen=True, slots=True)
class _Guess:
    """As much of a `TrialResult` as a search looks at."""

    verdict: Verdict
    loss_ratio: float
    stopped_early_s: float | None = None
    sustainable_fps: float | None = None
    was_stopped: bool = False
    is_valid: bool = True
    directions: Mapping[str, DirectionResult] = field(default_factory=dict)

    @property
    def is_pass(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def least_loss_ratio(self) -> float:
        return self.loss_ratio


@dataclass(slots=True, kw_only=True)
class LikelyDevice:
    """A `Measurer` that makes no trial: it says what would come out, and notes how long it would take."""

    limit_fps: float
    loss_ratio: float
    """That passes."""
    overhead_s: float
    sent_longer: float = 1.0
    """How many times as long as its duration a trial is sent."""
    failing_s: float | None = None
    """The time of sending of a short trial that fails, as it was until now; None: none has failed."""
    trial_s: TrialTime | None = None
    full_length_s: float
    seconds: list[float] = field(default_factory=list)
    """Of each trial."""
    full_length: list[bool] = field(default_factory=list)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        lost = max(0.0, 1 - self.limit_fps / rate_fps)
        is_pass = lost <= self.loss_ratio
        if self.trial_s is not None:
            seconds = self.trial_s(rate_fps, is_pass)
        else:
            is_short = not is_pass and self.failing_s is not None
            sent_s = duration_s * self.sent_longer
            seconds = (min(sent_s, self.failing_s or 0.0) if is_short else sent_s) + self.overhead_s
        self.seconds.append(seconds)
        self.full_length.append(duration_s >= self.full_length_s)
        verdict = Verdict.PASS if is_pass else Verdict.FAIL
        return cast("TrialResult", _Guess(verdict=verdict, loss_ratio=lost))


def estimate_left(
    goal: ThroughputGoal,
    bracket: LoadBracket,
    trials: Sequence[SearchTrial],
    *,
    overhead_s: float,
    trial_s: TrialTime | None,
    run_rest: Callable[[Measurer], object],
) -> tuple[int, float]:
    """Trials and seconds to come, the trial under way included, if loads are repeated as often as until now.

    Args:
        trials: Those that were made.
        overhead_s: Time that a trial takes in addition to sending.
        run_rest: Makes all that are to come.
    """
    failed_s = [trial.result.sent_s for trial in trials if trial.result.verdict is Verdict.FAIL]
    device = LikelyDevice(
        limit_fps=_likely_limit_fps(goal, bracket, trials),
        loss_ratio=goal.loss_ratio,
        overhead_s=overhead_s,
        sent_longer=sent_longer(trial.result for trial in trials),
        failing_s=sum(failed_s) / len(failed_s) if failed_s else None,
        trial_s=trial_s,
        full_length_s=goal.final_duration_s,
    )
    run_rest(device)
    invalid = sum(trial.result.verdict is Verdict.INVALID for trial in trials)
    if not invalid:
        return len(device.seconds), sum(device.seconds)
    valid = len(trials) - invalid
    per_load = len(trials) / valid if valid else 1.0 + invalid
    confirmations = per_load
    if goal.duration_s < goal.final_duration_s:
        # What is longer by a factor meets the same things that much more often.
        valid_share: float = (1 - invalid / (len(trials) + 1)) ** (goal.final_duration_s / goal.duration_s)
        confirmations = _attempts_until_valid(valid_share, goal.patience + 1)
    times = [confirmations if is_full_length else per_load for is_full_length in device.full_length]
    return ceil(sum(times)), sum(
        seconds * number for seconds, number in zip(device.seconds, times, strict=True)
    )


def _attempts_until_valid(valid_share: float, most: int) -> float:
    """How many attempts are made on average, of which so many are valid, if there are `most` of them: all, if
    hardly any is. Exact also for a share so small that 1 less it is 1."""
    return -expm1(most * log1p(-valid_share)) / valid_share if valid_share > 0 else float(most)


def _likely_limit_fps(goal: ThroughputGoal, bracket: LoadBracket, trials: Sequence[SearchTrial]) -> float:
    """What the device forwarded of the lowest load that failed; lower, if that has become less with the
    load."""
    below_fps = goal.max_fps if bracket.below_fps is None else bracket.below_fps
    lower_fps = bracket.lower_fps
    forwarded = {
        trial.load_fps: trial.load_fps * (1 - trial.result.loss_ratio) / (1 - goal.loss_ratio)
        for trial in trials
        if trial.result.verdict is Verdict.FAIL
    }
    if not forwarded:
        if bracket.below_fps is None:
            return lower_fps or goal.known_fps or goal.max_fps * LIKELY_SHARE
        return (lower_fps + below_fps) / 2
    lowest, *others = [forwarded[load] for load in sorted(forwarded)[:2]]
    limit_fps = lowest - sum(max(0.0, other - lowest) for other in others)
    if lower_fps and not lower_fps <= limit_fps < below_fps:
        return (lower_fps + below_fps) / 2
    return limit_fps if limit_fps < below_fps else below_fps * (1 - goal.precision)
