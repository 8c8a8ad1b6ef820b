# SPDX-License-Identifier: Apache-2.0
"""Station 10: a run as test cases, for continuous integration: each point is one, and each single trial. As
JUnit XML, and as a short Markdown document for `$GITHUB_STEP_SUMMARY` and comments.

What failed is the DUT; what is an error is not known, and never counts as a failure of the DUT.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree

from evenhand.analysis import Comparison
from evenhand.analysis.comparison_model import Below, FailBy
from evenhand.base.units import format_count
from evenhand.base.visible import visible, visible_lines
from evenhand.procedure.descriptor import show_number
from evenhand.procedure.registry import PROCEDURES
from evenhand.report.flows import failed_flows
from evenhand.report.page_facts import shown_deviations
from evenhand.report.summary import escape_markdown
from evenhand.run import StoredSearch
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState, Repetition
from evenhand.run.figures import TimeLeftOut, show_share, time_left_out_at
from evenhand.search import Role
from evenhand.trial import TrialResult, Verdict


class CaseOutcome(StrEnum):
    """How a test case ended."""

    PASSED = "passed"
    FAILED = "failed"
    """The DUT: a point is worse than the limit of the gate, or a single trial lost more than it may."""
    ERROR = "error"
    """Nothing is known of the DUT: the trial was INVALID, or the point has no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test case. All texts may come from a stranger's file."""

    suite: str
    name: str
    outcome: CaseOutcome
    kind: str = ""
    """What kind of failure or error it is: `below_limit`, `loss`, `invalid`, `no_number`, `not_finished`,
    `not_in_this_run`."""
    message: str = ""
    """Why it did not pass; empty if it did."""
    result: str = ""
    """The figure with its unit; empty without one."""
    beside: str = ""
    """The share of the first run's figure, and what it had to be; empty without a gate."""
    duration_s: float = 0.0
    """For how long it was measured."""
    lines: tuple[str, ...] = ()
    """What a reader should know of it: values, trials, seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A comparison with another run, the first of the two, and what its ratios may not be below."""

    comparison: Comparison
    limit: float
    by: FailBy = "interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """All of a run, in its order."""

    name: str
    started_at: str
    cases: tuple[Case, ...]
    facts: tuple[tuple[str, str], ...] = ()
    """What holds for all of them, by name: versions, command, deviations."""

    def count(self, outcome: CaseOutcome) -> int:
        return sum(case.outcome is outcome for case in self.cases)


def cases_of(record: CampaignRecord, gate: Gate | None = None) -> Cases:
    """A case for each point and for each single trial.

    Args:
        gate: Each point is judged by it too. Points that the first run has and this one has not are errors.
    """
    judged = _judged(gate)
    cases = [_of_point(found, *judged.get(found.point.key, (None, ""))) for found in record.points]
    cases += [_of_trial(search) for search in record.other_searches if search.role is Role.TRIAL]
    return Cases(
        name=record.name,
        started_at=record.created_at,
        cases=(*cases, *_missing(gate)),
        facts=tuple(_facts(record)),
    )


def _judged(gate: Gate | None) -> Mapping[str, tuple[Below | None, str]]:
    """What the gate says of this run's points, by their keys: whether one is below the limit, and what it is
    beside the first run's."""
    if gate is None:
        return {}
    below = {each.key: each for each in gate.comparison.below(gate.limit, gate.by)}
    return {
        other.key: (
            below.get(point.key),
            ""
            if other.performance is None
            else f"{other.performance:.3f} of the first run (at least {gate.limit:g})",
        )
        for point in gate.comparison.points
        for other in point.others
        if other.key is not None
    }


def _missing(gate: Gate | None) -> Iterator[Case]:
    """Points of the first run that this one has not."""
    for point in () if gate is None else gate.comparison.points:
        if point.others[0].key is None:
            yield Case(
                suite="points of the first run",
                name=point.key,
                outcome=CaseOutcome.ERROR,
                kind="not_in_this_run",
                message="the first run has this point, and this run has none that was measured alike",
            )


def _of_point(found: PointRecord, below: Below | None, beside: str) -> Case:
    outcome, kind, message = CaseOutcome.PASSED, "", ""
    point = found.point
    if found.state is PointState.NO_NUMBER:
        outcome, kind, message = CaseOutcome.ERROR, "no_number", found.reason or "no number"
    elif found.state is not PointState.MEASURED:
        done = sum(repetition.finished_at is not None for repetition in found.repetitions)
        outcome, kind = CaseOutcome.ERROR, "not_finished"
        message = f"{format_count(done)} of {format_count(point.repetitions)} repetitions are finished"
    elif below is not None:
        outcome, kind = CaseOutcome.FAILED, "below_limit"
        message = f"{result_of(found)}: {beside}, judged by the {below.by}"
    return Case(
        suite=point.suite,
        name=point.key,
        outcome=outcome,
        kind=kind,
        message=message,
        result=result_of(found),
        beside=beside,
        duration_s=sum(repetition.measured_s for repetition in found.repetitions),
        lines=tuple(_point_lines(found)),
    )


def result_of(found: PointRecord) -> str:
    """`794,000 fps`, `>= 794,000 fps`; empty without a number."""
    statistics, figure = found.statistics, PROCEDURES[found.point.procedure].figure
    if statistics is None:
        return ""
    bound = ">= " if found.is_at_least else ""
    return f"{bound}{show_number(statistics.median, figure)} {figure.shown_unit}"


def _point_lines(found: PointRecord) -> Iterator[str]:
    figure = PROCEDURES[found.point.procedure].figure
    if found.values:
        yield f"{figure.name}: {result_of(found)}, the median of {format_count(len(found.values))}"
    for repetition in found.repetitions:
        value = repetition.value
        bound = ">= " if repetition.is_at_least else ""
        shown = "no number" if value is None else f"{bound}{show_number(value, figure)} {figure.shown_unit}"
        why = "" if repetition.reason is None else f": {repetition.reason}"
        trials = [trial.result for search in repetition.searches for trial in search.trials]
        yield (
            f"repetition {repetition.number}: {shown}, {repetition.outcome or 'not finished'}{why}"
            f" (seed {repetition.seed}, {_verdict_words(trials)})"
        )
        yield from _flow_lines(repetition)
    if found.stopped_early:
        yield f"fewer repetitions than asked for: {found.stopped_early}"
    left_out: TimeLeftOut | None = time_left_out_at(found)
    if left_out is not None:
        yield f"time left out: {show_share(left_out.share)} of the sending time was not judged"


def _flow_lines(repetition: Repetition) -> Iterator[str]:
    """Which flows with limits of their own the deciding trials failed by."""
    for trial in repetition.deciding_trials:
        if failed := failed_flows(trial.result):
            load = f"{trial.result.intended_fps:,.0f} fps"
            yield f"repetition {repetition.number} failed at {load}: {'; '.join(failed)}"


def _verdict_words(trials: list[TrialResult]) -> str:
    counts = {verdict: sum(trial.verdict is verdict for trial in trials) for verdict in Verdict}
    return "trials: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _of_trial(search: StoredSearch) -> Case:
    """The last attempt decides: an INVALID one before it was repeated."""
    if not search.trials:
        return Case(
            suite="trials",
            name=_trial_name(search),
            outcome=CaseOutcome.ERROR,
            kind="not_finished",
            message="the trial did not end",
        )
    last = search.trials[-1].result
    reasons = "; ".join(reason.text for reason in last.reasons)
    outcome, kind, message = {
        Verdict.PASS: (CaseOutcome.PASSED, "", ""),
        Verdict.FAIL: (CaseOutcome.FAILED, "loss", reasons or loss_of(last)),
        Verdict.INVALID: (CaseOutcome.ERROR, "invalid", reasons or "INVALID"),
    }[last.verdict]
    return Case(
        suite="trials",
        name=_trial_name(search),
        outcome=outcome,
        kind=kind,
        message=message,
        result=loss_of(last),
        duration_s=sum(trial.result.intended_duration_s for trial in search.trials),
        lines=tuple(
            f"attempt {trial.attempt}: {trial.result.verdict}"
            + "".join(f"; {reason.code}: {reason.text}" for reason in trial.result.reasons)
            + "".join(f"; flow {failed}" for failed in failed_flows(trial.result))
            for trial in search.trials
        ),
    )


def loss_of(trial: TrialResult) -> str:
    """`12 of 1,000 frames lost`, of all directions together."""
    offered = sum(direction.offered_frames for direction in trial.directions.values())
    return f"{format_count(trial.lost_frames)} of {format_count(offered)} frames lost"


def _trial_name(search: StoredSearch) -> str:
    load = f" at {search.trials[-1].result.intended_fps:,.0f} fps" if search.trials else ""
    return f"{search.name} {search.number}{load}"


def _facts(record: CampaignRecord) -> Iterator[tuple[str, str]]:
    yield "run file", f"{record.path.name}, started {record.created_at}"
    yield "versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())
    for command in record.commands:
        yield "command", shlex.join(command)
    for deviation in shown_deviations(record):
        where = f" ({deviation.where})" if deviation.where else ""
        yield f"deviation from {deviation.requirement}", f"{deviation.text}{where}"


CLASS = "evenhand"
"""Begins the class name of each case, by which readers group them."""
_ELEMENT = {CaseOutcome.FAILED: "failure", CaseOutcome.ERROR: "error"}
_NOT_XML = re.compile("[^\\t\\n\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def to_junit(cases: Cases) -> str:
    """One `testsuites` with a `testsuite` for each suite of the run. What holds for the whole run is in the
    properties of each, and in `system-out` of the first: readers show one or the other."""
    root = ElementTree.Element("testsuites", _xml_counts(cases.cases) | {"name": _xml_text(cases.name)})
    suites: dict[str, list[Case]] = {}
    for case in cases.cases:
        suites.setdefault(case.suite, []).append(case)
    for suite, members in suites.items() or [(cases.name, [])]:
        head = {"name": _xml_text(suite), "timestamp": cases.started_at.removesuffix("Z")[:19]}
        element = ElementTree.SubElement(root, "testsuite", head | _xml_counts(members))
        properties = ElementTree.SubElement(element, "properties")
        for name, value in cases.facts:
            ElementTree.SubElement(
                properties, "property", {"name": _xml_text(name), "value": _xml_text(value)}
            )
        for case in members:
            _add_case(element, case)
        if element is root[0]:
            _add_lines(element, tuple(f"{name}: {value}" for name, value in cases.facts))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _xml_counts(cases: list[Case] | tuple[Case, ...]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome is CaseOutcome.FAILED for case in cases)),
        "errors": str(sum(case.outcome is CaseOutcome.ERROR for case in cases)),
        "skipped": "0",
        "time": f"{sum(case.duration_s for case in cases):.3f}",
    }


def _add_case(suite: ElementTree.Element, case: Case) -> None:
    # A full stop divides packages for readers.
    group = f"{CLASS}.{_xml_text(case.suite).replace('.', '_')}"
    attributes = {"name": _xml_text(case.name), "classname": group, "time": f"{case.duration_s:.3f}"}
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.outcome is not CaseOutcome.PASSED:
        why = {"message": _xml_text(case.message), "type": case.kind}
        found = ElementTree.SubElement(element, _ELEMENT[case.outcome], why)
        found.text = _xml_text(case.message)
    _add_lines(element, case.lines)


def _add_lines(element: ElementTree.Element, lines: tuple[str, ...]) -> None:
    if lines:
        out = ElementTree.SubElement(element, "system-out")
        out.text = "\n".join(_NOT_XML.sub("?", visible_lines(line)) for line in lines)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("?", visible(text))


MOST_CASES = 1000
"""Rows of the table; GitHub shows at most 1 MiB of a step's summary."""
_MOST_FACTS = 200
_SIGN = {CaseOutcome.PASSED: "✅", CaseOutcome.FAILED: "❌", CaseOutcome.ERROR: "⚠️"}
_WORD = {CaseOutcome.PASSED: "passed", CaseOutcome.FAILED: "failed", CaseOutcome.ERROR: "no result"}


def to_github_summary(cases: Cases) -> str:
    """Headline, a table with what did not pass first, the reasons, and in a fold what holds for all. What a
    text has of Markdown or HTML is shown, and not obeyed."""
    shown = sorted(cases.cases, key=lambda case: case.outcome is CaseOutcome.PASSED)[:MOST_CASES]
    counted = [f"{count} {_WORD[of]}" for of in CaseOutcome if (count := cases.count(of))]
    lines = [
        f"### {_sign(cases)} {escape_markdown(cases.name)}: {', '.join(counted) or 'nothing was measured'}",
        "",
    ]
    if shown:
        has_gate = any(case.beside for case in shown)
        titles = ["", "what", "result", *(["beside the first run"] if has_gate else [])]
        lines += [
            _markdown_row(titles),
            _markdown_row(["---", "---", "---:", *(["---:"] if has_gate else [])]),
        ]
        lines += [_markdown_row(_markdown_cells(case, has_gate=has_gate)) for case in shown]
        lines.append("")
    if len(shown) < len(cases.cases):
        lines += [f"{len(cases.cases) - len(shown):,} more passed and are not shown.", ""]
    reasons = [case for case in shown if case.outcome is not CaseOutcome.PASSED]
    lines += [
        f"- {_SIGN[case.outcome]} {escape_markdown(f'{case.name}: {case.message}')}" for case in reasons
    ]
    lines += [""] if reasons else []
    lines += ["<details><summary>How it was measured</summary>", ""]
    lines += [f"- {escape_markdown(f'{name}: {value}')}" for name, value in cases.facts[:_MOST_FACTS]]
    return "\n".join([*lines, "", "</details>", ""])


def _sign(cases: Cases) -> str:
    for outcome in (CaseOutcome.FAILED, CaseOutcome.ERROR):
        if cases.count(outcome):
            return _SIGN[outcome]
    return _SIGN[CaseOutcome.PASSED if cases.cases else CaseOutcome.ERROR]


def _markdown_cells(case: Case, *, has_gate: bool) -> list[str]:
    texts = [case.name, case.result or "-", *([case.beside or "-"] if has_gate else [])]
    return [_SIGN[case.outcome], *(escape_markdown(text) for text in texts)]


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
