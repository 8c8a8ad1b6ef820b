# SPDX-License-Identifier: Apache-2.0
"""A DUT that forgets connections sooner than a test uses them is refused before anything is started
(R9693-06); and a run that goes on leaves the DUT's table to the trial that is made next."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from evenhand.dut.connections import Emptied
from evenhand.plan import UdpRange, make_plan
from evenhand.procedure import (
    BackToBackGoal,
    BurstGoal,
    ConnectionWish,
    DelayGoal,
    DelayTest,
    LossGoal,
    OpenTestbed,
    RecoveryGoal,
)
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRateGoal
from evenhand.procedure.connection_trials import (
    TOO_SHORT,
    ConnectionTrials,
    check_plan_has,
    check_timeout,
    established_idle_s,
    most_connections,
)
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.procedure.limits import HOST_CHOOSES, WishedLimits
from evenhand.procedure.tear_down import REMOVED, TearDownGoal, _RemovingMeasurer
from evenhand.rig import Setup
from evenhand.search import MlrGoal, MlrGoals, ThroughputGoal
from evenhand.testbed import make_testbed
from evenhand.trial import SHORT_WAITS, Connections, Limits, Load, TrialResult
from tests.errors import raises
from tests.trial.test_result import GOLDEN

GOOD = next(
    found for found in map(json.loads, GOLDEN.read_text().splitlines()) if found.get("verdict") == "PASS"
)
"""The document of a trial."""
WISH = ConnectionWish(count=100_000, rate_fps=10_000.0)
"""Opened in 10 s."""
MOST_FPS = 1e6
CASES: dict[str, tuple[Callable[..., object], float]] = {
    "throughput": (
        lambda bed, **c: bed.throughput(goal=ThroughputGoal(max_fps=MOST_FPS, final_duration_s=30.0), **c),
        30.0,
    ),
    "mlr": (
        lambda bed, **c: bed.throughput(
            goal=MlrGoals(
                goals=(MlrGoal(name="NDR", final_duration_s=20.0, duration_sum_s=20.0),), max_fps=MOST_FPS
            ),
            **c,
        ),
        20.0,
    ),
    "throughput table": (
        lambda bed, **c: bed.throughput_table(
            (84,), goal=ThroughputGoal(max_fps=MOST_FPS, final_duration_s=30.0), **c
        ),
        30.0,
    ),
    "loss": (lambda bed, **c: bed.loss(goal=LossGoal(max_fps=MOST_FPS, duration_s=40.0), **c), 40.0),
    "loss table": (
        lambda bed, **c: bed.loss_table((84,), goal=LossGoal(max_fps=MOST_FPS, duration_s=40.0), **c),
        40.0,
    ),
    "latency": (
        lambda bed, **c: bed.delay(
            goal=DelayGoal(test=DelayTest.LATENCY, rate_fps=1000.0, duration_s=70.0), **c
        ),
        70.0,
    ),
    "pdv": (lambda bed, **c: bed.pdv(1000.0, **c), 60.0),
    "back to back": (
        lambda bed, **c: bed.back_to_back((84,), goal=BackToBackGoal(rate_fps=MOST_FPS), **c),
        60.0,
    ),
    "back to back, throughput known": (
        lambda bed, **c: bed.back_to_back(
            (84,), goal=BackToBackGoal(rate_fps=MOST_FPS, throughput_fps=1e5), **c
        ),
        2.0,
    ),
    "burst": (
        lambda bed, **c: bed.burst(
            goal=BurstGoal(rate_fps=MOST_FPS, duration_s=4.0, final_duration_s=13.0), **c
        ),
        15.0,
    ),
    "recovery": (lambda bed, **c: bed.recovery(goal=RecoveryGoal(throughput_fps=1e5), **c), 120.0),
    "trial": (lambda bed, **c: bed.trial(rate_fps=1000.0, duration_s=50.0, **c), 50.0),
}
"""What is called, and for how long its longest trial sends."""


def bed_of(timeout_s: float | None, *, is_emptied: bool = True) -> OpenTestbed:
    made: dict[str, Any] = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0"},
        "right": {"device": "net_ring1"},
        "tester": {"cpus": [0]},
        "dut": ({"empty_connections": "true"} if is_emptied else {})
        | ({} if timeout_s is None else {"connection_timeout": f"{timeout_s}s"}),
    }
    return OpenTestbed(
        setup=Setup(name="t", testbed=make_testbed(made, where="t")), engine=Path("/there/is/none")
    )


@pytest.mark.parametrize("name", CASES)
def test_established_connections_must_outlast_the_longest_trial_of_every_procedure(name: str) -> None:
    """R9693-06: phase 1, the gap and phase 2. Nothing is started: there is no engine."""
    call, sending_s = CASES[name]
    idle_s = 10.0 + SHORT_WAITS.total_s + 0.03 + sending_s
    assert established_idle_s(WISH, SHORT_WAITS.total_s, sending_s) == pytest.approx(idle_s)
    conditions: dict[str, Any] = {"plan": "nat44", "waits": SHORT_WAITS, "established": WISH}
    with raises("procedure.timeout-too-short") as refused:
        call(bed_of(idle_s - 0.1), **conditions)
    assert refused.value.where == "established"
    for timeout_s in (idle_s + 0.1, None):
        with raises("base.program-missing"):
            call(bed_of(timeout_s), **conditions)


@pytest.mark.parametrize("limits", [Limits(), WishedLimits(host_keeps=HOST_CHOOSES)])
def test_a_table_that_nothing_empties_is_refused_before_the_host_shows_its_limits(limits: Limits) -> None:
    """R9693-07. Nothing is started: there is no engine. A plan without connections needs no such command."""
    for conditions in ({"established": WISH}, {}):
        given: dict[str, Any] = {"rate_fps": 1000.0, "duration_s": 1.0, "limits": limits, **conditions}
        with raises("rig.no-way-to-empty"):
            bed_of(None, is_emptied=False).trial(plan="nat44", **given)
        with raises("base.program-missing"):
            bed_of(None).trial(plan="nat44", **given)
    with raises("base.program-missing"):
        bed_of(None, is_emptied=False).trial(rate_fps=1000.0, duration_s=1.0, limits=limits)


def test_what_opens_connections_itself_knows_for_how_long_they_have_no_frame() -> None:
    """R9693-06. At the line rate, which nobody knows yet, it does not."""
    rate = ConnectionRateGoal(connections=1_000_000, max_fps=1e5, min_fps=1e4, alpha=0.5)
    assert rate.longest_idle_s(1.0) == pytest.approx(1.0 + 0.3 + 200.0)
    assert ConnectionRateGoal(connections=1_000_000).longest_idle_s(1.0) is None
    removal = TearDownGoal(connections=1_000_000, rate_fps=1e4)
    assert removal.longest_idle_s(1.0) == pytest.approx(100.0 + 0.3 + 1.0)
    # The first number at the lowest rate, a hundredth of the maximum; the most at the highest.
    size = CapacityGoal(start=10_000, max_fps=1e5)
    assert size.longest_idle_s(1.0) == pytest.approx(1.0 + 0.003 + 20.0)
    wanted = CapacityGoal(start=10_000, most=10_000_000, max_fps=1e5)
    assert wanted.longest_idle_s(1.0) == pytest.approx(1.0 + 3.0 + 200.0)
    assert CapacityGoal(start=10_000, most=20_000).longest_idle_s(1.0) is None


def test_the_most_connections_of_a_plan_are_its_tuples_those_of_the_pool_and_32_bits() -> None:
    """R9693-04."""
    assert most_connections(make_plan("nat44", 1)) == 40_000 * 100
    assert most_connections(make_plan("nat44")) == 2**32 - 1


@dataclass(kw_only=True)
class CountingSetup:
    """A DUT whose table is emptied so often."""

    emptied: int = 0
    name: str = "bed"

    def empty_connections(self) -> Emptied:
        self.emptied += 1
        return Emptied(seconds=0.5, connections=7)


@dataclass(kw_only=True)
class Replaying:
    """The first trials were made before."""

    before: list[TrialResult]
    made: list[Load] = field(default_factory=list)

    def stored(self, load: Load) -> TrialResult | None:
        return self.before.pop(0) if self.before else None

    def offer(self, load: Load) -> TrialResult:
        assert self.stored(load) is None, "a trial that was made before needs no preparation"
        self.made.append(load)
        return TrialResult.from_contract(GOOD)


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_trial_that_was_made_before_empties_no_table(has_failed: bool) -> None:
    """R9693-07: what was measured stands as it was, and the table of a DUT on which nothing is measured is
    not touched."""
    stored = GOOD | {"emptied": {"seconds": 3.0, "connections": 1}}
    if has_failed:
        stored |= {"verdict": "FAIL", "reasons": [{"code": "loss", "text": "lost"}]}
    setup, measurer = CountingSetup(), Replaying(before=[TrialResult.from_contract(stored)])
    trials = ConnectionTrials(setup=cast(Setup, setup), measurer=measurer, plan=make_plan("nat44"))
    assert trials.open_and_validate(1000, 1000.0).raw == stored
    assert (setup.emptied, measurer.made) == (0, [])
    made = trials.open_and_validate(1000, 1000.0).raw
    assert setup.emptied == 1
    assert made["emptied"] == {"seconds": 0.5, "connections": 7}
    assert VALIDATION in made
    assert [load.connections and load.connections.use for load in measurer.made] == ["establish", "each_once"]


def test_what_opens_its_own_connections_takes_none_that_are_established_before() -> None:
    """Nothing is started: there is no engine."""
    bed = bed_of(None)
    removal = TearDownGoal(connections=1000, rate_fps=1000.0)
    for call in (
        partial(bed.connections, goal=ConnectionRateGoal(max_fps=1e5)),
        partial(bed.capacity, goal=CapacityGoal(max_fps=1e5)),
        partial(bed.tear_down, goal=removal),
    ):
        with raises("procedure.opens-its-own") as refused:
            call(plan="nat44", established=WISH)
        assert refused.value.where == "established"
        with raises("base.program-missing"):
            call(plan="nat44")


def test_connections_are_validated_at_their_share_of_the_rate() -> None:
    """R9693-11."""
    measurer = Replaying(before=[])
    setup = cast(Setup, CountingSetup())
    trials = ConnectionTrials(setup=setup, measurer=measurer, plan=make_plan("nat44"), alpha=0.8)
    trials.open_and_validate(1000, 5000.0)
    assert [load.rate_fps for load in measurer.made] == [5000.0, 4000.0]
    assert [load.sending_s for load in measurer.made] == pytest.approx([0.2, 0.25])


def test_a_connection_that_is_forgotten_just_when_it_is_used_is_forgotten() -> None:
    """R9693-06."""
    check_timeout(None, 10.0, where="most")
    check_timeout(10.001, 10.0, where="most")
    with raises(TOO_SHORT):
        check_timeout(10.0, 10.0, where="most")


@dataclass
class Losing:
    """A DUT that loses a connection in the first trials."""

    lost_in: int
    made: int = 0

    def stored(self, load: Load) -> TrialResult | None:
        return None

    def offer(self, load: Load) -> TrialResult:
        self.made += 1
        lost = {"verdict": "FAIL", "reasons": [{"code": "loss", "text": "1 of 4073 lost"}]}
        return TrialResult.from_contract(GOOD | lost if self.made <= self.lost_in else GOOD)


def test_one_trial_that_loses_a_connection_is_repeated_and_two_are_an_error() -> None:
    """R9693-09: one establishment of thousands ended a search of eight trials."""
    for lost_in in (0, 1):
        setup, measurer = CountingSetup(), Losing(lost_in)
        trials = ConnectionTrials(
            setup=cast(Setup, setup), measurer=cast(Any, measurer), plan=make_plan("nat44")
        )
        assert trials.establish(WISH)["attempts"] == measurer.made == setup.emptied == 1 + lost_in
    measurer = Losing(2)
    trials = ConnectionTrials(
        setup=cast(Setup, CountingSetup()), measurer=cast(Any, measurer), plan=make_plan("nat44")
    )
    with raises("procedure.not-established", match="1 of 4073 lost"):
        trials.establish(WISH)
    assert measurer.made == 2


def test_a_removal_that_was_timed_before_is_not_timed_again() -> None:
    """R9693-13: removing nothing from an empty table takes no time, and would have been the result."""
    stored = GOOD | {REMOVED: {"seconds": 3.0, "connections": 1000}}
    setup, measurer = CountingSetup(), Replaying(before=[TrialResult.from_contract(stored)])
    removing = _RemovingMeasurer(setup=cast(Setup, setup), measurer=measurer)
    load = Load.of_each_connection(Connections(use="establish", count=1000), 1000.0)
    assert removing.offer(load).raw == stored
    assert setup.emptied == 0
    assert removing.offer(load).raw[REMOVED] == {"seconds": 0.5, "connections": 7}
    assert setup.emptied == 2, "before the connections are opened, and after"
    removing.offer(load)
    assert setup.emptied == 3


def test_more_connections_than_four_tuples_or_than_the_pool_has_are_refused_with_both_numbers() -> None:
    """R9693-04: two hosts on each side, and a pool of one address for 100 hosts of one peer and port."""
    with raises("procedure.too-few-tuples", match="16,000,001 .*nat44 .*16,000,000 "):
        check_plan_has(make_plan("nat44", 2), 16_000_001)
    plan = make_plan("nat44", (100, 1), destination_ports=UdpRange(first=7, last=7))
    assert plan.right.peers is not None
    host = replace(plan.right.peers, count=1)
    small = replace(plan, right=replace(plan.right, peers=host))
    check_plan_has(small, 65_535)
    with raises("procedure.pool-too-small", match="65,536 .*nat44 has 1 "):
        check_plan_has(small, 65_536)
    with raises("procedure.plan-without-state", match="gateway-v4"):
        check_plan_has(make_plan("gateway-v4"), 1)
