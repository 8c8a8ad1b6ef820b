# SPDX-License-Identifier: Apache-2.0
"""Clean time: a trial whose tester is stopped now and then is judged by the rest, and sent for longer.
The tester's ports are joined to each other: nothing is lost but by the stops. One test has a DUT with a
queue. IPv4 and IPv6."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.predict import DeviceModel
from evenhand.reference import ReferenceDut, reference_router
from evenhand.trial import EngineSession, Limits, TrialResult, Verdict
from evenhand.trial.measurer import EngineMeasurer, Waits
from tests.wire.wire_session import QUIET_FPS, engine, memif_cable, open_ports, open_to_dut, until

pytestmark = pytest.mark.wire
BOTH = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
RATE_FPS = 50_000.0
"""A ring of 2,048 holds 40 ms of it."""
WANTED_S = 1.0
STOPPED_S = 0.08
WAITS = Waits(after_routing_s=0.0, after_learning_s=0.05, residual_s=0.2, restabilize_s=0.0)


@contextmanager
def stopped_now_and_then(session: EngineSession) -> Iterator[None]:
    """Three times a second the engine has no CPU for a while."""
    ends = threading.Event()

    def stop() -> None:
        while not ends.wait(0.25):
            os.kill(session.pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(session.pid, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def offer(
    session: EngineSession,
    limits: Limits,
    *,
    trial: int,
    rate_fps: float = RATE_FPS,
    waits: Waits = WAITS,
    seconds: float = WANTED_S,
) -> TrialResult:
    measurer = EngineMeasurer(session=session, waits=waits, limits=limits)
    measurer._last_trial = trial
    return measurer.measure(seconds, rate_fps)


@BOTH
def test_what_a_stopped_tester_may_have_touched_is_left_out(plan: AddressPlan, tmp_path: Path) -> None:
    """Its frames leave in bursts then, which the ring cannot hold."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        numbers = iter(range(1000))

        def stopped(limits: Limits) -> TrialResult:
            with stopped_now_and_then(session):
                return offer(session, limits, trial=next(numbers))

        whole = stopped(Limits())
        assert not whole.is_valid
        assert whole.clean is None

        def has_two_stops(result: TrialResult) -> bool:
            """On a busy host whoever stops it may be late as well, and other absences, shorter ones, may be
            what it was sent longer for."""
            if not result.is_judged_by_clean_time or result.sent_s <= WANTED_S + 2 * STOPPED_S:
                return False
            assert result.clean is not None
            return sum(part.until_s - part.from_s > STOPPED_S / 2 for part in result.clean.left_out) >= 2

        judged = until(has_two_stops, lambda: stopped(Limits(clean_at_most=4.0)))
        assert judged.is_pass, judged.reasons
        assert judged.loss_ratio == 0
        assert "clean_time" in [note.code for note in judged.notes]
        clean = judged.clean
        assert clean is not None
        assert clean.lapses["sender_overdue"] >= 2
        assert clean.clean_s <= clean.sent_s - 2 * STOPPED_S
        for direction in judged.directions.values():
            assert direction.clean is not None
            assert direction.clean.lost_frames == 0
            expected = clean.clean_s * RATE_FPS
            assert direction.clean.frames == pytest.approx(expected, abs=len(clean.left_out) + 1)
            # Stopped at its very end, it does not send the last of them.
            assert direction.intended_frames == pytest.approx(clean.sent_s * RATE_FPS, abs=1)


@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@BOTH
def test_an_overloaded_dut_that_never_catches_up_is_judged_as_soon_as_one_that_does(
    plan: AddressPlan,
) -> None:
    """A full queue takes longer than the time between two stops. What is lost all the time is lost behind
    them, too: nothing is gained by sending for four times as long."""
    model = DeviceModel(elements=1, rate_fps=20_000.0, queue_frames=10_000)
    waits = replace(WAITS, residual_s=0.8)
    with reference_router(plan, ReferenceDut(model=model)) as router, engine() as session:
        open_to_dut(session, plan, router.device("left"), router.device("right"))
        numbers = iter(range(1, 1000))

        def stopped() -> TrialResult:
            with stopped_now_and_then(session):
                return offer(
                    session,
                    Limits(clean_at_most=4.0),
                    trial=next(numbers),
                    rate_fps=20_000.0,
                    waits=waits,
                    seconds=3.0,
                )

        judged = until(lambda result: result.verdict is Verdict.FAIL and result.sent_s < 8.0, stopped)
        assert judged.is_judged_by_clean_time
        assert judged.clean is not None
        assert judged.clean.lapses["sender_overdue"] >= 2
        assert judged.loss_ratio > 0.3


@BOTH
def test_without_a_lapse_the_trial_is_what_it_was(plan: AddressPlan, tmp_path: Path) -> None:
    """A busy host is never quiet, but seldom away for so long."""
    limits = Limits(clean_at_most=2.0, overdue_after_us=50_000.0)

    def is_quiet(result: TrialResult) -> bool:
        return result.is_pass and result.clean is not None and not result.clean.left_out

    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        numbers = iter(range(1000))
        result = until(is_quiet, lambda: offer(session, limits, trial=next(numbers), rate_fps=QUIET_FPS))
        clean = result.clean
        assert clean is not None
        assert (clean.pieces, clean.is_enough) == (1, True)
        assert clean.clean_s == clean.sent_s >= WANTED_S * (1 - 1e-9)
        assert result.judged_s == clean.clean_s
        assert result.intended_duration_s == WANTED_S


@pytest.mark.parametrize("other", [{"burst": {"frames": 5, "interval_s": 0.1}}, {"delays": {}}], ids=str)
def test_a_trial_that_is_not_even_is_judged_as_a_whole(other: dict[str, Any], tmp_path: Path) -> None:
    asked: dict[str, Any] = {"trial": 1, "rate_fps": 1000, "duration_s": 1, "clean": {"at_most_s": 2}}
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        with pytest.raises(RequestError) as refused:
            session.request("trial", **asked, **other)
    assert refused.value.where == "clean"
