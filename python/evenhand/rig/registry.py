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
from evenhand.rig.testbed import TestbedDut
from evenhand.rig.testbed_rig import TestbedRig


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
    """Its DUT. See `Rig.read_dut`."""
    return rig_of(text).read_dut()


def plan_defaults_of(text: str) -> PlanDefaults:
    """What is meant of the address plan with it. See `Rig.plan_defaults`."""
    return rig_of(text).plan_defaults()


def default_plan_of(text: str) -> str:
    """The plan alone."""
    return plan_defaults_of(text).plan
