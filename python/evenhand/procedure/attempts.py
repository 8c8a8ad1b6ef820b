# SPDX-License-Identifier: Apache-2.0
"""Procedure: one trial that counts, after INVALID ones perhaps, for procedures that are not searches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evenhand.procedure.events import Began, Measured, OnEvent
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import SearchRecord
from evenhand.search import InvalidAttempts
from evenhand.trial import Load, LoadMeasurer, TrialResult


@dataclass(slots=True, kw_only=True)
class Attempts:
    """Makes trials of one purpose; each is reported and kept before the next begins (D11)."""

    measurer: LoadMeasurer
    on_event: OnEvent
    record: SearchRecord
    purpose: str
    overhead_s: float
    """Time that a trial takes in addition to sending, in s; for the estimate of the time left only."""
    invalid_retries: int
    patience: int
    number: int = 0
    """Number of the last trial."""
    _valid: int = 0
    """Trials that were."""

    def measure(
        self, *, what: str, load: Load, is_full_length: bool, later: int = 0, later_s: float = 0.0
    ) -> Iterator[TrialResult]:
        """Trials at one load: the last one is valid, or was stopped, or there may be no more of them
        (R2544-39).

        Args:
            what: Is measured, for people.
            later: Number of loads or repetitions to come that take as long.
            later_s: Expected time of all that comes in addition.
        """
        invalid = InvalidAttempts(invalid_retries=self.invalid_retries, patience=self.patience)
        while True:
            self.number += 1
            again = f", attempt {invalid.count + 1}" if invalid.count else ""
            remaining_s = (1 + later) * (load.sending_s + self.overhead_s) + later_s
            if self._valid:  # what is to come is repeated as often as what was
                remaining_s *= max(1.0, (self.number - 1) / self._valid)
            self.on_event(
                Began(
                    what=f"trial {self.number}: {what}, {load}{again}",
                    remaining_s=remaining_s,
                    number=self.number,
                )
            )
            result = self.measurer.offer(load)
            self.record.add_result(
                result,
                number=self.number,
                purpose=self.purpose,
                attempt=invalid.count + 1,
                is_full_length=is_full_length,
            )
            self.on_event(Measured(what=what, result=result, load=load))
            self._valid += result.is_valid
            yield result
            if result.is_valid or result.was_stopped:
                return
            invalid.note(result)
            if invalid.are_exhausted:
                return

    def repeat(self, times: int, load: Load, *, is_full_length: bool) -> tuple[tuple[TrialResult, ...], ...]:
        """The trials of each repetition at one load; the last one of each counts. A repetition that was
        stopped or stayed INVALID is the last: the tester will not keep that load the next time either."""
        repetitions: list[tuple[TrialResult, ...]] = []
        for number in range(1, times + 1):
            what = f"repetition {number} of {times}"
            made = self.measure(what=what, load=load, later=times - number, is_full_length=is_full_length)
            repetitions.append(tuple(made))
            last = repetitions[-1][-1]
            if last.was_stopped or not last.is_valid:
                break
        return tuple(repetitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTrials:
    """Results of a test that repeats a trial at one load."""

    profile: Profile
    goal: Any
    """Says how many `repetitions` are wanted."""
    repetitions: tuple[tuple[TrialResult, ...], ...]
    """The trials of each repetition in order; the last one counts, if it is valid."""

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """All of them, in order."""
        return tuple(trial for repetition in self.repetitions for trial in repetition)

    @property
    def valid(self) -> tuple[TrialResult, ...]:
        """The valid trial of each repetition that has one."""
        return tuple(repetition[-1] for repetition in self.repetitions if repetition[-1].is_valid)

    @property
    def is_complete(self) -> bool:
        """Every repetition has a valid trial."""
        return bool(len(self.valid) == self.goal.repetitions)

    @property
    def outcome(self) -> str:
        """`measured`, `tester_ceiling` if a repetition had no valid trial, or `stopped`."""
        if any(trial.was_stopped for trial in self.trials):
            return "stopped"
        return "measured" if self.is_complete else "tester_ceiling"
