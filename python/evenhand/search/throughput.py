# SPDX-License-Identifier: Apache-2.0
"""Station 8: find the highest load at which a measurer loses nothing, or no more than the loss ratio
allows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

from evenhand.base.time_span import TimeSpan
from evenhand.search.bound import is_bound_in_doubt
from evenhand.search.bracket import LoadBracket
from evenhand.search.estimate import TrialTime, estimate_left
from evenhand.search.guide import Guide
from evenhand.search.model import (
    Outcome,
    ProgressCallback,
    SearchEvent,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    TrialStarted,
    outcome_at_maximum,
)
from evenhand.search.search_trial import InvalidAttempts, Purpose, SearchTrial
from evenhand.trial import EarlyStopper, Measurer, TrialResult, Verdict


def doubted_sustainable_fps(goal: ThroughputGoal, load_fps: float, result: TrialResult) -> float | None:
    """The highest load that the goal allows in the long run, if a queue that was filling says that this one
    is above it."""
    if result.sustainable_fps is None:
        return None
    allowed_fps = result.sustainable_fps / (1 - goal.loss_ratio)
    return allowed_fps if allowed_fps < load_fps else None


def hidden_fps(goal: ThroughputGoal, load_fps: float, result: TrialResult, sustainable_fps: float) -> float:
    """How much more than in the long run a full-length trial allows, since a queue takes the difference. 0 if
    it did not overflow: then its depth is not known."""
    if result.is_pass:
        return 0.0
    sending_s = result.sent_s
    held_frames = (load_fps * (1 - result.loss_ratio) - sustainable_fps) * sending_s
    return max(0.0, held_frames) / goal.final_duration_s


LOADS_GIVEN_UP_IN_A_ROW = 5
"""Number of loads, each lower than the one before, that the tester could not keep: it will not keep the next
one either."""


def find_throughput(
    measurer: Measurer,
    goal: ThroughputGoal,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
    trial_s: TrialTime | None = None,
) -> ThroughputResult:
    """Binary search (R2544-21, MLR-13): the maximum itself first, then midpoints, then a full-length trial at
    the result.

    Loss above the goal's ratio lowers the upper bound, after `goal.loss_verifications` repetitions that lost
    too. If the full-length trial fails, or any below a load that a short one passed, the search goes on with
    full-length trials, since short ones have shown to be too kind. A short trial that passed while a queue
    was filling (`DirectionResult.queue_filling`) moves no bound: the search goes on below that load, and a
    full-length trial at it decides if no other load does. INVALID trials are kept, move no bound, and are
    repeated `goal.invalid_retries` times, or `goal.patience` times if the load was offered but a moment of
    the host spoiled the trial, and in the confirmation. A load that stays INVALID is beyond the tester: the
    search goes on below it, and ends with "tester ceiling" if the device lost nothing down there either. The
    highest load that passed is then confirmed by a full-length trial, and is a lower bound; what none has
    confirmed is no bound.

    With `goal.known_fps` the first trial is a full-length one at that load, and the maximum is tried only if
    the way leads there. With `goal.is_guided` the search goes from the maximum to the load that the loss
    there points at. Both choose loads, and settle nothing.

    Where the FAIL that bounds the result was stopped early and leaves a doubt (`bound.py`), its trial is made
    once more, to its end. If it passes, the search goes on above it, and stops no trial early any more.

    Args:
        on_progress: Gets an event before and after each trial; the trial's event comes before the next trial
            begins.
        overhead_s: Time that a trial takes in addition to sending; for the estimate of the time left only.
        trial_s: The time of a trial by its load, in place of the goal's; for the same.

    Raises:
        EvenhandError: The measurer could not run at all.
    """
    return _Search(
        measurer=measurer, goal=goal, on_progress=on_progress, overhead_s=overhead_s, trial_s=trial_s
    ).run()


@dataclass(slots=True, kw_only=True)
class _Search:
    measurer: Measurer
    goal: ThroughputGoal
    on_progress: ProgressCallback | None
    overhead_s: float
    trial_s: TrialTime | None = None
    trials: list[SearchTrial] = field(default_factory=list)
    are_short_trials_trusted: bool = True
    given_up: int = 0
    """Loads in a row that the tester did not keep."""
    is_given_up: bool = False
    """The tester has not kept one load after the other: only the lower bound is still to be confirmed."""
    guide: Guide | None = None
    is_middle_length: bool = False
    """The next trial lasts longer than a short one, and less than a full-length one."""
    whole_loads: set[float] = field(default_factory=set)
    """Loads that were tried to the end since they failed in a trial that was stopped early."""
    bracket: LoadBracket = field(init=False)

    def __post_init__(self) -> None:
        goal = self.goal
        self.bracket = LoadBracket(min_fps=goal.lowest_fps, max_fps=goal.max_fps, precision=goal.precision)
        if goal.known_fps is not None and goal.lowest_fps <= goal.known_fps < goal.max_fps:
            self.guide = Guide(
                center_fps=goal.known_fps, precision=goal.precision, loss_ratio=goal.loss_ratio
            )

    def run(self) -> ThroughputResult:
        bracket = self.bracket
        while True:
            if bracket.is_at_maximum and bracket.is_confirmed:
                return self._result(
                    outcome_at_maximum(is_max_ceiling=self.goal.is_max_ceiling), bracket.lower_fps
                )
            is_beyond_tester = self.is_given_up or (
                bracket.is_at_tester_ceiling and (bracket.is_narrow or bracket.is_below_minimum)
            )
            if bracket.is_narrow_but_unclean and bracket.is_confirmed:
                return self._result(Outcome.FOUND, bracket.lower_fps)
            is_bound_known = self._above_unclean_fps is None
            if is_bound_known and is_beyond_tester and (bracket.is_confirmed or not bracket.lower_fps):
                return self._result(Outcome.TESTER_CEILING, self.bracket.proven_fps)
            if self._is_bound_in_doubt:
                trial = self._measure_bound()
                if trial is None or trial.result.was_stopped:
                    return self._result(Outcome.STOPPED)
                continue
            if bracket.is_below_minimum:
                return self._result(Outcome.BELOW_MINIMUM)
            if is_bound_known and bracket.is_narrow and bracket.is_confirmed and not bracket.is_doubted:
                return self._result(Outcome.FOUND, bracket.lower_fps)
            load_fps, purpose, is_sure_guess = self._choose_load()
            is_confirmation = purpose is Purpose.CONFIRMATION
            is_full_length = (
                purpose in (Purpose.CONFIRMATION, Purpose.KNOWN) or not self.are_short_trials_trusted
            )
            is_full_length = is_full_length or self._are_durations_equal or is_sure_guess
            trial = self._measure_valid(
                load_fps, purpose, is_full_length=is_full_length, is_sure_guess=is_sure_guess
            )
            if trial is None or trial.result.was_stopped:
                return self._result(Outcome.STOPPED)
            if not trial.result.is_valid and is_sure_guess and self.guide is not None:
                self.guide.shorten()
                continue
            if not trial.result.is_valid:
                self.given_up += 1
                if bracket.unclean_in_a_row and bracket.upper_fps is not None:
                    self.guide = None  # the bracket's steps are shorter
                if self.guide is not None:
                    self.guide.give_up()
                if is_confirmation and not self._steps_down_from(load_fps, trial.result):
                    return self._result(Outcome.TESTER_CEILING, self.bracket.proven_fps)
                self.is_given_up = self.given_up == LOADS_GIVEN_UP_IN_A_ROW
                continue
            self.given_up = 0
            self._steer(load_fps, trial.result, purpose)
            if is_confirmation and not trial.result.is_pass:
                self.are_short_trials_trusted = self.is_given_up = False
            elif is_full_length and not trial.result.is_pass and self._has_short_pass_from(load_fps):
                self.are_short_trials_trusted = False

    def _has_short_pass_from(self, load_fps: float) -> bool:
        """Whether a short trial passed at this load or above: a queue may take in what it was offered too
        much."""
        return any(
            trial.load_fps >= load_fps and trial.result.is_pass and not trial.is_full_length
            for trial in self.trials
        )

    @property
    def _above_unclean_fps(self) -> float | None:
        """The load to try above those that had too little clean time, so that the bound is known; None if
        there is none, or the tester is given up."""
        return None if self.is_given_up else self.bracket.load_above_unclean()

    def _steps_down_from(self, load_fps: float, result: TrialResult) -> bool:
        """Whether a load that could not be confirmed, since too little time was clean, is left for a lower
        one: only full-length trials settle anything from then on."""
        if not result.has_too_little_clean_time or self.bracket.upper_fps is None:
            return False
        self.bracket.note_unclean(load_fps, offered_fps=result.offered_fps)
        self.are_short_trials_trusted = False
        return True

    @property
    def _is_bound_in_doubt(self) -> bool:
        """Whether the search is about to end below a FAIL that was stopped early, and that a queue may
        explain that stood still."""
        bracket = self.bracket
        upper_fps = bracket.upper_fps
        if (
            upper_fps is None
            or upper_fps in self.whole_loads
            or not (bracket.is_below_minimum or (bracket.is_narrow and bracket.is_confirmed))
        ):
            return False
        return is_bound_in_doubt(self.trials, upper_fps)

    def _measure_bound(self) -> SearchTrial | None:
        """Make the trial at the upper bound to its end: the bound holds, or is taken back. If it stays
        INVALID, the FAIL that was seen holds."""
        load_fps = self.bracket.upper_fps
        assert load_fps is not None
        self.whole_loads.add(load_fps)
        if isinstance(self.measurer, EarlyStopper):
            self.measurer.stop_no_trial_early()
        at_bound = [t for t in self.trials if t.load_fps == load_fps and t.result.verdict is Verdict.FAIL]
        trial = self._measure_valid(
            load_fps, Purpose.BOUND, is_full_length=any(t.is_full_length for t in at_bound)
        )
        if trial is not None and trial.result.is_pass:
            self.guide = None  # it has learned from losses that were not real
        return trial

    def _choose_load(self) -> tuple[float, Purpose, bool]:
        """The next load, why, and whether the guide is so sure of it that it is tried in full length although
        a short trial could do."""
        bracket = self.bracket
        self.is_middle_length = False
        if self.is_given_up:
            return bracket.lower_fps, Purpose.CONFIRMATION, False
        if self._above_unclean_fps is not None:
            return self._above_unclean_fps, Purpose.SEARCH, False
        if self._is_step_above_known_passed:
            return bracket.lower_fps, Purpose.CONFIRMATION, False
        guide = None if bracket.is_narrow else self.guide
        guided_fps = None if guide is None else guide.next_load(bracket)
        is_sure_guess = (
            guide is not None
            and guided_fps is not None
            and guide.is_full_length
            and self.are_short_trials_trusted
            and not self._are_durations_equal
        )
        load_fps = bracket.next_load() if guided_fps is None else guided_fps
        if load_fps in bracket.passed or load_fps == bracket.doubted_fps:
            return load_fps, Purpose.CONFIRMATION, is_sure_guess
        if not self.trials and guided_fps is not None:
            return load_fps, Purpose.KNOWN, is_sure_guess
        self.is_middle_length = self._is_step_above_known and not self._are_durations_equal
        is_maximum = bracket.below_fps is None and load_fps == bracket.max_fps
        return load_fps, Purpose.MAXIMUM if is_maximum else Purpose.SEARCH, is_sure_guess

    @property
    def _is_step_above_known(self) -> bool:
        """Whether the known load passed in full length, and the next load is the first above it. Where a
        buffer hides what is lost, a short trial would lead astray: one between short and full length finds it
        out, and where it fails it is hardly longer."""
        known_fps, bracket = self.goal.known_fps, self.bracket
        return known_fps is not None and bracket.passed == {known_fps: True} and bracket.upper_fps is None

    @property
    def _is_step_above_known_passed(self) -> bool:
        """Whether that step has passed: a full-length trial decides, before others lead further away."""
        known_fps, passed = self.goal.known_fps, self.bracket.passed
        is_first_step = known_fps is not None and passed.get(known_fps, False) and len(passed) == 2
        return is_first_step and not self.bracket.is_confirmed

    def _steer(self, load_fps: float, result: TrialResult, purpose: Purpose) -> None:
        """Report to the guide what became of a load. The first loss makes a guide, and so does one in the
        confirmation, which knows better."""
        sustainable_fps = doubted_sustainable_fps(self.goal, load_fps, result)
        if sustainable_fps is not None and self._is_queue_found(load_fps):
            limit_fps = sustainable_fps + hidden_fps(self.goal, load_fps, result, sustainable_fps)
            self.guide = self._guide_to(limit_fps, failed_fps=load_fps, is_queue_deep=True)
        elif (
            self.goal.is_guided
            and not result.is_pass
            and (self.guide is None or purpose is Purpose.CONFIRMATION)
        ):
            forwarded_fps = load_fps * (1 - result.loss_ratio) / (1 - self.goal.loss_ratio)
            self.guide = self._guide_to(forwarded_fps, failed_fps=load_fps)
        elif self.guide is not None:
            self.guide.note(load_fps, is_pass=result.is_pass, loss_ratio=result.loss_ratio)

    def _is_queue_found(self, load_fps: float) -> bool:
        """Whether a trial in which a queue was filling is the first of them that says where to look. Its
        delays know the limit better than the losses do, of which the queue hides a part. A load that passed
        in full length is not in question any more."""
        bracket = self.bracket
        if bracket.passed.get(load_fps, False):
            return False
        is_guide_new = self.guide is None or not self.guide.is_queue_deep
        return load_fps == bracket.doubted_fps or (self.goal.is_guided and is_guide_new)

    def _guide_to(self, limit_fps: float, *, failed_fps: float, is_queue_deep: bool = False) -> Guide:
        return Guide.of_limit(
            limit_fps,
            failed_fps=failed_fps,
            precision=self.goal.precision,
            loss_ratio=self.goal.loss_ratio,
            is_queue_deep=is_queue_deep,
        )

    @property
    def _are_durations_equal(self) -> bool:
        return self.goal.duration_s >= self.goal.final_duration_s

    def _measure_valid(
        self, load_fps: float, purpose: Purpose, *, is_full_length: bool, is_sure_guess: bool = False
    ) -> SearchTrial | None:
        """The trial that decides about this load, else the last INVALID one; None if there may be no more
        trials. A sure guess that is INVALID is not repeated: a short trial follows."""
        failed: SearchTrial | None = None
        invalid = (
            InvalidAttempts(invalid_retries=0, patience=0)
            if is_sure_guess
            else InvalidAttempts(invalid_retries=self.goal.invalid_retries, patience=self.goal.patience)
        )
        lossy, is_lost = 0, False
        while True:
            if len(self.trials) == self.goal.max_trials:
                return None
            trial = self._measure(
                load_fps, purpose, attempt=1 + invalid.count + lossy, is_full_length=is_full_length
            )
            match trial.result.verdict:
                case Verdict.PASS:
                    self._note_pass(load_fps, purpose, trial.result, is_full_length=is_full_length)
                case Verdict.FAIL:
                    failed = trial
                    lossy += 1
                    is_lost = (
                        lossy > self.goal.loss_verifications
                        or trial.result.least_loss_ratio > self.goal.plain_loss_ratio
                    )
                    if is_lost:
                        self.bracket.note_fail(load_fps)
                case Verdict.INVALID:
                    invalid.note(trial.result, is_patient=purpose in (Purpose.CONFIRMATION, Purpose.BOUND))
            is_exhausted = trial.result.was_stopped or invalid.are_exhausted
            if is_exhausted and failed is not None and not trial.result.was_stopped:
                # The loss could not be verified, but it was seen in a valid trial.
                self.bracket.note_fail(load_fps)
                trial = failed
            elif (
                is_exhausted
                and not trial.result.was_stopped
                and purpose not in (Purpose.CONFIRMATION, Purpose.BOUND)
                and not is_sure_guess
            ):
                if invalid.too_little_clean:
                    self.bracket.note_unclean(load_fps, offered_fps=invalid.offered_fps)
                else:
                    self.bracket.note_above_ceiling(load_fps, offered_fps=invalid.offered_fps)
            self._report_finished(self.trials[-1])
            if is_exhausted or trial.result.is_pass or is_lost:
                return trial

    def _note_pass(
        self, load_fps: float, purpose: Purpose, result: TrialResult, *, is_full_length: bool
    ) -> None:
        if purpose is Purpose.BOUND:
            refused = (t.load_fps for t in self.trials if t.result.verdict is Verdict.FAIL)
            self.bracket.take_back_fail(load_fps, failed=refused, is_full_length=is_full_length)
            return
        if is_full_length and doubted_sustainable_fps(self.goal, load_fps, result) is not None:
            # The queue is too deep for full-length trials as well: no short one shows anything.
            self.bracket.doubted.clear()
            self.are_short_trials_trusted = False
        is_doubtful = not is_full_length and doubted_sustainable_fps(self.goal, load_fps, result) is not None
        if is_doubtful and load_fps > self.goal.lowest_fps:
            self.bracket.note_doubt(load_fps)
        else:
            self.bracket.note_pass(load_fps, is_full_length=is_full_length)

    def _measure(
        self, load_fps: float, purpose: Purpose, *, attempt: int, is_full_length: bool
    ) -> SearchTrial:
        duration_s = self.goal.final_duration_s if is_full_length else self.goal.duration_s
        if self.is_middle_length and not is_full_length:
            duration_s = sqrt(self.goal.duration_s * self.goal.final_duration_s)
        remaining_trials, left = self._estimate()
        least_s = self.overhead_s + (duration_s if self.trial_s is None else 0.0)
        self._report(
            TrialStarted(
                number=len(self.trials) + 1,
                purpose=purpose,
                attempt=attempt,
                rate_fps=load_fps,
                duration_s=duration_s,
                remaining_trials=max(1, remaining_trials),
                remaining_s=max(least_s, left.stated_s),
                remaining_most_s=left.stated_most_s,
            )
        )
        result = self.measurer.measure(duration_s, load_fps)
        trial = SearchTrial(
            number=len(self.trials) + 1,
            purpose=purpose,
            attempt=attempt,
            is_full_length=is_full_length,
            load_fps=load_fps,
            result=result,
        )
        self.trials.append(trial)
        return trial

    def _report_finished(self, trial: SearchTrial) -> None:
        remaining_trials, left = self._estimate()
        self._report(
            TrialFinished(
                trial=trial,
                lower_fps=self.bracket.lower_fps,
                upper_fps=self.bracket.upper_fps,
                remaining_trials=remaining_trials,
                remaining_s=left.stated_s,
                remaining_most_s=left.stated_most_s,
            )
        )

    def _estimate(self) -> tuple[int, TimeSpan]:
        if self.on_progress is None:
            return 0, TimeSpan.of(0.0)
        known: dict[str, Any] = {"overhead_s": self.overhead_s, "trial_s": self.trial_s}
        return estimate_left(self.goal, self.bracket, self.trials, run_rest=self._run_rest, **known)

    def _run_rest(self, device: Measurer) -> None:
        """What is to come, with another measurer; it leaves no trace here."""
        rest = replace(self, measurer=device, on_progress=None, trials=list(self.trials))
        rest.whole_loads = set(self.whole_loads)
        rest.bracket, rest.guide = deepcopy(self.bracket), deepcopy(self.guide)
        rest.run()

    def _report(self, event: SearchEvent) -> None:
        if self.on_progress is not None:
            self.on_progress(event)

    def _result(self, outcome: Outcome, throughput_fps: float | None = None) -> ThroughputResult:
        return ThroughputResult(
            goal=self.goal,
            outcome=outcome,
            throughput_fps=throughput_fps,
            upper_fps=self.bracket.upper_fps,
            trials=tuple(self.trials),
        )
