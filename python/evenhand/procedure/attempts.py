# SPDX-License-Identifier: Apache-2.0
"""Procedure: one trial that counts, after INVALID ones perhaps, for procedures that are not searches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenhand.base.errors import RequestError
from evenhand.procedure.events import Began, Measured, OnEvent
from evenhand.procedure.record import SearchRecord
from evenhand.search import InvalidAttempts
from evenhand.trial import Load, LoadMeasurer, TrialResult


def check_attempts(invalid_retries: int, patience: int) -> None:
    """RequestError for fewer repetitions of INVALID trials than none."""
    if min(invalid_retries, patience) < 0:
        raise RequestError(
            "repetitions of INVALID trials: must be 0 or more",
            code="procedure.out-of-range",
            where="invalid_retries, patience",
        )


def check_repetitions(repetitions: int, usual: int) -> None:
    """RequestError for fewer than one. `usual`: the default."""
    if repetitions < 1:
        raise RequestError(
            f"{repetitions} repetitions: must be at least 1",
            code="procedure.out-of-range",
            where="repetitions",
            next_step=f"The default is {usual}.",
        )


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
