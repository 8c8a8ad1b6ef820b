# SPDX-License-Identifier: Apache-2.0
"""The list of a folder's runs: what is in it, what has become of each run, and what is kept of it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.run import RunStore
from evenhand.run.run_file import campaign_locked
from evenhand.serve import index as index_module
from evenhand.serve.index import VERSION, RunFacts, RunIndex, RunState, read_facts
from tests.run.goldens import copy_recorded
from tests.serve.served import recorded_folder, run_process, wait_until
from tests.serve.simulated_run import measure


def looked(folder: Path, cache: Path | None = None) -> RunIndex:
    found = RunIndex(folder=folder, cache=cache)
    found.refresh(is_forced=True)
    while found.unread:
        found.refresh()
    return found


def state_of_a(found: RunIndex) -> str:
    return str(found.entries["a.evenhand"].state)


def forged(runs: str) -> str:
    """An index with what no version of this program writes, and yet whole."""
    return json.dumps({"version": VERSION, "runs": [sha256(runs.encode()).hexdigest(), runs]})


def test_runs_are_listed_the_latest_first_with_dut_result_and_state(tmp_path: Path) -> None:
    found = looked(recorded_folder(tmp_path))
    begun = [entry.facts.created_at for entry in found.entries.values()]
    assert begun == sorted(begun, reverse=True)
    assert len(found.entries) == 5
    cut_short = found.entries["campaign-cut-short.evenhand"]
    assert cut_short.state is RunState.INTERRUPTED
    assert cut_short.facts.share is not None
    assert 0 < cut_short.facts.share < 1
    whole = found.entries["campaign-v6.evenhand"]
    assert (whole.state, whole.facts.points_done) == (RunState.FINISHED, whole.facts.point_count)
    assert whole.facts.dut == "testbed.toml"
    assert any(line.startswith("Not biased: ") for line in whole.facts.headlines)


def test_what_is_no_run_is_not_listed_or_says_why(tmp_path: Path) -> None:
    """A link is not followed, and no FIFO is waited for."""
    (tmp_path / "text.evenhand").write_text("no database")
    (tmp_path / ".hidden.evenhand").write_text("")
    (tmp_path / "other.txt").write_text("")
    (tmp_path / "link.evenhand").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo.evenhand")
    with suppress(OSError):
        (tmp_path / os.fsdecode(b"\xff.evenhand")).write_text("")
    found = looked(tmp_path)
    assert list(found.entries) == ["text.evenhand"]
    entry = found.entries["text.evenhand"]
    assert entry.state is RunState.UNREADABLE
    assert "not a database" in entry.facts.error


def test_a_run_that_is_measured_ends_or_is_killed(tmp_path: Path) -> None:
    """The state of a run is known while it is measured, and right after it was killed; IPv6 and IPv4."""
    (tmp_path / "runs").mkdir()
    for version in (4, 6):
        path = tmp_path / "runs" / f"v{version}.evenhand"
        found = looked(tmp_path / "runs")
        with run_process(path, version=version, trial_s=0.3) as process:

            def is_running(found: RunIndex = found, name: str = path.name) -> bool:
                found.refresh(is_forced=True)
                entry = found.entries.get(name)
                return entry is not None and entry.state is RunState.RUNNING

            wait_until(is_running, "it is shown as running")
            process.kill()
            process.wait()
            found.refresh()  # not forced: a run that was running is looked at each time
            entry = found.entries.get(path.name)
            assert entry is not None
            assert entry.state is RunState.KILLED
    whole = measure(tmp_path / "runs" / "whole.evenhand")
    assert looked(tmp_path / "runs").entries[whole.name].state is RunState.FINISHED


def test_a_run_that_is_interrupted_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"
    store = RunStore.create(path, command=["evenhand", "trial"])
    with store.writing() as connection:
        connection.execute("INSERT INTO hooks VALUES (1, 1, NULL, NULL, 'x', 'x', 'x', 0, 0, 'x')")
    with pytest.raises(KeyboardInterrupt), store:
        raise KeyboardInterrupt
    found = looked(tmp_path)
    assert found.entries["a.evenhand"].state is RunState.INTERRUPTED


def test_a_campaign_whose_lock_is_held_is_running(tmp_path: Path) -> None:
    path = copy_recorded("campaign-cut-short", tmp_path / "a.evenhand")
    path.touch()
    with campaign_locked(path):
        assert looked(tmp_path).entries[path.name].state is RunState.RUNNING
    assert looked(tmp_path).entries[path.name].state is RunState.INTERRUPTED


def test_files_that_come_change_and_go_are_followed(tmp_path: Path) -> None:
    """A folder that grows while it is shown, and a file that is replaced by another run."""
    found = looked(recorded_folder(tmp_path, ["throughput-v4"]))
    before = found.version
    assert not found.refresh(is_forced=True)
    copy_recorded("loss-v6", tmp_path / "new.evenhand")
    assert found.refresh(is_forced=True)
    assert found.version > before
    assert found.entries["new.evenhand"].facts.procedures == ("loss",)
    shutil.copy(copy_recorded("latency-v4", tmp_path / "other"), tmp_path / "new.evenhand")
    found.refresh(is_forced=True)
    assert found.entries["new.evenhand"].facts.procedures == ("latency",)
    (tmp_path / "new.evenhand").unlink()
    found.refresh(is_forced=True)
    assert list(found.entries) == ["throughput-v4.evenhand"]


def test_the_index_is_kept_and_files_that_stayed_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = recorded_folder(tmp_path), tmp_path / "cache" / "index.json"
    first = looked(folder, cache)
    first.save()
    read: list[str] = []

    def reading(path: Path, written_s: float) -> RunFacts:
        read.append(path.name)
        return read_facts(path, written_s)

    monkeypatch.setattr(index_module, "read_facts", reading)
    again = looked(folder, cache)
    assert (read, again.entries) == ([], first.entries)
    copy_recorded("pdv-v4", folder / "pdv.evenhand")
    again.refresh(is_forced=True)
    assert read == ["pdv.evenhand"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: "{",
        lambda text: text.replace('\\"title\\": \\"', '\\"title\\": 1, \\"x\\": \\"', 1),
        lambda text: text.replace(f'"version": {VERSION}', '"version": 99'),
        lambda text: json.dumps({"version": VERSION, "runs": '{"campaign-v4.evenhand": [[1, 2, 3], {}]}'}),
        lambda text: forged('{"campaign-v4.evenhand": [[1, 2, 3], {"name": 1}]}'),
        lambda text: forged('{"campaign-v4.evenhand": null}'),
        lambda text: forged("[" * 100_000),
    ],
)
def test_an_index_that_is_damaged_is_made_again(tmp_path: Path, spoil: object) -> None:
    assert callable(spoil)
    folder, cache = recorded_folder(tmp_path), tmp_path / "index.json"
    first = looked(folder, cache)
    first.save()
    before = cache.read_text()
    cache.write_text(spoil(before))
    assert cache.read_text() != before
    assert looked(folder, cache).entries == first.entries


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    """A full disk, or a read-only one."""
    (tmp_path / "file").write_text("")
    found = looked(recorded_folder(tmp_path), tmp_path / "file" / "index.json")
    found.save()
    assert len(found.entries) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_be_read_later_is_read_then(tmp_path: Path) -> None:
    path = copy_recorded("throughput-v6", tmp_path / "a.evenhand")
    path.chmod(0)
    found = looked(tmp_path)
    assert state_of_a(found) == "unreadable"
    path.chmod(0o644)
    found.refresh(is_forced=True)
    assert state_of_a(found) == "finished"


def test_what_could_not_be_read_for_a_cause_elsewhere_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for a copy, or a lock: the file stays as it is. What is kept of it is no answer after a restart
    either."""
    (tmp_path / "runs").mkdir()
    copy_recorded("throughput-v6", tmp_path / "runs" / "a.evenhand")

    def fail(*arguments: object, **options: object) -> None:
        raise HostError("no room", code="run.no-room")

    with monkeypatch.context() as patch:
        patch.setattr(index_module, "read_record", fail)
        found = looked(tmp_path / "runs", tmp_path / "cache")
        found.save()
        assert state_of_a(found) == "unreadable"
    found.refresh(is_forced=True)
    assert state_of_a(found) == "unreadable"  # it was just tried
    later_s = time.monotonic() + 60
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    found.refresh(is_forced=True)
    assert state_of_a(found) == "finished"
    assert state_of_a(looked(tmp_path / "runs", tmp_path / "cache")) == "finished"


@pytest.mark.parametrize("plan", ['{"udp_ports": []}', '{"udp_ports": {"source": [null]}}', "{}", '"x"'])
def test_a_file_that_nobody_foresaw_does_not_hide_the_others(
    tmp_path: Path, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_recorded("campaign-v4", tmp_path / "a.evenhand")
    copy_recorded("throughput-v6", tmp_path / "b.evenhand")
    with closing(sqlite3.connect(tmp_path / "a.evenhand")) as connection, connection:
        connection.execute("UPDATE searches SET plan = ?", [plan])
    found = looked(tmp_path)
    assert found.entries["a.evenhand"].state in (RunState.UNREADABLE, RunState.FINISHED)
    assert found.entries["b.evenhand"].state is RunState.FINISHED
    monkeypatch.setattr(index_module, "_facts", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in read_facts(tmp_path / "b.evenhand", 0.0).error
