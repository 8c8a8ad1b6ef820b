# SPDX-License-Identifier: Apache-2.0
"""A campaign that an older Evenhand began is resumed: no trial that it made is made again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.base.without_folders import without_folders
from evenhand.cli.main import main
from evenhand.rig import facts
from evenhand.rig.testbed import read_testbed
from evenhand.run import PointState, read_record
from evenhand.run.run_file import to_json
from evenhand.search import Role
from tests.run.campaign.small_campaign import write_campaign

KEPT = Path(__file__).resolve().parents[1] / "files" / "version-2-cut-short.evenhand"
"""Killed in the first of two searches for the longest burst, after the throughput."""
CAMPAIGN = """
name = "kept"
testbed = "testbed.toml"

[[suite]]
name = "a"
plan = "gateway-v6"
hosts = 4
repetitions = 1
precision = "10%"
duration = "1s"
final-duration = "1s"
waits = "short"
procedure = ["back-to-back"]
single-pair-first = false
inner-repetitions = 2
max-burst = "10ms"
rate = "1Mfps"
"""


def _bring_to_this_host(path: Path) -> None:
    """A repetition that was begun on another host, or under another kernel, begins anew."""
    with closing(sqlite3.connect(path)) as connection, connection:
        ((name, text),) = connection.execute("SELECT name, document FROM testbeds").fetchall()
        tester = without_folders(facts.tester_facts(read_testbed(path.with_name(name))))
        document = {**json.loads(text), "tester": tester}
        connection.execute("UPDATE testbeds SET document = ? WHERE name = ?", (to_json(document), name))


def test_a_campaign_of_version_2_goes_on_where_it_was_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D11. Its searches are found by what they are, not by what they are called."""
    monkeypatch.chdir(tmp_path)
    write_campaign(tmp_path, CAMPAIGN, name="cut-short.toml")
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    shutil.copyfile(KEPT, "run.evenhand")
    _bring_to_this_host(Path("run.evenhand"))
    (point,) = read_record("run.evenhand").points
    assert point.state is PointState.BEGUN
    before = [
        (search.role, search.number, [trial.result.raw for trial in search.trials])
        for search in point.repetitions[0].searches
    ]
    assert [(role, number, len(trials)) for role, number, trials in before] == [
        (Role.THROUGHPUT_FOR, 1, 5),
        (Role.MEASUREMENT, 1, 8),
    ]
    assert main(["run", "cut-short.toml", "--resume", "--run", "run.evenhand", "--no-html"]) == 0
    (point,) = read_record("run.evenhand").points
    (repetition,) = point.repetitions
    assert (point.state, repetition.value) == (PointState.MEASURED, 1422.0)
    after = [
        (search.role, search.number, [trial.result.raw for trial in search.trials])
        for search in repetition.searches
    ]
    assert [(role, number) for role, number, _ in after] == [
        (Role.THROUGHPUT_FOR, 1),
        (Role.MEASUREMENT, 1),
        (Role.MEASUREMENT, 2),
    ]
    assert after[0] == before[0]
    assert after[1][2][:8] == before[1][2]
    made = [json.loads(line)["request"] for line in Path("requests.jsonl").read_text().splitlines()]
    assert made.count("trial") == sum(len(trials) for *_, trials in after) - 13
    with closing(sqlite3.connect("run.evenhand")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
