# SPDX-License-Identifier: Apache-2.0
"""Two engines on a device that translates with state: the reference router as NAT44, NAT64 and NAT66 with a
port pair for each. What they say together is held against what the router counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import OpenTestbed
from evenhand.procedure.connection_capacity import measure_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRateGoal, measure_connection_rate
from evenhand.procedure.connection_trials import ConnectionTrials, ConnectionWish
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.procedure.tear_down import TearDownGoal, measure_tear_down
from evenhand.procedure.tester import OpenTester
from evenhand.reference import ReferenceDut, ReferenceRouter
from evenhand.results.connections import CapacityOutcome
from evenhand.rig.reference_rig import ReferenceSetup
from evenhand.trial import Connections, Load, Verdict
from tests.errors import raises
from tests.wire.several_engines import engine_table, router_of_pairs, setup_of, silent_ports
from tests.wire.test_connections import (
    PATIENT,
    RATE_FPS,
    ROOT,
    WAITS,
    answer_all,
    counted,
    documents,
    of_connections,
    open_all,
    open_once,
    opened,
    running_router,
    valid,
)
from tests.wire.wire_session import (
    FAST_WAITS,
    LENIENT_OPTIONS,
    Document,
    engine,
    open_ports,
    proved,
    thorough,
)

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
COUNT = 2001
"""Connections of both engines: the first has one more than the second."""
OWN = {"a": 1001, "b": 1000}


@contextmanager
def setup_of_pairs(
    name: str, dut: ReferenceDut | None = None, *, hosts: int = 300
) -> Iterator[ReferenceSetup]:
    with router_of_pairs(make_plan(name, hosts), dut or ReferenceDut()) as router:
        tables = [engine_table(router, number, pair=number) for number in range(2)]
        yield ReferenceSetup(name="several", testbed=setup_of(tables).testbed, router=router)


@contextmanager
def nat_of_pairs(
    name: str, dut: ReferenceDut | None = None, *, hosts: int = 300
) -> Iterator[tuple[OpenTester, ReferenceRouter]]:
    with setup_of_pairs(name, dut, hosts=hosts) as setup, opened(setup, make_plan(name, hosts)) as tester:
        yield tester, setup.router


def of_engines(trial: Document, direction: str) -> dict[str, Document]:
    return {each["engine"]: each["directions"][direction] for each in trial["engines"]}


@pytest.mark.parametrize("name", [*thorough("nat44", "nat66"), *proved("nat64", "nat64@2001:db8::/40")])
def test_engines_open_validate_and_use_their_own_connections(name: str) -> None:
    """R2544-07, R9693-01, R9693-02, R9693-03, R9693-05, R9693-07, R9693-11, R9693-12."""
    with nat_of_pairs(name) as (tester, router):
        trial = open_all(tester, COUNT, wanted=Verdict.PASS)
        assert trial.verdict is Verdict.PASS
        assert of_connections(trial) == {"opened": COUNT, "learnt": COUNT, "shared_tuples": 0}
        for engine_name, forward in of_engines(dict(trial.raw), "forward").items():
            own = OWN[engine_name]
            assert forward["connections"] == {"opened": own, "learnt": own, "shared_tuples": 0}
        # As many entries as frames: no four tuple came twice, on whichever pair.
        assert router.counters()["nat"]["entries"] == COUNT
        answered = answer_all(tester, COUNT, wanted=Verdict.PASS)
        assert answered.verdict is Verdict.PASS
        for engine_name, reverse in of_engines(dict(answered.raw), "reverse").items():
            assert (reverse["received_frames"], reverse["strayed_frames"]) == (OWN[engine_name], 0)
        measurer = tester.measurer(lambda event: None, opens_connections=True)
        use = Connections(use="established", count=COUNT)
        load = Load(rate_fps=2000.0, duration_s=0.5, connections=use)
        used = valid(lambda: measurer.offer(load), Verdict.PASS)
        assert used.verdict is Verdict.PASS
        assert {d.received_frames for d in used.directions.values()} == {1000}
        counters = router.counters()["nat"]
        assert (counters["entries"], counters["unknown_frames"]) == (COUNT, 0)
        assert tester.setup.empty_connections().connections == COUNT
        assert answer_all(tester, COUNT).directions["reverse"].received_frames == 0


@pytest.mark.parametrize("name", [*thorough("nat66"), *proved("nat44", "nat64")])
def test_a_tuple_that_two_connections_of_one_engine_share_fails_the_trial_and_names_it(name: str) -> None:
    """R9693-02: the router shares a tuple only where both connections are of one pair."""
    # Few hosts, so that a connection finds another one with its destination.
    dut = ReferenceDut(nat_options={"same_tuple_every": 100})
    with nat_of_pairs(name, dut, hosts=10) as (tester, router):
        trial, counters = counted(router, "nat", lambda: open_once(tester, COUNT))
        shared = {
            engine_name: forward["connections"]["shared_tuples"]
            for engine_name, forward in of_engines(dict(trial.raw), "forward").items()
        }
        assert trial.verdict is Verdict.FAIL
        assert {reason.code for reason in trial.reasons} == {"shared_tuples"}
        assert of_connections(trial)["shared_tuples"] == sum(shared.values())
        assert sum(shared.values()) == counters["same_tuple_frames"] > 0
        named = {reason.text.split(":")[0] for reason in trial.reasons}
        assert named == {f"forward of {engine_name}" for engine_name, count in shared.items() if count}


@pytest.mark.parametrize("name", ["nat64", *proved("nat44", "nat66")])
def test_an_entry_that_is_lost_is_found_by_validation_to_the_frame(name: str) -> None:
    """R9693-11: NAT that forwards but drops state fails validation."""
    with nat_of_pairs(name, ReferenceDut(nat_options={"lost_entry_every": 100})) as (tester, router):
        measurer = tester.measurer(lambda event: None, opens_connections=True)
        trials = ConnectionTrials(tester.setup, measurer, tester.profile.plan)
        trial, counters = counted(router, "nat", lambda: trials.open_and_validate(COUNT, RATE_FPS))
        lost = counters["lost_entry_frames"]
        assert trial.verdict is Verdict.FAIL
        assert trial.lost_frames == 0
        assert COUNT - trial.raw[VALIDATION]["directions"]["reverse"]["received_frames"] == lost
        assert lost in (COUNT // 100, COUNT // 100 + 1)


@pytest.mark.parametrize("name", [*thorough("nat64"), *proved("nat44", "nat66")])
def test_damage_of_a_translator_is_counted_to_the_frame(name: str) -> None:
    """R9693-02: addresses outside the pool and wrong checksums, of both engines together; and with it an
    engine that does not know all of its connections cannot use them, and says so."""
    options = {"other_address_every": 100, "wrong_checksum_every": 149}
    with nat_of_pairs(name, ReferenceDut(nat_options=options)) as (tester, router):
        trial, counters = counted(router, "nat", lambda: open_once(tester, COUNT))
        forward = trial.raw["directions"]["forward"]
        assert forward["corrupted_frames"] == counters["wrong_checksum_frames"] > 0
        assert 0 < forward["mistranslated_frames"]["address_or_port"] <= counters["other_address_frames"]
        assert of_connections(trial)["learnt"] == forward["received_frames"] < COUNT
        with raises("engine.bad-order", match=r"engine a: .*\d+ of 1001 "):
            answer_all(tester, COUNT)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["nat44", *proved("nat64")])
def test_each_procedure_of_rfc_9693_finds_what_the_router_was_told(name: str) -> None:
    """R9693-09, R9693-13, R9693-14: rate, capacity and tear-down; the table is one for both pairs."""
    options = {"capacity": 700, "flush_us_per_entry": 20}
    with nat_of_pairs(name, ReferenceDut(nat_options=options)) as (tester, _router):
        goal = ConnectionRateGoal(connections=600, max_fps=4000.0, precision=0.5, patience=20)
        rate = measure_connection_rate(tester, goal)
        if rate.rate_fps is None:
            pytest.skip(f"the host left no valid trial: {rate.outcome}")
        assert rate.rate_fps <= 4000
        capacity = measure_capacity(
            tester,
            CapacityGoal(
                start=400, most=4000, precision=0.3, max_fps=4000.0, rate_precision=0.5, patience=20
            ),
        )
        if capacity.outcome in (CapacityOutcome.TESTER_CEILING, CapacityOutcome.STOPPED):
            pytest.skip("the host left no valid trial")
        assert capacity.outcome is CapacityOutcome.FOUND
        assert capacity.held is not None
        assert capacity.not_held is not None
        assert capacity.held <= 700 < capacity.not_held
        removed = measure_tear_down(
            tester, TearDownGoal(connections=600, rate_fps=2000.0, repetitions=2, patience=20)
        )
        assert [removal.counted for removal in removed.removals] == [600, 600]
        assert removed.per_second is not None
        assert removed.per_second <= 50_000


@pytest.mark.parametrize("name", [*thorough("nat66"), *proved("nat44", "nat64")])
def test_a_trial_of_any_test_runs_over_connections_that_are_opened_before_it(name: str) -> None:
    """R9693-03, R9693-06, R9693-12."""
    with setup_of_pairs(name) as setup:
        wish = ConnectionWish(count=COUNT, rate_fps=RATE_FPS)
        bed, plan = OpenTestbed(setup=setup), make_plan(name, 300)
        found = valid(
            lambda: (
                bed.trial(
                    rate_fps=2000.0, duration_s=0.5, plan=plan, waits=WAITS, limits=PATIENT, established=wish
                ).trial
            ),
            Verdict.PASS,
        )
        assert found.verdict is Verdict.PASS
        assert found.raw["established"]["count"] == COUNT
        assert {d.received_frames for d in found.directions.values()} == {1000}
        assert setup.router.counters()["nat"]["entries"] == COUNT


@pytest.mark.thorough
def test_the_walk_of_the_how_to_finds_what_the_router_was_told(tmp_path: Path) -> None:
    """The commands of docs/how-to/use-several-engines.md, with fewer connections: the testbed file that the
    router writes has an engine for each pair, and a command that empties the table of both."""
    page = (ROOT / "docs/how-to/use-several-engines.md").read_text()
    start, measure = (
        next(line for line in page.splitlines() if line.startswith(f"evenhand {words} "))
        for words in ("router nat44", "connections")
    )
    few = ("--connections", "2000", "--precision", "10%", "--patience", "30", *LENIENT_OPTIONS)
    with running_router(start.split()[1:], tmp_path):
        (found,) = documents([*measure.split()[1:], *few], tmp_path)
    assert found["connections"] == 2000
    if found["connections_per_second"] is None:
        pytest.skip("the host left no valid trial")
    # As with one pair: frames of 4000/s, and what the element's queue holds.
    queue_frames = 512
    assert 4000 * 0.9 <= found["connections_per_second"] <= 4000 * (1 + queue_frames / 2000) * 1.01


def test_connections_are_of_the_share_that_established_them() -> None:
    with engine() as session:
        open_ports(session, make_plan("nat44"), *silent_ports(1)[0])
        trial: Document = {"trial": 1, "rate_fps": 1000, "duration_s": 0.1, "waits": FAST_WAITS}
        session.request(
            "trial",
            **trial,
            directions=["forward"],
            share={"first": 0, "stride": 2},
            connections={"use": "establish", "count": 100},
        )
        use: Document = {"directions": ["reverse"], "connections": {"use": "each_once"}}
        shares: tuple[Document, ...] = ({"share": {"first": 1, "stride": 2}}, {})
        for share in shares:
            with raises("engine.bad-order", match="streams 0 to 0 of 2,"):
                session.request("trial", **trial, **use, **share)
        with raises("engine.bad-order", match=" 0 of 50 "):
            session.request("trial", **trial, **use, share={"first": 0, "stride": 2})
