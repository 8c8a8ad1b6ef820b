# SPDX-License-Identifier: Apache-2.0
"""Every procedure, by every way, with every outcome, and then every use of what it left: most faults lie
where two features meet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.cli.export import Format
from evenhand.procedure.descriptor import show_number
from evenhand.procedure.registry import PROCEDURES, TEAR_DOWN
from evenhand.report.page import write_page
from evenhand.run import CampaignRecord, Repetition, read_record
from tests.cli.running import Ended, run_here
from tests.matrix.cells import Cell, Family, Outcome, Ports, Way, all_cells, diagonal, where_three_meet
from tests.matrix.measuring import Bench, SimulatedSession, command_of

NO_LOAD_KEPT = "procedure.no-load-kept"
REFUSED = {"uti": {"cli.not-in-uti"}, "parquet": {"report.pyarrow-missing"}}
"""What FD.io CSIT's test cases cannot say, and a package that is installed on request."""
RUN, AGAIN = Path("a.evenhand"), Path("b.evenhand")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def evenhand(*arguments: str | Path) -> Ended:
        return run_here(arguments, capsys)

    return Bench(folder=tmp_path, evenhand=evenhand, patch=monkeypatch)


def test_the_diagonal_has_each_value_of_each_dimension_with_each_procedure() -> None:
    found = list(diagonal())
    assert {cell.procedure for cell in found} == set(PROCEDURES)
    for name in PROCEDURES:
        of_procedure = [cell for cell in found if cell.procedure == name]
        assert {cell.outcome for cell in of_procedure} == set(Outcome)
    whole = list(all_cells())
    assert set(found) <= set(whole)
    for dimension in ("way", "family", "ports", "outcome"):
        values = {getattr(cell, dimension) for cell in whole}
        assert {getattr(cell, dimension) for cell in found} == values


@pytest.mark.parametrize("cell", list(diagonal()), ids=str)
def test_what_was_measured_is_what_every_reader_knows(cell: Cell, bench: Bench) -> None:
    follow(cell, bench)


@pytest.mark.parametrize("procedure", list(PROCEDURES))
def test_a_device_that_dies_ends_what_is_measured_with_its_reason(procedure: str, bench: Bench) -> None:
    """R2544-39: what is lost behind it says nothing of any load: no number, not even a lower bound."""
    cells = {cell.way: cell for cell in all_cells() if is_found_on_ipv4(cell, procedure)}
    for way in (Way.VERB, Way.CAMPAIGN):
        if way not in cells:
            continue
        cell, target = cells[way], Path(f"{way}.evenhand")
        bench.prepare(cell)
        # Where connections are opened, two trials come first that show that the table can be emptied.
        dies_at = 2 if cell.of.own_idle_s is None else 4
        bench.patch.setattr(SimulatedSession, "dies_at", dies_at)
        if way is Way.VERB:
            ended = bench.evenhand(*command_of(cell), "--run", target)
            assert (ended.code, ended.error.code) == (1, "procedure.dut-gone")
        else:
            ended = bench.run_campaign(target)
            assert ended.code == 1
        for point in read_record(target).points:
            assert point.values == ()
            reasons = [point.reason, *(each.reason for each in point.repetitions)]
            assert any("answer" in str(reason) for reason in reasons), reasons


def is_found_on_ipv4(cell: Cell, procedure: str) -> bool:
    return (cell.procedure, cell.family, cell.ports, cell.outcome) == (
        procedure,
        Family.IPV4,
        Ports.WITH_LINE_RATE,
        Outcome.FOUND,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("cell", "cut_at"), list(zip(diagonal(), cycle((2, 5)))), ids=str)
def test_there_is_a_page_while_it_is_measured_and_afterwards(cell: Cell, cut_at: int, bench: Bench) -> None:
    """No trial and no value yet (which is the same however it ends), one that was cut short (each procedure
    early and late), and the whole."""
    cell = replace(cell, way=Way.CAMPAIGN)
    bench.prepare(cell)
    for stops_at in (1, cut_at, None) if cell.outcome is Outcome.FOUND else (cut_at, None):
        bench.patch.setattr(SimulatedSession, "trials", 0)
        bench.patch.setattr(SimulatedSession, "stops_at", stops_at)
        run = Path(f"{stops_at}.evenhand")
        bench.run_campaign(run)
        if stops_at is not None and run.exists():
            write_page(read_record(run), run.with_suffix(".html"), refresh_s=5)
    ended = bench.evenhand("report", run, "--output", "a.html")
    assert ended.code == 0, ended.failure
    (repetition,) = read_record(run).points[0].repetitions or (None,)
    if repetition is not None and repetition.value is not None:
        assert cell.of.figure.name.split()[0].lower() in Path("a.html").read_text().lower()


@pytest.mark.thorough
@pytest.mark.parametrize("cell", list(where_three_meet())[::8], ids=str)
def test_what_was_measured_where_three_features_meet(cell: Cell, bench: Bench) -> None:
    follow(cell, bench)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", sorted({*all_cells()} - {*diagonal(), *list(where_three_meet())[::8]}, key=str), ids=str
)
def test_the_whole_matrix(cell: Cell, bench: Bench) -> None:
    follow(cell, bench)


@contextmanager
def suppress_no_load() -> Iterator[list[EvenhandError]]:
    told: list[EvenhandError] = []
    try:
        yield told
    except EvenhandError as error:
        if error.code != NO_LOAD_KEPT:
            raise
        told.append(error)


def follow(cell: Cell, bench: Bench) -> None:
    """Measure a cell, and use what it left in every way."""
    bench.prepare(cell)
    if cell.outcome is Outcome.NOTHING and cell.way in (Way.VERB, Way.PYTHON):
        # Where the tester keeps no load, whoever waits for the answer is told so.
        with suppress_no_load() as told:
            answer = bench.measure(cell, RUN)
        if told:
            return
    else:
        answer = bench.measure(cell, RUN)
    record = read_record(RUN)
    repetition = check_stored(cell, record, answer)
    check_outcome(cell, repetition)
    check_shown(cell, record, bench)
    check_exports(cell, record, bench)
    if cell.way in (Way.CAMPAIGN, Way.WORKER):
        check_resumed(cell, record, bench)
    bench.prepare(cell)
    bench.measure(cell, AGAIN)
    check_compared(cell, record, bench)


def check_stored(cell: Cell, record: CampaignRecord, answer: Any) -> Repetition:
    """The answer where it was given is the answer in the file."""
    points = [point for point in record.points if point.point.procedure == cell.procedure]
    assert len(points) == 1, [point.point.key for point in record.points]
    if points[0].reason is not None and not points[0].repetitions[0].result:
        assert cell.outcome is Outcome.NOTHING, points[0].reason
        return points[0].repetitions[0]
    (repetition,) = points[0].repetitions[:1]
    assert repetition.finished_at is not None
    if answer is not None:
        given = answer if "rows" not in answer else answer["rows"][0]
        found = cell.of.value(given)
        values = [each.value for each in points[0].repetitions if each.value is not None]
        assert found == (pytest.approx(fmean(values)) if values else None), given.get("outcome")
    return repetition


def check_outcome(cell: Cell, repetition: Repetition) -> None:
    match cell.outcome:
        case Outcome.NOTHING:
            assert repetition.value is None
        case Outcome.FOUND:
            assert repetition.value is not None, repetition.reason
            assert not repetition.is_at_least
        case Outcome.LOWER_BOUND:
            assert repetition.value is not None or "line rate" in str(repetition.reason) or repetition.reason


def check_shown(cell: Cell, record: CampaignRecord, bench: Bench) -> None:
    for more in ((), ("--point", "1"), ("--json",)):
        ended = bench.evenhand("show", RUN, *more)
        assert ended.code == 0, ended.failure
    value = record.points[0].repetitions[0].value
    shown = bench.evenhand("show", RUN, "--point", "1").out
    if value is not None and len(record.points) == 1:
        assert show_number(value, cell.of.figure).replace(",", "")[:3] in shown.replace(",", ""), shown


def check_exports(cell: Cell, record: CampaignRecord, bench: Bench) -> None:
    for form in get_args(Format):
        target = Path(f"out.{form}")
        ended = bench.evenhand("export", RUN, "--format", form, "--output", target)
        if ended.code != 0:
            assert ended.error.code in REFUSED.get(form, ()), (form, ended.failure)
    for table in ("points", "repetitions", "trials", "summary"):
        ended = bench.evenhand("export", RUN, "--format", "csv", "--table", table)
        assert ended.code == 0, (table, ended.failure)
        if table == "repetitions":
            rows = list(csv.DictReader(io.StringIO(ended.out)))
            values = [repetition.value for point in record.points for repetition in point.repetitions]
            assert [float(row["value"]) if row["value"] else None for row in rows] == pytest.approx(values)


def check_resumed(cell: Cell, record: CampaignRecord, bench: Bench) -> None:
    """Interrupted before its last trial, and gone on with, it is what it would have been."""
    trials = sum(
        len(search.trials)
        for point in record.points
        for each in point.repetitions
        for search in each.searches
        if search.is_measurement
    )
    target = Path("cut.evenhand")
    bench.prepare(cell)
    bench.patch.setattr(SimulatedSession, "stops_at", max(1, trials))
    ended = bench.run_campaign(target)
    assert ended.code == 130
    bench.patch.setattr(SimulatedSession, "stops_at", None)
    if target.exists():
        ended = bench.evenhand("run", "--resume", target, "--no-html")
    else:  # nothing was stored yet
        ended = bench.run_campaign(target)
    assert ended.code in (0, 1), ended.failure or ended.err
    is_timed = cell.procedure == TEAR_DOWN.name  # by a clock that is not simulated
    now, then = (
        [
            (each.outcome, None if is_timed else each.value, each.is_at_least)
            for point in one.points
            for each in point.repetitions
            if each.finished_at is not None
        ]
        for one in (read_record(target), record)
    )
    assert now == then


def check_compared(cell: Cell, record: CampaignRecord, bench: Bench) -> None:
    for command in (
        ("compare", RUN, AGAIN, "--json"),
        ("trend", RUN, AGAIN, "--json"),
        ("merge", RUN, AGAIN, "--run", "both.evenhand"),
    ):
        ended = bench.evenhand(*command)
        assert ended.code in (0, 1), (command[0], ended.failure)
    both = read_record(Path("both.evenhand"))
    values = [value for point in both.points for value in point.values]
    assert len(values) == 2 * sum(len(point.values) for point in record.points)
