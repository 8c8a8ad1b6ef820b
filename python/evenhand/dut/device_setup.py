# SPDX-License-Identifier: Apache-2.0
"""A device without a shell set up over SSH, and put back: by the lines that `dut setup` prints for its
prompt. What it was is compared line by line, so that only what the set-up added goes, and what it took
away comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.programs import uninterrupted
from evenhand.dut import OPERATING_SYSTEMS
from evenhand.dut import device_record as records
from evenhand.dut.configuration import Footprint, Line, shown
from evenhand.dut.description import DutSetup
from evenhand.dut.device_record import DeviceRecord
from evenhand.dut.dialogs import DIALOGS, Say
from evenhand.dut.items import NotTakenError
from evenhand.dut.record import Holder
from evenhand.dut.script import Check, DutScript, OperatingSystem
from evenhand.dut.terminal import Terminal
from evenhand.testbed import TestbedDut

READ_BACK_TRIES, READ_BACK_S = 5, 1.0
"""A route is there a moment after its commit."""
_PASSES = 5
"""Most passes of putting back: what is refused in one, since something else is in the way, goes in the
next."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDut:
    """The DUT of a testbed, and its command line."""

    dut: TestbedDut
    terminal: Terminal

    @property
    def system(self) -> OperatingSystem:
        assert self.dut.os is not None
        return OPERATING_SYSTEMS[self.dut.os]

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(self.dut.interfaces.values())

    @property
    def destination(self) -> str:
        return self.terminal.destination

    @property
    def where(self) -> str:
        return f"[dut] ssh, {self.destination}"


def is_device(dut: TestbedDut) -> bool:
    """Whether it has no shell, and is set up at its prompt."""
    return dut.os in DIALOGS


def check(on: DeviceDut) -> tuple[tuple[Line, ...], DeviceRecord | None]:
    """What its configuration has of its interfaces, and who has set it up from here. Changes nothing.

    Raises:
        RequestError: An interface is not there, or carries this connection.
        HostError: The DUT does not answer as its system does.
    """
    lines = _check_interfaces(on)
    footprint = Footprint((), on.interfaces)
    return tuple(line for line in lines if footprint.has(line)), records.read_held(on.destination)


def apply(on: DeviceDut, setups: Sequence[DutSetup], holder: Holder) -> DeviceRecord:
    """Set it up for these, one of each IP version, read back that it is so, and only then keep it. If a line
    is refused, or something is not as intended, or this is stopped, nothing of it stays.

    Raises:
        RequestError: The system or its interfaces cannot be set up so; nothing was changed.
        NotTakenError: The DUT did not take something; it was put back.
        HostError: It is set up already, or cannot be reached.
    """
    held = records.read_held(on.destination)
    if held is not None:
        raise _held(on, held)
    if any(setup.hash_type is not None for setup in setups):
        raise RequestError(
            f"{on.system.title} has no commands here for the hash",
            code="rig.hash-not-settable",
            where="--hash",
            next_step="Omit it. What is known of its hash is among the notes of: evenhand dut setup"
            f" --os {on.dut.os} --hash type1 --only hash",
        )
    before = _check_interfaces(on)
    there = [DutScript(setup=setup, system=on.system, is_undo=False) for setup in setups]
    back = [DutScript(setup=setup, system=on.system, is_undo=True) for setup in setups]
    _refuse_unsaved(on)
    record = DeviceRecord.new(
        holder=holder,
        plan="+".join(setup.plan.title for setup in setups),
        system=str(on.dut.os),
        interfaces=on.interfaces,
        sent=_lines(there),
        undo=_lines(back[::-1]),
        before=before,
    )
    if not records.take(on.destination, record):
        raise _held(on, records.read_held(on.destination))
    try:
        _say_all(on, record, on.terminal.dialog.first)
        _change(on, record)
        _say_all(on, record, on.terminal.dialog.trial)
        record = record.with_after(on.terminal.configuration())
        records.keep(on.destination, record)
        _read_back(on, [check for script in there for check in script.checks()])
        _say_all(on, record, on.terminal.dialog.keep)
    except BaseException as error:
        with uninterrupted():
            _put_back_after(error, on, record)
        raise
    return record


def undo(on: DeviceDut) -> DeviceRecord | None:
    """Put the DUT back, whoever has set it up from here; None if nobody has. Errors as `put_back`."""
    record = records.read_held(on.destination)
    if record is not None:
        with uninterrupted():
            put_back(on, record)
    return record


def put_back(on: DeviceDut, record: DeviceRecord) -> None:
    """What the set-up added goes, and what it took away comes back; all else stays as it is now.

    Raises:
        HostError: It cannot be reached, or something of it does not go back; then it stays written down.
    """
    terminal, dialog = on.terminal, on.terminal.dialog
    for say in dialog.reject:
        terminal.say(say, session=record.session)
    now = terminal.configuration()
    change = record.change(now)
    left = change.left(record.before, now)
    for number in range(_PASSES):
        if not left:
            break
        # Settings without a comment have no line when they have their default; a table that is in use holds
        # its lines.
        defaults = [] if dialog.commit or number else _said_first(record.undo)
        session = f"{record.session}-{number}"
        for say in dialog.first:
            terminal.say(say, session=session)
        for line in (*defaults, *dialog.put_back(left, now)):
            terminal.change(line)
        for say in dialog.commit:
            terminal.say(say, session=session)
        now = terminal.configuration()
        left = change.left(record.before, now)
    if left:
        unlike = [f"still there: {shown(line)}" for line in left.added]
        unlike += [f"missing: {shown(line)}" for line in left.removed]
        raise HostError(
            f"not restored: {'; '.join(unlike[:_MOST_NAMED])}"
            + (" and more" if len(unlike) > _MOST_NAMED else ""),
            code="rig.not-restored",
            where=on.where,
            next_step="Correct this on the DUT, and run evenhand dut undo TESTBED again; the previous"
            f" configuration is in {records.file_of(on.destination)}.",
        )
    records.forget(on.destination)


def _put_back_after(error: BaseException, on: DeviceDut, record: DeviceRecord) -> None:
    """The first error is the one to report; what to do about the second is reported with it."""
    try:
        for say in on.terminal.dialog.drop:
            # After a commit there is nothing to throw away, and no prompt for it.
            with suppress(HostError):
                on.terminal.say(say, session=record.session)
        put_back(on, record)
    except EvenhandError as second:
        error.add_note(f"The DUT is not yet in its previous state: {second}")
        if isinstance(error, EvenhandError):
            error.next_step = (
                f"The DUT could not be restored ({second.what}). When it can be reached:"
                " evenhand dut undo TESTBED"
            )


def _said_first(undo: Sequence[str]) -> list[str]:
    return [line for line in undo if " set " in line or line.startswith("do ")]


def _lines(scripts: Sequence[DutScript]) -> tuple[str, ...]:
    """Commands that change something: what polices the traffic is only shown."""
    return tuple(
        line
        for script in scripts
        for step in script.steps
        if step.part != "policing"
        for line in (step.undo if script.is_undo else step.do)
    )


def _change(on: DeviceDut, record: DeviceRecord) -> None:
    terminal = on.terminal
    for number, line in enumerate(record.sent, start=1):
        said = terminal.refused(terminal.change(line))
        if said is not None and line.strip() not in terminal.dialog.may_refuse:
            raise _not_taken(on, f"line {number} of {len(record.sent)}, {line.strip()!r}: {said}")


def _say_all(on: DeviceDut, record: DeviceRecord, says: Sequence[Say]) -> None:
    for say in says:
        said = on.terminal.refused(on.terminal.say(say, session=record.session))
        if said is not None:
            raise _not_taken(on, f"{say.command.format(session=record.session)!r}: {said}")


def _read_back(on: DeviceDut, checks: Sequence[Check]) -> None:
    """Ask what the set-up says that is to be asked, one command once."""
    missing: dict[Check, list[str]] = {}
    for tries_left in reversed(range(READ_BACK_TRIES)):
        answers = {command: on.terminal.ask(command) for command in {each.command for each in checks}}
        missing = {each: gone for each in checks if (gone := each.missing(answers[each.command]))}
        if not missing or not tries_left:
            break
        time.sleep(READ_BACK_S)
    if missing:
        named = [f"{text!r} ({each.command})" for each, texts in missing.items() for text in texts]
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        raise _not_taken(on, f"it does not show, or not alone: {', '.join(named[:_MOST_NAMED])}{more}")


def _not_taken(on: DeviceDut, what: str) -> NotTakenError:
    return NotTakenError(
        f"the DUT did not accept the set-up: {what}",
        code="rig.set-up-not-accepted",
        where=on.where,
        next_step="Nothing was sent, and the set-up was undone. Try the commands there by hand: evenhand dut"
        f" setup --os {on.dut.os}",
    )


def _held(on: DeviceDut, held: DeviceRecord | None) -> HostError:
    what = "is just being set up" if held is None else f"is already set up for {held.plan}, by {held.by}"
    return HostError(
        f"the DUT {what}",
        code="rig.dut-held",
        where=str(records.file_of(on.destination)),
        next_step="If it is no longer needed, restore the DUT: evenhand dut undo TESTBED",
    )


def _refuse_unsaved(on: DeviceDut) -> None:
    """A trial that is not kept restarts such a device with what was saved."""
    say = on.terminal.dialog.unsaved
    if say is not None and re.search(r"^\s*[+-]", on.terminal.say(say, session=""), re.MULTILINE):
        raise RequestError(
            f"{on.system.title} has changes that are committed and not saved: they would be lost if this"
            " machine lost it while it is set up",
            code="rig.dut-not-saved",
            where=on.where,
            next_step="Save them there (configure, save), or take them back; then run this again.",
        )


def _check_interfaces(on: DeviceDut) -> tuple[Line, ...]:
    """The DUT's configuration, if its interfaces can be set up."""
    if len(on.dut.interface_pairs) != 1:
        raise RequestError(
            f"{on.system.title} is set up over SSH for one pair of interfaces, and the testbed names"
            f" {len(on.dut.interface_pairs)}",
            code="rig.one-pair-only",
            where="[dut] left, right",
            next_step='Name one interface for each side, or use a DUT under plain Linux (os = "linux").',
        )
    lines = on.terminal.configuration()
    for side, name in on.dut.interfaces.items():
        command = on.terminal.dialog.show_interface.format(name=name.partition(".")[0])
        if on.terminal.dialog.no_interface.search(on.terminal.ask(command)):
            raise RequestError(
                f"the DUT has no interface {name!r}",
                code="rig.dut-interface-missing",
                where=f"[dut] {side}",
                next_step=f"Name it as the DUT does, such as {on.system.interfaces[0]}.",
            )
        own = Footprint((), (name,))
        words = {
            word
            for line in lines
            if own.has(line)
            for part in line
            for word in re.split(r"[\s'/=]", part.lower())
        }
        if on.terminal.addresses & words:
            raise RequestError(
                f"{name} carries the SSH connection",
                code="rig.carries-ssh",
                where=f"[dut] {side}",
                next_step="It is never changed. Name the interface that the tester is connected to.",
            )
    return lines
