# SPDX-License-Identifier: Apache-2.0
"""The numbers of connections that a user reads: capacity by doubling and halving, the median tear-down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from evenhand.base.errors import RequestError
from evenhand.dut.connections import Emptied
from evenhand.plan import AddressPlan, UdpRange, make_plan
from evenhand.procedure import connection_capacity as capacity
from evenhand.procedure.connection_capacity import CapacityOutcome, measure_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRateGoal, _OpeningMeasurer, search_rate
from evenhand.procedure.connection_trials import TOO_SHORT, most_connections
from evenhand.procedure.tear_down import Removal, TearDown, TearDownGoal
from evenhand.search import Outcome
from evenhand.trial import Limits, Load, SimulatedMeasurer, TrialResult
from tests.errors import raises

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
    monkeypatch: pytest.MonkeyPatch,
    *,
    limit: int,
    start: int,
    most: int,
    precision: float = 0.01,
    beyond: Outcome = Outcome.BELOW_MINIMUM,
    forgets_from: float = math.inf,
    plan: AddressPlan = PROFILE.plan,
) -> tuple[Any, list[int]]:
    """A DUT that holds so many; and the numbers that were tried.

    Args:
        beyond: How the search of a larger number ends.
        forgets_from: So many take so long that it forgets some.
    """
    tried: list[int] = []

    def rate(tester: Any, goal: Any, **_: Any) -> Any:
        if goal.connections >= forgets_from:
            raise RequestError("the DUT forgets a connection", code=TOO_SHORT, where="connections, min_fps")
        tried.append(goal.connections)
        held = goal.connections <= limit
        return SimpleNamespace(outcome=Outcome.FOUND if held else beyond, rate_fps=1000.0 if held else None)

    monkeypatch.setattr(capacity, "search_rate", rate)
    monkeypatch.setattr(capacity, "check_before", lambda goal, tester: None)
    monkeypatch.setattr(capacity, "check_idle", lambda goal, tester: goal)
    monkeypatch.setattr(capacity, "with_highest_rate", lambda goal, tester, **_: (tester, goal))
    goal = CapacityGoal(start=start, most=most, precision=precision, max_fps=1e5)
    setup = SimpleNamespace(connection_timeout_s=None)
    waits = SimpleNamespace(total_s=0.0)
    tester: Any = SimpleNamespace(
        profile=SimpleNamespace(plan=plan), setup=setup, waits=waits, check_state=lambda **_: None
    )
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


@pytest.mark.parametrize(
    ("beyond", "outcome"),
    [(Outcome.STOPPED, CapacityOutcome.STOPPED), (Outcome.TESTER_CEILING, CapacityOutcome.TESTER_CEILING)],
)
def test_what_the_tester_did_not_find_out_is_no_number_that_is_not_held(
    monkeypatch: pytest.MonkeyPatch, beyond: Outcome, outcome: CapacityOutcome
) -> None:
    found, tried = searched(monkeypatch, limit=2000, start=1000, most=10_000, beyond=beyond)
    assert (tried, found.outcome, found.held, found.not_held) == ([1000, 2000, 4000], outcome, 2000, None)
    assert found.summary()["is_at_least"] is True
    assert found.summary()["steps"][-1]["is_held"] is None
    first, _ = searched(monkeypatch, limit=500, start=1000, most=10_000, beyond=beyond)
    assert (first.outcome, first.held) == (outcome, None)


def test_what_was_held_is_kept_where_the_dut_forgets_more_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9693-06: it is a lower bound, and no more was tried."""
    found, tried = searched(monkeypatch, limit=10**9, start=1000, most=100_000, forgets_from=4000)
    assert tried == [1000, 2000]
    assert (found.outcome, found.held, found.not_held) == (CapacityOutcome.TIMEOUT, 2000, None)
    between, _ = searched(monkeypatch, limit=3000, start=1000, most=100_000)
    assert between.outcome is CapacityOutcome.FOUND


def test_no_more_connections_are_tried_than_the_plan_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9693-04: 20 x 20 hosts, 10 x 1 ports: 4,000 four tuples."""
    plan = make_plan(
        "nat44",
        20,
        source_ports=UdpRange(first=10_000, last=10_009),
        destination_ports=UdpRange(first=1, last=1),
    )
    assert plan.four_tuples == 4000
    found, tried = searched(monkeypatch, limit=10**9, start=1000, most=100_000, plan=plan)
    assert tried == [1000, 2000, 4000]
    assert (found.outcome, found.held) == (CapacityOutcome.AT_LEAST, 4000)


def test_a_number_that_the_user_wants_tried_is_refused_once_the_highest_rate_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R9693-06: without a maximum rate nothing is known of it before the tester's ceiling is."""
    setup = SimpleNamespace(connection_timeout_s=10.0)
    tester: Any = SimpleNamespace(profile=PROFILE, setup=setup, waits=SimpleNamespace(total_s=0.0))
    rates = iter((1e6, 1e4))

    def with_maximum(goal: Any, given: Any, **_: Any) -> Any:
        return given, replace(goal, max_fps=next(rates))

    monkeypatch.setattr(capacity, "with_maximum", with_maximum)
    goal = CapacityGoal(start=1000, most=100_000)
    _, finite = capacity.with_highest_rate(goal, tester, on_event=lambda event: None, recorder=None)
    assert finite.max_fps == 1e6
    with raises(TOO_SHORT) as refused:
        capacity.with_highest_rate(goal, tester, on_event=lambda event: None, recorder=None)
    assert refused.value.where == "most, max_fps"


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5])
def test_connections_are_validated_at_a_lower_rate_than_they_are_opened_at(alpha: float) -> None:
    """R9693-11: below 100 %."""
    for goal in (ConnectionRateGoal, CapacityGoal):
        with raises("procedure.out-of-range") as refused:
            goal(alpha=alpha)
        assert refused.value.where == "alpha"
        goal(alpha=0.99)


def test_a_trial_that_opens_connections_is_made_to_its_end() -> None:
    """R9693-09: how many the DUT kept of all is seen at the end only."""
    assert ConnectionRateGoal(max_fps=1e5).search_goal().stops_early is False


def test_no_more_connections_than_the_pool_has_four_tuples_for() -> None:
    """R9693-04: one public address with all ports but 0, towards 20 hosts with one port."""
    plan = make_plan("nat44_masquerade", 20, destination_ports=UdpRange(first=1, last=1))
    assert plan.four_tuples > most_connections(plan) == 65_535 * 20


@pytest.mark.parametrize(("rate_fps", "count"), [(0.1, 1), (500.0, 500), (1e6, 1000)])
def test_the_ceiling_of_new_connections_is_found_with_as_many_as_there_can_be(
    rate_fps: float, count: int
) -> None:
    asked: list[Load] = []
    measurer = _OpeningMeasurer(measurer=cast(Any, SimpleNamespace(offer=asked.append)), most=1000)
    measurer.measure(1.0, rate_fps)
    (load,) = asked
    assert load.connections is not None
    assert (load.connections.count, load.rate_fps) == (count, rate_fps)


@dataclass(frozen=True)
class Forgetting:
    """A tester, and its measurer, whose DUT opens connections, and has forgotten all of them when they are
    validated."""

    limits: Limits = field(default_factory=Limits)
    profile: Any = field(default_factory=lambda: PROFILE)
    setup: Any = field(
        default_factory=lambda: SimpleNamespace(
            name="t", empty_connections=lambda: Emptied(seconds=0.1, connections=None)
        )
    )
    overhead_s: float = 0.0

    def measurer(self, on_event: Any, **_: Any) -> Self:
        return self

    def stored(self, load: Load) -> None:
        return None

    def offer(self, load: Load) -> TrialResult:
        opens = load.connections is not None and load.connections.use == "establish"
        return SimulatedMeasurer(
            limit_fps=1e9,
            table_connections=None if opens else 0,
            directions=("forward",) if opens else ("reverse",),
        ).offer(load)


def test_that_nothing_is_held_ends_the_search_of_the_first_number_only() -> None:
    """At a lower rate each connection would have to be remembered for longer. With more connections than were
    held before, it is what a full table does."""
    goal = ConnectionRateGoal(connections=1000, max_fps=1e5)
    tester: Any = Forgetting()
    with raises("procedure.nothing-held"):
        search_rate(tester, goal, keep=lambda trial: None)
    later = replace(goal, known_fps=5e4, min_fps=1e4)
    found = search_rate(tester, later, keep=lambda trial: None)
    assert (found.outcome, found.rate_fps) == (Outcome.BELOW_MINIMUM, None)
