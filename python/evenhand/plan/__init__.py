# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the user writes becomes checked, frozen dataclasses."""

from evenhand.plan.describe import describe_plan
from evenhand.plan.model import BENCHMARKING_BLOCK, AddressPlan, Direction, HostMacs, PlanSide, SideName, plan_title
from evenhand.plan.ranges import Address, HostRange, Interface, Mode, Network, NetworkRange, UdpRange
from evenhand.plan.topologies import TOPOLOGIES, gateway_v4, gateway_v6, make_plan
from evenhand.plan.topology import (
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    Counts,
    Topology,
)
from evenhand.plan.traffic import PortMacs, Traffic, show_ports
from evenhand.plan.validate import check_plan
from evenhand.plan.warnings import plan_warnings

__all__ = [
    "BENCHMARKING_BLOCK",
    "CLASSIC_DESTINATION_PORT",
    "CLASSIC_SOURCE_PORT",
    "RFC4814_DESTINATION_PORTS",
    "RFC4814_SOURCE_PORTS",
    "TOPOLOGIES",
    "Address",
    "AddressPlan",
    "Counts",
    "Direction",
    "HostMacs",
    "HostRange",
    "Interface",
    "Mode",
    "Network",
    "NetworkRange",
    "PlanSide",
    "PortMacs",
    "SideName",
    "Topology",
    "Traffic",
    "UdpRange",
    "check_plan",
    "describe_plan",
    "gateway_v4",
    "gateway_v6",
    "make_plan",
    "plan_title",
    "plan_warnings",
    "show_ports",
]
