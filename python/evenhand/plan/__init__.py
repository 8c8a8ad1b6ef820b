# SPDX-License-Identifier: Apache-2.0
"""Station 1, address plan: what the user writes becomes checked, frozen dataclasses."""

from typing import TYPE_CHECKING

from evenhand.base.lazy_import import lazy_names
from evenhand.plan.field_pattern import FieldPattern
from evenhand.plan.flows import (
    Flow,
    Transport,
    check_flow_directions,
    cycle_of,
    flows_in,
    has_limits,
    is_flow_name,
    make_flows,
)
from evenhand.plan.generated_prefixes import make_prefixes
from evenhand.plan.host_list import MOST_COUNTED, HostList, Hosts, hosts_of_prefixes
from evenhand.plan.imix import (
    DrawnOrder,
    FrameSize,
    Imix,
    describe_frames,
    describe_size,
    is_imix,
    is_weighted,
    largest_octets,
    mean_octets,
    parse_imix,
    whole_octets,
)
from evenhand.plan.mix import describe_mix, make_mix, mix_lines, mix_request, mix_versions
from evenhand.plan.model import (
    AddressPlan,
    HostMacs,
    OtherVersion,
    is_plan_file,
    own_title,
    plan_file_name,
    plan_title,
)
from evenhand.plan.prefix_file import read_prefixes
from evenhand.plan.prefixes import MOST_PREFIXES, PrefixSet
from evenhand.plan.ranges import (
    Address,
    HostRange,
    Interface,
    IpVersion,
    Mode,
    Network,
    NetworkRange,
    UdpRange,
)
from evenhand.plan.sides import (
    BENCHMARKING_BLOCK,
    BOTH_DIRECTIONS,
    NO_TAGS,
    ONE_EACH,
    SIDES,
    Direction,
    PlanSide,
    SideCounts,
    SideName,
    receiving_side,
    sending_side,
)
from evenhand.plan.stream import (
    SMALLEST_FRAME,
    Frames,
    Stream,
    in_tunnels,
    ip_versions,
    largest_frame,
    line_of,
    on_one_line,
    theoretical_fps,
    unlike_line_rates,
)
from evenhand.plan.topologies import TOPOLOGIES, find_topology, gateway_v4, gateway_v6, make_plan
from evenhand.plan.topology import (
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    Counts,
    PeerAddresses,
    SideAddresses,
    Topology,
)
from evenhand.plan.traffic import PortMacs, Traffic, arrival_lines, describe_plan, show_ports
from evenhand.plan.translation import MAX_CONNECTIONS, TUPLE_ORDERS, Nat, TupleOrder
from evenhand.plan.used_routes import routes_of, with_routes
from evenhand.plan.validate import check_plan, plan_warnings

if TYPE_CHECKING:
    from evenhand.plan.plan_file import make_own_plan, name_of_plan_file, plan_named, read_plan_file
else:
    __getattr__ = lazy_names(
        __name__, {"plan_file": ("make_own_plan", "name_of_plan_file", "plan_named", "read_plan_file")}
    )

__all__ = [
    "BENCHMARKING_BLOCK",
    "BOTH_DIRECTIONS",
    "CLASSIC_DESTINATION_PORT",
    "CLASSIC_SOURCE_PORT",
    "MAX_CONNECTIONS",
    "MOST_COUNTED",
    "MOST_PREFIXES",
    "NO_TAGS",
    "ONE_EACH",
    "RFC4814_DESTINATION_PORTS",
    "RFC4814_SOURCE_PORTS",
    "SIDES",
    "SMALLEST_FRAME",
    "TOPOLOGIES",
    "TUPLE_ORDERS",
    "Address",
    "AddressPlan",
    "Counts",
    "Direction",
    "DrawnOrder",
    "FieldPattern",
    "Flow",
    "FrameSize",
    "Frames",
    "HostList",
    "HostMacs",
    "HostRange",
    "Hosts",
    "Imix",
    "Interface",
    "IpVersion",
    "Mode",
    "Nat",
    "Network",
    "NetworkRange",
    "OtherVersion",
    "PeerAddresses",
    "PlanSide",
    "PortMacs",
    "PrefixSet",
    "SideAddresses",
    "SideCounts",
    "SideName",
    "Stream",
    "Topology",
    "Traffic",
    "Transport",
    "TupleOrder",
    "UdpRange",
    "arrival_lines",
    "check_flow_directions",
    "check_plan",
    "cycle_of",
    "describe_frames",
    "describe_mix",
    "describe_plan",
    "describe_size",
    "find_topology",
    "flows_in",
    "gateway_v4",
    "gateway_v6",
    "has_limits",
    "hosts_of_prefixes",
    "in_tunnels",
    "ip_versions",
    "is_flow_name",
    "is_imix",
    "is_plan_file",
    "is_weighted",
    "largest_frame",
    "largest_octets",
    "line_of",
    "make_flows",
    "make_mix",
    "make_own_plan",
    "make_plan",
    "make_prefixes",
    "mean_octets",
    "mix_lines",
    "mix_request",
    "mix_versions",
    "name_of_plan_file",
    "on_one_line",
    "own_title",
    "parse_imix",
    "plan_file_name",
    "plan_named",
    "plan_title",
    "plan_warnings",
    "read_plan_file",
    "read_prefixes",
    "receiving_side",
    "routes_of",
    "sending_side",
    "show_ports",
    "theoretical_fps",
    "unlike_line_rates",
    "whole_octets",
    "with_routes",
]
