# SPDX-License-Identifier: Apache-2.0
"""Station 8, search: pure functions over a `Measurer`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.search.bisection import LengthBracket, find_largest
    from evenhand.search.bracket import whole_load
    from evenhand.search.ceiling import LOSSES_THAT_END_THE_WAY_UP, TesterCeiling, find_tester_ceiling
    from evenhand.search.choice import (
        DUT_GONE,
        Goal,
        Role,
        SearchHead,
        SearchResult,
        Tst009Goal,
        expected_search_s,
        run_search,
    )
    from evenhand.search.classification import (
        Bounds,
        LoadClass,
        Observation,
        classify,
        conditional_loss_ratio,
        relevant_bounds,
    )
    from evenhand.search.estimate import LIKELY_SHARE, LikelyDevice, TrialTime
    from evenhand.search.mlr import find_goals
    from evenhand.search.mlr_model import GoalResult, MlrGoal, MlrGoals, MlrResult
    from evenhand.search.model import (
        DEFAULT_INVALID_RETRIES,
        DEFAULT_PATIENCE,
        FULL_LENGTH_S,
        Outcome,
        ProgressCallback,
        SearchEvent,
        ThroughputGoal,
        ThroughputResult,
        TrialFinished,
        TrialStarted,
        is_outcome_at_least,
    )
    from evenhand.search.search_trial import (
        DirectionLoss,
        InvalidAttempts,
        Purpose,
        SearchTrial,
        sum_of_losses,
    )
    from evenhand.search.throughput import find_throughput
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "bisection": ("LengthBracket", "find_largest"),
            "bracket": ("whole_load",),
            "ceiling": ("LOSSES_THAT_END_THE_WAY_UP", "TesterCeiling", "find_tester_ceiling"),
            "choice": (
                "DUT_GONE",
                "Goal",
                "Role",
                "SearchHead",
                "SearchResult",
                "Tst009Goal",
                "expected_search_s",
                "run_search",
            ),
            "classification": (
                "Bounds",
                "LoadClass",
                "Observation",
                "classify",
                "conditional_loss_ratio",
                "relevant_bounds",
            ),
            "estimate": ("LIKELY_SHARE", "LikelyDevice", "TrialTime"),
            "mlr": ("find_goals",),
            "mlr_model": ("GoalResult", "MlrGoal", "MlrGoals", "MlrResult"),
            "model": (
                "DEFAULT_INVALID_RETRIES",
                "DEFAULT_PATIENCE",
                "FULL_LENGTH_S",
                "Outcome",
                "ProgressCallback",
                "SearchEvent",
                "ThroughputGoal",
                "ThroughputResult",
                "TrialFinished",
                "TrialStarted",
                "is_outcome_at_least",
            ),
            "search_trial": ("DirectionLoss", "InvalidAttempts", "Purpose", "SearchTrial", "sum_of_losses"),
            "throughput": ("find_throughput",),
        },
    )


__all__ = [
    "DEFAULT_INVALID_RETRIES",
    "DEFAULT_PATIENCE",
    "DUT_GONE",
    "FULL_LENGTH_S",
    "LIKELY_SHARE",
    "LOSSES_THAT_END_THE_WAY_UP",
    "Bounds",
    "DirectionLoss",
    "Goal",
    "GoalResult",
    "InvalidAttempts",
    "LengthBracket",
    "LikelyDevice",
    "LoadClass",
    "MlrGoal",
    "MlrGoals",
    "MlrResult",
    "Observation",
    "Outcome",
    "ProgressCallback",
    "Purpose",
    "Role",
    "SearchEvent",
    "SearchHead",
    "SearchResult",
    "SearchTrial",
    "TesterCeiling",
    "ThroughputGoal",
    "ThroughputResult",
    "TrialFinished",
    "TrialStarted",
    "TrialTime",
    "Tst009Goal",
    "classify",
    "conditional_loss_ratio",
    "expected_search_s",
    "find_goals",
    "find_largest",
    "find_tester_ceiling",
    "find_throughput",
    "is_outcome_at_least",
    "relevant_bounds",
    "run_search",
    "sum_of_losses",
    "whole_load",
]
