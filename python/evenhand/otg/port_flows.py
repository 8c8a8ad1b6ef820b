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
from evenhand.otg.headers import UDP_PORTS, as_field, as_pattern, is_side_by_side
from evenhand.otg.plan_of_flows import ReadFlow
from evenhand.otg.refusals import OtgError
from evenhand.plan import (
    SMALLEST_FRAME,
    FieldPattern,
    Flow,
    FrameSize,
    SideName,
    is_flow_name,
    make_flows,
    sending_side,
)

MOST_OF_A_PORT = 64
_PORTS = dict(zip(UDP_PORTS, ("source_port", "destination_port"), strict=True))
"""Keys of a plan's flow by the names of the fields."""
_Own = Mapping[str, int | FieldPattern]
"""Ports and VLAN of a flow by their keys of a plan's flow, as far as they are none of the plan as a whole."""


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
    places: tuple[tuple[int, ...], ...]
    """Which flows of the plan each flow is: several where its frames have several sizes."""
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


def flows_together(
    parts: Sequence[FlowPart], vlans: Mapping[SideName, tuple[int, ...]], seed: int
) -> SentTogether:
    """The flows as they are sent.

    Args:
        vlans: The tags of each side that has some.
        seed: For what is drawn before the frames are.

    Raises:
        OtgError: Those of one port, or of both, cannot be sent together.
    """
    errors: list[str] = []
    directions = dict.fromkeys(part.sent.direction for part in parts)
    of_ports = [[part for part in parts if part.sent.direction == direction] for direction in directions]
    for flows in of_ports:
        _check_port(flows, errors)
    if errors:
        raise OtgError(errors)
    own = {
        part.at: {**_own_ports(part, parts, is_alone=len(flows) == 1), **_own_vlan(part, vlans)}
        for flows in of_ports
        for part in flows
    }
    has_classes = (
        any(own.values())
        or len({part.sizes for part in parts}) > 1
        or any(len(flows) > 1 or _is_flow_of_a_plan(flows[0]) for flows in of_ports)
    )
    common = {name: _common_port(name, parts, own) for name in _PORTS}
    groups = [_port_flows(flows, own, common, seed if has_classes else None, errors) for flows in of_ports]
    errors += _unlike(groups)
    if errors:
        raise OtgError(errors)
    classes, size = _classes_of_plan(groups)
    places = {
        part.at: places for group in groups for part, places in zip(group.flows, group.places, strict=True)
    }
    return SentTogether(
        flows=tuple(replace(part.sent, places=places[part.at]) for part in parts),
        classes=classes,
        frame_size=size,
        reads=tuple(each.read for each in groups),
    )


def _classes_of_plan(groups: Sequence[PortFlows]) -> tuple[tuple[Flow, ...], FrameSize]:
    """Flows of both directions where they are alike but for names, else of each; and the size of those that
    have none of their own."""
    one, other = groups[0], groups[-1]
    are_alike = [replace(each, name="") for each in one.classes] == [
        replace(each, name="") for each in other.classes
    ]
    classes = one.classes
    if not are_alike:
        classes = tuple(
            replace(each, direction=group.first.sent.direction) for group in groups for each in group.classes
        )
    sizes = {each.frame_size for each in classes if each.frame_size is not None}
    if len(sizes) == 1:
        classes = tuple(replace(each, frame_size=None) for each in classes)
    return classes, max(sizes, default=one.first.sizes.frame_size)


def _check_port(flows: Sequence[FlowPart], errors: list[str]) -> None:
    """What flows of one port must have in common."""
    first, others = flows[0], flows[1:]
    if len(flows) > MOST_OF_A_PORT:
        errors.append(f"{flows[MOST_OF_A_PORT].at}: a port sends {MOST_OF_A_PORT} flows at most")
    for each in flows if others else ():
        if each.burst is not None:
            errors.append(f"{each.at}.duration.burst: flows of a port take turns: only one alone has bursts")
        errors += [
            f"{at}: one value, or random: flows of a port take turns, and addresses in order are those of"
            " all its frames together"
            for at in each.stepping
        ]
    for each in others:
        for key, what, mine, its in (
            ("packet", "VLAN tags", (len(first.tags), first.vlans[:-1]), (len(each.tags), each.vlans[:-1])),
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


def _port_flows(
    flows: Sequence[FlowPart],
    own: Mapping[str, _Own],
    common: Mapping[str, Any],
    seed: int | None,
    errors: list[str],
) -> PortFlows:
    """
    Args:
        common: The ports of the plan as a whole.
        seed: None: all frames of both directions are alike, and no flows of the plan.
    """
    first = flows[0]
    rate = sum((each.rate for each in flows), Fraction(0))
    read = first.read
    if any(own.values()):
        packet = [*read.document["packet"][:-1], {"choice": "udp", "udp": common}]
        read = replace(read, document={**read.document, "packet": packet})
    classes, places = ((), ((),) * len(flows)) if seed is None else _classes(flows, own, seed, errors)
    is_alone = len(flows) == 1
    return PortFlows(
        flows=tuple(flows),
        rate_fps=float(rate),
        packets=first.packets
        if is_alone or first.exact_s is None
        else math.floor(first.exact_s * rate + Fraction(1, 2)),
        classes=classes,
        places=((),) if is_alone else places,
        read=read,
    )


def _classes(
    flows: Sequence[FlowPart], own: Mapping[str, _Own], seed: int, errors: list[str]
) -> tuple[tuple[Flow, ...], tuple[tuple[int, ...], ...]]:
    """The flows of one port as flows of the plan, and which of them each is."""
    drawn = [each for each in flows if each.sizes.is_drawn]
    others = sum(len(each.sizes.octets) for each in flows if not each.sizes.is_drawn)
    most = (MOST_OF_A_PORT - others) // max(len(drawn), 1)
    asked: list[Flow] = []
    rates: list[Fraction] = []
    places = []
    for number, flow in enumerate(flows):
        if flow.sizes.least < (least := _smallest(flow)):
            errors.append(
                f"{flow.at}.size: {flow.sizes.least} octets: frames of these headers have {least} at least"
            )
        found = _flows_of_plan(
            flow, own[flow.at], max(most, 2), seed + number, errors, is_alone=len(flows) == 1
        )
        places.append(tuple(range(len(asked), len(asked) + len(found))))
        whole = sum(each.share for each in found)
        asked += found
        rates += [flow.rate * each.share / whole for each in found]
    if len(asked) > MOST_OF_A_PORT:
        errors.append(
            f"{flows[0].at}: {len(asked)} sizes, and values of ECN in turn, of all flows of its port: at most"
            f" {MOST_OF_A_PORT}"
        )
    if errors:
        return (), tuple(places)
    try:
        return make_flows(_with_names(asked), rates), tuple(places)
    except PlanError as error:
        errors.append(f"{flows[0].at}.rate: {error.what}; give flows of a port rates of few parts")
        return (), tuple(places)


def _flows_of_plan(
    flow: FlowPart, own: _Own, most: int, seed: int, errors: list[str], *, is_alone: bool
) -> list[Flow]:
    """One flow as flows of the plan, one for each of its sizes, and of its values of ECN.

    Args:
        most: How many drawn sizes can be sent.
        is_alone: Whether it is the only one of its port.
    """
    marks = {
        "dscp": flow.marks.dscp,
        "flow_label": flow.marks.flow_label,
        "vlan_priority": flow.marks.vlan_priority or (0,),
    }
    numbers = {
        **marks,
        **{_PORTS[name]: of for name, of in flow.ports.items()},
        "vlan": (flow.tags or [(0,)])[-1],
    }
    fields: dict[str, Any] = {**{key: as_field(of) for key, of in marks.items()}, **own}
    stepping = {key: of for key, of in numbers.items() if len(of) > 1 and key in fields}
    sizes, ecn = flow.sizes, flow.marks.ecn
    counted = sizes.counted(most)
    is_mixed = len(counted) > 1 and not sizes.are_in_turn
    if is_mixed and (stepping or len(ecn) > 1):
        errors.append(
            f"{flow.at}.size: sizes that are drawn, or in shares, beside values of"
            f" {', '.join(stepping) or 'ECN'} in turn: give the flow one size, or one value of each field"
        )
        return []
    period = 1 if is_mixed else math.lcm(len(counted), len(ecn))
    if period > 1 and not is_alone:
        errors.append(
            f"{flow.at}.size: only a flow alone on its port has sizes, or values of ECN, in turn: the flows"
            " of a port take turns themselves"
        )
    if period > MOST_OF_A_PORT:
        errors.append(
            f"{flow.at}.packet: values of ECN that repeat after {period:,} frames, with their DSCP and size;"
            f" at most {MOST_OF_A_PORT}"
        )
        return []
    shuffle = seed if sizes.is_drawn else None
    found = []
    for place in range(len(counted) if is_mixed else period):
        size, share = counted[place % len(counted)]
        if period > 1:
            # Equal shares take turns in the order of the flows: frame k is of number k.
            for key, of in stepping.items():
                turns = range(place, place + period * len(of) // math.gcd(period, len(of)), period)
                fields[key] = as_field([of[turn % len(of)] for turn in turns])
        made = Flow(
            name=flow.name,
            share=share,
            ecn=ecn[place % len(ecn)],
            frame_size=size,
            transport=flow.transport,
            payload=flow.payload,
            shuffle=shuffle,
            **fields,
        )
        found.append(made)
    if len(found) > 1:
        found = [
            replace(each, name=f"{flow.name} {number} of {len(found)}")
            for number, each in enumerate(found, 1)
        ]
    return found


def _smallest(flow: FlowPart) -> int:
    """The least size of its frames."""
    if flow.read.addresses is None:
        return 0  # another error says why
    more = 0 if flow.transport is None else flow.transport.more_octets
    return SMALLEST_FRAME[flow.read.addresses.version] + more + len(flow.payload)


def _is_flow_of_a_plan(flow: FlowPart) -> bool:
    """Whether a flow that is alone on its port has frames that no plan sends without flows."""
    return (
        flow.transport is not None
        or flow.payload != b""
        or not flow.marks.are_usual
        or (len(flow.sizes.octets) > 1 and flow.sizes.imix is None)
    )


def _with_names(flows: Sequence[Flow]) -> list[Flow]:
    """With names that a plan can have: those of the configuration, or numbers."""
    names = [flow.name for flow in flows]
    if all(map(is_flow_name, names)) and len({*names}) == len(names):
        return list(flows)
    return [replace(flow, name=f"flow {number}") for number, flow in enumerate(flows, 1)]


def _own_ports(flow: FlowPart, flows: Sequence[FlowPart], *, is_alone: bool) -> _Own:
    """Its ports, as far as they are none of the plan as a whole: what stands for them in ICMP, those that do
    not lie side by side, and those that other flows have not.

    Args:
        flows: All, of both directions.
        is_alone: Whether it is the only one of its port.
    """
    found = {}
    for name, key in _PORTS.items():
        numbers = flow.ports.get(name)
        is_icmp = flow.transport is not None and flow.transport.protocol == "icmp"
        is_shared = all(_fields(each, -1).get(name) == _fields(flow, -1).get(name) for each in flows)
        is_plain = numbers is None or len(numbers) == 1 or (is_alone and is_side_by_side(numbers))
        if is_icmp or not is_shared or not is_plain:
            found[key] = _drawn(_fields(flow, -1)[name]) if numbers is None else as_field(numbers)
    return found


def _own_vlan(flow: FlowPart, vlans: Mapping[SideName, tuple[int, ...]]) -> _Own:
    """Those of its innermost tag, unless they are that of its side."""
    inner = tuple(flow.tags[-1]) if flow.tags else ()
    is_of_side = inner == vlans.get(sending_side(flow.sent.direction), ())[-1:]
    return {} if is_of_side or not inner else {"vlan": as_field(inner)}


def _common_port(name: str, parts: Sequence[FlowPart], own: Mapping[str, _Own]) -> Any:
    """That of frames whose flow has none of its own, as OTG writes it; where all have, the least of all."""
    found = []
    for part in parts:
        if (each := own[part.at].get(_PORTS[name])) is None:
            return _fields(part, -1).get(name, {})
        found.append(each)
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


def _unlike(groups: Sequence[PortFlows]) -> list[str]:
    """Both directions take the same time, and bursts have one rate."""
    if len(groups) < 2:
        return []
    one, other = groups
    reasons = []
    for key in ("burst", *(("rate_fps",) if one.first.burst else ())):
        have, wanted = getattr(one.first, key), getattr(other.first, key)
        if have != wanted:
            reasons.append(
                f"{other.first.at}: {key} {wanted}, but {one.first.at} has {have}: both directions must be"
                " alike"
            )
    longest_s = max(one.first.duration_s, other.first.duration_s)
    for each in groups:
        packets = math.floor(each.rate_fps * longest_s + 0.5) if each.first.burst is None else each.packets
        if each.packets != packets and not one.packets is other.packets is None:
            reasons.append(
                f"{each.first.at}.duration: {each.first.duration_s:g} s, but the other direction takes"
                f" {longest_s:g} s: both take the same time"
            )
    return reasons
