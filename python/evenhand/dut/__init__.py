# SPDX-License-Identifier: Apache-2.0
"""The DUT's set-up as text: what a plan needs of it, in the words of one operating system. Nothing here runs
anything."""

from evenhand.dut.bsd import FREEBSD, OPENBSD, OPNSENSE, PFSENSE
from evenhand.dut.cisco_ios import CISCO_IOS
from evenhand.dut.description import DutLink, DutSetup, HashType, describe_setup, describe_setups
from evenhand.dut.junos import JUNOS
from evenhand.dut.linux import LINUX
from evenhand.dut.script import Command, DutScript, OperatingSystem, Part, Step
from evenhand.dut.translator import Translator
from evenhand.dut.vpp import VPP

OPERATING_SYSTEMS: dict[str, OperatingSystem] = {
    "linux": LINUX,
    "openbsd": OPENBSD,
    "freebsd": FREEBSD,
    "opnsense": OPNSENSE,
    "pfsense": PFSENSE,
    "vpp": VPP,
    "cisco-ios": CISCO_IOS,
    "junos": JUNOS,
}

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
