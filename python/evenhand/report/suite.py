# SPDX-License-Identifier: Apache-2.0
"""Station 10: several searches of one run side by side, one address pair first (SEED-02)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.table import Cell, Column, Table, make_table, measured
from evenhand.base.units import LOSS, WHOLE_FPS, format_count, format_duration, format_ratio
from evenhand.plan import plan_title
from evenhand.procedure import Profile, WorstTesterFigures, search_deviations, throughput_document
from evenhand.report.throughput import loss_by_direction, verification_lines
from evenhand.rig import read_host_facts
from evenhand.run.campaign_record import AT_LEAST
from evenhand.search import Outcome, ThroughputResult
from evenhand.trial import USUAL_OVERDUE_AFTER_US, Deviation, Limits, TimeLeftOut, Verdict, describe_causes


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """One search of a suite, and what was also seen of the DUT (recorded, never judged: SEED-07)."""

    profile: Profile
    result: ThroughputResult
    dut_neighbors: int | None = None
    """Entries in the DUT's ARP or ND table after the search, where we can look (SEED-19)."""

    def to_document(self) -> dict[str, Any]:
        return {**throughput_document(self.result, self.profile), "dut_neighbors": self.dut_neighbors}


def suite_table(entries: Sequence[SuiteEntry]) -> Table:
    """A row for each search; 80 columns hold it, and `suite_lines` says the rest."""
    titles: list[str | Column] = [
        Column("plan", is_name=True),
        Column("addresses", is_name=True),
        "#octets",
        "#per direction",
        "#loss",
        "outcome",
    ]
    return make_table(titles, map(_row, entries), title="Throughput")


def _row(entry: SuiteEntry) -> list[str | Cell]:
    result, final = entry.result, entry.result.final_trial
    return [
        entry.profile.plan.title,
        entry.profile.traffic.count_words,
        str(entry.profile.frame_size),
        measured(result.throughput_fps, WHOLE_FPS, bound=AT_LEAST if result.is_at_least else ""),
        measured(None if final is None else final.loss_ratio, LOSS),
        _words(result.outcome),
    ]


def suite_lines(entries: Sequence[SuiteEntry]) -> list[str]:
    """What a reader must know of the table: comparison, trials, loss ratio, limits of the tester, deviations,
    each once."""
    lines = [*_comparisons(entries), *map(_search_line, entries)]
    ratios = sorted({entry.result.goal.loss_ratio for entry in entries} - {0.0})
    if ratios:
        lines.append(
            "A load passed with a loss ratio of at most"
            f" {', '.join(map(format_ratio, ratios))}; this is not the zero loss of RFC 2544."
        )
        for entry in entries:
            lost = loss_by_direction(entry.result.losses)
            lines += (
                []
                if lost is None
                else [f"{entry.profile.plan.label}, {entry.profile.address_words}: lost at that load {lost}."]
            )
    lines += dict.fromkeys(line for entry in entries for line in verification_lines(entry.result.goal))
    lines += dict.fromkeys(line for entry in entries for line in sent_lines(entry.profile))
    limits = {entry.profile.theoretical_fps for entry in entries}
    if limits == {None}:
        lines.append("Theoretical limit: unknown, because the ports do not know their line rate.")
    neighbors = [entry.dut_neighbors for entry in entries if entry.dut_neighbors is not None]
    if neighbors:
        lines.append(
            f"Entries in the neighbour table of the DUT after each search: {', '.join(map(str, neighbors))}."
        )
    lines += [deviation.line for deviation in suite_deviations(entries)]
    return lines


def limit_lines(entries: Sequence[SuiteEntry]) -> list[str]:
    """A sentence if the tester was the limit, because the router passed the most that it keeps."""
    limited = [entry for entry in entries if entry.result.outcome is Outcome.AT_OR_ABOVE_MAXIMUM]
    if not limited:
        return []
    searches = (
        "every search" if len(limited) == len(entries) else f"{len(limited)} of {len(entries)} searches"
    )
    kept = "the highest load that the tester itself can keep here"
    return [
        f"In {searches} the tester is the limit, not the router: the router passed {kept},"
        " and may be able to forward more."
    ]


def closing_lines(
    entries: Sequence[SuiteEntry],
    ceilings: Mapping[str, float],
    limits: Sequence[Limits],
    lab: Mapping[str, Any],
) -> list[str]:
    """The lines below the table of a suite in a Linux lab; first of all whether the limit of its router was
    reached.

    Args:
        ceilings: The load that the tester itself keeps, by the name of the plan.
        limits: Limits by which the trials were judged.
        lab: Its facts.
    """
    host = read_host_facts()
    overdue = sorted({each.overdue_after_us or 0 for each in limits})
    tolerance = max(each.overdue_tolerance for each in limits)
    kept = ", ".join(f"{format_count(fps)} with {plan_title(name)}" for name, fps in ceilings.items())
    return [
        *limit_lines(entries),
        f"DUT: Linux {lab['kernel']}, forwarding on CPU {lab['dut_cpu']} of {host['cpu_model']}; tester"
        f" on CPU {lab['tester_cpus']}"
        f"{' (a virtual machine: expect noise)' if host['is_virtual_machine'] else ''}.",
        "Protocol UDP, addresses and ports pseudorandom, both directions at once; the tester itself keeps at"
        " least"
        f" {kept} fps per direction.",
        f"A frame counts as overdue from {' and '.join(f'{limit:.0f}' for limit in overdue)} us"
        f" on (default {USUAL_OVERDUE_AFTER_US:.0f} us), and {format_ratio(tolerance)}"
        f" of overdue frames are allowed (default {format_ratio(Limits().overdue_tolerance)}),"
        " because a virtual machine loses its CPUs for short times.",
        *suite_lines(entries),
    ]


def sent_lines(profile: Profile) -> list[str]:
    """What was sent, without the MACs: they are the same device's in every search, and the documents have
    them."""
    return profile.traffic.lines(seed=profile.seed, host_macs=profile.host_macs)


def suite_deviations(entries: Sequence[SuiteEntry]) -> list[Deviation]:
    """Deviations of all searches, each once."""
    found = {
        (d.requirement, d.text): d
        for entry in entries
        for d in search_deviations(entry.result, entry.profile)
    }
    return sorted(found.values(), key=lambda deviation: deviation.requirement)


def _search_line(entry: SuiteEntry) -> str:
    """The trials of a search, what the tester let slip, and what is known where no throughput was found."""
    result, figures = entry.result, WorstTesterFigures.of(t.result for t in entry.result.trials)
    parts = [f"{result.count(verdict)} {verdict}" for verdict in Verdict]
    said = [f"trials {', '.join(parts)}"]
    if result.throughput_fps is not None:
        least = "at least " if result.is_at_least else ""
        said.append(f"{least}{format_count(entry.profile.total_fps(result.throughput_fps))} fps in total")
    if result.outcome not in (Outcome.FOUND, Outcome.BELOW_MINIMUM):
        rates = [("passed", result.highest_passed_fps), ("really offered", result.highest_offered_fps)]
        shown = ", ".join(
            f"highest load {what} {'none' if rate is None else format_count(rate) + ' fps'}"
            for what, rate in rates
        )
        said.append(f"{_words(result.outcome)}: {shown} per direction")
    if figures.max_overdue_us is not None and figures.max_poll_gap_us is not None:
        late, gap = (
            format_duration(value_us / 1e6) for value_us in (figures.max_overdue_us, figures.max_poll_gap_us)
        )
        said.append(f"tester late by at most {late}, poll gap {gap}")
    left_out = TimeLeftOut.of(trial.result for trial in result.trials)
    if left_out is not None:
        said.append(f"time left out: {left_out.text}")
    if figures.is_of_invalid_trials:
        said.append(f"no trial was valid ({describe_causes(figures.invalid_reasons)})")
    return f"{entry.profile.plan.label}, {entry.profile.address_words}: {'; '.join(said)}."


def _words(outcome: Outcome) -> str:
    return str(outcome).replace("_", " ")


def _comparisons(entries: Sequence[SuiteEntry]) -> list[str]:
    """Many addresses against one pair, where both were found under the same conditions."""
    lines = []
    single = {entry.profile.plan.name: entry for entry in entries if entry.profile.traffic.is_one_pair}
    for entry in entries:
        one = single.get(entry.profile.plan.name)
        if one is None or entry is one or entry.profile.frame_size != one.profile.frame_size:
            continue
        if entry.result.outcome is Outcome.FOUND and one.result.outcome is Outcome.FOUND:
            assert entry.result.throughput_fps is not None
            assert one.result.throughput_fps is not None
            ratio = entry.result.throughput_fps / one.result.throughput_fps
            lines.append(
                f"{entry.profile.plan.title}: with {entry.profile.address_words} the DUT forwards"
                f" {ratio:.2f} times what it forwards with one address pair (one search"
                " each, so the spread is not known)."
            )
    return lines
