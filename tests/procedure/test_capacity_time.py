# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a search of the capacity says of the time left, against what its trials take on devices
with tables of all sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from evenhand.base.time_span import TimeSpan
from evenhand.procedure import connection_capacity
from evenhand.procedure.connection_capacity import _search_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal, expected_capacity
from evenhand.procedure.connection_rate import ConnectionRate, ConnectionRateGoal
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.procedure.events import left_of
from evenhand.results.connections import CapacityOutcome
from evenhand.search import ThroughputResult, TrialFinished, TrialStarted, run_search
from evenhand.trial import Connections, Load, SimulatedMeasurer, TrialResult

LAST_SHARE = 0.1
"""Share of the whole time, of which what is said of the last need not be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nat:
    """What is measured."""

    rate_fps: float
    """How fast it opens connections."""
    table: int
    """How many it holds."""
    drops_oldest: bool = False
    """A full table forgets the oldest connection, instead of refusing the new one."""


@dataclass(slots=True, kw_only=True)
class Searched:
    """What was said of the time left, when, and what was found."""

    took_s: float = 0.0
    held: int | None = None
    outcome: CapacityOutcome | None = None
    said: list[tuple[float, TimeSpan]] = field(default_factory=list)


Search = Callable[..., Searched]
Listener = Callable[[Any], None]


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Search:
    """Searches without an engine; time passes as trials would take it."""

    def run(nat: Nat, goal: CapacityGoal, *, waits_s: float = 0.8, invalid_every: int = 0) -> Searched:
        found, made = Searched(), 0

        def trial(of: ConnectionRateGoal, rate_fps: float) -> TrialResult:
            nonlocal made
            made += 1
            found.took_s += of.connections / rate_fps + waits_s
            opened = SimulatedMeasurer(
                limit_fps=nat.rate_fps,
                table_connections=None if nat.drops_oldest else nat.table,
                directions=("forward",),
                invalid_trials=(1,) if invalid_every and made % invalid_every == 0 else (),
            ).offer(_load("establish", of.connections, rate_fps))
            if not opened.is_pass:
                return opened
            found.took_s += of.connections / (of.alpha * rate_fps) + waits_s
            validated = SimulatedMeasurer(
                limit_fps=nat.rate_fps, table_connections=nat.table, directions=("reverse",)
            ).offer(_load("each_once", of.connections, of.alpha * rate_fps))
            document = {**opened.raw, VALIDATION: dict(validated.raw)}
            if not validated.is_pass:
                document |= {"verdict": str(validated.verdict), "reasons": [{"code": "loss", "text": "x"}]}
            return TrialResult.from_contract(document)

        def search_rate(
            tester: Any, of: ConnectionRateGoal, *, keep: Listener, on_event: Listener
        ) -> ConnectionRate:
            def take(event: Any) -> None:
                if isinstance(event, TrialFinished):
                    keep(event.trial)
                on_event(event)

            measurer: Any = SimpleNamespace(measure=lambda duration_s, rate_fps: trial(of, rate_fps))
            times: dict[str, Any] = {"overhead_s": waits_s, "trial_s": of.trial_s(waits_s)}
            result = run_search(measurer, of.search_goal(), on_progress=take, **times)
            assert isinstance(result, ThroughputResult)
            return ConnectionRate(profile=tester.profile, goal=of, search=result)

        def listen(event: Any) -> None:
            if isinstance(event, TrialStarted | TrialFinished):
                found.said.append((found.took_s, left_of(event)))

        monkeypatch.setattr(connection_capacity, "search_rate", search_rate)
        monkeypatch.setattr(connection_capacity, "check_idle", lambda of, tester: of)
        monkeypatch.setattr(connection_capacity, "most_connections", lambda plan: goal.most)
        tester: Any = SimpleNamespace(
            profile=SimpleNamespace(plan=None), waits=SimpleNamespace(total_s=waits_s)
        )
        ended = _search_capacity(tester, goal, keep=lambda each: None, on_event=listen)
        found.held, found.outcome = ended.held, ended.outcome
        return found

    return run


def _load(use: Any, count: int, rate_fps: float) -> Load:
    order: Any = {"order": "pseudorandom"} if use == "establish" else {}
    return Load.of_each_connection(Connections(use=use, count=count, **order), rate_fps)


def check_right(found: Searched, *, first: int = 0) -> None:
    """Within a factor of two, or within the range that was said, but for a fourth: where trials were
    repeated, and since the DUT may deal with what it cannot hold in another way than was seen."""
    spare_s = LAST_SHARE * found.took_s
    for at_s, left in found.said[first:]:
        to_come_s = found.took_s - at_s
        least_s, most_s = (
            (left.least_s / 1.25, 1.25 * left.most_s)
            if left.is_wide
            else (left.middle_s / 2, 2 * left.middle_s)
        )
        assert least_s - spare_s <= to_come_s <= most_s + spare_s, (at_s, left.exact, to_come_s)


@pytest.mark.parametrize("drops_oldest", [False, True], ids=["refuses", "drops"])
@pytest.mark.parametrize("table", [100, 1_000, 20_000, 777_777, 10_000_000])
@pytest.mark.parametrize(("maximum_fps", "share"), [(20e3, 0.02), (20e3, 2), (1e6, 0.2), (1e6, 0.7)])
def test_the_time_left_is_right_from_the_first_trial_on(
    maximum_fps: float, share: float, table: int, drops_oldest: bool, search: Search
) -> None:
    """R9693-14: whatever the table holds and however fast the DUT is. Nothing says what it holds before it
    refuses a number; until then a range is said."""
    goal = CapacityGoal(start=min(table, 1_000), most=40_000_000, max_fps=maximum_fps)
    found = search(Nat(rate_fps=share * maximum_fps, table=table, drops_oldest=drops_oldest), goal)
    assert found.held == pytest.approx(table, rel=0.011)
    check_right(found, first=1)
    if share >= 0.2:
        check_right(found)


def test_once_a_number_is_not_held_one_time_is_said_that_runs_down(search: Search) -> None:
    found = search(Nat(rate_fps=2e5, table=777_777), CapacityGoal(start=10_000, most=40_000_000, max_fps=1e6))
    left = [left for _, left in found.said]
    assert left[0].is_wide
    single = next(number for number, each in enumerate(left) if not each.is_wide)
    assert single < len(left) * 0.7
    assert not any(each.is_wide for each in left[single:])
    times = [each.middle_s for each in left[single:]]
    assert all(after_s <= before_s + found.took_s / 50 for before_s, after_s in pairwise(times))
    # Until then the range becomes narrower.
    first, last = left[0], left[single - 1]
    assert last.most_s / last.least_s < first.most_s / first.least_s / 10


@pytest.mark.parametrize("table", [1_000, 100_000])
def test_repeated_trials_make_it_longer(table: int, search: Search) -> None:
    goal = CapacityGoal(start=1_000, most=4_000_000, max_fps=1e6)
    check_right(search(Nat(rate_fps=3e5, table=table), goal, invalid_every=4), first=1)


def test_a_dut_that_does_not_hold_the_first_number_is_soon_known(search: Search) -> None:
    goal = CapacityGoal(start=1_000, most=4_000_000, max_fps=1e6)
    found = search(Nat(rate_fps=1e6, table=100), goal)
    assert found.outcome is CapacityOutcome.TOO_FEW
    check_right(found, first=4)
    assert found.said[4][1].least_s < 2 * (found.took_s - found.said[4][0])


def test_before_it_begins_the_time_is_a_range_from_the_smallest_table_to_the_largest(search: Search) -> None:
    goal = CapacityGoal(start=10_000, most=1_000_000, max_fps=100e3)
    expected = expected_capacity(goal, 0.8)
    assert expected.is_wide
    for table in (10_000, 50_000, 300_000, 999_999, 2_000_000):
        took_s = search(Nat(rate_fps=30e3, table=table), goal).took_s
        assert expected.least_s <= took_s <= expected.most_s


def test_what_a_range_says() -> None:
    assert TimeSpan(40, 740).words == "40 s to 12 min"
    assert TimeSpan(40, 740).exact == "40 s to 12 min 20 s"
    assert TimeSpan(40, 75).words == "about 55 s"
    assert TimeSpan.of(1130).words == "about 19 min"
    assert TimeSpan.of(192).exact == "3 min 12 s"
    assert TimeSpan(40, 1e6).words == "40 s or more"
    assert TimeSpan(0, 5000).words == "1 s or more"
    assert TimeSpan(0, 90).exact == "1 s to 90 s"
    assert TimeSpan(3, 9).then(-5) == TimeSpan(0, 4)
    assert TimeSpan.sum([TimeSpan(1, 2), TimeSpan.of(3)]) == TimeSpan(4, 5)
