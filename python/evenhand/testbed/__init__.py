# SPDX-License-Identifier: Apache-2.0
"""Testbed: the user's set-up, checked before anything is started."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.testbed.device import Device, read_device
    from evenhand.testbed.dut_table import DutFacts, TestbedDut
    from evenhand.testbed.interfaces import (
        CANNOT_TELL,
        HostNetwork,
        check_device,
        interface_of,
        interfaces_of_pci,
        read_host_network,
    )
    from evenhand.testbed.model import Testbed, TestbedLimits, check_rate, make_testbed, read_testbed
    from evenhand.testbed.resources import (
        LEAST_MEMORY_MB,
        check_eal_arguments,
        needed_memory_mb,
        resources_of,
    )
    from evenhand.testbed.tester_tables import TestbedEngine, TestbedPort, Tester
    from evenhand.testbed.workers import lay_out_workers
else:
    from evenhand.base.lazy_import import lazy_names

    # The same: most verbs need none of them, and pydantic takes a third of what a short one does.
    __getattr__ = lazy_names(
        __name__,
        {
            "device": ("Device", "read_device"),
            "dut_table": ("DutFacts", "TestbedDut"),
            "interfaces": (
                "CANNOT_TELL",
                "HostNetwork",
                "check_device",
                "interface_of",
                "interfaces_of_pci",
                "read_host_network",
            ),
            "model": ("Testbed", "TestbedLimits", "check_rate", "make_testbed", "read_testbed"),
            "resources": ("LEAST_MEMORY_MB", "check_eal_arguments", "needed_memory_mb", "resources_of"),
            "tester_tables": ("TestbedEngine", "TestbedPort", "Tester"),
            "workers": ("lay_out_workers",),
        },
    )

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
