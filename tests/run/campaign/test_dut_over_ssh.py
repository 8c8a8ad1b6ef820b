# SPDX-License-Identifier: Apache-2.0
"""A campaign whose DUT is set up over SSH: before each point that needs it, never for two runs at once, and
put back however it ends.

The DUT is a namespace with OpenSSH's server in it; what is measured is the simulated device.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evenhand.rig import LabSetup
from evenhand.run import read_record
from evenhand.run.campaign.dut_setup import set_up_for
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.testbed import make_testbed
from tests.cli.running import TESTBED
from tests.dut.namespace_dut import NamespaceDut, namespace_dut, wait_until, why_not
from tests.run.campaign.small_campaign import OPTIONS, write_campaign

pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
REACH = '[dut]\nssh = "root@192.0.2.2"\nos = "linux"\nleft = "left"\nright = "right"\n'
SUITE = f"""
[[suite]]
name = "PLAN"
plan = "PLAN"
hosts = [4, 16]
repetitions = 1
one-pair-first = false
{OPTIONS}
MORE
"""
CAMPAIGN = f"""
name = "over-ssh"
testbed = "testbed.toml"
{SUITE.replace("PLAN", "gateway-v4")}
{SUITE.replace("PLAN", "gateway-v6")}
"""


@pytest.fixture
def dut(tmp_path: Path) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path / "dut") as dut:
        yield dut


def start(dut: NamespaceDut, folder: Path, *arguments: str, more: str = "") -> subprocess.Popen[str]:
    write_campaign(folder, CAMPAIGN.replace("MORE", more), name="series.toml")
    (folder / "testbed.toml").write_text(f"{TESTBED}{REACH}")
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand", *arguments],
        cwd=folder,
        env={**dut.environment, "EVENHAND_ENGINE": str(folder / "engine")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


LINGER = "[suite.hooks]\nafter-point = 'touch lingers; sleep 500'\ntimeout = '500s'"
"""The DUT stays set up so long."""
RUN = ("run", "series.toml", "--run", "series.evenhand", "--no-html")


@pytest.mark.thorough
def test_each_point_finds_the_dut_set_up_and_the_end_finds_it_as_it_was(
    dut: NamespaceDut, tmp_path: Path
) -> None:
    """SEED-23: and the run file says what was changed. A point that needs nothing else finds it as it
    stands."""
    before = dut.state()
    process = start(dut, tmp_path, *RUN)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert dut.state() == before
    record = read_record(tmp_path / "series.evenhand")
    assert [str(point.state) for point in record.points] == ["measured"] * 4, output
    applied = [hook for point in record.points for hook in point.hooks if hook.when == "dut_apply"]
    assert [json.loads(hook.output)["plan"] for hook in applied] == ["gateway-v4", "gateway-v6"]
    assert {
        "name": "route to 198.19.0.0/16",
        "before": None,
        "value": "via 10.0.1.2 dev right",
    } in json.loads(applied[0].output)["changes"]
    assert [hook.when for hook in record.hooks] == ["dut_undo", "dut_undo"]


@pytest.mark.thorough
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_hash_that_the_driver_refuses_is_refused_before_the_first_point(
    dut: NamespaceDut, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """RSS-02: no point gets a number that would be another hash's. The DUT is only read."""
    before = dut.state()
    process = start(dut, tmp_path, *RUN, *more, more='hash-types = ["type1"]')
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 2
    assert "left does not report what it hashes" in errors
    assert "Operation not supported" in errors
    assert "Do not change the hash" in errors
    assert not (tmp_path / "series.evenhand").exists()
    assert dut.state() == before


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_dut_changed(
    dut: NamespaceDut, tmp_path: Path, number: signal.Signals
) -> None:
    """At once where the run can; after kill -9 by `dut undo`, and not before somebody else may have the
    DUT."""
    before = dut.state()
    process = start(dut, tmp_path, *RUN, more=LINGER)
    wait_until((tmp_path / "lingers").exists, "the first point has not been measured")
    assert "10.0.0.1" in dut.inside("ip", "address")
    other = start(dut, tmp_path, "run", "series.toml", "--run", "other.evenhand", "--no-html")
    _, errors = other.communicate(timeout=600)
    assert other.returncode == 3
    assert "the DUT is already set up for gateway-v4, by a run of root" in errors
    by_hand = start(dut, tmp_path, "dut", "undo", "testbed.toml", more=LINGER)
    _, errors = by_hand.communicate(timeout=600)
    assert by_hand.returncode == 3
    assert "That process is still running" in errors
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=600)
    if number == signal.SIGKILL:
        assert "10.0.0.1" in dut.inside("ip", "address")
        _, errors = start(dut, tmp_path, "dut", "undo", "testbed.toml", more=LINGER).communicate(timeout=600)
    assert dut.state() == before, errors


def test_a_point_with_a_hash_has_no_number_where_no_nic_has_one() -> None:
    """RSS-02: the lab of the kernel's own router stands on veth, which hash nothing; nothing of it is called
    type 1."""
    document = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0"},
        "right": {"device": "net_ring1"},
        "tester": {"cpus": [0]},
    }
    setup = LabSetup(
        name="lab:linux",
        testbed=make_testbed(document, where="lab"),
        lab=cast(Any, SimpleNamespace(ssh_config=None)),
    )
    campaign = make_campaign(
        {"name": "a", "suite": [{"name": "s", "hosts": 1, "hash-types": ["type1"]}]}, where="c.toml"
    )
    (point,) = expand(campaign).points
    keeper = cast(Any, None)
    assert (
        set_up_for(point, setup, keeper, lambda event: None, run="r")
        == "the DUT of lab:linux has no NIC whose hash can be set (hash-types)"
    )
    assert set_up_for(replace(point, hash_type=None), setup, keeper, lambda event: None, run="r") is None
