# SPDX-License-Identifier: Apache-2.0
"""Engine group: engines that do not go together are refused by name before anything is asked of their
ports."""

from __future__ import annotations

import os
import time
from typing import Any, cast

import pytest

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.base.version import VERSION
from evenhand.trial import (
    EngineGroup,
    EngineMeasurer,
    EngineMember,
    EngineSession,
    Load,
    LoadChange,
    Waits,
    engine_group,
)
from evenhand.trial.engine_group import START_LEADS_S, TABLE_S
from evenhand.trial.group_parts import (
    NOTICE_S,
    TOO_LATE,
    EarlyStopOfAll,
    compare_clocks,
    learning_of_all,
    progress_of_all,
    sum_of_learning,
)
from tests.errors import raises

NO_WAITS = Waits(after_routing_s=0, after_learning_s=0, residual_s=0, restabilize_s=0)


class Engine:
    """Answers as it is told to; keeps what it was asked."""

    def __init__(
        self, answers: dict[str, Any] | None = None, *, version: str = VERSION, ahead_s: float = 0.0
    ) -> None:
        self.about = {"version": version, "contract": 1}
        self.answers = answers or {}
        self.ahead_s = ahead_s
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.was_stopped = self.was_killed = False
        self.pid = os.getpid()  # of a process that runs

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append((name, arguments))
        if name == "clock":
            return {"time_unix_ns": time.time_ns() + round(self.ahead_s * 1e9), "steered": False}
        answer = self.answers[name]
        if isinstance(answer, EvenhandError):
            raise answer
        return dict(answer)

    def stop(self) -> None:
        self.was_stopped = True

    def kill(self) -> None:
        self.was_killed = True

    def say_alive(self) -> None:
        return


def member(name: str, engine: Engine, *, streams: int = 1, is_here: bool = True) -> EngineMember:
    return EngineMember(name=name, session=cast(EngineSession, engine), streams=streams, is_here=is_here)


def passed(name: str) -> dict[str, Any]:
    return {"trial": 1, "reasons": [], "verdict": "PASS", "by": name}


def test_an_engine_of_another_version_is_refused_by_name() -> None:
    with raises("trial.engine-of-other-version", match=r"engine b .*9\.9"):
        EngineGroup([member("a", Engine()), member("b", Engine(version="9.9"))])


def test_engines_with_unlike_numbers_of_streams_are_refused_by_name() -> None:
    with raises("trial.engines-differ", match="engine b .*2 .*engine a 1"):
        EngineGroup([member("a", Engine()), member("b", Engine(), streams=2)])


@pytest.mark.parametrize(("ahead_s", "how"), [(3600.0, "ahead of"), (-7.0, "behind")])
def test_a_clock_that_is_off_is_refused_by_name(ahead_s: float, how: str) -> None:
    with raises("trial.engine-clock-off", match=f"engine b .* {how} "):
        EngineGroup([member("a", Engine()), member("b", Engine(ahead_s=ahead_s), is_here=False)])


def test_of_several_looks_at_a_clock_the_one_with_the_shortest_way_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was looked at in the middle of its way, and so it may be wrong by half of that."""
    looks_us = [
        (0, 700, 1000),
        (2000, 2130, 2200),
        *((n * 10_000, n * 10_000, n * 10_900) for n in range(3, 9)),
    ]
    here = iter([us for before, _, after in looks_us for us in (before, after)])
    there = iter([at for _, at, _ in looks_us])
    monkeypatch.setattr(time, "time_ns", lambda: 1000 * next(here))
    other = Engine()
    monkeypatch.setattr(other, "request", lambda name: {"time_unix_ns": 1000 * next(there)})
    found = compare_clocks([member("a", Engine()), member("b", other, is_here=False)])
    assert found["a"].to_contract() == {"offset_us": 0, "uncertainty_us": 0}
    assert found["b"].to_contract() == {"offset_us": 30, "uncertainty_us": 100}


@pytest.mark.parametrize(("way_s", "is_refused"), [(0.02, True), (0.06, False)])
def test_a_clock_is_refused_only_if_it_is_off_whatever_its_way_was(
    monkeypatch: pytest.MonkeyPatch, way_s: float, is_refused: bool
) -> None:
    """120 ms ahead, of which half the way may be none."""
    clock_ns = iter(range(0, 100 * round(way_s * 1e9), round(way_s * 1e9)))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock_ns))
    other = Engine()
    asked = iter(range(100))
    monkeypatch.setattr(
        other,
        "request",
        lambda name: {"time_unix_ns": round((2 * next(asked) * way_s + way_s / 2 + 0.12) * 1e9)},
    )
    members = [member("b", other, is_here=False)]
    if is_refused:
        with raises("trial.engine-clock-off", match=r"engine b is 0\.120 s ahead of"):
            compare_clocks(members)
    else:
        assert compare_clocks(members)["b"].offset_us == pytest.approx(120_000)


def test_several_engines_do_not_open_their_ports_again() -> None:
    """Each other one would have to be found again, and its clock compared."""
    group = EngineGroup([member("a", Engine()), member("b", Engine())])
    assert not group.can_reopen
    with raises("trial.not-with-several-engines", match="'restart'"):
        group.restart()


def test_shares_are_disjoint_and_the_start_is_one_by_each_clock() -> None:
    """The clock of an engine elsewhere may be some milliseconds off: its start is told by it."""
    a, b = (
        Engine({"trial": passed("a"), "judge": passed("all")}),
        Engine({"trial": passed("b")}, ahead_s=0.05),
    )
    group = EngineGroup([member("a", a), member("b", b, is_here=False)])
    group.request("trial", **arguments())
    ((_, of_a),) = [asked for asked in a.asked if asked[0] == "trial"]
    ((_, of_b),) = [asked for asked in b.asked if asked[0] == "trial"]
    assert (of_a["share"], of_b["share"]) == ({"first": 0, "stride": 2}, {"first": 1, "stride": 2})
    assert of_a["rate_fps"] == of_b["rate_fps"] == 1000
    assert of_b["start_at_unix_ns"] - of_a["start_at_unix_ns"] == pytest.approx(0.05e9, abs=0.02e9)
    assert of_a["stop_when_failed"] is True
    ((_, judged),) = [asked for asked in a.asked if asked[0] == "judge"]
    assert [each["engine"] for each in judged["results"]] == ["a", "b"]
    assert judged["results"][1]["clock"]["before"]["offset_us"] == pytest.approx(5e4, abs=2e4)
    assert judged["results"][1]["clock"]["before"]["uncertainty_us"] > 0


def test_many_connections_get_time_for_their_tables_before_the_start() -> None:
    """4 octets for each that an engine opens: it touches them before it can begin."""

    def lead_s(connections: dict[str, Any]) -> float:
        a = Engine({"trial": passed("a"), "judge": passed("all")})
        group = EngineGroup([member("a", a), member("b", Engine({"trial": passed("b")}))])
        now_ns = time.time_ns()
        group.request("trial", **arguments(connections=connections))
        ((_, asked),) = [asked for asked in a.asked if asked[0] == "trial"]
        assert asked["connections"] == connections
        return float(asked["start_at_unix_ns"] - now_ns) / 1e9

    few, many = (lead_s({"use": "establish", "count": count}) for count in (1000, 1_000_000_000))
    used = lead_s({"use": "established"})
    assert many - few == pytest.approx(1_000_000_000 / 2 * TABLE_S, abs=0.5)
    assert used == pytest.approx(few, abs=0.5)


class LateEngine(Engine):
    """Is not ready for so many starts."""

    def __init__(self, answers: dict[str, Any], late: int) -> None:
        super().__init__(answers)
        self.late = late

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = super().request(name, **arguments)
        if name == "trial" and self.late > 0:
            self.late -= 1
            raise HostError("the start has passed", code=TOO_LATE)
        return answer


@pytest.mark.parametrize(("late_a", "late_b", "starts"), [(0, 0, 1), (2, 2, 3), (1, 0, 1), (2, 1, 2)])
def test_a_trial_for_which_no_engine_was_ready_begins_anew(late_a: int, late_b: int, starts: int) -> None:
    """On a busy host it may take longer than usual. Where one was ready, the others are missing in its
    trial."""
    a = LateEngine({"trial": passed("a"), "judge": passed("all")}, late_a)
    b = LateEngine({"trial": passed("b"), "judge": passed("all")}, late_b)
    begin_ns = time.time_ns()
    EngineGroup([member("a", a), member("b", b)]).request("trial", **arguments())
    asked = [of_trial for name, of_trial in b.asked if name == "trial"]
    assert len(asked) == starts
    assert asked[-1]["start_at_unix_ns"] - begin_ns >= START_LEADS_S[starts - 1] * 1e9
    ((_, judged),) = [asked for asked in [*a.asked, *b.asked] if asked[0] == "judge"]
    assert ["lost" in each for each in judged["results"]] == [late_a >= starts, late_b >= starts]


def test_engines_that_are_never_ready_are_named() -> None:
    engines = [member(name, LateEngine({"trial": passed(name)}, 9)) for name in ("a", "b")]
    with raises("trial.engine-lost", match="a: the start has passed; b: the start has passed"):
        EngineGroup(engines).request("trial", **arguments())


class SilentEngine(Engine):
    """Tells nothing of its trial, and needs a while for its answer."""

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        if name == "trial":
            time.sleep(0.5)
        return super().request(name, **arguments)


@pytest.mark.parametrize(("count", "lost"), [(10, ["b"]), (10_000_000, [])])
def test_an_engine_that_looks_through_its_connections_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, count: int, lost: list[str]
) -> None:
    """It says nothing meanwhile: 5 s more for 5,000,000 of them."""
    monkeypatch.setattr(engine_group, "SILENT_S", 0.2)
    monkeypatch.setattr(EngineGroup, "quiet_s", 0.2)
    a = Engine({"trial": passed("a"), "judge": passed("all")})
    group = EngineGroup([member("a", a), member("b", SilentEngine({"trial": passed("b")}))])
    group.request("trial", **arguments(connections={"use": "establish", "count": count}))
    ((_, judged),) = [asked for asked in a.asked if asked[0] == "judge"]
    assert [each["engine"] for each in judged["results"] if "lost" in each] == lost


def arguments(**changes: Any) -> dict[str, Any]:
    return {
        "trial": 1,
        "rate_fps": 1000,
        "duration_s": 1,
        "directions": ["forward", "reverse"],
        "waits": NO_WAITS.to_contract(),
        "limits": {},
        "stop_when_failed": True,
        **changes,
    }


def test_what_several_engines_do_not_measure_is_refused_and_nothing_is_sent() -> None:
    engines = [Engine(), Engine()]
    group = EngineGroup([member("a", engines[0]), member("b", engines[1])])
    with raises("trial.not-with-several-engines", match="'prove'"):
        group.request("prove")
    with raises("trial.too-long-for-several-engines"):
        EngineMeasurer(session=group).offer(
            Load(rate_fps=1, duration_s=10_000, then=LoadChange(rate_fps=1, duration_s=20_000))
        )
    assert [name for engine in engines for name, _ in engine.asked if name == "trial"] == []


def test_a_request_that_one_engine_refuses_is_an_error_with_its_name() -> None:
    refusal = RequestError("too fast", code="engine.bad-rate", where="rate_fps")
    group = EngineGroup(
        [member("a", Engine({"trial": passed("a")})), member("b", Engine({"trial": refusal}))]
    )
    with raises("engine.bad-rate", match="engine b: too fast"):
        group.request("trial", **arguments())


def test_an_engine_that_ends_is_lost_for_good_and_the_others_judge() -> None:
    death = EngineError("the engine ended by SIGKILL", code="trial.engine-ended", where="trial")
    a, b = Engine({"trial": passed("a"), "judge": passed("all")}), Engine({"trial": death})
    group = EngineGroup([member("a", a), member("b", b)])
    assert group.request("trial", **arguments())["response"] == "trial"
    ((_, judged),) = [asked for asked in a.asked if asked[0] == "judge"]
    assert judged["results"][1] == {"engine": "b", "lost": "the engine ended by SIGKILL"}
    assert b.was_killed
    with raises("trial.engine-lost", match="engine b"):
        group.request("resolve")


class CutOffEngine(Engine):
    """Its connection is cut just after the answer of its trial."""

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        if name == "clock" and any(asked == "trial" for asked, _ in self.asked):
            raise EngineError("the engine ended with exit code 255", code="trial.engine-ended", where="clock")
        return super().request(name, **arguments)


def test_an_engine_that_is_cut_off_after_its_trial_is_lost_like_one_that_was_before() -> None:
    a, b = Engine({"trial": passed("a"), "judge": passed("all")}), CutOffEngine({"trial": passed("b")})
    group = EngineGroup([member("a", a), member("b", b, is_here=False)])
    group.request("trial", **arguments())
    ((_, judged),) = [asked for asked in a.asked if asked[0] == "judge"]
    assert judged["results"][1] == {"engine": "b", "lost": "the engine ended with exit code 255"}
    assert b.was_killed
    with raises("trial.engine-lost", match="engine b"):
        group.request("resolve")


def test_progress_is_the_sum_of_what_all_told_last() -> None:
    told: list[dict[str, Any]] = []
    take = progress_of_all(2, told.append)

    def event(frames: int, mean_ns: float | None) -> dict[str, Any]:
        counts = dict.fromkeys(("sent_frames", "received_frames", "settled_frames", "lost_frames"), frames)
        direction = {**counts, "latency": {"mean_ns": mean_ns, "max_ns": mean_ns}}
        return {
            "phase": "sending",
            "failing": {"lost_frames": 1, "allowed_frames": 0},
            "sent_frames": frames,
            "received_frames": frames,
            "directions": {"forward": direction},
        }

    take(1, event(30, 200.0))
    assert told == []
    take(0, event(10, 100.0))
    assert told[0]["sent_frames"] == 40
    assert "failing" not in told[0]
    assert told[0]["directions"]["forward"]["lost_frames"] == 40
    assert told[0]["directions"]["forward"]["latency"] == {"mean_ns": 175.0, "max_ns": 200.0}
    take(0, {"phase": "restabilize", "sent_frames": 11, "received_frames": 11})
    assert "directions" not in told[1]


def told_of(stop: EarlyStopOfAll, *lost: int, allowed: int = 10) -> None:
    """An event of each engine."""
    take = stop.watching(None)
    for number, frames in enumerate(lost):
        take(number, {"failing": {"lost_frames": frames, "allowed_frames": allowed}})


def test_a_trial_ends_early_once_all_engines_together_have_lost_more_than_it_may_lose() -> None:
    now_ns = time.time_ns()
    stop = EarlyStopOfAll(start_unix_ns=now_ns - 3 * 10**9, sending_s=60)
    assert stop.end_s() is None
    told_of(stop, 6, 4)
    assert stop.end_s() is None
    told_of(stop, 6, 5)
    end_s = stop.end_s()
    assert end_s is not None
    # Later than now, so that each engine hears of it before.
    assert 3 + NOTICE_S <= end_s < 60
    assert stop.end_s() is None, "all are told once"


def test_a_trial_that_ends_as_soon_by_itself_is_not_stopped() -> None:
    stop = EarlyStopOfAll(start_unix_ns=time.time_ns() - 60 * 10**9, sending_s=60)
    told_of(stop, 60, 5)
    assert stop.has_failed
    assert stop.end_s() is None


@pytest.mark.parametrize("jump_s", [-3600, 3600])
def test_a_jump_of_this_hosts_clock_ends_no_trial_at_another_time(
    monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    now_ns = time.time_ns()
    stop = EarlyStopOfAll(start_unix_ns=now_ns - 3 * 10**9, sending_s=60)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + jump_s * 10**9)
    told_of(stop, 60, 5)
    end_s = stop.end_s()
    assert end_s is not None
    assert 3 + NOTICE_S <= end_s < 60


def test_learning_counts_each_host_once_for_each_engine() -> None:
    told: list[dict[str, Any]] = []
    take = learning_of_all(2, told.append)
    for number in (1, 0):
        take(number, {"round": 1, "left": {"hosts": 5, "reachable": 3}})
    assert told == [{"round": 1, "left": {"hosts": 10, "reachable": 6}}]
    side = {"hosts": 5, "reachable": 4, "rounds": 2, "unreachable": ["198.18.0.9"], "questions_answered": 4}
    replies = [
        {"stopped": False, "rate_share": 1.0, "left": side},
        {"stopped": True, "rate_share": 0.5, "left": {**side, "rounds": 3}},
    ]
    assert sum_of_learning(replies) == {
        "stopped": True,
        "rate_share": 0.5,
        "left": {
            "hosts": 10,
            "reachable": 8,
            "rounds": 3,
            "unreachable": ["198.18.0.9", "198.18.0.9"],
            "questions_answered": 8,
        },
    }
