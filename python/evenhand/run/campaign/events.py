# SPDX-License-Identifier: Apache-2.0
"""Campaign: what it reports while it runs, in addition to what its procedures report."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base.programs import run_shell_command
from evenhand.base.units import format_duration
from evenhand.procedure import Began, ProcedureEvent, TrialPhase
from evenhand.run.campaign_record import HookRun
from evenhand.run.figures import RunningTrial, remove_running, write_running
from evenhand.search import TrialFinished, TrialStarted
from evenhand.spec.points import CampaignPlan
from evenhand.spec.request import AFTER, Point

_NOTHING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a campaign something is measured."""

    round: int
    """Number of the round, from 1."""
    rounds: int
    point: int
    """Its place among the points of the round, from 1."""
    point_count: int

    def __str__(self) -> str:
        point = f"{self.point} of {self.point_count}"
        return point if self.rounds == 1 else f"round {self.round} of {self.rounds}, point {point}"


WHOLE = Place(round=1, rounds=1, point=1, point_count=1)
"""The place of what is measured without rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One repetition of one point."""

    point: Point
    repetition: int
    """Number of the repetition, from 1."""
    seed: int
    """Its own."""
    place: Place = WHOLE


def jobs(plan: CampaignPlan) -> tuple[Job, ...]:
    """Every repetition of every point, in the order of measuring.

    Suite by suite, and in rounds: each has a share of the repetitions of all points, so that a DUT that
    drifts, because it warms up or its tables fill, does so for all of them. Each round has an order of its
    own, shuffled by the plan's seed if the plan says so. In the first one points with a single address pair
    come first (SEED-02). Points that take their load from another one have rounds of their own, after those
    of all that give it.
    """
    found: list[Job] = []
    for suite in dict.fromkeys(point.suite for point in plan.points):
        of_suite = [point for point in plan.points if point.suite == suite]
        for is_after in (False, True):
            stage = [point for point in of_suite if (AFTER in point.goal) == is_after]
            rounds = max((point.rounds for point in stage), default=0)
            for number in range(1, rounds + 1):
                ordered = _order_of_round(plan, suite, of_suite, number)
                points = [
                    point for point in ordered if (AFTER in point.goal) == is_after and point.rounds >= number
                ]
                for place, point in enumerate(points, start=1):
                    where = Place(round=number, rounds=rounds, point=place, point_count=len(points))
                    for repetition in plan.numbers_in_round(point, number):
                        seed = seed_of(plan.seed, point.key, repetition)
                        found.append(Job(point=point, repetition=repetition, seed=seed, place=where))
    return tuple(found)


def _order_of_round(plan: CampaignPlan, suite: str, points: Sequence[Point], number: int) -> list[Point]:
    first = [point for point in points if number == 1 and point.is_single]
    others = [point for point in points if number > 1 or not point.is_single]
    if plan.round_order == "shuffled":
        random.Random(seed_of(plan.seed, f"order of {suite}", number - 1)).shuffle(others)
    return first + others


def seed_of(seed: int, key: str, repetition: int) -> int:
    """64 bits for one repetition of one point: the same each time, and not the same for any two of a
    campaign."""
    text = json.dumps([seed, key, repetition])
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8, person=b"evenhand-seed").digest(), "big"
    )


def difference(old_spec: Mapping[str, Any], new_spec: Mapping[str, Any]) -> list[str]:
    """What a reader must know who resumes a campaign whose file was changed: a line for each value; empty if
    nothing was."""
    old, new = (dict(_values_in(spec)) for spec in (old_spec, new_spec))
    lines = []
    for place in dict.fromkeys([*old, *new]):
        if old.get(place, _NOTHING) != new.get(place, _NOTHING):
            lines.append(f"{place}: {_shown(old.get(place, _NOTHING))} -> {_shown(new.get(place, _NOTHING))}")
    return lines


def _shown(value: Any) -> str:
    return "not there" if value is _NOTHING else json.dumps(value, ensure_ascii=False)


def _values_in(value: Any, place: str = "") -> list[tuple[str, Any]]:
    """Leaves with their places; a list of tables by the tables' names."""
    if isinstance(value, Mapping):
        return [
            leaf
            for key, item in value.items()
            for leaf in _values_in(item, f"{place}.{key}" if place else str(key))
        ]
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(item, Mapping) for item in value)
    ):
        return [leaf for item in value for leaf in _values_in(item, f"{place} {item.get('name')!r}")]
    return [(place, list(value) if isinstance(value, tuple) else value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBegan:
    """A point is measured from now on: all of it, or what a round has of it."""

    point: Point
    place: Place | None = None
    """None: it cannot be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionBegan:
    """One of its repetitions is."""

    job: Job
    stored_trials: int
    """Trials that it has from before it was cut short; they are not made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionEnded:
    """It has ended, and is stored."""

    job: Job
    outcome: str
    value: float | None
    is_at_least: bool = False
    """The value is a lower bound."""
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEnded:
    """Nothing more will be measured of it."""

    point: Point
    reason: str | None
    """Why it ended before all its repetitions were made; None if they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEnded:
    """A command of the user's has ended."""

    hook: HookRun
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointArrived:
    """A point, or what one testbed had to measure of it, was measured elsewhere, and is stored."""

    point: Point
    testbed: str | None
    """None: it came to nothing."""
    reason: str | None
    """Why it gets no more repetitions."""
    durations_s: tuple[float, ...]
    """Durations of its repetitions, in s."""
    verdicts: Mapping[str, int]
    """Numbers of its trials by verdict."""
    testbed_count: int
    """Testbeds that measure at the same time."""


CampaignEvent = PointBegan | RepetitionBegan | RepetitionEnded | PointEnded | HookEnded | PointArrived
OnCampaignEvent = Callable[[CampaignEvent | ProcedureEvent], None]


def ignore(event: CampaignEvent | ProcedureEvent) -> None:
    """Ignore the event."""


MOST_SHOWN = 600
"""Characters of what a failed command printed."""
_ERROR = re.compile(r"(?:\S+: )?(?:error|fatal)\b", re.IGNORECASE)
"""`Error: ...`, as this and other programs begin; `fatal: ...`; `ssh: error ...`."""


def run_hook(command: str, *, when: str, timeout_s: float, environment: Mapping[str, str]) -> HookRun:
    """Run it to its end, with what `environment` adds to this process's own. See `run_shell_command`."""
    ended = run_shell_command(command, timeout_s=timeout_s, environment=environment)
    return HookRun(
        when=when,
        command=command,
        exit_code=ended.exit_code,
        output=ended.output,
        duration_s=ended.duration_s,
    )


def why_failed(hook: HookRun, timeout_s: float) -> str | None:
    """Why it failed, for people; None if it ended with 0."""
    if hook.exit_code == 0:
        return None
    name = hook.when.replace("_", "-")
    if hook.exit_code is None:
        return f"the hook {name} did not end within {format_duration(timeout_s)}, and was stopped"
    ended = (
        f"ended with exit code {hook.exit_code}"
        if hook.exit_code > 0
        else f"was terminated by {signal.Signals(-hook.exit_code).name}"
    )
    said = _what_it_said(hook.output)
    return f"the hook {name} {ended}" + (f": {said}" if said else "")


def _what_it_said(output: str) -> str:
    """Its output from the first line that begins with "Error" on, since the next step follows it; without
    one, the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    begin = next((number for number, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
    text = " ".join(lines[max(begin, 0) :])
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."


def environment_of_suite(points: Sequence[Point]) -> dict[str, str]:
    """What a hook gets to know of a suite: its name, its plan, and the hash type that all its points have;
    empty where they have several, or the file does not say."""
    hash_types = {point.hash_type for point in points}
    return {
        "EVENHAND_SUITE": points[0].suite,
        "EVENHAND_PLAN": points[0].plan,
        "EVENHAND_HASH_TYPE": (hash_types.pop() or "") if len(hash_types) == 1 else "",
    }


def environment_of(point: Point) -> dict[str, str]:
    """What a hook gets to know of its point."""
    return {
        "EVENHAND_SUITE": point.suite,
        "EVENHAND_POINT": point.key,
        "EVENHAND_PROCEDURE": point.procedure,
        "EVENHAND_PLAN": point.plan,
        "EVENHAND_HASH_TYPE": point.hash_type or "",
        "EVENHAND_HOSTS_LEFT": str(point.hosts[0]),
        "EVENHAND_HOSTS_RIGHT": str(point.hosts[1]),
        "EVENHAND_NETWORKS_LEFT": str(point.networks[0]),
        "EVENHAND_NETWORKS_RIGHT": str(point.networks[1]),
        "EVENHAND_ROUTES_LEFT": "" if point.routes is None else str(point.routes.left),
        "EVENHAND_ROUTES_RIGHT": "" if point.routes is None else str(point.routes.right),
        "EVENHAND_FRAME_SIZE": str(point.frame_size),
    }


EVERY_S = 0.4
"""Events come twice a second, and not to the millisecond."""


@dataclass(slots=True)
class RunningFile:
    """Written when a trial begins, and twice a second while it is made: for `evenhand status`, and for who
    serves the folder. Each time takes some 0.3 ms of the process that waits for the engine."""

    run: Path
    _now: RunningTrial | None = None
    _written_s: float = float("-inf")

    def begin(self, what: str, repetition: int = 1) -> None:
        """This is measured from now on: a point, or a verb."""
        self._write(RunningTrial(process=os.getpid(), point=what, repetition=repetition))

    def on_event(self, event: CampaignEvent | ProcedureEvent) -> None:
        """Takes an event of a campaign, or of one of its procedures."""
        if isinstance(event, RepetitionBegan):
            self.begin(event.job.point.key, event.job.repetition)
            return
        if self._now is None:
            return
        match event:
            case TrialStarted(number=number):
                self._begin_trial(number, event.remaining_s, rate_fps=event.rate_fps)
            case Began(number=number):
                self._begin_trial(number, event.remaining_s, what=event.what)
            case TrialPhase():
                if time.monotonic() - self._written_s >= EVERY_S:
                    self._write(
                        replace(
                            self._now,
                            phase=event.phase,
                            elapsed_s=event.elapsed_s,
                            total_s=event.total_s,
                            directions={name: so_far.numbers for name, so_far in event.directions.items()},
                            sending_s=event.sending_s,
                            left_out=[(part.from_s, part.until_s, part.kinds) for part in event.left_out],
                        )
                    )
            case TrialFinished():
                self._now = replace(self._now, lower_fps=event.lower_fps, upper_fps=event.upper_fps)
            case RepetitionEnded() | PointEnded():
                self.end()

    def end(self) -> None:
        """No trial is made any more."""
        if self._now is not None:
            self._now = None
            remove_running(self.run)

    def _begin_trial(
        self, number: int | None, left_s: float, *, rate_fps: float | None = None, what: str = ""
    ) -> None:
        assert self._now is not None
        is_first = number is not None and number == 1
        self._write(
            replace(
                self._now,
                trial=number,
                phase="",
                elapsed_s=0.0,
                total_s=0.0,
                what=what,
                rate_fps=rate_fps,
                # Bounds belong to one search.
                lower_fps=None if is_first or what else self._now.lower_fps,
                upper_fps=None if is_first or what else self._now.upper_fps,
                left_of_all_s=left_s,
                directions={},
                left_out=(),
            )
        )

    def _write(self, running: RunningTrial) -> None:
        self._now, self._written_s = running, time.monotonic()
        write_running(self.run, running)
