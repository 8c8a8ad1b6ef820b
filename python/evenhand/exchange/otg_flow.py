# SPDX-License-Identifier: Apache-2.0
"""Exchange: a flow of the Open Traffic Generator API, part by part: what of it can be sent here."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import refuse_if, shown
from evenhand.exchange.nearest_plan import Version
from evenhand.exchange.otg_write import HOP_LIMIT
from evenhand.exchange.outcome import Became, ImportedKey
from evenhand.plan import RFC4814_DESTINATION_PORTS, RFC4814_SOURCE_PORTS, Direction, Mode, SideName

_ORDER: Mapping[str, Mode] = {
    "value": "fixed",
    "increment": "increment",
    "decrement": "decrement",
    "random": "pseudorandom",
}
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
        self.at_option: dict[str, str] = {}
        """The part of the flow that each option is from."""
        self.direction: Direction = self._read_direction(flow)
        self._read_packet(flow.get("packet"))
        self._take("--frame-size", "size", flow, "fixed", default=64)
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
        if kinds not in (["ethernet", "ipv4", "udp"], ["ethernet", "ipv6", "udp"]):
            text = f"{', '.join(kinds) or 'no headers'}: test frames are Ethernet, IPv4 or IPv6, UDP"
            text += "; tags are set by vlan in the testbed file" if "vlan" in kinds else ""
            self._reader.refuse(f"{self._at}.packet", "...", text)
            return
        self.version = 4 if kinds[1] == "ipv4" else 6
        for header, kind in zip(headers, kinds, strict=True):
            fields = header.get(kind, {}) if isinstance(header, dict) else header
            refuse_if(
                (not isinstance(fields, dict), self._reader.wrong(f"{self._at}.{kind}", fields, "a header"))
            )
            for name, field in fields.items():
                self._read_field(f"{self._at}.{kind}.{name}", str(kind), name, field)
            wanted = {"ethernet": (), "udp": ("src_port", "dst_port")}.get(str(kind), ("src", "dst"))
            for name in (each for each in wanted if each not in fields):
                self._reader.refuse(f"{self._at}.{kind}.{name}", "", "it has no value")

    def _read_field(self, at: str, kind: str, name: str, field: object) -> None:
        try:
            if kind == "ethernet" and name in ("src", "dst"):
                self._read_mac(at, name, field)
            elif kind.startswith("ipv") and name in ("src", "dst"):
                self.addresses[name] = self._pattern(at, field, is_address=True)
            elif kind == "udp" and name in ("src_port", "dst_port"):
                self._read_udp(at, name, self._pattern(at, field, is_address=False))
            elif name in ("time_to_live", "hop_limit") and field == {"choice": "value", "value": HOP_LIMIT}:
                self._reader.row(at, HOP_LIMIT, Became.MAPPED, "the same as in every test frame (R2544-30)")
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
            if "--rate" not in self.options:
                self._reader.refuse(
                    at, f"{packets} packets", "how long they take is not known without a rate in pps"
                )
                return
            value = packets / int(self.options["--rate"])
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
