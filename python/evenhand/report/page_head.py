# SPDX-License-Identifier: Apache-2.0
"""Station 10: what comes first on a page: the DUT in one line, the results in a few, and the summary
table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.analysis import Analysis, BiasVerdict
from evenhand.base.table import Cell, Table, make_table
from evenhand.base.units import format_count, format_ratio
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.page_facts import KINDS, LAB_DUTS
from evenhand.report.page_words import (
    addresses_of,
    load_words,
    show_addresses,
    show_fact,
    show_median,
    show_size,
    show_version,
    version_of_plan,
)
from evenhand.report.summary import summary_table
from evenhand.results.throughput import ThroughputFound
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.figures import sustainable_of

HASHES = {"type1": "addresses only (type 1)", "type2": "addresses and ports (type 2)"}
MOST_SIGNS = 90
"""Most characters of one fact in the line; the whole is under Conditions."""
MOST_BEDS = 3
FOLDED = ("suite", "metric", "IP version", "hash", "frame size")
"""Columns of the summary that leave it for its caption where all rows have the same in them, so that it needs
no more than the width of a page."""


def dut_line(record: CampaignRecord) -> str:
    """`DUT: the reference router, on this machine; AMD EPYC; kernel 6.1.0; hashes addresses only (type 1).`
    What is unknown is left out."""
    beds = list(record.testbeds.values())
    parts = (
        [part for bed in beds[:1] for part in _of_bed(bed, record.host, record.points)]
        if len(beds) == 1
        else _of_several(record)
    )
    hashes = [
        HASHES.get(str(one), str(one))
        for one in dict.fromkeys(found.point.hash_type for found in record.points)
        if one
    ]
    parts += [f"hashes {', or '.join(hashes)}"] if hashes else []
    return f"DUT: {'; '.join(parts) or 'not described'}."


def _of_bed(bed: Mapping[str, Any], host: Mapping[str, Any], points: Sequence[PointRecord]) -> Iterator[str]:
    """What it is, its machine, its kernel; a DUT on this machine has the host's."""
    dut = bed.get("dut")
    facts: Mapping[str, Any] = dut if isinstance(dut, Mapping) else {}
    kind = facts.get("kind")
    if kind is not None:
        yield _short(KINDS.get(str(kind), str(kind)))
    else:
        yield from _of_lab(bed.get("own_dut"))
    on_host = str(kind) in KINDS
    for name, of_host in (
        ("machine", "machine"),
        ("cpu_model", "cpu_model"),
        ("nic", None),
        ("system", "distribution"),
    ):
        fact = facts.get(name) or (host.get(of_host) if on_host and of_host else None)
        if fact is not None and not str(fact).startswith("none:"):  # a program has no NIC
            yield _short(show_fact(fact) or "")
    kernel = facts.get("kernel") or (host.get("kernel") if on_host else None)
    if kernel is not None:
        yield f"kernel {_short(show_fact(kernel) or '')}"
    if facts.get("flow_hash") is not None and not any(found.point.hash_type for found in points):
        yield f"RSS: {_short(show_fact(facts['flow_hash']) or '')}"


def _of_lab(own: Any) -> Iterator[str]:
    """The fact that the DUT of a lab is not a box of its own."""
    what = LAB_DUTS.get(str(own.get("dut"))) if isinstance(own, Mapping) else None
    if what is not None:
        emulated = ", emulated without KVM" if own.get("accelerator") == "tcg" else ""
        translator = own.get("translator")
        translates = f", which translates by {_short(str(translator))}" if isinstance(translator, str) else ""
        rules = own.get("firewall_rules")
        firewall = f", with a firewall of {format_count(rules)} rules" if isinstance(rules, int) else ""
        yield f"{what}{emulated}{translates}{firewall}"


def _of_several(record: CampaignRecord) -> list[str]:
    names = list(record.testbeds)
    more = f" and {len(names) - MOST_BEDS} more" if len(names) > MOST_BEDS else ""
    return (
        [f"{len(names)} testbeds ({', '.join(map(_short, names[:MOST_BEDS]))}{more}), described below"]
        if names
        else []
    )


def _short(text: str) -> str:
    return text if len(text) <= MOST_SIGNS else f"{text[: MOST_SIGNS - 4]} ..."


STYLES = {"hides": "bad", "same": "good", "not_lower": "good", "not_much_lower": "open"}


def first_verdicts(analysis: Analysis) -> list[BiasVerdict]:
    """The first verdict of each IP version, in the order of the report: those with which the page begins."""
    first: dict[str, BiasVerdict] = {}
    for verdict in analysis.bias:
        first.setdefault(version_of_plan(verdict.plan), verdict)
    return list(first.values())


def head_verdicts(analysis: Analysis) -> list[Mapping[str, str]]:
    """Sentence, how sure it is, and colour: bad where one pair hides what the DUT does. One that says that
    there is none yet, if so."""
    found: list[Mapping[str, str]] = [
        {
            "version": version_of_plan(verdict.plan),
            "text": verdict.sentence,
            "small": " ".join(part for part in (verdict.certainty, verdict.predicted) if part),
            "style": STYLES.get(verdict.finding, "open"),
        }
        for verdict in first_verdicts(analysis)
    ]
    return found or [{"version": "", "text": analysis.verdict, "small": "", "style": "open"}]


def headline_figures(record: CampaignRecord) -> list[str]:
    """`IPv6: throughput 80 kfps per direction, with 64 x 64 addresses, 64 octets.`: of the first procedure,
    with the most addresses."""
    measured = [found for found in record.points if found.values]
    if not measured:
        return []
    procedure = measured[0].point.procedure
    best: dict[str, PointRecord] = {}
    for found in measured:
        version = show_version(found.point)
        if found.point.procedure == procedure and (
            version not in best or addresses_of(found.point) > addresses_of(best[version].point)
        ):
            best[version] = found
    return [_headline(version, found) for version, found in sorted(best.items())]


def _headline(version: str, found: PointRecord) -> str:
    point = found.point
    unlike = load_words(point).removeprefix(", ")
    is_rate = PROCEDURES[point.procedure].figure.unit == "fps"
    per_direction = " per direction" if is_rate and not unlike else ""
    median = show_median(found).replace(">= ", "at least ")
    conditions = [
        show_addresses(point),
        show_size(point),
        *([unlike] if unlike else []),
        *([f"hash {point.hash_type}"] if point.hash_type else []),
        *([f"loss up to {format_ratio(ratio)}"] if (ratio := _allowed_loss(found)) else []),
    ]
    limit = ": no higher load could be decided on this machine" if found.is_testers else ""
    return (
        f"{version}: {PROCEDURES[point.procedure].figure.name} {median}{per_direction}"
        f" ({', '.join(conditions)}){limit}"
    )


def _allowed_loss(found: PointRecord) -> float:
    """Loss ratio of a search that counts trials with some loss as passed; 0 if it does not state it."""
    results = (each.found for each in found.repetitions)
    return max((each.goal.loss_ratio for each in results if isinstance(each, ThroughputFound)), default=0.0)


def _whole(text: str) -> str:
    """A number stays in a line with its unit, but for a unit that is too long for a table of this width."""
    return text if " connections" in text else re.sub(r"(?<=\d) (?=[A-Za-z%])", "\N{NO-BREAK SPACE}", text)


def folded_summary(record: CampaignRecord) -> Table | None:
    """As `export --table summary` writes it, but for columns that say the same in every row. None without
    points."""
    table = summary_table(record)
    rows = [
        [Cell(_whole(cell.text), "flag" if cell.text == "no number" else "") for cell in row]
        for row in table.rows
    ]
    filling = sum(
        any(sustainable_of(each) is not None for each in found.repetitions) for found in record.points
    )
    which = "1 point rests" if filling == 1 else f"{filling} points rest"
    remark = (
        f" {which} on trials in which a queue of the DUT was filling: longer trials would"
        " refute it (see its facts)."
        if filling
        else ""
    )
    return make_table(table.columns, rows, caption=table.caption + remark, fold=FOLDED) if rows else None
