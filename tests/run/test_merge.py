# SPDX-License-Identifier: Apache-2.0
"""Run files of several machines or sessions become one: nothing is lost, nothing counts twice, and what
contradicts is refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.run import CampaignHead, CampaignRecord, PointRecord, PointState, RunStore, read_record
from evenhand.run.merge import merge_runs
from evenhand.run.run_file import campaign_locked
from evenhand.search import Role, SearchHead, ThroughputGoal, TrialFinished, find_throughput
from evenhand.trial import SimulatedMeasurer
from tests.errors import raises
from tests.run.goldens import copy_recorded, recorded_file

COMMAND = ["evenhand", "merge"]
JOINED = [
    ("throughput-v4", "latency-v6"),
    ("throughput-table-v6", "loss-v4"),
    ("throughput-nat44", "capacity-v6"),
    ("back-to-back-v6", "burst-v4"),
    ("tear-down-v4", "connections-v6"),
    ("throughput-clean-time", "trial-fail-v6"),
    ("ipdv-v4", "loss-worker"),
]
"""Recorded files without a point in common."""
GOAL = ThroughputGoal(max_fps=1e6, duration_s=1, final_duration_s=2)
Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """The run of a verb, of so many searches; on `machine` the same testbed file is another testbed."""

    def write(
        name: str,
        *limits_fps: float,
        plan: str = "gateway-v4",
        machine: str = "a",
        goal: ThroughputGoal = GOAL,
        hosts: int | None = None,
    ) -> Path:
        path = tmp_path / name
        contract = make_plan(plan, hosts).to_contract()
        setup = {
            "name": "lab.toml",
            "testbed": {"tester": {"cpus": [1]}, "dut": {"facts": {"serial": machine}}},
        }
        with RunStore.create(path, command=["evenhand", "throughput", "lab.toml"]) as store:
            for number, limit_fps in enumerate(limits_fps, start=1):
                head = SearchHead(
                    label="throughput, 84 octets",
                    kind="throughput",
                    plan=contract,
                    frame_size=84,
                    seed=7,
                    setup=setup,
                    goal=goal,
                    repetition=number,
                )
                with store.search(head) as writer:
                    result = find_throughput(
                        SimulatedMeasurer(limit_fps=limit_fps),
                        goal,
                        on_progress=lambda event: (
                            writer.add_trial(event.trial) if isinstance(event, TrialFinished) else None
                        ),
                    )
                    writer.finish(result)
        return path

    return write


def without_places(record: CampaignRecord) -> list[PointRecord]:
    """As its points were before they had neighbours, with all of a testbed where its name stands."""
    return [
        replace(
            measured,
            point=replace(measured.point, number=0),
            repetitions=tuple(
                replace(r, session=0, testbed=json.dumps(record.testbeds[r.testbed]))
                for r in measured.repetitions
            ),
            hooks=tuple(replace(hook, session=0) for hook in measured.hooks),
        )
        for measured in record.points
    ]


@pytest.mark.parametrize(("name", "beside"), JOINED)
def test_a_recorded_file_keeps_all_it_has(name: str, beside: str, tmp_path: Path) -> None:
    """D11. All of its points are in the merged file, down to the octets of each trial."""
    path, other = recorded_file(name), recorded_file(beside)
    record, added = read_record(path), read_record(other)
    before = [path.read_bytes(), other.read_bytes()]
    merged = merge_runs([path, other], tmp_path / "both.evenhand", command=COMMAND)
    assert [path.read_bytes(), other.read_bytes()] == before
    wanted = [*without_places(record), *without_places(added)]
    assert without_places(merged) == wanted
    raw = [search.trials[0].result.raw for p in wanted for r in p.repetitions for search in r.searches]
    assert raw == [
        search.trials[0].result.raw for p in merged.points for r in p.repetitions for search in r.searches
    ]
    assert merged.other_searches == (*record.other_searches, *added.other_searches)
    assert merged.sessions[:-1] == (*record.sessions, *added.sessions)
    assert merged.merged_from == (path.name, other.name)
    assert (merged.is_campaign, merged.spec, merged.host) == (record.is_campaign, record.spec, record.host)
    assert merged.created_at == min(record.created_at, added.created_at)


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_repetitions_of_two_machines_are_numbered_on_and_their_testbeds_stay_apart(
    written: Write, tmp_path: Path, plan: str
) -> None:
    """SEED-72, SEED-84: which device each number is of stays known."""
    one = written("one.evenhand", 640_000, 650_000, plan=plan)
    other = written("other.evenhand", 320_000, plan=plan, machine="b")
    merged = merge_runs([one, other], tmp_path / "both.evenhand", command=COMMAND)
    (point,) = merged.points
    assert point.state is PointState.MEASURED
    assert (point.point.repetitions, [r.number for r in point.repetitions]) == (3, [1, 2, 3])
    assert point.values == (*values(one), *values(other))
    assert [r.testbed for r in point.repetitions] == ["lab.toml", "lab.toml", "lab.toml (2)"]
    assert [r.session for r in point.repetitions] == [0, 0, 1]
    assert [facts["dut"]["serial"] for facts in merged.testbeds.values()] == ["a", "b"]
    assert merged.notes == (
        "merged from one.evenhand, other.evenhand",
        "'lab.toml (2)' is the testbed 'lab.toml' of other.evenhand",
    )
    assert len(merged.commands) == 3


def values(path: Path) -> tuple[float, ...]:
    (point,) = read_record(path).points
    return point.values


def test_the_same_testbed_in_two_sessions_is_one(written: Write, tmp_path: Path) -> None:
    files = [written("one.evenhand", 640_000), written("other.evenhand", 640_000)]
    merged = merge_runs(files, tmp_path / "both.evenhand", command=COMMAND)
    assert merged.testbeds.keys() == {"lab.toml"}
    assert [r.session for r in merged.points[0].repetitions] == [0, 1]


def test_files_of_one_name_in_two_folders_are_told_apart(written: Write, tmp_path: Path) -> None:
    one = written("run.evenhand", 640_000)
    (tmp_path / "elsewhere").mkdir()
    other = one.rename(tmp_path / "elsewhere" / "run.evenhand")
    merged = merge_runs(
        [written("run.evenhand", 640_000), other], tmp_path / "both.evenhand", command=COMMAND
    )
    assert merged.merged_from == ("run.evenhand (file 1)", "run.evenhand (file 2)")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"plan": "direct-v4-net24"}, 'plan is "{plan}" in one.evenhand, and "direct-v4-net24" in other'),
        ({"hosts": 9}, "hosts is "),
        (
            {"goal": replace(GOAL, loss_ratio=0.001)},
            "goal loss_ratio is 0.0 in one.evenhand, and 0.001 in other.evenhand",
        ),
    ],
)
def test_a_point_that_was_measured_in_two_ways_is_refused_by_name(
    written: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan: str,
    change: dict[str, Any],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    written("one.evenhand", 640_000, plan=plan)
    written("other.evenhand", 640_000, **{"plan": plan, **change})
    with raises("run.not-measured-alike") as refused:
        merge_runs(
            [Path("one.evenhand"), Path("other.evenhand")], tmp_path / "both.evenhand", command=COMMAND
        )
    assert "'throughput/throughput, 84 octets'" in refused.value.what
    assert told.format(plan=plan) in refused.value.what
    assert not (tmp_path / "both.evenhand").exists()


def test_other_ports_of_a_verb_are_another_question(written: Write, tmp_path: Path) -> None:
    """They stand in what was sent alone."""
    one = written("one.evenhand", 640_000)
    record = read_record(one)
    search = record.points[0].repetitions[0].searches[0]
    head = SearchHead(
        label="throughput, 84 octets",
        kind="throughput",
        plan={**search.plan, "source_ports": {"first": 1, "count": 1}},
        frame_size=84,
        seed=7,
        setup=search.setup,
        goal=search.goal,
    )
    other = tmp_path / "other.evenhand"
    with RunStore.create(other, command=["evenhand", "throughput", "lab.toml"]) as store, store.search(head):
        pass
    with raises("run.not-measured-alike", match="sent plan"):
        merge_runs([one, other], tmp_path / "both.evenhand", command=COMMAND)


@pytest.mark.parametrize("name", ["throughput-table-v4", "campaign-v6"])
def test_the_same_run_twice_is_refused(name: str, tmp_path: Path) -> None:
    """Also as a copy: each repetition would count twice."""
    original = recorded_file(name)
    copy = tmp_path / "copy.evenhand"
    shutil.copyfile(original, copy)
    for files in ([original, original], [original, copy]):
        with raises("run.measurement-twice"):
            merge_runs(files, tmp_path / "both.evenhand", command=COMMAND)
    assert not (tmp_path / "both.evenhand").exists()


def test_a_run_beside_a_file_that_was_merged_from_it_is_refused(written: Write, tmp_path: Path) -> None:
    one, other = written("one.evenhand", 640_000), written("other.evenhand", 640_000)
    both = tmp_path / "both.evenhand"
    merge_runs([one, other], both, command=COMMAND)
    with raises("run.measurement-twice"):
        merge_runs([both, other], tmp_path / "three.evenhand", command=COMMAND)
    third = written("third.evenhand", 640_000)
    merged = merge_runs([both, third], tmp_path / "three.evenhand", command=COMMAND)
    assert [r.number for r in merged.points[0].repetitions] == [1, 2, 3]


def test_a_campaign_and_the_run_of_a_verb_are_refused(tmp_path: Path) -> None:
    for files in (
        [recorded_file("campaign-v4"), recorded_file("throughput-table-v4")],
        [recorded_file("throughput-table-v4"), recorded_file("campaign-v4")],
    ):
        with raises("run.kinds-differ", match=r"campaign-v4\.evenhand .*table-v4\.evenhand"):
            merge_runs(files, tmp_path / "both.evenhand", command=COMMAND)


def test_one_file_alone_is_refused(written: Write, tmp_path: Path) -> None:
    with raises("run.one-run"):
        merge_runs([written("one.evenhand", 640_000)], tmp_path / "both.evenhand", command=COMMAND)


def test_a_file_that_is_there_is_not_overwritten(written: Write, tmp_path: Path) -> None:
    files = [written("one.evenhand", 640_000), written("other.evenhand", 640_000)]
    with raises("base.file-exists"):
        merge_runs(files, files[0], command=COMMAND)
    assert read_record(files[0]).points


def test_a_campaign_that_is_being_measured_is_refused(tmp_path: Path) -> None:
    copy = copy_recorded("campaign-v4", tmp_path / "copy.evenhand")
    with campaign_locked(copy), raises("run.still-being-measured"):
        merge_runs([recorded_file("campaign-v4"), copy], tmp_path / "b.evenhand", command=COMMAND)


def test_a_merged_campaign_is_not_resumed(tmp_path: Path) -> None:
    merged = merged_campaign(tmp_path)
    assert merged.merged_from
    with raises("run.file-was-merged"):
        RunStore.resume(merged.path, command=[])


def merged_campaign(folder: Path) -> CampaignRecord:
    """The kept one merged with another session of it, which has one repetition more of its first point."""
    original = read_record(recorded_file("campaign-v4"))
    other = folder / "other.evenhand"
    head = CampaignHead(name="two-suites", source="two-suites.toml", seed=original.seed, spec=original.spec)
    first = original.points[0].point
    with RunStore.create(other, command=["evenhand", "run"], head=head, points=[first]) as store:
        recorder = store.begin(first, 1, seed=5, testbed="testbed.toml")
        search = original.points[0].repetitions[0].searches[0]
        with recorder.search(
            SearchHead(
                label="again",
                kind="throughput",
                plan=search.plan,
                frame_size=64,
                seed=5,
                setup=search.setup,
                goal=search.goal,
            )
        ) as writer:
            writer.add_result(search.trials[0].result, number=1, purpose="final")
    return merge_runs([recorded_file("campaign-v4"), other], folder / "both.evenhand", command=COMMAND)


def test_sessions_of_a_campaign_are_joined(tmp_path: Path) -> None:
    merged = merged_campaign(tmp_path)
    one, many, *_ = merged.points
    assert one.point.repetitions == 4
    assert [(r.number, r.finished_at is None) for r in one.repetitions] == [(1, False), (2, False), (3, True)]
    assert (one.state, many.state) == (PointState.BEGUN, PointState.NO_NUMBER)
    assert [hook.output for hook in many.hooks] == [""]
    assert {search.role for r in one.repetitions for search in r.searches} == {Role.MEASUREMENT}


def test_runs_whose_commands_name_no_verb_are_joined(tmp_path: Path) -> None:
    """A program's own run files: their points are a suite of their file, whatever it is called then."""
    for name in ("one", "other"):
        head = SearchHead(
            label="throughput", kind="throughput", plan={}, frame_size=64, seed=1, setup={}, goal=GOAL
        )
        with RunStore.create(tmp_path / "new.evenhand", command=["lab.py"]) as store, store.search(head) as w:
            w.finish(find_throughput(SimulatedMeasurer(limit_fps=640_000), GOAL))
        (tmp_path / "new.evenhand").rename(tmp_path / f"{name}.evenhand")
        (point,) = read_record(tmp_path / f"{name}.evenhand").points
        assert (point.point.suite, point.point.key) == (name, f"{name}/throughput")
    files = [tmp_path / "one.evenhand", tmp_path / "other.evenhand"]
    (point,) = merge_runs(files, tmp_path / "both.evenhand", command=COMMAND).points
    assert (point.point.key, len(point.values)) == ("both/throughput", 2)


def test_a_file_that_is_called_like_its_verb_is_joined(written: Write, tmp_path: Path) -> None:
    files = [written("throughput.evenhand", 640_000), written("other.evenhand", 640_000)]
    (point,) = merge_runs(files, tmp_path / "both.evenhand", command=COMMAND).points
    assert (point.point.suite, len(point.values)) == ("throughput", 2)
