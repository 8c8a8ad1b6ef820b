# SPDX-License-Identifier: Apache-2.0
"""Analysis: what a run says of its testbed, as far as a trend needs it: which version the DUT had, and what
makes it another DUT or tester."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.analysis.condition_words import show_in_short
from evenhand.analysis.matching import flat
from evenhand.analysis.words import join
from evenhand.run.campaign_record import CampaignRecord, PointRecord

VERSION_FACTS = ("system", "kernel")
"""Facts of a DUT that are expected to change from one run to another. The later one says more."""
HARDWARE_FACTS = ("machine", "cpu_model", "nic")
"""Facts of DUT and tester: with other hardware the numbers are those of another testbed."""
REFERENCE = "reference"
"""The kind of a DUT that is the reference router: a program, whose version is in its machine too."""


def testbed_of(record: CampaignRecord, point: PointRecord) -> dict[str, str]:
    """What makes the testbed of a point this one: `{"name": "lab", "DUT: cpu_model": ...}`. Facts that are
    not known are left out."""
    names = dict.fromkeys(
        repetition.testbed for repetition in point.repetitions if repetition.value is not None
    ) or dict.fromkeys(repetition.testbed for repetition in point.repetitions)
    found: dict[str, str] = {"name": join([name for name in names if name])} if any(names) else {}
    for name in names:
        document = record.testbeds.get(name, {})
        prefix = "" if len(names) == 1 else f"{name}, "
        found |= {f"{prefix}{key}": value for key, value in _identity(document)}
    return found


def differing(one: Mapping[str, str], another: Mapping[str, str]) -> tuple[str, ...]:
    """`testbed: DUT: cpu_model A against B`: facts that both know, and that are not the same."""
    return tuple(
        f"testbed: {key} {show_in_short(one[key])} against {show_in_short(another[key])}"
        for key in one
        if key in another and one[key] != another[key]
    )


def versions_of(records: Sequence[CampaignRecord]) -> list[str | None]:
    """The version of the DUT in each run: of the facts that state it, those that are not the same in all
    runs; if all are, the one that says most."""
    facts = [_versions(record) for record in records]
    names = list(dict.fromkeys(name for of_run in facts for name in of_run))
    apart = [name for name in names if len({of_run.get(name) for of_run in facts}) > 1] or names[-1:]
    return [", ".join(of_run[name] for name in apart if name in of_run) or None for of_run in facts]


def version_key(version: str | None) -> tuple[Any, ...]:
    """Orders versions as people count: 6.1.9 before 6.1.10; unknown ones first."""
    if version is None:
        return ()
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"([0-9]{1,18})", version)
        if part
    )


def _identity(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    own = _mapping(document.get("own_dut"))
    dut = _mapping(document.get("dut"))
    is_program = REFERENCE in (own.get("kind"), dut.get("kind"))
    for fact in HARDWARE_FACTS:
        if (value := dut.get(fact)) is not None and not (is_program and fact == "machine"):
            yield f"DUT: {fact}", str(value)
        if (value := _mapping(document.get("tester")).get(fact)) is not None:
            yield f"tester: {fact}", str(value)
    if own.get("kind") is not None:
        yield "DUT: kind", str(own["kind"])
    for key, value in flat(_mapping(own.get("configured")), "DUT: "):
        yield key, str(value)


def _versions(record: CampaignRecord) -> dict[str, str]:
    """Versions by their names, of all DUTs of a run."""
    found: dict[str, list[str]] = {}
    for document in record.testbeds.values():
        own, dut = _mapping(document.get("own_dut")), _mapping(document.get("dut"))
        if own.get("kind") == REFERENCE and isinstance(own.get("version"), str):
            found.setdefault(REFERENCE, []).append(f"evenhand-router {own['version']}")
            continue
        for fact in VERSION_FACTS:
            if isinstance(value := dut.get(fact), str):
                found.setdefault(fact, []).append(value)
    return {name: join(list(dict.fromkeys(values))) for name, values in found.items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
