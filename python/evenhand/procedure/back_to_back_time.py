# SPDX-License-Identifier: Apache-2.0
"""Procedure: how long a search for the longest burst takes (RFC 9004)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.procedure.back_to_back_goal import RESIDUAL_S, BackToBackGoal
from evenhand.procedure.back_to_back_result import BurstSearch
from evenhand.procedure.expected_time import A_LINE_RATE_FPS, search_s
from evenhand.search import ThroughputGoal

LIKELY_AGAIN = 3
"""Bursts of a repetition that begins at what an earlier one found, if the DUT's buffer is about the same."""


def expected_s(goal: BackToBackGoal, waits_s: float) -> float:
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    first_s = 0.0
    if goal.throughput_fps is None:
        first_s = search_s(goal.throughput_goal or ThroughputGoal(max_fps=rate_fps), waits_s)
    return first_s + bursts_s(goal, waits_s)


def bursts_s(goal: BackToBackGoal, waits_s: float) -> float:
    """All bursts. The first one is the longest, and each that loses frames is followed by half of it: all of
    them are twice as long, and are waited for as long. Later repetitions begin at what was found."""
    longest_s = 2 * goal.max_burst_s
    verified = 1 + goal.loss_verifications / 2
    first_s = longest_s + max(0.0, longest_s - RESIDUAL_S) + bursts_of(goal) * waits_s
    return verified * (first_s + (goal.repetitions - 1) * LIKELY_AGAIN * waits_s)


def later_bursts_s(goal: BackToBackGoal, made: Sequence[BurstSearch], overhead_s: float) -> float:
    """Repetitions after the present one, each with as many bursts as those that began at what was found."""
    again = made[1:]
    bursts = sum(len(search.trials) for search in again) / len(again) if again else LIKELY_AGAIN
    sent_s = made[-1].frames / goal.rate_fps if made and made[-1].frames else 0.0
    return (goal.repetitions - len(made) - 1) * bursts * (overhead_s + sent_s)


def bursts_of(goal: BackToBackGoal) -> int:
    """Number of bursts of one repetition."""
    rate_fps = A_LINE_RATE_FPS if math.isinf(goal.rate_fps) else goal.rate_fps
    return 1 + math.ceil(math.log2(max(2.0, goal.max_burst_s * rate_fps / goal.step_frames)))
