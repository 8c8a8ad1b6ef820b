# SPDX-License-Identifier: Apache-2.0
"""Labs: a whole test set-up inside this machine. The Linux lab has the kernel's own router as DUT (root)."""

from evenhand.lab.build import RING_FRAMES
from evenhand.lab.limits import RaisedLimit, raised_limits
from evenhand.lab.linux import LinuxLab, lab_down, lab_status, lab_up, linux_lab
from evenhand.lab.neighbors import Neighbor

__all__ = ["RING_FRAMES", "LinuxLab", "Neighbor", "RaisedLimit", "lab_down", "lab_status", "lab_up", "linux_lab", "raised_limits"]
