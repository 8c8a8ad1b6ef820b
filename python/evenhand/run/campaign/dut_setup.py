# SPDX-License-Identifier: Apache-2.0
"""Campaign: its DUT, set up for each point that asks for something else than the one before, and put back at
the end. What was done to it is kept as a hook's doings are."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from evenhand.base.option import options_of
from evenhand.plan import SideCounts, largest_octets
from evenhand.procedure import Note
from evenhand.procedure.connection_trials import check_timeout
from evenhand.procedure.registry import PROCEDURES
from evenhand.rig import (
    APPLIED,
    USUAL_MAX_FRAME_SIZE,
    Demand,
    DutChange,
    DutWish,
    LabWish,
    ReachableDut,
    Setup,
    put_back,
    rig_of,
)
from evenhand.run import RunStore
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.run.campaign_record import HookRun
from evenhand.spec.common_options import EstablishedOptions
from evenhand.spec.file import Reference
from evenhand.spec.frames import read_size
from evenhand.spec.plan import build_plan
from evenhand.spec.points import CampaignPlan
from evenhand.spec.request import ROUTES, Point, plan_of, read_point
from evenhand.trial import find_engine

WITHOUT_HASH = 'Write hash-types = "not-stated" in that suite, or in [every-suite] for all suites'
"""What takes a key out of a preset."""


def demands_of(points: Iterable[Point]) -> Iterator[Demand]:
    """What these points ask, each that asks for something else once."""
    suites: dict[str, dict[tuple[object, ...], Point]] = {}
    for point in points:
        asked = (
            point.plan,
            point.routes,
            point.hosts,
            point.networks,
            point.frame_size,
            point.directions,
            point.hash_type,
        )
        suites.setdefault(point.suite, {})[asked] = point
    for suite, of_suite in suites.items():
        lab_wish = lab_wish_of(of_suite.values())
        for point in of_suite.values():
            yield Demand(
                suite=f"suite {suite!r}",
                plan=plan_of(point),
                frame_size=read_size(point.frame_size),
                directions=point.directions,
                wish=dut_wish_of(point),
                lab_wish=lab_wish,
                without_hash=WITHOUT_HASH,
            )


def dut_wish_of(point: Point) -> DutWish:
    """What the DUT is set up for while the point is measured."""
    return DutWish(plan=plan_of(point, is_whole=True), hash_type=point.hash_type, label=f"point {point.key}")


def lab_wish_of(
    points: Iterable[Point], of_all: Iterable[Point] = (), *, rules: int | None = None
) -> LabWish:
    """What a lab must be set up for to measure all these points, which have one plan.

    Args:
        of_all: All points of the campaign: the links take the frames of each, so that all are measured on the
            same links.
        rules: See `LabWish.rules`.
    """
    known = list(points)
    first = known[0]
    # Any share: the addresses are the same.
    plan = build_plan(
        first.plan,
        None,
        None,
        {key: value for key, value in first.plan_options.items() if key not in ("mix", ROUTES)},
    )
    largest = max(largest_octets(read_size(point.frame_size)) for point in (*known, *of_all))
    return LabWish(
        plan=plan.title,
        own=plan if plan.is_own else None,
        hosts=SideCounts.largest(point.hosts for point in known),
        networks=SideCounts.largest(point.networks for point in known)
        if plan.left.host_range.network_range is not None
        else None,
        largest_frame_size=max(largest, USUAL_MAX_FRAME_SIZE),
        rules=rules,
    )


def check_fit(
    plan: CampaignPlan, testbed: str, *, engine: Path | None = None, is_dry: bool = False
) -> list[str]:
    """What is wrong with the testbed, or with this campaign on it, before the first point.

    Where a hook comes before each suite, what only it can bring about is not looked at: a lab that is up, an
    interface, a DUT that answers.

    Args:
        is_dry: Nothing is going to be measured: that this user is not root is then no error but a note.

    Returns:
        Notes for people.

    Raises:
        RequestError: Points of the campaign and this testbed contradict each other; names the suite and what
            mends it.
        HostError: A program, or a right, is missing; or the DUT that is to be set up over SSH cannot be
            reached.
    """
    find_engine(engine)
    check_timeouts(plan.points, testbed, plan.reference)
    is_made_later = all(hooks.before_suite is not None for hooks in plan.suite_hooks.values())
    return rig_of(testbed).check(lambda: demands_of(plan.points), is_made_later=is_made_later, is_dry=is_dry)


def check_timeouts(points: Iterable[Point], testbed: str, reference: Reference | None) -> None:
    """RequestError if the DUT forgets connections before a point has used them (R9693-06)."""
    (established,) = (each.name for each in options_of(EstablishedOptions) if each.field == "established")
    with_connections = [
        point
        for point in points
        if point.goal.get(established) is not None or PROCEDURES[point.procedure].own_idle_s is not None
    ]
    if not with_connections:
        return
    dut = None if reference is None else reference.dut()
    timeout_s = rig_of(testbed).facts(dut).connection_timeout_s
    for point in with_connections:
        request = read_point(point)
        waits_s = request.conditions["waits"].total_s
        idle_s = request.procedure.longest_idle_s(request.goal, waits_s, request.conditions["established"])
        if idle_s is not None:
            check_timeout(timeout_s, idle_s, where=f"suite {point.suite!r}")


def sets_up_its_dut(testbed: str | None) -> bool:
    """Whether a campaign sets up the DUT of this testbed by itself; False where the testbed file cannot be
    read."""
    return testbed is not None and rig_of(testbed).facts().sets_up_its_dut


def check_testbed(testbed: str) -> None:
    """What is wrong with a testbed whatever the campaign: it is so for every point, and is reported before
    the first.

    Raises:
        RequestError, HostError: As `check_fit`.
    """
    rig_of(testbed).check()


def name_of_run(path: Path) -> str:
    """The same when the run goes on in another process: it takes its DUT over."""
    return f"{socket.gethostname()}:{path.absolute()}"


def dut_over_ssh(testbed: str) -> ReachableDut | None:
    """The testbed's DUT, if a run is to set it up; None without a testbed, when workers elsewhere have
    theirs. Errors as `Rig.read`."""
    return rig_of(testbed).reachable_dut() if testbed else None


def set_up_for(
    point: Point, setup: Setup, keeper: RunStore, on_event: OnCampaignEvent, *, run: str
) -> str | None:
    """Have the DUT set up for this point. Why it cannot be; None if it is, or if it is not for this run to
    do.

    Raises:
        HeldError: Somebody else has set it up.
        HostError: It cannot be reached.
    """

    def keep(change: DutChange) -> None:
        # What is undone is undone for no point.
        of_point = point if change.when == APPLIED else None
        keeper.add_hook(_as_hook(change), point=of_point, suite=None)

    return setup.set_up_for(
        dut_wish_of(point), run=run, on_change=keep, on_note=lambda text: on_event(Note(text=text))
    )


def put_dut_back(dut: ReachableDut, keeper: RunStore, on_event: OnCampaignEvent, *, run: str) -> None:
    """Put the DUT back as it was before this run, if this run has set it up. HostError if that does not work;
    what to do is part of the error."""
    put_back(
        dut,
        run=run,
        on_change=lambda change: keeper.add_hook(_as_hook(change), point=None, suite=None),
        on_note=lambda text: on_event(Note(text=text)),
    )


def _as_hook(change: DutChange) -> HookRun:
    return HookRun(
        when=change.when,
        command=change.command,
        exit_code=0,
        output=change.to_json(),
        duration_s=change.duration_s,
    )
