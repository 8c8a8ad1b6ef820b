# SPDX-License-Identifier: Apache-2.0
"""A device that translates with state between the ports: the reference router as NAT44, NAT64 and NAT66, with
a table that is large enough or not, and with defects. What the tester says is held against what the router
counted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_plan
from evenhand.predict import DeviceModel
from evenhand.procedure import Note, OpenTestbed
from evenhand.procedure.connection_capacity import measure_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRateGoal, measure_connection_rate
from evenhand.procedure.connection_trials import ConnectionTrials, ConnectionWish
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.procedure.registry import CAPACITY, PROCEDURES, TEAR_DOWN
from evenhand.procedure.tear_down import TearDownGoal, measure_tear_down
from evenhand.procedure.tester import OpenTester
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.report.found import found_lines
from evenhand.results.connections import CapacityOutcome
from evenhand.rig import Setup
from evenhand.rig.reference_rig import make_reference_setup
from evenhand.trial import Connections, Limits, Load, TrialResult, Verdict, Waits
from tests.cli.test_json_documents import validate
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.wire.wire_session import (
    FAST_WAITS,
    LENIENT_OPTIONS,
    Document,
    proved,
    router_beside_tester,
    setup_beside_tester,
    thorough,
)

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("_router")]
ROOT = Path(__file__).parents[2]
EVENHAND = [sys.executable, "-m", "evenhand"]
KINDS = ("nat44", "nat64", "nat66")
CONNECTIONS = 2000
RATE_FPS = 6000.0
PATIENT = Limits(
    overdue_after_us=1e5,
    overdue_tolerance=0.9999,
    longest_overdue_us=1e6,
    offered_tolerance=0.1,
    clock_ppm=1e4,
)
"""What is tested here is which frames count, whenever a busy host sends them."""
TRIES = 8
WAITS = Waits(**FAST_WAITS)


@contextmanager
def nat(
    name: str, dut: ReferenceDut | None = None, *, hosts: int = 300
) -> Iterator[tuple[OpenTester, ReferenceRouter]]:
    plan = make_plan(name, hosts)
    with router_beside_tester(plan, dut) as router, opened(setup_beside_tester(router), plan) as tester:
        yield tester, router


@contextmanager
def opened(setup: Setup, plan: AddressPlan, limits: Limits = PATIENT) -> Iterator[OpenTester]:
    with OpenTestbed(setup=setup).tester(plan=plan, waits=WAITS, limits=limits) as tester:
        yield tester


def valid(measure: Any, wanted: Verdict | None = None) -> TrialResult:
    """The trial on a host that did not spoil it.

    Args:
        wanted: Its verdict, where the router may have been without its CPU until frames came too late.
    """
    found: TrialResult = measure()
    for _ in range(TRIES):
        if found.is_valid and wanted in (None, found.verdict):
            return found
        found = measure()
    pytest.skip(f"the host spoiled {TRIES} trials: {found.reasons}")


def counted(
    router: ReferenceRouter, part: str, measure: Callable[[], TrialResult]
) -> tuple[TrialResult, Document]:
    """A trial that this machine did not spoil, and what the router counted in it.

    Args:
        part: The part of its counters.
    """
    counts: Document = {}

    def once() -> TrialResult:
        before = router.counters()[part]
        trial = measure()
        after = router.counters()[part]
        counts.update({key: after[key] - before[key] for key in before})
        return trial

    return valid(once), counts


def open_once(tester: OpenTester, count: int = CONNECTIONS) -> TrialResult:
    tester.setup.empty_connections()
    load = Load.of_each_connection(Connections(use="establish", count=count), RATE_FPS)
    return tester.measurer(lambda event: None, opens_connections=True).offer(load)


def open_all(tester: OpenTester, count: int = CONNECTIONS, *, wanted: Verdict | None = None) -> TrialResult:
    return valid(lambda: open_once(tester, count), wanted)


def answer_all(tester: OpenTester, count: int = CONNECTIONS, *, wanted: Verdict | None = None) -> TrialResult:
    measurer = tester.measurer(lambda event: None, opens_connections=True)
    load = Load.of_each_connection(Connections(use="each_once", count=count), RATE_FPS / 2)
    return valid(lambda: measurer.offer(load), wanted)


def of_connections(trial: TrialResult) -> Mapping[str, int]:
    found: Mapping[str, int] = trial.raw["directions"]["forward"]["connections"]
    return found


@pytest.mark.parametrize("name", ["nat44", "nat64", *thorough("nat66")])
def test_connections_are_opened_validated_used_and_forgotten(name: str) -> None:
    """R9693-01, R9693-02, R9693-03, R9693-05, R9693-07, R9693-11, R9693-12."""
    with nat(name) as (tester, router):
        trial = open_all(tester, wanted=Verdict.PASS)
        assert trial.verdict is Verdict.PASS
        assert of_connections(trial) == {"opened": CONNECTIONS, "learnt": CONNECTIONS, "shared_tuples": 0}
        # As many entries as frames: no four tuple came twice, and none was lost on the way.
        assert router.counters()["nat"]["entries"] == CONNECTIONS
        assert answer_all(tester, wanted=Verdict.PASS).verdict is Verdict.PASS
        measurer = tester.measurer(lambda event: None, opens_connections=True)
        used = Load(
            rate_fps=2000.0, duration_s=0.5, connections=Connections(use="established", count=CONNECTIONS)
        )
        assert valid(lambda: measurer.offer(used), Verdict.PASS).is_pass
        counters = router.counters()["nat"]
        assert (counters["entries"], counters["unknown_frames"]) == (CONNECTIONS, 0)
        assert tester.setup.empty_connections().connections == CONNECTIONS
        lost = answer_all(tester)
        assert lost.directions["reverse"].received_frames == 0
        assert router.counters()["nat"]["unknown_frames"] >= CONNECTIONS


@pytest.mark.parametrize("order", ["increasing", *proved("decreasing")])
def test_other_orders_open_as_many_connections(order: Any) -> None:
    """R9693-04, R9693-05, R9693-16: the four tuples of few hosts are all that there are."""
    assert make_plan("nat44", 2).four_tuples == 2 * 2 * 40_000 * 100
    with nat("nat44", hosts=2) as (tester, router):
        measurer = tester.measurer(lambda event: None, opens_connections=True)
        load = Load.of_each_connection(Connections(use="establish", count=CONNECTIONS, order=order), RATE_FPS)
        assert valid(lambda: measurer.offer(load), Verdict.PASS).is_pass
        assert router.counters()["nat"]["entries"] == CONNECTIONS


@pytest.mark.parametrize("name", ["nat44", *proved("nat64"), "nat66"])
def test_a_translated_tuple_that_two_connections_share_fails_the_trial(name: str) -> None:
    """R9693-02: all frames arrive, and yet their answers cannot be told apart."""
    with nat(name, ReferenceDut(nat_options={"same_tuple_every": 100}), hosts=10) as (tester, router):
        trial = open_all(tester)
        counters = router.counters()["nat"]
        assert trial.verdict is Verdict.FAIL
        assert [reason.code for reason in trial.reasons] == ["shared_tuples"]
        assert trial.lost_frames == 0
        assert of_connections(trial)["shared_tuples"] == counters["same_tuple_frames"] > 0


@pytest.mark.parametrize(
    "name", ["nat64@2001:db8::/40", *thorough("nat64", "nat64@2001:db8::/64"), *proved("nat44", "nat66")]
)
def test_an_address_outside_the_pool_and_a_wrong_checksum_are_counted_to_the_frame(name: str) -> None:
    """R9693-02, and the bad input of a translator that answers with other addresses."""
    options = {"other_address_every": 100, "wrong_checksum_every": 149}
    with nat(name, ReferenceDut(nat_options=options)) as (tester, router):
        trial = open_all(tester)
        counters = router.counters()["nat"]
        forward = trial.raw["directions"]["forward"]
        # A connection that has both counts as damaged.
        assert forward["corrupted_frames"] == counters["wrong_checksum_frames"] > 0
        assert 0 < forward["mistranslated_frames"]["address_or_port"] <= counters["other_address_frames"]
        learnt = of_connections(trial)["learnt"]
        assert learnt == forward["received_frames"] < CONNECTIONS
        with raises("engine.bad-order", match=f" {learnt} of {CONNECTIONS} "):
            answer_all(tester)


def test_an_entry_that_is_lost_is_found_by_validation_alone() -> None:
    """R9693-11: NAT that forwards but drops state fails validation."""
    with nat("nat64", ReferenceDut(nat_options={"lost_entry_every": 100})) as (tester, router):
        measurer = tester.measurer(lambda event: None, opens_connections=True)
        trials = ConnectionTrials(tester.setup, measurer, tester.profile.plan)
        trial = valid(lambda: trials.open_and_validate(CONNECTIONS, RATE_FPS))
        assert trial.verdict is Verdict.FAIL
        assert trial.lost_frames == 0
        assert all(reason.text.startswith("validation: ") for reason in trial.reasons)
        reverse = trial.raw[VALIDATION]["directions"]["reverse"]
        assert CONNECTIONS - reverse["received_frames"] == CONNECTIONS // 100
        assert router.counters()["nat"]["lost_entry_frames"] >= CONNECTIONS // 100


@pytest.mark.thorough
@pytest.mark.two_cpus
def test_the_rate_of_new_connections_is_that_of_the_elements() -> None:
    """R9693-09: a new entry costs two frames' time, so two elements of 4 kfps open 4,000 connections a second
    and what their queues hold."""
    dut = ReferenceDut(
        model=DeviceModel(elements=1, rate_fps=4000.0, queue_frames=64), nat_options={"entry_cost": 2.0}
    )
    limits = Limits(
        overdue_after_us=1e4, overdue_tolerance=0.2, longest_overdue_us=1e5, offered_tolerance=0.01
    )
    plan = make_plan("nat44", 300)
    with reference_router(plan, dut) as router, opened(make_reference_setup(router), plan, limits) as tester:
        goal = ConnectionRateGoal(connections=1000, max_fps=4000.0, precision=0.05, patience=20)
        found = measure_connection_rate(tester, goal)
        (line, *_) = found_lines(found, PROCEDURES["connections"])
        assert line.startswith("Outcome: ")
        assert line.endswith(" Each frame opens one of 1,000 connections.")
        if found.rate_fps is None or found.is_at_least:
            pytest.skip(f"the host left no valid trial: {found.outcome}")
        # Frames of 2000/s, and a queue of 64 that fills in a trial of about half a second.
        assert 2000 * 0.95 <= found.rate_fps <= 2000 * (1 + 64 / 1000) * 1.01
        assert found.search.upper_fps is not None
        assert found.search.upper_fps > 2000 * 0.98
        assert "R9693-05" not in {deviation.requirement for deviation in found.deviations}


@pytest.mark.thorough
@pytest.mark.parametrize("when_full", ["refuse", "replace"])
def test_the_capacity_is_the_number_of_entries(when_full: str) -> None:
    """R9693-14, for two of the policies of a full table."""
    options = {"capacity": 700, "when_full": when_full}
    with nat("nat66", ReferenceDut(nat_options=options)) as (tester, _router):
        goal = CapacityGoal(
            start=400, most=4000, precision=0.3, max_fps=8000.0, rate_precision=0.5, patience=20
        )
        found = measure_capacity(tester, goal)
        if found.outcome in (CapacityOutcome.TESTER_CEILING, CapacityOutcome.STOPPED):
            pytest.skip("the host left no valid trial")
        assert found.outcome is CapacityOutcome.FOUND
        assert found.held is not None
        assert found.not_held is not None
        assert found.held <= 700 < found.not_held
        assert found.not_held - found.held <= goal.precision * found.not_held + 1


@pytest.mark.thorough
def test_a_number_that_the_dut_would_forget_too_soon_ends_the_search_with_a_lower_bound() -> None:
    """R9693-06: how fast more connections are opened is only known when fewer were. What was found stands,
    and what to do is said."""
    told: list[str] = []
    with nat("nat44", ReferenceDut(nat_options={"timeout_s": 15})) as (tester, _router):
        goal = CapacityGoal(start=500, max_fps=8000.0, rate_precision=0.5, patience=20)
        found = measure_capacity(
            tester, goal, on_event=lambda event: told.append(event.text) if isinstance(event, Note) else None
        )
        if found.outcome in (CapacityOutcome.TESTER_CEILING, CapacityOutcome.STOPPED):
            pytest.skip("the host left no valid trial")
        assert found.outcome is CapacityOutcome.TIMEOUT
        assert found.held is not None
        assert found.not_held is None
        assert found.summary()["is_at_least"]
        assert found_lines(found, CAPACITY)[0].startswith(
            "Outcome: the DUT would forget some of the next number"
        )
        assert f"{2 * found.held:,} connections: the DUT forgets a connection after 15 s" in told[-1]
        assert "raise the DUT's timeout" in told[-1]


def test_a_number_that_even_the_highest_rate_cannot_keep_is_refused_before_anything_is_sent() -> None:
    """R9693-06: so are established connections of any test."""
    with nat("nat44", ReferenceDut(nat_options={"timeout_s": 15})) as (tester, router):
        with raises("procedure.timeout-too-short") as refused:
            measure_capacity(tester, CapacityGoal(start=500, most=100_000, max_fps=8000.0))
        assert refused.value.where == "most, max_fps"
        wish = ConnectionWish(count=CONNECTIONS, rate_fps=RATE_FPS)
        with raises("procedure.timeout-too-short"):
            replace(tester, established=wish).measurer(lambda event: None).measure(20.0, 1000.0)
        assert router.counters()["nat"]["created"] == 0
        assert tester.setup.connection_timeout_s == 15


def test_the_tear_down_rate_is_what_the_table_takes() -> None:
    """R9693-13: 20 us an entry are 50,000 connections a second."""
    with nat("nat44", ReferenceDut(nat_options={"flush_us_per_entry": 20})) as (tester, _router):
        found = measure_tear_down(
            tester, TearDownGoal(connections=CONNECTIONS, rate_fps=RATE_FPS, repetitions=2, patience=20)
        )
        assert found.outcome == "measured"
        assert [removal.counted for removal in found.removals] == [CONNECTIONS, CONNECTIONS]
        assert found.per_second is not None
        assert found.per_second <= 50_000
        lines = found_lines(found, TEAR_DOWN)
        assert lines[0].startswith(f"Each time {CONNECTIONS:,} connections were removed: ")
        assert lines[0].count("/s") == 2
        assert any(line.startswith("Trials: 2 (2 PASS") for line in lines) or len(found.trials) > 2


@pytest.mark.thorough
def test_a_procedure_runs_over_connections_that_are_opened_before_each_trial() -> None:
    """R9693-03, R9693-06, R9693-12."""
    plan: AddressPlan = make_plan("nat64", 200)
    with router_beside_tester(plan) as router:
        bed = OpenTestbed(setup=setup_beside_tester(router))
        wish = ConnectionWish(count=2000, rate_fps=4000.0)
        found = bed.trial(
            rate_fps=2000.0, duration_s=0.5, plan=plan, waits=WAITS, limits=PATIENT, established=wish
        )
        assert found.trial.raw["established"]["count"] == 2000
        assert any(
            "Connections: 2,000, opened at 4,000 per second" in line for line in found.profile.sent_lines
        )
        assert found.profile.to_document()["established"] == {
            "count": 2000,
            "rate_fps": 4000.0,
            "order": "pseudorandom",
        }
        assert found.trial.raw["directions"]["forward"].get("connections") is None
        assert router.counters()["nat"]["entries"] == 2000
        with raises("procedure.no-connections"):
            bed.trial(rate_fps=2000.0, duration_s=1.0, plan=plan, waits=WAITS)


@pytest.mark.thorough
def test_connections_that_the_dut_does_not_keep_are_an_error_of_the_host() -> None:
    plan = make_plan("nat44", 200)
    with router_beside_tester(plan, ReferenceDut(nat_options={"capacity": 1000})) as router:
        bed = OpenTestbed(setup=setup_beside_tester(router))
        with raises("procedure.not-established", match="2,000 "):
            bed.trial(
                rate_fps=2000.0,
                duration_s=1.0,
                plan=plan,
                waits=WAITS,
                limits=PATIENT,
                established=ConnectionWish(count=2000, rate_fps=4000.0),
            )


@pytest.mark.thorough
def test_a_timeout_that_is_shorter_than_a_phase_is_refused_before_anything_is_sent() -> None:
    """R9693-06."""
    with nat("nat44", ReferenceDut(nat_options={"timeout_s": 2})) as (tester, router):
        goal = ConnectionRateGoal(connections=CONNECTIONS, max_fps=8000.0, min_fps=1000.0)
        with raises("procedure.timeout-too-short", match=" 2 s"):
            measure_connection_rate(tester, goal)
        assert router.counters()["nat"]["created"] == 0


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize(
    ("connections", "more"),
    [
        (2000, ("--connections", "2000", "--precision", "10%", *LENIENT_OPTIONS)),
        pytest.param(20_000, (), marks=pytest.mark.slow),
    ],
    ids=["short", "as it stands"],
)
def test_the_walk_of_the_how_to_finds_what_the_router_was_told(
    connections: int, more: tuple[str, ...], tmp_path: Path
) -> None:
    """The commands of docs/how-to/test-a-nat.md as they stand there, or with fewer connections; and the
    documents of their verbs. The table is emptied by the command of the testbed file."""
    page = (ROOT / "docs/how-to/test-a-nat.md").read_text()
    start, measure = (
        next(line for line in page.splitlines() if line.startswith(f"evenhand {verb} "))
        for verb in ("router", "connections")
    )
    with running_router(start.split()[1:], tmp_path):
        (found,) = documents([*measure.split()[1:], "--patience", "30", *more], tmp_path)
        assert found["connections"] == connections
        if found["connections_per_second"] is not None and not found["is_at_least"]:
            least, queue_frames = 1 - (0.1 if more else 0.02), 512
            assert (
                4000 * least
                <= found["connections_per_second"]
                <= 4000 * (1 + queue_frames / connections) * 1.01
            )
        few = ["--waits", "short", "--patience", "30", *LENIENT_OPTIONS]
        rate = ["--rate", "2kfps", "--connections", "500", "--repetitions", "1"]
        (removed,) = documents(["tear-down", "reference-router.toml", *rate, *few], tmp_path)
        assert removed["outcome"] in ("measured", "tester_ceiling")
        size = ["--from", "200", "--most", "400", "--maximum-rate", "2kfps", "--rate-precision", "90%"]
        (held,) = documents(["capacity", "reference-router.toml", *size, *few], tmp_path)
        assert held["outcome"] in ("at_least", "tester_ceiling")


@contextmanager
def running_router(words: list[str], folder: Path) -> Iterator[None]:
    with subprocess.Popen(
        [*EVENHAND, *words, "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as router:
        try:
            assert router.stdout is not None
            assert json.loads(router.stdout.readline())["event"] == "ready"
            yield
        finally:
            router.send_signal(signal.SIGTERM)
            router.communicate(timeout=60)


def documents(words: list[str], folder: Path) -> list[Any]:
    ended = subprocess.run(
        [*evenhand_command(), *words, "--json", "--no-run"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    found = [json.loads(line) for line in [ended.stdout]]
    for document in found:
        validate(document)
    return found
