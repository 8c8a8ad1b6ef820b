# SPDX-License-Identifier: Apache-2.0
"""Procedure: bursty traffic (RFC 2544, 21): the smallest interval between bursts without loss, by the size of
the bursts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, FRAME_COUNTS, RATE, RATIO, Option
from evenhand.base.units import format_count, format_duration
from evenhand.base.validation.document import at_key
from evenhand.procedure.descriptor import (
    DirectionChoice,
    Figure,
    FrameSizes,
    LeftOpen,
    Procedure,
    Section,
    goals_of,
)
from evenhand.procedure.events import Note, OnEvent, followed_by, ignore
from evenhand.procedure.expected_time import A_LINE_RATE_FPS, count_of, search_s
from evenhand.procedure.maximum import find_maximum
from evenhand.procedure.profile import (
    Profile,
    burst_rate_without_line_rate,
    collect_deviations,
    result_document,
)
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester
from evenhand.results.bursts import BurstFound
from evenhand.results.goal import ProcedureGoal, check_above_zero
from evenhand.search import (
    FULL_LENGTH_S,
    Outcome,
    SearchEvent,
    SearchTrial,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    run_search,
)
from evenhand.search.search_trial import numbered_documents
from evenhand.trial import Deviation, Load, LoadMeasurer, TrialResult

RFC_BURSTS = (16, 64, 256, 1024)
"""Frames of a burst (R2544-17)."""
MOST_BURST_FRAMES = 1_000_000
LEAST_BURSTS = 2
"""Fewest bursts of a trial: fewer have no interval between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstGoal(ProcedureGoal):
    """Sizes of bursts, and goal of the search for their interval."""

    burst_frames: tuple[int, ...] = RFC_BURSTS
    rate_fps: float = at_key("rate_fps_per_direction", math.inf)
    """Rate within a burst, per direction; UP_TO_LINE_RATE: the maximum theoretical frame rate. Less is a
    deviation."""
    precision: float = 0.005
    """The search ends when the bounds of the interval are no further apart than this share."""
    duration_s: float = 5.0
    """Length of the trials of a search."""
    final_duration_s: float = FULL_LENGTH_S
    """Length of the trial that confirms its result (R2544-20)."""

    def check(self) -> None:
        check_above_zero(self.rate_fps, f"rate {self.rate_fps} fps", where="rate_fps")
        if not self.burst_frames or len(set(self.burst_frames)) < len(self.burst_frames):
            raise RequestError(
                "no burst size, or the same size twice",
                code="procedure.not-burst-sizes",
                where="burst_frames",
                next_step="Write 16,64,256,1024.",
            )
        for frames in self.burst_frames:
            if not 1 <= frames <= MOST_BURST_FRAMES:
                raise RequestError(
                    f"bursts of {format_count(frames)} frames: must be 1 to"
                    f" {format_count(MOST_BURST_FRAMES)}",
                    code="procedure.out-of-range",
                    where="burst_frames",
                    next_step="Write 16,64,256,1024.",
                )
            self.search_goal(frames)

    @property
    def longest_trial_s(self) -> float:
        """Most that a sending phase takes: it has a whole number of intervals, and the longest is that of
        LEAST_BURSTS bursts in a trial of the search."""
        return self.final_duration_s + self.duration_s / LEAST_BURSTS

    def search_goal(self, frames: int) -> ThroughputGoal:
        """The goal for bursts of this size. The search is that for a throughput, by the mean load over bursts
        and silence.

        Raises RequestError if too few bursts fit into a trial.
        """
        least_fps = LEAST_BURSTS * frames / self.duration_s if self.duration_s > 0 else math.inf
        if self.duration_s > 0 and least_fps > self.rate_fps:
            raise RequestError(
                f"{LEAST_BURSTS} bursts of {format_count(frames)} frames do not fit into a trial",
                code="procedure.bursts-too-long",
                where="burst_frames, duration_s",
                next_step="Make the trials longer, or the bursts shorter.",
            )
        return ThroughputGoal(
            max_fps=self.rate_fps,
            min_fps=None
            if math.isinf(self.rate_fps)
            else min(self.rate_fps, max(self.rate_fps / 1000, least_fps)),
            precision=self.precision,
            duration_s=self.duration_s,
            final_duration_s=self.final_duration_s,
            stops_early=False,
            invalid_retries=self.invalid_retries,
            patience=self.patience,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstInterval:
    """Result for one size of bursts."""

    frames: int
    """Frames of one burst, per direction."""
    rate_fps: float
    """Rate within it."""
    search: ThroughputResult
    """The search, by the mean load."""

    @property
    def outcome(self) -> Outcome:
        """Outcome of the search. At the maximum, the bursts followed each other without a gap; below the
        minimum, no interval was without loss."""
        return self.search.outcome

    @property
    def mean_fps(self) -> float | None:
        """Mean load over bursts and silence, per direction, at the smallest interval; None if there is none,
        as at the tester's ceiling."""
        return None if self.outcome is Outcome.TESTER_CEILING else self.search.throughput_fps

    @property
    def interval_s(self) -> float | None:
        """The smallest interval without loss, from the start of a burst to the start of the next."""
        return None if self.mean_fps is None else self.frames / self.mean_fps

    @property
    def gap_s(self) -> float | None:
        """The same from the end of a burst to the start of the next (inter-burst gap, RFC 2285)."""
        return None if self.interval_s is None else max(0.0, self.interval_s - self.frames / self.rate_fps)

    @property
    def failed_interval_s(self) -> float | None:
        """The largest interval that lost frames."""
        return None if self.search.upper_fps is None else self.frames / self.search.upper_fps

    def to_document(self) -> dict[str, Any]:
        return {
            "burst_frames": self.frames,
            "interval_s": self.interval_s,
            "gap_s": self.gap_s,
            "failed_interval_s": self.failed_interval_s,
            "mean_fps_per_direction": self.mean_fps,
            "search": self.search.to_document(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstIntervals:
    """The smallest interval for each size of bursts (R2544-17)."""

    profile: Profile
    goal: BurstGoal
    """The goal, with the rate of the bursts."""
    intervals: tuple[BurstInterval, ...]

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """Trials of all searches, in order."""
        return tuple(trial.result for trial in self._search_trials)

    @property
    def _search_trials(self) -> tuple[SearchTrial, ...]:
        return tuple(trial for interval in self.intervals for trial in interval.search.trials)

    @property
    def outcome(self) -> str:
        """`measured`, `tester_ceiling` if one could not be decided, or `stopped`."""
        outcomes = {interval.outcome for interval in self.intervals}
        return next(
            (str(outcome) for outcome in (Outcome.STOPPED, Outcome.TESTER_CEILING) if outcome in outcomes),
            "measured",
        )

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = collect_deviations(self._search_trials, self.profile)
        theoretical_fps, goal = self.profile.theoretical_fps, self.goal
        if theoretical_fps is None:
            text = burst_rate_without_line_rate(self.profile)
            found.append(Deviation(requirement="R2544-17", text=text))
        elif goal.rate_fps < theoretical_fps:
            text = f"frames of a burst follow at {format_count(goal.rate_fps)} fps, not at minimum gap"
            found.append(Deviation(requirement="R2544-17", text=text))
        if set(goal.burst_frames) != set(RFC_BURSTS):
            text = f"bursts of {_listed(goal.burst_frames)} frames instead of {_listed(RFC_BURSTS)}"
            found.append(Deviation(requirement="R2544-17", text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand burst --json` writes it."""
        return result_document(
            self.profile,
            {
                "outcome": self.outcome,
                "goal": self.goal.to_document(),
                "intervals": [interval.to_document() for interval in self.intervals],
            },
            trials=self.trials,
            documents=numbered_documents(self._search_trials),
            deviations=self.deviations,
        )


def _listed(frames: tuple[int, ...]) -> str:
    return ", ".join(map(format_count, frames))


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
    ] = FRAME_COUNTS.default(BurstGoal, "burst_frames")
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
    ] = DURATION.default(BurstGoal, "duration_s")
    final_duration: Annotated[
        str,
        Option(
            grammar=DURATION, sets="final_duration_s", help="Duration of the trial that confirms a result."
        ),
    ] = DURATION.default(BurstGoal, "final_duration_s")
    precision: Annotated[str, Option(grammar=RATIO, help="Precision at which the search stops.")] = (
        RATIO.default(BurstGoal, "precision")
    )


def _value(found: BurstFound) -> float | None:
    """The interval; with several sizes of bursts, that of the first one."""
    interval_s = found.each[0].interval_s
    return None if interval_s is None else interval_s * 1e6


def _left_open(found: BurstFound) -> LeftOpen:
    """Bursts closer together than the largest interval that lost frames were not seen to pass. None that
    lost any: the bursts followed each other without a gap."""
    failed_s = found.each[0].failed_interval_s
    return LeftOpen(low=0.0 if failed_s is None else failed_s * 1e6)


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
    make_goal=goals_of(BurstGoal),
    goals=BurstGoal,
    found=BurstFound,
    default_goal=lambda retries: BurstGoal(**retries),
    measure=measure_burst,
    rates=DirectionChoice.NONE,
    figure=Figure(name="smallest interval between bursts", unit="us", is_higher_better=False),
    section=Section.BURSTS,
    value_of=_value,
    left_open=_left_open,
    expected_s=lambda goal, waits_s: _searches_s(goal, goal.burst_frames, waits_s),
    expected_parts=_expected_parts,
    describe=_describe,
    frame_sizes=FrameSizes.ONE,
    load="rate_fps",
)
