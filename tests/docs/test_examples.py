# SPDX-License-Identifier: Apache-2.0
"""The index of the examples has each of them once, with the time that it takes."""

from __future__ import annotations

import tomllib
from math import comb

import pytest

from evenhand.run.campaign.outline import describe
from evenhand.search import ThroughputGoal
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import read_point
from tests.docs.documents import ROOT, blocks, links, read, table_rows

INDEX = ROOT / "examples" / "README.md"
WORDS = {"a minute": (0, 90), "two to four minutes": (90, 270), "10 to 40 hours": (9 * 3600, 41 * 3600)}
"""Seconds between which a time in words lies."""


def test_the_index_has_every_example() -> None:
    listed = {target for target in links(INDEX) if not target.startswith("..") and "#" not in target}
    there = {str(path.relative_to(INDEX.parent)) for path in INDEX.parent.rglob("*") if path.is_file()}
    assert listed == {name for name in there if "__pycache__" not in name} - {INDEX.name}


@pytest.mark.parametrize("row", table_rows("examples/README.md", "campaign file"), ids=lambda row: row[0])
def test_a_campaign_takes_the_time_that_the_index_says(row: list[str]) -> None:
    name = row[0].partition("]")[0].strip("[")
    expected = describe(expand(read_campaign(INDEX.parent / name))).expected
    least, most = WORDS[row[2]]
    assert least <= expected.least_s <= expected.most_s <= most


def test_the_page_of_appendix_a_has_the_points_and_times_of_a_dry_run() -> None:
    """SEED-64."""
    rows = table_rows("docs/how-to/reproduce-appendix-a.md", "preset")
    assert len(rows) == 6
    for preset, *_, points, time in rows:
        outline = describe(expand(make_campaign({"preset": preset}, where=preset)))
        assert (points, time) == (str(len(outline.rows)), outline.expected.words)


def test_the_short_series_takes_the_time_that_the_page_says() -> None:
    page = "docs/how-to/reproduce-appendix-a.md"
    (block,) = blocks("toml", document=page)
    outline = describe(expand(make_campaign(tomllib.loads(block.text), where=page)))
    assert f"These {len(outline.rows)} points take {outline.expected.words}." in read(page)


def test_two_runs_of_the_gate_can_be_compared() -> None:
    """As many repetitions as its points need, always the same highest load, and a confirmation too long for a
    queue to hide an overload."""
    plan = expand(read_campaign(INDEX.parent / "ci-campaign.toml"))
    assert plan.reference is not None
    model = plan.reference.dut().model
    assert model is not None
    queue_s = (model.queue_frames or 0) / (model.rate_fps or 1)
    for point in plan.points:
        goal = read_point(point).goal
        assert isinstance(goal, ThroughputGoal)
        # The least p of an exact Mann-Whitney test, at the level of a gate over so many points.
        assert 2 / comb(2 * point.repetitions, point.repetitions) <= 0.05 / len(plan.points)
        assert not goal.is_max_ceiling
        assert goal.final_duration_s > queue_s / goal.precision
    assert "768 / 50,000 s / 1 % = 1.5 s" in read("examples/README.md")
