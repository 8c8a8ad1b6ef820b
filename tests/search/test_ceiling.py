# SPDX-License-Identifier: Apache-2.0
"""The tester's ceiling: only the tester's own faults lower it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand import search
from evenhand.trial import SimulatedMeasurer, TrialResult

FIRST_KEPT = 1.0
"""A precision that any two loads have."""


def ceiling_of(measurer: SimulatedMeasurer, **arguments: Any) -> search.TesterCeiling:
    return search.find_tester_ceiling(
        measurer, **{"max_fps": 1e6, "min_fps": 1e3, "duration_s": 1.0, **arguments}
    )


def test_a_lossy_device_does_not_lower_the_ceiling() -> None:
    """MLR-14."""
    ceiling = ceiling_of(SimulatedMeasurer(limit_fps=1))
    assert ceiling.rate_fps == 1e6
    assert len(ceiling.trials) == 1
    assert ceiling.is_at_maximum
    assert ceiling.to_document()["above"] is None


def test_loss_in_its_own_loop_is_the_testers_own() -> None:
    """MLR-14: without a DUT, a frame that is lost was lost by the tester."""
    ceiling = ceiling_of(SimulatedMeasurer(limit_fps=400_000), is_loss_ours=True)
    assert ceiling.rate_fps is not None
    assert 400_000 * 0.95 <= ceiling.rate_fps <= 400_000
    assert {reason.code for reason in ceiling.reasons_above} == {"loss"}


@pytest.mark.parametrize("start_fps", [None, 1e3, 1e5, 699_999, 700_001, 1e6, 1e9])
@pytest.mark.parametrize("precision", [0.05, 0.01, 0.2])
def test_the_ceiling_is_found_from_below_and_from_above(start_fps: float | None, precision: float) -> None:
    """MLR-14: offered about equal to intended at the ceiling, and not at the load above it."""
    ceiling = ceiling_of(
        SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=700_000), start_fps=start_fps, precision=precision
    )
    assert ceiling.rate_fps is not None
    assert ceiling.above_fps is not None
    assert ceiling.rate_fps <= 700_000 < ceiling.above_fps
    assert ceiling.above_fps - ceiling.rate_fps <= precision * ceiling.above_fps
    assert ceiling.offered_fps == ceiling.rate_fps
    assert ceiling.offered_above_fps == pytest.approx(700_000, rel=1e-5)
    assert [reason.code for reason in ceiling.reasons_above] == ["offered_load"]
    assert len(ceiling.trials) < 40


def test_a_tester_whose_cpu_was_taken_away_is_told_from_one_at_its_limit() -> None:
    """R2544-39: late at a load of which it offered twice as much elsewhere."""
    disturbed = ceiling_of(SimulatedMeasurer(limit_fps=1, invalid_trials=range(1, 11)), precision=FIRST_KEPT)
    assert disturbed.above_fps == 409_600
    assert disturbed.is_disturbed
    assert disturbed.maximum_offered_load_fps == 1e6
    assert not ceiling_of(
        SimulatedMeasurer(limit_fps=1, invalid_trials={1, 2}), precision=FIRST_KEPT
    ).is_disturbed
    limited = ceiling_of(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=300_000))
    assert not limited.is_disturbed
    assert limited.maximum_offered_load_fps == pytest.approx(300_000, rel=1e-5)


def test_the_way_up_may_end_where_the_device_loses_frames_twice() -> None:
    """A search of its throughput needs no higher maximum than a load that fails; one loss may be a stall."""
    slower = ceiling_of(
        SimulatedMeasurer(limit_fps=150_000), start_fps=1e5, precision=FIRST_KEPT, ending_losses=2
    )
    assert [trial.intended_fps for trial in slower.trials] == [1e5, 2e5, 2e5]
    assert slower.rate_fps == 2e5
    assert slower.is_device_slower
    stalled = ceiling_of(
        SimulatedMeasurer(limit_fps=150_000, noise_probability=0.5, seed=1), start_fps=1e5, ending_losses=2
    )
    assert [trial.is_pass for trial in stalled.trials[:2]] == [False, True]
    assert stalled.rate_fps == 2e5
    through = ceiling_of(SimulatedMeasurer(limit_fps=150_000), start_fps=1e5)
    assert through.is_at_maximum
    assert not through.is_device_slower


def test_no_load_is_above_the_maximum_or_below_the_minimum() -> None:
    for fault_fps in (1e9, 1.0):
        measurer = SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=fault_fps)
        ceiling_of(measurer, start_fps=3e5, max_fps=7e5, min_fps=1e5)
        assert all(1e5 <= trial.intended_fps <= 7e5 for trial in measurer.trials)


def test_a_rough_look_stops_at_the_first_load_that_is_kept() -> None:
    ceiling = ceiling_of(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=700_000), precision=FIRST_KEPT)
    assert ceiling.rate_fps == 700_000
    assert len(ceiling.trials) == 3


def test_a_tester_that_is_only_late_steps_down_by_a_fifth() -> None:
    ceiling = ceiling_of(SimulatedMeasurer(limit_fps=1, invalid_trials={1, 2, 3}), precision=FIRST_KEPT)
    assert [trial.intended_fps for trial in ceiling.trials] == [1e6, 1e6, 8e5, 8e5]
    assert ceiling.rate_fps == 800_000


def test_a_tester_that_keeps_no_load_has_no_ceiling() -> None:
    ceiling = ceiling_of(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=1), min_fps=1e5)
    assert ceiling.rate_fps is None
    assert ceiling.offered_fps is None
    assert ceiling.above_fps == 1e6
    assert not ceiling.is_at_maximum


def test_the_document_tells_the_ceiling_and_why_there_is_no_more() -> None:
    document = ceiling_of(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=500_000)).to_document()
    assert document["ceiling_fps_per_direction"] == 500_000
    assert document["above"]["offered_fps_per_direction"] == pytest.approx(500_000, rel=1e-5)
    assert document["above"]["reasons"][0]["code"] == "offered_load"


def offering(trial: TrialResult, offered_fps: float) -> TrialResult:
    directions = {name: replace(each, offered_fps=offered_fps) for name, each in trial.directions.items()}
    return replace(trial, directions=directions)


def test_what_was_offered_at_a_load_is_the_most_of_its_attempts() -> None:
    """RFC 2285, 3.5.3: of those that kept it, where it is the ceiling; and the attempt that came closest says
    why the load above was not kept."""
    kept = SimulatedMeasurer(limit_fps=1e9).measure(1, 5e5)
    spoiled = SimulatedMeasurer(limit_fps=1e9, invalid_trials={1})
    slow = SimulatedMeasurer(limit_fps=1e9, tester_ceiling_fps=6e5)
    ceiling = search.TesterCeiling(
        rate_fps=5e5,
        above_fps=1e6,
        max_fps=1e6,
        min_fps=1e3,
        is_loss_ours=False,
        was_stopped=False,
        trials=(
            offering(spoiled.measure(1, 5e5), 500_400),
            offering(kept, 499_990),
            kept,
            offering(kept, 499_980),
            slow.measure(1, 1e6),
            offering(SimulatedMeasurer(limit_fps=1e9, invalid_trials={1}).measure(1, 1e6), 900_000),
            slow.measure(1, 1e6),
        ),
    )
    assert ceiling.offered_fps == 500_000
    assert ceiling.offered_above_fps == ceiling.maximum_offered_load_fps == 900_000
    assert [reason.code for reason in ceiling.reasons_above] == ["sender_overdue"]


def test_the_way_down_begins_at_the_most_that_was_offered_in_any_attempt() -> None:
    """MLR-14: one attempt that fell far behind is a moment of the host."""

    class Uneven:
        def __init__(self) -> None:
            self.loads: list[float] = []

        def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
            self.loads.append(rate_fps)
            kept_fps = 500_000 if len(self.loads) == 1 else 300_000
            return SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=kept_fps).measure(duration_s, rate_fps)

    device = Uneven()
    search.find_tester_ceiling(device, max_fps=1e6, min_fps=1e3, duration_s=1.0, precision=FIRST_KEPT)
    assert device.loads[:3] == [1e6, 1e6, 5e5]
