# SPDX-License-Identifier: Apache-2.0
"""The first changed build, on simulated histories whose change is known: how often the answer is right, and
how many measurements it takes."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from evenhand.analysis.first_change import ChangeGoal, FirstChange, believe, next_build
from evenhand.base.errors import RequestError

GOAL = ChangeGoal()
LEVEL = 1e6


def hunt(
    builds: int,
    first: int,
    step: float,
    noise: float,
    *,
    seed: int,
    outliers: float = 0.0,
    skipped: Collection[int] = (),
    goal: ChangeGoal = GOAL,
) -> FirstChange:
    """A whole search over a history with `first` as the first changed build; 0: none is."""
    draw, measured = random.Random(seed), list[tuple[int, float]]()
    while True:
        wanted = next_build(measured, builds, goal, skipped)
        if isinstance(wanted, FirstChange):
            return wanted
        assert wanted not in skipped
        value = LEVEL * (1 - step if first and wanted >= first else 1) * (1 + draw.gauss(0, noise))
        measured.append((wanted, 0.7 * value if draw.random() < outliers else value))


def test_without_noise_it_is_a_bisection() -> None:
    for first in (1, 2, 17, 31):
        found = hunt(32, first, 0.05, 0.0, seed=1)
        assert (found.kind, found.low, found.high) == ("found", first, first)
        # Three of each end, five halvings, and both sides of the change once more.
        assert found.measurements <= 6 + 5 + 2
        assert found.before == LEVEL
        assert found.after == pytest.approx(0.95 * LEVEL)


@pytest.mark.parametrize(
    ("builds", "step", "noise", "outliers", "most"),
    [
        pytest.param(32, 0.05, 0.002, 0.0, 13, id="a large step"),
        pytest.param(256, 0.05, 0.002, 0.0, 18, id="many builds"),
        pytest.param(32, 0.03, 0.01, 0.0, 40, id="three deviations"),
        pytest.param(8, 0.03, 0.02, 0.0, 120, id="one and a half deviations"),
        pytest.param(32, -0.05, 0.005, 0.0, 25, id="it became faster"),
        pytest.param(32, 0.3, 0.01, 0.03, 60, id="some measurements go wrong"),
    ],
)
def test_the_answer_is_right_as_often_as_it_says(
    builds: int, step: float, noise: float, outliers: float, most: int
) -> None:
    """As many of 100 histories may be wrong as 99 % allow, with one chance in 10,000 to be unlucky."""
    wrong, measurements = 0, []
    for seed in range(100):
        first = random.Random(1000 + seed).randrange(1, builds)
        found = hunt(builds, first, step, noise, seed=seed, outliers=outliers)
        wrong += (found.kind, found.low, found.high) != ("found", first, first)
        measurements.append(found.measurements)
    assert wrong <= 6
    assert sorted(measurements)[90] <= most


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.01, 0.02])
def test_where_nothing_changed_it_says_so(noise: float) -> None:
    found = [hunt(32, 0, 0.0, noise, seed=seed) for seed in range(50)]
    assert sum(each.kind != "none" for each in found) <= 4
    assert max(each.measurements for each in found) <= 120


def test_builds_that_cannot_be_measured_are_not_asked_for() -> None:
    """As far as they hide the change, the answer names all of them."""
    found = hunt(16, 9, 0.1, 0.002, seed=3, skipped={8, 9, 10})
    assert (found.kind, found.low, found.high) == ("found", 8, 11)
    found = hunt(16, 9, 0.1, 0.002, seed=3, skipped={1, 2, 12})
    assert (found.kind, found.low, found.high) == ("found", 9, 9)


def test_it_stops_without_an_answer_when_it_may_not_measure_more() -> None:
    found = hunt(64, 20, 0.03, 0.05, seed=2, goal=ChangeGoal(most=8))
    assert (found.kind, found.measurements) == ("undecided", 8)
    assert found.before is None


def test_the_next_build_depends_on_what_was_measured_alone() -> None:
    """So it goes on after an interruption as if there had been none."""
    measured = [(0, 1.0), (7, 0.9), (0, 1.001), (7, 0.901), (0, 0.999), (7, 0.9)]
    first = next_build(measured, 8, GOAL)
    assert first == next_build(list(measured), 8, GOAL)
    assert first not in (0, 7)


def test_probabilities_sum_to_one() -> None:
    belief = believe([(0, 5.0), (3, 5.1), (9, 4.0), (9, 4.1)], 10, GOAL)
    assert belief.none + sum(belief.first) == pytest.approx(1.0)
    assert belief.set_of(1.1) is None
    assert believe([(0, 0.0), (1, 0.0)], 2, GOAL).none > 0.5


def test_what_cannot_be_searched_is_refused() -> None:
    for builds, skipped in ((1, ()), (8, (0,)), (8, (7,))):
        with pytest.raises(RequestError):
            next_build([], builds, GOAL, skipped)
    for values in ({"confidence": 1.0}, {"resolution": 0.0}, {"smallest": 2.0}, {"most": 3}):
        with pytest.raises(RequestError):
            ChangeGoal(**values)


def test_where_every_build_loses_nothing_nothing_has_changed() -> None:
    """A loss of 0 has no scatter, and no ratio of anything to it says more."""
    measured: list[tuple[int, float]] = []
    while isinstance(wanted := next_build(measured, 16, GOAL), int):
        measured.append((wanted, 0.0))
        assert len(measured) < 20
    assert wanted.kind == "none"
