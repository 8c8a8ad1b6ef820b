# SPDX-License-Identifier: Apache-2.0
"""Station 8: how often a load is tried again after INVALID trials; the same rule in every search."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.trial import TrialResult


@dataclass(slots=True, kw_only=True)
class InvalidAttempts:
    """Counts the INVALID trials at one load, until that load is given up as the tester's limit (R2544-39)."""

    invalid_retries: int
    """Repetitions where the tester did not offer the load: it will hardly do so the next time."""
    patience: int
    """Repetitions where the load was offered, but a moment of the host spoiled the trial."""
    count: int = 0
    not_offered: int = 0
    offered_fps: float = 0.0
    """The most that was offered in one of them."""

    def note(self, result: TrialResult, *, is_patient: bool = False) -> None:
        """Count one INVALID trial.

        Args:
            is_patient: Whatever spoiled it, patience is called for: a whole search hangs on this trial.
        """
        self.count += 1
        self.not_offered += not (result.was_spoiled_by_a_moment or is_patient)
        self.offered_fps = max(self.offered_fps, result.offered_fps)

    @property
    def are_exhausted(self) -> bool:
        return self.not_offered > self.invalid_retries or self.count > self.patience
