# SPDX-License-Identifier: Apache-2.0
"""A DUT that drifts: the order of a campaign makes no verdict of it, and what could be one is withheld."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.analysis import analyse
from evenhand.analysis.drift import ONE_AFTER_THE_OTHER, drift_of
from evenhand.run.campaign_record import PointRecord
from tests.analysis.records import noisy, point, record

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import campaign_order as bench

CAMPAIGNS = 4


def in_rounds(
    points: Sequence[PointRecord], *, factor: float = 1.0, rounds: int = 10, turns: bool = False
) -> list[PointRecord]:
    """As measured in rounds, while the DUT changes by this factor from the first repetition to the last.

    Args:
        turns: Every second round goes back, so that the last point of a round is the first of the next.
    """
    share = len(points[0].repetitions) // rounds
    made = []
    for place, of_point in enumerate(points):
        repetitions = []
        for index, repetition in enumerate(of_point.repetitions):
            at = len(points) - 1 - place if turns and index // share % 2 else place
            second = (index // share * len(points) + at) * share + index % share
            level = 1 + (factor - 1) * second / (len(points) * len(of_point.repetitions))
            when = f"2026-11-22T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
            repetitions.append(replace(repetition, started_at=when, value=(repetition.value or 0) * level))
        made.append(replace(of_point, repetitions=tuple(repetitions)))
    return made


def series(one: float, many: float, noise: float = 0.005) -> list[PointRecord]:
    return [point(n, noisy(one if n == 1 else many, 10, noise, seed=n)) for n in (1, 2, 4, 8, 16, 32)]


@pytest.mark.parametrize("drift", bench.DRIFTS)
def test_a_campaign_in_rounds_makes_no_verdict_of_a_drift(drift: str) -> None:
    """A small version of bench/campaign_order.py, which has 150 campaigns a cell."""
    for order in ("rounds", "2 rounds"):
        shares = bench.simulate(order, drift, CAMPAIGNS)
        assert [shares[kind] for kind in bench.KINDS] == [0] * 4, (order, shares)


def test_the_simulation_shows_what_one_after_the_other_does() -> None:
    shares = bench.simulate("one after the other", "warms up by 8 %", CAMPAIGNS)
    assert shares["rise"] == 1
    assert shares["biased"] > 0.5


def test_a_drift_is_taken_out_of_rounds_of_enough_points_and_withholds_a_verdict_otherwise() -> None:
    """SEED-07: what the points of a round share is the drift; three points do not show it, nor do rounds in
    which it goes on for long."""
    drifted = in_rounds(series(100_000, 100_000), factor=0.94)
    turning = in_rounds(series(100_000, 100_000), factor=0.94, turns=True)
    assert analyse(record(*turning)).bias[0].finding == "same"
    analysis = analyse(record(*drifted))
    assert analysis.bias[0].finding == "same"
    assert "lower from the first to the last of 10 rounds" in analysis.bias[0].certainty
    assert "compared relative to the others of their round" in analysis.bias[0].certainty
    few = analyse(record(*in_rounds([drifted[0], *drifted[-2:]], factor=0.94)))
    assert few.bias[0].finding == "unknown"
    assert "lower from the first to the last of 10 rounds" in few.verdict
    long_rounds = in_rounds(series(100_000, 100_000), factor=0.9, rounds=2)
    assert analyse(record(*long_rounds)).bias[0].finding == "unknown"
    drift = analysis.curves[0].drift
    assert drift is not None
    assert drift.change == pytest.approx(-0.055, abs=0.01)
    assert drift.to_document()["is_seen"]


def test_a_drift_also_withholds_that_a_pair_hides_nothing() -> None:
    """SEED-07: what the pair reaches is a lower bound, so only that can be known."""
    points = [point(1, [104_000.0] * 10, maximum=104_000.0), *series(1, 100_000)[1:3]]
    assert analyse(record(*points)).bias[0].finding == "not_lower"
    assert analyse(record(*in_rounds(points, factor=0.94))).bias[0].finding == "unknown"


def test_a_rise_that_a_drift_could_make_is_not_claimed_and_a_large_one_is() -> None:
    small, large = (
        analyse(record(*in_rounds(series(one, 100_000), factor=0.94))) for one in (93_000, 30_000)
    )
    shape = small.curves[0].shape
    assert shape is not None
    assert shape.rise_end is None
    assert shape.sentences[0].startswith("No rise or fall is reported: what the DUT shows became")
    shape = large.curves[0].shape
    assert shape is not None
    assert shape.rise_end == 2
    assert large.bias[0].finding == "hides"
    assert "too small to explain it" in large.bias[0].certainty


def test_noise_is_no_drift_and_a_small_drift_withholds_nothing() -> None:
    """Over 100 series the tests keep their level; 1 % of drift is found, and is too small to matter."""
    seen = 0
    for seed in range(100):
        draw = random.Random(seed)
        points = [point(n, [1e5 * (1 + draw.gauss(0, 0.05)) for _ in range(10)]) for n in (1, 2, 4, 8)]
        found = drift_of(in_rounds(points))
        assert found is not None
        assert found.p_value is not None
        seen += found.p_value <= 0.05
    assert seen <= 9
    drift = drift_of(in_rounds(series(100_000, 100_000, 0.001), factor=0.99))
    assert drift is not None
    assert drift.p_value is not None
    assert drift.p_value < 0.001
    assert not drift.is_seen


def test_points_measured_one_after_the_other_get_a_note_and_files_without_times_none() -> None:
    """Old files, and points that workers took whole: their verdict stands, with what it assumes."""
    analysis = analyse(record(*in_rounds(series(50_000, 100_000), rounds=1)))
    assert analysis.bias[0].finding == "hides"
    assert analysis.bias[0].certainty.endswith(ONE_AFTER_THE_OTHER)
    shape = analysis.curves[0].shape
    assert shape is not None
    assert ONE_AFTER_THE_OTHER in shape.sentences
    assert analyse(record(*series(50_000, 100_000))).curves[0].drift is None


def test_blocks_that_differ_are_a_drift_also_where_their_mean_does_not() -> None:
    """Two rounds of five: half of the points got faster, the other half slower."""
    points = [
        point(
            n,
            noisy(1e5 if n % 3 else 0.94e5, 5, 0.005, n) + noisy(0.94e5 if n % 3 else 1e5, 5, 0.005, n + 50),
        )
        for n in range(1, 9)
    ]
    drift = drift_of(in_rounds(points, rounds=2))
    assert drift is not None
    assert drift.is_seen
    assert drift.range == pytest.approx(0.06, abs=0.015)


def test_a_last_round_that_is_not_finished_does_not_set_the_size_of_a_drift() -> None:
    """A campaign that was interrupted: the one point that began the last round may have been a bad one."""
    whole = in_rounds(series(100_000, 100_000))
    before = drift_of([replace(each, repetitions=each.repetitions[:-1]) for each in whole])
    first = whole[0]
    bad = replace(first.repetitions[-1], value=50_000.0)
    begun = [replace(first, repetitions=(*first.repetitions[:-1], bad))]
    begun += [replace(each, repetitions=each.repetitions[:-1]) for each in whole[1:]]
    drift = drift_of(begun)
    assert before is not None
    assert drift is not None
    assert drift.rounds == before.rounds
    assert drift.range == pytest.approx(before.range, abs=0.01)
    assert abs(drift.change) < 0.02
