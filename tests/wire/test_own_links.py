# SPDX-License-Identifier: Apache-2.0
"""Links of the tester's own ports, taken down and up: what the DUT sees of it, what becomes of trials, and
that none stays down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from evenhand.lab import LinuxLab, linux_lab
from evenhand.otg.server import Places, otg_server
from evenhand.plan import AddressPlan, SideName, gateway_v4, gateway_v6, make_plan
from evenhand.run import read_record
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.otg.clients import api_of, flows_of, ports_of, refused, send, set_link, set_state
from tests.otg.configs import config
from tests.wire.wire_session import (
    PATIENT,
    Document,
    assert_all_came,
    dut_of,
    engine,
    memif_cable,
    open_ports,
    open_to_dut,
    run_trial,
    thorough,
    until,
    versions,
)

pytestmark = [pytest.mark.wire]
Driver = Literal["af_xdp", "af_packet"]
RATE_FPS = 1000
PATIENCE_S = 30.0


def has_carrier(namespace: str, interface: str) -> bool:
    """As `ip link` says inside the namespace."""
    said = subprocess.run(
        ["ip", "-n", namespace, "-j", "link", "show", "dev", interface],
        capture_output=True,
        check=True,
        timeout=20,
    )
    (found,) = json.loads(said.stdout)
    return "LOWER_UP" in found["flags"] and "NO-CARRIER" not in found["flags"]


def comes(is_so: Callable[[], bool]) -> bool:
    """Whether it becomes so, sooner or later."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > give_up_s:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def opened_lab(plan: AddressPlan, driver: Driver) -> Iterator[tuple[LinuxLab, EngineSession]]:
    with linux_lab(plan, name="linktest") as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(
            session, plan, lab.device("left", driver), lab.device("right", driver), seed=7, dut=dut_of(lab)
        )
        yield lab, session


class Running:
    """A trial that runs in a thread of its own."""

    def __init__(self, session: EngineSession, **arguments: Any) -> None:
        self._sent = 0
        pool = ThreadPoolExecutor(1)
        self.document: Future[Document] = pool.submit(run_trial, session, on_event=self._take, **arguments)
        pool.shutdown(wait=False)

    def _take(self, event: dict[str, Any]) -> None:
        directions = event.get("directions", {}).values()
        self._sent = max((each["sent_frames"] for each in directions), default=0)

    def wait_for(self, frames: int) -> None:
        assert comes(lambda: self._sent >= frames or self.document.done())


@pytest.mark.parametrize("driver", ["af_xdp", *thorough("af_packet")])
@versions(proved="v6", plans=(gateway_v4(), gateway_v6()))
@pytest.mark.root
def test_a_link_that_is_taken_down_is_down_at_the_dut_until_it_is_up_again(
    plan: AddressPlan, driver: Driver
) -> None:
    """Between trials, during one, and when the ports are closed. What a DUT could not forward meanwhile is
    lost, and no lapse of the tester."""
    numbers = iter(count(1))

    def trial(**arguments: Any) -> Document:
        return run_trial(session, trial=next(numbers), rate_fps=RATE_FPS, **arguments)

    def passes() -> Document:
        return until(lambda found: found["verdict"] == "PASS", lambda: trial(duration_s=0.5))

    def taken_down() -> Document:
        """A trial to the right, during which this link is down for a part of the time."""
        running = Running(
            session, trial=next(numbers), rate_fps=RATE_FPS, duration_s=4, directions=["forward"]
        )
        running.wait_for(RATE_FPS // 2)
        with raises("engine.bad-order", match="sends on the left side"):
            session.set_link("left", "down")
        assert session.set_link("right", "down") == {"left": True, "right": False}
        assert not at_dut("right")
        assert session.links_up() == {"left": True, "right": False}
        running.wait_for(RATE_FPS * 3 // 2)
        session.set_link("right", "up")
        return running.document.result()

    with opened_lab(plan, driver) as (lab, session):

        def at_dut(side: SideName) -> bool:
            return has_carrier(lab.dut_namespace, lab.dut_interface(side))

        for side in ("left", "right"):
            passes()
            session.set_link(side, "down")
            assert session.set_link(side, "down")[side] is False
            assert not at_dut(side)
            with raises("engine.bad-order", match="taken down"):
                trial()
            session.set_link(side, "up")
            assert at_dut(side)
            assert comes(lambda: all(session.links_up().values()))
        # A kernel with IPv6 reports its multicast groups on a link that has come up (MLD).
        of_kernel = ("foreign",) if plan.ip_version == 6 else ()
        assert_all_came(passes()["directions"]["forward"], but=of_kernel)
        found = until(
            lambda each: (
                each["directions"]["forward"]["offered_frames"] == 4 * RATE_FPS and each["verdict"] == "FAIL"
            ),
            taken_down,
        )
        # A DUT whose neighbour does not answer meanwhile may say so.
        assert [each["code"] for each in found["reasons"] if each["code"] != "icmp_error"] == ["loss"]
        assert 0 < found["directions"]["forward"]["lost_frames"] < 4 * RATE_FPS
        assert "link_switched" in [note["code"] for note in found["notes"]]
        ports = found["ports"]
        assert [each["up"] for each in ports["right"]["link_switches"]] == [False, True]
        for side in ("left", "right"):
            assert ports[side]["before"]["link_changes"] == ports[side]["after"]["link_changes"]
        passes()
        session.set_link("left", "down")
        session.request("close")
        assert at_dut("left")


@pytest.mark.parametrize("driver", ["af_xdp", *thorough("af_packet")])
@versions(proved="v4", plans=(gateway_v4(), gateway_v6()))
@pytest.mark.root
def test_links_of_an_engine_that_is_killed_come_up_again(plan: AddressPlan, driver: Driver) -> None:
    with opened_lab(plan, driver) as (lab, session):
        interface = lab.dut_interface("right")
        session.set_link("right", "down")
        assert not has_carrier(lab.dut_namespace, interface)
        assert is_kept(lab.tester_interface("right"))
        os.killpg(session.pid, signal.SIGKILL)
        assert comes(lambda: has_carrier(lab.dut_namespace, interface))
        assert comes(lambda: not is_kept(lab.tester_interface("right")))


def is_kept(interface: str) -> bool:
    """Whether a process waits for an engine's end to switch this interface on."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if file.read_bytes().endswith(f"\0--switch-on-at-end\0{interface}\0".encode()):
                return True
    return False


def test_a_port_without_a_link_of_its_own_says_so_and_nothing_changes(tmp_path: Path) -> None:
    plan = gateway_v4()
    with engine() as session:
        with raises("engine.bad-order"):
            session.links_up()
        open_ports(session, plan, *memif_cable(tmp_path))
        for side in ("left", "right"):
            with raises("engine.bad-request", match="net_memif"):
                session.set_link(side, "down")
        assert session.set_link("left", "up") == {"left": True, "right": True}
        until(
            lambda found: found["verdict"] == "PASS",
            lambda: run_trial(session, rate_fps=RATE_FPS, limits={**PATIENT, "loss_ratio": 0.5}),
        )


def wait_for(api: Any, frames: int) -> None:
    """Until the flow has sent so many."""
    assert comes(lambda: flows_of(api)[0].frames_tx >= frames)


@pytest.mark.root
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize("version", [4, *thorough(6)])
def test_a_script_takes_links_down_and_up(tmp_path: Path, version: int) -> None:
    """With snappi: the DUT loses its carrier, port metrics say so, nothing starts, and flows that are sent to
    the port lose frames; up again, all arrive."""
    places = Places(https_port=None, http_port=0, grpc_port=0)
    with (
        linux_lab(make_plan(f"gateway-v{version}"), name="linktest") as lab,
        otg_server("lab:linktest", places, run=tmp_path / "a.evenhand", command=[]) as server,
    ):
        api = api_of(server, "http" if version == 4 else "grpc")

        def at_dut() -> bool:
            return has_carrier(lab.dut_namespace, lab.dut_interface("right"))

        def states() -> list[str]:
            return [port.link for port in ports_of(api)]

        api.set_config(config(version, packets=500, pps=RATE_FPS))
        assert states() == ["up", "up"]
        set_link(api, "down", "p2")
        assert states() == ["up", "down"]
        assert not at_dut()
        assert "the link of p2 is down" in refused(lambda: set_state(api, "start")).errors[0]
        assert "there is no 'p9'" in refused(lambda: set_link(api, "down", "p9")).errors[0]
        set_link(api, "up")
        assert at_dut()
        assert states() == ["up", "up"]
        found = until(
            lambda metrics: all(metric.frames_rx == metric.frames_tx for metric in metrics),
            lambda: send(api, 500, 500),
        )
        assert [metric.frames_rx for metric in found] == [500, 500]
        to_p2 = config(version, packets=None, pps=RATE_FPS, names=("there",))

        def lost_meanwhile() -> bool:
            """Whether the flow was sent to its end; a host that is too busy may end the tester."""
            api.set_config(to_p2)
            try:
                set_state(api, "start")
                wait_for(api, 200)
                assert "sends on the left side" in refused(lambda: set_link(api, "down", "p1")).errors[0]
                set_link(api, "down", "p2")
                assert states() == ["up", "down"]
                wait_for(api, flows_of(api)[0].frames_tx + 500)
                set_link(api, "up", "p2")
                set_state(api, "stop")
            except Exception:  # an assertion, or snappi's
                if server.transmission.failure is None:
                    raise
            return server.transmission.failure is None

        until(bool, lost_meanwhile)
        (metric,) = flows_of(api)
        assert 0 < metric.frames_tx - metric.frames_rx < metric.frames_tx
        (trial,) = read_record(tmp_path / "a.evenhand").other_searches[-1].trials
        assert "link" not in {reason.code for reason in trial.result.reasons}
        assert "link_switched" in {note.code for note in trial.result.notes}
        set_link(api, "down", "p2")
        api.set_config(config(version, packets=100))
        assert at_dut()
        assert states() == ["up", "up"]
        set_link(api, "down", "p1", "p2")
        server.transmission.close()
        assert at_dut()
        assert not is_kept(lab.tester_interface("right"))
