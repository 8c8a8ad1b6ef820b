# SPDX-License-Identifier: Apache-2.0
"""Two real engines that are one tester: what they send together is what one would send, and so are counts and
verdict; one that dies makes the trial INVALID, and nobody goes on sending. SEED-44, R2544-07, R2544-39, D3,
D5."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from evenhand.base.errors import EvenhandError
from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6, make_plan
from evenhand.predict import DeviceModel
from evenhand.procedure import OpenTestbed
from evenhand.reference import Defects, ReferenceDut
from evenhand.rig import Setup
from evenhand.trial import EngineMeasurer, Limits, TrialResult, Verdict, Waits
from evenhand.trial.engine_process import HALTED
from tests.errors import raises
from tests.wire.captures import sent_frames, tag_of, without_time
from tests.wire.raw_engine import RawEngine, open_request
from tests.wire.several_engines import (
    engine_table,
    group_of,
    open_group,
    pcap_ports,
    process_of,
    router_of_pairs,
    setup_of,
    setup_of_one,
    silent_ports,
)
from tests.wire.wire_session import FAST_WAITS, PATIENT, Document, engine, open_ports, until, versions

pytestmark = pytest.mark.wire
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
CONTRACT = Path(__file__).resolve().parents[2] / "contract"
WAITS = Waits(**FAST_WAITS)
LIMITS = replace(Limits(), **PATIENT, overdue_after_us=1e7)
"""What left late explains no loss then."""
LONG_S = 20.0
"""Longer than any test here waits for a trial that is to end before."""


def trial_of(
    setup: Setup,
    plan: AddressPlan,
    *,
    rate_fps: float = 2000,
    duration_s: float = 1.0,
    wanted: Callable[[TrialResult], bool] = lambda trial: trial.is_pass,
) -> TrialResult:
    """One that this machine did not spoil.

    Args:
        wanted: Whether it is one: a router that was without its CPU until frames came too late makes another.
    """
    return until(
        wanted,
        lambda: (
            OpenTestbed(setup=setup)
            .trial(plan=plan, rate_fps=rate_fps, duration_s=duration_s, waits=WAITS, limits=LIMITS)
            .trial
        ),
    )


def counts_of(trial: TrialResult) -> dict[str, tuple[int, ...]]:
    return {
        name: (d.intended_frames, d.offered_frames, d.received_frames, d.duplicated_frames, d.foreign_frames)
        for name, d in trial.directions.items()
    }


@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@versions(proved="v4")
def test_two_engines_count_what_one_counts(plan: AddressPlan) -> None:
    """R2544-07: each has its half of the frames; together they have all."""
    with router_of_pairs(plan, ReferenceDut()) as router:
        one = trial_of(setup_of_one(router), plan)
        two = trial_of(setup_of([engine_table(router, n, pair=n) for n in range(2)]), plan)
    assert one.verdict is two.verdict is Verdict.PASS
    assert counts_of(one) == counts_of(two)
    assert counts_of(two) == dict.fromkeys(("forward", "reverse"), (2000, 2000, 2000, 0, 0))
    engines = two.raw["engines"]
    assert [each["engine"] for each in engines] == ["a", "b"]
    for each in engines:
        for direction in each["directions"].values():
            assert direction["intended_frames"] == direction["received_frames"] == 1000
            assert direction["strayed_frames"] == 0
    assert two.raw["starts"]["difference_us"] <= two.raw["starts"]["limit_us"]


@pytest.mark.thorough
@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@versions(proved="v6")
def test_port_pairs_share_what_the_device_can_forward(plan: AddressPlan) -> None:
    """One DUT: three quarters of its rate on each pair are half as much again as it forwards."""
    model = DeviceModel(elements=1, rate_fps=4000, queue_frames=256)
    with router_of_pairs(plan, ReferenceDut(model=model)) as router:
        alone = trial_of(setup_of_one(router), plan, rate_fps=1500)
        tables = [engine_table(router, n, pair=n) for n in range(2)]
        before = router.counters()
        both = trial_of(setup_of(tables), plan, rate_fps=3000, wanted=is_failure)
        after = router.counters()
    assert alone.verdict is Verdict.PASS
    assert both.verdict is Verdict.FAIL
    assert {each["engine"]: _is_lossy(each) for each in both.raw["engines"]} == {"a": True, "b": True}
    jsonschema.validate(after, json.loads((CONTRACT / "router-reply.schema.json").read_text()))
    dropped = _dropped(after) - _dropped(before)
    assert dropped >= both.lost_frames  # with those of trials that did not count
    assert both.lost_frames > 1000


def is_failure(trial: TrialResult) -> bool:
    return trial.verdict is Verdict.FAIL


def _lost_of(trial: TrialResult) -> dict[str, int]:
    """Frames that each engine lost."""
    return {
        each["engine"]: sum(direction["lost_frames"] for direction in each["directions"].values())
        for each in trial.raw["engines"]
    }


def _is_lossy(engine: Document) -> bool:
    return any(direction["lost_frames"] for direction in engine["directions"].values())


def _dropped(counters: Document) -> int:
    return sum(
        pair[side]["element_dropped_frames"] for pair in (counters, *counters["more_ports"]) for side in SIDES
    )


@pytest.mark.thorough
@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@versions(proved="v6")
def test_a_device_that_loses_frames_of_one_pair_fails_the_whole_and_the_engine_is_named(
    plan: AddressPlan,
) -> None:
    dut = ReferenceDut(defects=Defects(ratios={"loss": 0.05}))
    with router_of_pairs(plan, ReferenceDut(), 1) as sound, router_of_pairs(plan, dut, 1) as lossy:
        trial = trial_of(
            setup_of([engine_table(sound, 0), engine_table(lossy, 1)]),
            plan,
            wanted=lambda trial: is_failure(trial) and _lost_of(trial)["a"] == 0,
        )
    assert trial.verdict is Verdict.FAIL
    assert _lost_of(trial) == {"a": 0, "b": trial.lost_frames}
    assert trial.lost_frames > 20
    assert all(" of b: " in reason.text for reason in trial.reasons)
    # The second of two streams has the odd numbers.
    assert {number % 2 for d in trial.directions.values() for number in d.first_lost} == {1}


@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@PLANS
def test_the_union_of_the_captures_is_that_of_one_engine(plan: AddressPlan, tmp_path: Path) -> None:
    """SEED-44, D3: with two streams, as two engines have them; all octets but the times are the same."""
    macs = ("02:00:00:00:00:01", "02:00:00:00:00:02")
    rate_fps, duration_s, frames = 2000.0, 0.5005, 1001

    def captured() -> tuple[Document, list[list[bytes]]]:
        for capture in tmp_path.glob("*.pcap"):
            capture.unlink()
        devices, files = pcap_ports(tmp_path, 2)
        with group_of(2) as group:
            session = open_group(group, plan, devices, own_macs=macs, seed=44)["session"]
            document = dict(
                EngineMeasurer(session=group, waits=WAITS, limits=LIMITS).measure(duration_s, rate_fps).raw
            )
        found = []
        for side in SIDES:
            of_side = [frame for of in files for frame in sent_frames(of[side], plan.ip_version)]
            found.append(sorted(of_side, key=lambda frame: tag_of(frame, plan.ip_version).sequence))
        return {**document, "session": session}, found

    document, union = until(
        lambda found: all(d["offered_frames"] == frames for d in found[0]["directions"].values()), captured
    )
    wire_trial = (1 - 1 + document["session"]) % 65535 + 1
    with engine() as session:
        for direction, side_frames, own, dut in zip(
            ("forward", "reverse"), union, macs, ("02:00:00:00:d0:01", "02:00:00:00:d0:02"), strict=True
        ):
            preview = session.request(
                "frames",
                plan=plan.to_contract(),
                frame_size=plan.smallest_frame_size,
                seed=44,
                direction=direction,
                count=frames,
                trial=wire_trial,
                streams=2,
                source_mac=own,
                destination_mac=dut,
            )["frames"]
            assert len(side_frames) == frames
            for sent, drawn in zip(side_frames, preview, strict=True):
                assert without_time(sent, plan.ip_version) == without_time(
                    bytes.fromhex(drawn["octets"]), plan.ip_version
                )


def kill_at_random(rounds: int) -> None:
    """One of two engines is killed at any moment between its start and the end of a trial."""
    draw = random.Random(rounds)
    spoiled = 0
    stopped_after_s: list[float] = []
    for _ in range(rounds):
        with group_of(2) as group:
            victim = draw.randrange(2)
            member, other = group.members[victim], group.members[1 - victim]
            killed_at: list[float] = []

            def kill(pid: int = process_of(member), at: list[float] = killed_at) -> None:
                os.kill(pid, signal.SIGKILL)
                at.append(time.monotonic())

            timer = threading.Timer(draw.uniform(0, 1.8), kill)
            began = time.monotonic()
            timer.start()
            measurer = EngineMeasurer(session=group, waits=WAITS, limits=LIMITS)
            try:
                open_group(group, gateway_v4(), silent_ports(2))
                result = measurer.measure(LONG_S, 1000)
            except EvenhandError as error:
                before_trial = error.what
                result = None
            finally:
                timer.join()
            if result is None:
                assert before_trial.startswith(f"engine {member.name}")
                continue
            spoiled += 1
            # That long before its end the trial had not ended by itself.
            assert time.monotonic() - began < LONG_S
            assert result.verdict is Verdict.INVALID
            assert [reason.code for reason in result.reasons] == ["engine_lost"]
            assert result.reasons[0].text.startswith(f"{member.name}: ")
            assert not result.was_stopped
            stopped_after_s.append(time.monotonic() - killed_at[0])
            # It was told to stop, and had not sent all that it was to send.
            (survivor,) = result.raw["engines"]
            assert survivor["engine"] == other.name
            for direction in survivor["directions"].values():
                assert direction["offered_frames"] < direction["intended_frames"]
            assert_sends_nothing(other.session.request)
            with raises("trial.engine-lost", match=f"engine {member.name}"):
                measurer.measure(1, 1000)
    assert spoiled
    # `pytest -rP` shows it: from the kill to the verdict, by when the other had stopped and told its counts.
    print(
        f"{len(stopped_after_s)} kills in a trial: the other had stopped after"
        f" {statistics.median(stopped_after_s):.3f} s in the median, {max(stopped_after_s):.3f} s at the most"
    )


def assert_sends_nothing(request: object) -> None:
    assert callable(request)
    before = request("counters")
    time.sleep(0.2)
    assert request("counters") | {"id": 0} == before | {"id": 0}


@pytest.mark.thorough
@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
def test_an_engine_that_is_killed_makes_the_trial_invalid_and_the_other_stops() -> None:
    kill_at_random(4)


@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.slow
def test_a_hundred_kills_leave_no_trial_that_counts() -> None:
    kill_at_random(100)


@pytest.mark.thorough
@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
def test_an_engine_that_hangs_is_lost_too_and_the_other_stops_long_before() -> None:
    """A host that is frozen answers no more, and its connection stands."""

    def hung() -> TrialResult:
        with group_of(2) as group:
            open_group(group, gateway_v4(), silent_ports(2))
            pid = process_of(group.members[1])

            def hang(event: Document) -> None:
                if event.get("phase") == "sending":
                    os.kill(pid, signal.SIGSTOP)

            measurer = EngineMeasurer(session=group, waits=WAITS, limits=LIMITS, on_event=hang)
            return measurer.measure(LONG_S, 1000)

    # On a busy host one of them may not be ready to start with the other.
    result = until(lambda found: not any("not ready" in each.text for each in found.reasons), hung)
    assert result.verdict is Verdict.INVALID
    assert [reason.text for reason in result.reasons] == [f"b: {HALTED}"]
    assert max(each.offered_frames for each in result.directions.values()) < 1000 * LONG_S / 4


@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
def test_an_engine_that_is_halted_between_trials_is_lost_and_nobody_waits_for_it() -> None:
    with group_of(2) as group:
        open_group(group, gateway_v4(), silent_ports(2))
        os.kill(process_of(group.members[1]), signal.SIGSTOP)
        with raises("trial.engine-lost", match="engine b"):
            group.request("counters", answer_within_s=LONG_S)
        with raises("trial.engine-lost", match="engine b"):
            group.request("counters")


def test_an_engine_whose_client_is_silent_stops_and_empty_lines_are_a_sign_of_life() -> None:
    """A cable that is pulled tells neither end."""
    share = {"share": {"first": 0, "stride": 2}, "client_timeout_s": 0.5}
    trial = {"request": "trial", "rate_fps": 1000, "waits": FAST_WAITS, "limits": PATIENT, **share}
    with RawEngine() as raw:
        raw.say(open_request())
        raw.hear_answers(1)
        raw.say({"id": 2, "trial": 1, "duration_s": LONG_S, **trial})
        (stopped,) = raw.hear_answers(1)
        assert [reason["code"] for reason in stopped["reasons"] if reason["code"] == "stopped"] == ["stopped"]
        number = itertools.count(2)

        def lasting() -> Document:
            this = next(number)
            raw.say({"id": this + 1, "trial": this, "duration_s": 1.5, **trial})
            ended = threading.Event()

            def live() -> None:
                while not ended.wait(0.05):
                    raw.say("")

            alive = threading.Thread(target=live)
            alive.start()
            (answer,) = raw.hear_answers(1)
            ended.set()
            alive.join()
            return answer

        # A host that keeps this thread away for half a second makes it silent.
        lasted = until(
            lambda found: "stopped" not in {reason["code"] for reason in found["reasons"]}, lasting
        )
    assert lasted["directions"]["forward"]["intended_frames"] == 750


@pytest.mark.parametrize("ahead_s", [-10.0, 0.02, 4000.0])
def test_a_start_that_cannot_be_kept_is_refused_and_nothing_is_sent(ahead_s: float) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *silent_ports(1)[0])
        before = session.request("counters")
        start_at_ns = time.time_ns() + round(ahead_s * 1e9)
        with raises("engine.too-late", match=f" {start_at_ns} ns"):
            session.request(
                "trial", trial=1, rate_fps=1000, duration_s=1, waits=FAST_WAITS, start_at_unix_ns=start_at_ns
            )
        assert session.request("counters") | {"id": 0} == before | {"id": 0}


def test_a_share_beyond_the_whole_is_refused_and_so_is_what_one_of_several_cannot_do() -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *silent_ports(1)[0])
        trial: Document = {"trial": 1, "rate_fps": 1000, "duration_s": 1, "waits": FAST_WAITS}
        share = {"first": 1, "stride": 2}
        with raises("engine.bad-request", match="connections"):
            session.request("trial", **trial, share=share, connections={"use": "each_once"})
        with raises("engine.bad-rate"):
            session.request("trial", **{**trial, "rate_fps": 1}, share=share)
    with engine() as session:
        workers: list[Document] = [
            {
                "cpu": 0,
                "senders": [{"side": "left", "stream": 0}, {"side": "right", "stream": 0}],
                "receivers": [{"side": "left", "queue": 0}, {"side": "right", "queue": 0}],
            }
        ]
        workers[0]["cpu"] = sorted(os.sched_getaffinity(0))[0]
        workers[0]["senders"] += [{"side": side, "stream": 1} for side in SIDES]
        open_ports(session, gateway_v4(), *silent_ports(1)[0], workers=workers)
        with raises("engine.bad-request", match="streams 1 to 2 .*2"):
            session.request("trial", **trial, share=share)


@pytest.mark.thorough
@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
def test_frames_that_reach_another_engine_are_told_as_strayed() -> None:
    """A DUT that forwards between the pairs: here the right ports of two pairs are exchanged."""
    plan = make_plan("gateway-v4")
    with router_of_pairs(plan, ReferenceDut()) as router:
        tables = [engine_table(router, n, pair=n) for n in range(2)]
        tables[0]["right"], tables[1]["right"] = tables[1]["right"], tables[0]["right"]
        trial = trial_of(setup_of(tables), plan, wanted=is_failure)
    assert trial.verdict is Verdict.FAIL
    assert {note.code for note in trial.notes} >= {"strayed"}
    assert trial.lost_frames == 4000
    strayed = [each["directions"]["forward"]["strayed_frames"] for each in trial.raw["engines"]]
    assert strayed == [1000, 1000]
