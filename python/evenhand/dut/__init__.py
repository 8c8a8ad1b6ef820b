# SPDX-License-Identifier: Apache-2.0
"""The DUT's set-up as text: what a plan needs of it, in the words of one operating system. Nothing here runs
anything."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.dut.description import DutLink, DutSetup, HashType, describe_setup, describe_setups
    from evenhand.dut.nat import Translator
    from evenhand.dut.script import Command, DutScript, OperatingSystem, Part, Step
    from evenhand.dut.systems import OPERATING_SYSTEMS
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "description": ("DutLink", "DutSetup", "HashType", "describe_setup", "describe_setups"),
            "script": ("Command", "DutScript", "OperatingSystem", "Part", "Step"),
            "systems": ("OPERATING_SYSTEMS",),
            "nat": ("Translator",),
        },
    )

__all__ = [
    "OPERATING_SYSTEMS",
    "Command",
    "DutLink",
    "DutScript",
    "DutSetup",
    "HashType",
    "OperatingSystem",
    "Part",
    "Step",
    "Translator",
    "describe_setup",
    "describe_setups",
]
