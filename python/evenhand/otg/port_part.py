# SPDX-License-Identifier: Apache-2.0
"""OTG: a configuration's ports, their layer 1, and what is captured at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.otg.refusals import other_keys
from evenhand.plan import SIDES, SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgPort:
    """One port of the configuration."""

    name: str
    location: str
    side: SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class OtgCapture:
    """Ports whose received frames a client may ask for."""

    port_names: tuple[str, ...]
    most_octets: int | None
    """So many of each frame; None: all of it."""


def read_ports(
    ports: Sequence[Mapping[str, Any]], locations: Mapping[str, SideName], errors: list[str]
) -> tuple[OtgPort, ...]:
    """A location is a side of the testbed, or another name of it; without any, the first port is the left
    one.

    Args:
        locations: The side of each other name.
    """
    if len(ports) > len(SIDES):
        errors.append(f"ports: {len(ports):,}, but a testbed has two")
    found: list[OtgPort] = []
    is_placed = any(port.get("location") for port in ports)
    for number, port in enumerate(ports[: len(SIDES)]):
        at, name, location = f"ports[{number}]", port.get("name", ""), port.get("location", "")
        errors += other_keys(port, "ports[]", at)
        if not name or name in (each.name for each in found):
            errors.append(f"{at}.name: {name!r} is missing, or not unique")
        side = locations.get(location, location) if is_placed else SIDES[number]
        if side not in SIDES or side in (each.side for each in found):
            errors.append(
                f"{at}.location: {location!r} must be {', '.join([*SIDES, *locations])}, each port once;"
                " `evenhand otg --locations LEFT,RIGHT` gives them the names that a script has"
            )
            continue
        found.append(OtgPort(name=name, location=location, side=side))
    return tuple(found)


def read_layer1(
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


def read_captures(
    captures: Sequence[Mapping[str, Any]], sides: Mapping[str, SideName], errors: list[str]
) -> tuple[OtgCapture, ...]:
    found: list[OtgCapture] = []
    for number, capture in enumerate(captures):
        at, names = f"captures[{number}]", tuple(capture.get("port_names", []))
        # What would overwrite other frames is refused at the start, or keeps the first.
        errors += other_keys(capture, "captures[]", at)
        errors += [f"{at}.port_names: there is no port {name!r}" for name in names if name not in sides]
        if capture.get("format") == "pcapng":
            errors.append(f"{at}.format: pcapng: captures are pcap files here")
        if again := [name for name in names if any(name in other.port_names for other in found)]:
            errors.append(f"{at}.port_names: {again[0]} is there twice")
        found.append(
            OtgCapture(
                port_names=names,
                most_octets=int(capture["packet_size"]) if "packet_size" in capture else None,
            )
        )
    return tuple(found)
