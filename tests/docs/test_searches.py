# SPDX-License-Identifier: Apache-2.0
"""The times in docs/explanation/searches.md are those that the bench recorded, and the fields in result.md
are those that there are."""

from __future__ import annotations

import json
import re

from evenhand.search import MlrGoal, MlrGoals, ThroughputGoal, find_goals, find_throughput
from evenhand.trial import SimulatedMeasurer
from tests.docs.documents import ROOT

PAGE = (ROOT / "docs/explanation/searches.md").read_text()
RESULT = (ROOT / "docs/reference/result.md").read_text()


def test_the_times_of_a_search_are_those_of_the_bench() -> None:
    """A number in a document comes from a real run."""
    rows = {
        row["device"]: row
        for row in json.loads((ROOT / "bench/results/search_time.json").read_text())["rows"]
    }
    table = PAGE.split("<!-- search-time -->")[1].split("<!-- /search-time -->")[0]
    shown = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in table.strip().splitlines()[2:]
    ]
    assert len(shown) >= 5
    for device, plain, guided, ten in shown:
        row = rows[device]
        assert plain == f"{row['plain']['seconds']:,.0f} s"
        assert guided == f"{row['guided']['seconds']:,.0f} s, 1/{1 / row['one_share']:.1f}"
        assert ten == f"1/{1 / row['ten_share']:.1f}"


def test_every_field_of_a_search_is_documented() -> None:
    device = SimulatedMeasurer(limit_fps=640_000)
    goals = MlrGoals(goals=(MlrGoal(name="NDR", final_duration_s=2, duration_sum_s=4),), max_fps=1e6)
    mlr = find_goals(device, goals).to_document()
    binary = find_throughput(device, ThroughputGoal(max_fps=1e6)).to_document()
    section = RESULT.split("## The search")[1]
    named = set(re.findall(r"`(\w+)`", section))
    fields = {*mlr, *mlr["goal"], *mlr["goals"][0], *binary, *binary["goal"]}
    assert fields - named == set()
