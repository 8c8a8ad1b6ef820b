# SPDX-License-Identifier: Apache-2.0
"""Loads of the two directions that differ: in a ratio, or with one direction held."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.trial import DirectionRates, read_direction_rates
from tests.errors import raises

FOUR_TO_ONE = DirectionRates(ratio=(4, 1))
HELD = DirectionRates(held="reverse", held_fps=10e3)


def test_the_load_is_that_of_the_faster_direction() -> None:
    assert FOUR_TO_ONE.by_direction(1e6) == {"forward": 1e6, "reverse": 250e3}
    assert DirectionRates(ratio=(1, 4)).by_direction(1e6) == {"forward": 250e3, "reverse": 1e6}
    assert DirectionRates.of_pair(1e6, 250e3).to_contract(1e6, ("forward", "reverse")) == {
        "forward": 1.0,
        "reverse": 0.25,
    }


def test_a_held_direction_keeps_its_rate_whatever_the_load() -> None:
    for load_fps in (1e3, 1e6):
        assert HELD.by_direction(load_fps) == {"forward": load_fps, "reverse": 10e3}
        assert HELD.to_contract(load_fps, ("reverse",))["reverse"] * load_fps == pytest.approx(10e3)


def test_the_highest_load_is_that_at_which_the_first_line_is_full() -> None:
    assert FOUR_TO_ONE.highest_fps({"forward": 1000, "reverse": 1000}) == 1000
    assert FOUR_TO_ONE.highest_fps({"forward": 1000, "reverse": 100}) == 400
    assert FOUR_TO_ONE.highest_fps({"forward": None, "reverse": None}) is None
    assert HELD.highest_fps({"forward": 1000, "reverse": 20_000}) == 1000
    with raises("trial.held-above-line-rate", match="reverse held at 10 kfps"):
        HELD.highest_fps({"forward": 1000, "reverse": 9_999})


@pytest.mark.parametrize("rates", [FOUR_TO_ONE, HELD, DirectionRates.of_pair(3, 7)], ids=str)
def test_documents_say_what_was_meant(rates: DirectionRates) -> None:
    assert read_direction_rates(rates.to_document()) == rates


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        [],
        {"ratio": [1]},
        {"ratio": ["4", "1"]},
        {"ratio": [0, 1]},
        {"held": "up", "held_fps": 1},
        {"held": "reverse", "held_fps": -1},
        {"held": "reverse"},
    ],
)
def test_what_is_no_document_of_rates_is_none(document: Any) -> None:
    assert read_direction_rates(document) is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "trial.direction-rates"),
        ({"ratio": (1, 2), "held": "forward", "held_fps": 1.0}, "trial.direction-rates"),
        ({"held": "forward"}, "trial.direction-rates"),
        ({"ratio": (0, 1)}, "trial.out-of-range"),
        ({"ratio": (1, 2, 3)}, "trial.direction-rates"),
        ({"held": "reverse", "held_fps": float("inf")}, "base.wrong-type"),
    ],
)
def test_impossible_ones_are_refused(given: dict[str, Any], code: str) -> None:
    with raises(code):
        DirectionRates(**given)


def test_words() -> None:
    assert str(FOUR_TO_ONE) == "forward and reverse 4:1"
    assert str(HELD) == "reverse held at 10 kfps"
    assert FOUR_TO_ONE.at(1e6) == "1 Mfps forward, 250 kfps reverse"
