# SPDX-License-Identifier: Apache-2.0
"""The documents of `evenhand run` and `evenhand status`."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console

from evenhand.base.terminal_table import rendered
from evenhand.base.time_span import TimeSpan
from evenhand.report.campaign_status import campaign_lines, campaign_table
from evenhand.run.campaign_status import read_status
from tests.preloaded.commands import evenhand_command
from tests.run.campaign.small_campaign import small, write_campaign

SCHEMA = json.loads((Path(__file__).resolve().parents[3] / "contract" / "result.schema.json").read_text())


def document(folder: Path, *arguments: str) -> Any:
    environment = {
        **os.environ,
        "EVENHAND_ENGINE": str(folder / "engine"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    ended = subprocess.run(
        [*evenhand_command(), *arguments, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def test_run_and_status_tell_the_same_in_the_form_of_all_verbs(tmp_path: Path) -> None:
    """R2544-23: units are in the names, or beside the values."""
    write_campaign(tmp_path, small(1))
    outline = document(tmp_path, "run", "small.toml", "--dry-run")
    assert outline["run"] is None
    assert not (tmp_path / "requests.jsonl").exists()
    ended = document(tmp_path, "run", "small.toml", "--run", "run.evenhand", "--no-html")
    status = document(tmp_path, "status", "run.evenhand")
    assert (ended.pop("command"), status.pop("command")) == ("run", "status")
    assert ended == status
    assert [point["key"] for point in status["points"]] == [point["key"] for point in outline["points"]]
    assert {point["state"] for point in status["points"]} == {"measured"}
    assert sum(status["trials"].values()) == sum(point["trials"] for point in status["points"]) > 0
    assert status["left_s"] == 0
    latency = status["points"][-1]
    assert (latency["procedure"], latency["unit"], len(latency["values"])) == ("latency", "us", 1)
    _names_are_whole(tmp_path / "run.evenhand")


def test_a_repetition_without_a_value_is_not_counted_as_one_that_agrees(tmp_path: Path) -> None:
    """SEED-72: "2 of 2" beside one value read as two searches that had found the same."""
    write_campaign(tmp_path, small(2))
    document(tmp_path, "run", "small.toml", "--run", "run.evenhand", "--no-html")
    path = tmp_path / "run.evenhand"
    with closing(sqlite3.connect(path)) as database, database:
        (first,) = database.execute("SELECT min(id) FROM repetitions").fetchone()
        database.execute(
            "UPDATE repetitions SET value = NULL, outcome = 'tester_ceiling', reason = 'too few'"
            " WHERE id = ?",
            (first,),
        )
    status = read_status(path)
    shown = io.StringIO()
    console = Console(width=120, file=shown)
    console.print(rendered(campaign_table(status)))
    rows = shown.getvalue().splitlines()
    key = status.points[0].point.key
    assert "1 of 2" in next(row for row in rows if row.startswith(key))
    assert sum("2 of 2" in row for row in rows) == 2
    told = [line for line in campaign_lines(status, TimeSpan.of(0)) if line.startswith("many/")]
    assert told == [f"{key}: 1 of its 2 finished repetitions has no value: too few."]
    point = document(tmp_path, "status", "run.evenhand")["points"][0]
    assert (point["finished_repetitions"], len(point["values"])) == (2, 1)


def _names_are_whole(run: Path) -> None:
    """At 80 columns, whatever they are: they are copied into `evenhand show --point`."""
    status = read_status(run)
    name = "a suite whose name is as long as a sentence"
    points = tuple(
        replace(point, point=replace(point.point, key=f"{name}/{point.point.key}")) for point in status.points
    )
    told_at_80 = io.StringIO()
    console = Console(width=80, file=told_at_80)
    for shown in (status, replace(status, points=points)):
        console.print(rendered(campaign_table(shown)))
    told = told_at_80.getvalue()
    assert all(point.point.key in told for point in (*status.points, *points))
    assert max(map(len, told.splitlines())) <= 80
