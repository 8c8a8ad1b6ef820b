# SPDX-License-Identifier: Apache-2.0
"""Learning as Python sees it: the request that is sent, the progress that is told, and results that
contradict themselves."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.procedure.learning import check_reachable
from evenhand.report.learning import learning_lines
from evenhand.trial import EngineSession, LearnedSide, LearningProgress, LearningResult, learn
from tests.errors import raises

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = Path(__file__).with_name("scripted_engine.py")
REPLIES = [
    json.loads(line) for line in (ROOT / "contract" / "golden" / "replies.jsonl").read_text().splitlines()
]
LEARNED = [reply for reply in REPLIES if reply.get("response") == "learn"]


def start(part: str) -> EngineSession:
    return EngineSession([sys.executable, SCRIPTED, part])


def test_learning_tells_its_progress_and_whom_it_did_not_reach() -> None:
    """SEED-20: a direct plan with a host that the DUT cannot reach must not go unnoticed into a trial."""
    told: list[LearningProgress] = []
    with start("fair") as session:
        result = learn(session, on_progress=told.append)
    assert [progress.round for progress in told] == [1, 3]
    assert told[0].reachable == {"left": 1200, "right": 0}
    assert told[1].host_counts == {"right": 65536}
    assert not result.is_complete
    assert not result.was_stopped
    assert result.unreachable_hosts == 1
    assert result.sides["left"].unreachable == ("198.18.3.7",)
    assert result.sides["right"].questions_answered == 65533


@pytest.mark.parametrize("prefix", ["198.18.0.", "2001:2:0:8000::"])
def test_people_are_told_the_first_eight_unreachable_hosts_and_how_many_more(prefix: str) -> None:
    """A hundred addresses fill the screen and say no more than eight; the document has them all the same."""
    addresses = tuple(f"{prefix}{host}" for host in range(2, 102))
    side = LearnedSide(host_count=65533, reachable=0, rounds=5, unreachable=addresses, questions_answered=0)
    result = LearningResult(sides={"left": side}, was_stopped=False)
    named = ", ".join(addresses[:8])
    assert learning_lines(result)[1] == f"unreachable on the left: {named} and 65,525 more"
    with raises("procedure.hosts-unreachable") as caught:
        check_reachable(result, next_step="Look.")
    assert caught.value.what == f"the DUT does not reach 65,533 of 65,533 hosts: {named} and 65,525 more"
    assert result.to_document()["sides"]["left"]["unreachable"] == list(addresses)


def test_eight_unreachable_hosts_are_named_without_a_rest() -> None:
    side = LearnedSide(
        host_count=8,
        reachable=0,
        rounds=5,
        unreachable=tuple(f"198.18.0.{n}" for n in range(8)),
        questions_answered=0,
    )
    assert learning_lines(LearningResult(sides={"right": side}, was_stopped=False))[1].endswith(
        "198.18.0.6, 198.18.0.7"
    )


def test_the_request_is_that_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    def request(_: EngineSession, name: str, **arguments: Any) -> dict[str, Any]:
        for ours in ("on_event", "answer_within_s"):
            arguments.pop(ours)
        sent.append({"id": 1, "request": name, **arguments})
        return dict(LEARNED[0])

    monkeypatch.setattr(EngineSession, "request", request)
    session = object.__new__(EngineSession)
    learn(session)
    learn(session, rate_fps=0.5, rounds=1, wait_s=0, directions=["reverse"])
    schema = json.loads((ROOT / "contract" / "request.schema.json").read_text())
    for document in sent:
        jsonschema.Draft202012Validator(schema).validate(document)
    assert sent[0]["directions"] == ["forward", "reverse"]
    assert sent[1]["rounds"] == 1


@pytest.mark.parametrize("document", LEARNED, ids=lambda d: str(d["id"]))
def test_golden_results_are_read(document: dict[str, Any]) -> None:
    result = LearningResult.from_contract(document)
    assert result.was_stopped == document["stopped"]
    assert set(result.sides) == {side for side in ("left", "right") if side in document}
    assert not result.is_complete


@pytest.mark.parametrize(
    "change",
    [
        {"reachable": 65534},
        {"reachable": -1},
        {"unreachable": ["198.18.3.7", "198.18.3.8"]},
        {"hosts": "many"},
        {"rounds": None},
    ],
    ids=str,
)
def test_a_result_that_contradicts_itself_is_a_bug(change: dict[str, Any]) -> None:
    document = copy.deepcopy(LEARNED[0])
    document["left"].update(change)
    with raises("trial.contract-violated"):
        LearningResult.from_contract(document)


def test_a_result_without_a_side_is_a_bug() -> None:
    with raises("trial.contract-violated", match="no side"):
        LearningResult.from_contract({"id": 1, "response": "learn", "stopped": False})


def test_a_refusal_keeps_its_kind() -> None:
    with start("fault-bad_request") as session, raises("engine.bad-frame-size"):
        learn(session)
