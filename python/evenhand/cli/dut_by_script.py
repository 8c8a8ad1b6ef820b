# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo` for a DUT that is set up by scripts: see dut/scripted.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.cli.common import out, write_json
from evenhand.dut import DutSetup
from evenhand.dut.record import Holder
from evenhand.dut.scripted import ScriptedDut, ScriptRecord, apply, read_held, undo
from evenhand.dut.scripted import check as check_scripted
from evenhand.dut.setup import DutOnShell


def check(on: DutOnShell, *, json_output: bool) -> None:
    state, held = check_scripted(_scripted(on))
    if json_output:
        write_json(
            {
                "command": "dut check",
                **_dut(on),
                "kernel": on.shell.host.kernel,
                "state": list(state),
                "held": _held(held),
            }
        )
        return
    _say(f"{on.destination}: {on.shell.host.kernel}, root; {', '.join(on.interfaces)} can be set up.")
    for line in state:
        _say(f"  {line}")
    _say("It is not set up." if held is None else f"It is set up for {held.plan} by {held.by}.")


def apply_setup(on: DutOnShell, setups: Sequence[DutSetup], testbed: Path, *, json_output: bool) -> None:
    record = apply(_scripted(on), setups, Holder.here("hand"))
    if json_output:
        write_json({"command": "dut apply", **_dut(on), "held": _held(record)})
        return
    _say(f"{on.destination} is set up for {record.plan}, and all of it was read back.")
    _say(f"Restore it with: evenhand dut undo {testbed}")


def status(on: DutOnShell, testbed: Path, *, json_output: bool) -> None:
    held = read_held(_scripted(on))
    if json_output:
        write_json({"command": "dut status", **_dut(on), "held": _held(held)})
    elif held is None:
        _say(f"{on.destination} is not set up.")
    else:
        _say(f"{on.destination} is set up for {held.plan} by {held.by}.")
        _say(f"Restore it with: evenhand dut undo {testbed}")


def undo_setup(on: DutOnShell, *, json_output: bool) -> None:
    record = undo(_scripted(on))
    if json_output:
        write_json({"command": "dut undo", **_dut(on), "undone": _held(record)})
    elif record is None:
        _say(f"{on.destination} is not set up: there is nothing to restore.")
    else:
        _say(f"{on.destination} is restored to its state before {record.plan}.")


def _scripted(on: DutOnShell) -> ScriptedDut:
    return ScriptedDut(dut=on.dut, shell=on.shell)


def _dut(on: DutOnShell) -> dict[str, Any]:
    sides = on.dut.model_dump(mode="json", include={"left", "right"})
    return {"dut": on.destination, "os": on.dut.os, **sides}


def _held(record: ScriptRecord | None) -> dict[str, Any] | None:
    return None if record is None else {"plan": record.plan, "by": record.by, "since": record.since}


def _say(text: str) -> None:
    out().print(text, markup=False, soft_wrap=True)
