# SPDX-License-Identifier: Apache-2.0
"""A lower bound is shown as one wherever the throughput stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.base.units import format_count
from evenhand.procedure import OnePair, search_deviations
from evenhand.procedure.registry import THROUGHPUT
from evenhand.report.campaign_rows import rows_of
from evenhand.report.page import _summary
from evenhand.report.page_head import headline_figures
from evenhand.report.page_points import _repetitions
from evenhand.report.throughput import note_lines
from evenhand.report.uti import uti_documents
from evenhand.search import Outcome, ThroughputGoal, find_throughput
from evenhand.trial import SimulatedMeasurer
from tests.analysis.records import point, record
from tests.report.live import line_of_pair, lines_of
from tests.report.test_throughput import PROFILE

GOAL = ThroughputGoal(max_fps=1e6, duration_s=1.0, final_duration_s=60.0)


def test_a_tester_that_cannot_send_more_gives_at_least_what_passed() -> None:
    """R2544-23, R2544-39: in text and document, with the outcome; also where it stands before many addresses
    (SEED-02)."""
    result = find_throughput(SimulatedMeasurer(limit_fps=900_000, tester_ceiling_fps=800_000), GOAL)
    lines = lines_of(result, PROFILE)
    assert lines[0].startswith("Throughput: at least 800,000 fps per direction")
    assert "tester ceiling: the tester itself could not keep the load" in lines[1]
    document = result.to_document()
    assert (document["throughput_fps_per_direction"], document["is_at_least"]) == (800_000, True)
    assert not any("lower bound" in deviation.text for deviation in search_deviations(result, PROFILE))
    before = OnePair.of(result, PROFILE)
    assert before is not None
    assert "at least 800,000 fps" in line_of_pair(before, result, PROFILE)
    assert before.ratio(result) is None
    assert line_of_pair(before, result, PROFILE).endswith("no ratio, because both are lower bounds.")
    found = find_throughput(SimulatedMeasurer(limit_fps=600_000), GOAL)
    assert line_of_pair(before, found, PROFILE).endswith(
        "no ratio, because that with 1 address pair is a lower bound."
    )
    nothing = replace(result, outcome=Outcome.BELOW_MINIMUM, throughput_fps=None)
    assert line_of_pair(before, nothing, PROFILE).endswith(
        "no ratio, because no load passed in that with many addresses."
    )


def test_what_no_full_length_trial_has_confirmed_is_no_bound() -> None:
    """R2544-20: a short trial passes out of a queue."""
    last = len(find_throughput(SimulatedMeasurer(limit_fps=640_000), GOAL).trials)
    result = find_throughput(
        SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(last, last + 100)), GOAL
    )
    assert result.outcome is Outcome.TESTER_CEILING
    assert (result.throughput_fps, result.is_at_least) == (None, False)
    assert result.highest_passed_fps is not None
    expected = (
        f"Unconfirmed: {format_count(result.highest_passed_fps)} fps per direction passed in shorter trials"
        " only. There was no valid trial of 60 s at that load, so it is not a bound."
    )
    assert expected in lines_of(result, PROFILE)
    assert expected in note_lines(THROUGHPUT.read(result.to_document()))


def test_what_a_full_length_trial_has_confirmed_stays_a_bound() -> None:
    """R2544-20, R2544-39: the load that passes out of a queue is confirmed by no valid trial, a lower one
    was."""
    goal = replace(GOAL, known_fps=300_000.0)
    whole = find_throughput(SimulatedMeasurer(limit_fps=640_000), goal)
    first = next(t.number for t in whole.trials if t.result.intended_fps > 300_000.0 and t.result.is_pass)
    spoiled = SimulatedMeasurer(limit_fps=640_000, invalid_trials=range(first + 1, 500))
    result = find_throughput(spoiled, goal)
    assert result.outcome is Outcome.TESTER_CEILING
    assert (result.throughput_fps, result.is_at_least) == (300_000.0, True)
    assert result.final_trial is not None


def test_a_loss_that_counts_as_passed_is_a_deviation_and_stands_in_the_headline() -> None:
    """R2544-21: throughput is a rate without loss."""
    measurer = SimulatedMeasurer(limit_fps=900_000)
    for ratio, text in ((0.02, "a trial with a loss of up to 2 % counts as passed"), (0.0, "")):
        found = find_throughput(measurer, replace(GOAL, loss_ratio=ratio))
        told = [d.text for d in search_deviations(found, PROFILE) if "counts as passed" in d.text]
        assert bool(told) == bool(text)
        assert all(text in line for line in told)
    one = point(1, [8e5, 8e5])
    goal = {"goal": {"loss_ratio": 0.02}}
    lossy = replace(one, repetitions=tuple(replace(r, result=goal) for r in one.repetitions))
    assert "loss up to 2 %" in headline_figures(record(lossy))[0]
    assert "loss" not in headline_figures(record(one))[0]
    with pytest.raises(ValueError, match=r"^repetitions\.result\.goal is \['x'\], but must be a table$"):
        replace(one.repetitions[0], result={"goal": ["x"]})


def test_a_throughput_that_is_known_less_closely_than_wanted_says_so() -> None:
    """MLR-10: beside stalls, loads close to the limit may have too little clean time to be judged."""
    found = find_throughput(SimulatedMeasurer(limit_fps=600_000), GOAL)
    assert not any(d.requirement == "MLR-10" for d in search_deviations(found, PROFILE))
    assert found.throughput_fps is not None
    coarse = replace(found, upper_fps=found.throughput_fps / 0.985)
    (told,) = (d for d in search_deviations(coarse, PROFILE) if d.requirement == "MLR-10")
    assert "1.5 %" in told.text
    assert "0.5 %" in told.text


def test_the_page_counts_the_points_whose_number_is_a_lower_bound() -> None:
    found, bound = point(1, [8e5, 8e5]), point(4, [8e5, 8e5], kept={1: 5e5, 2: 5e5})
    assert "1 point measured;" in _summary(record(found))
    assert "2 points measured (1 as lower bounds);" in _summary(record(found, bound))
    assert "1 point measured (all as lower bounds);" in _summary(record(bound))


def test_page_and_exports_mark_the_repetition() -> None:
    limited = record(point(1, [8e5, 8e5], kept={1: 5e5}))
    rows = list(rows_of(limited, "repetitions"))
    assert [(row["value"], row["is_at_least"]) for row in rows] == [(5e5, True), (8e5, False)]
    (row,) = rows_of(limited, "points")
    assert (row["at_maximum"], row["at_tester_ceiling"]) == (1, 1)
    assert [cells[1].text for cells in _repetitions(limited.points[0], "fps").rows] == [">= 500", "800"]
    assert ['is_at_least="true"' in document["telemetry"][0] for document in uti_documents(limited)] == [
        True,
        False,
    ]
