# SPDX-License-Identifier: Apache-2.0
"""Station 8: how long a binary search will still take."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from evenhand.search.bracket import LoadBracket
from evenhand.search.model import ThroughputGoal
from evenhand.search.search_trial import SearchTrial
from evenhand.trial import Verdict


def estimate_left(
    goal: ThroughputGoal,
    bracket: LoadBracket,
    trials: Sequence[SearchTrial],
    *,
    are_short_trials_trusted: bool,
    overhead_s: float,
) -> tuple[int, float]:
    """Trials and seconds to come, if loads are repeated as often as until now and the first confirmation
    holds.

    Args:
        trials: Trials that were made.
        overhead_s: Time that a trial takes in addition to sending.
    """
    if bracket.is_below_minimum or (bracket.is_confirmed and (bracket.is_narrow or bracket.is_at_maximum)):
        return 0, 0.0
    # A maximum that passed short is confirmed at once; a maximum not yet tried will most likely fail.
    searching = 0 if bracket.is_at_maximum else bracket.remaining_halvings() + (bracket.below_fps is None)
    search_s = goal.duration_s if are_short_trials_trusted else goal.final_duration_s
    is_confirmation_due = are_short_trials_trusted and goal.duration_s < goal.final_duration_s
    final = 1 if is_confirmation_due or searching == 0 else 0
    loads = sum(trial.attempt == 1 for trial in trials)
    trials_per_load = len(trials) / loads if loads else 1.0
    confirmations = _expected_confirmations(goal, trials) if is_confirmation_due else trials_per_load
    left = searching * trials_per_load + final * confirmations
    searching_s = searching * (search_s + overhead_s) * trials_per_load
    return ceil(left), searching_s + final * (goal.final_duration_s + overhead_s) * confirmations


def _expected_confirmations(goal: ThroughputGoal, trials: Sequence[SearchTrial]) -> float:
    """How many trials the confirmation takes, if a trial that is longer by a factor meets the same things
    that much more often."""
    invalid = sum(trial.result.verdict is Verdict.INVALID for trial in trials)
    if invalid == 0:
        return 1.0
    valid_share: float = (1 - invalid / (len(trials) + 1)) ** (goal.final_duration_s / goal.duration_s)
    return (1 - (1 - valid_share) ** (goal.patience + 1)) / valid_share
