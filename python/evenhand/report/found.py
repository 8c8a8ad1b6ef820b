# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a procedure has found, as a table and as the lines below it: the same of a live result, of
one in a run file, and on a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evenhand.base.table import Cell, Column, Table, measured
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.registry import (
    BACK_TO_BACK,
    BURST,
    CAPACITY,
    CONNECTIONS,
    IPDV,
    LATENCY,
    LOSS,
    PDV,
    RECOVERY,
    TEAR_DOWN,
    THROUGHPUT,
)
from evenhand.report.back_to_back import (
    IN_LINES,
    back_to_back_lines,
    back_to_back_sizes_lines,
    back_to_back_table,
    burst_conditions,
    burst_lines,
    burst_table,
    join_bursts,
)
from evenhand.report.connections import capacity_lines, rate_lines, tear_down_lines
from evenhand.report.delay import delay_conditions, delay_lines, delay_table
from evenhand.report.loss import loss_conditions, loss_lines, loss_table
from evenhand.report.page_words import NONE
from evenhand.report.recovery import recovery_conditions, recovery_lines, recovery_table
from evenhand.report.result_entry import (
    RepeatedEntry,
    ResultEntry,
    describe_conditions,
    deviation_lines,
    dut_lines,
    size_of,
    table_of,
    text,
    trials_lines,
    with_spaces,
)
from evenhand.report.table import OF_LIMIT, loss_sizes_table, rows_of, table_lines, throughput_sizes_table
from evenhand.report.throughput import goals_table, throughput_lines
from evenhand.report.trial import trials_table
from evenhand.results.throughput import ThroughputFound

Joining = Callable[[Sequence[Any], Mapping[str, Any], ThroughputFound | None], Any]
"""Makes one result of several that the verb's run file has one by one: of what each found, the document of
their goal, and the throughput that was measured first. None if they are whole results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReport:
    """How the results of a procedure are shown: by what was found, but for `conditions` and `sizes_lines`."""

    table: Callable[[Sequence[ResultEntry]], Table]
    """The table of one result, or of several."""
    lines: Callable[[ResultEntry], list[str]]
    """What its table does not say."""
    conditions: Callable[[Any], list[str]] = lambda result: []
    """The first lines below the table of a live result, whose plan is known."""
    repeated: Callable[[Sequence[RepeatedEntry]], Table] | None = None
    """The table over repetitions and frame sizes."""
    sizes_lines: Callable[[Any], list[str]] | None = None
    """All lines below the table of a live result of several frame sizes."""
    join: Joining | None = None
    is_of_figures: bool = False
    """The table has the outcome and the one number alone."""
    has_trials_table: bool = False
    """A live result is shown with a table of all its trials."""


def report_of(procedure: Procedure) -> ResultReport:
    """One that is not part of Evenhand is shown by its outcome and its one number."""
    return REPORTS.get(procedure.name) or _figure_report(procedure, lambda entry: [])


def found_tables(result: Any, procedure: Procedure, *, title: str = "Trials") -> list[Table]:
    """The tables of a live result.

    Args:
        title: Title of the table of its trials, if there is one.
    """
    report, entry = report_of(procedure), entry_of(result, procedure)
    rows = entry.document.get("rows")
    if report.repeated is not None and rows is not None:
        return [report.repeated(rows_of(entry.document, procedure))]
    trials = [trials_table(result.search.trials, title=title)] if report.has_trials_table else []
    of_rows = [ResultEntry(document=row, found=procedure.read(row)) for row in rows or []]
    table = report.table([entry] if rows is None else of_rows)
    return [*trials, table] if table.rows or not trials else trials


def found_lines(result: Any, procedure: Procedure) -> list[str]:
    """The lines below it."""
    report, entry = report_of(procedure), entry_of(result, procedure)
    if report.sizes_lines is not None and "rows" in entry.document:
        return [*report.sizes_lines(result), *deviation_lines(entry.document)]
    profile = getattr(result, "profile", None)
    closing = (
        []
        if profile is None
        else [
            *profile.sent_lines,
            *dut_lines(profile.dut),
            *trials_lines(entry.trials, is_decided=_is_decided(entry.document)),
        ]
    )
    return [*report.conditions(result), *report.lines(entry), *closing, *deviation_lines(entry.document)]


def entry_of(result: Any, procedure: Procedure) -> ResultEntry:
    """A live result, as its document."""
    document, profile = result.to_document(), getattr(result, "profile", None)
    found = None if "rows" in document else procedure.read(document)
    return ResultEntry(
        document=document,
        found=found,
        value=None if found is None else procedure.value_of(found),
        trials=[getattr(trial, "result", trial) for trial in getattr(result, "trials", ())],
        own_loop=getattr(getattr(result, "own_loop", None), "trial", None),
        labels=size_of(document),
        conditions="" if profile is None else describe_conditions(profile),
    )


def figure_table(procedure: Procedure, entries: Sequence[ResultEntry]) -> Table:
    """How each result ended, and its one number."""
    return table_of(
        ((entry.labels, [_figure_row(procedure, entry)]) for entry in entries),
        [Column("outcome"), f"#{procedure.figure.name}"],
        title=procedure.name,
    )


def _figure_row(procedure: Procedure, entry: ResultEntry) -> list[str | Cell]:
    return [
        with_spaces(text(entry.document, "outcome")),
        measured(entry.value, procedure.figure.unit, none=NONE),
    ]


def _is_decided(document: Mapping[str, Any]) -> bool:
    """Whether the result does not depend on loads that the tester did not keep. Each one of a
    series of loads is a result."""
    return "points" not in document and document.get("outcome") != "tester_ceiling"


def _figure_report(procedure: Procedure, lines: Callable[[ResultEntry], list[str]]) -> ResultReport:
    return ResultReport(
        table=lambda entries: figure_table(procedure, entries), lines=lines, is_of_figures=True
    )


_DELAY = ResultReport(table=delay_table, lines=delay_lines, conditions=delay_conditions)
REPORTS: dict[str, ResultReport] = {
    THROUGHPUT.name: ResultReport(
        table=lambda entries: goals_table(entries[0].found),
        lines=throughput_lines,
        has_trials_table=True,
        repeated=partial(throughput_sizes_table, leave_out=(OF_LIMIT,)),
        sizes_lines=table_lines,
    ),
    LOSS.name: ResultReport(
        table=loss_table,
        lines=loss_lines,
        conditions=loss_conditions,
        repeated=loss_sizes_table,
        sizes_lines=table_lines,
    ),
    **dict.fromkeys((LATENCY.name, PDV.name, IPDV.name), _DELAY),
    BACK_TO_BACK.name: ResultReport(
        table=partial(back_to_back_table, leave_out=IN_LINES),
        lines=back_to_back_lines,
        sizes_lines=lambda result: back_to_back_sizes_lines(
            result, [BACK_TO_BACK.read(row.to_document()) for row in result.rows]
        ),
        join=join_bursts,
    ),
    BURST.name: ResultReport(table=burst_table, lines=burst_lines, conditions=burst_conditions),
    RECOVERY.name: ResultReport(table=recovery_table, lines=recovery_lines, conditions=recovery_conditions),
    CONNECTIONS.name: _figure_report(CONNECTIONS, rate_lines),
    TEAR_DOWN.name: _figure_report(TEAR_DOWN, tear_down_lines),
    CAPACITY.name: _figure_report(CAPACITY, capacity_lines),
}
"""By the names of procedures; one line here is all that a table of its own takes."""
