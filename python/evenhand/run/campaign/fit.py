# SPDX-License-Identifier: Apache-2.0
"""Campaign: whether its testbed can take part in it. What would cost points their number is refused before
anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evenhand.base.option import options_of
from evenhand.procedure.connection_trials import check_timeout
from evenhand.procedure.registry import PROCEDURES
from evenhand.rig import rig_of
from evenhand.run.campaign.demands import demands_of
from evenhand.spec.established import EstablishedOptions
from evenhand.spec.file import Reference
from evenhand.spec.point import Point
from evenhand.spec.points import CampaignPlan
from evenhand.spec.reference import reference_dut
from evenhand.spec.request import read_point
from evenhand.trial import find_engine


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
    dut = None if reference is None else reference_dut(reference)
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
