# SPDX-License-Identifier: Apache-2.0
"""The index of the examples has each of them once, with the time that it takes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from evenhand.run.campaign.outline import describe
from evenhand.search import ThroughputGoal
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.reference import reference_dut
from evenhand.spec.request import read_point
from tests.docs.documents import ROOT, blocks, links, read, table_rows

INDEX = ROOT / "examples" / "README.md"
WORDS = {"a minute": (0, 90), "three minutes": (150, 240), "28 hours": (27 * 3600, 29 * 3600)}
"""Seconds that a time in words stands for."""


def test_the_index_has_every_example() -> None:
    listed = [Path(target).name for target in links(INDEX) if "/" not in target and "#" not in target]
    there = [path.name for path in INDEX.parent.iterdir() if path != INDEX]
    assert sorted(set(listed)) == sorted(there)


@pytest.mark.parametrize("row", table_rows("examples/README.md", "campaign file"), ids=lambda row: row[0])
def test_a_campaign_takes_the_time_that_the_index_says(row: list[str]) -> None:
    name = row[0].partition("]")[0].strip("[")
    expected = describe(expand(read_campaign(INDEX.parent / name))).expected
    least, most = WORDS[row[2]]
    assert least <= expected.most_s <= most


def test_the_page_of_appendix_a_has_the_points_and_times_of_a_dry_run() -> None:
    """SEED-64."""
    rows = table_rows("docs/how-to/reproduce-appendix-a.md", "preset")
    assert len(rows) == 6
    for preset, *_, points, time in rows:
        outline = describe(expand(make_campaign({"preset": preset}, where=preset)))
        assert (points, f"about {time}") == (str(len(outline.rows)), outline.expected.words)


def test_the_short_series_takes_the_time_that_the_page_says() -> None:
    page = "docs/how-to/reproduce-appendix-a.md"
    (block,) = blocks("toml", document=page)
    outline = describe(expand(make_campaign(tomllib.loads(block.text), where=page)))
    time = outline.expected.words.removeprefix("about ")
    assert f"These {len(outline.rows)} points take {time}." in read(page)


def test_two_runs_of_the_gate_can_be_compared() -> None:
    """Four repetitions, always the same highest load, and a confirmation too long for a queue to hide an
    overload."""
    plan = expand(read_campaign(INDEX.parent / "ci-campaign.toml"))
    assert plan.reference is not None
    model = reference_dut(plan.reference).model
    assert model is not None
    queue_s = (model.queue_frames or 0) / (model.rate_fps or 1)
    for point in plan.points:
        goal = read_point(point).goal
        assert isinstance(goal, ThroughputGoal)
        assert point.repetitions == 4
        assert not goal.is_max_testers
        assert goal.final_duration_s > queue_s / goal.precision
    assert "768 / 50,000 s / 1 % = 1.5 s" in read("examples/README.md")
