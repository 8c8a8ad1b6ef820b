# SPDX-License-Identifier: Apache-2.0
"""Procedure: the tester's own ceiling with ports that are open (MLR-14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from evenhand.base.units import format_duration
from evenhand.procedure.events import Began, Measured, OnEvent, ignore
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import Role, TesterCeiling, find_tester_ceiling, whole_load
from evenhand.trial import CEILING_WAITS, Limits, Measurer, TrialResult

START_FPS = 1e6
"""Load at which ports without a line rate begin; up from there by doubling."""
HIGHEST_FPS = 150e6
"""A load above the maximum of 100 Gbit/s with the smallest frames."""
DUT_WAY, LOOPED_WAY = "dut", "looped"
LEAST_SHARE = 0.01
MakeMeasurer = Callable[[OpenTester, OnEvent], Measurer]
"""Makes trials of a kind of their own with a tester."""
ATTEMPTS = 3
"""A host takes a CPU away now and then: that a load is kept once shows that it can be."""
EXPECTED_LOADS = 8
"""Number of loads, for the estimate of the time left only."""
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingGoal:
    """How to look for the ceiling. Loads are per direction."""

    max_fps: float | None
    """None: the line rate, or none at all where that is not known."""
    min_fps: float | None
    """None: a hundredth of the first load."""
    duration_s: float
    precision: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingEntry:
    """The tester's ceiling on one way."""

    way: str
    """Through the DUT, or looped."""
    profile: Profile
    ceiling: TesterCeiling
    duration_s: float
    """Duration of each trial."""
    cpus: tuple[int, ...]
    """The tester's."""
    limits: Limits
    """Limits by which the trials were judged."""

    def to_document(self) -> dict[str, Any]:
        """For `--json` (contract/check.schema.json)."""
        trials = [
            {
                "intended_fps_per_direction": trial.intended_fps,
                "offered_fps_per_direction": trial.offered_fps,
                "verdict": str(trial.verdict),
                "loss_ratio": trial.loss_ratio,
                "reasons": [{"code": reason.code, "text": reason.text} for reason in trial.reasons],
            }
            for trial in self.ceiling.trials
        ]
        return {
            "way": self.way,
            **self.profile.to_document(),
            "cpus": list(self.cpus),
            "duration_s": self.duration_s,
            "limits": self.limits.to_contract(),
            **self.ceiling.to_document(),
            "trials": trials,
        }


def measure_ceiling(
    tester: OpenTester,
    cpus: Sequence[int],
    goal: CeilingGoal,
    *,
    way: str,
    on_event: OnEvent = ignore,
    limits: Limits = DEFAULT_LIMITS,
    ending_losses: int = 0,
    kept_fps: float | None = None,
    on_result: Callable[[TrialResult], None] = lambda result: None,
    make_measurer: MakeMeasurer | None = None,
) -> CeilingEntry:
    """The highest load that this tester keeps. Begins at the maximum where there is one, else at 1 Mfps.

    Args:
        way: `DUT_WAY` or `LOOPED_WAY`: without a DUT, a lost frame was lost by the tester.
        ending_losses: Go no further up than to a load at which the DUT lost frames in so many trials; 0: go
            on.
        kept_fps: A load that the tester has kept before; only whether it keeps more is found then.
        on_result: Gets each trial when it has ended.
        make_measurer: Makes what the trials are made with of a tester; default: trials of even loads.
    """
    profile = tester.profile
    maximum_fps = goal.max_fps
    if maximum_fps is not None or profile.theoretical_fps is not None:
        maximum_fps = choose_maximum(goal.max_fps, profile, where="max_fps")
    start_fps = START_FPS if maximum_fps is None else maximum_fps
    if goal.min_fps is not None:
        start_fps = max(start_fps, goal.min_fps)
    if kept_fps is not None:
        start_fps = min(whole_load(kept_fps / (1 - goal.precision)), maximum_fps or HIGHEST_FPS)
    quick = replace(tester, waits=CEILING_WAITS, limits=limits)
    measurer = quick.measurer(on_event) if make_measurer is None else make_measurer(quick, on_event)
    overhead_s = getattr(measurer, "overhead_s", CEILING_WAITS.total_s)
    what = "the tester's ceiling" + (", looped" if way == LOOPED_WAY else "")
    on_event(Began(what=what, remaining_s=EXPECTED_LOADS * (goal.duration_s + overhead_s)))

    def on_trial(result: TrialResult) -> None:
        on_result(result)
        on_event(Measured(what="tester, looped" if way == LOOPED_WAY else "tester", result=result))

    ceiling = find_tester_ceiling(
        measurer,
        start_fps=start_fps,
        max_fps=maximum_fps or HIGHEST_FPS,
        min_fps=goal.min_fps or start_fps * LEAST_SHARE,
        duration_s=goal.duration_s,
        precision=goal.precision,
        attempts=ATTEMPTS,
        is_loss_ours=way == LOOPED_WAY,
        ending_losses=ending_losses,
        kept_fps=kept_fps,
        on_trial=on_trial,
    )
    return CeilingEntry(
        way=way, profile=profile, ceiling=ceiling, duration_s=goal.duration_s, cpus=tuple(cpus), limits=limits
    )


def record_ceiling(
    recorder: Recorder | None,
    tester: OpenTester,
    label: str,
    *,
    goal: Mapping[str, Any],
    find: Callable[[Callable[[TrialResult], None]], TesterCeiling],
) -> TesterCeiling:
    """What `find` finds, kept as a search of its own.

    Args:
        label: See `SearchHead`; also for `goal`.
        find: Calls what it is given with each trial that has ended.
    """
    with recording(recorder, tester, label, kind="ceiling", goal=goal, role=Role.CEILING) as record:
        numbers = count(1)
        ceiling = find(lambda result: record.add_result(result, number=next(numbers), purpose="ceiling"))
        record.finish_with(
            "found" if ceiling.rate_fps else "tester_limit", {"ceiling_fps_per_direction": ceiling.rate_fps}
        )
    return ceiling


def expected_s(goal: CeilingGoal) -> float:
    """All trials of one way."""
    return EXPECTED_LOADS * (goal.duration_s + CEILING_WAITS.total_s)


def expected_parts(goal: CeilingGoal) -> list[str]:
    """What takes most of that time, for people."""
    return [f"about {EXPECTED_LOADS} trials of {format_duration(goal.duration_s)}"]
