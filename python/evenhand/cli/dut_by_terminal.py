# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo` for a DUT without a shell: see dut/device_setup.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.cli.common import out, write_json
from evenhand.dut import OPERATING_SYSTEMS, DutSetup
from evenhand.dut.configuration import shown
from evenhand.dut.device_record import DeviceRecord, read_held
from evenhand.dut.device_setup import DeviceDut, apply, undo
from evenhand.dut.device_setup import check as check_device
from evenhand.dut.record import Holder
from evenhand.dut.terminal import open_terminal
from evenhand.rig import TestbedDut


def check(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _on(dut, config) as on:
        lines, held = check_device(on)
    if json_output:
        state = [list(line) for line in lines]
        write_json({"command": "dut check", **_dut(dut), "state": state, "held": _held(held)})
        return
    title = OPERATING_SYSTEMS[str(dut.os)].title
    _say(f"{dut.ssh}: {title}; {', '.join(dut.interfaces.values())} can be set up.")
    for line in lines:
        _say(f"  {shown(line)}")
    _say("It is not set up from here." if held is None else f"It is set up for {held.plan} by {held.by}.")


def apply_setup(
    dut: TestbedDut, config: Path | None, setups: Sequence[DutSetup], testbed: Path, *, json_output: bool
) -> None:
    with _on(dut, config) as on:
        record = apply(on, setups, Holder.here("hand"))
    if json_output:
        write_json({"command": "dut apply", **_dut(dut), "held": _held(record)})
        return
    _say(f"{dut.ssh} is set up for {record.plan}, and all of it was read back.")
    _say(f"Restore it with: evenhand dut undo {testbed}")


def status(dut: TestbedDut, testbed: Path, *, json_output: bool) -> None:
    """What this host has written down; the device is not asked."""
    held = read_held(str(dut.ssh))
    if json_output:
        write_json({"command": "dut status", **_dut(dut), "held": _held(held)})
    elif held is None:
        _say(f"{dut.ssh} is not set up from here.")
    else:
        _say(f"{dut.ssh} is set up for {held.plan} by {held.by}.")
        _say(f"Restore it with: evenhand dut undo {testbed}")


def undo_setup(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _on(dut, config) as on:
        record = undo(on)
    if json_output:
        write_json({"command": "dut undo", **_dut(dut), "undone": _held(record)})
    elif record is None:
        _say(f"{dut.ssh} is not set up from here: there is nothing to restore.")
    else:
        _say(f"{dut.ssh} is restored to its state before {record.plan}.")


@contextmanager
def _on(dut: TestbedDut, config: Path | None) -> Iterator[DeviceDut]:
    with open_terminal(dut, config=config) as terminal:
        yield DeviceDut(dut=dut, terminal=terminal)


def _dut(dut: TestbedDut) -> dict[str, Any]:
    return {"dut": dut.ssh, "os": dut.os, **dut.model_dump(mode="json", include={"left", "right"})}


def _held(record: DeviceRecord | None) -> dict[str, Any] | None:
    return None if record is None else {"plan": record.plan, "by": record.by, "since": record.since}


def _say(text: str) -> None:
    out().print(text, markup=False, soft_wrap=True)
