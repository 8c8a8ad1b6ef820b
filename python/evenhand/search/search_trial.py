# SPDX-License-Identifier: Apache-2.0
"""Station 8: a trial as part of a search: why it was made, and which attempt it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from evenhand.trial import TrialResult


class Purpose(StrEnum):
    """Why a trial was made."""

    MAXIMUM = "maximum"
    SEARCH = "search"
    CONFIRMATION = "confirmation"
    KNOWN = "known"
    """A trial at a load that is known from before, full-length: it is to be proven anew."""
    BOUND = "bound"
    """A trial at the lowest load that failed, to the end: the trial that failed there was stopped early, and
    a queue may have stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrial:
    """One trial within a search."""

    number: int
    """Number from 1, in the order in which they were made."""
    purpose: Purpose
    attempt: int
    """1, or 2 and more after INVALID trials at the same load, or lossy ones that are verified."""
    is_full_length: bool
    load_fps: float
    """The load that the search asked for. Where it is no even load, the trial's own document has what came of
    it: of bursts a whole number of intervals."""
    result: TrialResult

    def to_document(self) -> dict[str, Any]:
        """As `--json` of a verb has it."""
        return {
            "number": self.number,
            "purpose": str(self.purpose),
            "attempt": self.attempt,
            "is_full_length": self.is_full_length,
            "result": self.result.raw,
        }


def numbered_documents(trials: Iterable[SearchTrial]) -> list[dict[str, Any]]:
    """Documents of the trials of several searches, which are counted anew from 1."""
    return [replace(trial, number=number).to_document() for number, trial in enumerate(trials, start=1)]
