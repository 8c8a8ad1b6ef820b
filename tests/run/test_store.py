# SPDX-License-Identifier: Apache-2.0
"""Run files: everything comes back, a killed run keeps every trial it made, and other files are refused."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import HostError
from evenhand.host.finding import read_host_facts
from evenhand.plan import make_plan
from evenhand.run import RunStore, read_run
from evenhand.run.record import read_record
from evenhand.search import (
    SearchEvent,
    SearchHead,
    ThroughputGoal,
    ThroughputResult,
    TrialFinished,
    find_throughput,
)
from evenhand.trial import SimulatedMeasurer
from tests.errors import raises

SEED = 2**64 - 1
GOAL = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
HEAD: dict[str, Any] = {
    "label": "s",
    "kind": "throughput",
    "plan": {},
    "frame_size": 64,
    "seed": 1,
    "setup": {},
    "goal": GOAL,
}


def write_run(path: Path, *, limit_fps: float = 640_000) -> ThroughputResult:
    with RunStore.create(path, command=["evenhand", "throughput"]) as store:
        store.add_versions({"dpdk": "22.11.11"})
        plan = make_plan("gateway_v4").to_contract()
        with store.search(
            SearchHead(**{**HEAD, "label": "first", "plan": plan, "seed": SEED, "setup": {"cpus": [1]}})
        ) as writer:
            result = find_throughput(
                SimulatedMeasurer(limit_fps=limit_fps, invalid_trials={2}),
                GOAL,
                on_progress=lambda event: (
                    writer.add_trial(event.trial) if isinstance(event, TrialFinished) else None
                ),
            )
            writer.finish(result)
    return result


def test_an_abandoned_search_keeps_its_trials_and_is_no_point(tmp_path: Path) -> None:
    """The demo begins again with shorter trials where the host spoils longer ones: its page and the report on
    its run must say the same."""
    path = tmp_path / "demo.evenhand"
    with RunStore.create(path, command=["evenhand", "demo"]) as store:
        for duration_s in (2.0, 1.0, 1.0):
            goal = replace(GOAL, duration_s=duration_s)
            with store.search(SearchHead(**{**HEAD, "goal": goal})) as writer:
                writer.finish(find_throughput(SimulatedMeasurer(limit_fps=640_000), goal))
            if duration_s == 2:
                store.abandon_search("began again with shorter trials")
    record = read_record(path)
    (point,) = record.points
    assert (point.point.goal["duration_s"], len(point.values)) == (1.0, 2)
    assert not point.point.key.endswith("(2)")
    assert [search.goal["duration_s"] for search in record.other_searches] == [2.0]
    assert "began again with shorter trials" in record.notes


def test_everything_that_was_stored_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"
    result = write_run(path)
    run = read_run(path)
    assert run.command == ["evenhand", "throughput"]
    assert run.versions["dpdk"] == "22.11.11"
    assert {"evenhand", "python"} <= run.versions.keys()
    assert run.host["kernel"]
    assert run.finished_at is not None
    (search,) = run.searches
    assert (search.name, search.kind, search.seed, search.frame_size) == ("first", "throughput", SEED, 64)
    assert search.plan == make_plan("gateway_v4").to_contract()
    assert search.outcome == "found"
    assert search.result == result.to_document()
    assert [t.result for t in search.trials] == [t.result for t in result.trials]
    assert [t.result.raw for t in search.trials] == [t.result.raw for t in result.trials]
    assert [(t.number, t.purpose, t.attempt, t.is_full_length) for t in search.trials] == [
        (t.number, str(t.purpose), t.attempt, t.is_full_length) for t in result.trials
    ]


def test_a_run_is_one_file(tmp_path: Path) -> None:
    """D11."""
    write_run(tmp_path / "a.evenhand")
    assert [file.name for file in tmp_path.iterdir()] == ["a.evenhand"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from evenhand.search import SearchEvent, SearchHead, ThroughputGoal, TrialFinished, find_throughput
from evenhand.run import RunStore
from evenhand.trial import SimulatedMeasurer

goal = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
store = RunStore.create(Path(sys.argv[1]), command=["killed"])
head = SearchHead(label="s", kind="throughput", plan={}, frame_size=64, seed=1, setup={}, goal=goal)
search = store.search(head)
with store, search as writer:
    def keep(event):
        if isinstance(event, TrialFinished):
            writer.add_trial(event.trial)
            if event.trial.number == int(sys.argv[2]):
                if sys.argv[3] == "within":
                    # In the middle of the next write: a transaction with a journal on disk.
                    writer._store._connection.execute("PRAGMA cache_size = 1")
                    writer._store._connection.execute("BEGIN IMMEDIATE")
                    change = "document = document || hex(randomblob(200000)), verdict = 'LOST'"
                    writer._store._connection.execute(f"UPDATE trials SET {change}")
                os.kill(os.getpid(), signal.SIGKILL)
    find_throughput(SimulatedMeasurer(limit_fps=640_000), goal, on_progress=keep)
"""


@pytest.mark.parametrize("where", ["between", "within"])
@pytest.mark.parametrize("trials", [1, 5])
def test_a_run_killed_by_sigkill_keeps_every_trial_that_ended(
    tmp_path: Path, trials: int, where: str
) -> None:
    """D11: each trial is committed before the next begins."""
    path = tmp_path / "killed.evenhand"
    ended = subprocess.run([sys.executable, "-c", _KILLED, path, str(trials), where], check=False)
    assert ended.returncode == -signal.SIGKILL
    run = read_run(path)
    assert run.finished_at is None
    (search,) = run.searches
    assert search.outcome is None
    assert [t.number for t in search.trials] == list(range(1, trials + 1))
    assert {str(t.result.verdict) for t in search.trials} <= {"PASS", "FAIL"}


def test_ctrl_c_is_stored_as_stopped(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"

    def interrupt(event: SearchEvent) -> None:
        if isinstance(event, TrialFinished):
            writer.add_trial(event.trial)
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        RunStore.create(path, command=[]) as store,
        store.search(SearchHead(**HEAD)) as writer,
    ):
        find_throughput(SimulatedMeasurer(limit_fps=640_000), GOAL, on_progress=interrupt)
    run = read_run(path)
    assert run.finished_at is None
    assert run.searches[0].outcome == "stopped"
    assert len(run.searches[0].trials) == store.stored_trials == 1


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, HostError("no device", code="engine.no-device")], ids=["ctrl-c", "fault"]
)
def test_a_run_that_ends_before_its_first_trial_leaves_no_file(
    tmp_path: Path, error: type[BaseException] | BaseException
) -> None:
    """A file that is there says that there is something in it."""
    with (
        pytest.raises((KeyboardInterrupt, HostError)),
        RunStore.create(tmp_path / "a.evenhand", command=[]) as store,
        store.search(SearchHead(**HEAD)),
    ):
        raise error
    assert store.stored_trials == 0
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.evenhand"
    write_run(path)
    with raises("base.file-exists"):
        RunStore.create(path, command=[])
    assert read_run(path).searches


def test_a_place_that_cannot_be_written_is_a_host_error(tmp_path: Path) -> None:
    with raises("base.file-not-writable"):
        RunStore.create(tmp_path / "no" / "folder.evenhand", command=[])


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.evenhand"
    text.write_text("this is no database, and it is long enough to have a header of a hundred octets" * 3)
    with raises("run.not-a-run"):
        read_run(text)
    foreign = tmp_path / "foreign.evenhand"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE run (id)")
    connection.close()
    with raises("run.not-a-run"):
        read_run(foreign)
    with raises("run.no-such-file"):
        read_run(tmp_path / "none.evenhand")
    (tmp_path / "empty.evenhand").touch()
    with raises("run.not-a-run"):
        read_run(tmp_path / "empty.evenhand")


def test_host_facts_name_what_a_reader_needs_and_survive_a_bare_host(tmp_path: Path) -> None:
    facts = read_host_facts()
    assert facts["cpus"] >= 1
    assert facts["kernel"]
    bare = read_host_facts(tmp_path)
    assert bare.keys() == facts.keys()
    assert bare["cpu_model"] is None
    (tmp_path / "proc").mkdir()
    for name, known_as in (("AMD EPYC", "AMD EPYC, family 25, model 17"), ("AMD EPYC 9454", "AMD EPYC 9454")):
        lines = f"cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: {name}\nstepping\t: 1\n"
        (tmp_path / "proc/cpuinfo").write_text(lines * 2)
        assert read_host_facts(tmp_path)["cpu_model"] == known_as
    assert bare["mitigations"] == {}
