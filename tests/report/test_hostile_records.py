# SPDX-License-Identifier: Apache-2.0
"""Files that are damaged, or made, at random: each is read and shown in every form, or refused; nothing else
happens."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from evenhand.base.errors import HostError, RequestError
from evenhand.report.campaign_document import export_document, summary_document
from evenhand.report.page_head import dut_line, headline_figures
from evenhand.report.show import campaign_report, point_report
from evenhand.report.summary import to_summary_csv, to_summary_latex, to_summary_markdown
from evenhand.report.table_files import to_csv
from evenhand.report.uti import uti_documents
from evenhand.run import read_record
from tests.run.hostile import change, change_json, contents, write_run

EXAMPLES = int(os.environ.get("EVENHAND_FUZZ_FILES", "60"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
DANGEROUS = "\x1b]0;owned\x07\x9b31m[red]x[/]\u202egnp\r\n\x00=cmd|' /C calc'!A0"
JSON_COLUMNS = (
    "run.command",
    "run.versions",
    "run.host",
    "searches.plan",
    "searches.setup",
    "searches.goal",
    "searches.result",
    "trials.document",
    "sessions.command",
    "sessions.notes",
    "testbeds.document",
    "points.document",
    "repetitions.result",
)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([DANGEROUS, 10**19, -1, 1e308, "nan"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6) | st.just(DANGEROUS), inner, max_size=3)
    ),
    max_leaves=6,
)


def show_everything(path: Path, width: int = 80) -> str:
    """Through every way out; what a person would see."""
    record = read_record(path)
    shown = StringIO()
    console = Console(file=shown, width=width, highlight=False, color_system=None)
    for part in campaign_report(record):
        console.print(part)
    for point in record.points:
        for part in point_report(record, point):
            console.print(part)
        json.dumps(summary_document(record, points=[point]), allow_nan=False)
    json.dumps(summary_document(record), allow_nan=False)
    json.dumps(export_document(record), allow_nan=False)
    for table in ("points", "repetitions", "trials"):
        shown.write(to_csv(record, table))
    for summary in (to_summary_csv, to_summary_latex, to_summary_markdown):
        shown.write(summary(record))
    assert all(isinstance(line, str) for line in (dut_line(record), *headline_figures(record)))
    with suppress(ValueError, TypeError, AttributeError):  # the verb makes a RequestError of it
        for document in uti_documents(record):
            json.dumps(document, allow_nan=False)
    return shown.getvalue()


class Content(bytes):
    """The content of a file; a test that fails does not print all of it."""

    def __repr__(self) -> str:
        return f"<{len(self)} octets>"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Content:
    return Content(write_run(tmp_path_factory.mktemp("sound") / "a.evenhand").read_bytes())


@FUZZ
@given(data=st.data())
def test_a_file_with_wrong_octets_is_shown_or_refused(
    sound: Content, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("octets")
    content = bytearray(sound)
    page = st.integers(0, len(sound) // 4096 - 1).flatmap(lambda n: st.integers(n * 4096, n * 4096 + 150))
    for at in data.draw(st.lists(page | st.integers(0, len(sound) - 1), min_size=1, max_size=20)):
        content[at] = data.draw(st.integers(0, 255))
    path = folder / "a.evenhand"
    path.write_bytes(content[: data.draw(st.sampled_from([len(sound)] * 5 + [4096, 5000, 99]))])
    before = contents(folder)
    with suppress(RequestError, HostError):
        show_everything(path)
    assert contents(folder) == before


@FUZZ
@given(column=st.sampled_from(JSON_COLUMNS), data=st.data())
def test_a_file_with_other_values_is_shown_or_refused(
    sound: Content, tmp_path_factory: pytest.TempPathFactory, column: str, data: st.DataObject
) -> None:
    """A value anywhere in any of its JSON is another one, or gone."""
    path = tmp_path_factory.mktemp("values") / "a.evenhand"
    path.write_bytes(sound)

    def edit(value: Any) -> Any:
        if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 4)) == 0:
            return data.draw(ANY_JSON)
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(value, dict) and data.draw(st.integers(0, 5)) == 0:
            del value[key]
        else:
            value[key] = edit(value[key])
        return value

    change_json(path, column, edit, where="id = 1")
    try:
        shown = show_everything(path)
    except RequestError:
        return
    assert_harmless(shown)


def assert_harmless(shown: str) -> None:
    assert not {"\x1b", "\x9b", "\x07", "\r", "\0", "\u202e"} & set(shown)


@pytest.mark.parametrize(
    "column",
    [
        "run.created_at",
        "run.finished_at",
        "searches.name",
        "searches.kind",
        "searches.outcome",
        "trials.purpose",
        "points.key",
        "points.suite",
        "repetitions.started_at",
        "repetitions.outcome",
        "repetitions.reason",
        "repetitions.testbed",
        "testbeds.name",
    ],
)
def test_texts_do_nothing_to_a_terminal(tmp_path: Path, column: str) -> None:
    """Escape sequences, marks that turn the order of letters, Rich's markup, formulas of spreadsheets."""
    table, name = column.split(".")
    run = write_run(tmp_path / "a.evenhand")
    change(run, f"UPDATE {table} SET {name} = ?", values=(DANGEROUS.replace("\0", ""),))
    shown = show_everything(run, width=300)
    assert_harmless(shown)
    assert "\\x1b]0;owned\\x07\\x9b31m[red]x[/]\\u202egnp\\r\\n" in shown


def test_texts_inside_json_do_nothing_either(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.evenhand")
    change_json(
        run, "searches.setup", lambda setup: {**setup, "name": DANGEROUS, "dut": {DANGEROUS: DANGEROUS}}
    )
    change_json(
        run, "trials.document", lambda trial: {**trial, "reasons": [{"code": DANGEROUS, "text": DANGEROUS}]}
    )
    for column in ("run.command", "sessions.command"):
        change_json(run, column, lambda _: ["evenhand", DANGEROUS])
    change_json(run, "testbeds.document", lambda facts: {**facts, "dut": {DANGEROUS: DANGEROUS}})
    change_json(run, "points.document", lambda point: {**point, "goal": {DANGEROUS: DANGEROUS}})
    change_json(run, "searches.goal", lambda goal: {**goal, DANGEROUS: DANGEROUS})
    shown = show_everything(run, width=300)
    assert_harmless(shown)
    assert shown.count("[red]x[/]") > 8


def test_a_formula_is_a_text_in_csv(tmp_path: Path) -> None:
    run = change(write_run(tmp_path / "a.evenhand"), "UPDATE trials SET purpose = ?", values=("=1+1",))
    assert ",'=1+1," in to_csv(read_record(run), "trials")


def test_the_file_of_these_tests_is_a_sound_one(sound: Content, tmp_path: Path) -> None:
    """Else every refusal above would be of the same thing."""
    path = tmp_path / "a.evenhand"
    path.write_bytes(sound)
    assert "640" in show_everything(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM trials").fetchone()[0] > 5
