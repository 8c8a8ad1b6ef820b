# SPDX-License-Identifier: Apache-2.0
"""Testbed: the user's set-up, checked before anything is started."""

from evenhand.rig.testbed.device import Device, read_device
from evenhand.rig.testbed.dut_table import DutFacts, TestbedDut
from evenhand.rig.testbed.eal_arguments import check_eal_arguments
from evenhand.rig.testbed.interfaces import (
    CANNOT_TELL,
    HostNetwork,
    check_device,
    interface_of,
    interfaces_of_pci,
    read_host_network,
)
from evenhand.rig.testbed.memory import LEAST_MEMORY_MB, needed_memory_mb
from evenhand.rig.testbed.model import Testbed, TestbedLimits, check_rate, make_testbed, read_testbed
from evenhand.rig.testbed.resources import resources_of
from evenhand.rig.testbed.tester_tables import TestbedEngine, TestbedPort, Tester
from evenhand.rig.testbed.workers import lay_out_workers

__all__ = [
    "CANNOT_TELL",
    "LEAST_MEMORY_MB",
    "Device",
    "DutFacts",
    "HostNetwork",
    "Testbed",
    "TestbedDut",
    "TestbedEngine",
    "TestbedLimits",
    "TestbedPort",
    "Tester",
    "check_device",
    "check_eal_arguments",
    "check_rate",
    "interface_of",
    "interfaces_of_pci",
    "lay_out_workers",
    "make_testbed",
    "needed_memory_mb",
    "read_device",
    "read_host_network",
    "read_testbed",
    "resources_of",
]
