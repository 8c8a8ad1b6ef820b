# SPDX-License-Identifier: Apache-2.0
"""Rig: the look into a DUT that is reached over SSH: its facts before the first trial, its counters around
each.

Without `[dut] ssh` in the testbed file nothing of it happens. Recorded only: no verdict knows of it
(SEED-07).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.plan import SideName
from evenhand.rig.dut.facts import read_facts, read_facts_and_macs
from evenhand.rig.dut.last_facts import changes_since_last
from evenhand.rig.dut.linux_state import read_carriers
from evenhand.rig.dut.ssh import SshShell, open_shell
from evenhand.rig.dut.witness import DutWitness, open_witness
from evenhand.rig.testbed import TestbedDut


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """A Linux DUT that can be looked into."""

    witness: DutWitness
    facts: Mapping[str, Any]
    """See `evenhand.rig.dut.facts`."""
    macs: Mapping[SideName, str]
    """Of the DUT's two interfaces, as it tells them itself."""

    def check_sides(self, resolved: Mapping[str, Any], dut: TestbedDut, *, where: str) -> None:
        """Refuse a DUT whose MAC on one side is that of its other one. Over IPv4 a router under Linux answers
        for all its addresses on any of its interfaces, and frames that come in on the wrong side would be
        measured all the same.

        Args:
            resolved: The engine's answer to `resolve`: of each side the MAC, and whether it is the testbed
                file's.

        Raises:
            HostError: The sides are swapped, or are one wire, or the MACs in the file are.
        """
        names: dict[SideName, str | None] = {"left": dut.left, "right": dut.right}
        if len(set(self.macs.values())) < len(names):
            return
        sides: tuple[tuple[SideName, SideName], ...] = (("left", "right"), ("right", "left"))
        for side, other in sides:
            found = resolved.get(side, {})
            if (mac := found.get("dut_mac")) is None or mac != self.macs[other]:
                continue
            if found.get("static"):
                raise HostError(
                    f"{side}.dut_mac is the MAC of the DUT's {names[other]}, which is its {other} interface"
                    f" ({mac})",
                    code="rig.dut-mac-of-other-side",
                    where=where,
                    next_step=f"Write {self.macs[side]}, the MAC of {names[side]}; or omit dut_mac,"
                    " so that the DUT is asked.",
                )
            raise HostError(
                f"the tester's {side} port reaches the DUT's {names[other]}, which is"
                f" configured as its {other} interface ({mac})",
                code="rig.sides-swapped",
                where=where,
                next_step="Swap left and right in [dut], or swap the two cables, and make sure that no"
                " switch connects both sides.",
            )


def can_look_inside(dut: TestbedDut) -> bool:
    """Whether the testbed tells how, and the DUT is one whose counters are known here."""
    return dut.ssh is not None and dut.os == "linux"


@contextmanager
def look_inside(
    dut: TestbedDut, *, name: str, config: Path | None, on_note: Callable[[str], None] | None
) -> Iterator[Inside | None]:
    """One connection until the block ends. None if `can_look_inside` is not.

    Args:
        name: Of the testbed, for errors.
        config: See `Setup.ssh_config`.
        on_note: Is told what changed since the last run on this DUT.

    Raises:
        RequestError, HostError: The DUT cannot be reached, or does not tell of itself.
    """
    if not can_look_inside(dut):
        yield None
        return
    assert dut.ssh is not None
    assert dut.left is not None
    assert dut.right is not None
    where = f"{name}: dut.ssh, {dut.ssh}"
    with open_shell(dut, config=config) as shell:
        _refuse_carriers(shell, dut, where=where)
        facts, macs = read_facts_and_macs(shell, left=dut.left, right=dut.right, where=where)
        # Told once: whoever tells nobody must not take it from the next one who does.
        changes = None if on_note is None else changes_since_last(dut.ssh, dut.left, dut.right, facts)
        if on_note is not None and changes is not None:
            on_note(changes)
        witness = open_witness(
            shell,
            left=dut.left,
            right=dut.right,
            where=where,
            on_trouble=lambda text: None if on_note is None else on_note(text),
        )
        yield Inside(witness=witness, facts=facts, macs=macs)


def _refuse_carriers(shell: SshShell, dut: TestbedDut, *, where: str) -> None:
    """What the DUT is asked must not go over the wires that are measured (R5180-16)."""
    carriers = read_carriers(shell, address=shell.host.address, peer=shell.host.peer)
    for side, name in (("left", dut.left), ("right", dut.right)):
        if name in carriers:
            raise RequestError(
                f"{name}, the DUT's {side} interface, carries the SSH connection",
                code="rig.carries-ssh",
                where=where,
                next_step="Reach the DUT through an interface that is not measured, or name the interface"
                " that the tester is connected to.",
            )


_ONCE: dict[tuple[str | None, str | None, str | None], dict[str, Any]] = {}


def lasting_facts(dut: TestbedDut, *, name: str, config: Path | None) -> dict[str, Any] | None:
    """The facts that no point of a campaign sets for itself, read once in the life of this process; None if
    `can_look_inside` is not. Arguments and errors as `look_inside`."""
    if not can_look_inside(dut):
        return None
    key = (dut.ssh, dut.left, dut.right)
    if key not in _ONCE:
        with open_shell(dut, config=config) as shell:
            where = f"{name}: dut.ssh, {dut.ssh}"
            _ONCE[key] = read_facts(shell, left=str(dut.left), right=str(dut.right), where=where)
    return _ONCE[key]
