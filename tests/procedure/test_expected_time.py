# SPDX-License-Identifier: Apache-2.0
"""What is said of the time before a measurement: all that it is made of, rounded as a person would."""

from __future__ import annotations

import math

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.procedure.events import left_of
from evenhand.procedure.expected_time import CEILING_S, OPENING_S, ExpectedTime
from evenhand.procedure.throughput import THROUGHPUT
from evenhand.search import SearchEvent, ThroughputGoal, TrialStarted, find_throughput
from evenhand.trial import SimulatedMeasurer, TrialResult


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


class Timed:
    """A device whose trials take no time, but say how long they would."""

    def __init__(self, limit_fps: float, waits_s: float) -> None:
        self.device, self.waits_s, self.seconds = SimulatedMeasurer(limit_fps=limit_fps), waits_s, 0.0

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = self.device.measure(duration_s, rate_fps)
        self.seconds += result.sent_s + self.waits_s
        return result


@pytest.mark.parametrize("is_guided", [True, False])
@pytest.mark.parametrize("share", [2.0, 0.9, 0.5, 0.1, 0.01, 0.002])
@pytest.mark.parametrize(
    ("duration_s", "final_duration_s", "waits_s"), [(1, 1, 2.5), (5, 60, 7.5), (0.5, 1, 0.3)]
)
def test_a_search_takes_what_was_said_before_it_whatever_the_device_forwards(
    share: float, duration_s: float, final_duration_s: float, waits_s: float, is_guided: bool
) -> None:
    """The maximum included, with which two trials are all: within a factor of two, and so are the times that
    the search itself says before each of its trials."""
    goal = ThroughputGoal(
        max_fps=1e6, duration_s=duration_s, final_duration_s=final_duration_s, is_guided=is_guided
    )
    device = Timed(share * goal.max_fps, waits_s)
    left: list[tuple[float, TimeSpan]] = []

    def note(event: SearchEvent) -> None:
        if isinstance(event, TrialStarted):
            left.append((device.seconds, left_of(event)))

    find_throughput(device, goal, on_progress=note, overhead_s=waits_s)
    expected = THROUGHPUT.expected_span(goal, waits_s)
    for began_s, span in [(0.0, expected), *left]:
        took_s = device.seconds - began_s
        said = span if span.is_wide else TimeSpan.of(span.middle_s)
        assert said.least_s / 2 <= took_s <= 2 * said.most_s, (began_s, took_s, said)
    spans = [span for _, span in left]
    assert all(not span.is_wide for span in spans[1:])  # the first trial has said which it is
    if not is_guided:
        assert expected.is_wide
        assert spans[0].is_wide
        assert (expected.least_s, expected.most_s) == pytest.approx((spans[0].least_s, spans[0].most_s))


def test_a_search_that_begins_at_a_known_load_is_not_in_two_minds() -> None:
    goal = ThroughputGoal(max_fps=1e6, known_fps=3e5)
    assert not THROUGHPUT.expected_span(goal, 7.5).is_wide
