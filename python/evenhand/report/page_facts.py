# SPDX-License-Identifier: Apache-2.0
"""Station 10: what another lab needs to repeat a campaign: what was sent, DUT, tester, host, seeds, command,
deviations."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.analysis.plans import second_of_mix
from evenhand.base.table import Table, make_table
from evenhand.base.units import format_count
from evenhand.plan import Traffic
from evenhand.procedure.profile import not_reserved
from evenhand.report.page_words import DASH, NONE, addresses_of, flatten, show_fact, show_time
from evenhand.run import StoredSearch
from evenhand.run.campaign_record import CampaignRecord, PointRecord, Repetition

DUT_FACTS = {
    "system": "operating system",
    "kernel": "kernel",
    "cpu_model": "CPU",
    "sockets": "sockets",
    "cores": "cores in use",
    "clock": "clock",
    "turbo": "turbo",
    "hyper_threading": "hyper-threading",
    "memory_size": "memory",
    "nic": "NIC",
    "driver": "driver",
    "kernel_parameters": "kernel parameters that limit it",
    "flow_hash": "RSS: fields that are hashed",
    "policing": "possible policing of the traffic",
}
"""What the draft's Figure 6 and its text say of a DUT (SEED-84), with its firewall and limits (SEED-81) and
its hash (SEED-49)."""
KINDS = {
    "reference": "the reference router, on this machine",
    "linux": "the kernel's router in a namespace, on this machine",
}
LAB_DUTS = {"linux namespace": KINDS["linux"], "virtual machine": "a virtual machine, on this machine"}
"""DUTs of labs, by what a lab says of its DUT."""
HOST_FACTS = {
    "cpu model": "CPU",
    "cpus": "CPUs",
    "is virtual machine": "virtual machine",
    "smt": "hyper-threading",
    "memory mb": "memory, MB",
    "hugepages": "huge pages",
}
FULL_LENGTH_FINDING = "R2544-20"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBed:
    """A testbed's DUT, and the tester's side of it."""

    name: str
    dut: list[tuple[str, str | None]]
    missing: list[str]
    tester: list[tuple[str, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDeviation:
    requirement: str
    text: str
    where: str
    """Suites; empty: everywhere."""


def shown_testbeds(record: CampaignRecord) -> list[ShownBed]:
    """By name. A campaign that has not begun has none; then every fact of a DUT is missing."""
    beds = record.testbeds or {"": {}}
    return [_shown_bed(name, bed, has_own_host=len(beds) > 1) for name, bed in beds.items()]


def _shown_bed(name: str, bed: Mapping[str, Any], *, has_own_host: bool) -> ShownBed:
    """`has_own_host`: it may be on another machine than the one that the page describes as the host."""
    dut = bed.get("dut") or {}
    own = isinstance(dut, Mapping) and "kind" in dut
    if own:
        # Our own DUTs say what they are; the facts of Figure 6 that are the host's are below.
        facts = [
            ("kind", KINDS.get(str(dut["kind"]), str(dut["kind"]))),
            *_without_tables({key: v for key, v in dut.items() if key != "kind"}),
        ]
        missing = []
    else:
        known = {**dict.fromkeys(DUT_FACTS), **dut}
        facts = [
            (DUT_FACTS.get(key, key.replace("_", " ")), show_fact(value))
            for key, value in known.items()
            if not isinstance(value, Mapping)
        ]
        missing = [name for name, value in facts if value is None]
        facts += [
            fact
            for key, value in known.items()
            if isinstance(value, Mapping)
            for fact in flatten({key: value})
        ]
    testbed = bed.get("testbed") or {}
    tester: list[tuple[str, str | None]] = [
        (name, value)
        for name, value in flatten({key: v for key, v in testbed.items() if key != "dut"})
        # The testbed's own set, which is the default: a campaign or an option may have chosen another one.
        if value is not None and (name, value) != ("limits: set", "rfc")
    ]
    of_host = bed.get("tester")
    if has_own_host and isinstance(of_host, Mapping):
        tester = [
            (f"tester: {fact}", value) for fact, value in flatten(of_host) if value is not None
        ] + tester
    return ShownBed(name=name, dut=facts, missing=missing, tester=tester)


def _without_tables(document: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Facts of a configuration; an RSS table of 128 entries is shown by its first entry."""
    facts: list[tuple[str, str | None]] = []
    for name, value in flatten(document):
        if value is None:
            continue
        facts.append(
            (name, value if len(value) <= 120 else f"{value[:110]} ... ({len(value.split(', '))} in all)")
        )
    return facts


def host_facts(record: CampaignRecord) -> tuple[list[tuple[str, str | None]], list[tuple[str, str | None]]]:
    """Facts of the tester's machine, as they were read; and the mitigations of its CPU."""
    host = dict(record.host)
    mitigations = host.pop("mitigations", None) or {}
    facts: list[tuple[str, str | None]] = [
        (HOST_FACTS.get(name, name), value or "this machine does not report it")
        for name, value in flatten(host)
    ]
    return facts, flatten(mitigations) if isinstance(mitigations, Mapping) else []


def traffic_table(record: CampaignRecord) -> Table:
    """SEED-49: plan, numbers, ranges, modes, ports, gateways, routes; a row for each suite, or more if they
    differ."""
    rows: dict[tuple[str, ...], list[tuple[int, str, str]]] = {}
    for found in record.points:
        for search in _first_search(found):
            for plan, traffic in _of_each_plan(found.point.plan, search):
                sent = (str(traffic.get("addresses", NONE)), _ranges(traffic))
                numbers = rows.setdefault((found.point.suite, plan, *_same(traffic)), [])
                if sent not in [entry[1:] for entry in numbers]:
                    numbers.append((addresses_of(found.point), *sent))
    shown = []
    for (suite, plan, *same), numbers in rows.items():
        fewest, most = min(numbers)[1], max(numbers)
        addresses = fewest if len(numbers) == 1 else f"{fewest} to {most[1]}, {len(numbers)} numbers"
        shown.append([suite, plan, addresses, most[2], *same])
    titles = [
        "suite",
        "plan",
        "addresses",
        "first and last (of the most)",
        "drawn",
        "UDP ports",
        "gateways",
        "routes of the DUT",
    ]
    return make_table(
        titles, shown, caption="The contents of a frame follow from the seed and the number of the frame."
    )


def _first_search(found: PointRecord) -> Iterator[StoredSearch]:
    """The first search of the point, with its traffic in it; nothing if it has not begun."""
    for repetition in found.repetitions:
        for search in repetition.searches:
            if search.setup.get("traffic"):
                yield search
                return


def _of_each_plan(name: str, search: StoredSearch) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Plan and traffic; of a mix both, each with its share of the frames."""
    mix = search.setup.get("mix")
    versions = mix.get("versions") if isinstance(mix, Mapping) else None
    if not isinstance(versions, Mapping) or (other := second_of_mix(versions)) is None:
        yield name, search.setup["traffic"]
        return
    first, _, second = name.partition("+")
    shares = versions["share"]  # `second_of_mix` has read it
    yield f"{first}, {shares[0]} of {sum(shares)} frames", search.setup["traffic"]
    yield f"{second}, {shares[1]} of {sum(shares)} frames", Traffic(plan=other).to_document()


def _ends(traffic: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Source and destination of the first direction."""
    ends: Mapping[str, Any] = next(iter((traffic.get("directions") or {}).values()), {})
    return ends.get("source") or {}, ends.get("destination") or {}


def _ranges(traffic: Mapping[str, Any]) -> str:
    return "; ".join(_span(end.get("first"), end.get("last")) for end in _ends(traffic))


def _same(traffic: Mapping[str, Any]) -> tuple[str, ...]:
    """What all points of a suite share, as a rule."""
    modes = {
        str(end.get(mode))
        for end in _ends(traffic)
        for mode in ("host_mode", "network_mode")
        if end.get(mode)
    }
    ports = "; ".join(
        f"{role} {_span(of.get('first'), of.get('last'))} ({of.get('mode')})"
        for role, of in (traffic.get("udp_ports") or {}).items()
    )
    gateways = traffic.get("gateways") or {}
    routes = traffic.get("dut_routes") or {}
    via = "; ".join(
        f"{_span(of.get('first'), of.get('last'))} via {gateways.get(side)}"
        for side, of in routes.items()
        if of
    )
    return (
        ", ".join(sorted(modes)) or NONE,
        ports or NONE,
        ", ".join(str(address) for address in gateways.values() if address) or "none, hosts on the links",
        via or "none needed",
    )


def _span(first: Any, last: Any) -> str:
    return str(first) if first == last else f"{first} {DASH} {last}"


def shown_deviations(record: CampaignRecord) -> list[ShownDeviation]:
    """Deviations of all results, each once, with the suites that have it."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    pairs = {
        (one.point.suite, one.point.frame_size)
        for one in record.points
        if one.point.is_one_pair and one.values
    }
    for one in record.points:
        for repetition in one.repetitions:
            for requirement, text in (*_deviations(repetition), *_of_addresses(repetition)):
                # A procedure sees no further than itself; the campaign knows the one address pair that its
                # suite began with.
                if requirement == "SEED-02" and (one.point.suite, one.point.frame_size) in pairs:
                    continue
                found.setdefault((requirement, text), {})[one.point.suite] = None
    everywhere = len({one.point.suite for one in record.points if one.repetitions})
    alike: dict[tuple[str, str], list[str]] = {}
    for requirement, text in sorted(found):
        # Those that differ in their numbers alone, such as hosts of each point of a series, are listed once.
        alike.setdefault((requirement, re.sub(r"\d[\d,.]*", "#", text)), []).append(text)
    shown = []
    for (requirement, _), texts in alike.items():
        suites = list(dict.fromkeys(suite for text in texts for suite in found[requirement, text]))
        more = f" ({len(texts)} such, with other numbers)" if len(texts) > 1 else ""
        where = "" if len(suites) == everywhere else ", ".join(suites)
        shown.append(
            ShownDeviation(requirement=requirement, text=f"{max(texts, key=len)}{more}", where=where)
        )
    return shown


def _deviations(repetition: Repetition) -> Iterator[tuple[str, str]]:
    """Deviations as the result states them; if it was cut short, those of its trials."""
    stated = None if repetition.result is None else repetition.result.get("deviations")
    if isinstance(stated, list):
        for deviation in stated:
            yield str(deviation.get("requirement")), str(deviation.get("text"))
        return
    trials = list(repetition.trials)
    has_full_length = any(trial.is_full_length for trial in trials)
    for trial in trials:
        for of_trial in trial.result.deviations:
            # Short trials within a search are allowed.
            if of_trial.requirement != FULL_LENGTH_FINDING or trial.is_full_length or not has_full_length:
                yield of_trial.requirement, of_trial.text


def _of_addresses(repetition: Repetition) -> Iterator[tuple[str, str]]:
    """That of a plan file whose addresses are not reserved for benchmarking. The result of a search does not
    state it, and the plan that was sent does."""
    for search in repetition.searches:
        outside = search.plan.get("not_reserved")
        if isinstance(outside, list):
            version = 6 if search.plan.get("ip_version") == 6 else 4
            found = not_reserved(version, [str(each) for each in outside])
            yield found.requirement, found.text


def repeat_facts(record: CampaignRecord) -> list[tuple[str, str | None]]:
    """Seeds and versions, in addition to the command."""
    seeds = sorted({repetition.seed for found in record.points for repetition in found.repetitions})
    own = record.spec.get("seed")
    shown = (
        (f"{format_count(len(seeds))} different seeds, one for each repetition (listed at each point)")
        if len(seeds) > 3
        else ", ".join(map(str, seeds))
    )
    facts: list[tuple[str, str | None]] = [
        ("file", record.path.name),
        ("started", show_time(record.created_at)),
    ]
    facts += [("finished", show_time(record.finished_at) if record.finished_at else "not finished")]
    facts += [] if own is None else [("seed of the campaign", str(own))]
    facts += [("seeds", shown or "none yet")]
    return [
        *facts,
        *((f"version of {name.replace('_', ' ')}", str(value)) for name, value in record.versions.items()),
    ]


def commands_of(record: CampaignRecord) -> list[str]:
    """As they can be typed."""
    return [shlex.join(command) for command in record.commands]


def spec_text(record: CampaignRecord) -> str:
    """Empty for a run."""
    return json.dumps(record.spec, indent=2, ensure_ascii=False, default=str) if record.spec else ""
