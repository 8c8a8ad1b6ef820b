# SPDX-License-Identifier: Apache-2.0
"""Station 8: whether the FAIL that bounds a result may be that of a queue that stood still, where a trial was
stopped early."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from evenhand.search.search_trial import SearchTrial
from evenhand.trial import DirectionResult, TrialResult, Verdict

SMALLEST_QUEUE_SHARE = 1 / 512
"""Share of a direction's frames: with fewer missing, no queue of a DUT is stopped. One of 256 queues that is
keeps back twice as many of those that were sent since. Less would leave a doubt at loads that are 0.1 % too
high, where as many are lost."""
LOOKED_AT_FRAMES = 16384
"""Frames at the end of a trial, or those of half a second if that is more."""
PARTS = 5
"""Parts into which these frames are divided. A queue that is stopped keeps back its share of each, while
frames that are lost come in lumps, so the part with the median share decides. For one queue among 256 that is
more than the smallest share with a probability of 0.9998."""
LOOKED_AT_S = 0.5
_TENTH_S = 0.1


def leaves_doubt(result: TrialResult) -> bool:
    """Whether a FAIL that was stopped early may be patience that was taken for loss.

    The engine counts what was overtaken by later frames of the same direction. Those may have taken another
    queue of the DUT, while one queue was stopped. That queue then keeps back its share of everything up to
    the last frame; so if all that was sent last came back, what is missing before it was lost.
    """
    if result.verdict is not Verdict.FAIL or result.stopped_early_s is None:
        return False
    return any(
        _missing_to_the_end(direction, result.stopped_early_s) >= SMALLEST_QUEUE_SHARE
        for direction in result.directions.values()
    )


def is_bound_in_doubt(trials: Sequence[SearchTrial], load_fps: float) -> bool:
    """Whether no trial at this load failed without a doubt, and none was made to its end because of that."""
    failed = [
        trial.result
        for trial in trials
        if trial.load_fps == load_fps and trial.result.verdict is Verdict.FAIL
    ]
    return bool(failed) and all(leaves_doubt(result) for result in failed)


def _missing_to_the_end(direction: DirectionResult, sent_s: float) -> float:
    """The share of the last frames that did not come back, steadily; of all frames where the engine did not
    report when they were due."""
    offered = direction.offered_frames
    if offered == 0:
        return 1.0
    per_s = offered / sent_s
    tenths = direction.lost_by_tenth
    looked_at_s = max(LOOKED_AT_S, LOOKED_AT_FRAMES / per_s)
    first = max(0, int((sent_s - looked_at_s) / _TENTH_S))
    missing, last = tenths[first:], len(tenths) - first
    if sum(tenths) != direction.lost_frames or first == 0 or last < PARTS:
        return direction.lost_frames / offered
    # The last tenth may be a part of one, of a single frame at least.
    times_s = [_TENTH_S] * (last - 1) + [max(sent_s - (len(tenths) - 1) * _TENTH_S, 1 / per_s)]
    bounds = [part * last // PARTS for part in range(PARTS + 1)]
    return median(
        sum(missing[begin:end]) / (per_s * sum(times_s[begin:end])) for begin, end in pairwise(bounds)
    )
