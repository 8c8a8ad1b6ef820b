# SPDX-License-Identifier: Apache-2.0
"""A result is shown alike after its verb and from its run file, whatever its procedure; files of others and
of earlier versions break nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.base.table import Table
from evenhand.plan import ONE_EACH, SideCounts, make_plan
from evenhand.procedure import (
    BackToBackTable,
    DelayTest,
    LossTable,
    Profile,
    Row,
    Throughput,
    ThroughputTable,
    throughput_document,
)
from evenhand.procedure.connection_capacity import Capacity, CapacityStep
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRate, ConnectionRateGoal
from evenhand.procedure.registry import (
    BACK_TO_BACK,
    BURST,
    CAPACITY,
    CONNECTIONS,
    IPDV,
    LATENCY,
    LOSS,
    PDV,
    PROCEDURES,
    RECOVERY,
    TEAR_DOWN,
    THROUGHPUT,
    Procedure,
)
from evenhand.procedure.tear_down import TearDown, TearDownGoal
from evenhand.report.found import entry_of, found_tables, report_of
from evenhand.report.result_entry import RepeatedEntry, ResultEntry
from evenhand.report.show import point_report
from evenhand.report.stored_results import stored_entry
from evenhand.report.table import rows_of
from evenhand.results.connections import CapacityOutcome, Removal
from evenhand.run import CampaignHead, CampaignRecord, RepetitionEnd, RunStore, read_record
from evenhand.run.rows import without_trials
from evenhand.search import MlrGoal, MlrGoals, Role, SearchHead, ThroughputGoal, find_goals, find_throughput
from evenhand.spec.request import Point
from evenhand.trial import SimulatedMeasurer, TrialResult
from tests.procedure import test_back_to_back as bursts
from tests.procedure import test_burst as intervals
from tests.procedure import test_delay as delays
from tests.procedure import test_loss as losses
from tests.procedure import test_recovery as recoveries
from tests.run.goldens import NAMES, recorded_file

PLANS = ("gateway-v4", "gateway-v6")
GOAL = ThroughputGoal(max_fps=1e6, duration_s=1.0, final_duration_s=2.0)
MLR = MlrGoals(goals=(MlrGoal(name="NDR"), MlrGoal(name="PDR", loss_ratio=0.005)), max_fps=1e6)


def profile_of(plan: str) -> Profile:
    return Profile(
        plan=make_plan(plan),
        frame_size=84 if plan.endswith("v6") else 64,
        seed=1,
        directions=("forward", "reverse"),
        line_rate_bps=1e9,
        theoretical_fps=1_201_923,
    )


def latency(test: DelayTest, **changes: Any) -> Any:
    goal = delays.goal_of(test, repetitions=3, **changes)
    return delays.repeat(goal, own_loop=delays.own_loop_of(goal), limit_fps=0.999 * delays.RATE_FPS)


def rate() -> ConnectionRate:
    goal = ConnectionRateGoal(connections=1000, max_fps=1e6)
    return ConnectionRate(
        profile=profile_of("gateway-v4"),
        goal=goal,
        search=find_throughput(SimulatedMeasurer(limit_fps=640_000), goal.search_goal()),
    )


def capacity() -> Capacity:
    step = CapacityStep(connections=1000, least_fps=0.0, rate=rate())
    return Capacity(
        profile=profile_of("gateway-v4"),
        goal=CapacityGoal(max_fps=1e6),
        outcome=CapacityOutcome.FOUND,
        held=1000,
        not_held=1010,
        steps=(step,),
    )


def tear_down() -> TearDown:
    return TearDown(
        profile=profile_of("gateway-v4"),
        goal=TearDownGoal(connections=1000, rate_fps=1e3, repetitions=1),
        outcome="measured",
        removals=(Removal(connections=1000, counted=1000, seconds=0.5),),
        trials=(SimulatedMeasurer(limit_fps=1e6).measure(1.0, 1e3),),
    )


MADE: dict[str, tuple[Procedure, Callable[[], Any]]] = {
    "latency": (LATENCY, lambda: latency(DelayTest.LATENCY)),
    "latency of RFC 2544": (LATENCY, lambda: latency(DelayTest.LATENCY_RFC2544)),
    "pdv": (PDV, lambda: latency(DelayTest.PDV)),
    "ipdv": (IPDV, lambda: latency(DelayTest.PDV, has_variation=True)),
    "loss": (LOSS, lambda: losses.series(limit_fps=640_000, tester_ceiling_fps=750_000)),
    "recovery": (RECOVERY, lambda: recoveries.measure(recovery_s=1000.0)),
    "burst": (BURST, intervals.measure),
    "back-to-back": (BACK_TO_BACK, bursts.measure),
    "connections": (CONNECTIONS, rate),
    "tear-down": (TEAR_DOWN, tear_down),
    "capacity": (CAPACITY, capacity),
}
KINDS = pytest.mark.parametrize("name", list(MADE))


@cache
def found_of(name: str, plan: str) -> Any:
    found = MADE[name][1]()
    return replace(found, profile=profile_of(plan))


def head_of(kind: str, goal: Mapping[str, Any], plan: str, **more: Any) -> SearchHead:
    profile = profile_of(plan)
    return SearchHead(
        **{
            "label": kind,
            "kind": kind,
            "plan": profile.plan.to_contract(),
            "frame_size": profile.frame_size,
            "seed": 1,
            "setup": {"name": "lab", "directions": ["forward", "reverse"]},
            "goal": goal,
            **more,
        }
    )


def point_of(procedure: Procedure, plan: str, repetitions: int) -> Point:
    return Point(
        key=f"s/{procedure.name}",
        suite="s",
        number=0,
        procedure=procedure.name,
        plan=plan,
        plan_options={},
        hosts=SideCounts(1, 1),
        networks=ONE_EACH,
        frame_size=profile_of(plan).frame_size,  # type: ignore[arg-type]
        directions=("forward", "reverse"),
        hash_type=None,
        goal={},
        repetitions=repetitions,
    )


def stored_campaign(
    path: Path, procedure: Procedure, plan: str, found: Sequence[Any], *, own_loop: TrialResult | None = None
) -> CampaignRecord:
    """A campaign whose only point has these results, written as a campaign writes them."""
    point = point_of(procedure, plan, len(found))
    head = CampaignHead(name="c", source="c.toml", seed=1, spec={})
    with RunStore.create(path, command=["evenhand", "run"], head=head, points=[point]) as store:
        for number, one in enumerate(found, start=1):
            recorder = store.begin(point, number, seed=number, testbed=store.add_testbed("lab", {}))
            document = json.loads(json.dumps(one.to_document()))
            goal = document.get("goal", {})
            if own_loop is not None:
                with recorder.search(head_of("own-loop", goal, plan, role=Role.OWN_LOOP)) as writer:
                    writer.add_result(own_loop, number=1, purpose="own-loop")
                    writer.finish_with("measured", {})
            with recorder.search(head_of(procedure.name, goal, plan)) as writer:
                for index, trial in enumerate(one.trials, start=1):
                    writer.add_result(trial, number=index, purpose="search")
                writer.finish_with(str(one.outcome), {})
            store.end(
                recorder,
                RepetitionEnd(
                    outcome=str(one.outcome),
                    value=procedure.value(document),
                    result=without_trials(document),
                    reason=None,
                ),
            )
    return read_record(path)


def alike(one: Table, other: Table) -> None:
    assert one.rows
    assert (one.title, one.columns, one.rows) == (other.title, other.columns, other.rows)


def shown(record: CampaignRecord, *, width: int = 200, point: int = 0) -> str:
    console = Console(file=io.StringIO(), width=width)
    for part in point_report(record, record.points[point]):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def text_of(table: Table) -> set[str]:
    return {cell.text for row in table.rows for cell in row}


@KINDS
@pytest.mark.parametrize("plan", PLANS)
def test_a_campaign_shows_a_result_as_its_verb_does(tmp_path: Path, name: str, plan: str) -> None:
    procedure, found = MADE[name][0], found_of(name, plan)
    own_loop = found.own_loop.trial if hasattr(found, "own_loop") else None
    record = stored_campaign(tmp_path / "a.evenhand", procedure, plan, [found], own_loop=own_loop)
    (repetition,) = record.points[0].repetitions
    live = found_tables(found, procedure)[-1]
    alike(live, report_of(procedure).table([stored_entry(record, repetition)]))
    text = shown(record)
    assert text.index(live.title) < text.index("what and why"), "above the trials"
    assert all(cell in text for cell in text_of(live))
    lines = text.splitlines()
    for line in report_of(procedure).lines(entry_of(found, procedure)):
        assert line[:150] in " ".join(text.split()), line
    # Those of back-to-back are in the document of all sizes.
    for deviation in found.deviations if "deviations" in found.to_document() else ():
        assert sum(deviation.text in line for line in lines) == 1


@pytest.mark.parametrize(
    "name", ["latency", "latency of RFC 2544", "pdv", "ipdv", "loss", "recovery", "connections"]
)
@pytest.mark.parametrize("plan", PLANS)
def test_the_run_of_a_verb_shows_it_too(tmp_path: Path, name: str, plan: str) -> None:
    """Its file has only a part of the document, and the tester's own loop beside the points."""
    procedure, found = MADE[name][0], found_of(name, plan)
    path, goal = tmp_path / "a.evenhand", found.goal.to_document()
    kind = str(goal.get("test", procedure.name))
    with RunStore.create(path, command=["evenhand", str(procedure.verb)]) as store:
        if hasattr(found, "own_loop"):
            with store.search(head_of("own-loop", goal, plan, role=Role.OWN_LOOP)) as writer:
                writer.add_result(found.own_loop.trial, number=1, purpose="own-loop")
                writer.finish_with("measured", {})
        with store.search(head_of(kind, goal, plan, procedure=procedure.name)) as writer:
            for index, trial in enumerate(found.trials, start=1):
                writer.add_result(trial, number=index, purpose="search")
            writer.finish_with(str(found.outcome), found.summary())
    record = read_record(path)
    (repetition,) = record.points[0].repetitions
    alike(found_tables(found, procedure)[-1], report_of(procedure).table([stored_entry(record, repetition)]))
    assert found_tables(found, procedure)[-1].title in shown(record)


def test_each_size_of_bursts_is_a_result_of_its_own_in_the_run_of_the_verb(tmp_path: Path) -> None:
    found = found_of("burst", "gateway-v4")
    path = tmp_path / "a.evenhand"
    with RunStore.create(path, command=["evenhand", "burst"]) as store:
        for interval in found.intervals:
            goal = {**found.goal.to_document(), "burst_frames": interval.frames}
            label = f"burst, {interval.frames} frames"
            with store.search(head_of("burst", goal, "gateway-v4", label=label)) as writer:
                for trial in interval.search.trials:
                    writer.add_trial(trial)
                writer.finish_with(str(interval.outcome), interval.to_document())
    record = read_record(path)
    rows = [
        row
        for point in record.points
        for row in report_of(BURST).table([stored_entry(record, point.repetitions[0])]).rows
    ]
    # In one table, all times have one number of decimals.
    live, stored = (
        [[cell.text if cell.value is None else cell.value for cell in row] for row in each]
        for each in (found_tables(found, BURST)[-1].rows, rows)
    )
    assert stored == live


@pytest.mark.parametrize("is_throughput_known", [True, False])
@pytest.mark.parametrize("plan", PLANS)
def test_the_bursts_of_back_to_back_make_one_result_in_the_run_of_the_verb(
    tmp_path: Path, plan: str, is_throughput_known: bool
) -> None:
    """Its file has a result for each repetition, and the throughput that was measured first."""
    found = found_of("back-to-back", plan)
    path = tmp_path / "a.evenhand"
    if not is_throughput_known:
        search = find_throughput(SimulatedMeasurer(limit_fps=640_000), GOAL)
        first = Throughput(profile=profile_of(plan), search=search)
        found = replace(found, goal=replace(found.goal, throughput_fps=None), throughput=first)
    with RunStore.create(path, command=["evenhand", "back-to-back"]) as store:
        if not is_throughput_known:
            head = head_of("throughput", GOAL.to_document(), plan, role=Role.THROUGHPUT_FOR)
            with store.search(head) as writer:
                writer.finish(found.throughput.search)
        for number, burst in enumerate(found.repetitions, start=1):
            head = head_of("back-to-back", found.goal.to_document(), plan, repetition=number)
            with store.search(head) as writer:
                for index, trial in enumerate(burst.trials, start=1):
                    writer.add_result(trial, number=index, purpose="burst")
                ended = {"longest_burst_frames": burst.frames, "is_at_least": burst.is_at_least}
                writer.finish_with(burst.outcome, {"outcome": burst.outcome, **ended})
    record = read_record(path)
    (point,) = (n for n, p in enumerate(record.points) if p.point.procedure == BACK_TO_BACK.name)
    text = shown(record, point=point)
    live = found_tables(BackToBackTable(rows=(found,)), BACK_TO_BACK)[-1]
    assert "-" not in text_of(live)
    told = " ".join(text.split())
    assert " ".join(cell.text for cell in live.rows[0]) in told
    assert text.count(live.title) == 1
    assert text.index(live.title) < text.index("Repetition 1")
    assert all(line in told for line in report_of(BACK_TO_BACK).lines(entry_of(found, BACK_TO_BACK)))


@pytest.mark.parametrize("plan", PLANS)
def test_the_tables_over_sizes_and_repetitions_are_those_of_the_file(tmp_path: Path, plan: str) -> None:
    """R2544-22, R2544-26."""
    searches = [
        Throughput(
            profile=profile_of(plan),
            search=find_throughput(SimulatedMeasurer(limit_fps=limit_fps), GOAL),
            is_repetition=True,
        )
        for limit_fps in (640_000, 500_000, 2e6)
    ]
    series = [
        replace(losses.series(limit_fps=limit_fps), profile=profile_of(plan))
        for limit_fps in (640_000, 810_000)
    ]

    def row_of(found: list[Any]) -> Any:
        size = profile_of(plan).frame_size
        return Row(frame_size=size, asked=len(found), repetitions=tuple(found), stopped_early=None)

    tables: list[tuple[Procedure, Any, list[Any]]] = [
        (THROUGHPUT, ThroughputTable(rows=(row_of(searches),)), searches),
        (LOSS, LossTable(rows=(row_of(series),)), series),
    ]
    for procedure, table, found in tables:
        record = stored_campaign(tmp_path / f"{procedure.name}.evenhand", procedure, plan, found)
        repeated = report_of(procedure).repeated
        assert repeated is not None
        stored = repeated([RepeatedEntry(repetitions=[one.found for one in record.points[0].repetitions])])
        alike(found_tables(table, procedure)[-1], stored)
        text = shown(record)
        assert text.index(stored.title) < text.index("Repetition 1"), "once, above all repetitions"
        assert all(cell in text for cell in text_of(stored))


@pytest.mark.parametrize("plan", PLANS)
def test_the_goals_of_an_mlrsearch_are_shown(tmp_path: Path, plan: str) -> None:
    """MLR-10, MLR-11."""
    found = Throughput(profile=profile_of(plan), search=find_goals(SimulatedMeasurer(limit_fps=640_000), MLR))
    record = stored_campaign(tmp_path / "a.evenhand", THROUGHPUT, plan, [found])
    live = found_tables(found, THROUGHPUT)[-1]
    assert [row[0].text for row in live.rows] == ["NDR", "PDR"]
    (repetition,) = record.points[0].repetitions
    alike(live, report_of(THROUGHPUT).table([stored_entry(record, repetition)]))
    text = shown(record)
    assert all(cell in text for cell in text_of(live))
    assert "Goal PDR (RFC 9971): loss ratio 0.5 %" in text


def test_what_is_true_of_all_repetitions_is_said_once(tmp_path: Path) -> None:
    found = found_of("recovery", "gateway-v4")
    record = stored_campaign(tmp_path / "a.evenhand", RECOVERY, "gateway-v4", [found] * 3)
    text = " ".join(shown(record).split())
    assert text.count("Recovery time: from the reduction") == 1
    assert text.count("System recovery") == 3
    assert text.index("All repetitions:") < text.index("Recovery time: from") < text.index("Repetition 1")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_points_of_recorded_files_are_shown(name: str, width: int) -> None:
    record = read_record(recorded_file(name))
    for number, point in enumerate(record.points):
        text = shown(record, width=width, point=number)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        for repetition in point.repetitions:
            if repetition in point.results:
                entry = stored_entry(record, repetition)
                report = report_of(PROCEDURES[point.point.procedure])
                if report.join is not None and "longest_burst_frames" in entry.document:
                    continue  # shown with those of the other repetitions
                table = report.table([entry])
                assert table.title in text or not table.rows
                assert all(cell in " ".join(text.split()) for cell in text_of(table) if " " not in cell)


HOSTILE: tuple[Any, ...] = (None, [], {}, "x\x1b[2J", True, -1.0, 1e308, [1, {"a": 2}])


def spoiled(document: Any) -> Iterator[Any]:
    """The document with another value in one place, for every place; of a list only the first item."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key in value:
                places.append((value, key))
                walk(value[key])
        elif isinstance(value, list) and value:
            places.append((value, 0))
            walk(value[0])

    whole = deepcopy(document)
    walk(whole)
    for holder, key in places:
        before = holder[key]
        for value in HOSTILE:
            holder[key] = value
            yield whole
        holder[key] = before


@pytest.mark.parametrize("name", [*MADE, "throughput", "mlr"])
def test_documents_of_others_break_no_table(name: str) -> None:
    """A run file may come from anybody."""
    if name in MADE:
        procedure, found = MADE[name][0], found_of(name, "gateway-v4")
        document, trials = found.to_document(), entry_of(found, procedure).trials
    else:
        procedure = THROUGHPUT
        device = SimulatedMeasurer(limit_fps=640_000)
        search = find_goals(device, MLR) if name == "mlr" else find_throughput(device, GOAL)
        document, trials = throughput_document(search, profile_of("gateway-v4")), ()
    report = report_of(procedure)
    document = {key: value for key, value in document.items() if key not in ("trials", "traffic")}
    refused = 0
    for wrong in spoiled(json.loads(json.dumps(document))):
        try:
            entry = ResultEntry(document=wrong, found=procedure.read(wrong), trials=trials)
        except ValueError:  # at the border of the file
            refused += 1
            continue
        tables = [report.table([entry])]
        if report.repeated is not None:
            tables.append(
                report.repeated([RepeatedEntry(repetitions=[entry.found, procedure.read(document)])])
            )
        assert not any("\x1b" in text for table in tables for text in text_of(table))
        report.lines(entry)
    assert (refused > 0) == (procedure.found is not None)


def test_a_row_of_each_size_is_labelled_with_it() -> None:
    found = bursts.measure()
    small, large = found, replace(found, profile=replace(found.profile, frame_size=1518))
    table = found_tables(BackToBackTable(rows=(small, large)), BACK_TO_BACK)[-1]
    assert table.columns[0].title == "frame size, octets"
    assert [row[0].text for row in table.rows] == ["64", "1518"]
    alone = found_tables(BackToBackTable(rows=(small,)), BACK_TO_BACK)[-1]
    assert alone.columns == table.columns[1:]
    document = ThroughputTable(
        rows=(Row(frame_size=64, asked=1, repetitions=(), stopped_early=None),)
    ).to_document()
    assert [entry.labels for entry in rows_of(document, THROUGHPUT)] == [{"#frame size, octets": "64"}]
