# SPDX-License-Identifier: Apache-2.0
"""Latency and delay variation on simulated devices: what is counted, what loss does to it, what is told."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evenhand.errors import RequestError
from evenhand.plan import make_plan
from evenhand.procedure import DelayGoal, DelayResult, DelayTest, Profile
from evenhand.procedure.delay import _Repeat
from evenhand.procedure.record import nowhere
from evenhand.report import delay_lines, delay_table
from evenhand.trial import SimulatedMeasurer
from tests.report.test_throughput import shown

RATE_FPS = 100_000.0


def goal_of(test: DelayTest = DelayTest.LATENCY, **changes: Any) -> DelayGoal:
    return DelayGoal(**{"test": test, "rate_fps": RATE_FPS, "throughput_fps": RATE_FPS, **changes})


def repeat(goal: DelayGoal, **device: Any) -> DelayResult:
    measurer = SimulatedMeasurer(**{"limit_fps": 1e6, "delays": goal.wish, **device})
    repetitions = _Repeat(measurer=measurer, goal=goal, on_event=lambda event: None, record=nowhere(), overhead_s=0.0).run()
    profile = Profile(plan=make_plan("gateway-v4").single_pair(), frame_size=64, seed=1, directions=("forward", "reverse"))
    return DelayResult(profile=profile, goal=goal, repetitions=repetitions)


def test_latency_is_as_rfc_8219_has_it() -> None:
    """R8219-07, R8219-09, R8219-10: 120 s, 500 tagged frames after 60 s, the median and the 99.9th percentile of them, twenty times."""
    found = repeat(goal_of())
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags, len(found.valid)) == (120, 60, 500, 20)
    # Frames tagged: 0, 1/500, 2/500 ... 499/500 of the way from 10 us to 20 us.
    typical = found.statistics("forward", "typical")
    assert typical is not None
    assert typical.median == pytest.approx(10_000 + 10_000 * 249.5 / 500, rel=1e-5)
    worst = found.statistics("reverse", "worst_case")
    assert worst is not None
    assert worst.median == pytest.approx(10_000 + 10_000 * 499 / 500, rel=1e-5)
    assert found.deviations == []
    assert found.outcome == "measured"


def test_latency_is_as_rfc_2544_has_it() -> None:
    """R2544-24: one tagged frame at 60 s of 120; the average of twenty."""
    found = repeat(goal_of(DelayTest.LATENCY_RFC2544))
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags) == (120, 60, 1)
    latency = found.statistics("forward", "latency")
    assert latency is not None
    assert (latency.count, found.average("forward", "latency")) == (20, 10_000)
    assert "average" in shown(delay_table(found))


def test_delay_variation_is_over_every_frame() -> None:
    """R8219-12, R8219-13: 60 s, from the first frame on, the 99.9th percentile less the minimum."""
    found = repeat(goal_of(DelayTest.PDV, has_variation=True))
    assert (found.goal.length_s, found.goal.start_s, found.goal.tags) == (60, 0, 0)
    pdv = found.statistics("forward", "pdv")
    assert pdv is not None
    assert pdv.median == pytest.approx(9990, rel=1e-3)
    assert [found.statistics("forward", f"ipdv_{name}") is not None for name in ("min", "median", "max")] == [True] * 3
    assert "IPDV median" in shown(delay_table(found))


def test_without_being_asked_for_there_are_no_differences() -> None:
    assert list(repeat(goal_of(DelayTest.PDV, repetitions=1)).figures) == ["pdv"]


def test_lost_frames_are_infinitely_late() -> None:
    """R8219-16: 10 % of loss: the median stands, the 99.9th percentile does not."""
    found = repeat(goal_of(repetitions=3), limit_fps=0.9 * RATE_FPS)
    typical, worst = found.statistics("forward", "typical"), found.statistics("forward", "worst_case")
    assert typical is not None
    assert worst is not None
    assert math.isfinite(typical.median)
    assert worst.median == math.inf
    document = found.summary()["figures"]["forward"]
    assert document["worst_case"]["median_ns"] is None
    assert document["worst_case"]["values"] == [None] * 3
    assert document["lost_frames"] == found.lost_frames("forward") > 0
    assert "infinite" in shown(delay_table(found))


def test_all_that_is_less_than_the_rfc_asks_for_is_told() -> None:
    found = repeat(goal_of(duration_s=2, from_s=1, tagged_frames=20, repetitions=2, throughput_fps=None))
    texts = [deviation.text for deviation in found.deviations if deviation.requirement == "R8219-07"]
    assert len(texts) == 5
    assert any("throughput for this frame size was not measured" in text for text in texts)
    above = goal_of(throughput_fps=RATE_FPS / 2)
    assert "above the throughput of 50,000 fps" in above.deviations[0].text
    assert "Deviation from R8219-07: sent for 2 s instead of 2 min" in "\n".join(delay_lines(found))


def test_invalid_trials_are_repeated_and_not_charged_to_the_dut() -> None:
    found = repeat(goal_of(repetitions=5), invalid_trials=(2, 3))
    assert [len(repetition) for repetition in found.repetitions] == [1, 3, 1, 1, 1]
    assert found.is_complete


def test_a_load_that_the_tester_does_not_keep_ends_it() -> None:
    found = repeat(goal_of(repetitions=5), tester_ceiling_fps=RATE_FPS / 2)
    assert found.outcome == "tester_limit"
    assert (len(found.repetitions), found.valid, found.statistics("forward", "typical")) == (1, (), None)
    assert "says nothing of the DUT" in "\n".join(delay_lines(found))
    assert any("0 of 5 repetitions" in deviation.text for deviation in found.deviations)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"rate_fps": 0}, "--rate"),
        ({"repetitions": 0}, "--repetitions"),
        ({"duration_s": 0}, "--duration"),
        ({"duration_s": 60}, "--from"),
        ({"tagged_frames": 0}, "--tagged"),
        ({"tagged_frames": 1_000_001}, "--tagged"),
        ({"rate_fps": 1.0}, "--tagged"),
        ({"patience": -1}, "--invalid-retries, --patience"),
    ],
)
def test_bad_goals_are_refused(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(RequestError) as refused:
        goal_of(**changes)
    assert refused.value.where == where
