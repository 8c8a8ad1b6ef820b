# SPDX-License-Identifier: Apache-2.0
"""Station 8: the highest load that the tester itself keeps on this host (MLR-14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenhand.search.bracket import STEP_DOWN
from evenhand.trial import Measurer, TrialResult, Verdict

STEP_UP = 1.6
LOSSES_THAT_END_A_CLIMB = 2
"""One may be a stall of the host."""
CLOSE_ENOUGH = 1.1
"""A load this near to one that was kept is not worth a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterCeiling:
    """The highest load tried at which the tester kept its schedule; None if none down to the minimum."""

    rate_fps: float | None
    is_device_slower: bool = False
    """The device lost frames at that load: nothing above it was tried, and a search needs nothing above it."""
    trials: tuple[TrialResult, ...]


def find_tester_ceiling(
    measurer: Measurer,
    *,
    start_fps: float,
    max_fps: float,
    min_fps: float,
    duration_s: float,
    attempts: int = 2,
    on_trial: Callable[[TrialResult], None] | None = None,
) -> TesterCeiling:
    """Step down from `start_fps` until a trial is valid, or up from it as long as trials pass. Loads are per direction.

    After `attempts` INVALID trials the next load is a fifth lower, or what was really offered if that is lower still. Only INVALID lowers
    the load; a device that loses frames ends the way up, and nothing else. The trials never count as results of the DUT.
    """
    trials: list[TrialResult] = []

    def judge(load_fps: float, *, losses: int) -> Verdict:
        """PASS if one trial does, FAIL after so many valid ones that lost frames, INVALID after `attempts` of these."""
        lossy, invalid = 0, 0
        while lossy < losses and invalid < attempts:
            result = measurer.measure(duration_s, load_fps)
            trials.append(result)
            if on_trial is not None:
                on_trial(result)
            if result.is_pass:
                return Verdict.PASS
            lossy += result.is_valid
            invalid += not result.is_valid
        return Verdict.FAIL if lossy else Verdict.INVALID

    kept_fps: float | None = None
    load_fps, is_falling = start_fps, False
    while True:
        can_climb = not is_falling and load_fps < max_fps
        first = len(trials)
        verdict = judge(load_fps, losses=LOSSES_THAT_END_A_CLIMB if can_climb else 1)
        if verdict is not Verdict.INVALID:
            kept_fps = load_fps
            if verdict is Verdict.FAIL or not can_climb:
                return TesterCeiling(rate_fps=kept_fps, is_device_slower=verdict is Verdict.FAIL, trials=tuple(trials))
            load_fps = min(load_fps * STEP_UP, max_fps)
            continue
        is_falling = True
        offered_fps = max(result.offered_fps for result in trials[first:])
        load_fps = float(int(min(load_fps * STEP_DOWN, offered_fps)))
        if load_fps < min_fps or (kept_fps is not None and load_fps < kept_fps * CLOSE_ENOUGH):
            return TesterCeiling(rate_fps=kept_fps, trials=tuple(trials))
