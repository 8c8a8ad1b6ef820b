# SPDX-License-Identifier: Apache-2.0
"""An engine that answers something else than it was asked, or never stops writing: its words become no
result, and the error says that it is the engine's."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EngineError
from evenhand.base.validation.hostile_json import MAX_TEXT
from evenhand.trial import EngineGroup, EngineMeasurer, EngineSession, Waits, engine_process
from evenhand.trial.engine_process import parse_line
from evenhand.trial.group_parts import EngineMember
from tests.errors import raises
from tests.trial.test_engine_session import SCRIPTED, start

NO_WAITS = Waits(after_routing_s=0, after_learning_s=0, residual_s=0, restabilize_s=0)
OPEN = {"frame_size": 64, "ports": {"left": {}, "right": {}}}
PROGRESS = {"event": "progress", "trial": 1, "phase": "sending", "elapsed_s": 1.0, "total_s": 2.0}


GOLDEN = Path(__file__).parents[2] / "contract" / "golden" / "replies.jsonl"
TRUE: dict[str, Any] = {
    reply["response"]: reply
    for reply in map(json.loads, GOLDEN.read_text().splitlines())
    if "response" in reply
}
PORT = TRUE["open"]["left"]
LATENCY = TRUE["trial"]["directions"]["forward"]["latency"]


def telling(lies: dict[str, Any]) -> EngineSession:
    return EngineSession([sys.executable, SCRIPTED, f"lies-{json.dumps(lies)}"])


@contextmanager
def opened(lies: dict[str, Any]) -> Iterator[EngineMeasurer]:
    with telling(lies) as session:
        session.open([OPEN])
        yield EngineMeasurer(session=session, waits=NO_WAITS)


def test_an_engine_that_tells_the_truth_is_believed() -> None:
    with opened({"events": [PROGRESS]}) as meter:
        assert meter.measure(1, 1000).is_pass


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"loss_ratio": 0.5}, "loss_ratio is 0.5"),
        ({"frame_size": 1518}, "frame_size is 1518"),
        ({"intended_fps": 99999}, "99999 fps"),
        ({"intended_duration_s": 2}, "for 2 s"),
        ({"trial": 2}, "trial is 2"),
        ({"limits": {"loss_ratio": 0.1}}, "limits.loss_ratio"),
        ({"directions": {}}, "directions"),
        ({"directions": []}, "directions"),
        ({"reasons": "none"}, "reasons"),
        ({"reasons": [{"code": [], "text": ""}]}, r"reasons\[0\].code"),
        ({"loss_ratio": 10**400}, "whole number of 401 digits"),
        ({"loss_ratio": 10**25}, "whole number of 26 digits"),
        ({"started_at": "\x1b[31mtomorrow"}, "started_at"),
        ({"verdict": "PASS", "reasons": [{"code": "loss", "text": "lost"}]}, "is PASS, but has the reasons"),
        ({"verdict": "FAIL", "reasons": [{"code": "loss", "text": "lost"}]}, "FAIL for loss, but"),
        ({"stopped_early_s": -3.0}, "sent for -3 s"),
        ({"more": "\ud800"}, "not JSON, or beyond"),
        ({"trial": True}, "trial is True"),
        ({"clock": None}, "clock"),
        ({"id": [1]}, "request"),
        ({"id": {}}, "request"),
        ({"fault": {"code": [], "kind": {}, "what": 1, "where": None, "next": ""}}, "fault|code"),
    ],
    ids=str,
)
def test_a_trial_that_was_not_asked_for_is_no_result(lie: dict[str, Any], said: str) -> None:
    """R2544-39. PASS was taken with half of the frames lost, another size, load or trial."""
    with opened({"trial": lie}) as meter, raises("trial.contract-violated", match=said) as caught:
        meter.measure(1, 1000)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"offered_frames": 4000, "received_frames": 4000}, "forward.offered_frames is 4000, but"),
        ({"offered_fps": 1e9}, "forward.offered_fps is 1e[+]09"),
        ({"offered_fps": -1.0}, "forward.offered_fps is -1"),
        ({"forwarding_rate_fps": 1e9}, "forward.forwarding_rate_fps is 1e[+]09"),
        ({"latency": {**LATENCY, "min_ns": 2e9, "max_ns": 1.0}}, "the least of 2e[+]09 ns"),
    ],
    ids=str,
)
def test_counts_and_rates_of_a_direction_that_contradict_each_other_are_no_result(
    lie: dict[str, Any], said: str
) -> None:
    """R2544-39. PASS was taken with twice the frames that were intended, and with any rate."""
    with opened({}) as meter:
        told = dict(meter.measure(1, 1000).raw["directions"])
    told["forward"] = {**told["forward"], **lie}
    with opened({"trial": {"directions": told}}) as meter, raises("trial.contract-violated", match=said):
        meter.measure(1, 1000)


def test_a_key_that_is_there_twice_is_no_answer() -> None:
    """Python would take the last: PASS and FAIL in one line are neither."""
    with raises("trial.contract-violated", match="key 'verdict' twice"):
        parse_line(b'{"id":1,"verdict":"FAIL","verdict":"PASS"}', "trial")


@pytest.mark.parametrize("more", ["[" * 40 + "]" * 40, f'"{"y" * MAX_TEXT}"'], ids=["deep", "long"])
def test_a_result_that_no_run_file_may_hold_is_no_result(more: str) -> None:
    """It was stored, and the run could not be read again."""
    with raises("trial.contract-violated", match="beyond its bounds"):
        parse_line(f'{{"id":1,"more":{more}}}'.encode(), "trial")


@pytest.mark.parametrize(
    "event",
    [
        {"event": "progress"},
        {"event": []},
        {"event": "surprise"},
        {**PROGRESS, "elapsed_s": "long"},
        {**PROGRESS, "trial": 9},
        {**PROGRESS, "directions": {"forward": {}}},
        {**PROGRESS, "failing": 5},
        {"event": "learning", "round": 10**30},
    ],
    ids=str,
)
def test_an_event_of_another_form_is_the_engines_fault(event: dict[str, Any]) -> None:
    heard: list[Any] = []
    with opened({"events": [event]}) as meter:
        meter.on_event = heard.append
        with raises("trial.contract-violated"):
            meter.measure(1, 1000)
    assert heard == []


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("open", {"left": {}}),
        ("open", {"right": 7}),
        ("open", {"ticks_per_second": None}),
        ("open", {"ticks_per_second": 0}),
        ("open", {"left": {**PORT, "line_rate_bps": -1e9}}),
        ("resolve", {"left": {"dut_mac": "\x1b[31m02:00:00:00:00:01", "static": True}}),
        ("counters", {"left": {}}),
        ("clock", {"time_unix_ns": "now"}),
        ("learn", {"right": {"hosts": -1}}),
    ],
)
def test_replies_of_another_form_are_the_engines_fault(name: str, lie: dict[str, Any]) -> None:
    requests: dict[str, dict[str, Any]] = {"learn": {"directions": ["forward"]}, "open": OPEN}
    with telling({name: lie}) as session, raises("trial.contract-violated"):
        session.request(name, **requests.get(name, {}))


def test_a_line_has_a_longest_length_and_events_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ended, and both filled the memory of this machine."""
    monkeypatch.setattr(engine_process, "MOST_LINE_OCTETS", 1 << 20)
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 0.2)
    for part, said in (
        ("endless-line", "line of more than"),
        ("endless-events", "without end"),
        ("nested", "not JSON"),
    ):
        with start(part) as session, raises("trial.contract-violated", match=said):
            session.request("counters")
        assert session._process.poll() is not None


def test_nobody_waits_for_an_answer_because_events_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.trial.engine_session.MOST_EVENTS_AT_ONCE", 10**9)
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 0.2)
    with start("endless-events") as session, raises("trial.engine-does-not-answer"):
        session.request("counters", ended_within_s=0.3)


def test_lines_that_nobody_takes_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 0.2)
    with start("endless-events") as session:
        with suppress(EngineError):
            session.request("counters", ended_within_s=0.05)
        time.sleep(0.2)
        assert session._lines._lines.qsize() <= engine_process.MOST_WAITING


def test_an_engine_of_another_version_is_refused_also_when_it_is_alone() -> None:
    with raises("trial.engine-of-other-version", match=r"9\.9"):
        telling({"about": {"version": "9.9"}})


@pytest.mark.parametrize("lie", [{"trial": 9}, {"directions": {"forward": {}}}, {"loss_ratio": 0.5}], ids=str)
def test_of_two_engines_the_one_that_lies_is_named(lie: dict[str, Any]) -> None:
    """The fault of b was said of a."""
    with telling({}) as a, telling({"trial": lie}) as b:
        members = [
            EngineMember(name=name, session=session, streams=1, is_here=True)
            for name, session in (("a", a), ("b", b))
        ]
        group = EngineGroup(members)
        group.open([OPEN, OPEN])
        meter = EngineMeasurer(session=group, waits=NO_WAITS)
        with raises("trial.engine-lost", match="engine b.*violates the contract"):
            meter.measure(1, 1000)
            meter.measure(1, 1000)  # where it makes the first trial INVALID
