# SPDX-License-Identifier: Apache-2.0
"""kill -9 and SIGSTOP of each process, on ports that are rings or write files, and of a router beside the
engine: whoever is left says what has happened, before long, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6, make_plan
from evenhand.predict import DeviceModel
from evenhand.procedure import OpenTestbed
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig import Setup, make_reference_setup
from evenhand.run import RunStore, read_run
from evenhand.search import ThroughputGoal
from evenhand.testbed import make_testbed
from evenhand.trial import Limits, Waits, other_end
from tests.errors import raises
from tests.wire.raw_engine import RawEngine
from tests.wire.several_engines import LENIENT, pcap_ports
from tests.wire.test_other_end import begin_trial, process_of
from tests.wire.test_other_end import open_ports as open_request
from tests.wire.wire_session import FAST_WAITS, NOBODY, PATIENT, cpus, engine, open_ports, run_trial, versions

pytestmark = pytest.mark.wire
LONG_S = 60.0
"""The duration of a trial that nobody waits for."""
SHORT_S = 2.0
"""As long as a router that has been halted is waited for."""
SOON_S = 15.0
"""Within that everything ends that has lost its other process; busy hosts take some seconds."""
PORTS = ("ring", "pcap")


def ports_of(kind: str, folder: Path) -> tuple[str, str]:
    if kind == "ring":
        return "net_ring0", "net_ring1"
    (devices,), _ = pcap_ports(folder, 1)
    return devices


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def wait_until(true: Callable[[], bool], *, within_s: float = SOON_S) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The engine, in mid-trial.


@pytest.mark.parametrize("kind", PORTS)
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGKILL, "trial.engine-ended", "ended by SIGKILL"),
        (signal.SIGSTOP, "trial.engine-halted", "a signal has stopped"),
    ],
    ids=["kill -9", "SIGSTOP"],
)
def test_an_engine_that_goes_in_mid_trial_is_named(
    tmp_path: Path, kind: str, number: signal.Signals, code: str, said: str
) -> None:
    with engine() as session:
        open_ports(session, gateway_v6() if kind == "pcap" else gateway_v4(), *ports_of(kind, tmp_path))

        def on_event(event: dict[str, Any]) -> None:
            if event["phase"] == "sending" and event["sent_frames"]:
                os.kill(session.pid, number)

        began_s = time.monotonic()
        with raises(code, match=said):
            run_trial(session, rate_fps=1000, duration_s=LONG_S, on_event=on_event)
        assert time.monotonic() - began_s < SOON_S
        pid = session.pid
    assert not is_there(pid)


# The command that has started it.


def write_testbed(folder: Path, kind: str) -> Path:
    left, right = ports_of(kind, folder)
    text = "isolated_test_environment = true\n"
    for side, device, mac in (("left", left, NOBODY[0]), ("right", right, NOBODY[1])):
        text += f'[{side}]\ndevice = "{device}"\ndut_mac = "{mac}"\n'
    path = folder / "testbed.toml"
    path.write_text(f"{text}[tester]\ncpus = [{cpus()[-1]}]\n")
    return path


@contextmanager
def trial_under_way(folder: Path, kind: str, duration: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`evenhand trial`, whose frames are being sent, and its engine."""
    command = [sys.executable, "-m", "evenhand", "trial", str(write_testbed(folder, kind)), "--rate", "1kfps"]
    command += ["--duration", duration, "--waits", "short", "--json", "--progress", "json", "--no-run"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if json.loads(line).get("phase") == "sending":
                break
        else:
            pytest.fail(f"no trial: {process.communicate()}")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (pid,) = (
            int(child)
            for child in children
            if "evenhand-engine" in Path(f"/proc/{child}/cmdline").read_text()
        )
        yield process, pid
    finally:
        process.kill()
        process.communicate()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", PORTS)
def test_after_kill_9_of_the_command_there_is_no_engine(tmp_path: Path, kind: str) -> None:
    with trial_under_way(tmp_path, kind, f"{LONG_S:g}s") as (process, pid):
        process.kill()
        wait_until(lambda: not is_there(pid))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", PORTS)
def test_a_command_that_is_halted_goes_on_with_its_trial(tmp_path: Path, kind: str) -> None:
    """The engine has made it meanwhile: halting the one who asked changes nothing of what was measured."""
    with trial_under_way(tmp_path, kind, "2s") as (process, _):
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=LONG_S)
    document = json.loads(out)
    assert document["error"] is None
    (forward, reverse) = document["trial"]["directions"].values()
    assert forward["offered_frames"] == reverse["offered_frames"] == 2000


# A search.


def goal(max_fps: float = 20_000.0) -> ThroughputGoal:
    return ThroughputGoal(max_fps=max_fps, duration_s=1.0, final_duration_s=1.0)


CONDITIONS: dict[str, Any] = {
    "waits": Waits(**FAST_WAITS),
    "limits": replace(Limits(), **PATIENT, overdue_after_us=1e7),
}


class SignalInTrial:
    """Sends a signal while the frames of this trial of a search are being sent."""

    def __init__(self, number: int, send: Callable[[], None]) -> None:
        self._number, self._send = number, send
        self._trial = 0
        self._is_sent = False

    def __call__(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "TrialStarted":
            self._trial += 1
        is_sending = kind == "TrialPhase" and event.phase == "sending" and event.elapsed_s > 0.3
        if is_sending and self._trial == self._number and not self._is_sent:
            self._is_sent = True
            self._send()


def search(setup: Setup, plan: AddressPlan, run: Path, on_event: Callable[[Any], None]) -> EvenhandError:
    """What ended a search that is stored in this file."""
    with RunStore.create(run, command=["evenhand", "throughput"]) as store:
        bed = OpenTestbed(setup=setup, recorder=store, on_event=on_event)
        with pytest.raises(EvenhandError) as ended:
            bed.throughput(goal=goal(), plan=plan, **CONDITIONS)
    return ended.value


LIMITED = ReferenceDut(model=DeviceModel(elements=1, rate_fps=8_000.0, queue_frames=512))


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
@versions(proved="v6", plans=(make_plan("gateway-v4", 4), make_plan("gateway-v6", 4)))
def test_a_search_whose_engine_is_halted_ends_with_what_it_has(plan: AddressPlan, tmp_path: Path) -> None:
    run = tmp_path / "run.evenhand"
    with reference_router(plan, LIMITED) as router:

        def halt() -> None:
            children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
            for child in {int(pid) for file in children for pid in file.read_text().split()}:
                if Path(f"/proc/{child}/comm").read_text().startswith("evenhand-engine"):
                    os.kill(child, signal.SIGSTOP)

        began_s = time.monotonic()
        error = search(make_reference_setup(router), plan, run, SignalInTrial(3, halt))
        assert time.monotonic() - began_s < 4 * SOON_S
        assert error.code == "trial.engine-halted"
        assert len(read_run(run).searches[-1].trials) >= 2
        # The next command finds everything free.
        with RawEngine() as raw:
            begin_trial(raw, plan, router)


def setup_of_file(router: ReferenceRouter) -> Setup:
    """As the testbed file of `evenhand router` has it: of the router nothing else is known."""
    document = {
        "isolated_test_environment": True,
        "left": {"device": router.device("left")},
        "right": {"device": router.device("right")},
        "tester": {"cpus": [router.tester_cpus[0]]},
        "limits": LENIENT,
    }
    return Setup(name="router", testbed=make_testbed(document, where="router.toml"))


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize(
    ("make_setup", "code", "said"),
    [
        (make_reference_setup, "rig.router-halted", "a signal has stopped the reference router"),
        (setup_of_file, "procedure.dut-gone", "the DUT answers nothing any more"),
    ],
    ids=["of a campaign", "of a file"],
)
def test_a_search_whose_router_is_halted_in_mid_trial_has_no_number(
    tmp_path: Path, make_setup: Callable[[ReferenceRouter], Setup], code: str, said: str
) -> None:
    plan = make_plan("gateway-v4" if code == "rig.router-halted" else "gateway-v6", 4)
    run = tmp_path / "run.evenhand"
    with reference_router(plan, LIMITED) as router:
        pid = process_of(router)
        error = search(make_setup(router), plan, run, SignalInTrial(2, lambda: os.kill(pid, signal.SIGSTOP)))
        assert error.code == code
        assert said in error.what
        assert error.next_step
        (stored,) = read_run(run).searches
        assert stored.trials
        assert stored.outcome not in ("found", "at_or_above_maximum")


# Commands one after the other, against a router that is halted.


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
def test_every_command_against_a_halted_router_says_so_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first two wait in its queue. The third one waited in the kernel for a minute, and named nothing."""
    monkeypatch.setattr(other_end, "TAKEN_WITHIN_S", SHORT_S)
    plan = make_plan("gateway-v4", 4)
    with reference_router(plan, ReferenceDut()) as router:
        os.kill(process_of(router), signal.SIGSTOP)
        said = []
        try:
            for _ in range(3):
                request = open_request(
                    plan, router.device("left"), router.device("right"), link_timeout_s=SHORT_S
                )
                arguments = {key: value for key, value in request.items() if key not in ("id", "request")}
                began_s = time.monotonic()
                with engine() as session, pytest.raises(EvenhandError) as refused:
                    session.request("open", **arguments)
                assert time.monotonic() - began_s < 2 * SOON_S
                said.append(refused.value)
        finally:
            os.kill(process_of(router), signal.SIGCONT)
        listens = f"process {process_of(router)} (evenhand-router) listens on"
        assert [listens in error.what for error in said] == [True] * 3
        assert {error.next_step for error in said} == {
            "See whether a signal has stopped that process, or it hangs; start it again then."
        }
        assert "trial.other-end-hangs" in {error.code for error in said}
        with RawEngine() as raw:
            begin_trial(raw, plan, router)
