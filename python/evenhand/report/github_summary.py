# SPDX-License-Identifier: Apache-2.0
"""Station 10: a run's test cases as a short Markdown document, for `$GITHUB_STEP_SUMMARY` and comments."""

from __future__ import annotations

from evenhand.report.cases import Case, CaseOutcome, Cases
from evenhand.report.summary import escape_markdown

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
        lines += [_row(titles), _row(["---", "---", "---:", *(["---:"] if has_gate else [])])]
        lines += [_row(_cells(case, has_gate=has_gate)) for case in shown]
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


def _cells(case: Case, *, has_gate: bool) -> list[str]:
    texts = [case.name, case.result or "-", *([case.beside or "-"] if has_gate else [])]
    return [_SIGN[case.outcome], *(escape_markdown(text) for text in texts)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
