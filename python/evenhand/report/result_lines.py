# SPDX-License-Identifier: Apache-2.0
"""Lines below the table of a result that do not depend on its procedure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.base.units import format_count, format_line_rate
from evenhand.procedure import Profile, WorstTesterFigures
from evenhand.report.invalid import next_lines
from evenhand.report.result_entry import mappings
from evenhand.rig import READ_THERE
from evenhand.trial import Deviation, TimeLeftOut, TrialResult, Verdict, join_directions


def describe_conditions(profile: Profile) -> str:
    """`64 octet frames, UDP over IPv4, 1 address pair (gateway-v4); theoretical limit ...`."""
    return (
        f"{profile.frames}, {profile.protocol}, {profile.address_words} ({profile.plan.label});"
        f" theoretical limit {describe_limit(profile)}"
    )


def describe_limit(profile: Profile) -> str:
    """Item (c) of R2544-23."""
    if profile.theoretical_fps is None:
        return "unknown, because the ports do not know their line rate"
    of = "" if profile.line_rate_bps is None else f" ({format_line_rate(profile.line_rate_bps)})"
    return f"{format_count(profile.theoretical_fps)} fps per direction{of}"


def last_reasons(trials: Sequence[TrialResult]) -> str:
    """Why the last trial was INVALID."""
    return "; ".join(reason.text for reason in join_directions(trials[-1].reasons)) if trials else ""


def last_invalid_lines(document: Mapping[str, Any], trials: Sequence[TrialResult]) -> list[str]:
    """How a test at one load ended because the tester could not keep it."""
    if document.get("outcome") != "tester_limit" or not trials:
        return []
    return [
        f"The last trial was INVALID: {last_reasons(trials)}. This tester cannot keep this load,"
        " which says nothing about the DUT."
    ]


def trials_lines(
    trials: Sequence[TrialResult], *, what: str = "Trials", is_decided: bool = False
) -> list[str]:
    """How many trials of each verdict, what the tester showed of itself in them, how much of their time was
    not judged, and what to do if it did not keep a load.

    Args:
        is_decided: The result does not depend on loads that the tester did not keep.
    """
    return [
        f"{what}: {len(trials)} ({count_verdicts(trial.verdict for trial in trials)}). Tester:"
        f" {WorstTesterFigures.of(trials)}.",
        *time_left_out_lines(TimeLeftOut.of(trials)),
        *([] if is_decided else next_lines(trials)),
    ]


def time_left_out_lines(found: TimeLeftOut | None) -> list[str]:
    """Nothing if no trial was judged by its clean time."""
    return [] if found is None else [found.line]


def count_verdicts(verdicts: Iterable[Verdict]) -> str:
    """`3 PASS, 2 FAIL, 0 INVALID`."""
    found = [*verdicts]
    return ", ".join(f"{found.count(verdict)} {verdict}" for verdict in Verdict)


def dut_lines(facts: Mapping[str, str | None] | None) -> list[str]:
    """What the testbed file states of the DUT, what was read there, and what neither states (SEED-81,
    SEED-84).

    Args:
        facts: `dut_facts` of a document.
    """
    if facts is None:
        return []
    known = {_words(name): value for name, value in facts.items() if value is not None}
    read = "; ".join(
        f"{name}: {value.removesuffix(READ_THERE)}"
        for name, value in known.items()
        if value.endswith(READ_THERE)
    )
    stated = "; ".join(f"{name}: {value}" for name, value in known.items() if not value.endswith(READ_THERE))
    missing = ", ".join(_words(name) for name, value in facts.items() if value is None)
    lines = [f"DUT, according to the testbed file: {stated}."] if stated else []
    lines += [f"DUT, as read there: {read}."] if read else []
    return lines + (
        [f"Not stated for the DUT ([dut.facts] in the testbed file): {missing}."] if missing else []
    )


def deviation_lines(document: Mapping[str, Any]) -> list[str]:
    """What the result deviates from; none where the document does not state it."""
    return [
        Deviation(requirement=str(each.get("requirement")), text=str(each.get("text"))).line
        for each in mappings(document, "deviations")
    ]


def _words(name: str) -> str:
    return name.replace("_", " ")
