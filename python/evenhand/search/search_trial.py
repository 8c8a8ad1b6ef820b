# SPDX-License-Identifier: Apache-2.0
"""Station 8: a trial as part of a search: why it was made, and which attempt it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evenhand.trial import TrialResult


class Purpose(StrEnum):
    """Why a trial was made."""

    MAXIMUM = "maximum"
    SEARCH = "search"
    CONFIRMATION = "confirmation"
    KNOWN = "known"
    """At a load that is known from before, full-length: it is to be proven anew."""
    BOUND = "bound"
    """At the lowest load that failed, to the end: the trial that failed there was stopped early, and a queue
    may have stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrial:
    """One trial within a search."""

    number: int
    """From 1, in the order in which they were made."""
    purpose: Purpose
    attempt: int
    """1, or 2 and more after INVALID trials at the same load, or lossy ones that are verified."""
    is_full_length: bool
    result: TrialResult
