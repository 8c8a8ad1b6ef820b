# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut check|apply|status|undo` for a DUT without a shell: see dut/device_setup.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evenhand.cli.dut_by_script import DutSaid, held_document, say
from evenhand.dut import OPERATING_SYSTEMS, DutSetup
from evenhand.dut.configuration import shown
from evenhand.dut.device_record import read_held
from evenhand.dut.device_setup import DeviceDut, apply, undo
from evenhand.dut.device_setup import check as check_device
from evenhand.dut.record import Holder
from evenhand.dut.terminal import open_terminal
from evenhand.rig import TestbedDut


def check(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _on(dut, config) as on:
        lines, held = check_device(on)
    if json_output:
        _said(dut, json_output).document(
            "dut check", state=[list(line) for line in lines], held=held_document(held)
        )
        return
    title = OPERATING_SYSTEMS[str(dut.os)].title
    say(f"{dut.ssh}: {title}; {', '.join(dut.interfaces.values())} can be set up.")
    for line in lines:
        say(f"  {shown(line)}")
    say("It is not set up from here." if held is None else f"It is set up for {held.plan} by {held.by}.")


def apply_setup(
    dut: TestbedDut, config: Path | None, setups: Sequence[DutSetup], testbed: Path, *, json_output: bool
) -> None:
    with _on(dut, config) as on:
        record = apply(on, setups, Holder.here("hand"))
    _said(dut, json_output).applied(record, testbed)


def status(dut: TestbedDut, testbed: Path, *, json_output: bool) -> None:
    """What this machine has written down; the device is not asked."""
    _said(dut, json_output).status(read_held(str(dut.ssh)), testbed)


def undo_setup(dut: TestbedDut, config: Path | None, *, json_output: bool) -> None:
    with _on(dut, config) as on:
        record = undo(on)
    _said(dut, json_output).undone(record)


@contextmanager
def _on(dut: TestbedDut, config: Path | None) -> Iterator[DeviceDut]:
    with open_terminal(dut, config=config) as terminal:
        yield DeviceDut(dut=dut, terminal=terminal)


def _said(dut: TestbedDut, json_output: bool) -> DutSaid:
    return DutSaid(dut=dut, destination=str(dut.ssh), unheld="not set up from here", json_output=json_output)
