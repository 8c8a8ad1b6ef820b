# SPDX-License-Identifier: Apache-2.0
"""Rig: every kind of testbed, and which one a text names."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from evenhand.plan import AddressPlan
from evenhand.rig.lab_rig import LabRig
from evenhand.rig.reference_rig import ReferenceRig
from evenhand.rig.rig import PlanDefaults, Rig
from evenhand.rig.setup import Setup
from evenhand.rig.testbed_rig import TestbedRig
from evenhand.testbed import TestbedDut, read_testbed


class RigKind(Protocol):
    """An entry of `KINDS`."""

    def of(self, text: str) -> Rig | None:
        """The testbed of this name; None: it is not of this kind."""


KINDS: tuple[RigKind, ...] = (ReferenceRig, LabRig, TestbedRig)
"""The first that knows a name has it; whatever is nothing else is the path of a file."""


def rig_of(text: str) -> Rig:
    """The testbed of this name. Touches nothing."""
    return next(rig for kind in KINDS if (rig := kind.of(text)) is not None)


def read_setup(text: str, plan: AddressPlan | None = None) -> Setup:
    """The testbed of this name as it is there now. See `Rig.read`."""
    return rig_of(text).read(plan)


def read_dut(text: str) -> tuple[TestbedDut, Path | None]:
    """Its DUT, and its `Setup.ssh_config`; of a testbed file without a look at its ports. Errors as
    `Rig.read`."""
    rig = rig_of(text)
    if rig.is_file:
        return read_testbed(Path(text)).dut, None
    setup = rig.read()
    return setup.testbed.dut, setup.ssh_config


def plan_defaults_of(text: str) -> PlanDefaults:
    """What is meant of the address plan with it. See `Rig.facts`."""
    return rig_of(text).facts().plan


def default_plan_of(text: str) -> str:
    """The plan alone."""
    return plan_defaults_of(text).plan
