# SPDX-License-Identifier: Apache-2.0
"""OTG: what of a configuration can be sent. What cannot is refused with its key and the reason; nothing is
dropped."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from evenhand.otg.flow_counts import PlanFlows
from evenhand.otg.flow_part import FlowPart, SentFlow, vlans_of, with_stations
from evenhand.otg.plan_of_flows import Macs, plan_of_flows, refusals_of
from evenhand.otg.port_flows import MOST_OF_A_PORT, flows_together
from evenhand.otg.port_part import OtgCapture, OtgPort, read_captures, read_layer1, read_ports
from evenhand.otg.refusals import OtgError, other_keys
from evenhand.otg.stations import Station, read_stations
from evenhand.plan import (
    SIDES,
    AddressPlan,
    Direction,
    FrameSize,
    SideName,
    cycle_of,
    flows_in,
    largest_octets,
)
from evenhand.plan.model import one_size_of_flows
from evenhand.trial import Burst, DirectionRates

LONGEST_S: Mapping[int, float] = {1: 86_400.0, 2: 43_200.0}
"""The longest that flows of so many ports are sent, which is as much as one trial can record: a continuous
flow that nobody stops ends then."""
MOST_FLOWS = len(SIDES) * MOST_OF_A_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgTraffic:
    """A configuration as it is sent."""

    ports: tuple[OtgPort, ...]
    flows: tuple[SentFlow, ...]
    plan: AddressPlan
    macs: Macs
    """Those that the configuration names, by side: `mac` of the tester, `dut_mac` of the DUT."""
    frame_size: FrameSize
    """Octets with the FCS, or several in a sequence; of flows of the plan, where they have none of their
    own."""
    burst: Burst | None
    """None: frames are evenly spaced."""
    duration_s: float
    vlans: Mapping[SideName, tuple[int, ...]]
    """Tags that the configuration names, outermost first, by side."""
    stations: tuple[Station, ...]
    captures: tuple[OtgCapture, ...]
    seed: int
    has_preemption: bool
    """Whether it may take the place of flows that are sent."""
    notes: tuple[str, ...]

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(dict.fromkeys(flow.direction for flow in self.flows))

    def mean_octets_of(self, direction: Direction) -> Fraction:
        """The mean over all frames of a direction; 0 if none is sent there."""
        flows = self.flows_of([direction])
        rate = sum(Fraction(flow.rate_fps) for flow in flows)
        return (
            sum(Fraction(flow.rate_fps) * flow.mean_octets for flow in flows) / rate if rate else Fraction(0)
        )

    def plan_flows(self, direction: Direction) -> PlanFlows:
        """Which frames of a direction each flow of the plan has, and how large they are."""
        flows = flows_in(self.plan.flows, direction)
        sizes = tuple(each.frame_size or one_size_of_flows(self.frame_size) for each in flows)
        return PlanFlows(cycle=cycle_of(flows) if flows else (), octets=sizes)

    @property
    def largest_octets(self) -> int:
        """The size of the largest frame."""
        return largest_octets(self.frame_size)

    def flows_of(self, directions: Sequence[Direction]) -> tuple[SentFlow, ...]:
        return tuple(flow for flow in self.flows if flow.direction in directions)

    def rates_of(self, directions: Sequence[Direction]) -> tuple[float, DirectionRates | None]:
        """The load of a trial of these directions, and how they differ."""
        fps = {
            direction: math.fsum(flow.rate_fps for flow in self.flows_of([direction]))
            for direction in directions
        }
        if len(set(fps.values())) == 1:
            return next(iter(fps.values())), None
        return max(fps.values()), DirectionRates.of_pair(fps["forward"], fps["reverse"])


def traffic_of(
    document: Mapping[str, Any],
    *,
    line_rates_bps: Mapping[SideName, float | None] | None = None,
    plans: Sequence[str] = (),
    locations: Mapping[str, SideName] | None = None,
) -> OtgTraffic:
    """What is sent for this configuration.

    Args:
        document: The configuration with the names of the model, as protobuf's JSON has it.
        line_rates_bps: Those of the testbed's ports, for a rate in percent and for layer1; None, or the rate
            of a side is: not known.
        locations: The side of each name of a port but left and right.
        plans: Those that the DUT is set up for, if that is known: the one of the flows' IP version is taken.

    Raises:
        OtgError: Something of it cannot be sent; names all that is so.
    """
    rates = dict.fromkeys(SIDES) | dict(line_rates_bps or {})
    errors = other_keys(document, "config", "")
    ports = read_ports(document.get("ports", []), locations or {}, errors)
    sides = {port.name: port.side for port in ports}
    if len(ports) == 1:  # the other one has no name
        (sides[""],) = (side for side in SIDES if side != ports[0].side)
    stations = read_stations(document.get("devices", []), sides, errors)
    captures = read_captures(document.get("captures", []), sides, errors)
    flows = list(document.get("flows", []))
    if not flows:
        errors.append("flows: there are none, so nothing could be sent")
    if len(flows) > MOST_FLOWS:
        errors.append(f"flows: {len(flows):,}, but a port sends {MOST_OF_A_PORT} at most")
    notes = read_layer1(document.get("layer1", []), ports, rates, errors)
    options = document.get("options", {}).get("port_options", {})
    errors += other_keys(document.get("options", {}), "options", "options")
    errors += other_keys(options, "options.port_options", "options.port_options")
    if options.get("data_integrity"):
        errors.append("options.port_options.data_integrity: every frame is checked anyway, octet for octet")
    if errors:
        raise OtgError(errors)
    longest_s = LONGEST_S[min(len({str(_sender(flow)) for flow in flows}), len(SIDES))]
    read = [
        FlowPart(number, flow, sides, stations, rates, longest_s, errors) for number, flow in enumerate(flows)
    ]
    notes += [note for flow in read for note in flow.notes]
    names = [flow.name for flow in read]
    errors += [
        f"flows[{n}].name: {name!r} is there twice" for n, name in enumerate(names) if name in names[:n]
    ]
    if len(read) > len({flow.sent.direction for flow in read}):  # else the search for a plan says it
        errors += [why for flow in read for why in refusals_of(flow.read, sides)]
    if errors:
        raise OtgError(errors)
    vlans = vlans_of(read, errors)
    if errors:
        raise OtgError(errors)
    seed = _seed_of(flows)
    together = flows_together(read, vlans, seed)
    plan, macs = plan_of_flows(together.reads, sides, plans)
    plan = replace(plan, flows=together.classes)
    notes += _unused(stations, read)
    macs = with_stations(macs, [flow.read.addresses for flow in read if flow.read.addresses is not None])
    first = read[0]
    errors += [reason for flow in read for reason in flow.too_short_sequences()]
    if errors:
        raise OtgError(errors)
    return OtgTraffic(
        ports=ports,
        flows=together.flows,
        plan=plan,
        macs=macs,
        frame_size=together.frame_size,
        burst=first.burst,
        duration_s=max(flow.duration_s for flow in read),
        vlans=vlans,
        stations=stations,
        captures=captures,
        seed=seed,
        has_preemption=bool(options.get("location_preemption")),
        notes=tuple(notes),
    )


def _unused(stations: Sequence[Station], flows: Sequence[FlowPart]) -> list[str]:
    """A note for each device, of which the tester knows nothing but its name then."""
    used = [
        each
        for flow in flows
        if flow.read.addresses is not None
        for of_side in flow.read.addresses.stations.values()
        for each in of_side
    ]
    return [
        f"devices: {each.names[-1]} ({each.address}) is in no flow: nobody answers for it, and its gateway"
        " is not asked for"
        for each in stations
        if each not in used
    ]


def _sender(flow: Mapping[str, Any]) -> Any:
    """What sends the flow: its port, or devices."""
    ends = flow.get("tx_rx", {})
    return ends.get("port", {}).get("tx_name") or ends.get("device", {}).get("tx_names")


def _seed_of(flows: Sequence[Mapping[str, Any]]) -> int:
    """The same for the same flows, so that a configuration sends the same frames each time."""
    text = json.dumps(list(flows), sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
