# SPDX-License-Identifier: Apache-2.0
"""What page, documents and exports say of figures that are not quite what their names are: the worst case of
few tags, a longest burst, a throughput that a queue has helped."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from evenhand.procedure import DelayTest
from evenhand.report.campaign_rows import rows_of
from evenhand.report.page_head import folded_summary
from evenhand.report.page_points import shown_suites
from evenhand.report.page_tables import burst_table, latency_table, variation_table
from evenhand.run.campaign_record import PointRecord
from tests.analysis.records import point, record
from tests.procedure.test_back_to_back import GOAL, LINE_FPS, LONGEST, measure
from tests.procedure.test_delay import goal_of, repeat


def with_result(found: PointRecord, result: dict[str, Any]) -> PointRecord:
    return replace(found, repetitions=tuple(replace(one, result=result) for one in found.repetitions))


@pytest.mark.parametrize(("tags", "is_maximum"), [(500, True), (1000, False)])
def test_page_json_and_exports_say_that_the_worst_case_of_few_tags_is_their_maximum(
    tags: int, is_maximum: bool
) -> None:
    """R8219-09: of 500 values the 99.9th percentile is the highest (RFC 2330, 11.3)."""
    document = repeat(replace(goal_of(), tagged_frames=tags)).to_document()
    assert document["is_worst_case_maximum"] is is_maximum
    found = record(with_result(point(1, [5.0], procedure="latency"), document))
    table = latency_table(found)
    assert table is not None
    said = f"With {tags:,} tagged frames in a repetition the 99.9th percentile is their maximum"
    assert (said in table.caption) is is_maximum
    assert [row["is_worst_case_maximum"] for row in rows_of(found, "repetitions")] == [is_maximum]
    assert [row["is_worst_case_maximum"] for row in rows_of(record(point(1, [5.0])), "repetitions")] == [None]


def test_the_page_says_how_exact_the_pdv_is() -> None:
    """R8219-12; not of a run of before it was recorded."""
    document = repeat(goal_of(DelayTest.PDV)).to_document()
    for resolution_ns in (8.0, None):
        for figures in document["figures"].values():
            figures["pdv_resolution_ns"] = resolution_ns
        table = variation_table(record(with_result(point(1, [5.0], procedure="pdv"), document)))
        assert table is not None
        said = "PDV may be too high by at most the width of its class of the histogram: forward 8 ns"
        assert (said in table.caption) is (resolution_ns is not None)


@pytest.mark.parametrize(
    "goal",
    [[], {"test": "latency"}, {"test": "latency", "rate_fps_per_direction": 1e6, "tagged_frames": "5"}],
)
def test_a_goal_of_a_file_that_is_none_is_refused(goal: Any) -> None:
    document = {**repeat(goal_of()).to_document(), "goal": goal}
    with pytest.raises(ValueError, match=r"repetitions\.result\.goal"):
        with_result(point(1, [5.0], procedure="latency"), document)


def test_the_page_marks_buffer_times_that_are_lower_bounds() -> None:
    """R9004-04, R9004-11."""
    held_back = measure(
        replace(GOAL, max_burst_s=0.5 * LONGEST / LINE_FPS, repetitions=1), invalid_trials=range(2, 1000)
    )
    for row, is_bound in ((held_back, True), (measure(), False)):
        found = record(
            with_result(point(1, [float(row.values[0])], procedure="back-to-back"), row.to_document())
        )
        assert found.points[0].is_at_least is is_bound
        table = burst_table(found)
        assert table is not None
        cells = [cell.text for cell in table.rows[0]]
        # Average, minimum, maximum, and both buffer times.
        assert sum(">= " in cell for cell in cells) == (5 if is_bound else 0), cells
        assert f"longest burst tried {row.goal.frames_in(row.longest_s):,}." in table.caption


@pytest.mark.parametrize("told", ["8000", True, math.inf])
def test_what_a_dut_sustains_is_a_number(told: Any) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        with_result(point(1, [9_000.0]), {"sustainable_fps_per_direction": told})


@pytest.mark.parametrize("told", [8_000.0, None, -1.0])
def test_the_page_says_which_points_rest_on_a_queue_that_was_filling(told: Any) -> None:
    found = record(
        with_result(point(1, [9_000.0, 9_100.0]), {"sustainable_fps_per_direction": told}),
        point(16, [9_000.0]),
    )
    table = folded_summary(found)
    assert table is not None
    (suite,) = shown_suites(found)
    facts = [dict(shown.facts) for shown in suite.points]
    if told == 8_000.0:
        assert "1 point rests on trials in which a queue of the DUT was filling" in table.caption
        assert facts[0]["a queue was filling"] == (
            "in 2 of 2 repetitions: longer trials would refute these results; the DUT sustains about 8"
            " kfps (median)"
        )
    else:
        assert "was filling" not in table.caption
        assert "a queue was filling" not in facts[0]
    assert "a queue was filling" not in facts[1]
