# SPDX-License-Identifier: Apache-2.0
"""Station 10, report: tables and documents of results; never runs anything."""

from evenhand.report.learning import learning_lines, learning_status
from evenhand.report.measured import measured_report
from evenhand.report.mlr import goals_table, mlr_lines, search_document, search_lines, search_tables
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
from evenhand.report.single_pair import OMISSION, RESULTS_OF_THE_DUT, SinglePair
from evenhand.report.suite import SuiteEntry, suite_deviations, suite_lines, suite_table
from evenhand.report.throughput import (
    VERDICT_STYLES,
    Profile,
    WorstTesterFigures,
    collect_deviations,
    describe_load,
    summary_lines,
    throughput_document,
    trials_table,
)
from evenhand.report.trial import trial_report

__all__ = [
    "GENERATOR_NAMES",
    "OMISSION",
    "RESULTS_OF_THE_DUT",
    "VERDICT_STYLES",
    "Profile",
    "ProofJudgement",
    "SinglePair",
    "SuiteEntry",
    "WorstTesterFigures",
    "collect_deviations",
    "contrast_lines",
    "contrast_table",
    "describe_load",
    "fields_table",
    "goals_table",
    "judge_proof",
    "learning_lines",
    "learning_status",
    "make_pcap",
    "measured_report",
    "mlr_lines",
    "pairs_table",
    "proof_lines",
    "search_document",
    "search_lines",
    "search_tables",
    "suite_deviations",
    "suite_lines",
    "suite_table",
    "summary_lines",
    "throughput_document",
    "trial_report",
    "trials_table",
]
