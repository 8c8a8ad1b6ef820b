# SPDX-License-Identifier: Apache-2.0
"""Rig: what the draft's Figure 6 and its text state of tester and DUT, with None where it was not stated, and
what is missing by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.base.folders import without_folders
from evenhand.dut.facts import without_set_up
from evenhand.host.finding import read_host_facts
from evenhand.rig.setup import Setup
from evenhand.testbed import DutFacts, Testbed
from evenhand.testbed.device import read_device

FACTS = tuple(DutFacts.model_fields)
"""Facts of both machines, by the keys of the testbed file's `[dut.facts]` (SEED-84)."""
NOT_OF_A_TESTER = ("flow_hash", "policing")
"""It forwards nothing."""
OF_A_PLAN = ("neighbor_table", "connection_table", "plan", "sysctls", "napi_threads")
"""Facts of a lab that change when it is set up anew."""


def testbed_facts(setup: Setup, root: Path = Path("/")) -> dict[str, Any]:  # noqa: PT028 (no test, whatever its name)
    """For `CampaignRecord.testbeds`: `tester` as read here, `dut` as the testbed file states it, or as our
    own router or lab does.

    `missing` names what is None in each. Neither has folders or the name of this machine.
    """
    tester = tester_facts(setup.testbed, root)
    inside = setup.lasting_facts()
    own = setup.own_facts()
    dut: dict[str, Any] = dict.fromkeys(FACTS) | setup.describe_dut(tester, inside)
    return {
        "name": without_folders(setup.name),
        "tester": tester,
        "dut": dut,
        "own_dut": None if own is None else without_folders(_lasting(own)),
        **({} if inside is None else {"inside_dut": {"facts": without_set_up(inside)}}),
        "missing": {
            "tester": [key for key in FACTS if tester.get(key) is None and key not in NOT_OF_A_TESTER],
            "dut": [key for key in FACTS if dut[key] is None],
        },
    }


def campaign_facts(setup: Setup, configured: Mapping[str, Any] | None) -> dict[str, Any]:
    """The same, and `testbed`, for a campaign: whether it is the same testbed when the campaign goes on.

    Args:
        configured: The table `[reference]`, for a DUT that is set by it.
    """
    facts = testbed_facts(setup)
    return {**facts, **setup.to_campaign_document(facts["own_dut"], configured)}


def of_this_machine(tester: Mapping[str, str | None], cpus: Sequence[int]) -> dict[str, str | None]:
    """Facts of a DUT that is a program on the tester's machine."""
    same = {key: value for key, value in tester.items() if key not in ("cores", "nic", "driver")}
    return {**same, "cores": f"CPUs {', '.join(map(str, cpus))}", "nic": "none: inside the tester's machine"}


def _lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the DUT this one. What a plan sets of a lab, its threads, its neighbours and its counters
    are others each time; each search has them as they were then."""
    kept = {key: value for key, value in facts.items() if key not in OF_A_PLAN}
    if isinstance(interfaces := kept.get("interfaces"), Mapping):
        kept["interfaces"] = {
            side: {key: value for key, value in of.items() if key not in OF_A_PLAN}
            for side, of in interfaces.items()
        }
    return kept


def tester_facts(testbed: Testbed, root: Path = Path("/")) -> dict[str, str | None]:  # noqa: PT028 (as above)
    """What this machine reports of itself, by the keys of `DutFacts`. Read-only."""
    host = read_host_facts(root)
    engines = [engine.cpus for engine in testbed.engine if engine.ssh is None]
    cpus = [cpu for each in engines or [testbed.tester.cpus] for cpu in each]
    return {
        "machine": host["machine"],
        "system": host["distribution"],
        "kernel": host["kernel"],
        "cpu_model": host["cpu_model"],
        "sockets": _text(host["sockets"]),
        "cores": f"{len(cpus)} of {host['cpus']} CPUs busy: {', '.join(map(str, cpus))}",
        "clock": _clock(host),
        "turbo": host["turbo"],
        "hyper_threading": host["smt"],
        "memory_size": None if host["memory_mb"] is None else f"{host['memory_mb']} MB",
        "nic": _joined(_nic(port.device, root) for port in testbed.local_ports),
        "driver": _joined(_driver(port.device, root) for port in testbed.local_ports),
        "kernel_parameters": _parameters(host["kernel_parameters"]),
        "flow_hash": None,
        "policing": None,
    }


def _clock(host: Mapping[str, Any]) -> str | None:
    """`800 to 3500 MHz, governor performance`, `2100 MHz`."""
    if host["clock_mhz"] is None:
        return None
    low, high = host["clock_mhz"]
    return (f"{low} MHz" if low == high else f"{low} to {high} MHz") + (
        f", governor {host['governor']}" if host["governor"] else ""
    )


def _nic(device: str, root: Path) -> str | None:
    """Ids of maker and device of a PCI address; else the kind of the software port."""
    name = read_device(device).name
    if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name):
        return f"software port {re.sub(r'[0-9]+$', '', name)}"
    folder = root / "sys/bus/pci/devices" / name
    ids = [_read(folder / part) for part in ("vendor", "device")]
    return None if None in ids else f"PCI {':'.join(str(part).removeprefix('0x') for part in ids)}"


def _driver(device: str, root: Path) -> str | None:
    name = read_device(device).name
    driver = root / "sys/bus/pci/devices" / name / "driver"
    if driver.exists():
        return driver.resolve().name
    return None if ":" in name else re.sub(r"[0-9]+$", "", name)


def _parameters(parameters: list[str] | None) -> str | None:
    return None if parameters is None else " ".join(parameters) or "none that affect the measurement"


def _joined(texts: Iterable[str | None]) -> str | None:
    each = list(texts)
    known = dict.fromkeys(text for text in each if text is not None)
    return None if None in each else ", ".join(known)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None
