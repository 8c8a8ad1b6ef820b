# SPDX-License-Identifier: Apache-2.0
"""What is said of the time before a measurement: all that it is made of, rounded as a person would."""

from __future__ import annotations

import math

import pytest

from evenhand.procedure.expected_time import CEILING_S, OPENING_S, ExpectedTime
from evenhand.search import ThroughputGoal


def test_all_that_takes_time_is_in_it_and_only_measuring_is_done_several_times() -> None:
    found = ExpectedTime.of(
        None, 100.0, ["three trials"], 11.0, supposed="if it works", times=3, learning_s=4.0, own_loop_s=5.0
    )
    assert found.seconds == OPENING_S + 3 * 100 + 4 + 5
    assert found.parts == (
        "3 times; three trials; the tester's own delays first; 11 s of waiting in each trial"
    )
    assert found.assumes == "if it works and no trial must be repeated"
    without_maximum = ExpectedTime.of(ThroughputGoal(max_fps=math.inf), 100.0, [], 0.0)
    assert without_maximum.seconds == OPENING_S + CEILING_S + 100
    assert without_maximum.parts == "the tester's own ceiling, unless it is already known"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (59.4, "59 s"),
        (64.0, "60 s"),
        (66.0, "70 s"),
        (594.0, "9 min 50 s"),
        (596.0, "10 min"),
        (629.0, "10 min"),
        (631.0, "11 min"),
        (7169.0, "119 min"),
        (7200.0, "2 h 0 min"),
        (7349.0, "2 h 0 min"),
        (7351.0, "2 h 5 min"),
    ],
)
def test_it_is_said_to_a_second_ten_seconds_a_minute_or_five(seconds: float, said: str) -> None:
    assert ExpectedTime(seconds=seconds, parts="a").line.startswith(f"Expected time: about {said} if no ")
