# SPDX-License-Identifier: Apache-2.0
"""The numbers of connections that a user reads: capacity by doubling and halving, the median tear-down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import connection_capacity as capacity
from evenhand.procedure.connection_capacity import CapacityOutcome, measure_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.tear_down import Removal, TearDown, TearDownGoal
from evenhand.search import Outcome

PROFILE: Any = SimpleNamespace(plan=make_plan("nat44"))


def removals(*seconds: float) -> TearDown:
    made = tuple(Removal(connections=1000, counted=None, seconds=each) for each in seconds)
    return TearDown(
        profile=PROFILE,
        goal=TearDownGoal(connections=1000, rate_fps=100.0),
        outcome="measured",
        removals=made,
        trials=(),
    )


def test_the_tear_down_rate_is_the_median_of_the_repetitions() -> None:
    """R9693-13, R9693-19: not the best one, nor the mean; what took no measurable time has none."""
    assert removals(1.0, 2.0, 10.0).per_second == 500.0
    assert removals(10.0, 2.0, 1.0, 0.0).per_second == 500.0
    assert removals(1.0, 2.0).per_second == 750.0
    assert removals(0.0).per_second is None


def searched(
    monkeypatch: pytest.MonkeyPatch, *, limit: int, start: int, most: int, precision: float = 0.01
) -> tuple[Any, list[int]]:
    """A DUT that holds so many; and the numbers that were tried."""
    tried: list[int] = []

    def rate(tester: Any, goal: Any, **_: Any) -> Any:
        tried.append(goal.connections)
        held = goal.connections <= limit
        return SimpleNamespace(
            outcome=Outcome.FOUND if held else Outcome.BELOW_MINIMUM, rate_fps=1000.0 if held else None
        )

    monkeypatch.setattr(capacity, "search_rate", rate)
    monkeypatch.setattr(capacity, "check_before", lambda goal, tester: None)
    monkeypatch.setattr(capacity, "check_idle", lambda goal, tester: goal)
    monkeypatch.setattr(capacity, "with_highest_rate", lambda goal, tester, **_: (tester, goal))
    goal = CapacityGoal(start=start, most=most, precision=precision, max_fps=1e5)
    setup = SimpleNamespace(connection_timeout_s=None)
    waits = SimpleNamespace(total_s=0.0)
    tester: Any = SimpleNamespace(profile=PROFILE, setup=setup, waits=waits, check_state=lambda **_: None)
    return measure_capacity(tester, goal), tried


def test_a_capacity_search_tries_no_more_than_it_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9693-14: 2 x 8,000 is beyond the most, which is tried itself, and is then a lower bound."""
    found, tried = searched(monkeypatch, limit=10**9, start=1000, most=10_500)
    assert tried == [1000, 2000, 4000, 8000, 10_500]
    assert (found.outcome, found.held, found.not_held) == (CapacityOutcome.AT_LEAST, 10_500, None)
    found, tried = searched(monkeypatch, limit=10**9, start=1000, most=1000)
    assert (tried, found.outcome, found.held) == ([1000], CapacityOutcome.AT_LEAST, 1000)


@pytest.mark.parametrize("limit", [1000, 1999, 5000, 9999, 10_000])
def test_a_capacity_lies_between_what_was_held_and_what_was_not(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """R9693-14: known to the connection, and never beyond the most."""
    found, tried = searched(monkeypatch, limit=limit, start=1000, most=10_500, precision=1e-9)
    assert (found.held, found.not_held) == (limit, limit + 1)
    assert found.outcome is CapacityOutcome.FOUND
    assert max(tried) <= 10_500
    assert found.summary()["is_at_least"] is False
    coarse, _ = searched(monkeypatch, limit=limit, start=1000, most=10_500, precision=0.1)
    assert coarse.held <= limit < coarse.not_held
    assert coarse.not_held - coarse.held <= max(1, 0.1 * coarse.not_held)


def test_a_dut_that_does_not_hold_the_first_number_has_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    found, tried = searched(monkeypatch, limit=500, start=1000, most=10_000)
    assert (tried, found.outcome, found.held, found.not_held) == ([1000], CapacityOutcome.TOO_FEW, None, 1000)


def test_a_number_is_held_if_its_rate_has_not_collapsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9693-14: a tenth of the rate with half of the connections while they are doubled, and half of it
    between two numbers; the first may have any rate."""
    found, tried = searched(monkeypatch, limit=3000, start=1000, most=10_500, precision=0.4)
    assert tried == [1000, 2000, 4000, 3000]
    asked = [step["least_per_second"] for step in found.summary()["steps"]]
    assert asked == [0, 100, 100, 500]
    assert [step["is_held"] for step in found.summary()["steps"]] == [True, True, False, True]
