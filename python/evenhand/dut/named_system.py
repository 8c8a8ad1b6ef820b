# SPDX-License-Identifier: Apache-2.0
"""A DUT whose operating system a testbed names, and whose set-up is known as a whole: what set-ups by a
script and at a prompt have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from evenhand.base.errors import HostError, RequestError
from evenhand.base.programs import uninterrupted
from evenhand.dut import OPERATING_SYSTEMS
from evenhand.dut.description import DutSetup
from evenhand.dut.items import NotTakenError
from evenhand.dut.record import Holder, NamedRecord, restoring_after
from evenhand.dut.script import DutScript, OperatingSystem
from evenhand.testbed import TestbedDut

Record = TypeVar("Record", bound=NamedRecord)
MOST_NAMED = 5
"""Most differences that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSystemDut(ABC, Generic[Record]):
    """The DUT of a testbed, with one pair of interfaces."""

    dut: TestbedDut

    @property
    def system(self) -> OperatingSystem:
        assert self.dut.os is not None
        return OPERATING_SYSTEMS[self.dut.os]

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(self.dut.interfaces.values())

    @property
    def where(self) -> str:
        return f"[dut] ssh, {self.dut.ssh}"

    @property
    def facts(self) -> dict[str, Any]:
        """What it has said of itself, for `--json`."""
        return {}

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, for people."""

    @abstractmethod
    def check(self) -> tuple[Sequence[Any], Record | None]:
        """What its interfaces have, a line for each, and who has set it up. Changes nothing.

        Raises:
            RequestError: An interface is not there, or carries this connection.
            HostError: The DUT does not answer as its system does.
        """

    @abstractmethod
    def apply(self, setups: Sequence[DutSetup], holder: Holder) -> Record:
        """Set it up for these, one of each IP version, and read back that it is so. If something is refused
        or not as intended, or this is stopped, nothing of it stays.

        Raises:
            RequestError: The system or its interfaces cannot be set up so; nothing was changed.
            NotTakenError: The DUT did not take something; it was put back.
            HostError: Someone has set it up already, or it cannot be reached.
        """

    @abstractmethod
    def read_held(self) -> Record | None:
        """The record of its set-up; None if there is none."""

    @abstractmethod
    def put_back(self, record: Record) -> None:
        """What the set-up did is undone; all else stays as it is now.

        Raises:
            HostError: It cannot be reached, or is not as it was before; then the record stays.
        """

    def drop(self, record: Record) -> None:
        """Throw away what has been said and not kept, before it is put back."""

    def undo(self) -> Record | None:
        """Put the DUT back, whoever has set it up; None if nobody has. Errors as `put_back`."""
        record = self.read_held()
        if record is not None:
            with uninterrupted():
                self.put_back(record)
        return record

    def put_back_after(self, error: BaseException, record: Record) -> None:
        """The first error is the one to report."""
        with restoring_after(error):
            self.drop(record)
            self.put_back(record)

    def scripts(self, setups: Sequence[DutSetup], *, is_undo: bool) -> list[DutScript]:
        """What sets it up, in the order of doing, or what undoes that."""
        ordered = setups[::-1] if is_undo else setups
        return [DutScript(setup=setup, system=self.system, is_undo=is_undo) for setup in ordered]

    def asked(self, setups: Sequence[DutSetup], holder: Holder) -> Mapping[str, Any]:
        """What each record says of a set-up."""
        return {
            "plan": "+".join(setup.plan.title for setup in setups),
            "system": str(self.dut.os),
            "by": holder.name,
            "since": holder.since,
            "interfaces": self.interfaces,
        }

    # Errors.

    def check_pairs(self) -> None:
        """RequestError unless the testbed names one pair."""
        if len(self.dut.interface_pairs) != 1:
            raise RequestError(
                f"{self.system.title} is set up over SSH for one pair of interfaces, and the testbed names"
                f" {len(self.dut.interface_pairs)}",
                code="rig.one-pair-only",
                where="[dut] left, right",
                next_step='Name one interface for each side, or use a DUT under plain Linux (os = "linux").',
            )

    def missing_interface(self, side: str, *, next_step: str) -> RequestError:
        """The DUT has no interface of the name that the testbed gives to that side."""
        return RequestError(
            f"the DUT has no interface {self.dut.interfaces[side]!r}",
            code="rig.dut-interface-missing",
            where=f"[dut] {side}",
            next_step=next_step,
        )

    def carries_ssh(self, side: str) -> RequestError:
        """Over the interface of that side it is reached itself."""
        return RequestError(
            f"{self.dut.interfaces[side]} carries the SSH connection",
            code="rig.carries-ssh",
            where=f"[dut] {side}",
            next_step="It is never changed. Name the interface that the tester is connected to.",
        )

    def not_taken(self, what: str) -> NotTakenError:
        """The DUT did not accept something, and was put back."""
        return NotTakenError(
            f"the DUT did not accept the set-up: {what}",
            code="rig.set-up-not-accepted",
            where=self.where,
            next_step="Nothing was sent, and the set-up was undone. Try the commands there by hand: evenhand"
            f" dut setup --os {self.dut.os}",
        )

    def held_by(self, held: Record | None, where: str | Path) -> HostError:
        """Someone has set it up already; None: someone who has not written anything down yet."""
        what = "is just being set up" if held is None else f"is already set up for {held.plan}, by {held.by}"
        return HostError(
            f"the DUT {what}",
            code="rig.dut-held",
            where=str(where),
            next_step="If it is no longer needed, restore the DUT: evenhand dut undo TESTBED",
        )

    def not_restored(self, unlike: Sequence[str], kept: str) -> HostError:
        """It is not as it was; `kept` says where what it was is written down."""
        more = " and more" if len(unlike) > MOST_NAMED else ""
        return HostError(
            f"not restored: {'; '.join(unlike[:MOST_NAMED])}{more}",
            code="rig.not-restored",
            where=self.where,
            next_step=f"Correct this on the DUT, and run evenhand dut undo TESTBED again; {kept}.",
        )
