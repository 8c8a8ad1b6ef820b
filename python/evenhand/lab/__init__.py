# SPDX-License-Identifier: Apache-2.0
"""Labs: a whole test set-up inside this machine. The DUT is the kernel's own router, or a virtual machine
(root)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.dut.nat import NAT_PORTS, NatPorts
    from evenhand.lab.borrow import refuse_borrowed
    from evenhand.lab.build import RING_FRAMES
    from evenhand.lab.labs import Lab, lab_names, lab_status
    from evenhand.lab.limits import RaisedLimit, raised_limits
    from evenhand.lab.linux import LinuxLab
    from evenhand.lab.linux_life import lab_down, lab_up, linux_lab
    from evenhand.lab.linux_programs import require_root
    from evenhand.lab.neighbors import Neighbor
    from evenhand.lab.nft import MOST_RULES
    from evenhand.lab.vm import VmLab, check_vm_programs, vm_up
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "evenhand.dut.nat": ("NAT_PORTS", "NatPorts"),
            "borrow": ("refuse_borrowed",),
            "build": ("RING_FRAMES",),
            "labs": ("Lab", "lab_names", "lab_status"),
            "limits": ("RaisedLimit", "raised_limits"),
            "linux": ("LinuxLab",),
            "linux_life": ("lab_down", "lab_up", "linux_lab"),
            "linux_programs": ("require_root",),
            "neighbors": ("Neighbor",),
            "nft": ("MOST_RULES",),
            "vm": ("VmLab", "check_vm_programs", "vm_up"),
        },
    )

__all__ = [
    "MOST_RULES",
    "NAT_PORTS",
    "RING_FRAMES",
    "Lab",
    "LinuxLab",
    "NatPorts",
    "Neighbor",
    "RaisedLimit",
    "VmLab",
    "check_vm_programs",
    "lab_down",
    "lab_names",
    "lab_status",
    "lab_up",
    "linux_lab",
    "raised_limits",
    "refuse_borrowed",
    "require_root",
    "vm_up",
]
