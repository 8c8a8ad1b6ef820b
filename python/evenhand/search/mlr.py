# SPDX-License-Identifier: Apache-2.0
"""Station 8: MLRsearch (RFC 9971). The package `MLRsearch` chooses the trials; what they say about a load is
judged here.

The package knows no trial that says nothing. Where a load has too little clean time, one a little lower is
measured in its stead. Where the tester does not keep a load, the package gets a loss, so that it goes on
below. None of what it concludes from either is used: bounds come from `classification.py`, over the valid
trials and their own loads alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_import
from evenhand.search.bracket import STEP_DOWN, WIDEST_UNCLEAN
from evenhand.search.classification import (
    Bounds,
    Observation,
    classify,
    conditional_loss_ratio,
    relevant_bounds,
)
from evenhand.search.estimate import PRECEDING_TARGETS, Remaining, estimate
from evenhand.search.mlr_model import GoalResult, MlrGoal, MlrGoals, MlrResult
from evenhand.search.model import Outcome, ProgressCallback, TrialFinished, TrialStarted, outcome_at_maximum
from evenhand.search.search_trial import InvalidAttempts, Purpose, SearchTrial, sent_longer
from evenhand.trial import Measurer, TrialResult

if TYPE_CHECKING:
    import MLRsearch
else:
    MLRsearch = lazy_import("MLRsearch")

LOADS_GIVEN_UP_IN_A_ROW = 5
"""The same as in the binary search: a tester that keeps none of them will not keep the next one either."""
LOADS_INSTEAD = 3
"""Tried below a load with too little clean time, each twice as far below it as the one before."""


def find_goals(
    measurer: Measurer,
    goals: MlrGoals,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
) -> MlrResult:
    """One search for all goals (MLR-01). A trial counts for every goal, by its loss ratio over all directions
    (MLR-03).

    INVALID trials are kept, say nothing about a load, and are repeated as in `find_throughput`. A load that
    stays INVALID is the tester's ceiling: the search goes on below it, and a goal whose bounds it keeps apart
    is irregular.

    Args:
        on_progress: Gets an event before and after each trial; the trial's event comes before the next trial
            begins.
        overhead_s: Time that a trial takes in addition to sending; for the estimate of the time left only.

    Raises:
        EvenhandError: The measurer could not run at all.
    """
    return _MlrSearch(measurer=measurer, goals=goals, on_progress=on_progress, overhead_s=overhead_s).run()


class _SearchEndedError(Exception):
    """Takes the package's controller down; never leaves this file."""


@dataclass(slots=True, kw_only=True)
class _MlrSearch:
    measurer: Measurer
    goals: MlrGoals
    on_progress: ProgressCallback | None
    overhead_s: float
    trials: list[SearchTrial] = field(default_factory=list)
    observations: dict[float, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    """Observations of the valid trials, by load."""
    given_up: dict[float, float] = field(default_factory=dict)
    """Loads that stayed INVALID, and what was offered there at best."""
    given_up_in_a_row: int = 0
    instead: dict[float, float] = field(default_factory=dict)
    """Loads with too little clean time, and which is measured in their stead."""
    is_finished: bool = False
    """The package came to its end by itself."""

    def run(self) -> MlrResult:
        # No warm-up trial, and no end by the clock: a search ends by its trials alone, however long they
        # take.
        config = MLRsearch.Config(
            goals=[
                MLRsearch.SearchGoal(
                    loss_ratio=goal.loss_ratio,
                    exceed_ratio=goal.exceed_ratio,
                    relative_width=goal.width,
                    initial_trial_duration=goal.initial_duration_s,
                    final_trial_duration=goal.final_duration_s,
                    duration_sum=goal.duration_sum_s,
                    preceding_targets=PRECEDING_TARGETS,
                    fail_fast=False,
                )
                for goal in self.goals.goals
            ],
            min_load=self.goals.lowest_fps,
            max_load=self.goals.max_fps,
            search_duration_max=math.inf,
            warmup_duration=None,
        )
        try:
            MLRsearch.MultipleLossRatioSearch(config=config).search(measurer=self, debug=_say_nothing)
            self.is_finished = True
        except _SearchEndedError:
            pass
        return MlrResult(
            goal=self.goals,
            goals=tuple(self._result_for(goal) for goal in self.goals.goals),
            above_ceiling_fps=min(self.given_up, default=None),
            trials=tuple(self.trials),
        )

    def measure(self, intended_duration: float, intended_load: float) -> MLRsearch.MeasurementResult:
        """The package's side of a trial; the names are its own."""
        load_fps = self.instead.get(intended_load, intended_load)
        result = None if load_fps in self.given_up else self._measure_near(intended_duration, load_fps)
        if result is None:
            return self._steer_down(intended_duration, load_fps)
        return MLRsearch.MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=_offered(result),
            loss_count=result.lost_frames,
        )

    def _measure_near(self, duration_s: float, load_fps: float) -> TrialResult | None:
        """A valid trial of this load, or of one a little lower if too little of its time was clean, as it is
        close to what the device takes; None if all stayed INVALID, which gives the load up."""
        unclean: list[float] = []
        tried_fps, step = load_fps, min(goal.width for goal in self.goals.goals) / 2
        found = first = self._measure_valid(duration_s, load_fps)
        while isinstance(found, InvalidAttempts) and found.too_little_clean and len(unclean) < LOADS_INSTEAD:
            if not any(measured_fps > load_fps for measured_fps in self.observations):
                break
            unclean.append(tried_fps)
            tried_fps = max(load_fps * (1 - step * (2 ** len(unclean) - 1)), self.goals.lowest_fps)
            found = self._measure_valid(duration_s, tried_fps)
        if isinstance(found, TrialResult):
            self.instead |= dict.fromkeys(unclean, tried_fps)
            self.given_up_in_a_row = 0
            return found
        assert isinstance(first, InvalidAttempts)
        self.given_up[load_fps] = first.offered_fps
        self.given_up_in_a_row += 1
        if self.given_up_in_a_row == LOADS_GIVEN_UP_IN_A_ROW:
            raise _SearchEndedError
        return None

    def _measure_valid(self, duration_s: float, load_fps: float) -> TrialResult | InvalidAttempts:
        """A valid trial, after INVALID ones perhaps; these alone if the load stayed INVALID."""
        invalid = InvalidAttempts(invalid_retries=self.goals.invalid_retries, patience=self.goals.patience)
        for attempt in count(1):
            result = self._measure(duration_s, load_fps, attempt)
            if result.was_stopped:
                raise _SearchEndedError
            if result.is_valid:
                return result
            invalid.note(result)
            if invalid.are_exhausted:
                break
        return invalid

    def _steer_down(self, duration_s: float, load_fps: float) -> MLRsearch.MeasurementResult:
        """Send the package to lower loads: as much lower as the tester fell short, at least a fifth; never a
        number of the device."""
        loss_ratio = max(1 - STEP_DOWN, 1 - self.given_up[load_fps] / load_fps)
        highest_goal = max(goal.loss_ratio for goal in self.goals.goals)
        if loss_ratio <= highest_goal:
            loss_ratio = (1 + highest_goal) / 2
        parts = 10**6
        return MLRsearch.MeasurementResult(
            intended_duration=duration_s,
            intended_load=load_fps,
            offered_count=parts,
            loss_count=min(parts, math.ceil(parts * loss_ratio)),
        )

    def _measure(self, duration_s: float, load_fps: float, attempt: int) -> TrialResult:
        if len(self.trials) == self.goals.max_trials:
            raise _SearchEndedError
        number, purpose = (
            len(self.trials) + 1,
            Purpose.MAXIMUM if load_fps == self.goals.max_fps else Purpose.SEARCH,
        )
        remaining_trials, remaining_s = self._estimate()
        self._report(
            TrialStarted(
                number=number,
                purpose=purpose,
                attempt=attempt,
                rate_fps=load_fps,
                duration_s=duration_s,
                remaining_trials=max(1, remaining_trials),
                remaining_s=max(duration_s + self.overhead_s, remaining_s),
            )
        )
        result = self.measurer.measure(duration_s, load_fps)
        trial = SearchTrial(
            number=number,
            purpose=purpose,
            attempt=attempt,
            is_full_length=duration_s >= self.goals.final_duration_s,
            load_fps=load_fps,
            result=result,
        )
        self.trials.append(trial)
        if result.is_valid:
            self.observations[load_fps].append(Observation(duration_s, result.lost_frames / _offered(result)))
        remaining_trials, remaining_s = self._estimate()
        bounds = [self._bounds_for(goal) for goal in self.goals.goals]
        uppers = [bound.upper_fps for bound in bounds if bound.upper_fps is not None]
        self._report(
            TrialFinished(
                trial=trial,
                lower_fps=min(bound.lower_fps or 0.0 for bound in bounds),
                upper_fps=max(uppers) if len(uppers) == len(bounds) else None,
                remaining_trials=remaining_trials,
                remaining_s=remaining_s,
            )
        )
        return result

    def _bounds_for(self, goal: MlrGoal) -> Bounds:
        return relevant_bounds({load: classify(goal, trials) for load, trials in self.observations.items()})

    def _result_for(self, goal: MlrGoal) -> GoalResult:
        lower_fps, upper_fps = self._bounds_for(goal)
        typical_fps = (
            None
            if lower_fps is None
            else lower_fps * (1 - conditional_loss_ratio(goal, self.observations[lower_fps]))
        )
        return GoalResult(
            goal=goal,
            outcome=self._outcome_for(goal, lower_fps, upper_fps),
            lower_fps=lower_fps,
            upper_fps=upper_fps,
            conditional_throughput_fps=typical_fps,
        )

    def _outcome_for(self, goal: MlrGoal, lower_fps: float | None, upper_fps: float | None) -> Outcome:
        if lower_fps is not None and upper_fps is not None:
            is_unclean = any(lower_fps < load_fps < upper_fps for load_fps in self.instead)
            width = max(goal.width, WIDEST_UNCLEAN if is_unclean else 0.0)
            if upper_fps - lower_fps <= width * upper_fps:
                return Outcome.FOUND
        if upper_fps is None and lower_fps == self.goals.max_fps:
            return outcome_at_maximum(is_max_ceiling=self.goals.is_max_ceiling)
        if lower_fps is None and upper_fps is not None and upper_fps <= self.goals.lowest_fps:
            return Outcome.BELOW_MINIMUM
        is_testers = self.given_up and (self.is_finished or self.given_up_in_a_row == LOADS_GIVEN_UP_IN_A_ROW)
        return Outcome.TESTER_CEILING if is_testers else Outcome.STOPPED

    def _estimate(self) -> Remaining:
        """Trials and seconds to come; none for goals that have what they need."""
        return estimate(
            [goal for goal in self.goals.goals if not self._has_ended(goal)],
            {load: trials for load, trials in self.observations.items() if trials},
            max_fps=self.goals.max_fps,
            lowest_fps=self.goals.lowest_fps,
            above_ceiling_fps=min(self.given_up, default=None),
            trials_per_load=self._trials_per_load(),
            overhead_s=self.overhead_s,
            sent_longer=sent_longer(trial.result for trial in self.trials),
        )

    def _has_ended(self, goal: MlrGoal) -> bool:
        """Whether it has what it needs."""
        lower_fps, upper_fps = self._bounds_for(goal)
        if upper_fps is None and lower_fps == self.goals.max_fps:
            return True
        return self._outcome_for(goal, lower_fps, upper_fps) in (Outcome.FOUND, Outcome.BELOW_MINIMUM)

    def _trials_per_load(self) -> float:
        """How often a trial was made until it was valid. A load that was given up is not to come again, and
        of one that may be it is not known yet."""
        made = [trial.result for trial in self.trials if self.observations.get(trial.load_fps)]
        return max(1, len(made)) / max(1, sum(result.is_valid for result in made))

    def _report(self, event: TrialStarted | TrialFinished) -> None:
        if self.on_progress is not None:
            self.on_progress(event)


def _offered(result: TrialResult) -> int:
    """Frames of all directions; a valid trial offered what was intended."""
    return max(1, sum(direction.offered_frames for direction in result.directions.values()))


def _say_nothing(_: str) -> None:
    """The package would write to `logging`."""
