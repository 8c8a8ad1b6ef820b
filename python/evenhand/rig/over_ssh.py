# SPDX-License-Identifier: Apache-2.0
"""Rig: a DUT that is set up over SSH for each point that asks for something else than the one before, and put
back at the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.programs import uninterrupted
from evenhand.dut import DutSetup, describe_setups
from evenhand.dut.connections import LONGEST_S, Emptied
from evenhand.dut.items import NotTakenError
from evenhand.dut.linux_items import linux_items
from evenhand.dut.many_routes import costs, many_routes_of
from evenhand.dut.nat import CONNTRACK_INSTALL, empty_command, timeout_command
from evenhand.dut.record import Holder, SetupRecord, read_held
from evenhand.dut.setup import DutOnShell, HeldError, apply, check_dut, fingerprint_of, is_in_place, undo
from evenhand.dut.ssh import open_shell
from evenhand.rig.dut_wish import APPLIED, UNDONE, DutChange, DutWish, OnDutChange, OnNote, ReachableDut

_SHOWN = 300


def check_settable(dut: ReachableDut, wishes: Iterable[DutWish]) -> None:
    """Refuse a DUT that is to be set up over SSH, and cannot be reached, or cannot be set up so. Changes
    nothing.

    Raises:
        RequestError: As `check_dut`, or a wish is for what the DUT does not have, such as a hash.
        HostError: As `check_dut`.
    """
    with _on(dut) as on:
        state, _ = check_dut(on)
        for wish in {(wish.plan.title, wish.hash_type): wish for wish in wishes}.values():
            try:
                linux_items(_setups(wish, on), state)
            except NotTakenError as error:
                raise RequestError(
                    f"{error.what} ({wish.label})",
                    code=error.code,
                    where=error.where,
                    next_step=error.next_step,
                ) from error


def set_up(
    dut: ReachableDut, wish: DutWish, *, run: str, on_change: OnDutChange, on_note: OnNote
) -> str | None:
    """Have the DUT set up so. Why it cannot be; None if it is.

    Args:
        run: Which run this is: what the same run has set up before, it changes.
        on_change: Called while the connection is open, before the change is noted to people.

    Raises:
        HeldError: Someone else has set it up.
        HostError: It cannot be reached.
    """
    try:
        with _on(dut) as on:
            wanted = _setups(wish, on)
            held = read_held(on.shell)
            if held is not None and _stands(on, held, wanted, run):
                return None
            if held is not None and held.holder.run == run:
                _put_back(on, run=run, on_change=on_change, on_note=on_note)
            began = time.monotonic()

            def keep(record: SetupRecord) -> None:
                on_change(DutChange(when=APPLIED, record=record, duration_s=time.monotonic() - began))

            for cost in costs(many for each in wanted for many in many_routes_of(each)):
                on_note(f"{cost}.")
            record = apply(on, wanted, holder=Holder.here("run", run), on_record=keep)
            on_note(f"The DUT is set up for {_asked(record)}: {len(record.changes)} changes, each read back.")
    except HeldError:
        raise
    except EvenhandError as error:
        if isinstance(error, HostError) and not isinstance(error, NotTakenError):
            raise
        return f"the DUT cannot be set up for this point: {error.what} ({error.where})"
    return None


def put_back(dut: ReachableDut, *, run: str, on_change: OnDutChange, on_note: OnNote) -> None:
    """Put the DUT back as it was before this run, if this run has set it up. HostError if that does not work;
    it states what to do."""
    with uninterrupted(), _on(dut) as on:
        _put_back(on, run=run, on_change=on_change, on_note=on_note)


def _put_back(on: DutOnShell, *, run: str, on_change: OnDutChange, on_note: OnNote) -> None:
    began = time.monotonic()
    record = undo(on, run=run)
    if record is not None:
        on_note(f"The DUT has been restored to its state before the set-up for {_asked(record)}.")
        on_change(DutChange(when=UNDONE, record=record, duration_s=time.monotonic() - began))


def _stands(on: DutOnShell, held: SetupRecord, wanted: list[DutSetup], run: str) -> bool:
    """Whether the DUT has it already, by this run or by hand."""
    if held.fingerprint != fingerprint_of(wanted) or (held.holder.run != run and held.holder.kind != "hand"):
        return False
    return is_in_place(on, held)


def _setups(wish: DutWish, on: DutOnShell) -> list[DutSetup]:
    return describe_setups(wish.plan.plans, on.pairs, hash_type=wish.hash_type)


def empty_connections(dut: ReachableDut, *, where: str) -> Emptied:
    """Delete all connections that the DUT's kernel tracks, those of other interfaces too. The time is the
    DUT's own, without the way there.

    Raises:
        HostError: It cannot be reached, or has no table, or not the program that empties it.
    """
    with open_shell(dut.dut, config=dut.ssh_config) as shell:
        answer = shell.run(empty_command(), timeout_s=LONGEST_S)
    try:
        connections, nanoseconds = map(int, answer.stdout.split())
    except ValueError:
        said = " ".join(answer.stderr.split())[-_SHOWN:] or "no output"
        raise HostError(
            f"the DUT's table of connections was not emptied: {said}",
            code="rig.emptying-failed",
            where=where,
            next_step="Check that the DUT is set up for the plan (evenhand dut apply), and that it has"
            f" conntrack ({CONNTRACK_INSTALL}).",
        ) from None
    return Emptied(seconds=nanoseconds / 1e9, connections=connections)


def read_timeout(dut: ReachableDut) -> float | None:
    """Seconds without a frame after which the DUT's kernel forgets a connection; None if it tracks none.
    HostError if it cannot be reached."""
    with open_shell(dut.dut, config=dut.ssh_config) as shell:
        answer = shell.run(timeout_command())
    numbers = answer.stdout.split()
    if answer.exit_code or not numbers or not all(number.isdecimal() for number in numbers):
        return None
    return float(min(map(int, numbers)))


@contextmanager
def _on(dut: ReachableDut) -> Iterator[DutOnShell]:
    with open_shell(dut.dut, config=dut.ssh_config) as shell:
        yield DutOnShell(dut=dut.dut, shell=shell)


def _asked(record: SetupRecord) -> str:
    return record.plan + (f", hash {record.hash_type}" if record.hash_type else "")
