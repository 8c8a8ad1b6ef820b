# SPDX-License-Identifier: Apache-2.0
"""`evenhand trend` over files that the verbs wrote, and what its reference says of the document."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended
from tests.cli.test_compare import SEARCH
from tests.docs.documents import ROOT

Run = Callable[..., Ended]
Measure = Callable[[int, int], Path]


@pytest.fixture
def measure(evenhand: Run, engine_playing: Callable[[str], Path], testbed: Path) -> Measure:
    """A run of IPv4 and IPv6 in the folder `runs`, begun in the night with this number, of a device that
    forwards so many frames per second."""
    Path("runs").mkdir()

    def run(number: int, fps: int) -> Path:
        engine_playing(f"simulated-{fps}")
        path = Path("runs") / f"night-{number}.evenhand"
        plan = "gateway-v4" if number < 100 else "gateway-v6"
        ended = evenhand("throughput", testbed, *SEARCH, "--plan", plan, "--run", path)
        assert ended.code == 0, ended.err
        begun(path, number % 100)
        return path

    return run


def begun(path: Path, night: int) -> None:
    """Say that it was begun in that night."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET created_at = ?", (f"2026-10-{night + 1:02}T02:00:00.000Z",))


def test_a_folder_of_runs_shows_since_when_it_is_slower(evenhand: Run, measure: Measure) -> None:
    for number, fps in enumerate([640_000] * 4 + [560_000] * 3):
        measure(number, fps)
    ended = evenhand("trend", "runs", "--html", "trend.html")
    assert ended.code == 0, ended.err
    assert "-12.5 % (worse) since the run of 2026-10-05 02:00" in ended.out
    page = Path("trend.html").read_text()
    assert "Of 1 point 1 has changed since the first run: 1 worse." in page
    document = evenhand("trend", "runs", "--json").json
    assert [change["run"] for change in document["changes"]] == [4]
    assert document["points"][0]["plan"] == "gateway-v4"
    last = evenhand("trend", "runs", "--last", "3", "--json").json
    assert [run["name"] for run in last["runs"]] == ["night-4", "night-5", "night-6"]
    assert last["changes"] == []


def test_what_is_no_run_in_a_folder_is_left_out_and_by_name_refused(evenhand: Run, measure: Measure) -> None:
    measure(0, 640_000)
    bad = Path("runs/notes.evenhand")
    bad.write_text("no run")
    Path("runs/page.html").write_text("nor this")
    ended = evenhand("trend", "runs", "runs/night-0.evenhand")
    assert ended.code == 0
    assert "Left out: " in ended.err
    assert "notes.evenhand" in ended.err
    assert "One run has no trend yet" in ended.out
    refused = evenhand("trend", bad)
    assert refused.code == 2
    assert refused.error.code == "run.not-a-run"
    Path("empty").mkdir()
    assert evenhand("trend", "empty").error.code == "cli.no-run"


def test_links_in_a_circle_and_numbers_that_no_one_measured_are_no_runs(
    evenhand: Run, measure: Measure
) -> None:
    """Both were a bug in Evenhand: one was left to Python to resolve, the others overflowed when they were
    squared."""
    for number in range(3):
        measure(number, 640_000)
    Path("loop.evenhand").symlink_to("loop.evenhand")
    refused = evenhand("trend", "loop.evenhand")
    assert (refused.code, refused.error.code) == (2, "run.no-such-file")
    for number, value in ((0, 1.7e308), (1, 5e-324)):
        with closing(sqlite3.connect(f"runs/night-{number}.evenhand")) as connection, connection:
            connection.execute("UPDATE repetitions SET value = ?", (value,))
        refused = evenhand("trend", f"runs/night-{number}.evenhand")
        assert (refused.code, refused.error.code) == (2, "run.not-a-run")
        assert str(value) in refused.err
    ended = evenhand("trend", "runs")
    assert ended.code == 0
    assert ended.err.count("Left out: ") == 2


def test_runs_of_other_settings_are_refused(evenhand: Run, measure: Measure, testbed: Path) -> None:
    measure(0, 640_000)
    other = evenhand(
        "throughput",
        testbed,
        *SEARCH,
        "--plan",
        "gateway-v4",
        "--precision",
        "2%",
        "--run",
        "runs/o.evenhand",
    )
    assert other.code == 0, other.err
    refused = evenhand("trend", "runs")
    assert refused.code == 2
    assert refused.error.code == "analysis.not-alike"
    shown = evenhand("trend", "runs", "--anyway", "--json")
    assert len(shown.json["points"]) == 2


def test_both_ip_versions_are_points_of_their_own(evenhand: Run, measure: Measure) -> None:
    measure(0, 640_000)
    measure(101, 600_000)
    document = evenhand("trend", "runs", "--json").json
    assert [point["plan"] for point in document["points"]] == ["gateway-v4", "gateway-v6"]
    assert [[value["statistics"] is None for value in point["values"]] for point in document["points"]] == [
        [False, True],
        [True, False],
    ]


def test_the_reference_describes_every_key_of_the_document(evenhand: Run, measure: Measure) -> None:
    for number, fps in enumerate([640_000] * 4 + [560_000] * 3):
        measure(number, fps)
    document = evenhand("trend", "runs", "--json").json
    point = document["points"][0]
    parts: dict[str, Any] = {
        "": document.keys() - {"command", "error"},
        "runs[]": document["runs"][0],
        "points[]": point,
        # Only of trials that were judged by their clean time (test_time_left_out.py).
        "points[].values[]": {**point["values"][0], "time_left_out": {}},
        "points[].levels[]": point["levels"][0],
    }
    told: dict[str, set[str]] = {place: set() for place in parts}
    text = (ROOT / "docs" / "reference" / "trend.md").read_text()
    of_document, of_change = text.split("## A change")
    for name in re.findall(r"^- `([^`]+)`", of_document, re.MULTILINE):
        place, _, key = name.rpartition(".")
        told[place].add(key)
    (of_suite,) = re.findall(r"^- `points\[\]\.suite`.*", of_document, re.MULTILINE)
    told["points[]"] |= set(re.findall(r" `(\w+)`", of_suite))
    assert told == {place: set(part) for place, part in parts.items()}
    # Here the changes are a point's own, without its place.
    changes = {"point", *point["changes"][0]}
    assert set(re.findall(r"^- `([^`]+)`", of_change, re.MULTILINE)) == changes
    assert changes == set(document["changes"][0])
