# SPDX-License-Identifier: Apache-2.0
"""The other end of a port goes away in the middle of a trial: who is left lives, and says what it saw."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import SIDES, AddressPlan, SideName, make_plan
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.testbed import needed_memory_mb
from tests.wire.raw_engine import RawEngine
from tests.wire.wire_session import FAST_WAITS, PATIENT, memif_cable, one_worker, versions

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]

BUSY_FPS = 300_000
"""The rate of each direction: often in a burst, and not much for this machine."""
PLANS = (make_plan("gateway-v4", 4), make_plan("gateway-v6", 4))


def open_ports(plan: AddressPlan, left: str, right: str, *, link_timeout_s: float = 10) -> dict[str, Any]:
    """The request."""
    ports: dict[SideName, dict[str, Any]] = {
        side: {"device": device, "link_timeout_s": link_timeout_s}
        for side, device in zip(SIDES, (left, right), strict=True)
    }
    workers = one_worker()
    return {
        "id": 1,
        "request": "open",
        "host": {"memory_mb": needed_memory_mb(workers, ports)},
        "ports": ports,
        "workers": workers,
        "plan": plan.to_contract(),
        "frame_size": plan.smallest_frame_size,
        "seed": 1,
    }


def begin_trial(engine: RawEngine, plan: AddressPlan, router: ReferenceRouter) -> None:
    """Until frames flow through the router."""
    engine.say(
        open_ports(plan, router.device("left"), router.device("right")),
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


def process_of(router: ReferenceRouter) -> int:
    return router._process.pid


def leave_ungreeted(device: str) -> None:
    """Connect to the socket of a memif's server and close again, more often than it can greet in time."""
    path = re.search(r"socket=([^,]+)", device)
    assert path is not None
    for _ in range(50):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(path[1])


def test_clients_that_go_before_they_are_greeted_end_neither_router_nor_engine(tmp_path: Path) -> None:
    """A tester that is killed while it opens its ports. DPDK's driver freed what its thread still watched,
    which ended the process (port/sendmsg.cpp)."""
    left, right = memif_cable(tmp_path)
    with RawEngine() as server, reference_router(PLANS[1], ReferenceDut()) as router:
        server.say(open_ports(PLANS[1], left, right))
        assert server.hear()["response"] == "open"
        leave_ungreeted(left)
        leave_ungreeted(router.device("left"))
        with RawEngine() as engine:
            begin_trial(engine, PLANS[1], router)
        server.say({"id": 2, "request": "counters"})
        assert server.hear()["left"]["port"]["link_up"]


def test_a_router_that_hangs_is_named_and_nobody_waits_longer_than_for_a_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its socket takes a connection or two, and the next one blocked the engine for good."""
    with reference_router(PLANS[0], ReferenceDut()) as router:
        os.kill(process_of(router), signal.SIGSTOP)
        try:
            with RawEngine() as engine:
                engine.say(
                    open_ports(PLANS[0], router.device("left"), router.device("right"), link_timeout_s=2)
                )
                fault = engine.hear()["fault"]
        finally:
            os.kill(process_of(router), signal.SIGCONT)
        assert f"process {process_of(router)} (evenhand-router) listens on" in fault["what"]
        assert "has not answered, within 2 s" in fault["what"]
        with RawEngine() as engine:
            begin_trial(engine, PLANS[0], router)
