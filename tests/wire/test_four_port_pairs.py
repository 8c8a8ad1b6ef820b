# SPDX-License-Identifier: Apache-2.0
"""A device with eight ports, which are four port pairs with an engine each: the reference router. All engines
have the plan's addresses; together they send what one would send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from evenhand.plan import SIDES, AddressPlan, make_plan
from evenhand.predict import DeviceModel, predict
from evenhand.reference import ReferenceDut, ReferenceRouter
from evenhand.trial import Connections, EngineGroup, EngineMeasurer, Limits, Load, TrialResult, Verdict, Waits
from tests.wire.several_engines import group_of, open_group, router_of_pairs
from tests.wire.wire_session import FAST_WAITS, PATIENT, Document, proved, thorough, until

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient, pytest.mark.usefixtures("_router")]
PAIRS = 4
FRAMES = 1000
"""Frames of each direction, over all engines."""
LIMITS = replace(Limits(), **PATIENT, overdue_after_us=1e7)
"""Four engines and the router share two CPUs: being late is not what these tests are about."""


@contextmanager
def eight_ports(
    plan: AddressPlan, dut: ReferenceDut | None = None
) -> Iterator[tuple[EngineGroup, ReferenceRouter]]:
    with router_of_pairs(plan, dut or ReferenceDut(), PAIRS) as router, group_of(PAIRS) as group:
        devices = [[router.device(side, pair) for side in SIDES] for pair in range(PAIRS)]
        open_group(group, plan, devices, resolves=True)
        group.request("resolve", timeout_s=10)
        yield group, router


def offered(group: EngineGroup, load: Load) -> TrialResult:
    """A trial that this machine did not spoil: frames also come too late where the router has no CPU."""
    measurer = EngineMeasurer(session=group, waits=Waits(**FAST_WAITS), limits=LIMITS)
    return until(lambda trial: trial.is_pass, lambda: measurer.offer(load))


def received(trial: TrialResult, direction: str) -> dict[str, int]:
    found: list[Document] = trial.raw["engines"]
    for each in found:
        assert each["directions"][direction]["strayed_frames"] == 0
    return {each["engine"]: each["directions"][direction]["received_frames"] for each in found}


@pytest.mark.parametrize(
    "name",
    [
        "direct-v6",
        *thorough("gateway-v4", "siit"),
        *proved("gateway-v6", "direct-v4-net16", "direct-v4-net24", "siit-eam"),
    ],
)
def test_each_engine_has_a_quarter_of_the_frames_and_gets_it_back(name: str) -> None:
    """R2544-07, SEED-44, with addresses of all forms of the plans."""
    with eight_ports(make_plan(name, 20)) as (group, router):
        trial = offered(group, Load(rate_fps=2 * FRAMES, duration_s=0.5))
        counters = router.counters()
    assert trial.verdict is Verdict.PASS
    assert {d.received_frames for d in trial.directions.values()} == {FRAMES}
    for direction in trial.directions:
        assert received(trial, direction) == dict.fromkeys("abcd", FRAMES // PAIRS)
    assert len(counters["more_ports"]) == PAIRS - 1


@pytest.mark.thorough
@pytest.mark.parametrize("hosts", [1, 20])
def test_the_elements_that_work_for_all_pairs_are_those_that_were_predicted(hosts: int) -> None:
    """SEED-01, RSS-01: a single address pair is in one element, whichever port it comes by."""
    model = DeviceModel(elements=8, rate_fps=20_000, queue_frames=4096)
    plan = make_plan("gateway-v6", hosts)
    prediction = predict(plan, model)
    with eight_ports(plan, ReferenceDut(model=model)) as (group, router):
        trial = offered(group, Load(rate_fps=2 * FRAMES, duration_s=0.5))
        counters = router.counters()
    assert trial.verdict is Verdict.PASS
    working = {i for i, element in enumerate(counters["elements"]) if element["served_frames"]}
    assert working == {i for i, count in enumerate(prediction.total_counts) if count}


@pytest.mark.parametrize("name", [*thorough("nat64"), *proved("nat44", "nat66")])
def test_connections_of_four_engines_are_in_one_table(name: str) -> None:
    """R9693-01, R9693-11, R9693-12."""
    count = 1001
    own = {"a": 251, "b": 250, "c": 250, "d": 250}
    with eight_ports(make_plan(name, 50)) as (group, router):

        def of_each(use: Connections, rate_fps: float) -> TrialResult:
            if use.use == "establish":
                router.flush()
            return offered(group, Load.of_each_connection(use, rate_fps))

        opened = of_each(Connections(use="establish", count=count), 2000.0)
        while opened.raw["directions"]["forward"]["connections"]["learnt"] != count:
            opened = of_each(Connections(use="establish", count=count), 2000.0)
        assert opened.verdict is Verdict.PASS
        assert received(opened, "forward") == own
        assert received(of_each(Connections(use="each_once", count=count), 2000.0), "reverse") == own
        used = offered(
            group,
            Load(
                rate_fps=2 * FRAMES, duration_s=0.5, connections=Connections(use="established", count=count)
            ),
        )
        assert used.verdict is Verdict.PASS
        counters = router.counters()["nat"]
        assert (counters["entries"], counters["unknown_frames"]) == (count, 0)
