# SPDX-License-Identifier: Apache-2.0
"""A run file with a text of millions of letters, which may come from anybody: no verb floods a terminal with
it, and none computes for minutes; exports have it whole."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.base.errors import LONGEST_SHOWN, shortened
from tests.cli.running import run_here
from tests.run.foreign import make_another_run, rich_record, write_record

LONG = "x" * 300_000
MOST_OUTPUT = 60_000
COLUMNS = (
    *("run.created_at", "run.finished_at", "campaign.name", "testbeds.name", "points.key", "points.suite"),
    *("points.reason", "repetitions.started_at", "repetitions.outcome", "repetitions.reason"),
    *("searches.name", "searches.outcome", "trials.purpose"),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("sound") / "a.evenhand", rich_record())


def test_a_long_text_says_how_long_it_is() -> None:
    assert shortened("x" * LONGEST_SHOWN) == "x" * LONGEST_SHOWN
    assert shortened(LONG, 3) == "xxx... (300,000 characters)"


@pytest.mark.parametrize("column", COLUMNS)
def test_a_long_text_of_a_run_file_is_shown_in_short(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    a, b = tmp_path / "a.evenhand", tmp_path / "b.evenhand"
    for path in (a, b):
        shutil.copy(sound, path)
    table, name = column.split(".")
    with closing(sqlite3.connect(a, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {table} SET {name} = ? WHERE id = 1", (LONG,))
    make_another_run(b)
    began_s = time.process_time()
    for command in (
        *(("show", a), ("show", a, "--point", "1"), ("status", a), ("compare", a, b), ("trend", b, a)),
        ("merge", a, b, "--run", tmp_path / "both.evenhand"),
    ):
        ended = run_here(command, capsys)
        assert ended.code in (0, 1, 2), ended.failure
        assert len(ended.out) + len(ended.err) < MOST_OUTPUT, command[0]
    assert time.process_time() - began_s < 30
    if table == "trials":
        assert LONG in run_here(("export", a, "--format", "csv", "--table", "trials"), capsys).out
