# SPDX-License-Identifier: Apache-2.0
"""Whatever the engine does and whatever waits behind it: the end of its client, a signal and a stop request
end it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import MAX_PROOF_FRAMES, find_engine
from tests.wire.raw_engine import RawEngine, open_request
from tests.wire.wire_session import cpus, proved

pytestmark = pytest.mark.wire

END_WITHIN_S = 10
"""For a busy machine; it takes a second at the most. Each request below would take minutes."""
PLAN = gateway_v4().to_contract()
LONG: dict[str, dict[str, Any]] = {
    "trial": {"trial": 1, "rate_fps": 1000, "duration_s": 600},
    "resolve": {"timeout_s": 600},
    "learn": {"rate_fps": 50, "rounds": 1},
    "prove": {"plan": PLAN, "seed": 7, "direction": "forward", "frames": MAX_PROOF_FRAMES},
    "watch": {"seconds": 600, "cpus": cpus()[-1:]},
}
OTHER_SIGNALS = (signal.SIGINT, signal.SIGHUP)
"""Which of them comes is all the same to a request."""
NOT_RESOLVED = frozenset({"resolve"})
ABOUT, STOP = {"request": "about"}, {"request": "stop"}


def begin(engine: RawEngine, kind: str) -> None:
    """Open, send request 2 with others behind it, and see it running."""
    opening = open_request(dut_macs=None) if kind in NOT_RESOLVED else open_request()
    engine.say(opening)
    assert engine.hear()["response"] == "open"
    engine.say(
        {"id": 2, "request": kind, **LONG[kind]},
        {"id": 3, **ABOUT},
        {"id": 4, "request": kind, **LONG[kind]},
        {"id": 5, **ABOUT},
    )
    if kind in ("resolve", "watch"):
        time.sleep(0.5)  # they tell nothing before they are over
    else:
        assert engine.hear()["event"]
    assert engine.process.poll() is None


def resident_mib(engine: RawEngine) -> float:
    status = Path(f"/proc/{engine.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


@pytest.mark.parametrize("kind", LONG)
def test_the_end_of_stdin_ends_a_request_that_others_wait_behind(kind: str) -> None:
    """D2: each of them is answered, none is begun."""
    with RawEngine() as engine:
        begin(engine, kind)
        engine.hang_up()
        assert engine.process.wait(END_WITHIN_S) == 0
        first, about, second, last = engine.hear_answers(4)
    assert [document["id"] for document in (first, about, second, last)] == [2, 3, 4, 5]
    assert (about["response"], last["response"]) == ("about", "about")
    assert second["fault"]["code"] == "stopped"
    if kind in NOT_RESOLVED:
        assert first["fault"]["code"] == "stopped"
        assert "10.0.0.1" in first["fault"]["what"]
    else:
        assert first["response"] == kind


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *((kind, signal.SIGTERM) for kind in LONG),
        *(("trial", number) for number in OTHER_SIGNALS),
        *proved(*((kind, number) for kind in LONG if kind != "trial" for number in OTHER_SIGNALS)),
    ],
)
def test_a_signal_ends_a_request_that_others_wait_behind(kind: str, number: signal.Signals) -> None:
    """The ports are closed in order: the engine ends by itself."""
    with RawEngine() as engine:
        begin(engine, kind)
        engine.process.send_signal(number)
        assert engine.process.wait(END_WITHIN_S) == 0
        (first,) = engine.hear_answers(1)
        assert first["id"] == 2
        assert engine.process.stdout is not None
        assert engine.process.stdout.read() == b""  # what waited is not answered


def test_a_signal_ends_an_idle_engine() -> None:
    with RawEngine() as engine:
        engine.say({"id": 1, **ABOUT})
        assert engine.hear()["response"] == "about"
        engine.process.terminate()
        assert engine.process.wait(END_WITHIN_S) == 0


@pytest.mark.parametrize("kind", LONG)
def test_a_stop_ends_what_runs_and_what_waits_before_it(kind: str) -> None:
    """It stands in its place all the same: what comes before it is answered before it, what comes after it is
    done."""
    with RawEngine() as engine:
        begin(engine, kind)
        engine.say({"id": 6, **STOP}, {"id": 7, "request": "watch", "seconds": 0.1, "cpus": cpus()[-1:]})
        answers = engine.hear_answers(6)
        assert [answer["id"] for answer in answers] == [2, 3, 4, 5, 6, 7]
        assert [answer.get("response") for answer in answers[1:]] == ["about", None, "about", "stop", "watch"]
        assert answers[2]["fault"] == {
            "code": "stopped",
            "kind": "bad_request",
            "what": "not started: a stop request waits behind it, or the client is gone",
            "where": "",
            "next": "Send it again after the stop.",
        }
        assert ("fault" in answers[0]) == (kind in NOT_RESOLVED)
        engine.hang_up()
        assert engine.process.wait(END_WITHIN_S) == 0


@pytest.mark.parametrize("by_signal", [False, True])
def test_a_reply_that_nobody_reads_does_not_keep_the_engine(by_signal: bool) -> None:
    """Its pipe is full, and more requests wait."""
    frames = {
        "request": "frames",
        "plan": PLAN,
        "frame_size": 64,
        "seed": 7,
        "direction": "forward",
        "count": 100_000,
    }
    with RawEngine() as engine:
        engine.say(*({"id": number, **frames} for number in range(20)))
        assert engine.process.stdout is not None
        assert engine.process.stdout.read(1) == b"{"  # it writes
        if by_signal:
            engine.process.terminate()
        else:
            engine.hang_up()
        assert engine.process.wait(END_WITHIN_S) == 0


def test_a_session_in_a_file_is_served_to_its_end(tmp_path: Path) -> None:
    """Nobody is gone when a file is over: the last request may take its time."""
    session = tmp_path / "session.jsonl"
    requests = [{"id": 1, **ABOUT}, {"id": 2, "request": "watch", "seconds": 1, "cpus": cpus()[-1:]}]
    session.write_text("".join(f"{json.dumps(request)}\n" for request in requests))
    with session.open() as lines:
        done = subprocess.run(
            [find_engine()], stdin=lines, capture_output=True, text=True, timeout=60, check=True
        )
    assert '"seconds":1.' in done.stdout.splitlines()[1]


@pytest.mark.thorough
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def test_a_day_at_100_gbit_s_begins_and_stops_at_once(plan: AddressPlan) -> None:
    """Its 1.3e13 frames a direction are recorded in 128 MiB, and none that was not sent is lost
    (R2544-06)."""
    with RawEngine() as engine:
        engine.say(open_request(plan))
        assert engine.hear()["response"] == "open"
        before_mib = resident_mib(engine)
        engine.say({"id": 2, "request": "trial", "trial": 1, "rate_fps": 148.8e6, "duration_s": 86400})
        while not all(
            d["sent_frames"] >= 10
            for d in engine.hear().get("directions", {"forward": {"sent_frames": 0}}).values()
        ):
            pass
        assert resident_mib(engine) - before_mib < 2 * 128 + 50
        engine.say({"id": 3, **STOP})
        began = time.monotonic()
        result, _ = engine.hear_answers(2)
        assert time.monotonic() - began < END_WITHIN_S
    assert "stopped" in {reason["code"] for reason in result["reasons"]}
    for direction in result["directions"].values():
        assert direction["intended_frames"] == round(148.8e6 * 86400)
        assert sum(direction["lost_by_tenth"]) == direction["lost_frames"] == direction["offered_frames"] > 0
        assert direction["first_lost"] == list(range(10))
