# SPDX-License-Identifier: Apache-2.0
"""Campaign: its DUT, set up over SSH for each point that asks for something else than the one before, and put
back at the end."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.campaign.events import OnCampaignEvent
from evenhand.campaign.options import plan_of
from evenhand.procedure import LAB_PREFIX, REFERENCE, Note, Setup, read_setup
from evenhand.rig.dut import DutSetup, describe_setup
from evenhand.rig.dut.items import NotTakenError
from evenhand.rig.dut.linux_items import linux_items
from evenhand.rig.dut.record import Holder, SetupRecord, read_held
from evenhand.rig.dut.setup import (
    DutOnShell,
    HeldError,
    apply,
    check_dut,
    fingerprint_of,
    is_in_place,
    undo,
    uninterrupted,
)
from evenhand.rig.dut.ssh import open_shell
from evenhand.rig.lab import lab_status
from evenhand.rig.testbed import TestbedDut
from evenhand.series.campaign import HookRun, Point

MOST_LISTED = 1000
"""Changes that the run file lists; there may be 131,072 neighbours."""


class HookKeeper(Protocol):
    """Where what was done to the DUT is kept, as a hook's doings are."""

    def add_hook(self, hook: HookRun, *, point: Point | None, suite: str | None) -> None:
        """A command that has ended."""


def name_of_run(path: Path) -> str:
    """The same when the run goes on in another process: it takes its DUT over."""
    return f"{socket.gethostname()}:{path.absolute()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableDut:
    """A DUT that a run sets up: a router over SSH, or the virtual machine of a lab, which has the hash of no
    point by itself."""

    dut: TestbedDut
    ssh_config: Path | None
    """See `Setup.ssh_config`."""


def dut_over_ssh(testbed: str) -> ReachableDut | None:
    """The testbed's DUT, if a run is to set it up; None without a testbed, when workers elsewhere have
    theirs, and for a lab that is down. Errors as `read_setup`."""
    if testbed in (REFERENCE, ""):
        return None
    if testbed.startswith(LAB_PREFIX) and lab_status(testbed.removeprefix(LAB_PREFIX)) is None:
        return None
    return _reachable(read_setup(testbed))


def is_set_up_over_ssh(setup: Setup) -> bool:
    """Whether a run sets up the DUT of this testbed for each of its points."""
    return _reachable(setup) is not None


def check_reachable_dut(setup: Setup, points: Iterable[Point] = ()) -> None:
    """Refuse a DUT that is to be set up over SSH, and cannot be reached, or cannot be set up for these
    points. Changes nothing.

    Raises:
        RequestError: As `check_dut`, or a point asks for what the DUT does not have, such as a hash.
        HostError: As `check_dut`.
    """
    dut = _reachable(setup)
    if dut is None:
        return
    with _on(dut) as on:
        state, _ = check_dut(on)
        for point in {(point.plan, point.hash_type): point for point in points}.values():
            try:
                linux_items(_setups(point, on), state)
            except NotTakenError as error:
                raise RequestError(
                    f"{error.what} (point {point.key})", where=error.where, next_step=error.next_step
                ) from error


def set_up_for(
    point: Point, setup: Setup, keeper: HookKeeper, on_event: OnCampaignEvent, *, run: str
) -> str | None:
    """Have the DUT set up for this point. Why it cannot be; None if it is, or if it is not for this run to
    do.

    Raises:
        HeldError: Somebody else has set it up.
        HostError: It cannot be reached.
    """
    dut = _reachable(setup)
    if dut is None:
        if setup.lab is not None and point.hash_type is not None:
            return f"the DUT of {setup.name} has no NIC whose hash could be set (hash-types)"
        return None
    try:
        with _on(dut) as on:
            wanted = _setups(point, on)
            held = read_held(on.shell)
            if held is not None and _stands(on, held, wanted, run):
                return None
            if held is not None and held.holder.run == run:
                _put_back(on, keeper, on_event, run)
            began = time.monotonic()

            def keep(record: SetupRecord) -> None:
                keeper.add_hook(
                    _as_hook("dut_apply", record, time.monotonic() - began), point=point, suite=None
                )

            record = apply(on, wanted, holder=Holder.here("run", run), on_record=keep)
            on_event(
                Note(
                    text=f"The DUT is set up for {_asked(record)}: {len(record.changes)} changes, each read"
                    " back."
                )
            )
    except HeldError:
        raise
    except EvenhandError as error:
        if isinstance(error, HostError) and not isinstance(error, NotTakenError):
            raise
        return f"the DUT cannot be set up for it: {error.what} ({error.where})"
    return None


def put_dut_back(dut: ReachableDut, keeper: HookKeeper, on_event: OnCampaignEvent, *, run: str) -> None:
    """As it was before this run, if this run has set it up. HostError if that does not work; what to do is
    told with it."""
    with uninterrupted(), _on(dut) as on:
        _put_back(on, keeper, on_event, run)


def _put_back(on: DutOnShell, keeper: HookKeeper, on_event: OnCampaignEvent, run: str) -> None:
    began = time.monotonic()
    record = undo(on, run=run)
    if record is not None:
        on_event(Note(text=f"The DUT is as it was before it was set up for {_asked(record)}."))
        keeper.add_hook(_as_hook("dut_undo", record, time.monotonic() - began), point=None, suite=None)


def _stands(on: DutOnShell, held: SetupRecord, wanted: list[DutSetup], run: str) -> bool:
    """Whether the DUT has it already, by this run or by hand."""
    if held.fingerprint != fingerprint_of(wanted) or (held.holder.run != run and held.holder.kind != "hand"):
        return False
    return is_in_place(on, held)


def _setups(point: Point, on: DutOnShell) -> list[DutSetup]:
    plan, (left, right) = plan_of(point, is_whole=True), on.interfaces
    return [describe_setup(each, left=left, right=right, hash_type=point.hash_type) for each in plan.plans]


def _reachable(setup: Setup) -> ReachableDut | None:
    dut = setup.testbed.dut
    return (
        None
        if setup.router is not None or dut.ssh is None
        else ReachableDut(dut=dut, ssh_config=setup.ssh_config)
    )


@contextmanager
def _on(dut: ReachableDut) -> Iterator[DutOnShell]:
    with open_shell(dut.dut, config=dut.ssh_config) as shell:
        yield DutOnShell(dut=dut.dut, shell=shell)


def _asked(record: SetupRecord) -> str:
    return record.plan + (f", hash {record.hash_type}" if record.hash_type else "")


def _as_hook(when: str, record: SetupRecord, duration_s: float) -> HookRun:
    changes = [{"name": item.name, "before": item.before, "value": item.wanted} for item in record.changes]
    document = {
        "plan": record.plan,
        "hash": record.hash_type,
        "interfaces": record.interfaces,
        "changes": changes[:MOST_LISTED],
    }
    left_out = len(changes) - MOST_LISTED
    output = json.dumps({**document, **({"left_out": left_out} if left_out > 0 else {})})
    return HookRun(
        when=when,
        command=f"evenhand {when.replace('_', ' ')}",
        exit_code=0,
        output=output,
        duration_s=duration_s,
    )
