# SPDX-License-Identifier: Apache-2.0
"""Rig: a testbed file, whose DUT is the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evenhand.base.errors import HostError, RequestError
from evenhand.plan import AddressPlan, plan_title
from evenhand.rig.reference import ReferenceDut
from evenhand.rig.rig import PlanDefaults, Rig, RigFacts
from evenhand.rig.setup import Setup
from evenhand.rig.testbed import check_device, read_host_network, read_testbed


@dataclass(frozen=True, slots=True)
class TestbedRig(Rig):
    """The file of this path."""

    __test__ = False  # no test, whatever its name
    is_file: ClassVar[bool] = True

    @classmethod
    def of(cls, text: str) -> TestbedRig | None:
        """Whatever is nothing else."""
        return cls(text)

    def facts(self, reference: ReferenceDut | None = None) -> RigFacts:
        try:
            setup = Setup(name=self.text, testbed=read_testbed(Path(self.text)))
        except (RequestError, HostError):
            return RigFacts()  # reported when the file is read for its ports
        dut = setup.testbed.dut
        plan = PlanDefaults()
        if dut.plan is not None:
            plan = PlanDefaults(plan=plan_title(dut.plan), hosts=dut.hosts, networks=dut.networks)
        return RigFacts(
            plan=plan,
            sets_up_its_dut=setup.reachable is not None,
            connection_timeout_s=setup.expected_timeout_s,
        )

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

    def _is_there(self) -> bool:
        return Path(self.text).exists()
