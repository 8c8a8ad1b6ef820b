# SPDX-License-Identifier: Apache-2.0
"""Exchange: a stateless profile of TRex becomes a testbed file, a command, and a row for each part of it. Its
streams are written as flows of OTG, which the import of those reads."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import ETHERNET_GAP_OCTETS
from evenhand.exchange.foreign import read_foreign
from evenhand.exchange.otg_read import MOST_OCTETS, import_document
from evenhand.exchange.outcome import Became, GivenHardware, Imported, ImportedKey, Places, named, row_of
from evenhand.exchange.trex_profile import TrexProfile
from evenhand.exchange.trex_values import FlowVar, Layer, ProfileError, TrexStream, Write

ORIGIN = "a stateless profile of TRex"
FCS_OCTETS = 4
SMALLEST = 60
"""Octets without FCS to which a NIC fills up a frame."""
SECONDS = 60
"""A profile says no duration; TRex' command line does."""
_KINDS = {"Ether": "ethernet", "Dot1Q": "vlan", "IP": "ipv4", "IPv6": "ipv6", "UDP": "udp", "Raw": ""}
_NAMES = {"sport": "src_port", "dport": "dst_port", "ttl": "time_to_live", "hlim": "hop_limit", "vlan": "id"}
_SCAPY_PORT = 53
"""scapy's default of both ports of UDP."""
_WIDTHS = {"ipv4": 4, "ipv6": 16, "udp": 2}
_ORDERS = {"inc": "increment", "dec": "decrement", "random": "random"}


def import_trex(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the profile by its syntax tree. Nothing of it is run.

    Raises:
        RequestError: It is no profile, or computes what it sends in a way that is not understood; names the
            line.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what="profile of TRex")
    places: Places = {}
    rows: list[ImportedKey] = []
    try:
        profile = TrexProfile(text)
        sent = list(enumerate(_as_mix(profile.streams(0))))
        back = list(enumerate(_as_mix(profile.streams(1)))) if profile.asks_direction else []
        if not profile.asks_direction:
            rows.append(
                row_of("get_streams", "every port", 1, Became.DIFFERS, "sent from left to right only")
            )
        # The first of each direction come first: of those that follow there is one row.
        in_order = sorted(
            [(place, side, each) for side, of in enumerate((sent, back)) for place, each in of],
            key=lambda each: each[:2],
        )
        flows = [
            _flow(number, side, stream, places, rows) for number, (_, side, stream) in enumerate(in_order)
        ]
    except ProfileError as error:
        raise RequestError(
            f"this profile cannot be read: {error.what}",
            code="exchange.profile-not-read",
            where=f"{path}, line {error.line}",
            next_step="Write there plainly what is sent: constants, lists, functions of its own.",
        ) from error
    document = {"ports": [{"name": "port 0"}, {"name": "port 1"}], "flows": flows}
    imported = import_document(path, document, given, plan=plan, testbed=testbed, kind="trex", origin=ORIGIN)
    return replace(imported, rows=(*rows, *named(imported.rows, places)))


def _as_mix(streams: list[TrexStream]) -> list[TrexStream]:
    """Streams that differ in size and frames per second alone, as one with these sizes."""
    first = streams[0]
    if len(streams) < 2 or any(
        (each.packet.layers, each.engine, each.mode.kind, each.mode.rate)
        != (first.packet.layers, first.engine, "STLTXCont", "pps")
        or not each.mode.value.is_integer()
        for each in streams
    ):
        return streams
    sizes = tuple((each.packet.octets, int(each.mode.value)) for each in streams)
    mode = replace(first.mode, value=float(sum(weight for _, weight in sizes)))
    extras = dict.fromkeys(extra for each in streams for extra in each.extras)
    return [replace(first, mode=mode, sizes=sizes, extras=tuple(extras))]


def _flow(
    number: int, side: int, stream: TrexStream, places: Places, rows: list[ImportedKey]
) -> dict[str, Any]:
    at = f"flows[{number}]"
    places[at] = (f"stream {number + 1}", stream.line)
    places[f"{at}.tx_rx"] = ("direction", stream.line)
    for extra in stream.extras:
        rows.append(
            row_of(extra, "...", stream.line, Became.DIFFERS, "streams of a start begin at once, and go on")
        )
    written: dict[str, Write] = {}
    for each in stream.engine.writes:
        if each.place in written:
            raise ProfileError(each.line, f"two variables are written to {each.place}")
        written[each.place] = each
        variable = stream.engine.variables.get(each.name)
        for key, text in () if variable is None else variable.notes:
            rows.append(row_of(f"{each.name}.{key}", "...", each.line, Became.DIFFERS, text))
    packet = [
        _header(f"{at}.{_KINDS.get(layer.kind, layer.kind.lower())}", layer, stream, written, places)
        for layer in stream.packet.layers
        if layer.kind != "Raw"
    ]
    for place, write in written.items():
        raise ProfileError(write.line, f"a variable is written to {place}, which is no field that can vary")
    octets = max(stream.packet.octets, SMALLEST) + FCS_OCTETS
    mode = stream.mode
    places[f"{at}.size"] = ("packet size", stream.line)
    places[f"{at}.rate"] = (f"{mode.kind}({mode.rate})", mode.line)
    places[f"{at}.duration"] = (mode.kind, mode.line)
    rate, is_rounded = _rate(mode.rate, mode.value, octets)
    if is_rounded:
        text = f"sent at whole frames per second: {rate['pps']:,}"
        rows.append(row_of(f"{mode.kind}({mode.rate})", f"{mode.value:g}", mode.line, Became.DIFFERS, text))
    if mode.packets is None and mode.kind == "STLTXCont":
        text = f"has no end: --duration {SECONDS}s stands for TRex' -d, and its -m is --rate"
        rows.append(row_of(mode.kind, "...", mode.line, Became.DIFFERS, text))
    return {
        "name": f"stream {number + 1}",
        "tx_rx": {"choice": "port", "port": {"tx_name": f"port {side}", "rx_names": [f"port {1 - side}"]}},
        "packet": packet,
        "size": _size(stream, octets),
        "rate": rate,
        "duration": {"choice": "burst"}
        if mode.kind == "STLTXMultiBurst"
        else {"choice": "fixed_seconds", "fixed_seconds": {"seconds": SECONDS}}
        if mode.packets is None
        else {"choice": "fixed_packets", "fixed_packets": {"packets": mode.packets}},
    }


def _size(stream: TrexStream, octets: int) -> dict[str, Any]:
    if not stream.sizes:
        return {"choice": "fixed", "fixed": octets}
    pairs = [
        {"size": max(size, SMALLEST) + FCS_OCTETS, "weight": weight / math.gcd(*dict(stream.sizes).values())}
        for size, weight in stream.sizes
    ]
    return {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": pairs}}


def _rate(kind: str, value: float, octets: int) -> tuple[dict[str, Any], bool]:
    """The rate, and whether it was rounded. TRex' bits of layer 2 are those of the frame with its FCS."""
    if kind == "percentage":
        return {"choice": "percentage", "percentage": value}, False
    bits = {"pps": 1, "bps_L1": 8 * (octets + ETHERNET_GAP_OCTETS), "bps_L2": 8 * octets}[kind]
    rate_fps = max(1, round(value / bits))
    return {"choice": "pps", "pps": rate_fps}, rate_fps * bits != value


def _header(
    at: str, layer: Layer, stream: TrexStream, written: dict[str, Write], places: Places
) -> dict[str, Any]:
    """The layer's fields; variables that are written into it are taken from `written`."""
    kind = _KINDS.get(layer.kind, layer.kind.lower())
    ends = {"UDP": {"sport": _SCAPY_PORT, "dport": _SCAPY_PORT}}.get(layer.kind, {})
    fields: dict[str, Any] = {}
    for name, value in {**ends, **layer.fields}.items():
        key = _NAMES.get(name, name)
        places[f"{at}.{key}"] = (f"{layer.kind}.{name}", layer.line)
        fields[key] = {"choice": "value", "value": value}
    for end in ("src", "dst", "sport", "dport"):
        write = written.pop(f"{layer.kind}.{end}", None)
        if write is None:
            continue
        variable = stream.engine.variables.get(write.name)
        if variable is None:
            raise ProfileError(write.line, f"there is no variable {write.name}")
        key = _NAMES.get(end, end)
        base = fields.get(key, {"value": 0})["value"]
        places[f"{at}.{key}"] = (f"{layer.kind}.{end}", variable.line)
        fields[key] = _pattern(kind, base, variable, write)
    return {"choice": kind, kind: fields}


def _pattern(kind: str, base: Any, variable: FlowVar, write: Write) -> Mapping[str, Any]:
    """What the field has when the variable is written over some of its octets."""
    width = _WIDTHS.get(kind, 0)
    shift = 8 * (width - write.fixup - variable.octets)
    if shift < 0 or variable.op not in _ORDERS:
        raise ProfileError(write.line, f"variable {variable.name} cannot be written there")
    try:
        number = int(ipaddress.ip_address(base)) if isinstance(base, str) else int(base)
    except ValueError as error:
        raise ProfileError(write.line, f"{base!r} is no address") from error
    mask = (256**variable.octets - 1) << shift
    listed = [(number & ~mask) | (value << shift) for value in variable.values]
    first, last = ((number & ~mask) | (end << shift) for end in (variable.first, variable.last))
    if max(variable.first, variable.last) >= 256**variable.octets:
        raise ProfileError(
            variable.line, f"variable {variable.name} is larger than its {variable.octets} octets"
        )

    def text(value: int) -> Any:
        if kind == "udp":
            return value
        return str((ipaddress.IPv4Address if kind == "ipv4" else ipaddress.IPv6Address)(value))

    if listed:
        return {"choice": "values", "values": [text(value) for value in listed]}
    if variable.op == "random":
        if shift:
            raise ProfileError(write.line, "a random variable can only be in the last octets of its field")
        return {"choice": "random", "random": {"min": text(first), "max": text(last)}}
    choice = _ORDERS[variable.op]
    start = first if variable.op == "inc" else last
    count = (variable.last - variable.first) // variable.step + 1
    return {
        "choice": choice,
        choice: {"start": text(start), "step": text(variable.step << shift), "count": count},
    }
