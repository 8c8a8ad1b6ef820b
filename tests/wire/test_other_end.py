# SPDX-License-Identifier: Apache-2.0
"""The other end of a port goes away in the middle of a trial: who is left lives, and says what it saw."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, SideName, make_plan
from evenhand.rig.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig.testbed import needed_memory_mb
from tests.wire.raw_engine import RawEngine
from tests.wire.wire_session import FAST_WAITS, PATIENT, one_worker, versions

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]

BUSY_FPS = 300_000
"""Of each direction: often in a burst, and not much for this host."""
PLANS = (make_plan("gateway-v4", 4), make_plan("gateway-v6", 4))


def begin_trial(engine: RawEngine, plan: AddressPlan, router: ReferenceRouter) -> None:
    """Until frames flow through the router."""
    ports: dict[SideName, dict[str, Any]] = {
        "left": {"device": router.left_device},
        "right": {"device": router.right_device},
    }
    workers = one_worker()
    engine.say(
        {
            "id": 1,
            "request": "open",
            "host": {"memory_mb": needed_memory_mb(workers, ports)},
            "ports": ports,
            "workers": workers,
            "plan": plan.to_contract(),
            "frame_size": plan.smallest_frame_size,
            "seed": 1,
        },
        {"id": 2, "request": "resolve", "timeout_s": 20},
        {
            "id": 3,
            "request": "trial",
            "trial": 1,
            "rate_fps": BUSY_FPS,
            "duration_s": 20,
            "waits": FAST_WAITS,
            "limits": PATIENT,
        },
    )
    assert [answer["response"] for answer in engine.hear_answers(2)] == ["open", "resolve"]
    while not engine.hear().get("sent_frames"):
        pass


@versions(proved="v4", plans=PLANS)
def test_a_tester_whose_dut_goes_away_ends_its_trial(plan: AddressPlan) -> None:
    """D5: DPDK unmaps the rings of a memif at once; nobody may be reading them. The trial goes on to its end,
    and so does the engine."""
    with RawEngine() as engine, reference_router(plan, ReferenceDut()) as router:
        begin_trial(engine, plan, router)
        os.kill(router.thread, signal.SIGKILL)
        while not router.has_ended:
            engine.hear()
        received = -1
        while received != (received := engine.hear()["received_frames"]):
            pass
        engine.say({"id": 4, "request": "stop"})
        trial, _ = engine.hear_answers(2)
        assert (trial["response"], trial["verdict"]) == ("trial", "INVALID")
        is_up = True
        while is_up:
            engine.say({"id": 5, "request": "counters"})
            (counters,) = engine.hear_answers(1)
            is_up = counters["left"]["port"]["link_up"] or counters["right"]["port"]["link_up"]


@versions(proved="v6", plans=PLANS)
def test_a_router_whose_tester_goes_away_forwards_for_the_next(plan: AddressPlan) -> None:
    with reference_router(plan, ReferenceDut()) as router:
        with RawEngine() as engine:
            begin_trial(engine, plan, router)
            before = router.counters()["left"]["received_frames"]
            while router.counters()["left"]["received_frames"] - before < BUSY_FPS // 10:
                engine.hear()
            engine.process.kill()
            engine.process.wait()
        with RawEngine() as engine:
            begin_trial(engine, plan, router)


def test_the_driver_unmaps_through_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the two tests above would see only now and then: the driver's `munmap` is that of port/munmap.cpp,
    in both programs."""
    monkeypatch.setenv("LD_DEBUG", "bindings")
    monkeypatch.setenv("LD_BIND_NOW", "1")
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "bindings"))
    with RawEngine() as engine, reference_router(PLANS[0], ReferenceDut()) as router:
        begin_trial(engine, PLANS[0], router)
    bound = "".join(file.read_text() for file in tmp_path.glob("bindings.*"))
    users = re.findall(
        r"binding file \S*librte_net_memif\S* \[0\] to (\S+) \[0\]: normal symbol `munmap'", bound
    )
    assert sorted(Path(user).name for user in users) == ["evenhand-engine", "evenhand-router"]
