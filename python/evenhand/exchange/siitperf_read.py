# SPDX-License-Identifier: Apache-2.0
"""Exchange: siitperf.conf, read key by key as siitperf's own reader does, and checked more strictly; and a
command line of siitperf-tp, -lat or -pdv, which is never run. Knows no plans."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError, suggestion
from evenhand.exchange.foreign import read_foreign, refuse_if, shown
from evenhand.exchange.nearest_plan import PARTS

MOST_OCTETS = 64 * 1024
"""The examples have less than 2 KB."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_NUMBER_OR_HEXADECIMAL = re.compile(r"0|[1-9][0-9]{0,9}|0[xX][0-9a-fA-F]{1,8}")
_MAC = re.compile(r"(?:[0-9a-fA-F]{1,2}:){5}[0-9a-fA-F]{1,2}")
_SIDED = re.compile(r"\b(?:((?:IP|IPv4|IPv6|MAC|Num|CPU)-)([LR])|Fwd|Rev|Forward|Reverse)\b")
_OTHER = {"L": "R", "R": "L", "Fwd": "Rev", "Rev": "Fwd", "Forward": "Reverse", "Reverse": "Forward"}
_WAYS = ("Fwd", "Rev")
_PORTS = ("sport", "dport")


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The values of a key, or of an argument on the command line: how they are written, what each is, and,
    for numbers, which there are."""

    written: re.Pattern[str]
    convert: Callable[[str], Any]
    says: str
    among: range | None = None

    def read(self, text: str) -> Any:
        """ValueError: it is not one of them."""
        value = self.convert(text) if self.written.fullmatch(text) else None
        if value is None or (self.among is not None and value not in self.among):
            raise ValueError
        return value


def whole(least: int, most: int, *, or_hexadecimal: bool = False) -> KeyKind:
    """Whole numbers."""
    written = _NUMBER_OR_HEXADECIMAL if or_hexadecimal else _NUMBER
    more = ", or hexadecimal from 0x on" if or_hexadecimal else ""
    says = f"a whole number from {least} to {most}{more}"
    return KeyKind(written, partial(int, base=0), says, range(least, most + 1))


_VERSION = KeyKind(re.compile("[46]"), int, "4 or 6")
# A scope of an IPv6 address means nothing to a tester.
_ADDRESS = {
    4: KeyKind(re.compile(r"[0-9.]+"), ipaddress.IPv4Address, "an IPv4 address"),
    6: KeyKind(re.compile(r"[0-9a-fA-F:.]+"), ipaddress.IPv6Address, "an IPv6 address"),
}
_HARDWARE_ADDRESS = KeyKind(
    _MAC,
    lambda text: ":".join(f"{int(octet, 16):02x}" for octet in text.split(":")),
    "a MAC like 02:00:00:00:00:01",
)
_SWITCH = whole(0, 2**31 - 1)
_MODE = whole(0, 3)

KEYS: Mapping[str, KeyKind] = {
    **{f"IP-{part}-Vers": _VERSION for part in PARTS},
    **{
        f"IPv{version}-{part}-{what}": _ADDRESS[version]
        for version in (6, 4)
        for part in PARTS
        for what in ("Real", "Virt")
    },
    **{f"MAC-{part}-{who}": _HARDWARE_ADDRESS for who in ("Tester", "DUT") for part in PARTS},
    "Forward": _SWITCH,
    "Reverse": _SWITCH,
    "Promisc": _SWITCH,
    **{f"Num-{part}-Nets": whole(1, 256) for part in PARTS},
    **{f"CPU-{part}-{what}": whole(0, 1023) for part in PARTS for what in ("Send", "Recv")},
    "MEM-Channels": whole(1, 255),
    **{f"{way}-var-{port}": _MODE for way in _WAYS for port in _PORTS},
    **{f"{way}-{port}-{end}": whole(0, 65535) for way in _WAYS for port in _PORTS for end in ("min", "max")},
    **{f"IP-{part}-var": _MODE for part in PARTS},
    **{f"IP-{part}-{end}": whole(0, 0xFFFF, or_hexadecimal=True) for part in PARTS for end in ("min", "max")},
    **{f"IPv4-{part}-offset": whole(1, 2) for part in PARTS},
    **{f"IPv6-{part}-offset": whole(6, 14) for part in PARTS},
    # Older versions had more values for these, and Responder-ports for Responder-tuples.
    "Stateful": _MODE,
    "Enumerate-ports": whole(0, 4),
    "Enumerate-ips": _MODE,
    "Responder-tuples": _MODE,
    "Responder-ports": _MODE,
}
"""Every key that a version of siitperf reads, and its values."""

# What siitperf takes where a key is missing.
_DEFAULTS: Mapping[str, int] = {
    "IP-L-Vers": 6,
    "IP-R-Vers": 4,
    "Forward": 1,
    "Reverse": 1,
    **{f"Num-{part}-Nets": 1 for part in PARTS},
    **{f"IP-{part}-var": 0 for part in PARTS},
    **{f"{way}-var-{port}": 0 for way in _WAYS for port in _PORTS},
    **{
        f"{way}-{port}": number
        for way in _WAYS
        for port, number in (
            ("sport-min", 1024),
            ("sport-max", 65535),
            ("dport-min", 1),
            ("dport-max", 49151),
        )
    },
    "Stateful": 0,
    "Enumerate-ports": 0,
    "Enumerate-ips": 0,
}


@dataclass(frozen=True, slots=True)
class SiitperfFile:
    """A checked siitperf.conf."""

    path: Path
    settings: Mapping[str, Any]
    """Values by keys, in the order of the file: int, an address, or a MAC in lower case."""
    lines: Mapping[str, int]
    """The line of each key."""
    is_mirrored: bool = False
    """Whether `value` and `has` take its right side for the left one."""

    def as_written(self, text: str) -> str:
        """A key, or a sentence that names some, as the file has them; and the way back."""
        return mirrored(text) if self.is_mirrored else text

    def value(self, key: str) -> Any:
        """The file's value, else siitperf's default. RequestError if there is neither: siitperf then takes
        what its memory holds."""
        key = self.as_written(key)
        if key not in self.settings and key not in _DEFAULTS:
            raise RequestError(
                f"{key} is missing and has no default",
                code="exchange.key-missing",
                where=str(self.path),
                next_step=f"Add it: {key} is {KEYS[key].says}.",
            )
        return self.settings.get(key, _DEFAULTS.get(key))

    def has(self, key: str) -> bool:
        return self.as_written(key) in self.settings


def is_own_mac(mac: str) -> bool:
    """Whether a port can have it: no group address, and not all zero."""
    return not int(mac[:2], 16) & 1 and bool(int(mac.replace(":", ""), 16))


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
    settings: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path}, line {number}"
        value = _read_value(words, where)
        refuse_if(
            (
                words[0] in lines,
                RequestError(
                    f"{words[0]} is already set in line {lines.get(words[0])}",
                    code="exchange.key-twice",
                    where=where,
                    next_step="Remove one of them; siitperf uses the last.",
                ),
            )
        )
        settings[words[0]], lines[words[0]] = value, number
    refuse_if(
        (
            not settings,
            RequestError(
                "this file has no keys of siitperf",
                code="exchange.not-siitperf",
                where=str(path),
                next_step="Name a siitperf.conf.",
            ),
        )
    )
    found = SiitperfFile(path, settings, lines)
    _check_together(found)
    return found


def _read_value(words: list[str], where: str) -> Any:
    key, *values = words
    near = "" if key in KEYS else suggestion(key[:40], KEYS)
    hint = "A line is a key of siitperf.conf and its value; # begins a comment."
    kind = KEYS.get(key, _SWITCH)
    refuse_if(
        (
            key not in KEYS,
            RequestError(
                f"unknown key {shown(key)}",
                code="exchange.unknown-key",
                where=where,
                next_step=f"Did you mean {near}?" if near else hint,
            ),
        ),
        (
            not values,
            RequestError(
                f"{key} has no value",
                code="exchange.value-missing",
                where=where,
                next_step=f"Write {kind.says}.",
            ),
        ),
        (
            len(values) > 1,
            RequestError(
                f"{shown(''.join(values[1:2]))} follows the value of {key}",
                code="exchange.text-after-value",
                where=where,
                next_step="Begin a comment with #; siitperf would read the rest of the line as well.",
            ),
        ),
    )
    try:
        return kind.read(values[0])
    except ValueError:
        raise RequestError(
            f"{shown(values[0])} is not a value of {key}",
            code="exchange.wrong-value",
            where=where,
            next_step=f"Write {kind.says}.",
        ) from None


def _check_together(file: SiitperfFile) -> None:
    """What siitperf itself refuses, and a range that ends before it begins."""
    varies = [f"IP-{part}" for part in PARTS if file.value(f"IP-{part}-var")]
    ports = [f"{way}-{port}" for way in _WAYS for port in _PORTS if file.value(f"{way}-var-{port}")]
    refuse_if(
        (
            not (file.value("Forward") or file.value("Reverse") or file.value("Stateful")),
            RequestError(
                "Forward and Reverse are both 0, so nothing is sent",
                code="exchange.nothing-sent",
                where=str(file.path),
                next_step="Set one of them to 1.",
            ),
        ),
        (
            varies and max(file.value(f"Num-{part}-Nets") for part in PARTS) > 1,
            RequestError(
                f"{''.join(varies[:1])}-var together with several networks, which siitperf does not accept",
                code="exchange.keys-contradict",
                where=str(file.path),
                next_step="Set Num-L-Nets and Num-R-Nets to 1, or IP-L-var and IP-R-var to 0.",
            ),
        ),
    )
    for name in (*varies, *ports):
        first, last = file.value(f"{name}-min"), file.value(f"{name}-max")
        refuse_if(
            (
                first > last,
                RequestError(
                    f"{name}-min {first} is above {name}-max {last}",
                    code="exchange.keys-contradict",
                    where=str(file.path),
                    next_step="Exchange them.",
                ),
            )
        )


MOST_CHARACTERS = 1000
WHERE = "--command"
_PROGRAM = re.compile(r"(?:.*/)?(siitperf-(?:tp|lat|pdv))")
# The first words of a line that runs another program.
_BEFORE = re.compile(
    r"(?:.*/)?(?:sudo|doas|env|time|nice|ionice|chrt|taskset|numactl|timeout|stdbuf|nohup|exec|cd|gdb|perf"
    r"|strace|screen|tmux|ip|watch|valgrind|setarch|script|(?:ba|da|z)?sh|su|ssh|docker|podman)|[$#%>+]|\S*[@~]\S*[$#%]?|[A-Z_][A-Z0-9_]*=.*"
)
_PLACE = re.compile(r"""(?:^|(?<=[\s;&|('"]))(?:[^\s;&|('"]*/)?siitperf-(?:tp|lat|pdv)(?=\s|$)""")
# What ends another command, or begins a compound one.
_ANOTHER = re.compile(r"&&|\|\|?|;|\(|(?<!\S)(?:do|then|\{)(?!\S)")
_AFTER = re.compile(r"\s*(?:>|&|<|\||;|\))|\s+(?:\d>|#)")
_COUNT, _RATE = 2**32 - 1, whole(1, 14_880_952)

FIRST: Mapping[str, KeyKind] = {
    "IPv6 frame size": whole(84, 1538),
    "rate": _RATE,
    "duration": whole(1, 3600),
    "global timeout": whole(0, 60000),
    "n": whole(2, _COUNT),
    "m": whole(0, _COUNT),
}
STATEFUL: Mapping[str, KeyKind] = {
    "N": whole(1, _COUNT),
    "M": whole(1, _COUNT),
    "R": _RATE,
    "T": whole(1, 2000),
    "D": whole(1, 100_000_000),
}
LAST: Mapping[str, Mapping[str, KeyKind]] = {
    "siitperf-tp": {},
    "siitperf-lat": {"delay": whole(0, 3600), "timestamps": whole(1, 50000)},
    "siitperf-pdv": {"frame timeout": whole(0, 3_660_000)},
}


@dataclass(frozen=True, slots=True)
class SiitperfCommand:
    """A checked command line."""

    program: str
    """siitperf-tp, siitperf-lat or siitperf-pdv."""
    arguments: Mapping[str, int]
    """Values by the names of siitperf's README, in their order: octets, frames per second, seconds,
    milliseconds."""


def read_command(text: str, *, is_stateful: bool) -> SiitperfCommand:
    """Take it apart.

    Args:
        is_stateful: What siitperf.conf says: five more arguments belong to it then.

    Raises:
        RequestError: It is not a command line of siitperf, or siitperf would refuse it.
    """
    try:
        words = _words_of(text) if len(text) <= MOST_CHARACTERS else []
    except ValueError:
        words = []
    found = _PROGRAM.fullmatch(words[0]) if words else None
    if found is None:
        raise RequestError(
            f"{shown(text)} is not a command line of siitperf",
            code="exchange.not-a-command",
            where=WHERE,
            next_step='Write it as it was typed: "siitperf-tp 84 100000 60 2000 2 2"; siitperf-lat and'
            " siitperf-pdv are read too.",
        )
    program = found[1]
    kinds = {**FIRST, **(STATEFUL if is_stateful else {}), **LAST[program]}
    kind = "with Stateful in the file" if is_stateful else "without Stateful in the file"
    refuse_if(
        (
            len(words) - 1 != len(kinds),
            RequestError(
                f"{len(words) - 1} arguments; {program} has {len(kinds)} {kind}",
                code="exchange.wrong-number-of-arguments",
                where=WHERE,
                next_step=f"They are: {', '.join(kinds)}.",
            ),
        )
    )
    arguments = {key: _read(key, word, kinds[key]) for key, word in zip(kinds, words[1:], strict=True)}
    duration_s, delay_s = arguments["duration"], arguments.get("delay", 0)
    timestamps, frame_timeout_ms = arguments.get("timestamps", 0), arguments.get("frame timeout", 0)
    refuse_if(
        (
            program == "siitperf-lat" and duration_s <= delay_s,
            RequestError(
                f"a delay of {delay_s} s in a trial of {duration_s} s",
                code="exchange.arguments-contradict",
                where=WHERE,
                next_step="Make the duration longer than the delay.",
            ),
        ),
        (
            (duration_s - delay_s) * arguments["rate"] < timestamps,
            RequestError(
                f"{timestamps} timestamps, but fewer frames after the delay",
                code="exchange.arguments-contradict",
                where=WHERE,
                next_step="Request fewer timestamps.",
            ),
        ),
        (
            program == "siitperf-pdv" and frame_timeout_ms >= 1000 * duration_s + arguments["global timeout"],
            RequestError(
                f"a frame timeout of {frame_timeout_ms} ms is longer than the trial",
                code="exchange.arguments-contradict",
                where=WHERE,
                next_step="Write 0 to measure PDV.",
            ),
        ),
    )
    return SiitperfCommand(program, arguments)


def _words_of(text: str) -> list[str]:
    """The program and its arguments, without what people type around them: sudo and its like, assignments, a
    prompt, a change of folder, a loop, quotes for another shell; a pipe or a redirection of its output, a
    comment, the next command. ValueError if quotes do not match."""
    line = text.replace("\\\n", " ").strip()
    place = _PLACE.search(line)
    if place is None:
        return shlex.split(line)
    head, rest = line[: place.start()], line[place.start() :]
    for quote in ("'", '"'):
        if head.count(quote) % 2:  # it is inside
            head, rest = head.replace(quote, " "), rest.split(quote)[0]
    before = shlex.split(_ANOTHER.split(head)[-1])
    is_known = not before or any(_BEFORE.fullmatch(word) for word in before[:2])
    return [] if not is_known else shlex.split(_AFTER.split(rest, maxsplit=1)[0])


def _read(key: str, word: str, kind: KeyKind) -> int:
    try:
        number: int = kind.read(word)
    except ValueError:
        raise RequestError(
            f"{shown(word)} is not a valid {key}",
            code="exchange.wrong-value",
            where=WHERE,
            next_step=f"Write {kind.says}, as siitperf requires.",
        ) from None
    return number
