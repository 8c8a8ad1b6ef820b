# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the user writes becomes checked, frozen dataclasses."""

from evenhand.plan.describe import describe_plan
from evenhand.plan.imix import (
    DrawnOrder,
    FrameSize,
    Imix,
    describe_frames,
    describe_size,
    is_imix,
    largest_octets,
    mean_octets,
    parse_imix,
    whole_octets,
)
from evenhand.plan.mix import describe_mix, mix_lines, mix_request, mix_versions, with_titles
from evenhand.plan.model import (
    BENCHMARKING_BLOCK,
    BOTH_DIRECTIONS,
    SIDES,
    AddressPlan,
    Direction,
    HostMacs,
    OtherVersion,
    PlanSide,
    SideName,
    plan_title,
)
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
    "BOTH_DIRECTIONS",
    "CLASSIC_DESTINATION_PORT",
    "CLASSIC_SOURCE_PORT",
    "RFC4814_DESTINATION_PORTS",
    "RFC4814_SOURCE_PORTS",
    "SIDES",
    "TOPOLOGIES",
    "Address",
    "AddressPlan",
    "Counts",
    "Direction",
    "DrawnOrder",
    "FrameSize",
    "HostMacs",
    "HostRange",
    "Imix",
    "Interface",
    "Mode",
    "Network",
    "NetworkRange",
    "OtherVersion",
    "PlanSide",
    "PortMacs",
    "SideName",
    "Topology",
    "Traffic",
    "UdpRange",
    "check_plan",
    "describe_frames",
    "describe_mix",
    "describe_plan",
    "describe_size",
    "gateway_v4",
    "gateway_v6",
    "is_imix",
    "largest_octets",
    "make_plan",
    "mean_octets",
    "mix_lines",
    "mix_request",
    "mix_versions",
    "parse_imix",
    "plan_title",
    "plan_warnings",
    "show_ports",
    "whole_octets",
    "with_titles",
]
