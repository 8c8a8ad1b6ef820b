# SPDX-License-Identifier: Apache-2.0
"""Procedure: bursty traffic (RFC 2544, 21): the smallest interval between bursts without loss, by the size of
the bursts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.option import DURATION, FRAME_COUNTS, RATE, RATIO, Option, values_of
from evenhand.base.units import format_count, format_duration
from evenhand.procedure.burst_goal import BurstGoal
from evenhand.procedure.burst_result import BurstInterval, BurstIntervals
from evenhand.procedure.descriptor import (
    Figure,
    FrameSizes,
    KnownThroughput,
    LeftOpen,
    Procedure,
    Section,
    as_number,
    finite,
)
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.expected_time import A_LINE_RATE_FPS, count_of, search_s
from evenhand.procedure.later import followed_by
from evenhand.procedure.limits import Retries
from evenhand.procedure.maximum import find_maximum
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester
from evenhand.search import Outcome, SearchEvent, SearchTrial, ThroughputResult, TrialFinished, run_search
from evenhand.trial import Load, LoadMeasurer, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstMeasurer:
    """A `Measurer` whose load comes in bursts: what a search takes for a rate is the mean over bursts and
    silence."""

    measurer: LoadMeasurer
    frames: int
    rate_fps: float

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`. The trial has a whole number of intervals, and lasts for this duration at
        least."""
        interval_s = max(self.frames / rate_fps, self.frames / self.rate_fps)
        return self.measurer.offer(Load.bursts(self.frames, self.rate_fps, interval_s, duration_s))


def measure_burst(
    tester: OpenTester,
    goal: BurstGoal,
    *,
    name: str = "burst",
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> BurstIntervals:
    """A search for each size of bursts.

    Args:
        name: The name of the searches in the run file, before the size.

    Raises:
        RequestError: The rate is above the line rate.
        HostError: The ports do not know their line rate, the goal has none, and the tester keeps no load.
        EvenhandError: The engine could not make a trial at all.
    """
    tester, rate_fps = find_maximum(
        tester, goal.rate_fps, where="rate_fps", on_event=on_event, recorder=recorder
    )
    goal = replace(goal, rate_fps=rate_fps)
    tester = replace(tester, limits=replace(tester.limits, loss_ratio=0.0))
    measurer = tester.measurer(on_event)
    intervals: list[BurstInterval] = []
    on_event(Note(text="Loads below are averages over bursts and pauses."))
    for number, frames in enumerate(goal.burst_frames, start=1):
        later_s = _searches_s(goal, goal.burst_frames[number:], measurer.overhead_s)
        on_event(Note(text=f"bursts of {format_count(frames)} frames:", is_heading=True))
        document = {**goal.to_document(), "burst_frames": frames}
        with recording(recorder, tester, f"{name}, {frames} frames", kind="burst", goal=document) as record:
            found = search_interval(
                measurer,
                goal,
                frames,
                keep=record.add_trial,
                on_event=followed_by(on_event, later_s),
                overhead_s=measurer.overhead_s,
            )
            record.finish_with(str(found.outcome), found.to_document())
        intervals.append(found)
        if found.outcome is Outcome.STOPPED:
            break
    return BurstIntervals(profile=tester.profile, goal=goal, intervals=tuple(intervals))


def search_interval(
    measurer: LoadMeasurer,
    goal: BurstGoal,
    frames: int,
    *,
    keep: Callable[[SearchTrial], None] = lambda trial: None,
    on_event: OnEvent = ignore,
    overhead_s: float = 0.0,
) -> BurstInterval:
    """One search, for bursts of that size.

    Args:
        keep: Gets each trial before the next begins.
    """

    def on_progress(event: SearchEvent) -> None:
        if isinstance(event, TrialFinished):
            keep(event.trial)
            event = replace(event, quantity="mean load")
        on_event(event)

    bursts = BurstMeasurer(measurer=measurer, frames=frames, rate_fps=goal.rate_fps)
    result = run_search(bursts, goal.search_goal(frames), on_progress=on_progress, overhead_s=overhead_s)
    assert isinstance(result, ThroughputResult)
    return BurstInterval(frames=frames, rate_fps=goal.rate_fps, search=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstOptions:
    """Sizes of bursts, and goal of the search for their interval."""

    burst: Annotated[
        str,
        Option(
            grammar=FRAME_COUNTS,
            sets="burst_frames",
            help="Number of frames in a burst; each number is searched separately.",
        ),
    ] = "16,64,256,1024"
    rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            sets="rate_fps",
            help="Rate within a burst, per direction. Default: the line rate, or the tester's own ceiling"
            " where the ports do not know theirs. A lower rate is a deviation.",
        ),
    ] = None
    duration: Annotated[
        str, Option(grammar=DURATION, sets="duration_s", help="Duration of the trials of a search.")
    ] = "5s"
    final_duration: Annotated[
        str,
        Option(
            grammar=DURATION, sets="final_duration_s", help="Duration of the trial that confirms a result."
        ),
    ] = "60s"
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = "0.5%"


def _goal(options: BurstOptions, retries: Retries, known: KnownThroughput | None) -> BurstGoal:
    return BurstGoal(**values_of(options), **retries)


def _run(bed: Any, goal: BurstGoal, options: BurstOptions, **conditions: Any) -> BurstIntervals:
    found: BurstIntervals = bed.burst(goal=goal, **conditions)
    return found


def _value(result: Mapping[str, Any]) -> float | None:
    """The interval in s; with several sizes of bursts, that of the first one."""
    interval_s = as_number((result.get("intervals") or [result])[0].get("interval_s"))
    return None if interval_s is None else interval_s * 1e6


def _left_open(result: Mapping[str, Any]) -> LeftOpen:
    """Bursts closer together than the largest interval that lost frames were not seen to pass. None that
    lost any: the bursts followed each other without a gap."""
    failed_s = finite((result.get("intervals") or [result])[0].get("failed_interval_s"))
    return LeftOpen(low=0.0 if failed_s is None else failed_s * 1e6)


def _expected_s(goal: BurstGoal, waits_s: float) -> float:
    return _searches_s(goal, goal.burst_frames, waits_s)


def _searches_s(goal: BurstGoal, sizes: Sequence[int], waits_s: float) -> float:
    """Time of the searches for these sizes of bursts."""
    if math.isinf(goal.rate_fps):
        goal = replace(goal, rate_fps=A_LINE_RATE_FPS)
    return sum(search_s(goal.search_goal(frames), waits_s) for frames in sizes)


def _expected_parts(goal: BurstGoal) -> Iterable[str]:
    yield f"a search for each of {count_of(len(goal.burst_frames), 'burst size')}"


def _describe(goal: BurstGoal, load: str | None) -> str:
    bursts = f"intervals of bursts of {', '.join(map(str, goal.burst_frames))} frames"
    return f"{bursts}; trials of {format_duration(goal.duration_s)}"


BURST = Procedure(
    name="burst",
    verb="burst",
    help="Find the smallest interval between bursts that loses nothing (RFC 2544 section 21), for bursts of"
    " 16,"
    " 64, 256 and 1024 frames.",
    example="evenhand burst lab.toml --burst 16,64 --run burst.evenhand",
    options=BurstOptions,
    make_goal=_goal,
    run=_run,
    figure=Figure(name="smallest interval between bursts", unit="us", is_higher_better=False),
    section=Section.BURSTS,
    value_of=_value,
    left_open=_left_open,
    expected_s=_expected_s,
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="rate_fps",
)
