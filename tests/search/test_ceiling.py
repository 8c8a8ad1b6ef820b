# SPDX-License-Identifier: Apache-2.0
"""The tester's ceiling: only the tester's own faults lower it."""

from __future__ import annotations

from evenhand.search import find_tester_ceiling
from evenhand.trial import SimulatedMeasurer


def test_a_lossy_device_does_not_lower_the_ceiling() -> None:
    """MLR-14."""
    ceiling = find_tester_ceiling(SimulatedMeasurer(limit_fps=1), max_fps=1e6, min_fps=1e3, duration_s=1)
    assert ceiling.rate_fps == 1e6
    assert len(ceiling.trials) == 1


def test_the_ceiling_is_the_first_load_that_the_tester_keeps() -> None:
    ceiling = find_tester_ceiling(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=700_000), max_fps=1e6, min_fps=1e3, duration_s=1)
    assert ceiling.rate_fps == 700_000
    assert len(ceiling.trials) == 3


def test_a_tester_that_is_only_late_steps_down_by_a_fifth() -> None:
    ceiling = find_tester_ceiling(SimulatedMeasurer(limit_fps=1, invalid_trials={1, 2, 3}), max_fps=1e6, min_fps=1e3, duration_s=1)
    assert [trial.intended_fps for trial in ceiling.trials] == [1e6, 1e6, 8e5, 8e5]
    assert ceiling.rate_fps == 800_000


def test_a_tester_that_keeps_no_load_has_no_ceiling() -> None:
    ceiling = find_tester_ceiling(SimulatedMeasurer(limit_fps=1, tester_ceiling_fps=1), max_fps=1e6, min_fps=1e5, duration_s=1)
    assert ceiling.rate_fps is None
