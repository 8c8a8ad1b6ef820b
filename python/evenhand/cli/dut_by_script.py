# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo` for a DUT that is set up by scripts: see dut/scripted.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.cli.common import out, write_json
from evenhand.dut import DutSetup
from evenhand.dut.device_record import DeviceRecord
from evenhand.dut.record import Holder
from evenhand.dut.scripted import ScriptedDut, ScriptRecord, apply, read_held, undo
from evenhand.dut.scripted import check as check_scripted
from evenhand.dut.setup import DutOnShell
from evenhand.rig import TestbedDut

Record = DeviceRecord | ScriptRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DutSaid:
    """Writes what a verb says of a DUT whose set-up is known as a whole, by its plan and by who made it: as
    text, or as its JSON document."""

    dut: TestbedDut
    destination: str
    unheld: str
    """What a DUT without a record is: `not set up`."""
    json_output: bool

    def applied(self, record: Record, testbed: Path) -> None:
        if self.json_output:
            self.document("dut apply", held=held_document(record))
            return
        say(f"{self.destination} is set up for {record.plan}, and all of it was read back.")
        say(f"Restore it with: evenhand dut undo {testbed}")

    def status(self, held: Record | None, testbed: Path) -> None:
        if self.json_output:
            self.document("dut status", held=held_document(held))
        elif held is None:
            say(f"{self.destination} is {self.unheld}.")
        else:
            say(f"{self.destination} is set up for {held.plan} by {held.by}.")
            say(f"Restore it with: evenhand dut undo {testbed}")

    def undone(self, record: Record | None) -> None:
        if self.json_output:
            self.document("dut undo", undone=held_document(record))
        elif record is None:
            say(f"{self.destination} is {self.unheld}: there is nothing to restore.")
        else:
            say(f"{self.destination} is restored to its state before {record.plan}.")

    def document(self, command: str, **parts: Any) -> None:
        """Writes the JSON document of a verb."""
        write_json({"command": command, **dut_document(self.dut, self.destination), **parts})


def dut_document(dut: TestbedDut, destination: str) -> dict[str, Any]:
    """The keys that say which DUT it is, in the document of each verb."""
    return {"dut": destination, "os": dut.os, **dut.model_dump(mode="json", include={"left", "right"})}


def held_document(record: Record | None) -> dict[str, Any] | None:
    return None if record is None else {"plan": record.plan, "by": record.by, "since": record.since}


def say(text: str) -> None:
    out().print(text, markup=False, soft_wrap=True)


def check(on: DutOnShell, *, json_output: bool) -> None:
    state, held = check_scripted(_scripted(on))
    if json_output:
        _said(on, json_output).document(
            "dut check", kernel=on.shell.host.kernel, state=list(state), held=held_document(held)
        )
        return
    say(f"{on.destination}: {on.shell.host.kernel}, root; {', '.join(on.interfaces)} can be set up.")
    for line in state:
        say(f"  {line}")
    say("It is not set up." if held is None else f"It is set up for {held.plan} by {held.by}.")


def apply_setup(on: DutOnShell, setups: Sequence[DutSetup], testbed: Path, *, json_output: bool) -> None:
    _said(on, json_output).applied(apply(_scripted(on), setups, Holder.here("hand")), testbed)


def status(on: DutOnShell, testbed: Path, *, json_output: bool) -> None:
    _said(on, json_output).status(read_held(_scripted(on)), testbed)


def undo_setup(on: DutOnShell, *, json_output: bool) -> None:
    _said(on, json_output).undone(undo(_scripted(on)))


def _scripted(on: DutOnShell) -> ScriptedDut:
    return ScriptedDut(dut=on.dut, shell=on.shell)


def _said(on: DutOnShell, json_output: bool) -> DutSaid:
    return DutSaid(dut=on.dut, destination=on.destination, unheld="not set up", json_output=json_output)
