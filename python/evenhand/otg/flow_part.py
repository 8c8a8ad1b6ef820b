# SPDX-License-Identifier: Apache-2.0
"""OTG: a flow's own part: its ends, size, rate and duration, and the values of its fields."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.units import ETHERNET_GAP_OCTETS
from evenhand.exchange.otg_flow import LARGEST_VLAN, choice_of
from evenhand.otg.headers import (
    LARGEST_PORT,
    MARKS,
    PROTOCOLS,
    TRANSPORTS,
    FlowMarks,
    Numbers,
    as_pattern,
    is_side_by_side,
    numbers_of,
    read_header,
    read_sizes,
)
from evenhand.otg.own_addresses import FieldValues, FlowAddresses, read_values
from evenhand.otg.plan_of_flows import Macs, ReadFlow
from evenhand.otg.refusals import OtgError, other_keys
from evenhand.otg.stations import Station, stations_named
from evenhand.plan import SIDES, Direction, SideName, Transport, receiving_side, sending_side
from evenhand.plan.flow_tables import payload_of
from evenhand.plan.topology import CLASSIC_DESTINATION_PORT, CLASSIC_SOURCE_PORT
from evenhand.trial import Burst

_BITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_SIMPLE: Mapping[str, Any] = {
    "size": {"choice": "fixed", "fixed": 64},
    "rate": {"choice": "pps", "pps": 1},
    "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1}},
}
"""In place of what is read here, for the reader of flows that the file import has too."""
USUAL_GAP = 12
"""Octets between frames: OTG's default, and Ethernet's."""
HEADERS = ("ethernet", "vlan", "ipv4", "ipv6", *TRANSPORTS)
_FRAME = "test frames are Ethernet, up to two VLAN tags, IPv4 or IPv6, and UDP, TCP or an echo of ICMP"
_PAYLOAD = "custom"
_NO_HEADER = {
    _PAYLOAD: f"it is the payload: let it end the packet, once, right behind {', '.join(TRANSPORTS)}"
}
"""Why frames cannot have a header that scripts often have where it stands."""
_WITHOUT_HEADER: Mapping[str, Any] = {
    "choice": "udp",
    "udp": {
        "src_port": {"choice": "value", "value": CLASSIC_SOURCE_PORT.first},
        "dst_port": {"choice": "value", "value": CLASSIC_DESTINATION_PORT.first},
    },
}
"""What frames have that have no header behind IP."""
_PROTOCOL_KEYS = {"ipv4": "protocol", "ipv6": "next_header"}
LONGEST_BURSTS_S = 30.0
"""A stop waits for their end: a trial of bursts does not end earlier."""
_NS = {"nanoseconds": 1e-9, "microseconds": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFlow:
    """One flow of the configuration."""

    name: str
    direction: Direction
    port_tx: str
    port_rx: str
    rate_fps: float
    packets: int | None
    """Its frames; None if it has no end of its own."""
    mean_octets: Fraction
    """The mean size of its frames."""
    places: tuple[int, ...] = ()
    """Its places among the flows that the plan sends in its direction; empty: it is alone there."""


class FlowPart:
    """A flow's own part: ends, size, rate, duration. Its packet is read by the file import's reader."""

    def __init__(
        self,
        number: int,
        flow: Mapping[str, Any],
        sides: Mapping[str, SideName],
        stations: Sequence[Station],
        rates: Mapping[SideName, float | None],
        longest_s: float,
        errors: list[str],
    ) -> None:
        self.at, self._longest_s, self._errors = f"flows[{number}]", longest_s, errors
        self._rates, self._stations = rates, stations
        self.burst: Burst | None = None
        self.notes: list[str] = []
        self.name = str(flow.get("name", ""))
        if not self.name:
            errors.append(f"{self.at}.name: is missing")
        errors += other_keys(flow, "flows[]", self.at)
        self._check_inner(flow)
        self._version: Any = next((int(kind[-1]) for kind in _kinds(flow) if kind in ("ipv4", "ipv6")), 0)
        ends, of_side = self._between_ports(flow.get("tx_rx", {}), sides)
        ends, self._direction, port_tx, port_rx = self._read_ends(ends, sides)
        self.sizes = read_sizes(flow.get("size"), self.at, errors)
        self.rate = self._read_rate(flow.get("rate"), rates)
        self.rate_fps = float(self.rate)
        self.exact_s: Fraction | None = None
        """Seconds; None: it has no end, or bursts."""
        self.duration_kind = choice_of(flow.get("duration"), "continuous")
        self.packets, self.duration_s = self._read_duration(flow.get("duration"))
        self.payload = b""
        """Octets right behind the header, in front of the tag."""
        headers = self._with_transport(flow)
        self.sent = SentFlow(
            name=self.name,
            direction=self._direction,
            port_tx=port_tx,
            port_rx=port_rx,
            rate_fps=self.rate_fps,
            packets=self.packets,
            mean_octets=self.sizes.mean,
        )
        self._randoms: list[tuple[str, int]] = []
        self._values: dict[str, FieldValues] = {}
        self._is_listed = False
        self.marks = FlowMarks()
        self.ports: dict[str, Numbers] = {}
        """UDP ports in the order of the frames, or what stands for them; none that are random."""
        self.transport: Transport | None = None
        """The header in place of UDP's."""
        self.stepping: list[str] = []
        """Addresses whose values come in an order of their own."""
        packet = [self._plain(header, place) for place, header in enumerate(headers)]
        self.tags = [self._vlan(header, place) for place, header in enumerate(packet) if _is_tag(header)]
        """The VLANs of each tag in the order of the frames, the outermost tag first."""
        self._errors += [
            f"{self.at}.packet: only the innermost tag can have several VLANs"
            for tag in self.tags[:-1]
            if len(tag) > 1
        ]
        packet = self._with_addresses_of(of_side, [header for header in packet if not _is_tag(header)])
        document = {"name": self.name, "tx_rx": ends, "packet": packet, **_SIMPLE}
        self.read = ReadFlow(
            at=self.at, document=document, addresses=self._addresses(of_side), is_listed=self._is_listed
        )

    def _refuse(self, key: str, why: str) -> None:
        self._errors.append(f"{self.at}.{key}: {why}")

    @property
    def vlans(self) -> tuple[int, ...]:
        """The first VLAN of each tag."""
        return tuple(tag[0] for tag in self.tags)

    def _with_transport(self, flow: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The headers, of which UDP's is the last where there is none behind IP."""
        headers, kinds = list(flow.get("packet", [])), _kinds(flow)
        if len(kinds) > 1 and kinds[-1] == _PAYLOAD and kinds[-2] in TRANSPORTS:
            self._read_payload(
                headers.pop().get(_PAYLOAD, {}), f"{self.at}.packet[{len(headers)}].{kinds.pop()}"
            )
        for place, kind in enumerate(kinds):
            if kind not in HEADERS:
                self._refuse(f"packet[{place}].{kind}", _NO_HEADER.get(kind, _FRAME))
        if kinds and kinds[-1] in _PROTOCOL_KEYS:
            self.notes.append(
                f"{self.at}.packet: has no header behind IP: frames have UDP's, from port"
                f" {CLASSIC_SOURCE_PORT.first} to port {CLASSIC_DESTINATION_PORT.first}"
            )
            headers, kinds = [*headers, _WITHOUT_HEADER], [*kinds, "udp"]
        self._protocol = PROTOCOLS.get(kinds[-1] if kinds else "", 0)
        if not {*kinds} - {*HEADERS} and len([kind for kind in kinds if kind in TRANSPORTS]) != 1:
            self._refuse("packet", f"{', '.join(kinds) or 'no headers'}: {_FRAME}: let one of these end it")
        return headers

    def _read_payload(self, custom: Mapping[str, Any], at: str) -> None:
        self._errors += other_keys(custom, "flows[].packet[].custom", at)
        digits = str(custom.get("bytes", ""))
        try:
            self.payload = payload_of(digits.lower().removeprefix("0x").replace(":", " "))
        except EvenhandError as error:
            self._errors.append(f"{at}.bytes: {error.what}. {error.next_step}")

    def _check_inner(self, flow: Mapping[str, Any]) -> None:
        for key in ("tx_rx", "size", "rate", "duration", "metrics"):
            self._errors += other_keys(flow.get(key, {}), f"flows[].{key}", f"{self.at}.{key}")
        metrics = flow.get("metrics", {})
        latency = metrics.get("latency", {})
        self._errors += other_keys(latency, "flows[].metrics.latency", f"{self.at}.metrics.latency")
        if latency.get("mode") == "cut_through":
            self._refuse("metrics.latency.mode", "cut_through: frames are stamped by software, store_forward")
        if any(metrics.get("predefined_metric_tags", {}).values()):
            self._refuse("metrics.predefined_metric_tags", "is not honoured here")
        payload = flow.get("payload", {})
        self._errors += other_keys(payload, "flows[].payload", f"{self.at}.payload")
        if payload and choice_of(payload, "increment_byte") != "increment_byte":
            self._refuse("payload", f"{choice_of(payload, '')}: only increment_byte can be sent")
        elif payload:
            self.notes.append(
                f"{self.at}.payload: begins with a tag that says which frame it is; octets that rise from 0"
                " follow"
            )

    def _between_ports(
        self, ends: Mapping[str, Any], sides: Mapping[str, SideName]
    ) -> tuple[Mapping[str, Any], Mapping[SideName, tuple[Station, ...]]]:
        """The ends of a flow between devices as those of one between their ports; and the devices."""
        if choice_of(ends, "port") != "device" or not ends.get("device"):
            return ends, {}
        device, at = ends["device"], f"{self.at}.tx_rx.device"
        self._errors += other_keys(device, "flows[].tx_rx.device", at)
        if device.get("bidirectional"):
            self._refuse("tx_rx.device.bidirectional", "write a flow for each direction")
        try:
            sender, receiver = (
                stations_named(device.get(key, []), self._stations, self._version, f"{at}.{key}")
                for key in ("tx_names", "rx_names")
            )
        except OtgError as error:
            self._errors += error.errors
            return ends, {}
        if device.get("mode", "mesh") != "mesh" and max(len(sender), len(receiver)) > 1:
            self._refuse("tx_rx.device.mode", "one_to_one: hosts of both sides are combined, as in mesh")
        names = {side: name for name, side in sides.items()}
        plain = {"tx_name": names[sender[0].side], "rx_names": [names[receiver[0].side]]}
        return {"choice": "port", "port": plain}, {sender[0].side: sender, receiver[0].side: receiver}

    def _with_addresses_of(
        self, of_side: Mapping[SideName, tuple[Station, ...]], packet: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The packet with the addresses of the devices where it has none."""
        ends = {"src": sending_side(self._direction), "dst": receiving_side(self._direction)}
        kind = f"ipv{self._version}"
        for header in (each for each in packet if each.get("choice") == kind):
            fields = header.setdefault(kind, {})
            for name, side in ends.items():
                stations = of_side.get(side, ())
                if name in fields or not stations:
                    continue
                found = sorted({int(each.address) for each in stations})
                self._values[name] = FieldValues(
                    mode="fixed" if len(found) == 1 else "increment", numbers=tuple(found)
                )
                fields[name] = {"choice": "value", "value": str(stations[0].address)}
        return packet

    def _addresses(self, of_side: Mapping[SideName, tuple[Station, ...]]) -> FlowAddresses | None:
        """None if an address is missing, which the reader says."""
        if self._values.keys() != {"src", "dst"}:
            return None
        values = {
            sending_side(self._direction): self._values["src"],
            receiving_side(self._direction): self._values["dst"],
        }
        return FlowAddresses(at=self.at, version=self._version, values=values, stations=of_side)

    def _vlan(self, header: Mapping[str, Any], place: int) -> Numbers:
        """The numbers of a tag, in the order of the frames."""
        field, at = header.get("vlan", {}).get("id", {}), f"{self.at}.packet[{place}].vlan.id"
        return numbers_of(field, at, self._errors, least=1, most=LARGEST_VLAN, default=1)

    def _read_ends(
        self, ends: Mapping[str, Any], sides: Mapping[str, SideName]
    ) -> tuple[Mapping[str, Any], Direction, str, str]:
        """The ends with a receiver, direction, sender and receiver. The reader of the file import says what
        is wrong with them."""
        port = ends.get("port", {})
        sender = port.get("tx_name", "")
        receivers = [*port.get("rx_names", []), *([port["rx_name"]] if port.get("rx_name") else [])]
        if not receivers and sender and sender in sides:
            receivers = [name for name, side in sides.items() if side != sides[sender]]
            ends = {**ends, "port": {"tx_name": sender, "rx_names": receivers}}
            self.notes.append(
                f"{self.at}.tx_rx.port: names no port that receives; what the other one has is counted"
            )
        direction: Direction = "forward" if sides.get(sender) == "left" else "reverse"
        return ends, direction, sender, receivers[0] if receivers else ""

    def _read_rate(
        self, rate: Mapping[str, Any] | None, line_rates_bps: Mapping[SideName, float | None]
    ) -> Fraction:
        """Frames per second. Bits are those of the wire, with preamble and gap: OTG's least rate is that of a
        frame of 64 octets with them."""
        choice, given = choice_of(rate, "pps"), rate or {}
        wire_bits = 8 * (self.sizes.mean + ETHERNET_GAP_OCTETS)
        if choice == "pps":
            found = _exact(given.get("pps", 1000))
        elif choice in _BITS:
            found = _exact(given.get(choice, 0)) * _BITS[choice] / wire_bits
        else:
            line_bps = line_rates_bps[sending_side(self._direction)]
            if line_bps is None:
                self._refuse("rate", "percentage: the port does not know its line rate: use pps")
                return Fraction(1)
            found = _exact(given.get("percentage", 0)) / 100 * Fraction(line_bps) / wire_bits
        if not 0 < found < 10**10:
            self._refuse("rate", f"{float(found):g} frames a second is no rate that can be sent")
            return Fraction(1)
        return found

    def _read_duration(self, duration: Mapping[str, Any] | None) -> tuple[int | None, float]:
        """Frames, None without an end; and seconds."""
        choice = choice_of(duration, "continuous")
        inner = (duration or {}).get(choice, {})
        if choice == "burst":
            return self._read_bursts(inner)
        at = f"{self.at}.duration.{choice}"
        self._errors += other_keys(inner, f"flows[].duration.{choice}", at)
        if inner.get("gap", USUAL_GAP) != USUAL_GAP:
            self._refuse(f"duration.{choice}.gap", f"{inner['gap']}: frames are evenly spaced by the rate")
        delay = inner.get("delay", {})
        if any(delay.get(unit) for unit in ("bytes", "nanoseconds", "microseconds")):
            self._refuse(f"duration.{choice}.delay", "all flows start at once")
        if choice == "continuous":
            return None, self._longest_s
        if choice == "fixed_packets":
            packets = int(inner.get("packets", 1))
            self.exact_s = packets / self.rate
        else:
            self.exact_s = _exact(inner.get("seconds", 1))
            packets = floor(self.exact_s * self.rate + Fraction(1, 2))
        if not 1 <= packets <= self._longest_s * self.rate_fps:
            self._refuse(
                "duration",
                f"{packets:,} frames at this rate: a flow has at least one, and takes {self._longest_s:g} s"
                " at most",
            )
            return 1, 1.0
        return packets, float(self.exact_s)

    def _read_bursts(self, inner: Mapping[str, Any]) -> tuple[int | None, float]:
        """Frames at the flow's rate, then the gap, again and again."""
        at = f"{self.at}.duration.burst"
        self._errors += other_keys(inner, "flows[].duration.burst", at)
        frames, count = int(inner.get("packets", 1)), int(inner.get("bursts", 0))
        if inner.get("gap", USUAL_GAP) != USUAL_GAP:
            self._refuse("duration.burst.gap", f"{inner['gap']}: frames of a burst are spaced by the rate")
        gap = inner.get("inter_burst_gap", {})
        self._errors += other_keys(gap, "flows[].duration.burst.inter_burst_gap", f"{at}.inter_burst_gap")
        choice = choice_of(gap, "bytes")
        if choice in _NS:
            gap_s = float(gap.get(choice, 0)) * _NS[choice]
        else:
            octets, line_bps = float(gap.get("bytes", USUAL_GAP)), self._rates[sending_side(self._direction)]
            if octets > USUAL_GAP and line_bps is None:
                self._refuse("duration.burst.inter_burst_gap", "bytes: the line rate is not known: use ns")
            gap_s = 0.0 if octets <= USUAL_GAP else 8 * octets / (line_bps or 1e9)
        interval_s = frames / self.rate_fps + gap_s
        if frames < 1 or not 0 < count * interval_s <= LONGEST_BURSTS_S:
            self._refuse(
                "duration.burst",
                f"{count:,} bursts of {frames:,} frames: they cannot be stopped, so they must have an end,"
                f" within {LONGEST_BURSTS_S:g} s",
            )
            return 1, 1.0
        self.burst = Burst(frames=frames, interval_s=interval_s)
        return count * frames, count * interval_s

    def _plain(self, header: Mapping[str, Any], place: int) -> dict[str, Any]:
        """The header with values that step evenly as an increment, for the reader of the file import."""
        at, kind = f"{self.at}.packet[{place}]", choice_of(header, "ethernet")
        if kind not in HEADERS:
            return dict(header)
        fields = header.get(kind, {})
        if kind in TRANSPORTS:
            return self._plain_transport(kind, fields, f"{at}.{kind}")
        self._errors += other_keys(fields, f"flows[].packet[].{kind}", f"{at}.{kind}")
        # A destination of `auto` is what ARP or ND finds, or a device's address.
        written = {name: field for name, field in fields.items() if field.get("choice") != "auto"}
        key = _PROTOCOL_KEYS.get(kind, "")
        if (protocol := written.pop(key, None)) and protocol.get("value") != self._protocol:
            self._errors.append(f"{at}.{kind}.{key}: is that of the header behind it, {self._protocol}")
        for name in [name for name in MARKS.get(kind, ()) if name in written or kind == "vlan"]:
            self.marks.read(kind, name, written.pop(name, {}), f"{at}.{kind}.{name}", self._errors)
        if kind == "vlan":
            return {"choice": kind, kind: written}
        plain = {name: self._field(f"{at}.{kind}.{name}", field) for name, field in written.items()}
        if kind in ("ipv4", "ipv6"):
            for name in ("src", "dst"):
                if name in written and (found := self._read_values(f"{at}.{kind}.{name}", written[name])):
                    self._values[name] = found
        return {"choice": kind, kind: {name: field for name, field in plain.items() if field}}

    def _read_values(self, at: str, field: Mapping[str, Any]) -> FieldValues | None:
        try:
            return read_values(at, field, self._version)
        except OtgError as error:
            self._errors += error.errors
            return None

    def _plain_transport(self, kind: str, fields: Mapping[str, Any], at: str) -> dict[str, Any]:
        """As if it were UDP's. Values that do not lie side by side are those of the plan's flows."""
        header = read_header(kind, fields, at, self._version, self._errors)
        self.transport = header.transport
        plain = {}
        for name, (place, field) in header.ports.items():
            if choice_of(field, "value") == "random":
                self._randoms.append((place, int(field.get("random", {}).get("count", 1))))
                plain[name] = dict(field)
                continue
            numbers = numbers_of(field, place, self._errors, least=header.least, most=LARGEST_PORT)
            self.ports[name] = numbers
            is_range = header.least == 1 and is_side_by_side(numbers)
            plain[name] = as_pattern(numbers if is_range else [max(1, numbers[0])])
        return {"choice": "udp", "udp": plain}

    def _field(self, at: str, field: Mapping[str, Any]) -> dict[str, Any]:
        choice = field.get("choice")
        inner = field.get(str(choice), 1)
        count = len(inner) if choice == "values" else inner.get("count", 1) if isinstance(inner, dict) else 1
        if choice in ("values", "increment", "decrement") and count != 1:
            self.stepping.append(at)
        if choice == "random":
            self._randoms.append((at, int(field.get("random", {}).get("count", 1))))
        if choice != "values":
            return dict(field)
        values = field.get("values", [])
        if len(values) == 1:
            return {"choice": "value", "value": values[0]}
        try:
            numbers = [int(ipaddress.ip_address(value)) for value in values]
        except ValueError:
            numbers = []
        if not numbers:
            self._errors.append(f"{at}: only values of addresses and ports can be sent")
            return {}
        step = numbers[1] - numbers[0]
        if step <= 0 or any(b - a != step for a, b in pairwise(numbers)):
            self._is_listed = True
            return {"choice": "value", "value": values[0]}
        width = ipaddress.IPv4Address if "." in values[0] else ipaddress.IPv6Address
        increment = {"start": values[0], "step": str(width(step)), "count": len(numbers)}
        return {"choice": "increment", "increment": increment}

    def too_short_sequences(self) -> list[str]:
        """A random field draws anew for each frame here: a shorter sequence would repeat."""
        least = self.packets if self.packets is not None else 2**32 - 1
        return [
            f"{at}: random with a count of {count:,} repeats after so many frames; here every frame is drawn"
            f" anew, so the count must be at least {least:,}, the number of frames"
            for at, count in self._randoms
            if count < least
        ]


def _exact(value: object) -> Fraction:
    """A number of the model's; 0 for one that is none, which no rate or duration may be."""
    try:
        return Fraction(str(value))
    except ValueError:
        return Fraction(0)


def _kinds(flow: Mapping[str, Any]) -> list[str]:
    return [choice_of(header, "ethernet") for header in flow.get("packet", [])]


def _is_tag(header: Mapping[str, Any]) -> bool:
    return header.get("choice") == "vlan"


def vlans_of(flows: Sequence[FlowPart], errors: list[str]) -> Mapping[SideName, tuple[int, ...]]:
    """By side: of the devices there, or of the first flow that is sent there. The innermost tag of a flow may
    have other VLANs."""
    found: dict[SideName, tuple[int, ...]] = {}
    for flow in flows:
        stations = {} if flow.read.addresses is None else flow.read.addresses.stations
        found |= {side: each[0].vlans for side, each in stations.items() if each and each[0].vlans}
    for flow in flows:
        side, mine = sending_side(flow.sent.direction), flow.vlans
        its = found.setdefault(side, mine) if mine else ()
        if (len(its), its[:-1]) != (len(mine), mine[:-1]):
            errors.append(
                f"{flow.at}.packet: its VLANs {mine} are unlike {its} of the {side}: all frames of a side"
                " have as many tags, and one outer VLAN"
            )
    for side, vlans in found.items():
        if len(vlans) > 2:
            errors.append(f"flows: {len(vlans)} tags on the {side}: frames have two at most")
    return found


def with_stations(macs: Macs, flows: Sequence[FlowAddresses]) -> Macs:
    """With the MACs of the devices, where no flow names one."""
    found: dict[SideName, dict[str, str]] = {side: {} for side in SIDES}
    for flow in flows:
        for side, stations in flow.stations.items():
            for station in stations:
                named = {"mac": station.mac, "dut_mac": station.gateway_mac}
                found[side] |= {key: mac for key, mac in named.items() if mac is not None}
    return {side: {**of_devices, **macs.get(side, {})} for side, of_devices in found.items()}
