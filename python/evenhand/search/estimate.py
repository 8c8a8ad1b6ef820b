# SPDX-License-Identifier: Apache-2.0
"""Station 8: how long a binary search will still take: as long as its rest on a device whose limit lies where
the losses until now point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, expm1, log1p
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from evenhand.base.time_span import TimeSpan
from evenhand.search.bracket import LoadBracket
from evenhand.search.classification import LoadClass, Observation, classify
from evenhand.search.mlr_model import MlrGoal
from evenhand.search.model import ThroughputGoal
from evenhand.search.search_trial import SearchTrial, sent_longer
from evenhand.trial import DirectionResult, Measurer, TrialResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


LIKELY_SHARE = 1 / 3
"""Share of the maximum at which a limit is taken to lie of which nothing is known."""
CLEARLY_ABOVE = 2.0
"""A limit that is no matter of a single trial is at so many times the load."""
WANDER = 2.0
"""A limit that is not the same in each trial is taken to move by so many times the precision: on real
devices, a guide to where the loss points is that far off, and needs twice as many trials."""
WANDERING = 4
"""Devices of that kind that are tried, for their mean."""

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
    least_loss_ratio: float = 0.0
    """What is lost at any load."""
    wander: float = 0.0
    """Share of its limit by which that may be higher or lower in a trial."""
    chance: Random = field(default_factory=lambda: Random(0))
    """Says by how much; always the same."""
    full_length_s: float
    seconds: list[float] = field(default_factory=list)
    """The time of each trial."""
    full_length: list[bool] = field(default_factory=list)

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        limit_fps = self.limit_fps * (1 + self.wander * self.chance.uniform(-1, 1))
        lost = max(0.0, self.least_loss_ratio, 1 - limit_fps / rate_fps)
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
) -> tuple[int, TimeSpan]:
    """Trials and seconds to come, the trial under way included, if loads are repeated as often as until now.
    As long as nothing is known of the device, it may forward the maximum, and two trials are all; or hardly
    the minimum, and many are.

    Args:
        trials: Those that were made.
        overhead_s: Time that a trial takes in addition to sending.
        run_rest: Makes all that are to come.
    """
    failed_s = [trial.result.sent_s for trial in trials if trial.result.verdict is Verdict.FAIL]

    def left(limit_fps: float) -> tuple[int, float]:
        steady = LikelyDevice(
            limit_fps=limit_fps,
            loss_ratio=goal.loss_ratio,
            overhead_s=overhead_s,
            sent_longer=sent_longer(trial.result for trial in trials),
            failing_s=sum(failed_s) / len(failed_s) if failed_s else None,
            trial_s=trial_s,
            full_length_s=goal.final_duration_s,
        )
        devices = likely_devices(goal, steady)
        each = [_estimate_left(goal, device, trials, run_rest=run_rest) for device in devices]
        return ceil(likely_mean([number for number, _ in each])), likely_mean([s for _, s in each])

    count, seconds = left(_likely_limit_fps(goal, bracket, trials))
    is_unknown = not failed_s and not bracket.lower_fps and bracket.below_fps is None
    if not is_unknown or goal.known_fps is not None:
        return count, TimeSpan.of(seconds)
    limits_fps = (CLEARLY_ABOVE * goal.max_fps, CLEARLY_ABOVE * goal.lowest_fps)
    found_s = [seconds, *(left(limit_fps)[1] for limit_fps in limits_fps)]
    return count, TimeSpan(min(found_s), max(found_s))


def likely_devices(goal: ThroughputGoal, steady: LikelyDevice) -> list[LikelyDevice]:
    """The device whose limit is always the same, and others like it whose limit moves. Where a search halves,
    that makes no difference."""
    if not goal.is_guided:
        return [steady]
    others = (
        replace(steady, wander=WANDER * goal.precision, chance=Random(number), seconds=[], full_length=[])
        for number in range(WANDERING)
    )
    return [steady, *others]


def likely_mean(found: Sequence[float]) -> float:
    """The mean of what was found for each of these devices: the steady one counts as much as all others."""
    steady, *others = found
    return (steady + sum(others) / len(others)) / 2 if others else steady


def _estimate_left(
    goal: ThroughputGoal,
    device: LikelyDevice,
    trials: Sequence[SearchTrial],
    *,
    run_rest: Callable[[Measurer], object],
) -> tuple[float, float]:
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
    return sum(times), sum(seconds * number for seconds, number in zip(device.seconds, times, strict=True))


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


PRECEDING_TARGETS = 2
"""Rounds of coarser widths and shorter trials before the final ones: the package's default."""


class Remaining(NamedTuple):
    """Trials and seconds to come."""

    trial_count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _MlrGuess:
    """Where the bounds of a goal will lie, if the trials until now are typical; None where none suggests
    it."""

    lower_fps: float | None
    upper_fps: float | None


def estimate(
    goals: Sequence[MlrGoal],
    observations: Mapping[float, Sequence[Observation]],
    *,
    max_fps: float,
    lowest_fps: float,
    above_ceiling_fps: float | None,
    trials_per_load: float,
    overhead_s: float,
    sent_longer: float = 1.0,
) -> Remaining:
    """What remains of a search for these goals, of which none has its bounds yet; rather too long than too
    short.

    Args:
        observations: Observations of the valid trials, by load.
        above_ceiling_fps: The lowest load that the tester did not keep: the search goes on below it.
        trials_per_load: How often a trial was made until it was valid.
        overhead_s: Time that a trial takes in addition to sending.
        sent_longer: How many times as long as its duration a trial is sent.
    """
    narrowing: dict[_MlrGuess, list[float]] = {}
    counts: dict[tuple[str | float | None, str], int] = {}
    full_length: dict[tuple[str | float | None, str], float] = {}
    for goal in goals:
        guess = _guess(goal, observations, above_ceiling_fps)
        durations = _narrowing(goal, guess, max_fps, lowest_fps)
        narrowing[guess] = max(narrowing.get(guess, []), durations, key=len)
        # Closer bounds will be other loads, of which nothing is known yet.
        known: Mapping[float, Sequence[Observation]] = {} if durations else observations
        for side, load_fps, count in _full_length(goal, guess, known, max_fps, lowest_fps, above_ceiling_fps):
            # One trial counts for all goals that have a bound at its load.
            load = goal.name if durations else load_fps
            full_length[load, side] = max(
                full_length.get((load, side), 0.0), count * (goal.final_duration_s * sent_longer + overhead_s)
            )
            counts[load, side] = max(counts.get((load, side), 0), count)
    first = [duration_s for durations in narrowing.values() for duration_s in durations]
    trials = len(first) + sum(counts.values())
    seconds = sum(duration_s * sent_longer + overhead_s for duration_s in first) + sum(full_length.values())
    return Remaining(math.ceil(trials * trials_per_load), seconds * trials_per_load)


def _guess(
    goal: MlrGoal, observations: Mapping[float, Sequence[Observation]], above_ceiling_fps: float | None
) -> _MlrGuess:
    too_much = {load: _loses_too_much(goal, trials) for load, trials in observations.items()}
    uppers = [load for load, is_lossy in too_much.items() if is_lossy]
    upper_fps = min([*uppers, *([] if above_ceiling_fps is None else [above_ceiling_fps])], default=None)
    lowers = [
        load
        for load, is_lossy in too_much.items()
        if not is_lossy and (upper_fps is None or load < upper_fps)
    ]
    return _MlrGuess(lower_fps=max(lowers, default=None), upper_fps=upper_fps)


def _loses_too_much(goal: MlrGoal, trials: Sequence[Observation]) -> bool:
    """Whether it is proven to, else whether most of the time suggests it."""
    known = classify(goal, trials)
    if known is not LoadClass.UNDECIDED:
        return known is LoadClass.UPPER
    high_s = sum(trial.duration_s for trial in trials if trial.loss_ratio > goal.loss_ratio)
    return high_s > goal.exceed_ratio * sum(trial.duration_s for trial in trials)


def _narrowing(goal: MlrGoal, guess: _MlrGuess, max_fps: float, lowest_fps: float) -> list[float]:
    """Durations of the trials until the bounds are close enough: the last ones are longer."""
    if guess.lower_fps == max_fps or (guess.upper_fps is not None and guess.upper_fps <= lowest_fps):
        return []
    upper_fps, lower_fps = guess.upper_fps or max_fps, guess.lower_fps or lowest_fps
    halvings = math.ceil(math.log2(max(1.0, (upper_fps - lower_fps) / (goal.width * upper_fps))) - 1e-9)
    halvings += guess.upper_fps is None  # the maximum itself
    middle_s = math.sqrt(goal.initial_duration_s * goal.final_duration_s)
    return [goal.initial_duration_s] * max(0, halvings - PRECEDING_TARGETS) + [middle_s] * min(
        halvings, PRECEDING_TARGETS
    )


def _full_length(
    goal: MlrGoal,
    guess: _MlrGuess,
    observations: Mapping[float, Sequence[Observation]],
    max_fps: float,
    lowest_fps: float,
    above_ceiling_fps: float | None,
) -> Iterator[tuple[str, float | None, int]]:
    """For each bound: the side, the load, and how many full-length trials it still needs."""
    if guess.upper_fps is None or guess.upper_fps > lowest_fps:
        trials = observations.get(guess.lower_fps or 0.0, ())
        low_s = sum(
            t.duration_s
            for t in trials
            if t.loss_ratio <= goal.loss_ratio and t.duration_s >= goal.final_duration_s
        )
        missing_s = (1 - goal.exceed_ratio) * goal.duration_sum_s - low_s
        yield "lower", guess.lower_fps, max(0, math.ceil(missing_s / goal.final_duration_s - 1e-9))
    # Nothing proves an upper bound where the maximum passes, or where the tester cannot go.
    if guess.lower_fps != max_fps and (guess.upper_fps is None or guess.upper_fps != above_ceiling_fps):
        trials = observations.get(guess.upper_fps or 0.0, ())
        high_s = sum(t.duration_s for t in trials if t.loss_ratio > goal.loss_ratio)
        missing_s = goal.exceed_ratio * goal.duration_sum_s - high_s
        yield "upper", guess.upper_fps, max(0, math.floor(missing_s / goal.final_duration_s + 1e-9) + 1)
