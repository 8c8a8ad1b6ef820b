# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo` for a DUT of another system than plain Linux: see
dut/named_system.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.cli.common import out, write_json
from evenhand.dut import DutSetup, device_record
from evenhand.dut.device_setup import DeviceDut, is_device
from evenhand.dut.named_system import NamedSystemDut
from evenhand.dut.record import Holder, NamedRecord
from evenhand.dut.scripted import ScriptedDut, is_scripted
from evenhand.dut.ssh import open_shell
from evenhand.dut.terminal import open_terminal
from evenhand.rig import TestbedDut


def is_named(dut: TestbedDut) -> bool:
    """Whether it is set up as a whole: by scripts, or at its prompt."""
    return is_device(dut) or is_scripted(dut)


@contextmanager
def _opened(dut: TestbedDut, config: Path | None) -> Iterator[NamedSystemDut[Any]]:
    if is_device(dut):
        with open_terminal(dut, config=config) as terminal:
            yield DeviceDut(dut=dut, terminal=terminal)
    else:
        with open_shell(dut, config=config) as shell:
            yield ScriptedDut(dut=dut, shell=shell)


def check(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _opened(dut, config) as on:
        state, held = on.check()
    if json_output:
        _write("dut check", dut, **on.facts, state=state, held=_held(held))
        return
    say(f"{dut.ssh}: {on.title}; {', '.join(on.interfaces)} can be set up.")
    for line in state:
        say(f"  {line if isinstance(line, str) else ', '.join(line)}")
    say(f"It is {_unheld(dut)}." if held is None else f"It is set up for {held.plan} by {held.by}.")


def apply_setup(
    dut: TestbedDut, config: Path | None, setups: Sequence[DutSetup], testbed: Path, *, json_output: bool
) -> None:
    with _opened(dut, config) as on:
        record = on.apply(setups, Holder.here("hand"))
    if json_output:
        _write("dut apply", dut, held=_held(record))
        return
    say(f"{dut.ssh} is set up for {record.plan}, and all of it was read back.")
    say(f"Restore it with: evenhand dut undo {testbed}")


def status(dut: TestbedDut, config: Path | None, testbed: Path, *, json_output: bool) -> None:
    """Show what this machine has written down of a device, which is not asked."""
    if is_device(dut):
        held: NamedRecord | None = device_record.read_held(str(dut.ssh))
    else:
        with _opened(dut, config) as on:
            held = on.read_held()
    if json_output:
        _write("dut status", dut, held=_held(held))
    elif held is None:
        say(f"{dut.ssh} is {_unheld(dut)}.")
    else:
        say(f"{dut.ssh} is set up for {held.plan} by {held.by}.")
        say(f"Restore it with: evenhand dut undo {testbed}")


def undo_setup(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _opened(dut, config) as on:
        record = on.undo()
    if json_output:
        _write("dut undo", dut, undone=_held(record))
    elif record is None:
        say(f"{dut.ssh} is {_unheld(dut)}: there is nothing to restore.")
    else:
        say(f"{dut.ssh} is restored to its state before {record.plan}.")


def dut_document(dut: TestbedDut) -> dict[str, Any]:
    """The keys that say which DUT it is, in the document of each verb."""
    return {"dut": dut.ssh, "os": dut.os, **dut.model_dump(mode="json", include={"left", "right"})}


def say(text: str) -> None:
    out().print(text, markup=False, soft_wrap=True)


def _write(command: str, dut: TestbedDut, **parts: Any) -> None:
    write_json({"command": command, **dut_document(dut), **parts})


def _held(record: NamedRecord | None) -> dict[str, Any] | None:
    return None if record is None else {"plan": record.plan, "by": record.by, "since": record.since}


def _unheld(dut: TestbedDut) -> str:
    """What a DUT without a record is. The record of a device is on the machine that has set it up."""
    return "not set up from here" if is_device(dut) else "not set up"
