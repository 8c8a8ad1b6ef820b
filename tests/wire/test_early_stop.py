# SPDX-License-Identifier: Apache-2.0
"""Trials that may stop early, against a DUT that loses frames, and one that only holds those of one of its
queues back. IPv4 and IPv6."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.run import read_run
from evenhand.trial import Verdict
from tests.wire.lying_dut import Behaviour, Sent, is_test_frame, lying_dut, routed, sequence_of
from tests.wire.wire_session import cpus, engine, open_ports, until, valid_trial

pytestmark = [pytest.mark.wire, pytest.mark.root]
HOSTS = 50
BOTH = pytest.mark.parametrize("plan", [gateway_v4(HOSTS), gateway_v6(HOSTS)], ids=lambda p: p.name)
MACS = (b"\x02\x00\x00\x00\xa0\x01", b"\x02\x00\x00\x00\xa0\x02")
"""MACs of the tester's ports, which the taps have."""
RATE_FPS = 400
"""What a Python loop forwards on any machine."""
RESIDUAL_S = 1.0
LIMITS = {"longest_overdue_us": 1e5, "overdue_tolerance": 1, "offered_tolerance": 0.1}
STANDS_FROM_S, STANDS_UNTIL_S = 0.5, 3.0
"""When the DUT stands in each trial: for longer than the residual wait, and over well before its end."""
TRIAL_S = 5.0
TESTBED = """isolated_test_environment = true
[left]
device = "{left}"
dut_mac = "02:00:00:00:00:01"
[right]
device = "{right}"
dut_mac = "02:00:00:00:00:02"
[tester]
cpus = {cpus}
[limits]
offered_tolerance = "1%"
overdue_after = "20ms"
overdue_tolerance = "50%"
invalid_retries = 30
patience = 60
"""


def router_of(plan: AddressPlan, change: Callable[[int, bytes], Sent]) -> Behaviour:
    """`change` gets each test frame as a router would forward it, with the side where it should leave."""
    return lambda side, frame: (
        change(1 - side, routed(plan, frame, MACS[1 - side])) if is_test_frame(plan, frame) else []
    )


class StandingQueue:
    """A DUT that loses nothing. One of its four queues, by the source address, stands still once in each
    trial."""

    def __init__(self, plan: AddressPlan) -> None:
        self.plan = plan
        self.begun_s = 0.0
        self.held: list[tuple[int, bytes]] = []

    def __call__(self, side: int, frame: bytes) -> Sent:
        now_s = time.monotonic()
        if sequence_of(self.plan, frame) == 0 and now_s - self.begun_s > STANDS_UNTIL_S:
            self.begun_s = now_s
        sent: list[tuple[int, bytes]] = []
        if STANDS_FROM_S <= now_s - self.begun_s < STANDS_UNTIL_S:
            if sum(frame[self._source]) % 4 == 0:
                self.held.append((side, frame))
                return []
        else:
            sent, self.held = self.held, []
        return [*sent, (side, frame)]

    @property
    def _source(self) -> slice:
        at, octets = (14 + 12, 4) if self.plan.ip_version == 4 else (14 + 8, 16)
        return slice(at, at + octets)


@BOTH
def test_a_dut_that_loses_is_not_sent_the_rest(plan: AddressPlan) -> None:
    """R2544-21: later frames of the same queue have come, so what they overtook is lost."""
    dut_loses = router_of(plan, lambda side, frame: [(side, frame)] if sequence_of(plan, frame) % 3 else [])
    with lying_dut(dut_loses) as dut, engine(dut.engine_command) as session:
        open_ports(session, plan, dut.left_device, dut.right_device)

        def each_third_is_lost(document: dict[str, Any]) -> bool:
            """This DUT is a process of its own, which may be away for longer than the residual wait."""
            directions = document["directions"].values()
            return all(each["lost_frames"] == (each["offered_frames"] + 2) // 3 for each in directions)

        document = until(
            each_third_is_lost,
            lambda: valid_trial(
                session,
                rate_fps=RATE_FPS,
                duration_s=30,
                stop_when_failed=True,
                limits=LIMITS,
                waits={"after_routing_s": 0, "after_learning_s": 0, "residual_s": 0.3, "restabilize_s": 0},
            ),
        )
    assert document["verdict"] == "FAIL", document["reasons"]
    assert document["stopped_early_s"] < 30
    assert {reason["code"] for reason in document["reasons"]} == {"loss", "stopped_early"}
    for direction in document["directions"].values():
        assert sum(direction["lost_by_tenth"]) == direction["lost_frames"]


def throughput(folder: Path, plan: AddressPlan, behaviour: Behaviour, *options: str) -> dict[str, Any]:
    """`evenhand throughput` through this DUT: its document."""
    with lying_dut(behaviour) as dut:
        testbed = folder / "testbed.toml"
        testbed.write_text(
            TESTBED.format(left=dut.left_device, right=dut.right_device, cpus=list(cpus()[-1:]))
        )
        arguments = [
            "throughput",
            testbed,
            "--plan",
            plan.name,
            "--hosts",
            HOSTS,
            "--maximum-rate",
            RATE_FPS,
            "--minimum-rate",
            RATE_FPS // 4,
        ]
        arguments += [
            "--duration",
            f"{TRIAL_S}s",
            "--final-duration",
            f"{TRIAL_S}s",
            "--precision",
            "25%",
            "--waits",
            "short",
        ]
        arguments += [
            "--wait-residual",
            f"{RESIDUAL_S}s",
            "--json",
            "--run",
            folder / "run.evenhand",
            *options,
        ]
        *inside, _engine = dut.engine_command
        ended = subprocess.run(
            [*inside, sys.executable, "-m", "evenhand", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


@pytest.mark.slow
@BOTH
def test_a_queue_that_stands_still_and_loses_nothing_takes_nothing_of_the_throughput(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """R2544-19: its trials are stopped early, for other queues overtake it. What bounds the result is then
    made to its end, and passes."""
    found = throughput(tmp_path, plan, router_of(plan, StandingQueue(plan)))
    assert found["throughput_fps_per_direction"] == RATE_FPS, found
    trials = [t.result for t in read_run(tmp_path / "run.evenhand").searches[0].trials]
    assert trials[0].stopped_early_s is not None
    assert all(t.stopped_early_s is not None for t in trials if t.verdict is Verdict.FAIL)
