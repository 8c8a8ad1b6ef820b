# SPDX-License-Identifier: Apache-2.0
"""Searches with the real engine, on the reference router, whose limit is set and so known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import ReferenceDut, reference_router
from evenhand.run import read_run

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
LIMIT_FPS = 20_000.0
QUEUE_FRAMES = 512
"""25 ms at that rate: what a busy host makes late, and does not count as overdue, must fit in."""
WIDTH = 0.03
FINAL_S = 1.0
LATE_S = 0.02
"""So late may the last frame of a trial be. The element goes on meanwhile, and one that was at work counts as
well."""
PDR = 0.2
ATTEMPTS = 3
"""A host that takes CPUs away can spoil a search; an untrue tester would spoil all."""
TESTBED = """isolated_test_environment = true
[left]
device = "{left}"
[right]
device = "{right}"
[tester]
cpus = {cpus}
[dut]
cpus = [{cpu}]
threads = [{thread}]
ring_frames = 2048
[limits]
offered_tolerance = "0.1%"
overdue_after = "5ms"
overdue_tolerance = "2%"
invalid_retries = 30
patience = 60
"""


def search(folder: Path, name: str, *options: str) -> tuple[dict[str, Any], Path]:
    """`evenhand throughput` forward through one element of LIMIT_FPS; its document and its run file."""
    plan = make_plan(name, 1)
    with reference_router(
        plan, ReferenceDut(model=DeviceModel(elements=1, rate_fps=LIMIT_FPS, queue_frames=QUEUE_FRAMES))
    ) as router:
        testbed, run = folder / "testbed.toml", folder / "run.evenhand"
        run.unlink(missing_ok=True)
        testbed.write_text(
            TESTBED.format(
                left=router.device("left"),
                right=router.device("right"),
                cpus=list(router.tester_cpus),
                cpu=router.cpu,
                thread=router.thread,
            )
        )
        command = [
            sys.executable,
            "-m",
            "evenhand",
            "throughput",
            testbed,
            "--plan",
            name,
            "--hosts",
            "1",
            "--direction",
            "forward",
        ]
        command += [
            "--maximum-rate",
            "60kfps",
            "--duration",
            "300ms",
            "--final-duration",
            f"{FINAL_S}s",
            "--precision",
            str(WIDTH),
        ]
        command += [
            "--waits",
            "short",
            "--wait-after-routing",
            "0s",
            "--wait-after-learning",
            "50ms",
            "--wait-restabilize",
            "50ms",
        ]
        command += ["--json", "--run", run, *options]
        ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), run


@pytest.mark.thorough
@pytest.mark.usefixtures("_router")
@pytest.mark.parametrize("name", [pytest.param("gateway-v4", marks=pytest.mark.slow), "gateway-v6"])
def test_mlr_finds_ndr_and_pdr_of_the_set_limit(name: str, tmp_path: Path) -> None:
    """MLR-01, MLR-08, MLR-10, MLR-11: one search, two goals. The queue lets a trial pass that is so much
    faster."""
    slack_fps = (QUEUE_FRAMES + LATE_S * LIMIT_FPS) / FINAL_S
    for _ in range(ATTEMPTS):
        document, run = search(tmp_path, name, "--search", "mlr", "--goal", "NDR", "--goal", f"PDR={PDR:.0%}")
        ndr, pdr = document["goals"]
        if (
            ndr["is_regular"]
            and pdr["is_regular"]
            and ndr["lower_fps_per_direction"] > LIMIT_FPS * (1 - 2 * WIDTH)
        ):
            break
    assert ndr["is_regular"], document["deviations"]
    assert pdr["is_regular"]
    assert LIMIT_FPS * (1 - 2 * WIDTH) < ndr["lower_fps_per_direction"] <= LIMIT_FPS + slack_fps
    true_pdr_fps = LIMIT_FPS / (1 - PDR)
    assert true_pdr_fps * (1 - 2 * WIDTH) < pdr["lower_fps_per_direction"] <= true_pdr_fps + 2 * slack_fps
    assert ndr["upper_fps_per_direction"] > LIMIT_FPS * (1 - WIDTH)
    # What is typical at the bound that loses is what the router really forwards.
    assert pdr["conditional_throughput_fps_per_direction"] <= LIMIT_FPS + slack_fps
    (stored,) = read_run(run).searches
    assert stored.result is not None
    assert stored.result["goals"] == document["goals"]
    assert len(stored.trials) == len(document["trials"])
    assert all(trial.result.intended_fps <= 60_000 for trial in stored.trials)
