# SPDX-License-Identifier: Apache-2.0
"""Station 10: what a procedure has just found, as a table and as the lines below it, by the type of its
result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from evenhand.base.terminal_table import FittedTable
from evenhand.procedure import BackToBackTable, BurstIntervals, DelayResult, FrameLoss, Recovery
from evenhand.procedure.connection_capacity import Capacity
from evenhand.procedure.connection_rate import ConnectionRate
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.repetition import LossTable, ThroughputTable
from evenhand.procedure.tear_down import TearDown
from evenhand.report.back_to_back import back_to_back_lines, back_to_back_table
from evenhand.report.burst import burst_lines, burst_table
from evenhand.report.campaign_status import format_figure
from evenhand.report.connections import capacity_lines, rate_lines, tear_down_lines
from evenhand.report.delay import delay_lines, delay_table
from evenhand.report.loss import loss_lines, loss_table
from evenhand.report.recovery import recovery_lines, recovery_table
from evenhand.report.table import loss_sizes_table, table_lines, throughput_sizes_table


@singledispatch
def found_table(result: Any, procedure: Procedure) -> FittedTable:
    """The table of a result of any other type: how it ended, and its one number."""
    value = procedure.value_of(result.to_document())
    table = FittedTable(procedure.name)
    table.add_column("outcome")
    table.add_column(procedure.figure.name, justify="right")
    table.add_row(
        str(result.outcome).replace("_", " "), "-" if value is None else format_figure(procedure.name, value)
    )
    return table


@singledispatch
def found_lines(result: Any, procedure: Procedure) -> Sequence[str]:
    """The lines of a result of any other type: what it deviates from."""
    deviations = getattr(result, "deviations", [])
    return [each.line for each in deviations]


for _kind, _table, _lines in (
    (FrameLoss, loss_table, loss_lines),
    (LossTable, loss_sizes_table, table_lines),
    (ThroughputTable, throughput_sizes_table, table_lines),
    (DelayResult, delay_table, delay_lines),
    (Recovery, recovery_table, recovery_lines),
    (BurstIntervals, burst_table, burst_lines),
    (BackToBackTable, back_to_back_table, back_to_back_lines),
):
    found_table.register(_kind, lambda result, procedure, of=_table: of(result))
    found_lines.register(_kind, lambda result, procedure, of=_lines: of(result))

found_lines.register(ConnectionRate, lambda result, procedure: rate_lines(result))
found_lines.register(Capacity, lambda result, procedure: capacity_lines(result))
found_lines.register(TearDown, lambda result, procedure: tear_down_lines(result))
