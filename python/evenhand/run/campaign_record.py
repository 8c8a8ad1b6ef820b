# SPDX-License-Identifier: Apache-2.0
"""What a campaign asked for and what it measured, as its file has it: the one form that analysis, reports,
comparisons and exports read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

from evenhand.procedure.descriptor import EXACT, LeftOpen
from evenhand.procedure.registry import LOSS, PROCEDURES, THROUGHPUT
from evenhand.procedure.statistics import Statistics
from evenhand.results.throughput import ThroughputFound, is_lower_bound
from evenhand.run.reading import StoredSearch, StoredTrial
from evenhand.spec.request import Point


class PointState(StrEnum):
    """How far a point has come."""

    PENDING = "pending"
    """Nothing of it was measured."""
    BEGUN = "begun"
    """Not all of its repetitions have ended."""
    MEASURED = "measured"
    NO_NUMBER = "no_number"
    """It ended without a number; `PointRecord.reason` says why."""


def state_of(
    *,
    asked: int,
    finished: int,
    has_value: bool,
    has_begun: bool,
    reason: str | None,
    last_reason: str | None,
) -> tuple[PointState, str | None, str | None]:
    """How far a point has come; why it has no number; why it has fewer repetitions than asked for."""
    if reason is None and finished < asked:
        return (PointState.BEGUN if has_begun else PointState.PENDING), None, None
    if has_value:
        return PointState.MEASURED, None, reason
    return PointState.NO_NUMBER, reason or last_reason or "no repetition ended with a number", None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """One command that was run before or after a point or a suite."""

    when: str
    """`before_point`, `after_point`, `before_suite`, `after_suite`; or `dut_apply` and `dut_undo`, what a run
    did to its DUT over SSH."""
    command: str
    exit_code: int | None
    """None: it did not end in time."""
    output: str
    """Both streams; cut at its end if it is long."""
    duration_s: float
    ended_at: str = ""
    """Empty: just now."""
    suite: str | None = None
    """The suite of a hook of a suite."""
    session: int = 0
    """Its place in `CampaignRecord.sessions`."""


AT_OR_ABOVE_MAXIMUM = "at_or_above_maximum"
"""The outcome of a search whose maximum load passed."""
TESTER_CEILING = "tester_ceiling"
"""The outcome of what the tester could not decide, in every procedure."""
CUT_SHORT = "cut_short"
"""Outcome of a repetition that was begun anew: what it measured stays, and is in no statistic."""
ENDED_EARLY = "ended_early"
"""Outcome of a repetition that was not made, because its testbed measures nothing more of the point."""
AT_LEAST = ">= "
"""Before a lower bound."""


def is_median_at_least(values: Sequence[float], are_bounds: Sequence[bool]) -> bool:
    """Whether the median of these values is a lower bound, if some of them are: it is, where it would rise
    with them."""
    return bool(values) and median(values) != median(_as_high_as_may_be(values, are_bounds))


def bounds_of(values: Sequence[float], are_bounds: Sequence[bool]) -> tuple[str, str, str]:
    """What is written before median, minimum and maximum of these values: `>= ` where that is a lower
    bound."""
    if not values:
        return "", "", ""
    highest = _as_high_as_may_be(values, are_bounds)
    of_median, minimum, maximum = (AT_LEAST if of(values) != of(highest) else "" for of in (median, min, max))
    return of_median, minimum, maximum


def _as_high_as_may_be(values: Sequence[float], are_bounds: Sequence[bool]) -> list[float]:
    return [math.inf if is_bound else value for value, is_bound in zip(values, are_bounds, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One complete execution of a point's procedure."""

    number: int
    """Number of the repetition, from 1."""
    seed: int
    """Its own, derived from the campaign's."""
    testbed: str
    """Name of the testbed in `CampaignRecord.testbeds` that it was measured on."""
    started_at: str
    finished_at: str | None
    """None: it goes on, or was cut short, and is not a result."""
    outcome: str | None
    """Outcome of the procedure, such as `found` or `tester_ceiling`; None while it goes on."""
    value: float | None
    """The figure of the procedure (see `Procedure.figure`), if it ended with one."""
    result: Mapping[str, Any] | None
    """The procedure's document without its `trials`, as its verb writes it with `--json`."""
    searches: tuple[StoredSearch, ...]
    """What it measured, with every trial, also those of a repetition that was cut short."""
    reason: str | None = None
    """Why it has no value, if it ended without one."""
    measured_s: float = 0.0
    """What its trials took; 0 if the file does not state it."""
    session: int = 0
    """The session in which it was begun: its place in `CampaignRecord.sessions`."""
    procedure: str = THROUGHPUT.name
    """Name of the procedure of its point."""
    bracket: LeftOpen | None = None
    """What is left open, where it is not its procedure that says so: a session has the median of it."""
    found: Any = field(init=False, default=None)
    """What its result says was found (`Procedure.read`); None for a session, which has no result of one
    repetition. Whoever makes a record of a file is told by ValueError of a value that is
    none."""

    def __post_init__(self) -> None:
        if self.bracket is None and (procedure := PROCEDURES.get(self.procedure)) is not None:
            object.__setattr__(self, "found", procedure.read(self.result))

    @property
    def trials(self) -> tuple[StoredTrial, ...]:
        """Those of all its searches, in order."""
        return tuple(trial for search in self.searches for trial in search.trials)

    @property
    def deciding_trials(self) -> tuple[StoredTrial, ...]:
        """Those on which its result rests: of a series of loads the valid trial of each, of a search the last
        one that passed at the result, and the last one that failed at the lowest load that did."""
        valid = [
            trial
            for search in self.searches
            if search.is_measurement
            for trial in search.trials
            if trial.result.is_valid
        ]
        if self.procedure == LOSS.name:
            return tuple({trial.result.intended_fps: trial for trial in valid}.values())
        passed = [trial for trial in valid if trial.result.is_pass]
        failed = [trial for trial in valid if not trial.result.is_pass]
        return (*_last_at(passed, self.value, max), *_last_at(failed, self.upper, min))

    @property
    def is_at_least(self) -> bool:
        """Whether its value is a lower bound: the highest load, or the longest burst, that was tried passed
        (MLR-10), or the tester could not keep a higher load."""
        return self.value is not None and is_lower_bound(self.found, self.outcome)

    @property
    def failed_at(self) -> float | None:
        """The lowest load at which a search for a throughput failed, per direction; None if it is not
        stated."""
        return self.found.upper_fps if isinstance(self.found, ThroughputFound) else None

    @property
    def is_testers(self) -> bool:
        """Whether it is a lower bound because the tester could not keep a higher load."""
        return self.is_at_least and self.outcome == TESTER_CEILING

    @property
    def left_open(self) -> LeftOpen:
        """What its procedure left open on either side of the value, if the file states it and it is one: a
        search for the highest load that passes leaves open all up to the lowest that failed. About a lower
        bound nothing is known above it."""
        found, value = self._stated, self.value
        if value is None:
            return EXACT
        low = None if found.low is None or found.low > value else found.low
        high = None if found.high is None or found.high < value or self.is_at_least else found.high
        return LeftOpen(low=low, high=high)

    @property
    def upper(self) -> float | None:
        """The highest that the truth can be, if the value is an end of a search (`left_open`)."""
        return self.left_open.high

    @property
    def lower(self) -> float | None:
        """The lowest that the truth can be, if it can be lower than the value."""
        return self.left_open.low

    @property
    def _stated(self) -> LeftOpen:
        if self.bracket is not None:
            return self.bracket
        if self.result is None or self.procedure not in PROCEDURES:
            return EXACT
        return PROCEDURES[self.procedure].left_open(self.found)


def _last_at(
    trials: Sequence[StoredTrial], load_fps: float | None, best: Callable[[Iterator[float]], float]
) -> Sequence[StoredTrial]:
    """The last of these at that load, those of full length first; where none was made there, at the highest
    or the lowest load of all."""
    at = [
        trial
        for trial in trials
        if load_fps is not None and math.isclose(trial.result.intended_fps, load_fps, rel_tol=1e-6)
    ]
    if trials and not at:
        load_fps = best(trial.result.intended_fps for trial in trials)
        at = [trial for trial in trials if trial.result.intended_fps == load_fps]
    return ([trial for trial in at if trial.is_full_length] or at)[-1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """A point, and all that was measured of it."""

    point: Point
    state: PointState
    reason: str | None
    """Why it has no number; None if it has one, or is not finished."""
    hooks: tuple[HookRun, ...]
    repetitions: tuple[Repetition, ...]
    """Repetitions in order; those that were cut short included."""
    stopped_early: str | None = None
    """Why there are fewer repetitions than asked for, although it has a number; None if there are not."""

    @property
    def results(self) -> tuple[Repetition, ...]:
        """Repetitions that have ended with a result."""
        return tuple(r for r in self.repetitions if r.finished_at is not None and r.result is not None)

    @property
    def values(self) -> tuple[float, ...]:
        """The figure of each repetition that ended with one."""
        return tuple(value for value, _ in self._valued())

    @property
    def uppers(self) -> tuple[float, ...]:
        """The upper end of each value's bracket, in the same order (`Repetition.upper`); the value itself
        where there is none.

        For a lower bound it is infinite, unless the median is a lower bound too: then it is the value
        itself."""
        bound = math.nan if self.is_at_least else math.inf
        ends = ((value, bound if r.is_at_least else r.upper) for value, r in self._valued())
        return tuple(value if upper is None or math.isnan(upper) else upper for value, upper in ends)

    @property
    def lowers(self) -> tuple[float, ...]:
        """The lower end of each value's bracket, in the same order (`Repetition.lower`); the value itself
        where there is none."""
        return tuple(value if r.lower is None else r.lower for value, r in self._valued())

    @property
    def median_upper(self) -> float | None:
        """The median lies between that of the values and this, if each search's limit lies in its bracket;
        None: nothing is known of it."""
        return (
            median(self.uppers)
            if any(r.upper is not None for r in self.repetitions) and not self.is_at_least and self.values
            else None
        )

    @property
    def lower_bounds(self) -> tuple[bool, ...]:
        """Which of the values are lower bounds, in their order."""
        return tuple(r.is_at_least for _, r in self._valued())

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the values; None without one."""
        return Statistics.of(self.values, self.uppers, lower_bounds=self.lower_bounds)

    @property
    def at_maximum(self) -> int:
        """How many of the values are lower bounds."""
        return sum(self.lower_bounds)

    @property
    def at_tester_ceiling(self) -> int:
        """How many of them because the tester could not keep a higher load."""
        return sum(r.is_testers for _, r in self._valued())

    @property
    def undecided(self) -> int:
        """Finished repetitions that the tester could not decide, without a value or with a lower bound: those
        that `--again` repeats."""
        return sum(
            r.finished_at is not None and r.outcome == TESTER_CEILING and (r.value is None or r.is_at_least)
            for r in self.repetitions
        )

    @property
    def is_at_least(self) -> bool:
        """Whether the median is a lower bound."""
        return is_median_at_least(self.values, self.lower_bounds)

    @property
    def is_testers(self) -> bool:
        """Whether it is one because of the tester."""
        return self.is_at_least and self.at_tester_ceiling > 0

    def _valued(self) -> list[tuple[float, Repetition]]:
        return [(r.value, r) for r in self.repetitions if r.finished_at is not None and r.value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one process measured, from its start to its end."""

    started_at: str
    finished_at: str | None
    """None: it goes on, or was cut short."""
    command: tuple[str, ...]
    versions: Mapping[str, str]
    host: Mapping[str, Any]
    """Host of who started it."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """A whole campaign, or a run of one verb read as a campaign of one suite."""

    path: Path
    name: str
    is_campaign: bool
    """False: the run file of a single verb."""
    created_at: str
    finished_at: str | None
    """None: it goes on, or was cut short."""
    commands: tuple[tuple[str, ...], ...]
    """Commands that began it and that resumed it."""
    versions: Mapping[str, str]
    host: Mapping[str, Any]
    spec: Mapping[str, Any]
    """The campaign file as it was understood, every default filled in; empty for a run."""
    source: str = ""
    """Name of that file; empty for a run."""
    seed: int = 0
    """Seed of the campaign, from which those of its repetitions are derived; 0 for a run."""
    testbeds: Mapping[str, Mapping[str, Any]]
    """By name: what is known of tester and DUT (the draft's Figure 6); None where it is not known."""
    points: tuple[PointRecord, ...]
    """Points in the order of the file, suite by suite."""
    hooks: tuple[HookRun, ...] = field(default=())
    """Hooks of suites."""
    notes: tuple[str, ...] = field(default=())
    """What else a reader should know, such as another engine since it was resumed."""

    other_searches: tuple[StoredSearch, ...] = field(default=())
    """Searches that belong to no point, such as a single trial, or a search for the tester's own ceiling."""
    merged_from: tuple[str, ...] = field(default=())
    """Names of the files that were joined to this one; empty if it was measured as a whole."""
    sessions: tuple[Session, ...] = field(default=())
    """Sessions that measured it, in their order."""

    @property
    def suites(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(dict.fromkeys(record.point.suite for record in self.points))
