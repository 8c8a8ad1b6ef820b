# SPDX-License-Identifier: Apache-2.0
"""Campaign: its DUT, set up for each point that asks for something else than the one before, and put back at
the end. What was done to it is kept as a hook's doings are."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Protocol

from evenhand.procedure import Note
from evenhand.rig import APPLIED, DutChange, ReachableDut, Setup, put_back, rig_of
from evenhand.run.campaign.demands import dut_wish_of
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.run.campaign_record import HookRun
from evenhand.spec.point import Point


class HookKeeper(Protocol):
    """Where what was done to the DUT is kept."""

    def add_hook(self, hook: HookRun, *, point: Point | None, suite: str | None) -> None:
        """A command that has ended."""


def name_of_run(path: Path) -> str:
    """The same when the run goes on in another process: it takes its DUT over."""
    return f"{socket.gethostname()}:{path.absolute()}"


def dut_over_ssh(testbed: str) -> ReachableDut | None:
    """The testbed's DUT, if a run is to set it up; None without a testbed, when workers elsewhere have
    theirs. Errors as `Rig.read`."""
    return rig_of(testbed).reachable_dut() if testbed else None


def set_up_for(
    point: Point, setup: Setup, keeper: HookKeeper, on_event: OnCampaignEvent, *, run: str
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


def put_dut_back(dut: ReachableDut, keeper: HookKeeper, on_event: OnCampaignEvent, *, run: str) -> None:
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
