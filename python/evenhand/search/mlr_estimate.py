# SPDX-License-Identifier: Apache-2.0
"""Station 8: how much of an MLRsearch is to come. For people who wait: no load and no bound depends on it.

Short trials prove nothing, so the bounds do not move for most of a search. What they suggest moves with every
trial: where the bounds will be, how far apart they still are, and how much full-length time the loads there
still need.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.search.classification import LoadClass, Observation, classify
from evenhand.search.mlr_goals import MlrGoal

PRECEDING_TARGETS = 2
"""Rounds of coarser widths and shorter trials before the final ones: the package's default."""


class Remaining(NamedTuple):
    """Trials and seconds to come."""

    trial_count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guess:
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
    tester_limit_fps: float | None,
    trials_per_load: float,
    overhead_s: float,
    sent_longer: float = 1.0,
) -> Remaining:
    """What remains of a search for these goals, of which none has its bounds yet; rather too long than too
    short.

    Args:
        observations: Observations of the valid trials, by load.
        tester_limit_fps: The lowest load that the tester did not keep: the search goes on below it.
        trials_per_load: How often a trial was made until it was valid.
        overhead_s: Time that a trial takes in addition to sending.
        sent_longer: How many times as long as its duration a trial is sent.
    """
    narrowing: dict[_Guess, list[float]] = {}
    counts: dict[tuple[str | float | None, str], int] = {}
    full_length: dict[tuple[str | float | None, str], float] = {}
    for goal in goals:
        guess = _guess(goal, observations, tester_limit_fps)
        durations = _narrowing(goal, guess, max_fps, lowest_fps)
        narrowing[guess] = max(narrowing.get(guess, []), durations, key=len)
        # Closer bounds will be other loads, of which nothing is known yet.
        known: Mapping[float, Sequence[Observation]] = {} if durations else observations
        for side, load_fps, count in _full_length(goal, guess, known, max_fps, lowest_fps, tester_limit_fps):
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
    goal: MlrGoal, observations: Mapping[float, Sequence[Observation]], tester_limit_fps: float | None
) -> _Guess:
    too_much = {load: _loses_too_much(goal, trials) for load, trials in observations.items()}
    uppers = [load for load, is_lossy in too_much.items() if is_lossy]
    upper_fps = min([*uppers, *([] if tester_limit_fps is None else [tester_limit_fps])], default=None)
    lowers = [
        load
        for load, is_lossy in too_much.items()
        if not is_lossy and (upper_fps is None or load < upper_fps)
    ]
    return _Guess(lower_fps=max(lowers, default=None), upper_fps=upper_fps)


def _loses_too_much(goal: MlrGoal, trials: Sequence[Observation]) -> bool:
    """Whether it is proven to, else whether most of the time suggests it."""
    known = classify(goal, trials)
    if known is not LoadClass.UNDECIDED:
        return known is LoadClass.UPPER
    high_s = sum(trial.duration_s for trial in trials if trial.loss_ratio > goal.loss_ratio)
    return high_s > goal.exceed_ratio * sum(trial.duration_s for trial in trials)


def _narrowing(goal: MlrGoal, guess: _Guess, max_fps: float, lowest_fps: float) -> list[float]:
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
    guess: _Guess,
    observations: Mapping[float, Sequence[Observation]],
    max_fps: float,
    lowest_fps: float,
    tester_limit_fps: float | None,
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
    if guess.lower_fps != max_fps and (guess.upper_fps is None or guess.upper_fps != tester_limit_fps):
        trials = observations.get(guess.upper_fps or 0.0, ())
        high_s = sum(t.duration_s for t in trials if t.loss_ratio > goal.loss_ratio)
        missing_s = goal.exceed_ratio * goal.duration_sum_s - high_s
        yield "upper", guess.upper_fps, max(0, math.floor(missing_s / goal.final_duration_s + 1e-9) + 1)
