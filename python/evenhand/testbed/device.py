# SPDX-License-Identifier: Apache-2.0
"""Testbed: a device string, taken apart and checked against the table of drivers. Touches nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.base.errors import RequestError, suggestion
from evenhand.testbed.drivers import DRIVERS, INTERFACE, PCI, REFUSED, Driver, Kind

_PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}", re.ASCII)
"""63: what a device's name may have in DPDK."""
_SHOWN = 80
USUAL_BLOCK_OCTETS, USUAL_SLOT_OCTETS = 4096, 2048
"""Octets of a block and of a slot of net_af_packet without `blocksz` and `framesz`."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that is allowed."""

    name: str
    """Name as DPDK knows it, such as `net_pcap_left`; a PCI address with its domain, in lower case."""
    driver: str
    """Its key in DRIVERS."""
    arguments: tuple[tuple[str, str], ...]

    def value(self, key: str, default: str = "") -> str:
        """Value of a key that is not repeated."""
        return dict(self.arguments).get(key, default)

    def values(self, *kinds: Kind) -> list[tuple[str, str]]:
        """Keys and values of these kinds."""
        keys = DRIVERS[self.driver].keys
        return [(key, value) for key, value in self.arguments if keys[key].kind in kinds]


def read_device(text: str, *, where: str = "") -> Device:
    """Take the string apart.

    Raises:
        RequestError: Its driver is not in DRIVERS, a key is unknown to it, is written twice or is missing, or
            a value has another form.
    """
    name, *arguments = text.split(",")
    pci = _PCI.fullmatch(name)
    driver = PCI if pci else _driver_of(name, where)
    table = DRIVERS[driver]
    pairs: list[tuple[str, str]] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if key not in table.keys:
            raise _unknown_key(key, driver, table, where)
        if any(key == other for other, _ in pairs) and not table.keys[key].is_repeatable:
            raise RequestError(
                f"{key} occurs twice in {_shown(text)}",
                code="rig.device-key-twice",
                where=where,
                next_step="Give it once; drivers use the first, the last or both.",
            )
        if not equals or not table.keys[key].form.fullmatch(value):
            raise RequestError(
                f"{_shown(argument)}: {key} of {driver} is {table.keys[key].says}",
                code="rig.device-key-value",
                where=where,
                next_step="Correct it there.",
            )
        pairs.append((key, value))
    missing = sorted(table.needs - {key for key, _ in pairs})
    if missing:
        raise RequestError(
            f"{name} lacks {missing[0]}",
            code="rig.device-key-missing",
            where=where,
            next_step=f"Write `{name},{missing[0]}=...`.",
        )
    if pci:
        name = f"{pci.group(1) or '0000'}:{pci.group(2)}".lower()
    if driver == "net_af_packet":
        _check_blocks(dict(pairs), text, where)
    return Device(name, driver, tuple(pairs))


def _check_blocks(given: Mapping[str, str], text: str, where: str) -> None:
    """The kernel's ring has blocks of whole frames. RequestError if they do not fit: DPDK only says that it
    failed."""
    block, slot = int(given.get("blocksz", USUAL_BLOCK_OCTETS)), int(given.get("framesz", USUAL_SLOT_OCTETS))
    if slot < 1 or block % slot:
        raise RequestError(
            f"framesz={slot} does not divide blocksz={block} in {_shown(text)}",
            code="rig.device-blocks",
            where=where,
            next_step=f"Use a power of two up to {USUAL_BLOCK_OCTETS} for framesz, or the same"
            " value for both: blocksz=16384,framesz=16384.",
        )


def longest_beginning(name: str, table: Mapping[str, object]) -> str | None:
    """The key of this table that the name begins with; of several the longest."""
    return max((key for key in table if name.startswith(key)), key=len, default=None)


def _driver_of(name: str, where: str) -> str:
    refused = longest_beginning(name, REFUSED)
    driver = longest_beginning(name, {key: value for key, value in DRIVERS.items() if key != PCI})
    known = f"Allowed are a PCI address, {', '.join(key for key in DRIVERS if key != PCI)}."
    if refused is not None:
        raise RequestError(
            f"{_shown(name)} is refused: {REFUSED[refused]}",
            code="rig.driver-refused",
            where=where,
            next_step=known,
        )
    if driver is None:
        near = suggestion(name.rstrip("0123456789"), DRIVERS)
        raise RequestError(
            f"{_shown(name)} is not a device with an allowed driver",
            code="rig.not-a-device",
            where=where,
            next_step=f"Did you mean {near}? {known}" if near is not None else _how_to_name(name) or known,
        )
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{_shown(name)} is not a device name: use at most 63 letters, digits, '.', '_' and '-'",
            code="rig.not-a-device-name",
            where=where,
            next_step=f"Write {driver}0, followed by its arguments after a comma.",
        )
    return driver


def _how_to_name(name: str) -> str | None:
    """What a port is called that people name as the kernel does, or without all of its address."""
    if re.fullmatch(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", name):
        return (
            "Write a PCI address in full, such as 0000:01:00.0; `evenhand check` lists those of this machine."
        )
    if INTERFACE.form.fullmatch(name) and not name.startswith("net_"):
        return (
            f"For an interface that stays with the kernel, write net_af_packet0,iface={name}"
            " (net_af_packet1 for the other port); for a NIC that belongs to DPDK, write"
            " its PCI address, such as 0000:01:00.0; `evenhand check` lists those of this"
            " machine."
        )
    return None


def _unknown_key(key: str, driver: str, table: Driver, where: str) -> RequestError:
    near = suggestion(key, table.keys)
    hint = "" if near is None else f"Did you mean {near}? "
    known = f"Known for {driver}: {', '.join(table.keys)}." if table.keys else f"{driver} takes none."
    return RequestError(
        f"{_shown(key)} is not an allowed key of {driver}",
        code="rig.device-key-unknown",
        where=where,
        next_step=hint + known,
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
