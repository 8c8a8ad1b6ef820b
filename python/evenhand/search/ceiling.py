# SPDX-License-Identifier: Apache-2.0
"""Station 8: the highest load that the tester itself keeps on this host (MLR-14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenhand.search.bracket import STEP_DOWN
from evenhand.trial import Measurer, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterCeiling:
    """The first load, from the top, at which the tester kept its schedule; None if none down to the minimum."""

    rate_fps: float | None
    trials: tuple[TrialResult, ...]


def find_tester_ceiling(
    measurer: Measurer,
    *,
    max_fps: float,
    min_fps: float,
    duration_s: float,
    attempts: int = 2,
    on_trial: Callable[[TrialResult], None] | None = None,
) -> TesterCeiling:
    """Step down from `max_fps` until a trial is valid, whether frames were lost or not. Loads are per direction.

    After `attempts` INVALID trials the next load is a fifth lower, or what was really offered if that is lower still.
    The DUT has no say in it: only INVALID moves the load, and the trials never count as results of the DUT.
    """
    trials: list[TrialResult] = []
    load_fps = max_fps
    while load_fps >= min_fps:
        for _ in range(attempts):
            result = measurer.measure(duration_s, load_fps)
            trials.append(result)
            if on_trial is not None:
                on_trial(result)
            if result.is_valid:
                return TesterCeiling(rate_fps=load_fps, trials=tuple(trials))
        offered_fps = max(result.offered_fps for result in trials[-attempts:])
        load_fps = float(int(min(load_fps * STEP_DOWN, offered_fps)))
    return TesterCeiling(rate_fps=None, trials=tuple(trials))
