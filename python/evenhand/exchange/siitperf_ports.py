# SPDX-License-Identifier: Apache-2.0
"""Exchange: the UDP ports of a siitperf.conf, as options of Evenhand's verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.exchange.siitperf_file import SiitperfFile
from evenhand.exchange.siitperf_plan import MODES
from evenhand.plan import RFC4814_DESTINATION_PORTS, RFC4814_SOURCE_PORTS, Mode
from evenhand.plan.nat import RFC9693_DESTINATION_PORTS, RFC9693_SOURCE_PORTS

Way = Literal["Fwd", "Rev"]
_OPTIONS = (
    ("sport", "--source-ports", RFC4814_SOURCE_PORTS),
    ("dport", "--destination-ports", RFC4814_DESTINATION_PORTS),
)


@dataclass(frozen=True, slots=True)
class FoundPorts:
    """What becomes of the keys of UDP ports."""

    options: Sequence[str]
    texts: Mapping[str, str]
    """The option that each key is part of."""
    unused: Mapping[str, str]
    """The reason why nothing depends on a key, by key."""
    differences: Mapping[str, str]


def find_ports(file: SiitperfFile, *, has_state: bool = False) -> FoundPorts:
    """The options; both directions have the same ports here, those of the forward one if it is active.

    Args:
        has_state: The frames are of connections, which the left side opens: each has its ports to the end.
    """
    if has_state:
        return _ports_of_connections(file)
    options: list[str] = []
    texts: dict[str, str] = {}
    unused: dict[str, str] = {}
    differences: dict[str, str] = {}
    way: Way = "Fwd" if file.value("Forward") else "Rev"
    other: Way = "Rev" if way == "Fwd" else "Fwd"
    is_other_active = bool(file.value("Forward") and file.value("Reverse"))
    for field, option, default in _OPTIONS:
        mode: Mode = MODES[file.value(f"{way}-var-{field}")]
        first, last = file.value(f"{way}-{field}-min"), file.value(f"{way}-{field}-max")
        if mode != "fixed" and first == 0:
            first, last = 1, max(last, 1)
            differences[f"{way}-{field}-min"] = "1: port 0 is reserved (RFC 4814, 4.5)"
        value = _value(mode, first, last)
        if (mode, first, last) != ("pseudorandom", default.first, default.last):
            options += [option, value]
        for each in (way, other):
            keys = (f"{each}-var-{field}", f"{each}-{field}-min", f"{each}-{field}-max")
            for key in keys:
                texts[key] = f"{option} {value}"
            if each == other and not is_other_active:
                unused |= dict.fromkeys(keys, f"{'Reverse' if other == 'Rev' else 'Forward'} is 0")
                continue
            if not file.value(keys[0]):
                unused |= dict.fromkeys(keys[1:], f"{keys[0]} is 0")
            if each == other:
                differences |= _unlike(file, way, other, field, f"{option} {value}")
    return FoundPorts(tuple(options), texts, unused, differences)


def _ports_of_connections(file: SiitperfFile) -> FoundPorts:
    options: list[str] = []
    texts: dict[str, str] = {}
    unused: dict[str, str] = {}
    differences: dict[str, str] = {}
    for (field, option, _), default in zip(
        _OPTIONS, (RFC9693_SOURCE_PORTS, RFC9693_DESTINATION_PORTS), strict=True
    ):
        own = [f"Fwd-{name}" for name in (f"var-{field}", f"{field}-min", f"{field}-max")]
        first, last = file.value(own[1]), file.value(own[2])
        # What is enumerated takes each port of the range, whatever the order of frames would be.
        mode: Mode = "pseudorandom" if file.value(own[0]) or file.value("Enumerate-ports") else "fixed"
        if mode != "fixed" and first == 0:
            first, last = 1, max(last, 1)
            differences[own[1]] = "1: port 0 is reserved (RFC 4814, 4.5)"
        value = _value(mode, first, last)
        if (mode, first, last) != ("pseudorandom", default.first, default.last):
            options += [option, value]
        texts |= dict.fromkeys(own, f"{option} {value}")
        if mode == "fixed":
            unused |= dict.fromkeys(own[1:], f"{own[0]} and Enumerate-ports are 0")
        others = [key.replace("Fwd", "Rev") for key in own]
        texts |= dict.fromkeys(others, "the ports of the connection")
        unused |= dict.fromkeys(others, "an answer has the ports of its connection")
    return FoundPorts(tuple(options), texts, unused, differences)


def _value(mode: Mode, first: int, last: int) -> str:
    """The ports as the options have them."""
    if mode == "fixed":
        return "fixed"
    if first == last:
        return str(first)
    return f"{first}-{last}" if mode == "pseudorandom" else f"{first}-{last}:{mode}"


def _unlike(file: SiitperfFile, way: Way, other: Way, field: str, text: str) -> dict[str, str]:
    """Keys of the other direction that are not as those of the first."""
    names = [f"var-{field}"]
    if file.value(f"{way}-var-{field}") or file.value(f"{other}-var-{field}"):
        names += [f"{field}-min", f"{field}-max"]
    unlike = [name for name in names if file.value(f"{way}-{name}") != file.value(f"{other}-{name}")]
    return {f"{other}-{name}": f"{text}: both directions use the ports of {way}-..." for name in unlike}
