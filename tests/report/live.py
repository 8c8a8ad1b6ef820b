# SPDX-License-Identifier: Apache-2.0
"""Results of searches as their verb shows them."""

from __future__ import annotations

from dataclasses import replace

from evenhand.base.table import Table
from evenhand.procedure import OnePair, Profile, Throughput
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.found import entry_of, found_lines, found_tables
from evenhand.report.result_entry import ResultEntry
from evenhand.search import SearchResult


def lines_of(result: SearchResult, profile: Profile) -> list[str]:
    """The lines below the tables."""
    return found_lines(Throughput(profile=profile, search=result, is_repetition=True), THROUGHPUT)


def entry_of_search(result: SearchResult, profile: Profile) -> ResultEntry:
    """What these lines are made of."""
    return entry_of(Throughput(profile=profile, search=result), THROUGHPUT)


def tables_of(result: SearchResult, profile: Profile) -> list[Table]:
    """The tables above them."""
    return found_tables(Throughput(profile=profile, search=result), THROUGHPUT)


def line_of_pair(before: OnePair, result: SearchResult, profile: Profile) -> str:
    """What is said of the search with one address pair that was made before."""
    (line,) = (
        line for line in lines_of(result, replace(profile, one_pair=before)) if line.startswith("Before it")
    )
    return line
