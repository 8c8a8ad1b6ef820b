# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a run has measured when it cannot go on, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from evenhand.base.terminal_table import Printable
from evenhand.base.units import format_count
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.result_entry import count_verdicts
from evenhand.report.throughput import describe_outcome, goals_table
from evenhand.report.trial import trial_report, trials_table
from evenhand.run import MeasuredSearch
from evenhand.search import MlrGoals, MlrResult, Outcome, ThroughputResult


def measured_report(searches: Sequence[MeasuredSearch]) -> list[Printable]:
    """Every trial of each search, and for a throughput search how far it came; searches without a trial are
    left out."""
    parts: list[Printable] = []
    for search in searches:
        if search.kind == "trial":
            parts += [trial_report(result) for result in search.results]
        else:
            parts += [
                Text(f"{search.name}: {format_count(r.intended_fps)} fps per direction {r.verdict}")
                for r in search.results
            ]
        if search.goal is None or not search.trials:
            continue
        if isinstance(search.goal, MlrGoals):
            counts = count_verdicts(trial.result.verdict for trial in search.trials)
            goals = [] if search.end is None else [goals_table(THROUGHPUT.read(search.end.to_document()))]
            parts += [trials_table(search.trials), *goals, Text(f"Trials: {len(search.trials)} ({counts}).")]
            continue
        assert not isinstance(search.end, MlrResult)
        result = search.end or ThroughputResult(
            goal=search.goal,
            outcome=Outcome.STOPPED,
            throughput_fps=None,
            upper_fps=None,
            trials=tuple(search.trials),
        )
        found, trials = THROUGHPUT.read(result.to_document()), [trial.result for trial in result.trials]
        least = "at least " if result.is_at_least else ""
        value = (
            ""
            if result.throughput_fps is None
            else f"Throughput: {least}{format_count(result.throughput_fps)} fps per direction. "
        )
        parts += [
            trials_table(
                search.trials,
                title=f"Trials of {search.name}" if search.name != THROUGHPUT.name else "Trials",
            ),
            Text(
                f"{value}Outcome: {describe_outcome(found, trials)}. Trials: {len(trials)}"
                f" ({count_verdicts(trial.verdict for trial in trials)})."
            ),
        ]
    return parts
