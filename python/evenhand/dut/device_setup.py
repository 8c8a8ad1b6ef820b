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

from evenhand.base.errors import HostError, RequestError
from evenhand.dut import device_record as records
from evenhand.dut.configuration import Footprint, Line, shown
from evenhand.dut.description import DutSetup
from evenhand.dut.device_record import DeviceRecord
from evenhand.dut.dialogs import DIALOGS, Say
from evenhand.dut.named_system import MOST_NAMED, NamedSystemDut
from evenhand.dut.record import Holder
from evenhand.dut.script import Check, DutScript
from evenhand.dut.terminal import Terminal
from evenhand.testbed import TestbedDut

READ_BACK_TRIES, READ_BACK_S = 5, 1.0
"""A route is there a moment after its commit."""
_PASSES = 5
"""Most passes of putting back: what is refused in one, since something else is in the way, goes in the
next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDut(NamedSystemDut[DeviceRecord]):
    """The DUT of a testbed, and its command line."""

    terminal: Terminal

    @property
    def title(self) -> str:
        return self.system.title

    @property
    def _destination(self) -> str:
        return self.terminal.destination

    def check(self) -> tuple[tuple[Line, ...], DeviceRecord | None]:
        """See `NamedSystemDut.check`: what its configuration has of its interfaces."""
        lines = self._check_interfaces()
        footprint = Footprint((), self.interfaces)
        return tuple(line for line in lines if footprint.has(line)), self.read_held()

    def apply(self, setups: Sequence[DutSetup], holder: Holder) -> DeviceRecord:
        """See `NamedSystemDut.apply`: only what was read back is kept."""
        kept, dialog = records.file_of(self._destination), self.terminal.dialog
        held = self.read_held()
        if held is not None:
            raise self.held_by(held, kept)
        if any(setup.hash_type is not None for setup in setups):
            raise RequestError(
                f"{self.system.title} has no commands here for the hash",
                code="rig.hash-not-settable",
                where="--hash",
                next_step="Omit it. What is known of its hash is among the notes of: evenhand dut setup"
                f" --os {self.dut.os} --hash type1 --only hash",
            )
        before = self._check_interfaces()
        there, back = (self.scripts(setups, is_undo=is_undo) for is_undo in (False, True))
        self._refuse_changes()
        record = DeviceRecord(
            **self.asked(setups, holder), sent=_lines(there), undo=_lines(back), before=before
        )
        if not records.take(self._destination, record):
            raise self.held_by(self.read_held(), kept)
        try:
            self._say_all(record, dialog.first)
            self._change(record)
            self._say_all(record, dialog.trial)
            record = record.with_after(self.terminal.configuration())
            records.keep(self._destination, record)
            self._read_back([check for script in there for check in script.checks()])
            self._say_all(record, dialog.keep)
        except BaseException as error:
            self.put_back_after(error, record)
            raise
        return record

    def read_held(self) -> DeviceRecord | None:
        return records.read_held(self._destination)

    def drop(self, record: DeviceRecord) -> None:
        for say in self.terminal.dialog.drop:
            with suppress(HostError):  # after a commit there is nothing to throw away, and no prompt for it
                self.terminal.say(say, session=record.session)

    def put_back(self, record: DeviceRecord) -> None:
        """What the set-up added goes, and what it took away comes back."""
        terminal, dialog = self.terminal, self.terminal.dialog
        for say in dialog.reject:
            terminal.say(say, session=record.session)
        now = terminal.configuration()
        change = record.change(now)
        left = change.left(record.before, now)
        for number in range(_PASSES):
            if not left:
                break
            # Settings without a comment have no line when they have their default; a table that is in use
            # holds its lines.
            defaults = (
                []
                if dialog.commit or number
                else [line for line in record.undo if " set " in line or line.startswith("do ")]
            )
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
            kept = records.file_of(self._destination)
            raise self.not_restored(unlike, f"the previous configuration is in {kept}")
        records.forget(self._destination)

    def _change(self, record: DeviceRecord) -> None:
        terminal = self.terminal
        for number, line in enumerate(record.sent, start=1):
            said = terminal.refused(terminal.change(line))
            if said is not None and line.strip() not in terminal.dialog.may_refuse:
                raise self.not_taken(f"line {number} of {len(record.sent)}, {line.strip()!r}: {said}")

    def _say_all(self, record: DeviceRecord, says: Sequence[Say]) -> None:
        for say in says:
            said = self.terminal.refused(self.terminal.say(say, session=record.session))
            if said is not None:
                raise self.not_taken(f"{say.command.format(session=record.session)!r}: {said}")

    def _read_back(self, checks: Sequence[Check]) -> None:
        """Ask what the set-up says that is to be asked, one command once."""
        missing: dict[Check, list[str]] = {}
        for tries_left in reversed(range(READ_BACK_TRIES)):
            answers = {command: self.terminal.ask(command) for command in {each.command for each in checks}}
            missing = {each: gone for each in checks if (gone := each.missing(answers[each.command]))}
            if not missing or not tries_left:
                break
            time.sleep(READ_BACK_S)
        if missing:
            named = [f"{text!r} ({each.command})" for each, texts in missing.items() for text in texts]
            more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
            raise self.not_taken(f"it does not show, or not alone: {', '.join(named[:MOST_NAMED])}{more}")

    def _refuse_changes(self) -> None:
        """A trial that is not kept restarts VyOS with what was saved; a commit of SR Linux takes along what
        its user has left in the candidate."""
        dialog, title = self.terminal.dialog, self.system.title
        if self._shows_changes(dialog.unsaved):
            raise RequestError(
                f"{title} has changes that are committed and not saved: they would be lost if this machine"
                " lost it while it is set up",
                code="rig.dut-not-saved",
                where=self.where,
                next_step="Save them there (configure, save), or take them back; then run this again.",
            )
        if self._shows_changes(dialog.uncommitted):
            raise RequestError(
                f"{title} has changes in this user's candidate that are not committed: the set-up would"
                " commit them",
                code="rig.dut-not-committed",
                where=self.where,
                next_step="Commit them there, or throw them away (enter candidate private, discard now); then"
                " run this again.",
            )

    def _shows_changes(self, say: Say | None) -> bool:
        said = "" if say is None else self.terminal.say(say, session="")
        return bool(re.search(r"^\s*[+-]", said, re.MULTILINE))

    def _check_interfaces(self) -> tuple[Line, ...]:
        """The DUT's configuration, if its interfaces can be set up."""
        self.check_pairs()
        lines, terminal = self.terminal.configuration(), self.terminal
        for side, name in self.dut.interfaces.items():
            command = terminal.dialog.show_interface.format(name=name.partition(".")[0])
            if terminal.dialog.no_interface.search(terminal.ask(command)):
                example = self.system.interfaces[0]
                raise self.missing_interface(side, next_step=f"Name it as the DUT does, such as {example}.")
            own = Footprint((), (name,))
            words = {
                word
                for line in lines
                if own.has(line)
                for part in line
                for word in re.split(r"[\s'/=]", part.lower())
            }
            if terminal.addresses & words:
                raise self.carries_ssh(side)
        return lines


def is_device(dut: TestbedDut) -> bool:
    """Whether it has no shell, and is set up at its prompt."""
    return dut.os in DIALOGS


def _lines(scripts: Sequence[DutScript]) -> tuple[str, ...]:
    """Commands that change something: what polices the traffic is only shown."""
    return tuple(
        line
        for script in scripts
        for step in script.steps
        if step.part != "policing"
        for line in (step.undo if script.is_undo else step.do)
    )
