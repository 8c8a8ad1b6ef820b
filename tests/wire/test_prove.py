# SPDX-License-Identifier: Apache-2.0
"""The prove request on the real engine: it ends when it is asked to, and the session lives on."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from evenhand.base.errors import HostError
from evenhand.plan import make_plan
from evenhand.trial import EngineSession, StreamProof, find_engine
from evenhand.trial.proof import MAX_PROOF_FRAMES


@pytest.fixture
def engine() -> str:
    try:
        return str(find_engine())
    except HostError as error:
        pytest.skip(f"no engine: {error}")


def request(request_id: int, frames: int) -> dict[str, Any]:
    plan = make_plan("gateway_v4").to_contract()
    return {
        "id": request_id,
        "request": "prove",
        "plan": plan,
        "seed": 7,
        "direction": "forward",
        "frames": frames,
    }


@pytest.mark.wire
def test_a_proof_ends_early_when_the_client_asks_for_it(engine: str) -> None:
    """D2: four thousand million frames would take minutes; a stop request ends them, and is answered after
    them."""
    with subprocess.Popen(
        [engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request(1, MAX_PROOF_FRAMES)) + "\n")
        process.stdin.flush()
        # Not before something was drawn: the second event comes with a number.
        for line in process.stdout:
            event = json.loads(line)
            assert (event["id"], event["event"], event["frames"]) == (1, "proving", MAX_PROOF_FRAMES)
            if event["drawn_frames"] > 0:
                break
        process.stdin.write('{"id":2,"request":"stop"}\n')
        process.stdin.flush()
        process.stdin.close()
        replies = [reply for reply in map(json.loads, process.stdout) if "response" in reply]
        assert process.wait(60) == 0
    proof = StreamProof.from_contract(replies[0])
    assert proof.is_stopped
    assert event["drawn_frames"] <= proof.frames < MAX_PROOF_FRAMES
    assert replies[1] == {"id": 2, "response": "stop"}


@pytest.mark.wire
def test_a_proof_ends_when_its_client_is_gone(engine: str) -> None:
    """D2: nobody is left to read the result, so nobody should be left who draws."""
    ended = subprocess.run(
        [engine],
        input=json.dumps(request(1, MAX_PROOF_FRAMES)) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    assert json.loads(ended.stdout.splitlines()[-1])["stopped"] is True


@pytest.mark.wire
def test_events_tell_how_far_the_proof_is_and_the_session_lives_on(engine: str) -> None:
    events: list[dict[str, Any]] = []
    with EngineSession([engine]) as session:
        arguments = {key: value for key, value in request(0, 1000).items() if key not in ("id", "request")}
        reply = session.request("prove", on_event=events.append, **arguments)
        assert session.request("about")["contract"] == 1
    assert StreamProof.from_contract(reply).frames == 1000
    assert events[0]["drawn_frames"] == 0
