# SPDX-License-Identifier: Apache-2.0
"""A DUT whose operating system a testbed names: what set-ups by a script and at a prompt have in common."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.base.errors import RequestError
from evenhand.dut import OPERATING_SYSTEMS
from evenhand.dut.script import OperatingSystem
from evenhand.testbed import TestbedDut


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSystemDut:
    """The DUT of a testbed, with one pair of interfaces."""

    dut: TestbedDut

    @property
    def system(self) -> OperatingSystem:
        assert self.dut.os is not None
        return OPERATING_SYSTEMS[self.dut.os]

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(self.dut.interfaces.values())

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
