# SPDX-License-Identifier: Apache-2.0
"""The tester's own ceiling with ports that are open (MLR-14): its goal, and its trials with progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.cli.setup import OpenTester, choose_maximum
from evenhand.errors import RequestError
from evenhand.progress import ProgressDisplay
from evenhand.report.check import LOOPED_WAY, CeilingEntry
from evenhand.search import find_tester_ceiling
from evenhand.trial import EngineMeasurer, Limits, TrialResult, Waits
from evenhand.units import parse_duration, parse_rate, parse_ratio

START_FPS = 1e6
"""Where ports without a line rate begin; up from there by doubling."""
HIGHEST_FPS = 150e6
"""Above the maximum of 100 Gbit/s with the smallest frames."""
LEAST_SHARE = 0.01
ATTEMPTS = 3
"""A host takes a CPU away now and then: that a load is kept once shows that it can be."""
EXPECTED_LOADS = 8
"""For the estimate of the time left only."""
DEFAULT_LIMITS = Limits()
CEILING_WAITS = Waits(after_routing_s=0.0, after_learning_s=0.1, residual_s=0.2, restabilize_s=0.1)
"""Short: a ceiling is no result of a DUT, and what it still holds of one trial has no say in the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingGoal:
    """How to look for the ceiling. Loads are per direction."""

    max_fps: float | None
    """None: the line rate, or none at all where that is not known."""
    min_fps: float | None
    """None: a hundredth of the first load."""
    duration_s: float
    precision: float


def read_ceiling_goal(*, maximum_rate: str | None, minimum_rate: str | None, duration: str, precision: str) -> CeilingGoal:
    """From the options. RequestError names the option."""
    goal = CeilingGoal(
        max_fps=None if maximum_rate is None else parse_rate(maximum_rate, where="--maximum-rate"),
        min_fps=None if minimum_rate is None else parse_rate(minimum_rate, where="--minimum-rate"),
        duration_s=parse_duration(duration, where="--duration"),
        precision=parse_ratio(precision, where="--precision"),
    )
    if goal.duration_s <= 0:
        raise RequestError(f"{duration!r} must be above 0", where="--duration", next_step="Write a duration like 1s.")
    if not 0 < goal.precision < 1:
        raise RequestError(f"{precision!r} must be above 0 and below 1", where="--precision", next_step="Use 5%.")
    if goal.max_fps is not None and goal.min_fps is not None and goal.min_fps > goal.max_fps:
        raise RequestError(
            f"{minimum_rate!r} is above the maximum rate {maximum_rate!r}",
            where="--minimum-rate",
            next_step="Use a lower one, or leave it out.",
        )
    return goal


def measure_ceiling(
    tester: OpenTester,
    cpus: Sequence[int],
    goal: CeilingGoal,
    *,
    way: str,
    progress: ProgressDisplay,
    limits: Limits = DEFAULT_LIMITS,
) -> CeilingEntry:
    """The highest load that this tester keeps. Begins at the maximum where there is one, else at 1 Mfps.

    Args:
        way: `DUT_WAY` or `LOOPED_WAY`: without a DUT, a lost frame was lost by the tester.
    """
    profile = tester.profile
    maximum_fps = goal.max_fps
    if maximum_fps is not None or profile.theoretical_fps is not None:
        maximum_fps = choose_maximum(goal.max_fps, profile, where="--maximum-rate")
    start_fps = START_FPS if maximum_fps is None else maximum_fps
    if goal.min_fps is not None:
        start_fps = max(start_fps, goal.min_fps)
    measurer = EngineMeasurer(
        session=tester.session, directions=profile.directions, waits=CEILING_WAITS, limits=limits,
        on_event=progress.on_engine_event,
    )  # fmt: skip
    what = "the tester's ceiling" + (", looped" if way == LOOPED_WAY else "")
    progress.begin_single_trial(what, EXPECTED_LOADS * (goal.duration_s + measurer.overhead_s))

    def on_trial(result: TrialResult) -> None:
        progress.on_single_trial("tester, looped" if way == LOOPED_WAY else "tester", result)

    ceiling = find_tester_ceiling(
        measurer, start_fps=start_fps, max_fps=maximum_fps or HIGHEST_FPS, min_fps=goal.min_fps or start_fps * LEAST_SHARE,
        duration_s=goal.duration_s, precision=goal.precision, attempts=ATTEMPTS, is_loss_ours=way == LOOPED_WAY, on_trial=on_trial,
    )  # fmt: skip
    return CeilingEntry(way=way, profile=profile, ceiling=ceiling, duration_s=goal.duration_s, cpus=tuple(cpus), limits=limits)
