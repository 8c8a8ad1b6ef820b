# SPDX-License-Identifier: Apache-2.0
"""Exchange: siitperf.conf, read key by key as siitperf's own reader does, and checked more strictly. Knows no
plans."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenhand.base.errors import RequestError
from evenhand.base.suggestion import suggestion
from evenhand.exchange.foreign import read_foreign, shown

MOST_OCTETS = 64 * 1024
"""The examples have less than 2 KB."""
MOST_CPU = 1023
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_MAC = re.compile(r"(?:[0-9a-fA-F]{1,2}:){5}[0-9a-fA-F]{1,2}")
_SIDED = re.compile(r"\b(?:((?:IP|IPv4|IPv6|MAC|Num|CPU)-)([LR])|Fwd|Rev|Forward|Reverse)\b")
_OTHER = {"L": "R", "R": "L", "Fwd": "Rev", "Rev": "Fwd", "Forward": "Reverse", "Reverse": "Forward"}
Part = Literal["L", "R"]
PARTS: tuple[Part, Part] = ("L", "R")


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the file, as it was read."""

    key: str
    value: Any
    """int, an address, or a MAC in lower case."""
    line: int

    @property
    def text(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The values of a key."""

    read: Callable[[str], Any]
    """ValueError: not one of them."""
    says: str


def _whole(least: int, most: int, *, or_hexadecimal: bool = False) -> KeyKind:
    says = f"a whole number from {least} to {most}" + (
        ", or hexadecimal from 0x on" if or_hexadecimal else ""
    )

    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text) and not (or_hexadecimal and _HEXADECIMAL.fullmatch(text)):
            raise ValueError
        number = int(text, 0)
        if not least <= number <= most:
            raise ValueError
        return number

    return KeyKind(read, says)


def _read_mac(text: str) -> str:
    if not _MAC.fullmatch(text):
        raise ValueError
    return ":".join(f"{int(octet, 16):02x}" for octet in text.split(":"))


def _read_v6(text: str) -> ipaddress.IPv6Address:
    address = ipaddress.IPv6Address(text)
    if address.scope_id is not None:
        raise ValueError
    return address


_VERSION = KeyKind({"4": 4, "6": 6}.__getitem__, "4 or 6")
_V4 = KeyKind(ipaddress.IPv4Address, "an IPv4 address")
_V6 = KeyKind(_read_v6, "an IPv6 address")
_MAC_KIND = KeyKind(_read_mac, "a MAC like 02:00:00:00:00:01")
_SWITCH = _whole(0, 2**31 - 1)
_MODE = _whole(0, 3)
_PORT = _whole(0, 65535)
_NUMBER_16 = _whole(0, 0xFFFF, or_hexadecimal=True)

KEYS: Mapping[str, KeyKind] = {
    **{f"IP-{part}-Vers": _VERSION for part in PARTS},
    **{f"IPv6-{part}-{what}": _V6 for part in PARTS for what in ("Real", "Virt")},
    **{f"IPv4-{part}-{what}": _V4 for part in PARTS for what in ("Real", "Virt")},
    **{f"MAC-{part}-{who}": _MAC_KIND for who in ("Tester", "DUT") for part in PARTS},
    "Forward": _SWITCH,
    "Reverse": _SWITCH,
    "Promisc": _SWITCH,
    **{f"Num-{part}-Nets": _whole(1, 256) for part in PARTS},
    **{f"CPU-{part}-{what}": _whole(0, MOST_CPU) for part in PARTS for what in ("Send", "Recv")},
    "MEM-Channels": _whole(1, 255),
    **{f"{way}-var-{port}": _MODE for way in ("Fwd", "Rev") for port in ("sport", "dport")},
    **{
        f"{way}-{port}-{end}": _PORT
        for way in ("Fwd", "Rev")
        for port in ("sport", "dport")
        for end in ("min", "max")
    },
    **{f"IP-{part}-var": _MODE for part in PARTS},
    **{f"IP-{part}-{end}": _NUMBER_16 for part in PARTS for end in ("min", "max")},
    **{f"IPv4-{part}-offset": _whole(1, 2) for part in PARTS},
    **{f"IPv6-{part}-offset": _whole(6, 14) for part in PARTS},
    # Older versions had more values for these, and Responder-ports for Responder-tuples.
    "Stateful": _MODE,
    "Enumerate-ports": _whole(0, 4),
    "Enumerate-ips": _MODE,
    "Responder-tuples": _MODE,
    "Responder-ports": _MODE,
}
"""Every key that a version of siitperf reads, and its values."""

_DEFAULTS: Mapping[str, int] = {
    "IP-L-Vers": 6,
    "IP-R-Vers": 4,
    "Forward": 1,
    "Reverse": 1,
    "Num-L-Nets": 1,
    "Num-R-Nets": 1,
    "Fwd-var-sport": 0,
    "Fwd-var-dport": 0,
    "Rev-var-sport": 0,
    "Rev-var-dport": 0,
    "IP-L-var": 0,
    "IP-R-var": 0,
    "Fwd-sport-min": 1024,
    "Fwd-sport-max": 65535,
    "Fwd-dport-min": 1,
    "Fwd-dport-max": 49151,
    "Rev-sport-min": 1024,
    "Rev-sport-max": 65535,
    "Rev-dport-min": 1,
    "Rev-dport-max": 49151,
    "Stateful": 0,
    "Enumerate-ports": 0,
    "Enumerate-ips": 0,
}
"""What siitperf takes where a key is missing."""


@dataclass(frozen=True, slots=True)
class SiitperfFile:
    """A checked siitperf.conf."""

    path: Path
    settings: Mapping[str, Setting]
    """Settings in the order of the file."""
    is_mirrored: bool = False
    """Whether `value` and `has` take its right side for the left one."""

    def as_written(self, text: str) -> str:
        """A key, or a sentence that names some, as the file has them; and the way back."""
        return mirrored(text) if self.is_mirrored else text

    def value(self, key: str) -> Any:
        """The file's value, else siitperf's default. RequestError if there is neither: siitperf then takes
        what its memory holds."""
        key = self.as_written(key)
        if key in self.settings:
            return self.settings[key].value
        if key in _DEFAULTS:
            return _DEFAULTS[key]
        raise RequestError(
            f"{key} is missing and has no default",
            code="exchange.key-missing",
            where=str(self.path),
            next_step=f"Add it: {key} is {KEYS[key].says}.",
        )

    def has(self, key: str) -> bool:
        return self.as_written(key) in self.settings


def mirrored(text: str) -> str:
    """The text with left and right exchanged in each key."""
    return _SIDED.sub(lambda found: _OTHER.get(found[0]) or found[1] + _OTHER[found[2]], text)


def read_siitperf(path: Path) -> SiitperfFile:
    """Read and check the file; touches nothing else.

    Raises:
        RequestError: It cannot be read; a key is unknown or is written twice; a value is not one of the
            key's.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what="siitperf.conf")
    settings: dict[str, Setting] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        setting = _read_setting(words, f"{path}, line {number}", number)
        if setting.key in settings:
            raise RequestError(
                f"{setting.key} is already set in line {settings[setting.key].line}",
                code="exchange.key-twice",
                where=f"{path}, line {number}",
                next_step="Remove one of them; siitperf uses the last.",
            )
        settings[setting.key] = setting
    if not settings:
        raise RequestError(
            "this file has no keys of siitperf",
            code="exchange.not-siitperf",
            where=str(path),
            next_step="Name a siitperf.conf.",
        )
    found = SiitperfFile(path, settings)
    _check_together(found)
    return found


def _read_setting(words: list[str], where: str, number: int) -> Setting:
    key, *values = words
    kind = KEYS.get(key)
    if kind is None:
        near = suggestion(key[:40], KEYS)
        hint = (
            f"Did you mean {near}?"
            if near
            else "A line is a key of siitperf.conf and its value; # begins a comment."
        )
        raise RequestError(
            f"unknown key {shown(key)}", code="exchange.unknown-key", where=where, next_step=hint
        )
    if not values:
        raise RequestError(
            f"{key} has no value", code="exchange.value-missing", where=where, next_step=f"Write {kind.says}."
        )
    if len(values) > 1:
        raise RequestError(
            f"{shown(values[1])} follows the value of {key}",
            code="exchange.text-after-value",
            where=where,
            next_step="Begin a comment with #; siitperf would read the rest of the line as well.",
        )
    try:
        return Setting(key, kind.read(values[0]), number)
    except (ValueError, KeyError):
        raise RequestError(
            f"{shown(values[0])} is not a value of {key}",
            code="exchange.wrong-value",
            where=where,
            next_step=f"Write {kind.says}.",
        ) from None


def _check_together(file: SiitperfFile) -> None:
    """What siitperf itself refuses, and a range that ends before it begins."""
    where = str(file.path)
    if not (file.value("Forward") or file.value("Reverse") or file.value("Stateful")):
        raise RequestError(
            "Forward and Reverse are both 0, so nothing is sent",
            code="exchange.nothing-sent",
            where=where,
            next_step="Set one of them to 1.",
        )
    varies = [part for part in PARTS if file.value(f"IP-{part}-var")]
    if varies and max(file.value(f"Num-{part}-Nets") for part in PARTS) > 1:
        raise RequestError(
            f"IP-{varies[0]}-var together with several networks, which siitperf does not accept",
            code="exchange.keys-contradict",
            where=where,
            next_step="Set Num-L-Nets and Num-R-Nets to 1, or IP-L-var and IP-R-var to 0.",
        )
    ranges = [f"IP-{part}" for part in varies]
    ranges += [
        f"{way}-{port}"
        for way in ("Fwd", "Rev")
        for port in ("sport", "dport")
        if file.value(f"{way}-var-{port}")
    ]
    for name in ranges:
        first, last = file.value(f"{name}-min"), file.value(f"{name}-max")
        if first > last:
            raise RequestError(
                f"{name}-min {first} is above {name}-max {last}",
                code="exchange.keys-contradict",
                where=where,
                next_step="Exchange them.",
            )
