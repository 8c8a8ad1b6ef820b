# SPDX-License-Identifier: Apache-2.0
"""A loss ratio above 0 is over both directions together: what each of them lost is said (MLR-03)."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from evenhand.report.campaign_rows import rows_of
from evenhand.report.page_points import _repetitions
from evenhand.report.show import point_report
from evenhand.run.campaign_record import PointRecord
from evenhand.run.figures import losses_of
from evenhand.search import MlrGoal, MlrGoals, ThroughputGoal, find_goals, find_throughput
from evenhand.trial import SimulatedMeasurer, TrialResult
from tests.analysis.records import point, record
from tests.report.live import lines_of
from tests.report.test_throughput import PROFILE

LIMIT_FPS = 400_000.0


class OneSided(SimulatedMeasurer):
    """All that it loses is of the reverse direction."""

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        raw = dict(SimulatedMeasurer.measure(self, duration_s, rate_fps).raw)
        forward, reverse = raw["directions"]["forward"], raw["directions"]["reverse"]
        offered, lost = forward["offered_frames"], forward["lost_frames"] + reverse["lost_frames"]
        forward = {**forward, "received_frames": offered, "lost_frames": 0}
        reverse = {**reverse, "received_frames": max(0, offered - lost), "lost_frames": min(offered, lost)}
        self.trials[-1] = TrialResult.from_contract(
            {**raw, "directions": {"forward": forward, "reverse": reverse}}
        )
        return self.trials[-1]


def test_text_and_document_say_what_each_direction_lost() -> None:
    goal = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=60, loss_ratio=0.005, precision=0.0005)
    result = find_throughput(OneSided(limit_fps=LIMIT_FPS, loss_ratio_limit=0.005), goal)
    losses = result.losses
    assert result.final_trial is not None
    assert losses["forward"].lost_frames == 0
    assert losses["reverse"].lost_frames == result.final_trial.lost_frames > 0
    assert 0.005 < losses["reverse"].loss_ratio <= 0.01  # twice what both lost together
    (line,) = (line for line in lines_of(result, PROFILE) if line.startswith("Lost at that load"))
    assert line.startswith("Lost at that load: forward 0 % (0 of ")
    assert line.endswith("; the loss ratio is over both directions together (MLR-03).")
    document = result.to_document()["loss_by_direction"]
    assert document["reverse"]["loss_ratio"] == losses["reverse"].loss_ratio
    strict = find_throughput(SimulatedMeasurer(limit_fps=LIMIT_FPS), replace(goal, loss_ratio=0.0))
    assert not any("Lost at" in line for line in lines_of(strict, PROFILE))


def test_each_goal_of_several_has_its_own() -> None:
    goals = MlrGoals(goals=(MlrGoal(name="NDR"), MlrGoal(name="PDR", loss_ratio=0.005)), max_fps=1e6)
    result = find_goals(OneSided(limit_fps=LIMIT_FPS), goals)
    ndr, pdr = result.to_document()["goals"]
    assert (
        ndr["loss_by_direction"]["forward"]["lost_frames"],
        ndr["loss_by_direction"]["reverse"]["lost_frames"],
    ) == (0, 0)
    assert pdr["loss_by_direction"]["forward"]["lost_frames"] == 0
    assert 0.005 < pdr["loss_by_direction"]["reverse"]["loss_ratio"] <= 0.01
    lines = [line for line in lines_of(result, PROFILE) if line.startswith("Lost at the lower bound of ")]
    assert len(lines) == 1
    assert lines[0].startswith("Lost at the lower bound of PDR: forward 0 %")


def lossy(stored: Any) -> PointRecord:
    found = point(1, [1e5, 1e5])
    first, second = found.repetitions
    return replace(found, repetitions=(replace(first, result={"loss_by_direction": stored}), second))


def test_page_show_and_exports_have_it_by_repetition() -> None:
    found = lossy(
        {
            "forward": {"lost_frames": 0, "offered_frames": 1000},
            "reverse": {"lost_frames": 8, "offered_frames": 1000},
        }
    )
    rows = list(rows_of(record(found), "repetitions"))
    assert [(row["forward_loss_ratio"], row["reverse_loss_ratio"]) for row in rows] == [
        (0.0, 0.008),
        (None, None),
    ]
    table = _repetitions(found, "fps")
    assert [cells[3].text for cells in table.rows] == ["forward 0.0, reverse 0.8", "-"]
    assert table.columns[3].title == "lost, by direction, %"
    console = Console(file=io.StringIO(), width=200)
    of_run = record(found)
    for part in point_report(of_run, of_run.points[0]):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    assert "Lost at that load: forward 0 %, reverse 0.8 %." in console.file.getvalue()
    assert len(_repetitions(lossy(None), "fps").columns) == len(table.columns) - 1


@pytest.mark.parametrize("stored", [[], "x", {"forward": 1}, {"forward": {"lost_frames": "5"}}, {"up": None}])
def test_losses_of_a_file_that_are_none_are_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"^repetitions\.result\.loss_by_direction"):
        lossy(stored)


def test_a_file_may_say_nothing_of_losses() -> None:
    assert losses_of(lossy(None).repetitions[0]) == {}
