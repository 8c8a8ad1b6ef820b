# SPDX-License-Identifier: Apache-2.0
"""The tester's ceiling: only the tester's own faults lower it."""

from __future__ import annotations

from evenhand import search
from evenhand.search import find_tester_ceiling
from evenhand.trial import SimulatedMeasurer


def test_a_lossy_device_does_not_lower_the_ceiling() -> None:
    """MLR-14."""
    ceiling = find_tester_ceiling(SimulatedMeasurer(limit_fps=1), start_fps=1e6, max_fps=1e6, min_fps=1e3, duration_s=1)
    assert ceiling.rate_fps == 1e6
    assert len(ceiling.trials) == 1


def test_the_ceiling_is_the_first_load_that_the_tester_keeps() -> None:
    ceiling = find_tester_ceiling(
        SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=700_000), start_fps=1e6, max_fps=1e6, min_fps=1e3, duration_s=1
    )
    assert ceiling.rate_fps == 700_000
    assert len(ceiling.trials) == 3


def test_a_tester_that_is_only_late_steps_down_by_a_fifth() -> None:
    ceiling = find_tester_ceiling(
        SimulatedMeasurer(limit_fps=1, invalid_trials={1, 2, 3}), start_fps=1e6, max_fps=1e6, min_fps=1e3, duration_s=1
    )
    assert [trial.intended_fps for trial in ceiling.trials] == [1e6, 1e6, 8e5, 8e5]
    assert ceiling.rate_fps == 800_000


def test_a_tester_that_keeps_no_load_has_no_ceiling() -> None:
    ceiling = find_tester_ceiling(
        SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=1), start_fps=1e6, max_fps=1e6, min_fps=1e5, duration_s=1
    )
    assert ceiling.rate_fps is None


def climb(device: SimulatedMeasurer, **arguments: float) -> search.TesterCeiling:
    return find_tester_ceiling(device, start_fps=500_000, **{"max_fps": 1e7, "min_fps": 1e5, "duration_s": 1, **arguments})


def test_a_tester_that_keeps_the_first_load_climbs_until_it_is_its_own_limit() -> None:
    """MLR-14: what stopped at the first load ended every search of a fast router there. 1.28 Mfps is offered in part, and tells how far."""
    ceiling = climb(SimulatedMeasurer(limit_fps=1e9, tester_ceiling_fps=1_000_000))
    assert [trial.intended_fps for trial in ceiling.trials] == [500_000, 800_000, 1_280_000, 1_280_000, 1_000_000]
    assert ceiling.rate_fps == 1_000_000
    assert not ceiling.is_device_slower


def test_the_climb_ends_where_the_device_loses_frames_twice() -> None:
    """A search needs no higher maximum than a load that fails."""
    ceiling = climb(SimulatedMeasurer(limit_fps=900_000))
    assert [trial.intended_fps for trial in ceiling.trials] == [500_000, 800_000, 1_280_000, 1_280_000]
    assert ceiling.rate_fps == 1_280_000
    assert ceiling.is_device_slower
    # One loss may be a stall: the noise of this seed hits the first trial only.
    stalled = climb(SimulatedMeasurer(limit_fps=900_000, noise_probability=0.5, seed=1))
    assert [trial.is_pass for trial in stalled.trials[:2]] == [False, True]
    assert stalled.rate_fps == 1_280_000


def test_the_climb_ends_at_the_maximum_and_never_below_what_was_kept() -> None:
    assert climb(SimulatedMeasurer(limit_fps=1e9), max_fps=1e6).rate_fps == 1e6
    late = climb(SimulatedMeasurer(limit_fps=1e9, invalid_trials=range(3, 99)))
    assert [trial.intended_fps for trial in late.trials] == [500_000, 800_000, 1_280_000, 1_280_000, 1_024_000, 1_024_000]
    assert late.rate_fps == 800_000
