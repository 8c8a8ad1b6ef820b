# SPDX-License-Identifier: Apache-2.0
"""`evenhand show`: what is in a run file, at 80 columns, down to each trial; and as one document."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from evenhand.report.show import campaign_report, point_report
from evenhand.run import read_record
from evenhand.run.run_file import campaign_locked
from tests.cli.running import Ended
from tests.cli.test_json_documents import validate
from tests.run.hostile import write_run

Run = Callable[..., Ended]
Play = Callable[[str], Path]


@pytest.fixture
def table_run(evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path) -> Path:
    """Two sizes, two repetitions, both IP versions' sizes."""
    engine_playing("simulated-640000")
    run = tmp_path / "sizes.evenhand"
    ended = evenhand(
        "throughput",
        testbed,
        "--maximum-rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        "--waits",
        "short",
        "--frame-size",
        "64,1518",
        "--repetitions",
        "2",
        "--run",
        run,
    )
    assert ended.code == 0, ended.err
    return run


def at_80(parts: Iterable[RenderableType]) -> str:
    shown = StringIO()
    console = Console(file=shown, width=80, highlight=False, color_system=None)
    for part in parts:
        console.print(part)
    return shown.getvalue()


def test_points_and_their_figures_are_shown(evenhand: Run, table_run: Path) -> None:
    ended = evenhand("show", table_run)
    assert ended.code == 0, ended.err
    for word in (
        "sizes.evenhand",
        "a single run",
        "evenhand throughput",
        "throughput in fps",
        "gateway-v4",
        "PASS",
        "measured",
        "2/2",
        "1518",
    ):
        assert word in ended.out or word == "evenhand throughput"
    record = read_record(table_run)
    for point in record.points:
        for value in point.values:
            assert f"{round(value):,}" in ended.out


def test_nothing_is_cut_at_80_columns(table_run: Path) -> None:
    """A number that is cut is a wrong number."""
    record = read_record(table_run)
    shown = at_80(campaign_report(record)) + at_80(point_report(record, record.points[1]))
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    for point in record.points:
        assert all(f"{round(value):,}" in shown for value in point.values)
        assert f"{len(point.values)}/{point.point.repetitions}" in shown


def test_who_measures_a_run_is_told_and_that_nobody_does(table_run: Path) -> None:
    record = replace(read_record(table_run), finished_at=None)
    shown = " ".join(at_80(campaign_report(record)).split())
    assert "not finished: interrupted, or measured on another machine" in shown
    with campaign_locked(table_run):
        shown = " ".join(at_80(campaign_report(record)).split())
    assert f"not finished: being measured by process {os.getpid()}" in shown


def test_one_point_is_shown_down_to_its_trials(evenhand: Run, table_run: Path) -> None:
    record = read_record(table_run)
    by_number, by_key = (
        evenhand("show", table_run, "--point", name) for name in ("2", record.points[1].point.key)
    )
    assert by_number.code == 0
    assert by_number.out == by_key.out
    for repetition in record.points[1].repetitions:
        assert f"seed {repetition.seed};" in by_number.out
        for search in repetition.searches:
            for trial in search.trials:
                assert re.search(
                    rf"{trial.number} +{round(trial.result.intended_fps):,}.* {trial.result.verdict}",
                    by_number.out,
                )
                assert all(reason.code in by_number.out for reason in trial.result.reasons)


@pytest.mark.parametrize("name", ["0", "3", "-1", "64", "1.5", "nonsense", "9" * 30])
def test_a_point_that_is_not_there_is_a_bad_request(evenhand: Run, table_run: Path, name: str) -> None:
    ended = evenhand("show", table_run, f"--point={name}")
    assert ended.code == 2
    assert ended.out == ""
    assert (ended.error.code, ended.error.where) == ("cli.no-such-point", "--point")


def test_a_run_that_goes_on_says_so(evenhand: Run, tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.evenhand")
    with closing(sqlite3.connect(run, isolation_level=None)) as connection:
        connection.execute("UPDATE run SET finished_at = NULL")
        for table in ("searches", "repetitions"):
            connection.execute(f"UPDATE {table} SET finished_at = NULL, outcome = NULL, result = NULL")
    ended = evenhand("show", run)
    assert "not finished" in ended.out
    assert "unfinished" in ended.out


def test_a_single_trial_is_shown_although_it_is_no_point(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    run = tmp_path / "trial.evenhand"
    assert (
        evenhand(
            "trial", testbed, "--rate", "700kfps", "--duration", "1s", "--waits", "short", "--run", run
        ).code
        == 0
    )
    ended = evenhand("show", run)
    assert ended.code == 0
    assert "700,000" in ended.out
    assert "FAIL" in ended.out
    assert evenhand("show", run, "--point", "1").code == 2


def test_a_loss_that_was_allowed_stands_beside_pass(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    for ratio, count in (("50%", 1), ("0", 0)):
        run = tmp_path / f"{count}.evenhand"
        evenhand(
            "trial",
            testbed,
            "--rate",
            "1kfps",
            "--duration",
            "1s",
            "--waits",
            "short",
            "--loss-ratio",
            ratio,
            "--run",
            run,
        )
        assert evenhand("show", run).out.count("PASS (a loss ratio of at most 50 % was allowed)") == count


def test_the_document_is_as_the_schema_says(evenhand: Run, table_run: Path) -> None:
    document = evenhand("show", table_run, "--json").json
    validate(document)
    assert document["command"] == "show"
    assert [point["frame_size"] for point in document["points"]] == [64, 1518]
    assert "repetitions" not in document["points"][0]
    chosen = evenhand("show", table_run, "--point", "2", "--json").json
    validate(chosen)
    assert [point["number"] for point in chosen["points"]] == [2]
    trials = chosen["points"][0]["repetitions"][0]["searches"][0]["trials"]
    assert {trial["verdict"] for trial in trials} <= {"PASS", "FAIL", "INVALID"}
    assert sum(document["trials"].values()) == sum(
        sum(point["trials"].values()) for point in document["points"]
    )


def test_a_file_that_is_no_run_is_three_lines(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "x.evenhand").write_text("hello")
    for name, code in (
        ("x.evenhand", "run.not-a-run"),
        ("none.evenhand", "run.no-such-file"),
        (".", "run.not-a-file"),
    ):
        ended = evenhand("show", tmp_path / name)
        assert (ended.code, ended.error.code) == (2, code)
        assert [line.split(":")[0] for line in ended.err.splitlines()] == ["Error", "Where", "Next"]
