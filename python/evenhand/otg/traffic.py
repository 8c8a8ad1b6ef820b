# SPDX-License-Identifier: Apache-2.0
"""OTG: what of a configuration can be sent. What cannot is refused with its key and the reason; nothing is
dropped."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.base.units import ETHERNET_GAP_OCTETS
from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.plan_of_flows import Macs, plan_of_flows
from evenhand.otg.refusals import OtgError, other_keys
from evenhand.plan import (
    SIDES,
    AddressPlan,
    Direction,
    FrameSize,
    SideName,
    is_weighted,
    mean_octets,
    parse_imix,
)

LONGEST_S: Mapping[int, float] = {1: 86_400.0, 2: 43_200.0}
"""The longest that so many flows are sent, which is as much as one trial can record: a continuous flow that
nobody stops ends then."""
MOST_FLOWS = 2
_BITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_SIMPLE: Mapping[str, Any] = {
    "size": {"choice": "fixed", "fixed": 64},
    "rate": {"choice": "pps", "pps": 1},
    "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1}},
}
"""In place of what is read here, for the reader of flows that the file import has too."""
IMIX = "64:7,570:4,1518:1"
"""That of OTG's name."""
USUAL_GAP = 12
"""Octets between frames: OTG's default, and Ethernet's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFlow:
    """One flow of the configuration."""

    name: str
    direction: Direction
    port_tx: str
    port_rx: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgPort:
    """One port of the configuration."""

    name: str
    location: str
    side: SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgTraffic:
    """A configuration as it is sent."""

    ports: tuple[OtgPort, ...]
    flows: tuple[SentFlow, ...]
    plan: AddressPlan
    macs: Macs
    """Those that the configuration names, by side: `mac` of the tester, `dut_mac` of the DUT."""
    frame_size: FrameSize
    """Octets with the FCS, or several in a sequence."""
    rate_fps: float
    """The rate of each flow."""
    packets: int | None
    """Frames of each flow; None if it has no end of its own."""
    duration_s: float
    seed: int
    has_preemption: bool
    """Whether it may take the place of flows that are sent."""
    notes: tuple[str, ...]

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(flow.direction for flow in self.flows)


def traffic_of(
    document: Mapping[str, Any],
    *,
    line_rates_bps: Mapping[SideName, float | None] | None = None,
    plans: Sequence[str] = (),
) -> OtgTraffic:
    """What is sent for this configuration.

    Args:
        document: The configuration with the names of the model, as protobuf's JSON has it.
        line_rates_bps: Those of the testbed's ports, for a rate in percent and for layer1; None, or the rate
            of a side is: not known.
        plans: Those that the DUT is set up for, if that is known: the one of the flows' IP version is taken.

    Raises:
        OtgError: Something of it cannot be sent; names all that is so.
    """
    rates = dict.fromkeys(SIDES) | dict(line_rates_bps or {})
    errors = other_keys(document, "config", "")
    ports = _read_ports(document.get("ports", []), errors)
    flows = list(document.get("flows", []))
    if not flows:
        errors.append("flows: there are none, so nothing could be sent")
    if len(flows) > MOST_FLOWS:
        errors.append(f"flows: {len(flows):,}, but one flow in each direction can be sent")
    notes = _read_layer1(document.get("layer1", []), ports, rates, errors)
    options = document.get("options", {}).get("port_options", {})
    errors += other_keys(document.get("options", {}), "options", "options")
    errors += other_keys(options, "options.port_options", "options.port_options")
    if options.get("data_integrity"):
        errors.append("options.port_options.data_integrity: every frame is checked anyway, octet for octet")
    if errors:
        raise OtgError(errors)
    longest_s = LONGEST_S[len(flows)]
    read = [_Flow(number, flow, ports, rates, longest_s, errors) for number, flow in enumerate(flows)]
    names = [flow.name for flow in read]
    errors += [
        f"flows[{n}].name: {name!r} is there twice" for n, name in enumerate(names) if name in names[:n]
    ]
    errors += _unlike(read)
    if errors:
        raise OtgError(errors)
    sides = {port.name: port.side for port in ports}
    plan, macs = plan_of_flows([flow.document for flow in read], sides, plans)
    first = read[0]
    errors += [reason for flow in read for reason in flow.too_short_sequences()]
    if errors:
        raise OtgError(errors)
    return OtgTraffic(
        ports=ports,
        flows=tuple(flow.sent for flow in read),
        plan=plan,
        macs=macs,
        frame_size=first.frame_size,
        rate_fps=first.rate_fps,
        packets=first.packets,
        duration_s=first.duration_s,
        seed=_seed_of(flows),
        has_preemption=bool(options.get("location_preemption")),
        notes=tuple(notes),
    )


def _read_ports(ports: Sequence[Mapping[str, Any]], errors: list[str]) -> tuple[OtgPort, ...]:
    """A location is a side of the testbed; without any, the first port is the left one."""
    if len(ports) > len(SIDES):
        errors.append(f"ports: {len(ports):,}, but a testbed has two")
    found: list[OtgPort] = []
    is_placed = any(port.get("location") for port in ports)
    for number, port in enumerate(ports[: len(SIDES)]):
        at, name, location = f"ports[{number}]", port.get("name", ""), port.get("location", "")
        errors += other_keys(port, "ports[]", at)
        if not name or name in (each.name for each in found):
            errors.append(f"{at}.name: {name!r} is missing, or not unique")
        side = location if is_placed else SIDES[number]
        if side not in SIDES or side in (each.side for each in found):
            errors.append(f"{at}.location: {location!r} must be left or right, each once")
            continue
        found.append(OtgPort(name=name, location=location, side=side))
    return tuple(found)


def _read_layer1(
    layers: Sequence[Mapping[str, Any]],
    ports: Sequence[OtgPort],
    rates: Mapping[SideName, float | None],
    errors: list[str],
) -> list[str]:
    """Speeds are compared with those of the ports; notes of what cannot be."""
    sides, notes = {port.name: port.side for port in ports}, []
    for number, layer in enumerate(layers):
        at, speed = f"layer1[{number}]", str(layer.get("speed", ""))
        errors += other_keys(layer, "layer1[]", at)
        wanted_bps = _speed_bps(speed)
        for name in layer.get("port_names", []):
            side = sides.get(name)
            if side is None:
                errors.append(f"{at}.port_names: there is no port {name!r}")
            elif speed and wanted_bps is None:
                errors.append(f"{at}.speed: {speed!r} is not known here")
            elif wanted_bps is not None and (rate := rates[side]) is not None and rate != wanted_bps:
                errors.append(f"{at}.speed: {speed}, but port {name} has {rate / 1e9:g} Gbit/s")
            elif wanted_bps is not None and rates[side] is None:
                notes.append(f"{at}.speed: not checked, since port {name} does not know its line rate")
    return notes


def _speed_bps(speed: str) -> float | None:
    """`speed_10_gbps`, `speed_100_fd_mbps`."""
    parts = speed.split("_")
    unit = {"gbps": 1e9, "mbps": 1e6}.get(parts[-1])
    return float(parts[1]) * unit if unit and len(parts) > 2 and parts[1].isdecimal() else None


class _Flow:
    """A flow's own part: ends, size, rate, duration. Its packet is read by the file import's reader."""

    def __init__(
        self,
        number: int,
        flow: Mapping[str, Any],
        ports: Sequence[OtgPort],
        rates: Mapping[SideName, float | None],
        longest_s: float,
        errors: list[str],
    ) -> None:
        self._at, self._longest_s, self._errors = f"flows[{number}]", longest_s, errors
        self.name = str(flow.get("name", ""))
        if not self.name:
            errors.append(f"{self._at}.name: is missing")
        errors += other_keys(flow, "flows[]", self._at)
        self._check_inner(flow)
        self.sent = self._read_ends(flow.get("tx_rx", {}), ports)
        self.frame_size = self._read_size(flow.get("size"))
        self.rate_fps = self._read_rate(flow.get("rate"), rates)
        self.packets, self.duration_s = self._read_duration(flow.get("duration"))
        self._randoms: list[tuple[str, int]] = []
        packet = [self._plain(header, place) for place, header in enumerate(flow.get("packet", []))]
        self.document = {"name": self.name, "tx_rx": flow.get("tx_rx"), "packet": packet, **_SIMPLE}

    def _refuse(self, key: str, why: str) -> None:
        self._errors.append(f"{self._at}.{key}: {why}")

    def _check_inner(self, flow: Mapping[str, Any]) -> None:
        for key in ("tx_rx", "size", "rate", "duration", "metrics"):
            self._errors += other_keys(flow.get(key, {}), f"flows[].{key}", f"{self._at}.{key}")
        metrics = flow.get("metrics", {})
        latency = metrics.get("latency", {})
        self._errors += other_keys(latency, "flows[].metrics.latency", f"{self._at}.metrics.latency")
        if latency.get("mode") == "cut_through":
            self._refuse("metrics.latency.mode", "cut_through: frames are stamped by software, store_forward")
        if any(metrics.get("predefined_metric_tags", {}).values()):
            self._refuse("metrics.predefined_metric_tags", "is not honoured here")

    def _read_ends(self, ends: Mapping[str, Any], ports: Sequence[OtgPort]) -> SentFlow:
        """The reader of the file import says what is wrong with them; here they are named."""
        port = ends.get("port", {})
        sides = {each.name: each.side for each in ports}
        sender = port.get("tx_name", "")
        receivers = [*port.get("rx_names", []), *([port["rx_name"]] if port.get("rx_name") else [])]
        return SentFlow(
            name=self.name,
            direction="forward" if sides.get(sender) == "left" else "reverse",
            port_tx=sender,
            port_rx=receivers[0] if receivers else "",
        )

    def _read_size(self, size: Mapping[str, Any] | None) -> FrameSize:
        choice = choice_of(size, "fixed")
        if choice == "fixed":
            return int((size or {}).get("fixed", 64))
        if choice != "weight_pairs":
            self._refuse("size", f"{choice}: frames have one size, fixed, or a mix of sizes, weight_pairs")
            return 64
        pairs = (size or {}).get("weight_pairs", {})
        if choice_of(pairs, "predefined") == "predefined":
            name = pairs.get("predefined", "unspecified")
            if name != "imix":
                self._refuse("size", f"weight_pairs.predefined {name}: write its sizes and weights as custom")
                return 64
            written = IMIX
        else:
            weights = [
                (each.get("size", 64), float(each.get("weight", 1))) for each in pairs.get("custom", [])
            ]
            if not all(weight.is_integer() for _, weight in weights):
                self._refuse("size", "weight_pairs.custom: weights are whole numbers here")
                return 64
            written = ",".join(f"{size}:{weight:.0f}" for size, weight in weights)
        try:
            return parse_imix(written, where="size") if is_weighted(written) else int(written.split(":")[0])
        except (EvenhandError, ValueError) as error:
            self._refuse("size", f"weight_pairs: {error}")
            return 64

    def _read_rate(
        self, rate: Mapping[str, Any] | None, line_rates_bps: Mapping[SideName, float | None]
    ) -> float:
        """Frames per second. Bits are those of the wire, with preamble and gap: OTG's least rate is that of a
        frame of 64 octets with them."""
        choice, given = choice_of(rate, "pps"), rate or {}
        wire_bits = 8 * (float(mean_octets(self.frame_size)) + ETHERNET_GAP_OCTETS)
        if choice == "pps":
            found = float(given.get("pps", 1000))
        elif choice in _BITS:
            found = float(given.get(choice, 0)) * _BITS[choice] / wire_bits
        else:
            line_bps = line_rates_bps["left" if self.sent.direction == "forward" else "right"]
            if line_bps is None:
                self._refuse("rate", "percentage: the port does not know its line rate: use pps")
                return 1.0
            found = float(given.get("percentage", 0)) / 100 * line_bps / wire_bits
        if not 0 < found < 1e10:
            self._refuse("rate", f"{found:g} frames a second is no rate that can be sent")
            return 1.0
        return found

    def _read_duration(self, duration: Mapping[str, Any] | None) -> tuple[int | None, float]:
        """Frames, None without an end; and seconds."""
        choice = choice_of(duration, "continuous")
        inner = (duration or {}).get(choice, {})
        if choice == "burst":
            self._refuse("duration", "burst: bursts are not sent here")
            return None, 1.0
        at = f"{self._at}.duration.{choice}"
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
        else:
            packets = round(float(inner.get("seconds", 1)) * self.rate_fps)
        if not 1 <= packets <= self._longest_s * self.rate_fps:
            self._refuse(
                "duration",
                f"{packets:,} frames at this rate: a flow has at least one, and takes {self._longest_s:g} s"
                " at most",
            )
            return 1, 1.0
        return packets, packets / self.rate_fps

    def _plain(self, header: Mapping[str, Any], place: int) -> dict[str, Any]:
        """The header with values that step evenly as an increment, for the reader of the file import."""
        at, kind = f"{self._at}.packet[{place}]", choice_of(header, "ethernet")
        if kind not in ("ethernet", "ipv4", "ipv6", "udp"):
            return dict(header)  # named by the reader
        fields = header.get(kind, {})
        self._errors += other_keys(fields, f"flows[].packet[].{kind}", f"{at}.{kind}")
        # A destination of `auto` is what ARP or ND finds.
        written = {name: field for name, field in fields.items() if field.get("choice") != "auto"}
        plain = {name: self._field(f"{at}.{kind}.{name}", field) for name, field in written.items()}
        return {"choice": kind, kind: {name: field for name, field in plain.items() if field}}

    def _field(self, at: str, field: Mapping[str, Any]) -> dict[str, Any]:
        choice = field.get("choice")
        if choice == "random":
            self._randoms.append((at, int(field.get("random", {}).get("count", 1))))
        if choice != "values":
            return dict(field)
        values = field.get("values", [])
        try:
            numbers = [
                value if isinstance(value, int) else int(ipaddress.ip_address(value)) for value in values
            ]
        except ValueError:
            self._errors.append(f"{at}: only values of addresses and ports can be sent")
            return {}
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
        if len(numbers) == 1:
            return {"choice": "value", "value": values[0]}
        if step <= 0 or any(b - a != step for a, b in pairwise(numbers)):
            self._errors.append(f"{at}: these {len(numbers):,} values do not step evenly upwards")
            return {}
        is_port = isinstance(values[0], int)
        width = ipaddress.IPv4Address if not is_port and "." in values[0] else ipaddress.IPv6Address
        shown = step if is_port else str(width(step))
        increment = {"start": values[0], "step": shown, "count": len(numbers)}
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


def _unlike(flows: Sequence[_Flow]) -> list[str]:
    """Both directions have one rate, size and length."""
    reasons = []
    for flow in flows[1:]:
        for key in ("frame_size", "rate_fps", "packets"):
            have, wanted = getattr(flows[0], key), getattr(flow, key)
            if have != wanted:
                reasons.append(
                    f"{flow._at}: {key} {wanted}, but flows[0] has {have}: both directions must be alike"
                )
    return reasons


def _seed_of(flows: Sequence[Mapping[str, Any]]) -> int:
    """The same for the same flows, so that a configuration sends the same frames each time."""
    text = json.dumps(list(flows), sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
