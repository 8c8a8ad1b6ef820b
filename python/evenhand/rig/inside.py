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
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.dut.facts import changes_since_last, read_facts, read_facts_and_macs
from evenhand.dut.linux_answers import read_carriers
from evenhand.dut.ssh import SshShell, open_shell
from evenhand.dut.witness import DutWitness, open_witness
from evenhand.plan import SIDES, SideName
from evenhand.testbed.places import place_of

if TYPE_CHECKING:
    from evenhand.testbed import TestbedDut


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """A Linux DUT that can be looked into."""

    witness: DutWitness
    facts: Mapping[str, Any]
    """See `evenhand.dut.facts`."""
    macs: Mapping[str, str]
    """MACs of the DUT's interfaces, by their places, as it reports them itself."""

    def check_sides(self, resolved: Mapping[str, Any], dut: TestbedDut, *, where: str) -> None:
        """Refuse a DUT whose MAC on one side is that of its other one. Over IPv4 a router under Linux answers
        for all its addresses on any of its interfaces, and frames that come in on the wrong side would be
        measured all the same.

        Args:
            resolved: The engine's answer to `resolve`, or that of several: of each side the MAC, and whether
                it is the testbed file's.

        Raises:
            HostError: The sides, or the pairs of two engines, are swapped, or are one wire, or the MACs in
                the file are.
        """
        names = dut.interfaces
        if len(set(self.macs.values())) < len(names):
            return
        engines: Mapping[str, Any] = resolved.get("engines") or {"": resolved}
        for number, (engine, found) in enumerate(engines.items()):
            for side in SIDES:
                self._check_side(found.get(side, {}), side, number, engine, names=names, where=where)

    def _check_side(
        self,
        found: Mapping[str, Any],
        side: SideName,
        number: int,
        engine: str,
        *,
        names: Mapping[str, str],
        where: str,
    ) -> None:
        """Check one side of the pair of this number."""
        own, mac = place_of(side, number), found.get("dut_mac")
        other = next((name for name, known in self.macs.items() if known == mac and name != own), None)
        if other is None:
            return
        if found.get("static"):
            raise HostError(
                f"{side}.dut_mac{f' of engine {engine}' if engine else ''} is the MAC of the DUT's"
                f" {names[other]}, which is its {other} interface ({mac})",
                code="rig.dut-mac-of-other-side",
                where=where,
                next_step=f"Write {self.macs[own]}, the MAC of {names[own]}; or omit dut_mac,"
                " so that the DUT is asked.",
            )
        port = f"the {side} port of engine {engine}" if engine else f"the tester's {side} port"
        raise HostError(
            f"{port} reaches the DUT's {names[other]}, which is configured as its {other} interface ({mac})",
            code="rig.sides-swapped",
            where=where,
            next_step="Swap left and right in [dut], or swap the two cables, and make sure that no"
            " switch connects both sides."
            if len(names) == len(SIDES)
            else "Name the interfaces in [dut] left and right in the order of the engines, or swap the"
            " cables, and make sure that no switch connects two of them.",
        )


def can_look_inside(dut: TestbedDut) -> bool:
    """Whether the testbed says how, and the DUT is one whose counters are known here."""
    return dut.ssh is not None and dut.os == "linux"


@contextmanager
def look_inside(
    dut: TestbedDut, *, name: str, config: Path | None, on_note: Callable[[str], None] | None
) -> Iterator[Inside | None]:
    """One connection until the block ends. None if `can_look_inside` is not.

    Args:
        name: Name of the testbed, for errors.
        config: See `Setup.ssh_config`.
        on_note: Receives what changed since the last run on this DUT.

    Raises:
        RequestError, HostError: The DUT cannot be reached, or does not report its facts.
    """
    if not can_look_inside(dut):
        yield None
        return
    assert dut.ssh is not None
    where = f"{name}: dut.ssh, {dut.ssh}"
    with open_shell(dut, config=config) as shell:
        _refuse_carriers(shell, dut, where=where)
        facts, macs = read_facts_and_macs(shell, dut.interfaces, where=where)
        # Reported once: a caller that reports nothing must not take it from the next one that does.
        changes = None if on_note is None else changes_since_last(dut.ssh, dut.interfaces.values(), facts)
        if on_note is not None and changes is not None:
            on_note(changes)
        witness = open_witness(
            shell,
            dut.interfaces,
            where=where,
            on_trouble=lambda text: None if on_note is None else on_note(text),
        )
        yield Inside(witness=witness, facts=facts, macs=macs)


def _refuse_carriers(shell: SshShell, dut: TestbedDut, *, where: str) -> None:
    """What the DUT is asked must not go over the wires that are measured (R5180-16)."""
    carriers = read_carriers(shell, address=shell.host.address, peer=shell.host.peer)
    for place, name in dut.interfaces.items():
        if name in carriers:
            raise RequestError(
                f"{name}, the DUT's {place} interface, carries the SSH connection",
                code="rig.carries-ssh",
                where=where,
                next_step="Reach the DUT through an interface that is not measured, or name the interface"
                " that the tester is connected to.",
            )


_ONCE: dict[tuple[str | None, ...], dict[str, Any]] = {}


def lasting_facts(dut: TestbedDut, *, name: str, config: Path | None) -> dict[str, Any] | None:
    """The facts that no point of a campaign sets for itself, read once in the life of this process; None if
    `can_look_inside` is not. Arguments and errors as `look_inside`."""
    if not can_look_inside(dut):
        return None
    key = (dut.ssh, *dut.interfaces.values())
    if key not in _ONCE:
        with open_shell(dut, config=config) as shell:
            where = f"{name}: dut.ssh, {dut.ssh}"
            _ONCE[key] = read_facts(shell, dut.interfaces, where=where)
    return _ONCE[key]
