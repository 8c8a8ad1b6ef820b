# SPDX-License-Identifier: Apache-2.0
"""Station 10, report: tables and documents of results; never runs anything."""

from evenhand.report.back_to_back import back_to_back_lines, back_to_back_table
from evenhand.report.burst import burst_lines, burst_table
from evenhand.report.comparison import (
    comparison_document,
    comparison_lines,
    comparison_tables,
    differences_table,
)
from evenhand.report.delay import delay_lines, delay_table
from evenhand.report.learning import learning_lines, learning_status
from evenhand.report.loss import loss_lines, loss_table
from evenhand.report.measured import measured_report
from evenhand.report.mlr import goals_table, mlr_lines, search_lines, search_tables
from evenhand.report.pcap import make_pcap
from evenhand.report.proof import (
    GENERATOR_NAMES,
    ProofJudgement,
    contrast_lines,
    contrast_table,
    fields_table,
    judge_proof,
    pairs_table,
    proof_lines,
)
from evenhand.report.recovery import recovery_lines, recovery_table
from evenhand.report.suite import SuiteEntry, suite_deviations, suite_lines, suite_table
from evenhand.report.table import loss_sizes_table, table_lines, throughput_sizes_table
from evenhand.report.throughput import (
    VERDICT_STYLES,
    describe_load,
    describe_sending,
    summary_lines,
    trials_table,
)
from evenhand.report.trial import trial_report

__all__ = [
    "GENERATOR_NAMES",
    "VERDICT_STYLES",
    "ProofJudgement",
    "SuiteEntry",
    "back_to_back_lines",
    "back_to_back_table",
    "burst_lines",
    "burst_table",
    "comparison_document",
    "comparison_lines",
    "comparison_tables",
    "contrast_lines",
    "contrast_table",
    "delay_lines",
    "delay_table",
    "describe_load",
    "describe_sending",
    "differences_table",
    "fields_table",
    "goals_table",
    "judge_proof",
    "learning_lines",
    "learning_status",
    "loss_lines",
    "loss_sizes_table",
    "loss_table",
    "make_pcap",
    "measured_report",
    "mlr_lines",
    "pairs_table",
    "proof_lines",
    "recovery_lines",
    "recovery_table",
    "search_lines",
    "search_tables",
    "suite_deviations",
    "suite_lines",
    "suite_table",
    "summary_lines",
    "table_lines",
    "throughput_sizes_table",
    "trial_report",
    "trials_table",
]
