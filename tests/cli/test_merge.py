# SPDX-License-Identifier: Apache-2.0
"""`evenhand merge`, from runs of verbs and of a campaign to one file that all readers take."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_record
from tests.cli.running import TESTBED, Ended
from tests.run.goldens import recorded_file

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--precision", "10%")
SHORT = ("--waits", "short")


@pytest.mark.parametrize(("plan", "size"), [("gateway-v4", 64), ("gateway-v6", 84)])
def test_runs_of_two_machines_become_one(
    evenhand: Run, engine_playing: Play, tmp_path: Path, plan: str, size: int
) -> None:
    """SEED-72, SEED-84."""
    for machine, part in (("one", "simulated-640000"), ("other", "simulated-320000")):
        engine_playing(part)
        folder = tmp_path / machine
        folder.mkdir()
        testbed = folder / "lab.toml"
        testbed.write_text(f'{TESTBED}[dut]\nfacts = {{ nic = "{machine}" }}\n')
        run = ("--run", f"{machine}.evenhand")
        assert evenhand("throughput", testbed, "--plan", plan, *QUICK, *SHORT, *run).code == 0
    ended = evenhand("merge", "one.evenhand", "other.evenhand", "--run", "both.evenhand")
    assert ended.code == 0, ended.err
    assert "Merged: 2 files, 1 point, 2 repetitions, " in ended.out
    assert "Testbeds: lab.toml, lab.toml (2)." in ended.out
    assert "Note: 'lab.toml (2)' is the testbed 'lab.toml' of other.evenhand" in ended.out
    (point,) = read_record("both.evenhand").points
    assert (point.point.plan, point.point.frame_size, len(point.values)) == (plan, size, 2)
    shown = evenhand("show", "both.evenhand")
    assert shown.code == 0
    assert "measured by lab.toml and lab.toml (2)" in shown.out
    assert evenhand("export", "both.evenhand", "--format", "csv", "--table", "repetitions").code == 0
    assert evenhand("report", "both.evenhand").code == 0


def test_a_merge_that_is_refused_says_why_and_leaves_no_file(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("simulated-640000")
    assert evenhand("throughput", testbed, *QUICK, *SHORT, "--run", "one.evenhand").code == 0
    lossy = ("--loss-ratio", "0.1%", "--run", "other.evenhand")
    assert evenhand("throughput", testbed, *QUICK, *SHORT, *lossy).code == 0
    ended = evenhand("merge", "one.evenhand", "other.evenhand", "--run", "both.evenhand")
    assert (ended.code, ended.out) == (2, "")
    assert ended.error.code == "run.not-measured-alike"
    assert "goal loss_ratio is 0.0 in one.evenhand, and 0.001 in other.evenhand" in ended.error.what
    assert "evenhand compare one.evenhand other.evenhand" in ended.error.next_step
    shutil.copyfile("one.evenhand", "copy.evenhand")
    ended = evenhand("merge", "one.evenhand", "copy.evenhand", "--run", "both.evenhand")
    assert ended.code == 2
    assert ended.error.code == "run.measurement-twice"
    assert "in one.evenhand and in copy.evenhand" in ended.error.what
    assert not Path("both.evenhand").exists()


def test_campaigns_are_merged_and_not_resumed(evenhand: Run) -> None:
    files = [recorded_file(name) for name in ("campaign-v4", "campaign-v6")]
    ended = evenhand("merge", *files, "--run", "all.evenhand")
    assert ended.code == 0, ended.err
    record = read_record("all.evenhand")
    keys = [{point.point.key for point in read_record(file).points} for file in files]
    assert {point.point.key for point in record.points} == set.union(*keys)
    assert {point.point.plan for point in record.points} == {"gateway-v4", "gateway-v6"}
    assert evenhand("status", "all.evenhand").code == 0
    Path("campaign.toml").write_text('name = "two-suites"\n[[suite]]\nname = "a"\n')
    ended = evenhand("run", "campaign.toml", "--resume")
    assert ended.code == 2
    assert ended.error.code == "cli.no-campaign-here"
    ended = evenhand("run", "--resume", "all.evenhand")
    assert ended.code == 2
