# SPDX-License-Identifier: Apache-2.0
"""Two runs of which one left out much more of its time are not called alike without saying so: a device that
hides its losses near lapses cannot be told from one that suffers from them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.analysis import compare, compare_sessions
from evenhand.analysis.trend import trend
from evenhand.report.comparison import comparison_document, comparison_lines
from evenhand.report.comparison_page import render_comparison
from evenhand.report.trend import trend_document, trend_lines
from evenhand.report.trend_page import render_trend
from evenhand.run import read_record
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.run.figures import time_left_out_at, time_left_out_of
from evenhand.trial import TimeLeftOut
from tests.analysis.records import noisy, point, record
from tests.report.campaigns import point_of, record_of, throughput_record
from tests.report.clean_records import by_clean_time, stalls
from tests.run.foreign import write_record

SAID = "not judged alike"
PLANS = pytest.mark.parametrize("plan", ["direct-v4-net16", "direct-v6"])


def left_out(share: float | None, *, plan: str = "direct-v4-net16", suite: str = "direct") -> PointRecord:
    """A point whose repetitions state that so much of their time was left out; None: they state nothing."""
    made = point(16, noisy(1e6, 6, 0.001), plan=plan, suite=suite)
    if share is None:
        return made
    stated = TimeLeftOut(
        valid_trials=10,
        judged_trials=10,
        cut_trials=4,
        sent_s=100.0,
        left_out_s=100 * share,
        most_share=min(1.0, 2 * share),
    )
    return replace(
        made,
        repetitions=tuple(
            replace(one, result={"time_left_out": stated.to_document()}) for one in made.repetitions
        ),
    )


def run(share: float | None, name: str = "a", plan: str = "direct-v4-net16") -> CampaignRecord:
    return record(left_out(share, plan=plan), name=name)


@PLANS
@pytest.mark.parametrize(("one", "other"), [(None, 0.11), (0.0, 0.3), (0.25, 0.1), (0.2, None)])
def test_shares_that_differ_by_more_than_a_tenth_are_said(
    plan: str, one: float | None, other: float | None
) -> None:
    comparison = compare([run(one, plan=plan), run(other, "b", plan=plan)])
    lines = "\n".join(comparison_lines(comparison, fail_below=0.9))
    assert f"But 1 point was {SAID}" in lines
    percents = [f"{100 * (share or 0):g} %" for share in (other, one)]
    assert f"{percents[0]} of the sending time was left out, and {percents[1]} in the first run" in lines
    assert "Passed: no point is below 0.9. But 1 point" in lines
    document = comparison_document(comparison)
    (said,) = document["judged_unlike"]
    assert said["first_time_left_out_share"] == pytest.approx(one or 0)
    assert said["time_left_out_share"] == pytest.approx(other or 0)
    page = render_comparison(comparison, fail_below=0.9)
    assert "<h2>Not judged alike</h2>" in page
    assert 'class="lead mark good"' not in page


@PLANS
@pytest.mark.parametrize(("one", "other"), [(None, None), (0.0, None), (None, 0.1), (0.3, 0.35)])
def test_shares_that_differ_by_less_are_no_matter(plan: str, one: float | None, other: float | None) -> None:
    comparison = compare([run(one, plan=plan), run(other, "b", plan=plan)])
    assert comparison.judged_unlike == ()
    assert SAID not in "\n".join(comparison_lines(comparison, fail_below=0.9))
    page = render_comparison(comparison, fail_below=0.9)
    assert "Not judged alike" not in page
    assert 'class="lead mark good"' in page
    found = comparison_document(comparison)["points"][0]
    assert ("time_left_out" in found) == (one is not None)


def test_a_point_without_a_number_is_not_judged_at_all() -> None:
    without = replace(left_out(0.5), repetitions=(), state=point(1, [None]).state)
    assert compare([run(0.0), record(without, name="b")]).judged_unlike == ()


def test_each_run_and_point_is_held_against_the_first() -> None:
    first = record(left_out(0.0), left_out(0.0, suite="other"), name="a")
    same = record(left_out(0.05), left_out(0.02, suite="other"), name="b")
    unlike = record(left_out(0.05), left_out(0.2, suite="other"), name="c")
    comparison = compare([first, same, unlike])
    assert [(each.run.file, each.key) for each in comparison.judged_unlike] == [
        ("c.evenhand", "other/throughput/64/n=16")
    ]


def test_the_time_of_a_session_is_that_of_all_its_repetitions() -> None:
    """Also of runs whose trials were read: the last repetition does not stand for the others."""
    made = by_clean_time(_measured(), stalls(0.4))
    assert [len(found.repetitions) for found in made.points] == [3]
    whole = made.points[0].repetitions[-1]
    last = replace(whole, searches=_measured().points[0].repetitions[-1].searches)
    a = replace(made, points=(replace(made.points[0], repetitions=(*made.points[0].repetitions[:-1], last)),))
    b = replace(_measured(seed=2), created_at="2026-03-03T08:00:00Z", path=Path("b.evenhand"))
    b = replace(
        b,
        points=tuple(
            replace(p, repetitions=tuple(replace(r, started_at="x", seed=r.seed + 7) for r in p.repetitions))
            for p in b.points
        ),
    )
    assert time_left_out_of(last) is None
    comparison = compare_sessions([[a], [b]])
    (said,) = comparison.judged_unlike
    expected = time_left_out_at(a.points[0])
    assert expected is not None
    assert said.shares == (expected.share, 0.0)


def _measured(seed: int = 1) -> CampaignRecord:
    chance = random.Random(seed)
    at = point_of("direct", 0, "gateway-v4", 16, repetitions=3)
    return record_of([throughput_record(at, 1e6, chance=chance)])


@PLANS
def test_a_trend_says_which_run_judged_another_share_than_the_one_before(plan: str) -> None:
    runs = [run(share, f"r{i}", plan=plan) for i, share in enumerate((None, 0.05, 0.3, 0.28, 0.0))]
    found = trend(runs)
    assert [(before.run, after.run) for before, after in found.points[0].judged_unlike] == [(1, 2), (3, 4)]
    lines = [line for line in trend_lines(found) if line.startswith("Not judged alike: ")]
    assert len(lines) == 2
    assert "30 % of the sending time was left out in the run of" in lines[0]
    assert "Not judged alike" in render_trend(found)
    document = trend_document(found)["points"][0]
    assert document["judged_unlike"] == [{"before_run": 1, "run": 2}, {"before_run": 3, "run": 4}]
    assert "time_left_out" not in document["values"][0]
    assert document["values"][2]["time_left_out"]["share"] == pytest.approx(0.3)


def test_a_trend_of_runs_that_are_judged_as_a_whole_says_nothing() -> None:
    found = trend([run(None, f"r{i}") for i in range(3)])
    assert not [line for line in trend_lines(found) if "judged alike" in line]
    assert "Not judged alike" not in render_trend(found)


@pytest.mark.parametrize("with_trials", [True, False], ids=["trials", "result"])
def test_a_file_states_the_same_with_and_without_its_trials(tmp_path: Path, with_trials: bool) -> None:
    """A trend reads no trials."""
    made = by_clean_time(_measured(), stalls(0.05))
    path = write_record(tmp_path / "a.evenhand", made)
    read = read_record(path, with_trials=with_trials)
    assert any(search.trials for search in read.points[0].repetitions[0].searches) == with_trials
    assert time_left_out_at(read.points[0]) == time_left_out_at(made.points[0])
