# SPDX-License-Identifier: Apache-2.0
"""Direct plans from the command line on the Linux lab, with the real engine: learnt, measured, stored; or
refused with the hosts' names."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.lab import LinuxLab, lab_down, lab_up
from evenhand.plan import make_plan
from evenhand.run import read_run
from tests.preloaded.commands import evenhand_command

pytestmark = [pytest.mark.root, pytest.mark.wire]
GUARD_S = 120
TRIAL = ("--rate", "2kfps", "--duration", "1s", "--waits", "short", "--hosts", "50")


@pytest.fixture(params=["direct_v4_net16", "direct_v6"])
def lab(request: pytest.FixtureRequest) -> Iterator[LinuxLab]:
    name = f"c{os.getpid() % 10_000_000}"
    yield lab_up(make_plan(request.param, 50), name=name)
    lab_down(name)


def evenhand(verb: str, lab: LinuxLab, *options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*evenhand_command(), verb, f"lab:{lab.name}", "--plan", lab.plan, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S, check=False)


@pytest.mark.thorough
def test_a_trial_learns_first_and_keeps_what_it_learnt(lab: LinuxLab, tmp_path: Path) -> None:
    """R2544-35, R4814-05, SEED-07: hosts with MACs of their own; the DUT's table after learning is in the run
    file."""
    run = tmp_path / "a.evenhand"
    done = evenhand("trial", lab, *TRIAL, "--host-macs", "pseudorandom", "--json", "--run", run)
    assert done.returncode == 0, done.stderr
    assert "learning: 50 of 50 reachable on each side" in done.stderr
    document = json.loads(done.stdout)
    assert document["host_macs"] == "pseudorandom"
    assert document["learning"]["is_complete"]
    assert all(d["received_frames"] > 0 for d in document["trial"]["directions"].values())
    (search,) = read_run(run).searches
    table = search.setup["dut"]["neighbor_table"]
    assert all(sum(table["entries"][side].values()) >= 50 for side in ("left", "right"))
    macs = {n.mac for n in lab.neighbors() if n.mac is not None and not n.address.startswith("fe80:")}
    assert len(macs) == 100


def test_the_labs_hosts_are_the_default_and_more_are_refused(lab: LinuxLab) -> None:
    """A DUT whose neighbour table has no room for them would be asked to learn them, and its table, which all
    labs share, would be full."""
    learnt = evenhand("learn", lab)
    assert learnt.returncode == 0, learnt.stderr
    assert "50 of 50 reachable on each side" in learnt.stdout
    refused = evenhand("trial", lab, "--rate", "1kfps", "--duration", "1s", "--hosts", "51", "--json")
    assert refused.returncode == 2
    error = json.loads(refused.stdout)["error"]
    assert error["id"] == "rig.lab-too-small"
    assert "evenhand lab up linux" in error["next"]


@pytest.mark.slow  # five rounds of learning twice, and both IP versions
def test_hosts_that_the_dut_does_not_reach_end_it_unless_they_are_allowed(lab: LinuxLab) -> None:
    """R2544-35: exit code 3, the addresses, and what to do; with --allow-unreachable a deviation."""
    lost = str(make_plan(lab.plan, 50).right.host_range.address(7))
    subprocess.run(["ip", "-n", lab.dut_namespace, "route", "add", "blackhole", lost], check=True)
    learnt = evenhand("learn", lab, "--hosts", "50", "--rounds", "2", "--wait", "300ms", "--json")
    assert learnt.returncode == 3
    assert json.loads(learnt.stdout)["learning"]["sides"]["right"]["unreachable"] == [lost]
    refused = evenhand("trial", lab, *TRIAL, "--json")
    assert refused.returncode == 3
    error = json.loads(refused.stdout)["error"]
    assert error["id"] == "procedure.hosts-unreachable"
    assert f"1 of 100 hosts: {lost}" in error["what"]
    allowed = evenhand("trial", lab, *TRIAL, "--allow-unreachable")
    assert allowed.returncode == 0, allowed.stderr
    assert "FAIL" in allowed.stdout or "INVALID" in allowed.stdout
    assert "Deviation from R2544-35: 1 of 100 hosts remained unreachable after learning" in allowed.stdout
