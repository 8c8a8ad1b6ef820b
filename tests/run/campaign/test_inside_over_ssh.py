# SPDX-License-Identifier: Apache-2.0
"""A campaign whose DUT is looked into over a real SSH connection: facts with the run, a witness's document
with each trial.

The DUT is a namespace with OpenSSH's server in it; what is measured is the simulated device, so its
interfaces count next to nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from evenhand.run import read_record
from tests.cli.running import TESTBED
from tests.dut.namespace_dut import NamespaceDut, namespace_dut, why_not
from tests.preloaded.commands import evenhand_command
from tests.run.campaign.small_campaign import OPTIONS, write_campaign

pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
SCHEMA = json.loads((Path(__file__).resolve().parents[3] / "contract" / "witness.schema.json").read_text())
REACH = (
    '[dut]\nssh = "root@192.0.2.2"\nos = "linux"\nleft = "left"\nright = "right"\n[dut.facts]\nmachine ='
    ' "as I wrote it"\n'
)
CAMPAIGN = f"""
name = "inside"
testbed = "testbed.toml"
[every-suite]
hosts = [4]
one-pair-first = false
repetitions = 1
{OPTIONS}
[[suite]]
name = "v4"
plan = "gateway-v4"
[[suite]]
name = "v6"
plan = "gateway-v6"
"""


@pytest.fixture
def dut(tmp_path: Path) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path / "dut") as dut:
        yield dut


def run(dut: NamespaceDut, folder: Path, *arguments: str) -> str:
    """What it says to the terminal."""
    write_campaign(folder, CAMPAIGN, name="series.toml")
    (folder / "testbed.toml").write_text(f"{TESTBED}{REACH}")
    environment = {
        **dut.environment,
        "EVENHAND_ENGINE": str(folder / "engine"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    done = subprocess.run(
        [*evenhand_command(), "run", "series.toml", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.thorough
def test_a_campaign_over_ssh_has_facts_and_a_witness_in_each_trial(dut: NamespaceDut, tmp_path: Path) -> None:
    """R2544-02, SEED-07, SEED-84: for both IP versions; what the user wrote stays, and the source of the rest
    is named."""
    first = run(dut, tmp_path, "--run", "first.evenhand")
    assert "not as it was" not in first
    record = read_record(tmp_path / "first.evenhand")
    assert [point.values != () for point in record.points] == [True, True]
    for point in record.points:
        for search in point.repetitions[0].searches:
            assert search.setup["inside_dut"]["facts"]["kernel"] == os.uname().release
            # The set-up of this very point is what was read.
            forwards = f"net.ip{point.point.suite}.conf.left.forwarding"
            assert search.setup["inside_dut"]["facts"]["sysctls"][forwards] == "1"
            for trial in search.trials:
                jsonschema.Draft202012Validator(SCHEMA).validate(trial.result.raw["dut"])
                assert trial.result.raw["dut"]["interfaces"]["left"]["name"] == "left"
    (testbed,) = record.testbeds.values()  # it is one testbed, although each point sets the DUT up anew
    assert testbed["dut"]["machine"] == "as I wrote it"
    assert testbed["dut"]["kernel"].endswith(" (read on the DUT)")
    assert testbed["missing"]["dut"] == [
        name for name in testbed["missing"]["dut"] if testbed["dut"][name] is None
    ]
    assert "Inside the DUT" in (tmp_path / "first.html").read_text()
    dut.inside("ethtool", "-K", "left", "tx", "off")
    second = run(dut, tmp_path, "--run", "second.evenhand", "--no-html")
    assert "The DUT is not as it was during the last run on it" in second
    assert "interfaces.left.offloads.tx-checksumming: off, and was on" in second
    assert second.count("The DUT is not as it was") == 1
