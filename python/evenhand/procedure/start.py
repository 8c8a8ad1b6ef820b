# SPDX-License-Identifier: Apache-2.0
"""Procedure: where a search begins: at the line rate, or at the tester's own ceiling, which is found first if
it is not known (MLR-14)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.base.units import format_count, format_rate
from evenhand.plan import whole_octets
from evenhand.procedure.ceiling import DUT_WAY, CeilingGoal, measure_ceiling, record_ceiling
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.record import Recorder
from evenhand.procedure.tester import OpenTester
from evenhand.procedure.throughput import Throughput, measure_throughput
from evenhand.search import Goal, Role, TesterCeiling
from evenhand.trial import TrialResult

if TYPE_CHECKING:
    from evenhand.rig import KnownCeiling

SEARCH = CeilingGoal(max_fps=None, min_fps=None, duration_s=1.0, precision=0.05)
G = TypeVar("G", bound=Goal)


def choose_start(
    tester: OpenTester, goal: G, *, on_event: OnEvent = ignore, recorder: Recorder | None = None
) -> tuple[OpenTester, G]:
    """The goal with its maximum, and the tester that knows its ceiling.

    A goal with UP_TO_LINE_RATE gets the line rate, or the tester's ceiling if that is lower or no line rate
    is known. A ceiling that is not known is found first, by trials of a second; nothing above a load at which
    the DUT loses frames is tried then, since a search needs nothing above. If an earlier search has passed
    the ceiling, it is checked first whether the tester keeps more. A maximum of the user's own stays; if a
    known ceiling is below it, that is reported.

    Raises:
        HostError: The tester keeps no load at all, or was stopped meanwhile.
    """
    known = rig.find_ceiling(_conditions(tester))
    if not math.isinf(goal.max_fps):
        if known is None or not known.is_limit or goal.max_fps <= known.rate_fps:
            return tester, goal
        return _knowing(tester, known), goal
    if known is None or (known.is_limit and known.was_reached):
        ceiling = _find(tester, goal, on_event, recorder, kept_fps=None if known is None else known.rate_fps)
        if ceiling.is_device_slower:
            assert ceiling.rate_fps is not None
            return tester, replace(goal, max_fps=ceiling.rate_fps)
        known = _known(ceiling)
        rig.keep_ceiling(_conditions(tester), known)
    theoretical_fps = tester.profile.theoretical_fps
    if not known.is_limit:
        return tester, replace(goal, max_fps=float(theoretical_fps or known.rate_fps))
    when = "found just now" if known.is_new else known.found_when
    on_event(
        Note(
            text=f"The search begins at the tester's own ceiling of {format_rate(known.rate_fps)} per"
            f" direction, {when}."
        )
    )
    return _knowing(tester, known), replace(goal, max_fps=known.rate_fps, is_max_testers=True)


def measure_from_start(
    tester: OpenTester,
    goal: Goal,
    *,
    name: str = "throughput",
    role: Role = Role.MEASUREMENT,
    repetition: int | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> Throughput:
    """One search from `choose_start` on, for which the errors and `measure_throughput` are to be seen. That
    it has passed the tester's ceiling is kept for the next one."""
    started, bounded = choose_start(tester, goal, on_event=on_event, recorder=recorder)
    found = measure_throughput(
        started, bounded, name=name, role=role, repetition=repetition, on_event=on_event, recorder=recorder
    )
    ceiling = started.profile.ceiling
    if ceiling is not None and found.search.is_ceiling_reached:
        rig.keep_ceiling(_conditions(started), replace(ceiling, was_reached=True))
    return found


def _knowing(tester: OpenTester, known: KnownCeiling) -> OpenTester:
    return replace(tester, profile=replace(tester.profile, ceiling=known))


def _conditions(tester: OpenTester) -> dict[str, Any]:
    """All that the tester's ceiling depends on, but the host."""
    profile, testbed = tester.profile, tester.setup.testbed
    return {
        "plan": profile.plan.to_contract(),
        "frame_size": whole_octets(profile.frame_size),
        **({} if profile.mix is None else {"mix": profile.mix}),
        "directions": list(profile.directions),
        "host_macs": profile.host_macs,
        "ports": {side: port.to_contract() for side, port in testbed.ports.items()},
        "tester": testbed.tester.model_dump(mode="json"),
        **({"engines": [each.model_dump(mode="json") for each in testbed.engine]} if testbed.engine else {}),
        "limits": tester.limits.to_contract(),
        "versions": tester.versions,
    }


def _find(
    tester: OpenTester, goal: Goal, on_event: OnEvent, recorder: Recorder | None, *, kept_fps: float | None
) -> TesterCeiling:
    def find(keep: Callable[[TrialResult], None]) -> TesterCeiling:
        entry = measure_ceiling(
            tester,
            tester.setup.testbed.tester.cpus,
            SEARCH,
            way=DUT_WAY,
            on_event=on_event,
            limits=replace(tester.limits, loss_ratio=goal.loss_ratio),
            ends_at_loss=True,
            kept_fps=kept_fps,
            on_result=keep,
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


def _known(ceiling: TesterCeiling) -> KnownCeiling:
    assert ceiling.rate_fps is not None
    return rig.KnownCeiling(
        rate_fps=ceiling.rate_fps,
        above_fps=ceiling.above_fps,
        found_at=ceiling.trials[-1].started_at,
        is_new=True,
    )
