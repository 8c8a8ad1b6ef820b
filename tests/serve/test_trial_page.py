# SPDX-License-Identifier: Apache-2.0
"""The page of a trial: what it says, where it is linked, and that nothing of a hostile run file does anything
in it."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.units import format_count, parse_duration, parse_rate
from evenhand.cli.main import app_of
from evenhand.run import read_record
from evenhand.serve.trial_page import PCAPNG, placed_trials
from tests.run.goldens import copy_recorded
from tests.run.hostile import change
from tests.serve.served import Served, recorded_folder
from tests.serve.test_pages import SCRIPT, checked

NAMES = ("campaign-v4", "throughput-v6", "throughput-clean-time", "recovery-v6", "trial-fail-v4")
SEEN = {
    "cpus": [
        {"cpu": 0, "busy_share": 0.25, "softirq_share": 0.125},
        {"cpu": 3, "busy_share": 1.0, "softirq_share": 0.5},
    ],
    "dropped_packets": 7,
    "interfaces": {
        "left": {
            "name": f"eth0{SCRIPT}",
            "queues": [{"queue": 0, "received_packets": 300}, {"queue": 1, "received_packets": 100}],
        }
    },
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served.of(recorded_folder(tmp_path_factory.mktemp("runs"), NAMES))


def of_trials(path: Path, add: dict[str, Any]) -> None:
    """Put more into the document of each trial."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, document in connection.execute("SELECT id, document FROM trials").fetchall():
            changed = json.dumps({**json.loads(document), **add})
            connection.execute("UPDATE trials SET document = ? WHERE id = ?", (changed, number))


@pytest.mark.parametrize("name", NAMES)
def test_each_trial_of_a_run_is_linked_from_its_page_and_has_one(served: Served, name: str) -> None:
    address = f"/run/{name}.evenhand"
    record = read_record(served.index.folder / f"{name}.evenhand")
    trials = list(placed_trials(record))
    links = re.findall(rf'href="{address}/trial/([0-9]+)">([^<]+)</a>', served.get(address).text)
    assert sorted(int(row) for row, _ in links) == sorted(each.trial.row for each in trials)
    words = dict(links)
    for each in trials:
        number, verdict = str(each.trial.number), str(each.trial.result.verdict)
        said = words[str(each.trial.row)]
        assert said == number or (each.found is None and verdict in said)
    for each in (trials[0], trials[-1]):
        answer = served.get(f"{address}/trial/{each.trial.row}")
        assert answer.status == 200, answer.text
        checked(answer.text)
        result = each.trial.result
        said = " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())
        assert f"Trial {each.trial.number} at" in said
        assert str(result.verdict) in said
        for direction in result.directions.values():
            assert format_count(direction.received_frames) in said
        assert "latency p99.9 / max" in said
        assert str(each.search.seed) in said
    first, last = (served.get(f"{address}/trial/{each.trial.row}").text for each in (trials[0], trials[-1]))
    assert ('rel="prev"' in first, 'rel="next"' in first) == (False, len(trials) > 1)
    assert ('rel="prev"' in last, 'rel="next"' in last) == (len(trials) > 1, False)


def test_points_of_search_charts_lead_to_their_trials(served: Served) -> None:
    name = "throughput-v6.evenhand"
    numbers = {
        each.trial.row: each.trial.number for each in placed_trials(read_record(served.index.folder / name))
    }
    charts = served.get(f"/api/runs/{name}/charts").document
    points = [
        point
        for chart in charts
        if chart["title"].startswith("Loads that were tried")
        for series in chart["series"]
        for point in series["points"]
    ]
    assert points
    assert all(numbers[point["trial"]] == point["x"] for point in points)


@pytest.mark.parametrize("place", ["99999", "0", "x", "-1", "1.1", "9" * 5000, "<script>"])
def test_a_trial_that_is_not_there_is_said(served: Served, place: str) -> None:
    answer = served.get(f"/run/campaign-v4.evenhand/trial/{place}")
    assert answer.status == 404
    checked(answer.text)


def test_what_was_judged_is_a_strip(served: Served) -> None:
    address = "/run/throughput-clean-time.evenhand"
    record = read_record(served.index.folder / "throughput-clean-time.evenhand")
    cut = next(
        each
        for each in placed_trials(record)
        if each.trial.result.clean is not None and each.trial.result.clean.left_out
    )
    text = served.get(f"{address}/trial/{cut.trial.row}").text
    assert text.count('<svg class="strip"') == 1
    assert "--duration 1s --clean-time --waits short" in text  # as the run's command had them
    assert "left out: " in text


def test_the_command_repeats_the_load_under_the_same_conditions(served: Served) -> None:
    record = read_record(served.index.folder / "campaign-v4.evenhand")
    each = next(placed_trials(record))
    text = served.get(f"/run/campaign-v4.evenhand/trial/{each.trial.row}").text
    (command,) = re.findall(r"<pre>(evenhand trial .*?)</pre>", text)
    words = shlex.split(command)
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert each.found is not None
    assert options["--plan"] == each.found.point.plan
    assert options["--hosts"] == each.found.point.hosts.written
    assert parse_rate(options["--rate"], where="") == each.trial.result.intended_fps
    assert parse_duration(options["--duration"], where="") == each.trial.result.intended_duration_s
    assert int(options["--seed"]) == each.search.seed
    (frames,) = re.findall(r"<pre>(evenhand plan frames .*?)</pre>", text)
    known = {name for each in app_of().built.commands["plan"].commands["frames"].params for name in each.opts}
    assert {word for word in shlex.split(frames) if word.startswith("--")} <= known
    assert frames.startswith(f"evenhand plan frames {each.found.point.plan} --hosts ")
    assert f" --seed {each.search.seed} " in frames
    # Two loads are no trial of that verb.
    recovery = next(placed_trials(read_record(served.index.folder / "recovery-v6.evenhand")))
    text = served.get(f"/run/recovery-v6.evenhand/trial/{recovery.trial.row}").text
    assert "evenhand trial " not in text
    assert "<pre>evenhand recovery " in text


def test_what_a_witness_saw_is_in_tables(tmp_path: Path) -> None:
    path = copy_recorded("campaign-v4", tmp_path / "a.evenhand")
    of_trials(path, {"dut": SEEN})
    mine = Served.of(tmp_path)
    place = next(placed_trials(read_record(path))).trial.row
    text = mine.get(f"/run/a.evenhand/trial/{place}").text
    checked(text)
    assert "<script>alert" not in text
    cells = re.findall(r"<td[^>]*><span>([^<]*)</span></td>", text.partition("Inside the DUT")[2])
    assert cells[:6] == ["0", "25 %", "12.5 %", "3", "100 %", "50 %"]
    assert "75 %" in cells


def test_texts_of_a_hostile_trial_are_text(tmp_path: Path) -> None:
    path = copy_recorded("campaign-v4", tmp_path / "a.evenhand")
    reason = {"code": "loss", "text": SCRIPT}
    of_trials(path, {"reasons": [reason], "notes": [{**reason, "code": "clean_time"}], "verdict": "FAIL"})
    change(path, f"UPDATE trials SET purpose = '{SCRIPT.replace(chr(39), '')}'")
    mine = Served.of(tmp_path)
    place = next(placed_trials(read_record(path))).trial.row
    text = mine.get(f"/run/a.evenhand/trial/{place}").text
    checked(text)
    assert "&lt;script&gt;alert" in text
    assert "<script>alert" not in text


def test_a_capture_beside_the_run_can_be_had_and_nothing_else(tmp_path: Path) -> None:
    path = copy_recorded("throughput-v6", tmp_path / "a.evenhand")
    (command,) = read_record(path).commands
    with closing(sqlite3.connect(path)) as connection, connection:
        named = [*command, "--capture", "/elsewhere/bad frames.pcapng"]
        connection.execute("UPDATE sessions SET command = ?", (json.dumps(named),))
    mine = Served.of(tmp_path)
    place = next(placed_trials(read_record(path))).trial.row
    address = "/run/a.evenhand/download/capture"
    assert mine.get(address).status == 404
    capture = tmp_path / "bad frames.pcapng"
    capture.write_bytes(b"secret")
    assert mine.get(address).status == 404
    capture.write_bytes(PCAPNG + b"more")
    assert mine.get(address).body == PCAPNG + b"more"
    assert address in mine.get(f"/run/a.evenhand/trial/{place}").text
    capture.rename(tmp_path / "other")
    capture.symlink_to(tmp_path / "other")
    assert mine.get(address).status == 404


@pytest.mark.parametrize("name", ["c" * 300 + ".pcapng", "c\0.pcapng"])
def test_a_capture_with_a_name_that_no_file_has_is_none(tmp_path: Path, name: str) -> None:
    path = copy_recorded("throughput-v6", tmp_path / "a.evenhand")
    (command,) = read_record(path).commands
    with closing(sqlite3.connect(path)) as connection, connection:
        named = json.dumps([*command, "--capture", name])
        connection.execute("UPDATE sessions SET command = ?", (named,))
    mine = Served.of(tmp_path)
    for page in ("/run/a.evenhand", "/run/a.evenhand/report"):
        assert mine.get(page).status == 200
    assert mine.get("/run/a.evenhand/download/capture").status == 404
