# SPDX-License-Identifier: Apache-2.0
"""A campaign on the reference router: cut short by kill -9, gone on with, and as the configuration says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.run import CampaignRecord, PointState, read_record
from evenhand.run.campaign_status import read_status
from tests.preloaded.commands import evenhand_command
from tests.wire.quick_campaign import quick_campaign
from tests.wire.wire_session import versions_of

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.usefixtures("_router")]
ELEMENTS, RATE_FPS = 8, 20_000
GUARD_S = 800
"""Only against a command that never ends: on a host that stalls, trials are repeated."""
SUITES = """
hosts = [1, "max"]
hash-types = "type1"
maximum-rate = "100kfps"
"""
CAMPAIGN = quick_campaign(
    "wire", elements=ELEMENTS, rate=f"{RATE_FPS / 1000:g}kfps", every_suite=SUITES, ipv6="repetitions = 1"
)


def start(folder: Path, evenhand: Sequence[str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*evenhand, "run", "wire.toml", "--run", "wire.evenhand", *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
    )


def killed_and_resumed(folder: Path, campaign: str, *, after_trials: int) -> CampaignRecord:
    """Killed when so many trials are stored. What was stored is still there, and no repetition was begun
    anew."""
    (folder / "wire.toml").write_text(campaign)
    killed = start(folder, (sys.executable, "-m", "evenhand"))
    while True:
        assert killed.poll() is None, killed.communicate()[1]
        if (folder / "wire.evenhand").exists():
            try:
                status = read_status(folder / "wire.evenhand")
            except EvenhandError:  # it is being made
                continue
            if status.points and sum(status.verdicts.values()) >= after_trials:
                break
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    made = trials_of(read_record(folder / "wire.evenhand"))
    resumed = start(folder, evenhand_command(), "--resume")
    _, told = resumed.communicate(timeout=GUARD_S)
    assert resumed.returncode == 0, told
    record = read_record(folder / "wire.evenhand")
    assert trials_of(record)[: len(made)] == made
    assert [r.outcome for p in record.points for r in p.repetitions].count("cut_short") == 0
    return record


def trials_of(record: CampaignRecord) -> list[Mapping[str, Any]]:
    return [
        trial.result.raw
        for p in record.points
        for r in p.repetitions
        for s in r.searches
        for trial in s.trials
    ]


@pytest.mark.thorough
def test_a_campaign_on_the_reference_router_goes_on_after_kill_and_finds_what_is_configured(
    tmp_path: Path,
) -> None:
    """SEED-02, SEED-69, D11: one pair keeps one element of type 1 busy, many keep all; IPv4 and IPv6. Nothing
    is measured twice."""
    record = killed_and_resumed(tmp_path, CAMPAIGN, after_trials=3)
    assert [point.state for point in record.points] == [PointState.MEASURED] * 4
    assert [len(point.values) for point in record.points] == [2, 2, 1, 1]
    for one, many in (record.points[:2], record.points[2:]):
        assert one.point.is_one_pair
        assert median(one.values) == pytest.approx(RATE_FPS, rel=0.35)
        assert median(many.values) > 2.5 * median(one.values)
        first = many.repetitions[0].result
        assert first is not None
        assert first["one_pair"]["throughput_fps_per_direction"] == one.values[0]
        assert many.repetitions[0].searches[0].setup["dut"]["config"]["elements"]["hash"] == "type1"
    assert set(record.testbeds) == {"reference router"}


DELAYS = """
name = "wire"
testbed = "reference"
[reference]
delay = "100us"
[[suite]]
name = "delays"
procedure = "latency"
plan = "PLAN"
hosts = "max"
one-pair-first = false
rate = "5kfps"
duration = "300ms"
from = "100ms"
tagged = 20
inner-repetitions = 3
invalid-retries = 20
patience = 20
waits = "short"
wait-after-routing = "0s"
wait-residual = "100ms"
wait-restabilize = "20ms"
"""


@pytest.mark.thorough
@pytest.mark.parametrize("plan", versions_of("gateway-v4", "gateway-v6", proved="v4"))
def test_a_latency_test_goes_on_behind_the_testers_own_loop(tmp_path: Path, plan: str) -> None:
    """D11, R8219-07: the loop that was measured before the kill is not measured twice."""
    record = killed_and_resumed(tmp_path, DELAYS.replace("PLAN", plan), after_trials=2)
    (point,) = record.points
    (repetition,) = point.repetitions
    assert [search.kind for search in repetition.searches] == ["own-loop", "latency"]
    assert repetition.value is not None
    assert repetition.value >= 100
