# SPDX-License-Identifier: Apache-2.0
"""An engine on another machine: `ssh host evenhand-engine`, here with OpenSSH's own server in a network
namespace of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.plan import SIDES, AddressPlan, gateway_v4
from evenhand.procedure import OpenTestbed, TrialPhase
from evenhand.rig import Setup
from evenhand.trial import TrialResult, Verdict, find_engine
from tests.dut.namespace_dut import NamespaceDut, namespace_dut, wait_until, why_not
from tests.errors import raises
from tests.wire.several_engines import setup_of
from tests.wire.test_several_engines import LIMITS, WAITS
from tests.wire.wire_session import NOBODY, Document, cpus, until, versions

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.two_cpus,
    pytest.mark.patient,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]
PROGRAMS = "programs"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    folder = tmp_path_factory.mktemp("host")
    (folder / PROGRAMS).mkdir()
    (folder / PROGRAMS / "evenhand-engine").symlink_to(find_engine())
    with namespace_dut(folder, programs=folder / PROGRAMS) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", made.environment["PATH"])
        yield made


def both(**of_b: object) -> Setup:
    """Engine a here, engine b there, on ports that nothing comes from."""
    ports: Document = {
        side: {"device": f"net_null{n},no-rx=1", "dut_mac": mac}
        for n, (side, mac) in enumerate(zip(SIDES, NOBODY, strict=True))
    }
    there: Document = {"name": "b", "ssh": "root@192.0.2.2", "cpus": [cpus()[1]], **ports, **of_b}
    return setup_of(
        [{"name": "a", "cpus": [cpus()[0]], **ports}, there], limits={"start_difference": "500ms"}
    )


def engines_there(host: NamespaceDut) -> list[int]:
    """Processes of engines in the host's namespace."""
    found = subprocess.run(["ip", "netns", "pids", host.name], capture_output=True, text=True, check=False)
    return [
        int(pid)
        for pid in found.stdout.split()
        if Path(f"/proc/{pid}/comm").exists()
        and Path(f"/proc/{pid}/comm").read_text().startswith("evenhand-engine")
    ]


@versions(proved="v4")
def test_an_engine_over_ssh_sends_its_share_and_ends_with_the_session(
    host: NamespaceDut, plan: AddressPlan
) -> None:
    # This process may wait for a CPU of the engines' so long that one of them gives it up.
    trial = until(
        lambda trial: "engine_lost" not in {reason.code for reason in trial.reasons},
        lambda: (
            OpenTestbed(setup=both())
            .trial(plan=plan, rate_fps=1000, duration_s=1, waits=WAITS, limits=LIMITS)
            .trial
        ),
    )
    engines = {each["engine"]: each for each in trial.raw["engines"]}
    assert [each["share"]["first"] for each in engines.values()] == [0, 1]
    for each in engines.values():
        assert each["directions"]["forward"]["intended_frames"] == 500
    clock = engines["b"]["compared_clock"]["before"]
    # It is the same clock here.
    assert abs(clock["offset_us"]) <= clock["uncertainty_us"] + 1
    assert clock["uncertainty_us"] > 0
    wait_until(lambda: not engines_there(host), "the engine does not end with its session")


@pytest.mark.parametrize("victim", ["engine", "connection"])
def test_an_engine_or_a_connection_that_is_cut_makes_the_trial_invalid(
    host: NamespaceDut, victim: str
) -> None:
    def cut_short() -> TrialResult | None:
        is_sending = threading.Event()

        def listen(event: object) -> None:
            if isinstance(event, TrialPhase) and event.phase == "sending":
                is_sending.set()

        def cut() -> None:
            assert is_sending.wait(120)
            (engine,) = engines_there(host)
            parent = int(Path(f"/proc/{engine}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(engine if victim == "engine" else parent, signal.SIGKILL)

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            return (
                OpenTestbed(setup=both(), on_event=listen)
                .trial(plan=gateway_v4(), rate_fps=1000, duration_s=60, waits=WAITS, limits=LIMITS)
                .trial
            )
        except HostError:
            return None  # neither engine has finished
        finally:
            cutter.join()
            wait_until(lambda: not engines_there(host), "an engine goes on without its client")

    # The other one gives up by itself where this process gets no CPU for two seconds.
    trial = until(
        lambda found: found is not None and not any(each.text.startswith("a: ") for each in found.reasons),
        cut_short,
    )
    assert trial is not None
    assert trial.verdict is Verdict.INVALID
    assert [reason.code for reason in trial.reasons] == ["engine_lost"]
    assert trial.reasons[0].text.startswith("b: ")


def test_a_host_that_is_not_reached_is_refused_by_name(host: NamespaceDut) -> None:
    with raises("procedure.engine-not-reached", match="engine b"):
        OpenTestbed(setup=both(ssh="nobody@192.0.2.2")).trial(plan=gateway_v4(), rate_fps=1000, duration_s=1)


def test_an_engine_of_another_version_there_is_refused_by_name(host: NamespaceDut) -> None:
    program = host.folder / PROGRAMS / "evenhand-engine"
    program.unlink()
    try:
        program.write_text(
            f'#!/bin/sh\n{find_engine()} | sed -u \'s/"version":"[0-9.]*"/"version":"0.0.9"/\'\n'
        )
        program.chmod(0o755)
        with raises("trial.engine-of-other-version", match=r"engine b.*0\.0\.9"):
            OpenTestbed(setup=both()).trial(plan=gateway_v4(), rate_fps=1000, duration_s=1)
    finally:
        program.unlink()
        program.symlink_to(find_engine())
