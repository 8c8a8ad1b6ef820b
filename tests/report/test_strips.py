# SPDX-License-Identifier: Apache-2.0
"""The strips of a page: which parts of the trials that decide a result were judged."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from evenhand.analysis import analyse
from evenhand.report.page import render_page
from evenhand.report.page_strips import (
    HEIGHT,
    KINDS,
    MOST_STRIPS,
    NARROWEST,
    WIDTH,
    describe_clean,
    draw_strip,
    shown_strips,
)
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import PointRecord
from evenhand.trial import CleanTime, SimulatedMeasurer, TrialResult
from tests.report.campaigns import loss_record, point_of, record_of, throughput_record
from tests.report.clean_records import point_by_clean_time, stalls
from tests.report.pages import Page, assert_self_contained
from tests.trial.clean_trials import NOT_JUDGED, Part, judged_by_clean_time

PLANS = pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])


def searched(plan: str = "gateway-v4", repetitions: int = 2) -> PointRecord:
    at = point_of("old", 0, plan, 16, repetitions=repetitions)
    return throughput_record(at, 1e6, chance=random.Random(1))


def clean_of(parts: list[Part], **changes: Any) -> CleanTime:
    """The clean time of a trial that wanted 10 s."""
    trial = SimulatedMeasurer(limit_fps=1e6).measure(10.0, 1000.0)
    clean = judged_by_clean_time(trial, parts, **changes).clean
    assert clean is not None
    return clean


def bars_of(clean: CleanTime) -> dict[str, list[tuple[int, float, int, float]]]:
    """What is left out, by the class of its colour: begin, top, width, height."""
    return {
        name: [
            (int(begin), float(top), int(width), float(height))
            for begin, top, width, height in re.findall(r"M(\d+) ([\d.]+)h(\d+)v([\d.]+)h-\d+z", path)
        ]
        for name, path in re.findall(r'<path class="([\w-]+)" d="([^"]*)"/>', str(draw_strip(clean)))
        if name != "judged"
    }


@PLANS
def test_a_point_shows_the_trials_that_decide_each_of_its_results(plan: str) -> None:
    """The one that passed at the result, of full length, and the last that failed at the lowest load that
    did."""
    found = point_by_clean_time(searched(plan), stalls(0.02))
    shown = shown_strips(found)
    assert shown is not None
    assert [strip.verdict for strip in shown.strips] == ["PASS", "FAIL"] * 2
    for repetition in found.repetitions:
        passed, failed = repetition.deciding_trials
        assert passed.is_full_length
        assert passed.result.intended_fps == pytest.approx(repetition.value)
        assert failed.result.intended_fps == pytest.approx(repetition.upper)
    assert [strip.title.partition(" at ")[0] for strip in shown.strips] == [
        f"Repetition {repetition.number}, trial {trial.number}"
        for repetition in found.repetitions
        for trial in repetition.deciding_trials
    ]
    assert shown.deviations == [f"Deviation from R2544-20: {NOT_JUDGED['text']}"]


@PLANS
def test_the_page_has_strip_sentence_and_share_of_each_result(plan: str) -> None:
    found = point_by_clean_time(searched(plan), stalls(0.02))
    record = record_of([found])
    text = render_page(record, analyse(record))
    page = Page(text)
    assert_self_contained(page)
    strips = [svg for svg in page.all("svg") if svg.get("class") == "strip"]
    assert len(strips) == 4
    for repetition in found.repetitions:
        for trial in repetition.deciding_trials:
            assert trial.result.clean is not None
            sentence = describe_clean(trial.result.clean)
            assert sentence in [svg["aria-label"] for svg in strips]
            assert f"{sentence}." in page.shown
    assert re.search(r"time left out: [\d.]+ % of the sending time, in \d+ of \d+ valid trials", page.shown)
    assert "left out, %" in {words.strip() for words in page.words}  # of each trial
    titles = [words.strip() for words in page.words]
    assert titles.count("time left out") == 1  # the point's facts
    assert titles.count("time left out, %") == 2  # summary, the point's repetitions


@PLANS
def test_a_page_of_trials_that_were_judged_as_a_whole_has_nothing_of_it(plan: str) -> None:
    found = searched(plan)
    assert shown_strips(found) is None
    record = record_of([found])
    page = Page(render_page(record, analyse(record)))
    assert "left out" not in page.shown
    assert not [svg for svg in page.all("svg") if svg.get("class") == "strip"]


def test_of_a_series_of_loads_each_load_is_shown_once() -> None:
    at = point_of("loss", 0, "gateway-v4", 16, "loss", repetitions=1)
    made = loss_record(at, limit_fps=5e6, chance=random.Random(1))
    made = replace(made, repetitions=tuple(replace(one, procedure="loss") for one in made.repetitions))
    found = point_by_clean_time(made, stalls(0.02))
    shown = shown_strips(found)
    assert shown is not None
    assert len(shown.strips) == len(made.repetitions[0].result["points"])  # type: ignore[index]
    assert all(strip.title.startswith("Trial ") for strip in shown.strips)


def test_many_repetitions_do_not_fill_the_page() -> None:
    one = point_by_clean_time(searched(repetitions=1), stalls(0.02)).repetitions[0]
    many = tuple(replace(one, number=number) for number in range(1, 21))
    shown = shown_strips(replace(searched(), repetitions=many))
    assert shown is not None
    assert len(shown.strips) == MOST_STRIPS
    assert shown.more == f"{40 - MOST_STRIPS} more of them are among the trials below."


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "judged by all of its 10.0 s; nothing was left out"),
        (
            [(1.0, 3.1, ("sender_overdue",))],
            "judged by 10.0 s in 2 pieces of 12.1 s; 2.1 s left out: the sender was overdue once",
        ),
        (
            [(0.0, 0.05, ("dut_away", "receiver_away")), (5.0, 5.009, ("receiver_away",))],
            "judged by 10.0 s in 2 pieces of 10.1 s; 0.059 s left out: a receiver was away 2 times, the DUT's"
            " CPU was away once",
        ),
    ],
)
def test_the_sentence_says_how_much_and_why(parts: list[Part], text: str) -> None:
    assert describe_clean(clean_of(parts)) == text


def test_a_part_is_where_it_was_and_as_wide_as_it_was() -> None:
    """In 12.5 s: 2.5 s after 5 s."""
    assert bars_of(clean_of([(5.0, 7.5, ("dut_away",))])) == {
        KINDS["dut_away"][1]: [(WIDTH * 2 // 5, 0, WIDTH // 5, HEIGHT)]
    }


def test_several_kinds_in_one_part_are_one_above_the_other() -> None:
    bars = bars_of(clean_of([(5.0, 7.5, ("sender_overdue", "dut_away"))]))
    begin, width = WIDTH * 2 // 5, WIDTH // 5
    assert bars == {
        KINDS["sender_overdue"][1]: [(begin, 0, width, HEIGHT / 2)],
        KINDS["dut_away"][1]: [(begin, HEIGHT / 2, width, HEIGHT / 2)],
    }


def test_a_millisecond_can_be_seen_and_stays_within_the_strip() -> None:
    bars = bars_of(clean_of([(0.0, 0.001, ("sender_overdue",)), (10.0, 10.001, ("sender_overdue",))]))
    assert bars == {
        KINDS["sender_overdue"][1]: [(0, 0, NARROWEST, HEIGHT), (WIDTH - NARROWEST, 0, NARROWEST, HEIGHT)]
    }


def test_parts_that_touch_each_other_are_one_of_all_their_kinds() -> None:
    """However many parts a trial lists, a strip has no more of them than can be seen."""
    parts: list[Part] = [(at / 100, at / 100 + 0.001, ("sender_overdue",)) for at in range(900)]
    bars = bars_of(clean_of([*parts, (9.0, 9.001, ("dut_away",))]))
    assert sum(map(len, bars.values())) <= WIDTH // NARROWEST
    (joined,) = bars_of(clean_of([(5.0, 5.001, ("sender_overdue",)), (5.002, 5.003, ("receiver_away",))]))[
        KINDS["sender_overdue"][1]
    ]
    assert joined[3] == HEIGHT / 2


@pytest.mark.parametrize(
    "changes",
    [
        {"sent_s": 0.0, "clean_s": 0.0},
        {"left_out": [[-1e29, 1e29, ["sender_overdue"]]]},
        {"left_out": [[1e29, -1e29, ["dut_away", "dut_away"]]]},
        {"left_out": [[5.0, 1.0, ["receiver_away"]], [4.0, 2.0, ["receiver_away"]]]},
        {"clean_s": 0.0, "pieces": 1 << 63},
        {"lapses": {"sender_overdue": 1 << 63, "receiver_away": 0, "dut_away": 0}},
    ],
    ids=str,
)
def test_whatever_a_file_says_the_strip_stays_in_its_place(changes: dict[str, Any]) -> None:
    clean = clean_of([(5.0, 7.5, ("sender_overdue",))], **changes)
    assert describe_clean(clean)
    for bars in bars_of(clean).values():
        for begin, top, width, height in bars:
            assert 0 <= begin < begin + width <= WIDTH
            assert 0 <= top < top + height <= HEIGHT


def test_what_a_file_says_of_a_trial_is_escaped() -> None:
    found = point_by_clean_time(searched(repetitions=1), stalls(0.02))
    (repetition,) = found.repetitions
    evil = {"requirement": "R2544-20", "text": "<script>alert(1)</script>"}

    def with_evil(trial: StoredTrial) -> StoredTrial:
        raw = {**trial.result.raw, "deviations": [evil]}
        return replace(trial, result=TrialResult.from_contract(raw))

    searches = tuple(
        replace(search, trials=tuple(map(with_evil, search.trials))) for search in repetition.searches
    )
    record = record_of([replace(found, repetitions=(replace(repetition, searches=searches),))])
    text = render_page(record, analyse(record))
    assert "Deviation from R2544-20: &lt;script&gt;alert(1)&lt;/script&gt;." in text
    assert "<script" not in text
