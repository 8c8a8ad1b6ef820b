# SPDX-License-Identifier: Apache-2.0
"""Large run files: read where they lie, and their trials only when something of them is needed. Small ones
are read so here, since nothing depends on the size but the way."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.analysis import analyse
from evenhand.report.export_column import FlowPlace
from evenhand.report.flows import flow_places
from evenhand.report.page import render_page
from evenhand.run import CampaignRecord, StoredTrial, read_record
from evenhand.run import snapshot as snapshot_module
from evenhand.run.reading import open_to_read
from evenhand.run.unread_results import MOST_KEPT, TrialDocuments, UnreadResult, may_have, sought
from tests.errors import raises
from tests.report.test_flows import FLOW
from tests.run.goldens import GOLDENS, NAMES, copy_recorded, outputs_of, recorded_file
from tests.run.hostile import change, change_json, contents, write_run

DIGESTS = json.loads(GOLDENS.read_text(encoding="utf-8"))
PAGES = ("campaign-v4", "campaign-v6", "throughput-clean-time", "loss-v6", "recovery-v4", "pdv-v6")
LOSES = re.compile(r'"lost_frames":[1-9]')


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on every file is a large one."""
    return lambda: monkeypatch.setattr(snapshot_module, "COPIED_BYTES", 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run.evenhand")


def trials_of(record: CampaignRecord) -> list[StoredTrial]:
    return [trial for one in record.points for repetition in one.repetitions for trial in repetition.trials]


@pytest.mark.parametrize("name", NAMES)
def test_exports_are_those_of_a_small_file(name: str, large: Callable[[], None]) -> None:
    large()
    record = read_record(recorded_file(name))
    found = {output: hashlib.sha256(content).hexdigest() for output, content in outputs_of(record)}
    assert found == DIGESTS[name]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_that_of_a_small_file(name: str, large: Callable[[], None]) -> None:
    small = read_record(recorded_file(name))
    before = render_page(small, analyse(small))
    large()
    record = read_record(recorded_file(name))
    assert isinstance(trials_of(record)[0].result, UnreadResult)
    assert render_page(record, analyse(record)) == before


def test_every_part_of_a_trial_is_that_of_its_document(run: Path, large: Callable[[], None]) -> None:
    small = [trial.result for trial in trials_of(read_record(run))]
    large()
    unread = [trial.result for trial in trials_of(read_record(run))]
    assert len(small) == len(unread) > 5
    for expected, found in zip(small, unread, strict=True):
        assert isinstance(found, UnreadResult)
        parts = [*type(expected).__dataclass_fields__, "loss_ratio", "is_valid", "offered_fps", "sent_s"]
        assert [getattr(found, part) for part in parts] == [getattr(expected, part) for part in parts]
        assert may_have(found, LOSES) == any(each.lost_frames for each in expected.directions.values())
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        unread[0].nothing_of_the_kind  # type: ignore[attr-defined]  # noqa: B018


def _of_a_flow(document: dict[str, Any]) -> None:
    for counts in document["directions"].values():
        frames = {name: counts[name] for name in ("offered_frames", "received_frames", "lost_frames")}
        flow = {**FLOW, "name": "voice", "loss_at_most": None}
        counts["classes"] = [{"ip_version": 4, "frame_size": 64, **frames, "flow": flow}]


def test_flows_are_those_of_a_small_file(run: Path, large: Callable[[], None]) -> None:
    change_json(run, "trials.document", _of_a_flow, where="verdict = 'FAIL'")

    def found() -> list[list[FlowPlace]]:
        return [list(flow_places(trial.result)) for trial in trials_of(read_record(run))]

    small = found()
    assert {len(places) for places in small} == {0, 2}
    large()
    assert found() == small


def test_all_that_is_looked_for_in_documents_is_found_in_one_reading(
    run: Path, large: Callable[[], None]
) -> None:
    first, second = sought(r'"lost_frames":[1-9]'), sought(r'"corrupted_frames":[1-9]')
    large()
    with open_to_read(run) as tables:
        documents = tables.keep_documents()
        texts = dict(tables.tuples("trials", "id", "document")[1])
    assert isinstance(documents, TrialDocuments)
    for pattern in (first, second):
        expected = {row_id for row_id, text in texts.items() if pattern.search(text)}
        assert documents.with_text(pattern) == expected
        change(run, "UPDATE trials SET document = ''")  # nothing of it is read again
    assert documents.with_text(first)
    assert documents.with_text(re.compile("frames")) == frozenset()


def test_more_trials_than_are_kept_can_be_read_in_any_order(
    run: Path, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.run.unread_results.MOST_KEPT", 2)
    assert MOST_KEPT > 2
    large()
    results = [trial.result for trial in trials_of(read_record(run))]
    for result in (*results, *reversed(results)):
        assert {direction.loss_ratio for direction in result.directions.values()} == {result.loss_ratio}


def test_a_writer_does_not_wait_for_who_has_read(run: Path, large: Callable[[], None]) -> None:
    large()
    with open_to_read(run) as tables, closing(sqlite3.connect(run, timeout=0)) as writer:
        assert tables.is_large
        assert tables.rows("trials", "id")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute("UPDATE run SET finished_at = 'later'").connection.commit()
        writer.rollback()
    record = read_record(run)
    with closing(sqlite3.connect(run, timeout=0)) as writer:
        writer.execute("UPDATE run SET finished_at = 'later'").connection.commit()
    assert record.finished_at != "later"
    assert trials_of(record)[0].result.frame_size == 64


def test_another_thread_can_read_them(run: Path, large: Callable[[], None]) -> None:
    large()
    results = [trial.result for trial in trials_of(read_record(run))]
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(result.frame_size for result in results))
    thread.start()
    thread.join()
    assert found == [64] * len(results)


def test_nothing_beside_the_file_is_changed(run: Path, large: Callable[[], None]) -> None:
    large()
    before = contents(run.parent)
    assert [trial.result.raw for trial in trials_of(read_record(run))]
    assert contents(run.parent) == before


def _without_clock(document: dict[str, Any]) -> None:
    del document["clock"]


def _as_invalid(document: dict[str, Any]) -> None:
    document.update(verdict="INVALID", reasons=[{"code": "sender", "text": "late"}])


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda document: [document], "trials.document is not a JSON object"),
        (lambda document: document.update(directions={"forward": []}), "trials.document.directions.forward"),
        (_without_clock, "lacks 'clock'"),
        (_as_invalid, "contradicts its row"),
    ],
)
def test_a_document_is_checked_before_it_is_used(
    run: Path, large: Callable[[], None], edit: Callable[[Any], Any], match: str
) -> None:
    change_json(run, "trials.document", edit, where="verdict != 'INVALID'")
    large()
    results = [trial.result for trial in trials_of(read_record(run)) if trial.result.is_valid]
    for _ in range(2):
        with raises("run.not-a-run", match=match):
            results[0].directions  # noqa: B018


def test_a_trial_that_is_gone_meanwhile_is_no_trial(run: Path, large: Callable[[], None]) -> None:
    large()
    record = read_record(run)
    change(run, "DELETE FROM trials")
    with raises("run.not-a-run", match="has no document"):
        trials_of(record)[0].result.directions  # noqa: B018


def test_a_verdict_that_is_none_is_refused_at_once(run: Path, large: Callable[[], None]) -> None:
    large()
    with raises("run.not-a-run", match="PERHAPS"):
        read_record(change(run, "UPDATE trials SET verdict = 'PERHAPS'"))


def test_the_journal_of_a_killed_writer_is_rolled_back_in_a_copy(
    tmp_path: Path, large: Callable[[], None]
) -> None:
    """The copy is gone when its trials are read."""
    run = copy_recorded("throughput-v4", tmp_path / "killed.evenhand")
    count = len(trials_of(read_record(run)))
    with closing(sqlite3.connect(run, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")  # pages go to the file before the end
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE trials SET document = zeroblob(60000)")
        killed = {
            name: (tmp_path / name).read_bytes() for name in ("killed.evenhand", "killed.evenhand-journal")
        }
        writer.rollback()
    for name, content in killed.items():
        (tmp_path / name).write_bytes(content)
    large()
    before = contents(tmp_path)
    results = [trial.result for trial in trials_of(read_record(run))]
    assert [result.frame_size for result in results] == [64] * count
    assert contents(tmp_path) == before
