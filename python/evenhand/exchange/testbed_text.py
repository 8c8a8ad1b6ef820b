# SPDX-License-Identifier: Apache-2.0
"""Exchange: a testbed file written from what an import found, with gaps where only the user can say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.plan import SIDES, SideName
from evenhand.rig import FILL_IN, PCI, make_testbed, read_device


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
