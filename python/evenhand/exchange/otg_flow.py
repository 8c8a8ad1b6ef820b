# SPDX-License-Identifier: Apache-2.0
"""Exchange: a flow of the Open Traffic Generator API, part by part: what of it can be sent here."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.rates import Line, in_frames, is_of_line
from evenhand.exchange.foreign import refuse_if, shown
from evenhand.exchange.nearest_plan import Version
from evenhand.exchange.otg_write import HOP_LIMIT
from evenhand.exchange.outcome import Became, ImportedKey
from evenhand.plan import (
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    Direction,
    Mode,
    SideName,
    is_weighted,
    mean_octets,
    parse_imix,
)

_ORDER: Mapping[str, Mode] = {
    "value": "fixed",
    "increment": "increment",
    "decrement": "decrement",
    "random": "pseudorandom",
}
IMIX = "64:7,570:4,1518:1"
"""That of OTG's name."""
_RATES = {"percentage": "%", "bps": "bit/s", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s"}
MOST_TAGS, LARGEST_VLAN = 2, 4094
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_OF_DURATION = "frames are evenly spaced from the start on"
_PORT_FIELDS = (
    ("src_port", "--source-ports", RFC4814_SOURCE_PORTS),
    ("dst_port", "--destination-ports", RFC4814_DESTINATION_PORTS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """The numbers of one field: `count` of them from `first` on, a step apart; `first` is the lowest whatever
    the order."""

    mode: Mode
    first: int
    step: int
    count: int

    @property
    def last(self) -> int:
        return self.first + (self.count - 1) * self.step


class _UnsayableError(Exception):
    """A part of the configuration that has no words here."""


class OtgReader:
    """Walks through the configuration, and keeps a row for each part."""

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self.path, self.document = path, document
        self.ports: dict[str, SideName] = {}
        """The side of each port, by its name."""
        self.rows: list[ImportedKey] = []
        self.is_sendable = True

    def row(self, key: str, value: object, became: Became, text: str) -> None:
        self.rows.append(
            ImportedKey(key=shown(key)[1:-1], value=shown(str(value))[1:-1], became=became, text=text)
        )

    def replace(self, key: str, became: Became, text: str) -> None:
        """Say something else of a part that has a row."""
        self.rows = [
            replace(row, became=became, text=text) if row.key == key and row.became is Became.MAPPED else row
            for row in self.rows
        ]

    def refuse(self, key: str, value: object, text: str) -> None:
        """Keep a row for a part without which there is no command."""
        self.is_sendable = False
        self.row(key, value, Became.REFUSED, text)

    def wrong(self, key: str, value: object, wanted: str) -> RequestError:
        return RequestError(
            f"{shown(str(value))} is not {wanted}",
            code="exchange.wrong-value",
            where=f"{self.path}: {key}",
            next_step="Correct it there, following OTG's models.",
        )


class OtgFlow:
    """What of a flow can be sent here."""

    def __init__(self, reader: OtgReader, at: str, flow: dict[str, Any]) -> None:
        self._reader, self._at = reader, at
        self.options: dict[str, str] = {}
        self.addresses: dict[str, Pattern] = {}
        self.version: Version | None = None
        self.macs: dict[str, tuple[str, str]] = {}
        self.tags: list[int] = []
        """VLANs of its frames, outermost first."""
        self.at_option: dict[str, str] = {}
        """The part of the flow that each option is from."""
        self.direction: Direction = self._read_direction(flow)
        self._read_packet(flow.get("packet"))
        if not self._take_mix(flow.get("size")):
            self._take("--frame-size", "size", flow, "fixed", default=64)
        if not self._take_line_rate(flow.get("rate")):
            self._take("--rate", "rate", flow, "pps", default=1000)
        self._read_duration(flow.get("duration"))
        if "metrics" in flow:
            reader.row(f"{at}.metrics", "...", Became.MEANINGLESS, "every frame is always counted")
        others = sorted(flow.keys() - {"name", "tx_rx", "packet", "size", "rate", "duration", "metrics"})
        if others:
            reader.row(f"{at}.{', '.join(others)}", "...", Became.REFUSED, "cannot be represented")

    @property
    def sender(self) -> SideName:
        return "left" if self.direction == "forward" else "right"

    def _read_direction(self, flow: dict[str, Any]) -> Direction:
        """Which port sends, and whether the other receives."""
        at, ends = f"{self._at}.tx_rx", flow.get("tx_rx")
        port = ends.get("port") if isinstance(ends, dict) else None
        choice = choice_of(ends, "port")
        if choice != "port" or not isinstance(port, dict) or not isinstance(port.get("tx_name"), str):
            found = f"this flow is from {choice} to {choice}" if choice != "port" else "no port sends it"
            self._reader.refuse(at, "...", f"{found}; frames are sent from port to port, not between devices")
            return "forward"
        name, receivers = port["tx_name"], _receivers(port)
        if receivers is None:
            raise self._reader.wrong(f"{at}.port.rx_names", port.get("rx_names"), "a list of names of ports")
        for key, each in (("tx_name", name), *(("rx_names", receiver) for receiver in receivers)):
            if each not in self._reader.ports:
                self._reader.refuse(
                    f"{at}.port.{key}", each, f"not one of the two ports ({_named(self._reader.ports)})"
                )
                return "forward"
        sender = self._reader.ports[name]
        direction: Direction = "forward" if sender == "left" else "reverse"
        sides = {self._reader.ports[receiver] for receiver in receivers}
        if sides == {sender}:
            self._reader.refuse(
                f"{at}.port.rx_names",
                ", ".join(receivers),
                f"the frames come back to {name}, which sends them; here they arrive at the other port",
            )
            return direction
        self._reader.row(f"{at}.port.tx_name", name, Became.MAPPED, f"--direction {direction}")
        more = "" if receivers else "; the flow names no port that receives"
        more += f", and those that come back to {name} are not of the test" if len(sides) > 1 else ""
        text = f"frames arrive at the {'right' if sender == 'left' else 'left'} port{more}"
        became = Became.MAPPED if len(sides) == 1 else Became.DIFFERS
        self._reader.row(f"{at}.port.rx_names", ", ".join(receivers), became, text)
        return direction

    def _read_packet(self, packet: object) -> None:
        headers = packet if isinstance(packet, list) else []
        kinds = [choice_of(header, "ethernet") for header in headers]
        inner = [kind for kind in kinds if kind != "vlan"]
        tags = kinds[1 : 1 + len(kinds) - len(inner)]
        is_tagged = all(kind == "vlan" for kind in tags) and len(tags) <= MOST_TAGS
        if inner not in (["ethernet", "ipv4", "udp"], ["ethernet", "ipv6", "udp"]) or not is_tagged:
            text = f"{', '.join(kinds) or 'no headers'}: test frames are Ethernet, up to two VLAN tags, IPv4"
            self._reader.refuse(f"{self._at}.packet", "...", f"{text} or IPv6, UDP")
            return
        self.version = 4 if inner[1] == "ipv4" else 6
        for header, kind in zip(headers, kinds, strict=True):
            fields = header.get(kind, {}) if isinstance(header, dict) else header
            refuse_if(
                (not isinstance(fields, dict), self._reader.wrong(f"{self._at}.{kind}", fields, "a header"))
            )
            if kind == "vlan":
                self._read_tag(f"{self._at}.vlan", fields)
                continue
            for name, field in fields.items():
                self._read_field(f"{self._at}.{kind}.{name}", str(kind), name, field)
            wanted = {"ethernet": (), "udp": ("src_port", "dst_port")}.get(str(kind), ("src", "dst"))
            for name in (each for each in wanted if each not in fields):
                self._reader.refuse(f"{self._at}.{kind}.{name}", "", "it has no value")

    def _read_tag(self, at: str, fields: dict[str, Any]) -> None:
        """One number for all frames; the rest of a tag is the tester's own."""
        field = fields.get("id", {})
        number = field.get("value") if choice_of(field, "value") == "value" else None
        if type(number) is not int or not 1 <= number <= LARGEST_VLAN:
            self._reader.refuse(f"{at}.id", "...", f"only one VLAN from 1 to {LARGEST_VLAN:,} can be sent")
            return
        self.tags.append(number)
        self._reader.row(f"{at}.id", number, Became.MAPPED, f"{self.sender}.vlan")
        for name in sorted(fields.keys() - {"id"}):
            self._reader.row(f"{at}.{name}", "...", Became.DIFFERS, "the tag has the tester's own value")

    def _read_field(self, at: str, kind: str, name: str, field: object) -> None:
        try:
            if kind == "ethernet" and name in ("src", "dst"):
                self._read_mac(at, name, field)
            elif kind.startswith("ipv") and name in ("src", "dst"):
                self.addresses[name] = self._pattern(at, field, is_address=True)
            elif kind == "udp" and name in ("src_port", "dst_port"):
                self._read_udp(at, name, self._pattern(at, field, is_address=False))
            elif name in ("time_to_live", "hop_limit"):
                is_same = field == {"choice": "value", "value": HOP_LIMIT}
                text = "the same as in every test frame" if is_same else f"every test frame has {HOP_LIMIT}"
                became = Became.MAPPED if is_same else Became.DIFFERS
                self._reader.row(at, HOP_LIMIT if is_same else "...", became, f"{text} (R2544-30)")
            else:
                self._reader.row(at, "...", Became.DIFFERS, "the test frame has its own value")
        except _UnsayableError as error:
            self._reader.refuse(at, "...", str(error))

    def _read_mac(self, at: str, name: str, field: object) -> None:
        value = field.get("value") if isinstance(field, dict) else None
        mac, key = str(value).lower(), "mac" if name == "src" else "dut_mac"
        if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1 or not int(mac.replace(":", ""), 16):
            self._reader.row(at, "...", Became.DIFFERS, "not a MAC that a port can have, so it is omitted")
            return
        self.macs[key] = mac, name
        self._reader.row(at, mac, Became.MAPPED, f"{self.sender}.{key}")

    def _pattern(self, at: str, field: object, *, is_address: bool) -> Pattern:
        choice = choice_of(field, "value")
        if not isinstance(field, dict) or choice not in _ORDER:
            raise _UnsayableError(f"{choice}: only value, increment, decrement and random can be represented")
        inner: Any = field.get(choice)
        if choice == "value":
            return Pattern(mode="fixed", first=self._number(at, inner, is_address), step=1, count=1)
        refuse_if((not isinstance(inner, dict), self._reader.wrong(at, inner, f"a pattern of {choice}")))
        if choice == "random":
            first, last = (self._number(at, inner.get(end), is_address) for end in ("min", "max"))
            refuse_if((first > last, self._reader.wrong(at, inner.get("min"), "a minimum")))
            return Pattern(mode="pseudorandom", first=first, step=1, count=last - first + 1)
        start, step = (self._number(at, inner.get(key), is_address) for key in ("start", "step"))
        count = inner.get("count")
        refuse_if((type(count) is not int or count < 1, self._reader.wrong(at, count, "a count")))
        lowest = start if choice == "increment" else start - (count - 1) * step
        top = 2 ** (16 if not is_address else 32 if self.version == 4 else 128)
        if not 0 <= lowest <= lowest + (count - 1) * step < top:
            raise _UnsayableError("the range exceeds its field")
        if count == 1 or step == 0:
            return Pattern(mode="fixed", first=start, step=1, count=1)
        return Pattern(mode=_ORDER[choice], first=lowest, step=step, count=count)

    def _number(self, at: str, value: object, is_address: bool) -> int:
        try:
            if is_address:
                return int((ipaddress.IPv4Address if self.version == 4 else ipaddress.IPv6Address)(value))
        except (ValueError, TypeError):
            raise self._reader.wrong(at, value, f"an IPv{self.version} address") from None
        if type(value) is not int or not 0 <= value <= 65535:
            raise self._reader.wrong(at, value, "a number of 16 bits")
        return value

    def _read_udp(self, at: str, name: str, pattern: Pattern) -> None:
        _, option, default = next(entry for entry in _PORT_FIELDS if entry[0] == name)
        if pattern.step != 1 or pattern.first == 0:
            raise _UnsayableError("only ports from 1 on, with a step of 1, can be represented")
        span = str(pattern.first) if pattern.count == 1 else f"{pattern.first}-{pattern.last}"
        text = span if pattern.count == 1 or pattern.mode == "pseudorandom" else f"{span}:{pattern.mode}"
        if text != f"{default.first}-{default.last}":
            self._set(option, text, at)
        self._reader.row(at, text, Became.MAPPED, f"{option} {text}")

    def _take(self, option: str, key: str, flow: dict[str, Any], choice: str, *, default: int) -> None:
        """One of the choices of size and rate."""
        at, field = f"{self._at}.{key}", flow.get(key)
        found = choice_of(field, choice)
        value = default if field is None else field.get(choice, default) if isinstance(field, dict) else None
        if found != choice or type(value) is not int or not 1 <= value < 2**32:
            shape = f"{found} ({shown(str(value))[1:-1]})" if found == choice else found
            self._reader.refuse(at, "...", f"{shape}: only {choice} with a whole number can be represented")
            return
        self._set(option, str(value), at)
        which = f"{option} {value}" if field is not None else f"{option} {value}, the default of OTG"
        self._reader.row(at, value, Became.MAPPED, which)

    def _take_mix(self, size: object) -> bool:
        """Sizes with weights, if these are some: False if not, or if no sequence has their shares."""
        pairs = size.get("weight_pairs") if isinstance(size, dict) else None
        if choice_of(size, "fixed") != "weight_pairs" or not isinstance(pairs, dict):
            return False
        if choice_of(pairs, "predefined") == "predefined":
            written = IMIX if pairs.get("predefined") == "imix" else ""
        else:
            custom = pairs.get("custom")
            found = [
                (each.get("size", 64), each.get("weight", 1))
                for each in (custom if isinstance(custom, list) else [])
                if isinstance(each, dict)
            ]
            whole = all(_is_whole(size) and _is_whole(weight) for size, weight in found)
            written = ",".join(f"{int(size)}:{int(weight)}" for size, weight in found) if whole else ""
        try:
            if not is_weighted(written):
                return False
            parse_imix(written)
        except RequestError:
            return False
        self._set("--frame-size", written, f"{self._at}.size")
        self._reader.row(f"{self._at}.size", written, Became.MAPPED, f"--frame-size {written}")
        return True

    def _take_line_rate(self, rate: object) -> bool:
        """A share of the line rate, or bits per second, if it is one: both count preamble and gap."""
        choice = choice_of(rate, "pps")
        value = rate.get(choice) if isinstance(rate, dict) else None
        if choice not in _RATES or isinstance(value, bool) or not isinstance(value, int | float | str):
            return False
        most = 100 if choice == "percentage" else 10**13
        text = str(value)
        if not re.fullmatch(r"\d{1,13}(?:\.\d{1,9})?", text) or not 0 < float(text) <= most:
            return False
        text = text.removesuffix(".0") + _RATES[choice]
        self._set("--rate", text, f"{self._at}.rate")
        self._reader.row(f"{self._at}.rate", value, Became.MAPPED, f"--rate {text}")
        return True

    def _rate_fps(self) -> float | None:
        """Frames per second; None if they depend on the line rate, or are not known."""
        rate, size = (self.options.get(option) for option in ("--rate", "--frame-size"))
        if rate is None or size is None or is_of_line(rate):
            return None
        octets = Fraction(int(size)) if size.isdecimal() else mean_octets(parse_imix(size))
        return in_frames(rate, Line(octets=octets, most_fps=None), where="rate")

    def _set(self, option: str, text: str, at: str) -> None:
        self.options[option], self.at_option[option] = text, at

    def _read_duration(self, field: object) -> None:
        at, choice = f"{self._at}.duration", choice_of(field, "continuous")
        inner: Any = field.get(choice) if isinstance(field, dict) else None
        value = inner.get("seconds", 1) if isinstance(inner, dict) and choice == "fixed_seconds" else None
        if choice == "fixed_packets" and isinstance(inner, dict):
            packets = inner.get("packets", 1)
            is_none = type(packets) is not int or packets < 1
            refuse_if(
                (is_none, self._reader.wrong(f"{at}.fixed_packets.packets", packets, "a number of packets"))
            )
            rate_fps = self._rate_fps()
            if rate_fps is None:
                text = "how long they take is not known without a rate in pps or bits"
                self._reader.refuse(at, f"{packets} packets", text)
                return
            value = packets / rate_fps
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1e-9 <= value < 10**6:
            why = "has no end" if choice == "continuous" else "is not a duration that can be represented"
            self._reader.refuse(
                at, "...", f"{choice} {why}: use fixed_seconds, or fixed_packets with a rate in pps"
            )
            return
        self._set("--duration", f"{value:.9f}".rstrip("0").rstrip(".") + "s", at)
        self._reader.row(at, value, Became.MAPPED, f"--duration {self.options['--duration']}")
        for name in sorted(inner.keys() - {"seconds", "packets"}) if isinstance(inner, dict) else ():
            self._reader.row(f"{at}.{choice}.{name}", inner[name], Became.DIFFERS, _OF_DURATION)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value == int(value) < 2**31


def choice_of(field: object, default: str) -> str:
    """What is chosen; `default` if OTG's own default is meant, which need not be written."""
    if field is None:
        return default
    choice = field.get("choice", default) if isinstance(field, dict) else None
    return shown(choice)[1:-1] if isinstance(choice, str) else "no choice"


def _receivers(port: Mapping[str, Any]) -> list[str] | None:
    """None if these are no names. `rx_name` is that of older models."""
    names, other = port.get("rx_names", []), port.get("rx_name")
    found = [*(names if isinstance(names, list) else [None]), *([] if other is None else [other])]
    return list(dict.fromkeys(found)) if all(isinstance(name, str) for name in found) else None


def _named(ports: Mapping[str, object]) -> str:
    return ", ".join(shown(name)[1:-1] for name in ports) or "the file has none"
