# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the user writes becomes checked, frozen dataclasses."""

from evenhand.plan.model import AddressPlan, Direction, HostRange, Mode, PlanSide, SideName, UdpRange
from evenhand.plan.topologies import TOPOLOGIES, gateway_v4, gateway_v6, make_plan

__all__ = [
    "TOPOLOGIES",
    "AddressPlan",
    "Direction",
    "HostRange",
    "Mode",
    "PlanSide",
    "SideName",
    "UdpRange",
    "gateway_v4",
    "gateway_v6",
    "make_plan",
]
