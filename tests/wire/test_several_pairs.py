# SPDX-License-Identifier: Apache-2.0
"""Two engines on a DUT with a pair of interfaces for each, which a run sets up over SSH: the kernel's own
router in a namespace, with OpenSSH's server in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from evenhand.run import read_record
from evenhand.trial import find_engine
from tests.dut.namespace_dut import (
    NamespaceDut,
    namespace_dut_of_whole_frames,
    of_engines,
    put_back,
    wait_until,
    why_not,
)
from tests.dut.test_over_ssh import done
from tests.wire.wire_session import Document, cpus, proved, thorough, until

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.two_cpus,
    pytest.mark.patient,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "contract" / "witness.schema.json").read_text())
LIMITS = """
[limits]
offered_tolerance = "10%"
overdue_after = "50ms"
overdue_tolerance = "99%"
longest_overdue = "1000s"
"""
"""The engines and the DUT share two CPUs."""
SUITE = """
[[suite]]
name = "PLAN"
plan = "PLAN"
hosts = [4]
repetitions = 1
one-pair-first = false
maximum-rate = "1kfps"
duration = "500ms"
final-duration = "1s"
precision = "50%"
waits = "short"
MORE
"""
CAMPAIGN = f"""
name = "pairs"
testbed = "lab.toml"
{SUITE.replace("PLAN", "gateway-v4")}
{SUITE.replace("PLAN", "gateway-v6")}
"""
LINGER = "[suite.hooks]\nafter-point = 'touch lingers; sleep 500'\ntimeout = '500s'"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut_of_whole_frames(tmp_path_factory.mktemp("dut"), pairs=2) as dut:
        first, second = cpus()[:2]
        text = of_engines(2).replace("cpus = [1]", f"cpus = [{second}]")
        dut.testbed.write_text(text.replace("cpus = [0]", f"cpus = [{first}]") + LIMITS)
        dut.make_urgent()
        yield dut


@pytest.fixture
def dut(made: NamespaceDut) -> Iterator[NamespaceDut]:
    """As it was before, whatever a test has done to it."""
    with put_back(made):
        yield made


def start(dut: NamespaceDut, *arguments: str) -> subprocess.Popen[str]:
    """Where the tester's ports are."""
    return subprocess.Popen(
        ["ip", "netns", "exec", dut.tester, sys.executable, "-m", "evenhand", *arguments],
        env={**dut.environment, "EVENHAND_ENGINE": str(find_engine())},
        cwd=dut.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def write_campaign(folder: Path, *, more: str = "") -> None:
    (folder / "pairs.toml").write_text(CAMPAIGN.replace("MORE", more))


@pytest.mark.parametrize(
    "plan", ["gateway-v6", *thorough("direct-v4-net24"), *proved("gateway-v4", "direct-v6")]
)
def test_a_trial_on_both_pairs_has_a_verdict(dut: NamespaceDut, plan: str) -> None:
    """R2544-07, SEED-44: each frame comes back to the engine that sent it."""
    words = ("lab.toml", "--plan", plan, "--hosts", "4")
    done(dut, "apply", *words)
    try:
        found = passed_trial(dut, *words)
    finally:
        done(dut, "undo", "lab.toml")
    check_engines(found)
    check_witness(found["dut"], version="ipv6" if "v6" in plan else "ipv4")


def passed_trial(dut: NamespaceDut, *words: str) -> Document:
    """A trial of 500 frames in each direction."""

    def trial() -> Document:
        more = ("--rate", "1kfps", "--duration", "500ms", "--waits", "short", "--json", "--no-run")
        process = start(dut, "trial", *words, *more)
        output, errors = process.communicate(timeout=120)
        assert output, errors
        found: Document = json.loads(output)
        return found

    found: Document = until(lambda each: each["trial"]["verdict"] == "PASS", trial)["trial"]
    return found


def check_engines(trial: Document) -> None:
    assert [each["engine"] for each in trial["engines"]] == ["near", "far"]
    for engine in trial["engines"]:
        for direction in engine["directions"].values():
            assert (direction["received_frames"], direction["strayed_frames"]) == (250, 0)


@pytest.mark.skipif(
    any(shutil.which(program, path="/usr/sbin") is None for program in ("nft", "conntrack")),
    reason="nftables or conntrack is not installed",
)
@pytest.mark.parametrize("plan", thorough("nat44", "nat66"))
def test_the_kernels_nat_keeps_the_connections_of_both_pairs(dut: NamespaceDut, plan: str) -> None:
    """R9693-03, R9693-12, SEED-23: one table of connections for both, and answers over the pair of each."""
    words = ("lab.toml", "--plan", plan, "--hosts", "4")
    done(dut, "apply", *words)
    try:
        assert 'oifname { "right", "right2" }' in dut.inside("nft", "list", "ruleset")
        found = passed_trial(dut, *words, "--established", "401", "--establish-rate", "1kfps")
    finally:
        done(dut, "undo", "lab.toml")
    check_engines(found)
    assert found["established"]["count"] == 401
    assert not dut.inside("nft", "list", "ruleset")


def check_witness(seen: Document, *, version: str) -> None:
    """SEED-07: each pair's interfaces, and the IP layer, know every frame of the trial."""
    Draft202012Validator(SCHEMA).validate(seen)
    names = {place: interface["name"] for place, interface in seen["interfaces"].items()}
    assert names == {"left": "left", "right": "right", "left-2": "left2", "right-2": "right2"}
    for interface in seen["interfaces"].values():
        # Beside the test frames there are learning frames and their answers.
        assert interface["received_packets"] - 250 in range(30)
        assert interface["sent_packets"] - 250 in range(30)
        assert interface["neighbors"][version][1] >= 1
    assert seen["ip"][version]["forwarded_packets"] - 4 * 250 in range(60)
    assert (seen["lost_frames"], seen["unexplained_frames"]) == (0, 0)


@pytest.mark.thorough
def test_a_campaign_sets_up_both_pairs_and_puts_them_back(dut: NamespaceDut) -> None:
    """SEED-23, over IPv4 and IPv6."""
    write_campaign(dut.folder)
    process = start(dut, "run", "pairs.toml", "--run", "pairs.evenhand")
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, output + errors
    record = read_record(dut.folder / "pairs.evenhand")
    assert [str(point.state) for point in record.points] == ["measured"] * 2, output
    applied = [hook for point in record.points for hook in point.hooks if hook.when == "dut_apply"]
    changes = [change["name"] for hook in applied for change in json.loads(hook.output)["changes"]]
    assert "route to 198.18.0.0/16 in table 7302" in changes
    assert "IPv6 rule for what comes in on left2" in changes
    for point in record.points:
        [search, *_] = point.repetitions[0].searches
        facts = search.setup["inside_dut"]["facts"]
        assert [found["name"] for found in facts["interfaces"].values()] == dut.interfaces
        assert facts["sysctls"][f"net.ip{point.point.suite[-2:]}.conf.right2.forwarding"] == "1"
        assert "left-2" in search.trials[0].result.raw["dut"]["interfaces"]
    page = (dut.folder / "pairs.html").read_text()
    assert "Inside the DUT" in page
    assert "right2" in page


@pytest.mark.thorough
def test_pairs_whose_cables_are_swapped_are_refused(dut: NamespaceDut) -> None:
    """Frames would be forwarded all the same, and the witness's numbers be another engine's."""
    right = dut.testbed.read_text()
    dut.testbed.write_text(right.replace('left = ["left", "left2"]', 'left = ["left2", "left"]'))
    words = ("lab.toml", "--plan", "gateway-v4", "--hosts", "4")
    done(dut, "apply", *words)
    try:
        process = start(dut, "trial", *words, "--rate", "1kfps", "--duration", "500ms", "--waits", "short")
        _, errors = process.communicate(timeout=120)
    finally:
        done(dut, "undo", "lab.toml")
        dut.testbed.write_text(right)
    assert process.returncode == 3
    assert "the left port of engine near reaches the DUT's left, which is configured as its left-2" in errors


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGKILL, *proved(signal.SIGINT)])
def test_a_campaign_that_is_ended_leaves_no_pair_changed(dut: NamespaceDut, number: signal.Signals) -> None:
    """At once where it can; after kill -9 by `dut undo`."""
    before, lingers = dut.state(), dut.folder / "lingers"
    lingers.unlink(missing_ok=True)
    write_campaign(dut.folder, more=LINGER)
    process = start(dut, "run", "pairs.toml", "--run", f"ended-{int(number)}.evenhand", "--no-html")
    wait_until(
        lambda: lingers.exists() or process.poll() is not None, "the first point has not been measured"
    )
    assert process.poll() is None, process.communicate()
    assert "lookup 7302" in dut.inside("ip", "rule")
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=300)
    if number == signal.SIGKILL:
        assert "lookup 7302" in dut.inside("ip", "rule")
        done(dut, "undo", "lab.toml")
    assert dut.state() == before, errors
