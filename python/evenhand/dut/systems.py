# SPDX-License-Identifier: Apache-2.0
"""DUT: the operating systems whose set-up is known, by their names."""

from __future__ import annotations

from typing import Literal

from evenhand.dut.arista_eos import ARISTA_EOS
from evenhand.dut.bsd import FREEBSD, OPENBSD, OPNSENSE, PFSENSE
from evenhand.dut.cisco_ios import CISCO_IOS
from evenhand.dut.junos import JUNOS
from evenhand.dut.linux import LINUX
from evenhand.dut.openwrt import OPENWRT
from evenhand.dut.routeros import ROUTEROS
from evenhand.dut.routing_daemons import BIRD, FRR
from evenhand.dut.script import OperatingSystem
from evenhand.dut.sonic import SONIC
from evenhand.dut.srlinux import SRLINUX
from evenhand.dut.tnsr import TNSR
from evenhand.dut.vpp import VPP
from evenhand.dut.vyos import VYOS
from evenhand.testbed.systems import DutSystem

System = Literal[DutSystem, "tnsr"]
OPERATING_SYSTEMS: dict[str, OperatingSystem] = {
    "linux": LINUX,
    "frr": FRR,
    "bird": BIRD,
    "vyos": VYOS,
    "openwrt": OPENWRT,
    "sonic": SONIC,
    "openbsd": OPENBSD,
    "freebsd": FREEBSD,
    "opnsense": OPNSENSE,
    "pfsense": PFSENSE,
    "vpp": VPP,
    "routeros": ROUTEROS,
    "cisco-ios": CISCO_IOS,
    "arista-eos": ARISTA_EOS,
    "junos": JUNOS,
    "srlinux": SRLINUX,
    "tnsr": TNSR,
}
