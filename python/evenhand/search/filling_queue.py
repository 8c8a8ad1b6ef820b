# SPDX-License-Identifier: Apache-2.0
"""Station 8: what a trial in which a queue was filling says of the limit."""

from __future__ import annotations

from evenhand.search.model import ThroughputGoal
from evenhand.trial import TrialResult


def doubted_sustainable_fps(goal: ThroughputGoal, load_fps: float, result: TrialResult) -> float | None:
    """The highest load that the goal allows in the long run, if a queue that was filling says that this one
    is above it."""
    if result.sustainable_fps is None:
        return None
    allowed_fps = result.sustainable_fps / (1 - goal.loss_ratio)
    return allowed_fps if allowed_fps < load_fps else None


def hidden_fps(goal: ThroughputGoal, load_fps: float, result: TrialResult, sustainable_fps: float) -> float:
    """How much more than in the long run a full-length trial allows, since a queue takes the difference. 0 if
    it did not overflow: then its depth is not known."""
    if result.is_pass:
        return 0.0
    sending_s = result.sent_s
    held_frames = (load_fps * (1 - result.loss_ratio) - sustainable_fps) * sending_s
    return max(0.0, held_frames) / goal.final_duration_s
