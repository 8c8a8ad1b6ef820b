# SPDX-License-Identifier: Apache-2.0
"""Exchange: a flow of the Open Traffic Generator API, part by part: what of it can be sent here."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import shown
from evenhand.exchange.otg_write import HOP_LIMIT
from evenhand.exchange.outcome import Became, ImportedKey
from evenhand.exchange.siitperf_plan import Version
from evenhand.exchange.testbed_text import ImportedPort
from evenhand.plan import RFC4814_DESTINATION_PORTS, RFC4814_SOURCE_PORTS, Direction, Mode, SideName

_ORDER: Mapping[str, Mode] = {
    "value": "fixed",
    "increment": "increment",
    "decrement": "decrement",
    "random": "pseudorandom",
}
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
        self.rows: list[ImportedKey] = []
        self.is_sendable = True

    def row(self, key: str, value: object, became: Became, text: str) -> None:
        self.rows.append(
            ImportedKey(key=shown(key)[1:-1], value=shown(str(value))[1:-1], became=became, text=text)
        )

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

    def __init__(self, reader: OtgReader, at: str, flow: dict[str, Any], left: str | None) -> None:
        self._reader, self._at = reader, at
        self.options: dict[str, str] = {}
        self.addresses: dict[str, Pattern] = {}
        self.version: Version | None = None
        self.macs = ImportedPort()
        self.direction: Direction = self._read_direction(flow, left)
        self._read_packet(flow.get("packet"))
        self._take("--frame-size", "size", flow, "fixed")
        self._take("--rate", "rate", flow, "pps")
        self._read_duration(flow.get("duration"))
        if "metrics" in flow:
            reader.row(f"{at}.metrics", "...", Became.MEANINGLESS, "every frame is always counted")
        others = sorted(flow.keys() - {"name", "tx_rx", "packet", "size", "rate", "duration", "metrics"})
        if others:
            reader.row(f"{at}.{', '.join(others)}", "...", Became.REFUSED, "cannot be represented")

    @property
    def sender(self) -> SideName:
        return "left" if self.direction == "forward" else "right"

    def _read_direction(self, flow: dict[str, Any], left: str | None) -> Direction:
        ends = flow.get("tx_rx", {})
        port = ends.get("port") if isinstance(ends, dict) else None
        if not isinstance(port, dict) or not isinstance(port.get("tx_name"), str):
            self._reader.refuse(
                f"{self._at}.tx_rx", "...", "frames are sent from port to port, not between devices"
            )
            return "forward"
        direction: Direction = "forward" if left is None or port["tx_name"] == left else "reverse"
        self._reader.row(f"{self._at}.tx_rx", port["tx_name"], Became.MAPPED, f"--direction {direction}")
        return direction

    def _read_packet(self, packet: object) -> None:
        headers = packet if isinstance(packet, list) else []
        kinds = [header.get("choice") if isinstance(header, dict) else None for header in headers]
        if kinds not in (["ethernet", "ipv4", "udp"], ["ethernet", "ipv6", "udp"]):
            self._reader.refuse(
                f"{self._at}.packet",
                "...",
                "test frames are UDP over IPv4 or IPv6; tags are set by vlan in the testbed file",
            )
            return
        self.version = 4 if kinds[1] == "ipv4" else 6
        for header, kind in zip(headers, kinds, strict=True):
            fields = header.get(kind, {})
            if not isinstance(fields, dict):
                raise self._reader.wrong(f"{self._at}.{kind}", fields, "a header")
            for name, field in fields.items():
                self._read_field(f"{self._at}.{kind}.{name}", str(kind), name, field)
            wanted = {"ethernet": (), "udp": ("src_port", "dst_port")}.get(str(kind), ("src", "dst"))
            for name in wanted:
                if name not in fields:
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
        octets = str(value).lower().split(":")
        is_mac = len(octets) == 6 and all(
            len(octet) == 2 and set(octet) <= set("0123456789abcdef") for octet in octets
        )
        if not is_mac or int(octets[0], 16) & 1 or not int("".join(octets), 16):
            self._reader.row(at, "...", Became.DIFFERS, "not a MAC that a port can have, so it is omitted")
            return
        mac, key = ":".join(octets), "mac" if name == "src" else "dut_mac"
        self.macs = (
            ImportedPort(mac=(mac, name), dut_mac=self.macs.dut_mac)
            if name == "src"
            else ImportedPort(mac=self.macs.mac, dut_mac=(mac, name))
        )
        self._reader.row(at, mac, Became.MAPPED, f"{self.sender}.{key}")

    def _pattern(self, at: str, field: object, *, is_address: bool) -> Pattern:
        choice = field.get("choice") if isinstance(field, dict) else None
        if not isinstance(field, dict) or not isinstance(choice, str) or choice not in _ORDER:
            raise _UnsayableError("only value, increment, decrement and random can be represented")
        inner = field.get(choice)
        if choice == "value":
            return Pattern(mode="fixed", first=self._number(at, inner, is_address), step=1, count=1)
        if not isinstance(inner, dict):
            raise self._reader.wrong(at, inner, f"a pattern of {choice}")
        if choice == "random":
            first, last = (self._number(at, inner.get(end), is_address) for end in ("min", "max"))
            if first > last:
                raise self._reader.wrong(at, inner.get("min"), "a minimum")
            return Pattern(mode="pseudorandom", first=first, step=1, count=last - first + 1)
        start, step = (self._number(at, inner.get(key), is_address) for key in ("start", "step"))
        count = inner.get("count")
        if type(count) is not int or count < 1:
            raise self._reader.wrong(at, count, "a count")
        lowest = start if choice == "increment" else start - (count - 1) * step
        top = 2 ** (16 if not is_address else 32 if self.version == 4 else 128)
        if not 0 <= lowest <= lowest + (count - 1) * step < top:
            raise _UnsayableError("the range exceeds its field")
        if count == 1 or step == 0:
            return Pattern(mode="fixed", first=start, step=1, count=1)
        return Pattern(mode=_ORDER[choice], first=lowest, step=step, count=count)

    def _number(self, at: str, value: object, is_address: bool) -> int:
        if not is_address:
            if type(value) is not int or not 0 <= value <= 65535:
                raise self._reader.wrong(at, value, "a number of 16 bits")
            return value
        try:
            return int(ipaddress.IPv4Address(value) if self.version == 4 else ipaddress.IPv6Address(value))
        except (ValueError, TypeError):
            raise self._reader.wrong(at, value, f"an IPv{self.version} address") from None

    def _read_udp(self, at: str, name: str, pattern: Pattern) -> None:
        _, option, default = next(entry for entry in _PORT_FIELDS if entry[0] == name)
        if pattern.step != 1 or pattern.first == 0:
            raise _UnsayableError("only ports from 1 on, with a step of 1, can be represented")
        span = str(pattern.first) if pattern.count == 1 else f"{pattern.first}-{pattern.last}"
        text = span if pattern.count == 1 or pattern.mode == "pseudorandom" else f"{span}:{pattern.mode}"
        if text != f"{default.first}-{default.last}":
            self.options[option] = text
        self._reader.row(at, text, Became.MAPPED, f"{option} {text}")

    def _take(self, option: str, key: str, flow: dict[str, Any], choice: str) -> None:
        """One of the choices of size and rate."""
        field = flow.get(key)
        value = field.get(choice) if isinstance(field, dict) and field.get("choice") == choice else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**32:
            self._reader.refuse(
                f"{self._at}.{key}", "...", f"only {choice} with a whole number can be represented"
            )
            return
        self.options[option] = str(value)
        self._reader.row(f"{self._at}.{key}", value, Became.MAPPED, f"{option} {value}")

    def _read_duration(self, field: object) -> None:
        choice = field.get("choice") if isinstance(field, dict) else None
        inner = field.get(choice) if isinstance(field, dict) and isinstance(choice, str) else None
        value = inner.get("seconds") if isinstance(inner, dict) and choice == "fixed_seconds" else None
        if (
            choice == "fixed_packets"
            and isinstance(inner, dict)
            and type(inner.get("packets")) is int
            and "--rate" in self.options
        ):
            value = inner["packets"] / int(self.options["--rate"])
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < 10**6:
            self._reader.refuse(
                f"{self._at}.duration", "...", "only fixed_seconds or fixed_packets can be represented"
            )
            return
        self.options["--duration"] = f"{value:.9f}".rstrip("0").rstrip(".") + "s"
        self._reader.row(
            f"{self._at}.duration", value, Became.MAPPED, f"--duration {self.options['--duration']}"
        )
