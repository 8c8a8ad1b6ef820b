# SPDX-License-Identifier: Apache-2.0
"""Campaign: whether its testbed can take part in it. What would cost points their number is refused before
anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.programs import ROUTER, find_program
from evenhand.campaign.dut_setup import check_reachable_dut, is_set_up_over_ssh
from evenhand.campaign.lab_of_run import lab_name_of, wish_of
from evenhand.campaign.options import plan_of, read_size
from evenhand.campaign.points import CampaignPlan
from evenhand.procedure import REFERENCE, Setup, read_setup
from evenhand.rig.lab import LinuxLab, check_vm_programs, require_root
from evenhand.rig.lab.borrow import kind_of
from evenhand.series.campaign import Point
from evenhand.trial import find_engine

UNSET = 'hash-types = "not-stated"'
"""What takes a key out of a preset."""


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
    if testbed == REFERENCE:
        find_program(ROUTER)
        return []
    name = lab_name_of(testbed)
    if name is not None and (kind := kind_of(name)) is not None:
        check_lab_points(testbed, kind, plan.points)
        return check_lab_host(kind, is_dry=is_dry)
    hooked = _hooked(plan)
    try:
        setup = read_setup(testbed)
    except RequestError:
        if hooked and (name is not None or not Path(testbed).exists()):
            return []  # a lab, or a testbed file, that the hook makes
        raise
    except HostError:
        if hooked:
            return []
        raise
    check_points(setup, plan.points, is_set_up=is_set_up_over_ssh(setup))
    if not hooked:
        check_reachable_dut(setup, plan.points)
    return []


def sets_up_its_dut(testbed: str | None) -> bool:
    """Whether a campaign sets up the DUT of this testbed by itself; False where the testbed file cannot be
    read."""
    if testbed is None:
        return False
    name = lab_name_of(testbed)
    if testbed == REFERENCE or (name is not None and kind_of(name) is not None):
        return True
    try:
        return is_set_up_over_ssh(read_setup(testbed))
    except EvenhandError:
        return False


def check_points(setup: Setup, points: Iterable[Point], *, is_set_up: bool) -> None:
    """RequestError if the DUT is set up for another plan than a point's, or does not take its frames.

    Args:
        is_set_up: The campaign sets up the DUT for each plan by itself.
    """
    for point in {
        (point.plan, point.hosts, point.networks, point.frame_size): point for point in points
    }.values():
        try:
            if not is_set_up:
                setup.check_plan(plan_of(point))
            size = read_size(point.frame_size)
            setup.check_frame_sizes(setup.testbed.streams(plan_of(point), size, point.directions))
        except RequestError as error:
            raise RequestError(
                f"{error.what} (point {point.key})", where=error.where, next_step=error.next_step
            ) from error


def check_lab_points(testbed: str, kind: str, all_points: Sequence[Point]) -> None:
    """RequestError for points that a lab, which is set up for each of them, cannot measure."""
    is_linux = kind == LinuxLab.kind
    for suite, points in _by_suite(all_points):
        hashed = next((point for point in points if point.hash_type is not None), None)
        if is_linux and hashed is not None:
            raise RequestError(
                f"{testbed} has no NIC whose hash could be set to {hashed.hash_type}: its links are veth"
                " pairs, which hash nothing",
                where=f"suite {suite!r}: hash-types",
                next_step=f"Write {UNSET} in that suite, or in [every-suite] for all of them; or use"
                " --testbed lab:vm, whose NICs hash.",
            )
        if is_linux and any(plan_of(point).other is not None for point in points):
            raise RequestError(
                f"{testbed} forwards one IP version at a time, and {points[0].plan} sends both",
                where=f"suite {suite!r}: plan",
                next_step="Use --testbed lab:vm or reference, or a suite for each version.",
            )
        wish_of(points).make_plan()


def check_lab_host(kind: str, *, is_dry: bool) -> list[str]:
    """Whether this host, and this user, can have a lab of this kind. See `check_fit`."""
    if kind != LinuxLab.kind:
        check_vm_programs()
    try:
        require_root(lab="Linux" if kind == LinuxLab.kind else kind)
    except HostError as error:
        if not is_dry:
            raise
        return [f"{error.what[0].upper()}{error.what[1:]}: run it with sudo."]
    return []


def _by_suite(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    names = dict.fromkeys(point.suite for point in points)
    return [(name, [point for point in points if point.suite == name]) for name in names]


def _hooked(plan: CampaignPlan) -> bool:
    """Whether a command of the user's comes before each suite."""
    return all(hooks.before_suite is not None for hooks in plan.suite_hooks.values())


def check_testbed(testbed: str) -> None:
    """What is wrong with a testbed whatever the campaign: it is so for every point, and is told before the
    first.

    Raises:
        RequestError, HostError: As `check_fit`.
    """
    if testbed == REFERENCE:
        find_program(ROUTER)
        return
    name = lab_name_of(testbed)
    kind = None if name is None else kind_of(name)
    if kind is None:
        check_reachable_dut(read_setup(testbed))
    else:
        check_lab_host(kind, is_dry=False)
