# SPDX-License-Identifier: Apache-2.0
"""What a trial records of delays beyond the histogram, where it is asked to (RFC 8219 sections 7.2 and
7.3)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import DelayGoal, DelayTest, OpenTestbed
from evenhand.reference import Defects, LongerDelay, ReferenceDut, ReferenceRouter, Stall, reference_router
from evenhand.rig import make_reference_setup
from evenhand.run import RunStore, read_run
from evenhand.trial import EngineSession, Limits, Waits
from tests.errors import raises
from tests.wire.wire_session import (
    FAST_WAITS,
    MOST_ATTEMPTS,
    PATIENT,
    QUIET_FPS,
    Document,
    engine,
    memif_cable,
    open_ports,
    open_to_dut,
    run_trial,
    until,
    valid_trial,
    versions,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "contract" / "reply.schema.json").read_text())
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
pytestmark = pytest.mark.wire


NONE_LEFT_OUT = {**PATIENT, "overdue_after_us": 1e9}
"""For exact counts of delays, wherever this machine made frames late."""


def of_forward(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(document, SCHEMA)
    delays: dict[str, Any] = document["directions"]["forward"]["delays"]
    return delays


@PLANS
def test_delays_count_from_their_time_on(plan: AddressPlan, tmp_path: Path) -> None:
    """R8219-07, R8219-12, R8219-13: no tag before its time, as many as asked for; every later frame's delay,
    and its difference."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        document = valid_trial(
            session,
            duration_s=1,
            rate_fps=QUIET_FPS,
            limits=NONE_LEFT_OUT,
            delays={"from_s": 0.4, "tagged_frames": 500, "variation": True},
        )
    frames = int(QUIET_FPS * 0.6)
    for direction in document["directions"].values():
        delays, latency = direction["delays"], direction["latency"]
        jsonschema.validate(document, SCHEMA)
        assert (delays["first_frame"], delays["offered_frames"], delays["lost_frames"]) == (
            QUIET_FPS * 0.4,
            frames,
            0,
        )
        assert latency["count"] == frames
        assert delays["min_ns"] == latency["min_ns"]
        # The histogram knows a delay to 0.1 % of itself, and `delays` to 0.1 % of its distance from the
        # smallest.
        for key in ("p50_ns", "p99_ns", "p999_ns"):
            assert delays[key] == pytest.approx(latency[key], rel=1.01e-3, abs=2)
        assert abs(delays["pdv_ns"] - (delays["p999_ns"] - delays["min_ns"])) <= 1  # rounded once, not twice
        assert 0 <= delays["pdv_resolution_ns"] <= 2 + 1.01e-3 * delays["pdv_ns"]
        assert [sequence for sequence, _ in delays["tagged"]] == [
            delays["first_frame"] + n * (frames // 500) for n in range(500)
        ]
        assert all(latency["min_ns"] <= delay <= latency["max_ns"] for _, delay in delays["tagged"])
        variation = delays["variation"]
        assert (variation["pairs"], variation["unseen_pairs"]) == (frames - 1, 0)
        assert variation["min_ns"] < 0 < variation["max_ns"]
        assert variation["min_ns"] <= variation["median_ns"] <= variation["max_ns"]
        assert -variation["min_ns"] <= latency["max_ns"] - latency["min_ns"]


@pytest.mark.thorough
@PLANS
def test_a_late_departure_spoils_only_the_delays_that_it_touched(plan: AddressPlan, tmp_path: Path) -> None:
    """The tester stands still for 30 ms of 2 s: the trial is valid, without the tagged frames that left late,
    or right behind these."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))

        def measured() -> Document:
            return _stopped_for(
                session,
                0.03,
                duration_s=2,
                rate_fps=QUIET_FPS,
                delays={"from_s": 0, "tagged_frames": 500, "variation": True},
            )

        def is_touched(document: Document) -> bool:
            # A busy host may let a thread run on for a while after the signal, or stop it once more.
            late_us = [direction["sender"]["max_overdue_us"] for direction in document["directions"].values()]
            return bool(
                document["verdict"] == "PASS"
                and of_forward(document)["left_out_tags"] > 0
                and min(late_us) > 25_000
            )

        document = until(is_touched, measured)
    for direction in document["directions"].values():
        delays = direction["delays"]
        assert 0 < delays["left_out_tags"] <= 50
        assert len(delays["tagged"]) + delays["left_out_tags"] == 500
        assert direction["latency"]["count"] + delays["left_out_frames"] == direction["received_frames"]
        assert (
            direction["latency"]["max_ns"] < 25e6
        )  # none of those that waited for a tester that stood still
    assert {note["code"] for note in document["notes"]} == {"hop_limit", "left_out"}


def _stopped_for(session: EngineSession, stop_s: float, **arguments: Any) -> Document:
    """A trial in which the engine is stopped once, by its usual limits."""
    found: list[Document] = []
    sending = threading.Event()

    def on_event(event: Document) -> None:
        if event["phase"] == "sending" and event["sent_frames"] > 0:
            sending.set()

    runner = threading.Thread(
        target=lambda: found.append(run_trial(session, on_event=on_event, limits={}, **arguments))
    )
    runner.start()
    assert sending.wait(30)
    os.killpg(session._process.pid, signal.SIGSTOP)
    time.sleep(stop_s)
    os.killpg(session._process.pid, signal.SIGCONT)
    runner.join(60)
    return found[0]


def test_delays_are_not_there_unless_they_are_asked_for(tmp_path: Path) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        assert "delays" not in run_trial(session, duration_s=0.1)["directions"]["forward"]


@versions(proved="v6")
@pytest.mark.two_cpus
def test_a_lost_frame_is_infinitely_late(plan: AddressPlan) -> None:
    """R8219-16: 1.1 in a thousand lost make the 99.9th percentile infinite, but neither the minimum, nor the
    median, nor a difference."""
    at = tuple(range(100, 3200, 70))  # of all forwarded frames; some belong to the other direction
    with (
        reference_router(plan, ReferenceDut(defects=Defects(at={"loss": at}))) as router,
        engine() as session,
    ):
        open_to_dut(session, plan, router.device("left"), router.device("right"))
        document = run_trial(
            session,
            duration_s=0.5,
            rate_fps=QUIET_FPS,
            directions=["forward"],
            limits=NONE_LEFT_OUT,
            delays={"tagged_frames": 1000, "variation": True},
        )
    delays = of_forward(document)
    lost = document["directions"]["forward"]["first_lost"]
    assert delays["lost_frames"] >= len(at) > 0.001 * delays["offered_frames"]
    assert (delays["p999_ns"], delays["pdv_ns"]) == (None, None)
    assert delays["min_ns"] <= delays["p50_ns"]
    # Each lost frame stands alone, so two differences are missing for each.
    assert (
        delays["variation"]["pairs"] + delays["variation"]["unseen_pairs"]
        <= delays["offered_frames"] - 1 - 2 * len(at) + 2
    )
    tagged = dict(delays["tagged"])
    assert all(tagged[k] is None for k in lost if k in tagged)


def through(router: ReferenceRouter, plan: AddressPlan, **arguments: Any) -> Document:
    """One direction of a valid trial through the router."""
    with engine() as session:
        open_to_dut(session, plan, router.device("left"), router.device("right"))
        document = valid_trial(session, directions=["forward"], limits=NONE_LEFT_OUT, **arguments)
    of_forward(document)
    direction: Document = document["directions"]["forward"]
    return direction


@versions(proved="v4")
@pytest.mark.two_cpus
def test_a_known_delay_is_found(plan: AddressPlan) -> None:
    """R8219-09: not less than the router takes, and what tester and host add to the median is less than the
    delay itself.

    Asked again where this machine took the router's CPU away: its model then takes frames to have come before
    they did.
    """

    def median_ns() -> int:
        with reference_router(plan, ReferenceDut(extra_delay_us=10_000)) as router:
            delays = through(router, plan, duration_s=1, delays={"from_s": 0.2, "tagged_frames": 500})[
                "delays"
            ]
        tagged_ns: list[int] = sorted(delay for _, delay in delays["tagged"] if delay is not None)
        return tagged_ns[len(tagged_ns) // 2]

    until(lambda found: 10e6 <= found < 20e6, median_ns)


@versions(proved="v6")
@pytest.mark.two_cpus
def test_a_delay_of_two_points_gives_their_distance(plan: AddressPlan) -> None:
    """R8219-12: one frame of fifty takes 50 ms longer, so PDV is that distance or more."""

    def measured() -> Document:
        with reference_router(
            plan, ReferenceDut(extra_delay_us=1000, longer_delay=LongerDelay(every=50, us=50_000))
        ) as router:
            return through(router, plan, duration_s=0.6, delays={"variation": True})

    def holds(direction: Document) -> bool:
        delays = direction["delays"]
        # The longer ones are overtaken, and told as reordered, not as lost.
        is_whole = delays["lost_frames"] == 0 and direction["reordered_frames"] > 0
        return bool(is_whole and 50e6 * 0.999 <= delays["pdv_ns"] < 75e6 and delays["p50_ns"] < 40e6)

    until(holds, measured)


@versions(proved="v4")
@pytest.mark.two_cpus
def test_a_stall_of_the_router_shows_in_the_worst_case(plan: AddressPlan) -> None:
    """R8219-09: 20 ms of each quarter of a second in which nothing leaves are 8 % of the frames, so the
    99.9th percentile is that long."""

    def measured() -> Document:
        with reference_router(
            plan, ReferenceDut(stall=Stall(every_ms=250, for_ms=20, queue_frames=1000))
        ) as router:
            delays: Document = through(router, plan, duration_s=0.6, delays={"tagged_frames": 500})["delays"]
            return delays

    until(
        lambda found: found["lost_frames"] == 0 and 18e6 < found["p999_ns"] < 40e6 and found["p50_ns"] < 10e6,
        measured,
    )


@versions(proved="v6")
@pytest.mark.two_cpus
def test_what_a_stalled_router_cannot_keep_is_lost_in_the_tenth_of_the_stall(plan: AddressPlan) -> None:
    """R2544-26, R8219-16: 400 frames come in 20 ms, 100 wait; the others are missing in a tenth or two, and
    the worst case is infinite."""
    stalled = round(0.02 * QUIET_FPS) - 100

    def measured() -> Document:
        with reference_router(
            plan, ReferenceDut(stall=Stall(every_ms=1000, for_ms=20, queue_frames=100))
        ) as router:
            direction = through(router, plan, duration_s=0.995, delays={"tagged_frames": 500})
        assert sum(direction["lost_by_tenth"]) == direction["lost_frames"]
        return direction

    def holds(direction: Document) -> bool:
        # Whatever this machine adds, a stall's loss stands together.
        is_lost_together = (
            max(direction["lost_by_tenth"]) >= stalled * 0.45 and direction["lost_frames"] >= stalled * 0.9
        )
        return bool(
            is_lost_together
            and direction["delays"]["p999_ns"] is None
            and direction["latency"]["max_ns"] > 15e6
        )

    until(holds, measured)


@pytest.mark.thorough
@versions(proved="v4")
@pytest.mark.two_cpus
def test_the_tester_measures_its_own_loop_at_the_load_of_the_result(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """R8219-10: without the DUT, before its ports are open, stored by itself, and no delay of the result is
    changed by it."""
    run = tmp_path / "latency.evenhand"
    goal = DelayGoal(
        test=DelayTest.PDV,
        rate_fps=QUIET_FPS,
        duration_s=0.5,
        repetitions=1,
        has_variation=True,
        invalid_retries=MOST_ATTEMPTS,
        patience=MOST_ATTEMPTS,
    )
    with (
        reference_router(plan, ReferenceDut(extra_delay_us=5000)) as router,
        RunStore.create(run, command=["test"]) as store,
    ):
        bed = OpenTestbed(setup=make_reference_setup(router), recorder=store)
        found = bed.delay(
            goal=goal,
            plan=plan,
            directions=("forward",),
            waits=Waits(**FAST_WAITS),
            limits=replace(Limits(), **PATIENT),
        )
    assert found.is_complete
    own = found.own_loop.delays("forward")
    assert own is not None
    assert (own.offered_frames, own.lost_frames) == (QUIET_FPS // 2, 0)
    assert own.min_ns is not None
    with_dut_ns = found.trials[-1].directions["forward"].latency.p99_ns
    assert with_dut_ns is not None
    assert own.min_ns < 5e6 < with_dut_ns
    assert found.own_loop_figure("forward", "pdv") == own.pdv_ns
    assert found.hardware_stamps == {"left": "none", "right": "none"}
    assert [(search.kind, search.outcome) for search in read_run(run).searches] == [
        ("own-loop", "measured"),
        ("pdv", "measured"),
    ]


@pytest.mark.parametrize(
    ("delays", "where"),
    [({"from_s": 0.5}, "delays.from_s"), ({"from_s": 0.4, "tagged_frames": 2001}, "delays.tagged_frames")],
)
def test_delays_of_frames_that_are_never_sent_are_refused(
    delays: dict[str, Any], where: str, tmp_path: Path
) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        with raises("engine.bad-request") as refused:
            run_trial(session, duration_s=0.5, rate_fps=QUIET_FPS, delays=delays)
        assert refused.value.where == where
        assert run_trial(session, duration_s=0.1)["verdict"] != "FAIL"
