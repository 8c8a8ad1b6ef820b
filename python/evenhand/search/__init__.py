# SPDX-License-Identifier: Apache-2.0
"""Station 8, search: pure functions over a `Measurer`."""

from evenhand.search.ceiling import TesterCeiling, find_tester_ceiling
from evenhand.search.model import (
    DEFAULT_INVALID_RETRIES,
    DEFAULT_PATIENCE,
    FULL_LENGTH_S,
    Outcome,
    Purpose,
    SearchEvent,
    SearchTrial,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    TrialStarted,
    describe_outcome,
)
from evenhand.search.throughput import ProgressCallback, find_throughput

__all__ = [
    "DEFAULT_INVALID_RETRIES",
    "DEFAULT_PATIENCE",
    "FULL_LENGTH_S",
    "Outcome",
    "ProgressCallback",
    "Purpose",
    "SearchEvent",
    "SearchTrial",
    "TesterCeiling",
    "ThroughputGoal",
    "ThroughputResult",
    "TrialFinished",
    "TrialStarted",
    "describe_outcome",
    "find_tester_ceiling",
    "find_throughput",
]
