# SPDX-License-Identifier: Apache-2.0
"""Frames of 9018 octets through the kernel of a virtual machine, and a search on it. A machine of its own:
its links have another MTU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.dut.ssh import open_ssh
from evenhand.lab import VmLab, lab_down, vm_up
from evenhand.plan import make_plan
from tests.vm.conftest import ask, suite

pytestmark = pytest.mark.vm
LARGEST = 9018
LOW_FPS = 100
"""What an emulated router forwards even where its host is busy."""
HIGH_RATE = "60kfps"
"""Four times what it forwards where its host is idle."""
BACKLOG_S = 5.0
"""Until it has forwarded what waits in its queues."""


@pytest.fixture(scope="module", params=["gateway_v4", "gateway_v6"])
def jumbo_lab(request: pytest.FixtureRequest) -> Iterator[VmLab]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for taps in a namespace")
    name = f"j{os.getpid() % 10_000_000}"
    try:
        yield vm_up(make_plan(request.param), name=name, largest_frame_size=LARGEST, suite=suite(), say=print)
    finally:
        lab_down(name, force=True)


def evenhand(verb: str, lab: VmLab, *options: str) -> dict[str, Any]:
    command = [
        str(Path(sys.executable).parent / "evenhand"),
        verb,
        f"lab:{lab.name}",
        "--waits",
        "short",
        "--json",
        "--no-run",
        *options,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_jumbo_frames_go_through_the_machine(jumbo_lab: VmLab) -> None:
    """R5180-09: both ways, whole, and no smaller."""
    document = evenhand(
        "trial", jumbo_lab, "--frame-size", str(LARGEST), "--rate", "20fps", "--duration", "2s"
    )
    assert document["frame_size"] == LARGEST
    for direction in document["trial"]["directions"].values():
        assert direction["received_frames"] > 0
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0


def test_a_search_finds_no_loss_where_the_router_has_none(jumbo_lab: VmLab) -> None:
    """R2544-18: at a load that any such machine forwards no valid trial is FAIL, and the maximum is what is
    found."""
    document = evenhand(
        "throughput",
        jumbo_lab,
        "--frame-size",
        str(LARGEST),
        "--maximum-rate",
        f"{LOW_FPS}fps",
        "--duration",
        "2s",
        "--final-duration",
        "4s",
        "--patience",
        "50",
        "--invalid-retries",
        "50",
    )
    assert {trial["result"]["verdict"] for trial in document["trials"]} <= {"PASS", "INVALID"}
    assert document["outcome"] == "at_or_above_maximum"
    assert document["throughput_fps_per_direction"] == LOW_FPS


def test_it_loses_what_is_too_much_and_forwards_all_of_a_low_load_afterwards(jumbo_lab: VmLab) -> None:
    """R2544-18: a single pair whose addresses are hashed fills one queue of a NIC, whatever queue of the tap
    its frames are in. The tester's port takes all, and no NIC is stuck."""
    with open_ssh(jumbo_lab.ssh_host, config=jumbo_lab.ssh_config) as shell:
        for side in ("left", "right"):
            for flow in ("udp4", "udp6"):
                ask(shell, f"ethtool -N {side} rx-flow-hash {flow} sd")
    once = ("--hosts", "1", "--duration", "2s")
    for _ in range(2):
        trial = evenhand("trial", jumbo_lab, *once, "--rate", HIGH_RATE)["trial"]
        for direction in trial["directions"].values():
            assert direction["lost_frames"] > direction["offered_frames"] / 4
        assert "port_refused" not in {reason["code"] for reason in trial["reasons"]}
        time.sleep(BACKLOG_S)
    trial = evenhand("trial", jumbo_lab, *once, "--rate", f"{LOW_FPS}fps")["trial"]
    for direction in trial["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] > 0
