# SPDX-License-Identifier: Apache-2.0
"""A campaign on this machine's kernel as router: measured, shown, exported, reported and compared, by the
commands of a user."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.lab import LinuxLab, lab_down, lab_up
from evenhand.plan import make_plan
from evenhand.run import PointState, read_record
from tests.preloaded.commands import evenhand_command

pytestmark = [pytest.mark.root, pytest.mark.wire, pytest.mark.slow]
GUARD_S = 600
CAMPAIGN = """
name = "kernel"
testbed = "lab:{lab}"
[every-suite]
plan = "{plan}"
hosts = [1, "max"]
repetitions = 2
duration = "1s"
waits = "short"
patience = 20
invalid-retries = 10
overdue-tolerance = "5%"
longest-overdue = "200ms"
[[suite]]
name = "throughput"
maximum-rate = "10kfps"
start = "auto"
precision = "20%"
final-duration = "1s"
loss-verification = 1
[[suite]]
name = "loss"
procedure = "loss"
maximum-rate = "2kfps"
step = "10%"
[[suite]]
name = "latency"
procedure = "latency"
rate = "1kfps"
from = "100ms"
inner-repetitions = 2
"""


@pytest.fixture(params=["gateway-v4", "gateway-v6"])
def lab(request: pytest.FixtureRequest) -> Iterator[LinuxLab]:
    name = f"k{os.getpid() % 10_000_000}"
    yield lab_up(make_plan(request.param), name=name)
    lab_down(name)


def evenhand(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*evenhand_command(), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=GUARD_S, check=False)


def shown(folder: Path, *arguments: str) -> Any:
    done = evenhand(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_campaign_on_the_kernels_router_goes_the_whole_way(lab: LinuxLab, tmp_path: Path) -> None:
    """SEED-02, SEED-60: throughput, loss and latency with one address pair and with all addresses.

    Its exports and its page hold every point.
    """
    (tmp_path / "kernel.toml").write_text(CAMPAIGN.format(lab=lab.name, plan=lab.plan))
    done = evenhand(tmp_path, "run", "kernel.toml", "--run", "kernel.evenhand")
    assert done.returncode in (0, 1), done.stderr  # 1: a point has no number
    record = read_record(tmp_path / "kernel.evenhand")
    for point in record.points:
        # A host that is away all the time leaves no number, and says so.
        assert point.state is PointState.MEASURED or "the tester's ceiling" in (point.reason or ""), (
            done.stderr
        )
    assert len(record.points) == 6
    assert len(record.testbeds) == 1, "what the kernel counts meanwhile makes no other testbed"
    assert all(
        "neighbor_table" in s.setup["dut"]
        for point in record.points
        for r in point.repetitions
        for s in r.searches
    )
    compared = shown(tmp_path, "compare", "kernel.evenhand", "kernel.evenhand", "--json")
    ratios = [other["ratio"] for row in compared["points"] for other in row["others"]]
    assert len(ratios) == len(record.points)
    assert {ratio["ratio"] for ratio in ratios if ratio is not None} <= {1.0}
    exported = shown(tmp_path, "export", "kernel.evenhand", "--format", "json")
    assert len(exported["points"]) == len(record.points)
    reported = evenhand(tmp_path, "report", "kernel.evenhand")
    assert reported.returncode == 0, reported.stderr
    (page,) = tmp_path.glob("*.html")
    assert all(f'id="point-{number}"' in page.read_text() for number in range(1, len(record.points) + 1))
