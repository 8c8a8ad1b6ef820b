# SPDX-License-Identifier: Apache-2.0
"""Procedure: the highest load that a procedure offers: the user's, else the line rate of the ports, else the
tester's own ceiling, which is found first if it is not known (MLR-14)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand import rig
from evenhand.base.errors import HostError
from evenhand.base.units import format_count, format_rate
from evenhand.plan import whole_octets
from evenhand.procedure.ceiling import DUT_WAY, CeilingGoal, MakeMeasurer, measure_ceiling, record_ceiling
from evenhand.procedure.events import Note, OnEvent, ignore
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import LOSSES_THAT_END_THE_WAY_UP, TesterCeiling
from evenhand.trial import TrialResult

if TYPE_CHECKING:
    from evenhand.rig import KnownCeiling

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
    """Of trials other than those of even loads."""
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
    known = rig.find_ceiling(conditions_of(tester, wish))
    if known is None:
        ceiling = find_ceiling_first(tester, wish, on_event, recorder)
        assert ceiling.rate_fps is not None
        if ceiling.is_device_slower:
            return tester, ceiling.rate_fps
        known = known_of(ceiling)
        rig.keep_ceiling(conditions_of(tester, wish), known)
    on_event(Note(text=f"The maximum is {describe_known(known)}."))
    return knowing(tester, known), known.rate_fps


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
