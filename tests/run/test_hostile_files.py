# SPDX-License-Identifier: Apache-2.0
"""Run files come by mail: whatever a file is, reading it gives what is in it or a refusal, ends, and changes
nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import RequestError
from evenhand.run import RunStore, open_to_read, read_record, read_run
from evenhand.run.run_file import VERSION
from evenhand.run.snapshot import MAX_BYTES_IN_PLACE
from tests.errors import raises
from tests.run.hostile import change, change_json, contents, write_run
from tests.run.test_store import _KILLED

MOST_S = 60
RECURSIVE = (
    "CREATE VIEW {} AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT {} FROM n"
)
SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture(autouse=True)
def _nothing_is_endless() -> Iterator[None]:
    """The signal's default ends pytest itself: SQLite does not look at Python's handlers."""
    signal.alarm(MOST_S)
    yield
    signal.alarm(0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "a.evenhand")


def assert_refused(path: Path, match: str, code: str = "run.not-a-run") -> None:
    before = contents(path.parent)
    for read in (read_run, read_record):
        with raises(code, match=match) as refused:
            read(path)
        assert str(path) in refused.value.where or "this run" in refused.value.what
    assert contents(path.parent) == before


@pytest.mark.parametrize(
    "name",
    [
        "run#1.evenhand",
        "what?.evenhand",
        "a%41.evenhand",
        "100%.evenhand",
        "file:x?mode=rw.evenhand",
        ":memory:",
        " a",
        "a\nb",
        b"\xff\xfe",
    ],
)
def test_a_name_is_only_a_name(tmp_path: Path, name: str | bytes) -> None:
    """`run#1.evenhand` made a file `run`; `?` and `%` read another one."""
    folder = tmp_path / "mail"
    folder.mkdir()
    path = folder / os.fsdecode(name)
    write_run(tmp_path / "a.evenhand").rename(path)
    (folder / "aA.evenhand").write_bytes(b"the one that a%41 must not be")
    before = contents(folder)
    assert read_run(path).searches[0].name == "a"
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("statements", "match"),
    [
        (["ALTER TABLE trials DROP COLUMN verdict"], "table trials "),
        (["ALTER TABLE run ADD COLUMN more TEXT"], "table run "),
        (["DROP TABLE run"], "table run "),
        (["DROP TABLE trials", RECURSIVE.format("trials", "id, 1 AS search_id")], "table trials "),
        ([RECURSIVE.format("more", "id")], "view more "),
        (["CREATE TRIGGER t AFTER INSERT ON trials BEGIN SELECT 1; END"], "trigger t "),
        (["CREATE INDEX i ON trials (abs(number))"], "index i "),
        (["CREATE TABLE x (a, b AS (hex(zeroblob(1000000))))"], "table x "),
        (["CREATE VIRTUAL TABLE f USING fts5(a)"], "table f "),
        (
            [
                "DROP TABLE searches",
                "CREATE TABLE searches (id INTEGER PRIMARY KEY, name AS (hex(zeroblob(9))))",
            ],
            "table searches ",
        ),
        (
            [
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = 'CREATE TABLE run (' WHERE name = 'run'",
            ],
            "malformed",
        ),
        (
            ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 3 WHERE name = 'run'"],
            "damaged|malformed",
        ),
        (["PRAGMA application_id = 7"], "this database "),
        (["PRAGMA journal_mode = WAL"], "write-ahead log"),
    ],
)
def test_tables_that_evenhand_did_not_make_are_refused(run: Path, statements: list[str], match: str) -> None:
    assert_refused(change(run, *statements), match)


def test_an_empty_run_is_refused(run: Path) -> None:
    assert_refused(change(run, "DELETE FROM run"), "", "run.interrupted-before-it-began")


@pytest.mark.parametrize("version", [-1, 0, VERSION + 1, 2**31 - 1])
def test_a_run_of_another_format_version_is_refused_with_both_versions(run: Path, version: int) -> None:
    """D11: nothing is guessed of it, and it is left as it is."""
    changed = change(run, f"PRAGMA user_version = {version}")
    before = changed.read_bytes()
    assert_refused(changed, f"version {version}, .* version {VERSION}", "run.other-format-version")
    with pytest.raises(RequestError) as refusal:
        RunStore.resume(changed, command=["evenhand", "run", "--resume"])
    assert refusal.value.code == "run.other-format-version"
    assert changed.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "value", "match"),
    [
        ("UPDATE searches SET seed = ?", str(2**64), f"'{2**64}'"),
        ("UPDATE searches SET seed = ?", "-1", "'-1'"),
        ("UPDATE searches SET seed = ?", "\u0661", "'\u0661'"),
        ("UPDATE searches SET frame_size = ?", "big", "searches.frame_size .*INTEGER"),
        ("UPDATE searches SET name = ?", b"\0\1", "searches.name .*TEXT"),
        ("UPDATE trials SET loss_ratio = ?", 9e999, "trials.loss_ratio .*inf"),
        ("UPDATE trials SET document = ?", "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("UPDATE trials SET document = ?", "[" * 40 + "]" * 40, "nested too deeply"),
        ("UPDATE trials SET document = ?", "[1]", "trials.document .*JSON object"),
        ("UPDATE trials SET document = ?", "{}", "'contract'"),
        ("UPDATE trials SET document = ?", "not JSON", "trials.document .*Expecting value"),
        ("UPDATE trials SET document = ?", '{"a": NaN}', "document .*: NaN "),
        ("UPDATE run SET host = ?", '{"a": -Infinity}', "run.host .*: -Infinity "),
        ("UPDATE run SET host = ?", '{"a": 1e999}', "run.host .*: 1e999 "),
        ("UPDATE run SET host = ?", '{"a": 1' + "0" * 5000 + "}", "5001 digits"),
        ("UPDATE run SET host = ?", r'{"a": "\ud800"}', "surrogates not allowed"),
        ("UPDATE run SET host = ?", "[" + "0," * 10**6 + "0]", "too many values"),
        ("UPDATE run SET command = ?", '{"a": 1}', "run.command "),
        ("UPDATE searches SET role = ?", "any", "'any' .*Role"),
        ("UPDATE run SET versions = ?", '{"evenhand": 1}', "versions "),
        ("UPDATE run SET host = ?", '"' + "x" * 2**24 + '"', "too big|too long"),
    ],
)
def test_values_that_cannot_be_are_refused(run: Path, statement: str, value: object, match: str) -> None:
    assert_refused(change(run, statement, values=(value,)), match)


@pytest.mark.parametrize(
    ("statement", "value", "match"),
    [
        ("UPDATE points SET imix = ?", "imix:no", "'n'"),
        ("UPDATE points SET procedure = ?", "trial", "'throughput/a'"),
        ("UPDATE points SET repetitions = ?", 0, "'throughput/a'"),
        ("UPDATE points SET document = ?", "{}", "'number'"),
        ("UPDATE run SET merged_from = ?", "{}", "run.merged_from "),
    ],
)
def test_points_that_cannot_be_are_refused(run: Path, statement: str, value: object, match: str) -> None:
    change(run, statement, values=(value,))
    with raises("run.not-a-run", match=match):
        read_record(run)


@pytest.mark.parametrize(
    ("keys", "value", "match"),
    [
        (("intended_fps",), "nan", "'nan'"),
        (("intended_fps",), True, ": True "),
        (("intended_duration_s",), 0, "trial 1 .*no frames"),
        (("directions",), {}, "directions are"),
        (("directions", "forward", "offered_frames"), -1, "offered_frames is -1,"),
        (("directions", "forward", "offered_frames"), 10**19, f"forward: .*{10**19} "),
        (("directions", "forward", "latency"), None, "NoneType"),
        (("verdict",), "MAYBE", "MAYBE"),
        (("contract",), 2, "contract 2"),
        (("reasons",), [{"code": "x"}], "'text'"),
    ],
)
def test_trials_that_the_engine_cannot_have_written_are_refused(
    run: Path, keys: tuple[str, ...], value: Any, match: str
) -> None:
    """A verdict that its own counts contradict must never become a number of a DUT."""

    def edit(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    assert_refused(change_json(run, "trials.document", edit), match)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nowhere").symlink_to("gone")
    for path, code in (
        (tmp_path / "fifo", "run.not-a-file"),
        (tmp_path, "run.not-a-file"),
        (Path("/dev/zero"), "run.not-a-file"),
        (tmp_path / "circle", "run.no-such-file"),
        (tmp_path / "nowhere", "run.no-such-file"),
        (tmp_path / "a\0b", "run.no-such-file"),
    ):
        with raises(code):
            read_run(path)


def test_a_link_to_a_run_is_that_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run)
    assert read_run(tmp_path / "link").searches


def test_a_file_that_is_too_large_is_not_read(run: Path) -> None:
    os.truncate(run, MAX_BYTES_IN_PLACE + 1)
    with raises("run.not-a-run", match=f" {MAX_BYTES_IN_PLACE + 1} .*{MAX_BYTES_IN_PLACE} "):
        read_run(run)


def test_pages_that_lead_in_a_circle_end(run: Path) -> None:
    """SQLite would go round for ever, or through more pages than there are atoms."""
    with closing(sqlite3.connect(run)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'trials'").fetchone()
        (octets,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(run.read_bytes())
    page = bytearray(octets)
    cells = 400
    page[0:12] = (
        bytes([5, 0, 0])
        + cells.to_bytes(2, "big")
        + (octets - 8 * cells).to_bytes(2, "big")
        + b"\0"
        + root.to_bytes(4, "big")
    )
    for n in range(cells):
        at = octets - 8 * (n + 1)
        page[12 + 2 * n : 14 + 2 * n] = at.to_bytes(2, "big")
        page[at : at + 5] = root.to_bytes(4, "big") + bytes([min(n, 127)])
    content[(root - 1) * octets : root * octets] = page
    run.write_bytes(content)
    assert_refused(run, "damaged|malformed")


@pytest.mark.parametrize("reader", [read_run, read_record])
def test_a_journal_of_a_killed_writer_is_rolled_back_in_a_copy(tmp_path: Path, reader: Any) -> None:
    """D11: what was committed is read, and the writer finds its files as it left them."""
    path = tmp_path / "killed.evenhand"
    subprocess.run([sys.executable, "-c", _KILLED, path, "5", "within"], check=False)
    before = contents(tmp_path)
    assert set(before) == {"killed.evenhand", "killed.evenhand-journal"}
    assert reader(path)
    assert [t.number for t in read_run(path).searches[0].trials] == [1, 2, 3, 4, 5]
    assert contents(tmp_path) == before


def test_no_file_that_a_journal_names_is_touched(tmp_path: Path) -> None:
    """SQLite deletes the super-journal that a journal names, once it has rolled back: any file at all."""
    path = tmp_path / "killed.evenhand"
    subprocess.run([sys.executable, "-c", _KILLED, path, "2", "within"], check=False)
    precious = tmp_path / "precious"
    precious.write_bytes(b"no journal at all")
    name = os.fsencode(precious)
    with (tmp_path / "killed.evenhand-journal").open("ab") as journal:
        record = (0x40000000 // 4096 + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
        journal.write(record + sum(name).to_bytes(4, "big") + SUPER_JOURNAL)
    assert_refused(path, f"{path.name}-journal ")
    assert precious.read_bytes() == b"no journal at all"


def test_what_lies_beside_is_not_trusted(run: Path, tmp_path: Path) -> None:
    beside = tmp_path / "a.evenhand-wal"
    beside.write_bytes(b"x" * 100)
    assert_refused(run, "a.evenhand-wal ")
    beside.unlink()
    os.mkfifo(tmp_path / "a.evenhand-journal")
    assert_refused(run, "a.evenhand-journal ")
    (tmp_path / "a.evenhand-journal").unlink()
    (tmp_path / "a.evenhand-journal").write_bytes(bytes.fromhex("d9d505f920a163d7") + b"\xff" * 600)
    before = contents(tmp_path)
    with suppress(RequestError):  # SQLite may take it for one that has no record
        read_run(run)
    assert contents(tmp_path) == before


@pytest.mark.thorough
def test_a_run_is_read_while_it_is_written_and_keeps_no_lock(run: Path) -> None:
    """Whoever looks at a run must not end it: a writer waits for five seconds only."""
    with closing(sqlite3.connect(run, timeout=0, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE searches SET name = 'not yet'")
        with open_to_read(run) as tables:
            writer.execute("COMMIT")
            assert [row["name"] for row in tables.rows("searches")] == ["a"]
        assert read_run(run).searches[0].name == "not yet"
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN EXCLUSIVE")
        with raises("run.file-not-readable", match="locked"):
            read_run(run)


def test_a_reader_can_only_read(run: Path) -> None:
    with open_to_read(run) as tables:
        for statement in (
            "DELETE FROM trials",
            "ATTACH '/tmp/x' AS x",
            "SELECT hex(document) FROM trials",
            "PRAGMA writable_schema = ON",
            "CREATE TABLE x (a)",
            "SELECT load_extension('x')",
        ):
            with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|prohibited|readonly"):
                tables._connection.execute(statement)


def test_an_unknown_table_cannot_be_asked_for(run: Path) -> None:
    with raises("run.not-a-run", match="sqlite_master"), open_to_read(run) as tables:
        tables.rows("sqlite_master")
