# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo --dut linux` for real: engine, lab, search, document; and what is left when it is
interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand.run import read_run

pytestmark = [pytest.mark.root, pytest.mark.wire, pytest.mark.two_cpus]
EVENHAND = [sys.executable, "-m", "evenhand"]
GUARD_S = 600


@pytest.mark.slow
def test_quick_demo_measures_and_stores_every_trial(tmp_path: Path) -> None:
    """SEED-01, SEED-02, SEED-05: one address pair first, then all addresses, both IP versions; each trial is
    stored with its verdict."""
    run = tmp_path / "demo.evenhand"
    done = subprocess.run(
        [*EVENHAND, "demo", "--dut", "linux", "--quick", "--json", "--run", str(run)],
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    if done.returncode == 3 and json.loads(done.stdout)["error"]["id"] == "cli.no-load-kept":
        pytest.skip("this machine is too busy to offer any load: " + done.stderr.splitlines()[-3])
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    searches = document["searches"]
    is_without = any(search["throughput_fps_per_direction"] is None for search in searches)
    assert is_without == (done.returncode == 1)
    assert [(s["plan"], s["hosts"]["left"]) for s in searches] == [
        ("gateway-v4", 1),
        ("gateway-v4", 65534),
        ("gateway-v6", 1),
        ("gateway-v6", 65536),
    ]
    stored = read_run(run)
    for search in searches:
        assert search["outcome"] in {"found", "tester_ceiling", "at_or_above_maximum", "below_minimum"}
        assert search["trials"]
        assert {trial["result"]["verdict"] for trial in search["trials"]} <= {"PASS", "FAIL", "INVALID"}
        assert search["dut_neighbors"] == 2
    assert sum(len(search.trials) for search in stored.searches) >= sum(len(s["trials"]) for s in searches)
    assert _namespaces() == []


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGTERM, id="term", marks=pytest.mark.thorough),
    ],
)
def test_an_interrupted_demo_leaves_nothing(number: signal.Signals) -> None:
    """No namespace, no engine, no XDP program stays behind."""
    process = subprocess.Popen(
        [*EVENHAND, "demo", "--dut", "linux", "--quick"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    give_up = time.monotonic() + 60
    while not (_namespaces() and _engines_of(process.pid)):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < give_up
        time.sleep(0.1)
    time.sleep(1)
    engines = _engines_of(process.pid)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert _namespaces() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in engines)


def _namespaces() -> list[str]:
    folder = Path("/run/netns")
    return sorted(p.name for p in folder.glob("evenhand-demo-*")) if folder.exists() else []


def _engines_of(parent: int) -> list[int]:
    children = subprocess.run(
        ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
    ).stdout.split()
    return [int(pid) for pid in children]
