# SPDX-License-Identifier: Apache-2.0
"""Exchange: what became of each key of another tester's file. Nothing is dropped without a row. What the
reader of configurations says is said of the parts of the file that a configuration was made of. The testbed
file that is written from what was found has gaps where only the user can say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from evenhand.exchange.foreign import shown
from evenhand.plan import SIDES, SideName
from evenhand.rig import FILL_IN, PCI, make_testbed, read_device


class Became(StrEnum):
    """What became of a key: the same here; something near it, and the row says what is different; it does not
    exist here, and the row says why; nothing here depends on it."""

    MAPPED = "mapped"
    DIFFERS = "differs"
    REFUSED = "refused"
    MEANINGLESS = "meaningless"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedKey:
    """A key, its value (read and written anew, never the file's own text), and what became of it. `line` is
    its number in the file; None for what is on a command line, or is a default."""

    key: str
    value: str
    line: int | None = None
    became: Became
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCommand:
    """A command here that does what one of the other tester did."""

    instead_of: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was made of a file of this kind, "siitperf" or "otg": a row for each key, the testbed file as
    TOML, and commands; none if all the traffic is refused. `gaps` are what the testbed file still needs, and
    `notes` what a reader must know of the whole, by sentences."""

    kind: str
    rows: tuple[ImportedKey, ...]
    testbed: str
    commands: tuple[ImportedCommand, ...]
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def is_any(self, became: Became) -> bool:
        return any(row.became is became for row in self.rows)


Places = dict[str, tuple[str, int]]
"""The part of the file, and its line, by the part of the configuration."""


def row_of(key: str, value: str, line: int, became: Became, text: str) -> ImportedKey:
    """A row of the file itself."""
    return ImportedKey(key=shown(key)[1:-1], value=shown(value)[1:-1], line=line, became=became, text=text)


def named(rows: Iterable[ImportedKey], places: Places) -> tuple[ImportedKey, ...]:
    """The rows with the parts of the file that they are about; those of ports are left out."""
    return tuple(_named(row, places) for row in rows if not row.key.startswith("ports["))


def _named(row: ImportedKey, places: Places) -> ImportedKey:
    key = (
        row.key
        if row.key in places
        else max((place for place in places if row.key.startswith(place)), key=len, default="")
    )
    if not key:
        return row
    name, line = places[key]
    return replace(row, key=name, line=line)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenHardware:
    """What the user has said in addition to the file: nothing of it is taken from a stranger's text."""

    devices: Mapping[SideName, str] = field(default_factory=dict)
    is_isolated: bool = False
    cpus: tuple[int, ...] = ()


ImportedPorts = dict[SideName, dict[str, tuple[Any, str]]]
"""By the side: keys of the testbed file with their values, and where each value comes from."""


def write_testbed(
    origin: str,
    given: GivenHardware,
    *,
    ports: ImportedPorts,
    cpus: Sequence[int],
    cpus_from: str,
    plan: str | None,
) -> tuple[str, tuple[str, ...]]:
    """The TOML text, and what it still needs; checked as every testbed file is, as far as it has no gaps.

    Args:
        origin: What it is made of, for its first line.
        cpus_from: For the comment; `given.cpus` come first.
        plan: The one plan that the DUT is set up for; None if there are several, or none is known.

    Raises:
        RequestError: A device that is not allowed, or CPUs that cannot be shared out.
    """
    gaps: list[str] = []
    lines = [
        f"# Made by `evenhand import` of {origin}. All keys of this file: docs/reference/testbed-file.md"
    ]
    if given.is_isolated:
        lines.append("isolated_test_environment = true # --isolated-test-environment")
    else:
        lines.append(
            "isolated_test_environment = false # set to true if no frame can leave your lab (RFC 6815)"
        )
        gaps.append("isolated_test_environment: write true if no frame can leave your lab (RFC 6815).")
    for side in SIDES:
        lines += ["", f"[{side}]", *_port_lines(side, given, ports.get(side, {}), gaps)]
    chosen = list(given.cpus or cpus)
    lines += ["", "[tester]", f"cpus = {chosen} # {'--cpus' if given.cpus else cpus_from}"]
    if not chosen:
        gaps.append("tester.cpus: write the CPUs that the tester may use, such as [2, 4, 6, 8].")
    if all(
        side not in given.devices or read_device(given.devices[side], where=f"--{side}").driver == PCI
        for side in SIDES
    ):
        lines.append("hugepages = true # NICs need them")
    if plan is not None:
        lines += ["", "[dut]", f"plan = {json.dumps(plan)} # so that commands need not name it"]
    text = "".join(f"{line}\n" for line in lines)
    if not gaps:
        make_testbed(tomllib.loads(text), where=origin)
    return text, tuple(gaps)


def _port_lines(
    side: SideName, given: GivenHardware, facts: Mapping[str, tuple[Any, str]], gaps: list[str]
) -> list[str]:
    device = given.devices.get(side)
    if device is None:
        wanted = f"the PCI address of the NIC on the {side}, such as 0000:01:00.{SIDES.index(side)}"
        lines = [f'device = "{FILL_IN}" # {wanted}']
        gaps.append(f"{side}.device: write {wanted}.")
    else:
        read_device(device, where=f"--{side}")
        lines = [f"device = {json.dumps(device)} # --{side}"]
    keys = [key for key in ("mac", "dut_mac", "vlan") if key in facts]
    return lines + [f"{key} = {json.dumps(facts[key][0])} # {facts[key][1]}" for key in keys]
