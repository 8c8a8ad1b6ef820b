# SPDX-License-Identifier: Apache-2.0
"""Engine session: faults keep their kind, death is told with its last words, and no engine is left behind."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.procedure import TrialPhase
from evenhand.trial import EngineMeasurer, EngineSession, Load, LoadChange, Verdict, find_engine, measurer
from tests.errors import raises

SCRIPTED = Path(__file__).with_name("scripted_engine.py")


def start(part: str) -> EngineSession:
    return EngineSession([sys.executable, SCRIPTED, part])


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_session_tells_what_engine_it_is() -> None:
    with start("fair") as session:
        assert session.about["contract"] == 1
        assert session.about["dpdk"] == "22.11.11"


def test_events_come_before_the_response() -> None:
    events: list[dict[str, Any]] = []
    with start("fair") as session:
        result = EngineMeasurer(session=session, on_event=events.append).measure(60, 1e6)
    assert result.verdict is Verdict.PASS
    assert [event["phase"] for event in events] == ["routing", "sending", "restabilize", "residual"]
    assert {event["trial"] for event in events} == {1}


def test_links_are_asked_for_by_any_thread_and_whoever_reads_hands_the_answer_over() -> None:
    with start("fair") as session, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(session.set_link, "right", "down") for _ in range(20)]
        asked += [pool.submit(session.links_up) for _ in range(20)]
        for _ in range(20):
            assert session.request("clock")["time_unix_ns"]
        assert [each.result() for each in asked] == [{"left": True, "right": False}] * 40


@pytest.mark.parametrize(
    "lie",
    [{"left": {}}, {"right": {"link_up": 1}}, {"response": "counters"}, {"id": 99}, {"id": []}],
    ids=str,
)
def test_an_answer_about_links_that_is_none_is_an_error(lie: dict[str, Any]) -> None:
    with start(f"lies-{json.dumps({'link': lie})}") as session, raises("trial.contract-violated"):
        session.links_up()


@pytest.mark.parametrize(("duration_s", "told_fps"), [(1000.0, 110e3), (1.0, 55e3)])
def test_progress_of_two_loads_has_the_load_that_is_being_sent(duration_s: float, told_fps: float) -> None:
    """R2544-29: the mean of overload and lowered load is a rate at which nothing is ever sent."""
    events: list[dict[str, Any]] = []
    load = Load(rate_fps=110e3, duration_s=duration_s, then=LoadChange(rate_fps=55e3, duration_s=1000.0))
    with start("fair") as session:
        EngineMeasurer(session=session, on_event=events.append).offer(load)
    assert [TrialPhase.from_contract(event).rate_fps for event in events] == [None, told_fps, None, None]


def test_trial_numbers_stay_within_the_tag() -> None:
    """The tag has 16 bits; number 0 belongs to previews."""
    numbers: list[int] = []
    with start("fair") as session:
        meter = EngineMeasurer(session=session, on_event=lambda event: numbers.append(event["trial"]))
        meter.measure(1, 1)
        meter._last_trial = measurer.MAX_TRIAL_NUMBER - 1
        meter.measure(1, 1)
        meter.measure(1, 1)
    assert sorted(set(numbers)) == [1, 65535]
    assert numbers[-1] == 1


@pytest.mark.parametrize(
    ("kind", "error", "exit_code", "code"),
    [
        ("bad_request", RequestError, 2, "engine.bad-frame-size"),
        ("host_not_ready", HostError, 3, "engine.no-device"),
        ("bug", EngineError, 4, "engine.internal"),
    ],
)
def test_a_fault_becomes_the_error_of_its_kind_and_the_session_lives_on(
    kind: str, error: type[EvenhandError], exit_code: int, code: str
) -> None:
    with start(f"fault-{kind}") as session:
        for _ in range(2):
            with raises(code) as caught:
                session.request("counters")
            assert isinstance(caught.value, error)
            assert caught.value.exit_code == exit_code
            assert caught.value.what
            assert caught.value.next_step
        assert session.request("about")["contract"] == 1


@pytest.mark.parametrize("duration_s", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused_and_the_session_lives_on(duration_s: float) -> None:
    with start("fair") as session:
        with raises("trial.not-finite") as caught:
            EngineMeasurer(session=session).measure(duration_s, 1e6)
        assert caught.value.where == "duration_s"
        assert session.request("about")["contract"] == 1


def test_an_answer_may_take_longer_than_the_clock_can_count() -> None:
    """The engine tells then what is wrong with such a time."""
    with start("fair") as session:
        assert session.request("about", answer_within_s=1e300)["contract"] == 1


def test_an_engine_of_another_contract_is_refused() -> None:
    with raises("trial.other-contract", match="contract 2"):
        start("contract-2")


def test_a_crash_is_told_with_the_last_words() -> None:
    with start("crash") as session, raises("trial.engine-ended", match=r"SIGSEGV.*no memory"):
        session.request("counters")


def test_an_engine_that_was_killed_is_no_bug_of_evenhand() -> None:
    """The last lines of whoever is killed say nothing of it, and a report does not help."""
    with start("fair") as session:
        os.kill(session.pid, signal.SIGKILL)
        with raises("trial.engine-ended", match=r"by SIGKILL$") as caught:
            session.request("counters")
    assert "dmesg" in (caught.value.next_step or "")


def test_an_engine_that_a_signal_has_stopped_is_not_waited_for_and_ends_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was waited for as long as for an answer, a minute and more, and then killed with its ports open."""
    monkeypatch.setattr("evenhand.trial.engine_process.LONGEST_HALT_S", 0.3)
    with start("fair") as session:
        os.kill(session.pid, signal.SIGSTOP)
        with raises("trial.engine-halted", match=f"stopped.*{session.pid}"):
            session.request("counters")
    assert session._process.returncode == 0


def test_an_engine_that_goes_on_before_long_has_only_been_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.trial.engine_process.LONGEST_HALT_S", 300.0)
    with start("fair") as session:
        os.kill(session.pid, signal.SIGSTOP)
        timer = threading.Timer(0.6, os.kill, (session.pid, signal.SIGCONT))
        timer.start()
        assert session.request("counters")["response"] == "counters"


def test_an_early_end_is_told_with_its_exit_code() -> None:
    with start("quit") as session, raises("trial.engine-ended", match="exit code 9"):
        session.request("counters")


@pytest.mark.parametrize(
    ("part", "written"), [("garbage", "'Segmentation fault"), ("wrong-id", "99"), ("odd-fault", "'no'")]
)
def test_words_outside_the_contract_are_a_bug(part: str, written: str) -> None:
    with start(part) as session, raises("trial.contract-violated", match=written):
        session.request("counters")


def test_silence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 0.2)
    with start("silent") as session, raises("trial.engine-does-not-answer"):
        session.request("counters", answer_within_s=0.2)
    assert not is_running(session._process.pid)


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_no_engine_is_left_behind(reason: type[BaseException]) -> None:
    session = start("fair")
    with pytest.raises(reason), session:
        raise reason
    assert not is_running(session._process.pid)


def test_an_engine_that_ignores_all_requests_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 0.2)
    with start("deaf") as session:
        pass
    assert session._process.returncode == -9


def test_ctrl_c_while_the_dut_is_looked_for_does_not_wait_for_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine that does not notice the end of its stdin gets a signal, and that soon."""
    monkeypatch.setattr("evenhand.trial.engine_session.CLOSE_TIMEOUT_S", 300.0)
    session = start("silent")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt), session:
        session.request("resolve", timeout_s=300, answer_within_s=300)
    assert session._process.returncode == -signal.SIGTERM


def test_an_engine_that_cannot_start_is_a_host_error(tmp_path: Path) -> None:
    with raises("trial.engine-does-not-start"):
        EngineSession([tmp_path / "nothing"])


def make_executable(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_engine_is_looked_for_in_order(tmp_path: Path) -> None:
    option, variable, checkout = (make_executable(tmp_path / name) for name in ("a", "b", "c"))
    on_path = make_executable(tmp_path / "evenhand-engine")
    environment = {"EVENHAND_ENGINE": str(variable), "PATH": str(tmp_path)}
    assert find_engine(option, environment=environment, checkout_engine=checkout) == option
    assert find_engine(environment=environment, checkout_engine=checkout) == variable
    environment.pop("EVENHAND_ENGINE")
    assert find_engine(environment=environment, checkout_engine=checkout) == checkout
    assert find_engine(environment=environment, checkout_engine=tmp_path / "none") == on_path


def test_a_missing_engine_is_a_host_error_that_says_what_to_do(tmp_path: Path) -> None:
    with raises("base.program-missing") as caught:
        find_engine(environment={"PATH": str(tmp_path)}, checkout_engine=tmp_path / "none")
    assert "make build" in caught.value.next_step
    with raises("base.program-missing"):
        find_engine(tmp_path / "none")
    with raises("base.program-not-executable"):
        find_engine(tmp_path)
