# SPDX-License-Identifier: Apache-2.0
"""Campaign: whether its testbed can take part in it. What would cost points their number is refused before
anything is measured."""

from __future__ import annotations

from pathlib import Path

from evenhand.rig import rig_of
from evenhand.run.campaign.demands import demands_of
from evenhand.spec.points import CampaignPlan
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
    is_made_later = all(hooks.before_suite is not None for hooks in plan.suite_hooks.values())
    return rig_of(testbed).check_campaign(
        lambda: demands_of(plan.points), is_made_later=is_made_later, is_dry=is_dry
    )


def sets_up_its_dut(testbed: str | None) -> bool:
    """Whether a campaign sets up the DUT of this testbed by itself; False where the testbed file cannot be
    read."""
    return testbed is not None and rig_of(testbed).sets_up_its_dut


def check_testbed(testbed: str) -> None:
    """What is wrong with a testbed whatever the campaign: it is so for every point, and is told before the
    first.

    Raises:
        RequestError, HostError: As `check_fit`.
    """
    rig_of(testbed).check_host()
