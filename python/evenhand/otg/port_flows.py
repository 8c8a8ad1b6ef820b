# SPDX-License-Identifier: Apache-2.0
"""OTG: the flows of each port, up to 64, as flows of a plan: they take turns in exact shares of the
port's frames, and each has its own marks, UDP ports and size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.otg.flow_part import FlowPart, SentFlow
from evenhand.otg.headers import UDP_PORTS
from evenhand.otg.patterns import Numbers, as_field, as_pattern, is_side_by_side
from evenhand.otg.plan_of_flows import ReadFlow
from evenhand.otg.refusals import OtgError
from evenhand.plan import (
    SMALLEST_FRAME,
    FieldPattern,
    Flow,
    FrameSize,
    Imix,
    is_flow_name,
    make_flows,
    sending_side,
)

MOST_OF_A_PORT = 64
_PORTS = dict(zip(UDP_PORTS, ("source_port", "destination_port"), strict=True))
"""Keys of a plan's flow by the names of the fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFlows:
    """The flows that leave one port."""

    flows: tuple[FlowPart, ...]
    rate_fps: float
    """The rate of all together."""
    packets: int | None
    classes: tuple[Flow, ...]
    """The same as flows of a plan, each with its size; empty if all frames are alike, as every test frame
    is."""
    read: ReadFlow
    """What they have in common, as one flow."""

    @property
    def first(self) -> FlowPart:
        return self.flows[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTogether:
    """All flows of a configuration."""

    flows: tuple[SentFlow, ...]
    """In its order."""
    classes: tuple[Flow, ...]
    """Flows of the plan."""
    frame_size: FrameSize
    """The size of those flows of the plan that have none of their own."""
    reads: tuple[ReadFlow, ...]
    """One of each direction."""


def flows_together(parts: Sequence[FlowPart]) -> SentTogether:
    """The flows as they are sent.

    Raises:
        OtgError: Those of one port, or of both, cannot be sent together.
    """
    errors: list[str] = []
    directions = dict.fromkeys(part.sent.direction for part in parts)
    of_ports = [[part for part in parts if part.sent.direction == direction] for direction in directions]
    has_classes = any(len(flows) > 1 or _is_flow_of_a_plan(flows[0]) for flows in of_ports)
    for flows in of_ports:
        _check_port(flows, errors)
        if has_classes:
            errors += [
                f"{each.at}.size: weight_pairs: flows of a port, and those with a DSCP, flow label or VLAN"
                " priority, have one size each"
                for each in flows
                if isinstance(each.frame_size, Imix)
            ]
    if errors:
        raise OtgError(errors)
    groups = [_port_flows(flows, has_classes, errors) for flows in of_ports]
    errors += _unlike(groups, has_classes)
    places = {} if errors else _places(groups, errors)
    if errors:
        raise OtgError(errors)
    sizes = {each.frame_size for each in groups[0].classes}
    size = groups[0].first.frame_size
    classes = groups[0].classes
    if len(sizes) == 1:
        classes = tuple(replace(each, frame_size=None) for each in classes)
    elif sizes:
        size = max(each for each in sizes if each is not None)
    return SentTogether(
        flows=tuple(replace(part.sent, place=places.get(part.at)) for part in parts),
        classes=classes,
        frame_size=size,
        reads=tuple(each.read for each in groups),
    )


def _check_port(flows: Sequence[FlowPart], errors: list[str]) -> None:
    """What flows of one port must have in common."""
    first, others = flows[0], flows[1:]
    if len(flows) > MOST_OF_A_PORT:
        errors.append(f"{flows[MOST_OF_A_PORT].at}: a port sends {MOST_OF_A_PORT} flows at most")
    if len(first.sizes) > MOST_OF_A_PORT:
        errors.append(f"{first.at}.size: {len(first.sizes):,} sizes in turn, at most {MOST_OF_A_PORT}")
    for each in flows if others else ():
        if each.burst is not None:
            errors.append(f"{each.at}.duration.burst: flows of a port take turns: only one alone has bursts")
        errors += [
            f"{at}: one value, or random: flows of a port take turns, and addresses in order are those of"
            " all its frames together"
            for at in each.stepping
        ]
        if each.sizes:
            errors.append(f"{each.at}.size.increment: only a flow alone on its port has sizes in turn")
    for each in others:
        for key, what, mine, its in (
            ("packet", "VLANs", first.vlans, each.vlans),
            ("packet", "MACs", _fields(first, 0), _fields(each, 0)),
            ("packet", "IP version and addresses", _addresses(first), _addresses(each)),
            ("duration", "duration", first.duration_kind, each.duration_kind),
            ("duration", "duration", first.exact_s, each.exact_s),
        ):
            if mine != its:
                errors.append(
                    f"{each.at}.{key}: its {what} must be as in {first.at}: flows of a port have the same"
                )
                break


def _port_flows(flows: Sequence[FlowPart], has_classes: bool, errors: list[str]) -> PortFlows:
    first = flows[0]
    rate = sum((each.rate for each in flows), Fraction(0))
    own = [_own_ports(each, flows) for each in flows]
    read = first.read
    if any(own):
        common = {name: _common_port(name, first, own) for name in _PORTS}
        packet = [*read.document["packet"][:-1], {"choice": "udp", "udp": common}]
        read = replace(read, document={**read.document, "packet": packet})
    classes: tuple[Flow, ...] = ()
    if has_classes:
        errors += [
            f"{each.at}.size: {each.frame_size} octets: frames of these headers have {least} at least"
            for each in flows
            if isinstance(each.frame_size, int) and each.frame_size < (least := _smallest(each))
        ]
        asked = list(map(_class_of, flows, own))
        rates = [each.rate for each in flows]
        if len(first.sizes) > 1 and not errors:
            # Equal shares take turns in the order of the flows: frame k is of number k.
            asked, rates = _of_sizes(first, asked[0]), [Fraction(1)] * len(first.sizes)
        try:
            classes = make_flows(_with_names(asked), rates)
        except PlanError as error:
            errors.append(f"{first.at}.rate: {error.what}; give flows of a port rates of few parts")
    is_alone = len(flows) == 1
    return PortFlows(
        flows=tuple(flows),
        rate_fps=float(rate),
        packets=first.packets if is_alone or first.exact_s is None else round(first.exact_s * rate),
        classes=classes,
        read=read,
    )


def _smallest(flow: FlowPart) -> int:
    """The least size of its frames."""
    if flow.read.addresses is None:
        return 0  # another error says why
    more = 0 if flow.transport is None else flow.transport.more_octets
    return SMALLEST_FRAME[flow.read.addresses.version] + more


def _fields_of(flow: FlowPart) -> dict[str, Numbers]:
    """The marks of a flow's frames in their order, by their key of a plan's flow."""
    priority = _vlan_priority(flow)
    return {
        "dscp": flow.marks.dscp,
        "flow_label": flow.marks.flow_label,
        "vlan_priority": (0,) if priority is None else priority,
    }


def _class_of(flow: FlowPart, ports: Mapping[str, int | FieldPattern]) -> Flow:
    fields: dict[str, Any] = {**ports, **{key: as_field(of) for key, of in _fields_of(flow).items()}}
    size = flow.frame_size if isinstance(flow.frame_size, int) else None
    return Flow(name=flow.name, share=1, frame_size=size, transport=flow.transport, **fields)


def _is_flow_of_a_plan(flow: FlowPart) -> bool:
    """Whether a flow that is alone on its port has frames that no plan sends without flows."""
    return (
        flow.transport is not None
        or not flow.marks.are_usual
        or len(flow.sizes) > 1
        or not all(map(is_side_by_side, flow.ports.values()))
    )


def _of_sizes(flow: FlowPart, first: Flow) -> list[Flow]:
    """A flow of the plan for each of its sizes; its other fields go on with the frames of all together."""
    period = len(flow.sizes)
    numbers = {**_fields_of(flow), **{_PORTS[name]: of for name, of in flow.ports.items()}}
    stepping = {key: of for key, of in numbers.items() if isinstance(getattr(first, key), FieldPattern)}
    found = []
    for place, size in enumerate(flow.sizes):
        fields: dict[str, Any] = {}
        for key, of in stepping.items():
            turns = range(place, place + period * len(of) // math.gcd(period, len(of)), period)
            fields[key] = as_field([of[turn % len(of)] for turn in turns])
        found.append(replace(first, name=f"size {place + 1} of {period}", frame_size=size, **fields))
    return found


def _with_names(flows: Sequence[Flow]) -> list[Flow]:
    """With names that a plan can have: those of the configuration, or numbers."""
    if all(is_flow_name(flow.name) for flow in flows):
        return list(flows)
    return [replace(flow, name=f"flow {number}") for number, flow in enumerate(flows, 1)]


def _own_ports(flow: FlowPart, flows: Sequence[FlowPart]) -> dict[str, int | FieldPattern]:
    """Its ports, as far as they are none of the plan as a whole: what stands for them in ICMP, those that do
    not lie side by side, and those that other flows have not."""
    found = {}
    for name, key in _PORTS.items():
        numbers = flow.ports.get(name)
        is_icmp = flow.transport is not None and flow.transport.protocol == "icmp"
        is_shared = all(_fields(each, -1).get(name) == _fields(flow, -1).get(name) for each in flows)
        is_plain = numbers is None or len(numbers) == 1 or (len(flows) == 1 and is_side_by_side(numbers))
        if is_icmp or not is_shared or not is_plain:
            found[key] = _drawn(_fields(flow, -1)[name]) if numbers is None else as_field(numbers)
    return found


def _common_port(name: str, first: FlowPart, own: Sequence[Mapping[str, int | FieldPattern]]) -> Any:
    """That of frames whose flow has none of its own, as OTG writes it; where all have, the least of all."""
    found = [ports[_PORTS[name]] for ports in own if _PORTS[name] in ports]
    if not found:
        return _fields(first, -1).get(name, {})
    return as_pattern([max(1, min(each if isinstance(each, int) else each.bounds[0] for each in found))])


def _drawn(field: Mapping[str, Any]) -> FieldPattern:
    first, last = (int(field["random"].get(end, 0)) for end in ("min", "max"))
    return FieldPattern(first=first, count=max(1, last - first + 1), mode="pseudorandom")


def _fields(flow: FlowPart, place: int) -> Mapping[str, Any]:
    """Those of a header of its packet."""
    packet = flow.read.document["packet"]
    header = packet[place] if packet else {}
    found: Mapping[str, Any] = header.get(header.get("choice", ""), {})
    return found


def _addresses(flow: FlowPart) -> Any:
    found = flow.read.addresses
    if found is None:
        return None
    values = {side: (each.mode, each.numbers) for side, each in found.values.items()}
    return found.version, values, found.stations


def _vlan_priority(flow: FlowPart) -> Numbers | None:
    """None: the side that sends has no tags."""
    if flow.marks.vlan_priority is not None or flow.read.addresses is None:
        return flow.marks.vlan_priority
    stations = flow.read.addresses.stations.get(sending_side(flow.sent.direction), ())
    return (0,) if stations and stations[0].vlans else None


def _unlike(groups: Sequence[PortFlows], has_classes: bool) -> list[str]:
    """Both directions take the same time; and have one size, and bursts one rate, if frames are alike."""
    if len(groups) < 2:
        return []
    one, other = groups
    reasons = []
    keys = [*(() if has_classes else ("frame_size",)), "burst", *(("rate_fps",) if one.first.burst else ())]
    for key in keys:
        have, wanted = getattr(one.first, key), getattr(other.first, key)
        if have != wanted:
            reasons.append(
                f"{other.first.at}: {key} {wanted}, but {one.first.at} has {have}: both directions must be"
                " alike"
            )
    longest_s = max(one.first.duration_s, other.first.duration_s)
    for each in groups:
        packets = round(each.rate_fps * longest_s) if each.first.burst is None else each.packets
        if each.packets != packets and not one.packets is other.packets is None:
            reasons.append(
                f"{each.first.at}.duration: {each.first.duration_s:g} s, but the other direction takes"
                f" {longest_s:g} s: both take the same time"
            )
    return reasons


def _places(groups: Sequence[PortFlows], errors: list[str]) -> dict[str, int]:
    """The place of each flow among those of the plan, which both directions have; of those with others on
    their port."""
    one, *others = groups
    if len(groups) > 1 and any(group.first.sizes for group in groups):
        has_tags = all(_vlan_priority(group.first) is not None for group in groups)
        (other,) = others
        if not _are_all_alike(one.classes, other.classes, has_tags):
            errors.append(
                f"{other.first.at}: sizes in turn, and all that steps beside them, must be those of"
                f" {one.first.at}: both directions have the same, or one direction is sent after the other"
            )
        return {}
    found = {each.at: place for place, each in enumerate(one.flows)}
    for group in others if one.classes else ():
        left = dict(enumerate(one.classes))
        for flow, mine in zip(group.flows, group.classes, strict=True):
            has_tags = _vlan_priority(flow) is not None and _vlan_priority(one.first) is not None
            place = next((n for n, each in left.items() if _are_alike(each, mine, has_tags)), None)
            if place is None:
                errors.append(
                    f"{flow.at}: no flow of the other direction has its share, DSCP, flow label, VLAN"
                    " priority, ports and size: several flows, and such fields, are the same in both"
                )
                continue
            del left[place]
            found[flow.at] = place
        errors += [f"{one.flows[place].at}: the other direction has no flow like it" for place in left]
    return found if len(one.flows) > 1 else {}


def _are_all_alike(one: Sequence[Flow], other: Sequence[Flow], has_tags: bool) -> bool:
    return len(one) == len(other) and all(map(_are_alike, one, other, [has_tags] * len(one)))


def _are_alike(one: Flow, other: Flow, has_tags: bool) -> bool:
    """But for names; and for priorities where one side has no tags."""
    priority = other.vlan_priority if has_tags else one.vlan_priority
    return one == replace(other, name=one.name, vlan_priority=priority)
