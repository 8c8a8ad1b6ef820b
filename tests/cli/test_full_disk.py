# SPDX-License-Identifier: Apache-2.0
"""A disk that is full before the run is over: an error of three lines, and no trial is lost that was
measured."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.run import read_record, read_run
from tests.preloaded.commands import evenhand_command
from tests.run.foreign import make_another_run, rich_record, write_record

Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")
NEEDS_MOUNT = pytest.mark.skipif(os.geteuid() != 0, reason="to mount a small file system needs root")
ROOM_OCTETS = 140 * 1024
"""For the tables, the description of the search, and some trials."""
ROOM_OF_NO_TRIAL = 68 * 1024
WIDE = "160"
"""Columns: a trial is one line."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM_OCTETS}", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def evenhand(*arguments: str | Path, file_limit: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.run(
        [*evenhand_command(), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=limit,
        env={**os.environ, "COLUMNS": WIDE},
    )


def assert_nothing_is_lost(ended: subprocess.CompletedProcess[str], run: Path) -> None:
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    assert [line.split(":")[0] for line in ended.stderr.splitlines()[-3:]] == ["Error", "Where", "Next"]
    assert "cannot be stored any further" in ended.stderr
    assert ended.stdout == ""
    (search,) = read_run(run).searches
    stored = len(search.trials)
    shown = re.findall(r"^ *(\d+) +[\d,]+ +[\d.]+ +(?:PASS|FAIL|INVALID)", ended.stderr, re.MULTILINE)
    # The one that found no room is shown as well.
    assert [int(number) for number in shown] == list(range(1, stored + 2))
    assert stored >= 1
    assert f"stored in {run}." in ended.stderr
    assert "Outcome: stopped before the end. Highest load passed:" in ended.stderr


def test_a_search_on_a_file_that_may_not_grow_ends_with_its_table(
    engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """D11."""
    engine_playing("simulated-640000---500")
    run = tmp_path / "a.evenhand"
    assert_nothing_is_lost(evenhand("throughput", testbed, *QUICK, "--run", run, file_limit=ROOM_OCTETS), run)


@pytest.mark.thorough
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="to mount a small file system needs root")
def test_a_search_on_a_full_disk_ends_with_its_table(
    engine_playing: Play, testbed: Path, small_disk: Path
) -> None:
    """D11."""
    engine_playing("simulated-640000---500")
    run = small_disk / "a.evenhand"
    full = evenhand("throughput", testbed, *QUICK, "--run", run)
    assert_nothing_is_lost(full, run)
    assert full.stderr.splitlines()[-1].startswith("Next: Free some space")
    # How much the trial that found no room has left free depends on its size.
    with suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
        while rest.write(bytes(4096)):
            pass
    begun = evenhand("throughput", testbed, *QUICK, "--run", small_disk / "b.evenhand")
    assert begun.returncode == 3
    assert begun.stderr.splitlines()[-1].startswith("Next: Free some space")


def test_a_trial_that_finds_no_room_is_shown_in_full(
    engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000---500")
    run = tmp_path / "a.evenhand"
    ended = evenhand(
        "trial", testbed, "--rate", "1kfps", "--duration", "1s", "--run", run, file_limit=ROOM_OF_NO_TRIAL
    )
    assert ended.returncode == 3, ended.stderr
    assert "Trial 1: PASS" in ended.stderr
    assert "forwarding rate" in ended.stderr
    assert "No trial is stored." in ended.stderr
    assert "cannot be stored any further" in ended.stderr
    assert not run.exists()


def test_a_run_that_cannot_even_begin_leaves_no_file(
    engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000---500")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--run", run, "--json", file_limit=4096)
    assert ended.returncode == 3
    assert json.loads(ended.stdout)["error"]["id"] == "run.not-storable"
    assert not run.exists()
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.root
def test_a_picture_that_does_not_fit_leaves_no_half_of_one(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (ROOM_OCTETS - 8192))
    ended = evenhand("predict", "gateway-v4", "--picture", small_disk / "series.svg", "--json")
    assert ended.returncode == 3
    assert json.loads(ended.stdout)["error"]["id"] == "base.file-not-writable"
    assert not (small_disk / "series.svg").exists()


CAMPAIGN = """
name = "full"
testbed = "testbed.toml"
seed = 7

[[suite]]
name = "many"
hosts = [1, 2, 4, 8]
repetitions = 2
maximum-rate = "1Mfps"
duration = "1s"
final-duration = "2s"
precision = "5%"
waits = "short"
one-pair-first = false
"""


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Nothing more fits in but so much."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    os.truncate(filler, max(0, filler.stat().st_size - leave))
    return filler


def assert_is_said(ended: subprocess.CompletedProcess[str], identity: str) -> None:
    """What is wrong, and what to do, in three lines."""
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    assert [line.split(":")[0] for line in ended.stderr.splitlines()[-3:]] == ["Error", "Where", "Next"]
    assert "No space left on device" in ended.stderr or "disk is full" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("Next: Free some space"), identity


@pytest.mark.thorough
@pytest.mark.root
@NEEDS_MOUNT
def test_a_campaign_on_a_full_disk_goes_on_once_there_is_room(
    engine_playing: Play, testbed: Path, small_disk: Path
) -> None:
    """D11: what was measured is in the file, and nothing is measured twice."""
    engine_playing("simulated-640000---500")
    campaign, run = testbed.with_name("full.toml"), small_disk / "full.evenhand"
    campaign.write_text(CAMPAIGN)
    full = evenhand("run", campaign, "--run", run, "--no-html")
    assert_is_said(full, "run.not-storable")
    before = trials_of(run)
    assert before
    subprocess.run(["mount", "-o", "remount,size=16M", small_disk], check=True)
    resumed = evenhand("run", campaign, "--run", run, "--no-html", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    record = read_record(run)
    assert [len(point.values) for point in record.points] == [2] * 4
    assert trials_of(run)[: len(before)] == before


def trials_of(run: Path) -> list[Any]:
    return [
        trial.result.raw
        for point in read_record(run).points
        for repetition in point.repetitions
        for search in repetition.searches
        for trial in search.trials
    ]


@pytest.mark.thorough
@pytest.mark.root
@NEEDS_MOUNT
@pytest.mark.parametrize("leave", [0, 16 * 1024], ids=["no room", "room for a part"])
@pytest.mark.parametrize("verb", ["run", "merge", "report", "trend", "compare", "export"])
def test_a_file_that_does_not_fit_is_not_left_in_part(
    engine_playing: Play, testbed: Path, tmp_path: Path, small_disk: Path, verb: str, leave: int
) -> None:
    one, other = (
        write_record(tmp_path / "a.evenhand", rich_record()),
        make_another_run(write_record(tmp_path / "b.evenhand", rich_record())),
    )
    contents = [each.read_bytes() for each in (one, other)]
    new = small_disk / "new"
    commands: dict[str, tuple[str | Path, ...]] = {
        "run": ("run", testbed.with_name("full.toml"), "--run", new.with_suffix(".evenhand"), "--no-html"),
        "merge": ("merge", one, other, "--run", new.with_suffix(".evenhand")),
        "report": ("report", one, "--output", new.with_suffix(".html")),
        "trend": ("trend", one, other, "--anyway", "--html", new.with_suffix(".html")),
        "compare": ("compare", one, "--against", other, "--anyway", "--html", new.with_suffix(".html")),
        "export": ("export", one, "--format", "json", "--output", new.with_suffix(".json")),
    }
    testbed.with_name("full.toml").write_text(CAMPAIGN)
    engine_playing("simulated-640000---500")
    filler = fill(small_disk, leave=leave)
    assert_is_said(evenhand(*commands[verb]), verb)
    assert [path.name for path in small_disk.iterdir()] == [filler.name]
    assert [each.read_bytes() for each in (one, other)] == contents


@pytest.mark.thorough
@pytest.mark.root
@NEEDS_MOUNT
def test_a_page_that_does_not_fit_leaves_the_older_one(tmp_path: Path, small_disk: Path) -> None:
    run, page = write_record(tmp_path / "a.evenhand", rich_record()), small_disk / "a.html"
    subprocess.run(["mount", "-o", "remount,size=16M", small_disk], check=True)
    assert evenhand("report", run, "--output", page).returncode == 0
    older = page.read_bytes()
    fill(small_disk)
    assert_is_said(evenhand("report", run, "--output", page), "report")
    assert page.read_bytes() == older
    assert sorted(path.name for path in small_disk.iterdir()) == ["a.html", "filler"]
