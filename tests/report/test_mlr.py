# SPDX-License-Identifier: Apache-2.0
"""Reports of an MLRsearch: every goal with both bounds, and why a result is irregular."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from evenhand.base.terminal_table import FittedTable
from evenhand.base.units import format_count
from evenhand.plan import make_plan
from evenhand.procedure import Profile
from evenhand.procedure import throughput_document as search_document
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.measured import measured_report
from evenhand.report.throughput import goals_table
from evenhand.run import MeasuredSearch
from evenhand.search import MlrGoal, MlrGoals, MlrResult, ThroughputGoal, find_goals, run_search
from evenhand.trial import SimulatedMeasurer
from tests.report.live import lines_of, tables_of

PROFILE = Profile(
    plan=make_plan("gateway_v6"),
    frame_size=84,
    seed=7,
    directions=("forward", "reverse"),
    line_rate_bps=1e10,
    theoretical_fps=12_019_230,
)
GOALS = MlrGoals(goals=(MlrGoal(name="NDR"), MlrGoal(name="PDR", loss_ratio=0.005)), max_fps=1e6)


def found(
    goals: MlrGoals = GOALS, *, limit_fps: float = 640_000, tester_ceiling_fps: float = math.inf
) -> MlrResult:
    return find_goals(SimulatedMeasurer(limit_fps=limit_fps, tester_ceiling_fps=tester_ceiling_fps), goals)


def shown(*renderables: object) -> str:
    console = Console(file=io.StringIO(), width=400)
    for renderable in renderables:
        console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_goal_is_told_with_both_bounds_and_all_its_attributes() -> None:
    """MLR-11, MLR-02, R2544-23: per direction; a sum is labelled as one."""
    result = found()
    lines = "\n".join(lines_of(result, PROFILE))
    table = shown(FittedTable.of(goals_table(THROUGHPUT.read(result.to_document()))))
    for goal in result.goals:
        assert goal.lower_fps is not None
        assert goal.upper_fps is not None
        assert f"{goal.goal.name} (loss ratio" in lines
        assert (
            f"{goal.lower_fps:,.0f} fps per direction ({2 * goal.lower_fps:,.0f} fps in both directions"
            " together)".split(" (")[0]
            in lines
        )
        assert f"upper bound {goal.upper_fps:,.0f} fps; conditional throughput" in lines
        assert f"{goal.lower_fps:,.0f}" in table
        assert f"{goal.upper_fps:,.0f}" in table
    assert (
        "exceed ratio 50 %, final trial duration 60 s, duration sum 2 min, initial trial duration 1 s, width"
        " 0.5 % of the upper bound" in lines
    )
    assert "UDP over IPv6" in lines
    assert "theoretical limit 12,019,230 fps per direction (10 Gbps)" in lines
    assert table.count("regular") == 2


@pytest.mark.parametrize(
    ("limit_fps", "tester_ceiling_fps", "words"),
    [
        (2e6, math.inf, "at or above the maximum of 1,000,000 fps"),
        (10, math.inf, "below the minimum of 1,000 fps"),
        (640_000, 300_000, "tester ceiling"),
    ],
)
def test_an_irregular_result_says_why(limit_fps: float, tester_ceiling_fps: float, words: str) -> None:
    """MLR-10."""
    result = found(limit_fps=limit_fps, tester_ceiling_fps=tester_ceiling_fps)
    table = shown(FittedTable.of(goals_table(THROUGHPUT.read(result.to_document()))))
    assert table.count("irregular") == 2
    assert words in table
    assert "irregular (" in lines_of(result, PROFILE)[0]
    if "tester" in words:
        limit = f"{format_count(result.above_ceiling_fps or 0)} fps per direction"
        said = (
            f"Every trial at {limit} was INVALID: this tester cannot keep that load, which"
            " says nothing about the DUT."
        )
        assert said in lines_of(result, PROFILE)


def test_what_the_rfc_only_recommends_is_told_as_a_deviation() -> None:
    """MLR-05, MLR-12."""
    goals = replace(
        GOALS,
        goals=(MlrGoal(name="NDR", width=0.001, final_duration_s=30), MlrGoal(name="PDR", loss_ratio=0.01)),
    )
    result = found(goals)
    assert any(
        line.startswith("Deviation from MLR-12: the width of PDR") for line in lines_of(result, PROFILE)
    )
    assert {"MLR-05", "MLR-12"} <= {d["requirement"] for d in search_document(result, PROFILE)["deviations"]}


def test_the_document_is_json_and_holds_every_trial() -> None:
    result = found()
    document = json.loads(json.dumps(search_document(result, PROFILE), allow_nan=False))
    assert [goal["name"] for goal in document["goals"]] == ["NDR", "PDR"]
    assert len(document["trials"]) == len(result.trials)
    assert document["throughput_fps_total"] == 2 * document["goals"][0]["lower_fps_per_direction"]


def test_one_way_to_show_them_all() -> None:
    binary = run_search(SimulatedMeasurer(limit_fps=640_000), ThroughputGoal(max_fps=1e6))
    assert len(tables_of(binary, PROFILE)) == 1
    assert lines_of(binary, PROFILE)[0].startswith("Throughput: ")
    assert len(tables_of(found(), PROFILE)) == 2
    assert lines_of(found(), PROFILE)[0].startswith("NDR ")


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_search_that_cannot_be_stored_is_shown(is_ended: bool) -> None:
    """D11: nobody should lose an hour of trials to a full disk."""
    result = found()
    search = MeasuredSearch(
        name="throughput",
        kind="throughput",
        goal=GOALS,
        trials=list(result.trials),
        end=result if is_ended else None,
    )
    text = shown(*measured_report([search]))
    assert f"Trials: {len(result.trials)} (" in text
    assert ("Goals, loads per direction" in text) == is_ended


def test_a_lower_bound_that_longer_trials_would_refute_says_so() -> None:
    """RFC 9971 stands; the sustainable load is beside it, in text and JSON, for each goal."""
    deep = find_goals(
        SimulatedMeasurer(limit_fps=8_000, buffer_frames=10_000_000), replace(GOALS, max_fps=9_000.0)
    )
    document = deep.to_document()
    assert document["sustainable_fps_per_direction"] == pytest.approx(8_000)
    assert [goal["sustainable_fps_per_direction"] for goal in document["goals"]] == [pytest.approx(8_000)] * 2
    lines = "\n".join(lines_of(deep, PROFILE))
    for name in ("NDR", "PDR"):
        assert f"Longer trials would refute the lower bound of {name}: in most trials" in lines
    assert "The DUT sustains about 8,000 fps per direction." in lines
    plain = found()
    assert plain.to_document()["sustainable_fps_per_direction"] is None
    assert "Longer trials would refute" not in "\n".join(lines_of(plain, PROFILE))
