# SPDX-License-Identifier: Apache-2.0
"""Rig: a testbed file, whose DUT is the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.plan import AddressPlan, plan_title
from evenhand.rig.rig import PlanDefaults, Rig
from evenhand.rig.setup import Setup
from evenhand.rig.testbed import TestbedDut, check_device, read_host_network, read_testbed


@dataclass(frozen=True, slots=True)
class TestbedRig(Rig):
    """The file of this path."""

    __test__ = False  # no test, whatever its name
    is_file: ClassVar[bool] = True

    @classmethod
    def of(cls, text: str) -> TestbedRig | None:
        """Whatever is nothing else."""
        return cls(text)

    def read(self, plan: AddressPlan | None = None) -> Setup:
        setup = Setup(name=self.text, testbed=read_testbed(Path(self.text)))
        if plan is not None:
            setup.check_plan(plan)
        network = read_host_network()
        testbed = setup.testbed
        places = [(f"{side}.device", port) for side, port in testbed.ports.items()]
        if testbed.engine:
            places = [
                (f"engine {engine.name}, {side}.device", port)
                for engine in testbed.engine
                if engine.ssh is None
                for side, port in engine.ports.items()
            ]
        for place, port in places:
            check_device(port.device, network, where=f"{self.text}: {place}")
        return setup

    def read_dut(self) -> tuple[TestbedDut, Path | None]:
        """No port is looked at."""
        return read_testbed(Path(self.text)).dut, None

    def plan_defaults(self) -> PlanDefaults:
        try:
            dut = read_testbed(Path(self.text)).dut
        except RequestError:
            return PlanDefaults()  # reported when the file is read for its ports
        if dut.plan is None:
            return PlanDefaults()
        return PlanDefaults(plan=plan_title(dut.plan), hosts=dut.hosts, networks=dut.networks)

    @property
    def sets_up_its_dut(self) -> bool:
        try:
            return self.read().reachable is not None
        except EvenhandError:
            return False

    def _is_there(self) -> bool:
        return Path(self.text).exists()
