# SPDX-License-Identifier: Apache-2.0
"""Procedure: the highest load that a procedure offers: the user's, else the line rate of the ports, else the
tester's own ceiling, which is found first if it is not known (MLR-14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.base.units import format_count, format_duration, format_rate
from evenhand.plan import whole_octets
from evenhand.procedure.events import Began, Measured, Note, OnEvent, ignore
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import LOSSES_THAT_END_THE_WAY_UP, Role, TesterCeiling, find_tester_ceiling, whole_load
from evenhand.trial import CEILING_WAITS, Limits, Measurer, TrialResult

if TYPE_CHECKING:
    from evenhand.rig import KnownCeiling


START_FPS = 1e6
"""Load at which ports without a line rate begin; up from there by doubling."""
HIGHEST_FPS = 150e6
"""A load above the maximum of 100 Gbit/s with the smallest frames."""
DUT_WAY, OWN_LOOP_WAY = "dut", "own_loop"
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
    """Through the DUT, or in the own loop."""
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
        way: `DUT_WAY` or `OWN_LOOP_WAY`: without a DUT, a lost frame was lost by the tester.
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
    what = "the tester's ceiling" + (", own loop" if way == OWN_LOOP_WAY else "")
    on_event(Began(what=what, remaining_s=EXPECTED_LOADS * (goal.duration_s + overhead_s)))

    def on_trial(result: TrialResult) -> None:
        on_result(result)
        on_event(Measured(what="tester, own loop" if way == OWN_LOOP_WAY else "tester", result=result))

    ceiling = find_tester_ceiling(
        measurer,
        start_fps=start_fps,
        max_fps=maximum_fps or HIGHEST_FPS,
        min_fps=goal.min_fps or start_fps * LEAST_SHARE,
        duration_s=goal.duration_s,
        precision=goal.precision,
        attempts=ATTEMPTS,
        is_loss_ours=way == OWN_LOOP_WAY,
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
            "found" if ceiling.rate_fps else "tester_ceiling", {"ceiling_fps_per_direction": ceiling.rate_fps}
        )
    return ceiling


def expected_s(goal: CeilingGoal) -> float:
    """All trials of one way."""
    return EXPECTED_LOADS * (goal.duration_s + CEILING_WAITS.total_s)


def expected_parts(goal: CeilingGoal) -> list[str]:
    """What takes most of that time, for people."""
    return [f"about {EXPECTED_LOADS} trials of {format_duration(goal.duration_s)}"]


SEARCH = CeilingGoal(max_fps=None, min_fps=None, duration_s=1.0, precision=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingWish:
    """How the ceiling is looked for."""

    loss_ratio: float = 0.0
    """The largest loss ratio with which a load may still be of interest."""
    losses: int = LOSSES_THAT_END_THE_WAY_UP
    """After so many trials in which the DUT lost more, nothing above that load is tried. 0: the way goes up
    to the tester's own ceiling, whatever the DUT loses."""
    make_measurer: MakeMeasurer | None = None
    """Makes trials other than those of even loads."""
    frames: str = ""
    """What is special about these trials: their ceiling is one of its own. Empty: nothing."""


def check_given(rate_fps: float, profile: Profile, *, where: str) -> None:
    """RequestError if the user's own maximum is above the line rate; one that is not given is found later."""
    if not math.isinf(rate_fps):
        choose_maximum(rate_fps, profile, where=where)


def find_maximum(
    tester: OpenTester,
    rate_fps: float,
    *,
    where: str,
    wish: CeilingWish = CeilingWish(losses=0),
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> tuple[OpenTester, float]:
    """The maximum of a procedure whose load follows from it, and the tester that knows its ceiling if that is
    the maximum.

    Args:
        rate_fps: The user's; infinite: not given.
        where: The argument, for errors.

    Raises:
        RequestError: The user's is above the line rate.
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """
    if not math.isinf(rate_fps) or tester.profile.theoretical_fps is not None:
        return tester, choose_maximum(rate_fps, tester.profile, where=where)
    known, is_device_slower = settle_ceiling(tester, wish, on_event=on_event, recorder=recorder)
    if is_device_slower:
        return tester, known.rate_fps
    on_event(Note(text=f"The maximum is {describe_known(known)}."))
    return knowing(tester, known), known.rate_fps


def settle_ceiling(
    tester: OpenTester,
    wish: CeilingWish,
    *,
    is_good: Callable[[KnownCeiling], bool] = lambda known: True,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> tuple[KnownCeiling, bool]:
    """The tester's ceiling, as it is known to later searches, and False; or the load above which nothing was
    tried, since the device is slower, and True.

    Args:
        is_good: Whether one that is known will do; else it is found whether the tester keeps more.

    Raises:
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """
    conditions = conditions_of(tester, wish)
    before = rig.find_ceiling(conditions)
    if before is not None and is_good(before):
        return before, False
    kept_fps = None if before is None else before.rate_fps
    ceiling = find_ceiling_first(tester, wish, on_event, recorder, kept_fps=kept_fps)
    known = known_of(ceiling)
    if not ceiling.is_device_slower:
        rig.keep_ceiling(conditions, known)
    return known, ceiling.is_device_slower


def describe_known(known: KnownCeiling) -> str:
    """For people."""
    when = "found just now" if known.is_new else known.found_when
    return f"the tester's own ceiling of {format_rate(known.rate_fps)} per direction, {when}"


def knowing(tester: OpenTester, known: KnownCeiling) -> OpenTester:
    """The tester that knows its ceiling."""
    return replace(tester, profile=replace(tester.profile, ceiling=known))


def conditions_of(tester: OpenTester, wish: CeilingWish) -> dict[str, Any]:
    """All that the tester's ceiling depends on, but the host. How many hosts a plan has makes no difference:
    each address is drawn alike."""
    profile, testbed = tester.profile, tester.setup.testbed
    return {
        "plan": profile.plan.title,
        "frame_size": whole_octets(profile.frame_size),
        **({} if profile.mix is None else {"mix": profile.mix}),
        "directions": list(profile.directions),
        "host_macs": profile.host_macs,
        "ports": {side: port.to_contract() for side, port in testbed.ports.items()},
        "tester": testbed.tester.model_dump(mode="json"),
        **({"engines": [each.model_dump(mode="json") for each in testbed.engine]} if testbed.engine else {}),
        "limits": tester.limits.to_contract(),
        "versions": tester.versions,
        **({} if profile.rates is None else {"rates": profile.rates.to_document()}),
        **({"frames": wish.frames} if wish.frames else {}),
    }


def find_ceiling_first(
    tester: OpenTester,
    wish: CeilingWish,
    on_event: OnEvent,
    recorder: Recorder | None,
    *,
    kept_fps: float | None = None,
) -> TesterCeiling:
    """By trials of a second, stored as a search of their own.

    Args:
        kept_fps: A load that the tester has kept before; only whether it keeps more is found then.

    Raises:
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """

    def find(keep: Callable[[TrialResult], None]) -> TesterCeiling:
        entry = measure_ceiling(
            tester,
            tester.setup.testbed.tester.cpus,
            SEARCH,
            way=DUT_WAY,
            on_event=on_event,
            limits=replace(tester.limits, loss_ratio=wish.loss_ratio),
            ending_losses=wish.losses,
            kept_fps=kept_fps,
            on_result=keep,
            make_measurer=wish.make_measurer,
        )
        return entry.ceiling

    documented = {"duration_s": SEARCH.duration_s, "precision": SEARCH.precision}
    ceiling = record_ceiling(recorder, tester, "tester's ceiling", goal=documented, find=find)
    if ceiling.was_stopped:
        raise HostError(
            "stopped while the tester's ceiling was being searched; there is no result",
            code="procedure.stopped",
            where=tester.setup.name,
        )
    if ceiling.rate_fps is None:
        last = "; ".join(reason.text for reason in ceiling.trials[-1].reasons)
        raise HostError(
            f"the tester keeps no load down to {format_count(ceiling.min_fps)} fps per direction: {last}",
            code="procedure.no-load-kept",
            where=tester.setup.name,
            next_step="Give it idle CPUs; `evenhand check` shows which CPUs are taken away, and by what. Or"
            " give max_fps.",
        )
    return ceiling


def known_of(ceiling: TesterCeiling) -> KnownCeiling:
    """A ceiling that was found just now."""
    assert ceiling.rate_fps is not None
    return rig.KnownCeiling(
        rate_fps=ceiling.rate_fps,
        above_fps=ceiling.above_fps,
        found_at=ceiling.trials[-1].started_at,
        is_new=True,
    )


STOPPED = "procedure.stopped"
"""Code of the error of what was stopped."""
TRIAL_S = 1.0
TRIALS = 2
"""A host that takes a CPU away makes the DUT seem slower, never faster: the most of them counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """Frames a second, per direction."""

    offered_fps: float
    """What the tester offered."""
    forwarded_fps: float
    """What the DUT forwarded of it, in the direction in which that was less."""


def keep_own_ceiling(tester: OpenTester, *, on_event: OnEvent = ignore) -> float:
    """The highest load that this tester keeps whatever the DUT loses, in frames a second per direction. It is
    known to later searches.

    Raises:
        HostError: It keeps no load at all, or was stopped meanwhile.
    """
    # One that was found while the host did something else is too low.
    known, _ = settle_ceiling(
        tester, CeilingWish(losses=0), is_good=lambda known: not known.is_limit, on_event=on_event
    )
    return known.rate_fps


def forwarded_of(tester: OpenTester, offered_fps: float, *, on_event: OnEvent = ignore) -> Forwarded:
    """What the DUT forwards of this load: the most in some short trials, whatever their verdicts.

    Raises:
        HostError: It was stopped meanwhile.
    """
    measurer = replace(tester, waits=CEILING_WAITS).measurer(on_event)
    what = "what the DUT forwards of the tester's ceiling"
    on_event(Began(what=what, remaining_s=TRIALS * (TRIAL_S + measurer.overhead_s)))
    found = []
    for _ in range(TRIALS):
        result = measurer.measure(TRIAL_S, offered_fps)
        if result.was_stopped:
            raise HostError(
                "stopped while it was looked for how much the DUT forwards; there is no result",
                code="procedure.stopped",
                where=tester.setup.name,
            )
        on_event(Measured(what="tester, with the DUT at its limit", result=result))
        forwarded_fps = result.least_forwarding_fps
        offered_fps = result.offered_fps  # measured over another span of time, so it may seem to be less
        found.append(Forwarded(offered_fps=offered_fps, forwarded_fps=min(forwarded_fps, offered_fps)))
    return max(found, key=lambda each: each.forwarded_fps)
