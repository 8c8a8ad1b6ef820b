# SPDX-License-Identifier: Apache-2.0
"""Results: what the goals of all procedures have that are not searches themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.validation.document import to_document
from evenhand.base.validation.typed_fields import check_types
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureGoal:
    """How often INVALID trials are repeated."""

    invalid_retries: int = DEFAULT_INVALID_RETRIES
    """How often an INVALID trial is repeated, if the tester did not offer the load; as in searches."""
    patience: int = DEFAULT_PATIENCE
    """The same if the load was offered, but the host disturbed the trial for a moment."""

    def __post_init__(self) -> None:
        check_types(self)
        self.check()
        if min(self.invalid_retries, self.patience) < 0:
            raise RequestError(
                "repetitions of INVALID trials: must be 0 or more",
                code="procedure.out-of-range",
                where="invalid_retries, patience",
            )

    def to_document(self) -> dict[str, Any]:
        """As run files have it."""
        return to_document(self)

    def check(self) -> None:
        """RequestError for values that no such test can have. Their types are right."""


def check_above_zero(value: float, what: str, *, where: str, next_step: str = "Write 1Mfps.") -> None:
    """RequestError unless it is. Infinite is a value only where `check_types` allows it.

    Args:
        what: The value, for people: `rate 0 fps`.
    """
    if not value > 0:
        raise RequestError(
            f"{what}: must be greater than 0", code="procedure.out-of-range", where=where, next_step=next_step
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
