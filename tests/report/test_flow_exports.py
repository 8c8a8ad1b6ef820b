# SPDX-License-Identifier: Apache-2.0
"""Flows of a run for programs, and on its page: what each lost in the trials that decide a point, and which
one was the reason that a load failed."""

from __future__ import annotations

import csv
import io
import random
from dataclasses import replace
from typing import Any

import pytest
from junitparser import JUnitXml
from line_protocol_parser import parse_line

from evenhand.analysis import analyse
from evenhand.report.campaign_rows import columns_of, rows_of
from evenhand.report.cases import cases_of, to_junit
from evenhand.report.flows import flow_places, shown_flows
from evenhand.report.line_protocol import to_line_protocol
from evenhand.report.page import render_page
from evenhand.report.table_files import to_csv, to_parquet
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord, Repetition
from evenhand.search import Role
from evenhand.trial import ClassCount, TrialResult
from evenhand.trial.direction import read_flow_result
from tests.report.campaigns import loss_record, point_of, record_of, throughput_record
from tests.report.pages import Page
from tests.report.test_flows import FLOW

BOTH = pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
VOICE, REST = "=voice <b>", "rest"


def split(result: TrialResult) -> TrialResult:
    """A tenth of the frames is of voice, which may lose nothing; all that was lost was lost by it in a trial
    that failed."""
    directions = {}
    for name, direction in result.directions.items():
        offered = direction.offered_frames // 10
        lost = min(offered, direction.lost_frames)
        places = []
        for flow, limit, sent, missing in (
            (VOICE, 0.0, offered, lost),
            (REST, None, direction.offered_frames - offered, direction.lost_frames - lost),
        ):
            counted = ClassCount(
                ip_version=4,
                frame_size=84,
                offered_frames=sent,
                received_frames=sent - missing,
                lost_frames=missing,
                flow=read_flow_result({**FLOW, "name": flow, "loss_at_most": limit}),
            )
            places.append(counted)
        directions[name] = replace(direction, classes=tuple(places))
    return replace(result, directions=directions)


def with_flows(found: PointRecord) -> PointRecord:
    def of_trial(trial: StoredTrial) -> StoredTrial:
        return replace(trial, result=split(trial.result))

    def of_repetition(repetition: Repetition) -> Repetition:
        searches = tuple(
            replace(search, trials=tuple(map(of_trial, search.trials))) for search in repetition.searches
        )
        return replace(repetition, searches=searches)

    return replace(found, repetitions=tuple(map(of_repetition, found.repetitions)))


def searched(plan: str = "gateway-v4", repetitions: int = 3) -> PointRecord:
    at = point_of("classes", 0, plan, 16, repetitions=repetitions)
    return with_flows(throughput_record(at, 1e6, chance=random.Random(1)))


def record(plan: str = "gateway-v4") -> CampaignRecord:
    return record_of([searched(plan)])


@BOTH
def test_a_row_for_each_flow_of_each_direction_of_each_trial(plan: str) -> None:
    run = record(plan)
    trials = list(rows_of(run, "trials"))
    rows = list(csv.DictReader(io.StringIO(to_csv(run, "flows"))))
    assert len(rows) == 4 * len(trials) > 0
    for number, trial in enumerate(trials):
        of_trial = rows[4 * number : 4 * number + 4]
        # A spreadsheet would run a name that begins so.
        assert [(row["direction"], row["flow"]) for row in of_trial] == [
            (direction, flow) for direction in ("forward", "reverse") for flow in (f"'{VOICE}", REST)
        ]
        for direction in ("forward", "reverse"):
            for kind in ("offered_frames", "received_frames", "lost_frames"):
                found = sum(int(row[kind]) for row in of_trial if row["direction"] == direction)
                assert found == trial[f"{direction}_{kind}"]
        for row in of_trial:
            assert float(row["loss_ratio"]) == int(row["lost_frames"]) / int(row["offered_frames"])
            assert (row["verdict"], row["plan"], row["trial"]) == (
                trial["verdict"],
                plan,
                str(trial["trial"]),
            )
            assert row["loss_at_most"] == ("" if row["flow"] == REST else "0.0")
            assert (row["duplicated_frames"], row["latency_p999_ns"]) == ("7", "8900.0")


def test_parquet_has_the_same_with_types() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = record()
    table = parquet.read_table(io.BytesIO(to_parquet(run, "flows")))
    assert table.column_names == [column.name for column in columns_of(run, "flows")]
    assert table.to_pylist() == list(rows_of(run, "flows"))


def test_each_flow_is_a_series_of_its_own_in_a_time_series_database() -> None:
    lines = [parse_line(line) for line in to_line_protocol(record(), ("flows",)).splitlines()]
    assert {line["measurement"] for line in lines} == {"evenhand_flow"}
    assert len({(tuple(sorted(line["tags"].items())), line["time"]) for line in lines}) == len(lines)
    assert {(line["tags"]["flow"], line["tags"]["direction"]) for line in lines} == {
        (flow, direction) for flow in (VOICE, REST) for direction in ("forward", "reverse")
    }


def test_a_run_without_flows_has_no_rows_and_no_table_on_its_page() -> None:
    at = point_of("old", 0, "gateway-v4", 16, repetitions=2)
    found = throughput_record(at, 1e6, chance=random.Random(1))
    assert list(rows_of(record_of([found]), "flows")) == []
    assert shown_flows(found) is None
    assert "remarked" not in render_page(record_of([found]), analyse(record_of([found])))


@BOTH
def test_the_page_says_what_became_of_each_flow_at_a_point(plan: str) -> None:
    """In the trials that decide it alone: three repetitions, each with one that passed and one that
    failed."""
    run = record(plan)
    (point,) = run.points
    table = shown_flows(point)
    assert table is not None
    cells = [[cell.text for cell in row] for row in table.rows]
    assert [row[:3] for row in cells] == [
        [which, flow, direction]
        for which in ("3 that passed", "3 that failed")
        for direction in ("forward", "reverse")
        for flow in (VOICE, REST)
    ]
    deciding = [t.result for r in point.repetitions for t in r.deciding_trials if not t.result.is_pass]
    lost = [
        sum(
            place.of_class.lost_frames
            for result in deciding
            for place in flow_places(result)
            if (place.flow.name, place.direction) == (VOICE, direction)
        )
        for direction in ("forward", "reverse")
    ]
    titles = [column.title for column in table.columns]
    at = titles.index("lost frames")
    failed = [row for row in cells if row[0] == "3 that failed" and row[1] == VOICE]
    assert [int(row[at].replace(",", "")) for row in failed] == lost
    assert min(lost) > 0
    styles = [row[titles.index("lost")].style for row in table.rows]
    assert styles == ["", "", "", "", "flag", "", "flag", ""], "only what lost more than its own limit"
    shown = " ".join(Page(render_page(run, analyse(run))).words)
    assert "Flows in the trials that decide the result" in shown
    assert VOICE in shown


def test_a_series_of_loads_has_its_flows_at_each_load() -> None:
    at = point_of("loads", 0, "gateway-v4", 16, repetitions=1, procedure="loss")
    point = with_flows(loss_record(at, limit_fps=1e6, chance=random.Random(1)))
    table = shown_flows(point)
    assert table is not None
    (repetition,) = point.repetitions
    assert len(table.rows) == 4 * len(repetition.deciding_trials)
    assert all(row[0].text.startswith("1 at ") for row in table.rows)


def test_the_flow_that_failed_is_named_in_test_cases() -> None:
    run = record()
    (case,) = cases_of(run).cases
    named = [line for line in case.lines if VOICE in line]
    assert [line.split(" failed at ")[0] for line in named] == [f"repetition {n}" for n in (1, 2, 3)]
    assert all("frames (at most 0 %)" in line and REST not in line for line in named)
    (suite,) = JUnitXml.fromstring(to_junit(cases_of(run)).encode())
    (found,) = list(suite)
    assert VOICE in str(found.system_out)


def test_so_it_is_in_the_case_of_a_single_trial() -> None:
    (search,) = searched(repetitions=1).repetitions[0].searches
    failed: Any = next(trial for trial in search.trials if not trial.result.is_pass)
    of_trial = replace(search, name="trial", role=Role.TRIAL, trials=(failed,))
    (case,) = cases_of(record_of([], other_searches=(of_trial,))).cases
    assert f"flow {VOICE} lost" in case.lines[0]
