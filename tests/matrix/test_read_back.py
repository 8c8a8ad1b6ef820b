# SPDX-License-Identifier: Apache-2.0
"""The answer that a verb gives, read back from its own run file by every reader: `show`, exports, the page,
`trend`, `compare`. A reader that derives it anew from the trials, or leaves a part of it out, says something
else."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from evenhand.procedure.descriptor import show_number
from evenhand.procedure.registry import CAPACITY, CONNECTIONS, PROCEDURES
from evenhand.run import PointRecord, Repetition, read_record
from tests.matrix.cells import Cell, Family, Outcome, Ports, Way
from tests.matrix.measuring import Bench, command_of
from tests.matrix.test_matrix import AGAIN, RUN, bench
from tests.report.pages import Page

__all__ = ["bench"]
TOLD = Path("told.evenhand")
NOT_SAID: frozenset[str] = frozenset()
"""Keys of a stored result that `--json` has elsewhere."""
OUTCOMES = (Outcome.FOUND, pytest.param(Outcome.LOWER_BOUND, marks=pytest.mark.thorough))


def cell_of(procedure: str, outcome: Outcome) -> Cell:
    """By its verb; in a campaign where it has none."""
    way = Way.CAMPAIGN if PROCEDURES[procedure].verb is None else Way.VERB
    return Cell(
        procedure=procedure,
        way=way,
        family=list(Family)[list(PROCEDURES).index(procedure) % len(Family)],
        ports=Ports.WITH_LINE_RATE,
        outcome=outcome,
    )


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize("procedure", list(PROCEDURES))
def test_every_reader_says_what_the_verb_said(procedure: str, outcome: Outcome, bench: Bench) -> None:
    cell = cell_of(procedure, outcome)
    bench.prepare(cell)
    answer = bench.measure(cell, RUN)
    point = point_of(cell)
    values = [each.value for each in point.repetitions]
    if None in values:  # a device that forwards all it is offered has no recovery, for example
        assert outcome is Outcome.LOWER_BOUND, point.repetitions[0].reason
        return
    if answer is not None:
        check_document(answer, point)
    check_exported(cell, point, bench)
    check_page(cell, point, bench)
    bench.prepare(cell)
    check_said(cell, bench)
    bench.prepare(cell)
    bench.measure(cell, AGAIN)
    check_over_runs(point, bench)


def point_of(cell: Cell, run: Path = RUN) -> PointRecord:
    """The one of the procedure: another may be the throughput that it needs."""
    (point,) = [each for each in read_record(run).points if each.point.procedure == cell.procedure]
    return point


def check_document(answer: dict[str, Any], point: PointRecord) -> None:
    """What was stored is what `--json` said, with the same names: nothing is left out, nothing else is
    said."""
    said = answer["rows"][0] if "rows" in answer else answer
    if len(point.repetitions) > 1:  # of one answer
        assert said["values"] == [each.value for each in point.repetitions]
        return
    kept = dict(point.repetitions[0].result or {})
    if "outcome" not in said:
        said = said["repetitions"][0]
    if "intervals" in said:
        said = said["intervals"][0]
    assert kept.get("outcome") == said.get("outcome")
    assert set(kept) - set(said) <= NOT_SAID
    common = {key: kept[key] for key in kept if key in said}
    assert json.loads(json.dumps({key: said[key] for key in common})) == common


def check_said(cell: Cell, bench: Bench) -> None:
    """The verb's own tables are in `show`, line by line, and so is the figure."""
    told = bench.evenhand(*command_of(cell), "--run", TOLD).out if cell.way is Way.VERB else ""
    run = TOLD if cell.way is Way.VERB else RUN
    point = point_of(cell, run)
    number = 1 + [each.point.key for each in read_record(run).points].index(point.point.key)
    shown = bench.evenhand("show", run, "--point", str(number)).out
    figure = cell.of.figure
    for each in point.repetitions:
        least = ">= " if each.is_at_least else ""
        value = words_of(cell, each)
        unit = "" if figure.unit == "ratio" else f" {figure.shown_unit}"
        assert f"Repetition {each.number}: {least}{value}{unit}" in shown
        assert value in told or not told
    table = [line.strip() for line in told.split("\n\n")[0].splitlines()[1:]]
    assert len(table) >= 2 or not told
    if not cell.of.is_always_table:  # that has a line for each frame size, of which each repetition is shown
        assert [line for line in table if line not in shown] == []
    if cell.procedure == CAPACITY.name:
        steps = [line for line in told.splitlines() if "connections: " in line]
        assert len(steps) == len((point.repetitions[0].result or {})["steps"]) > 2
        assert [line for line in steps if line not in shown] == []
    listed = bench.evenhand("show", run, "--json").json["points"][number - 1]
    assert listed["values"] == pytest.approx([each.value for each in point.repetitions])
    assert listed["figure"]["unit"] == figure.unit


def words_of(cell: Cell, repetition: Repetition) -> str:
    assert repetition.value is not None
    return show_number(repetition.value, cell.of.figure)


def check_exported(cell: Cell, point: PointRecord, bench: Bench) -> None:
    values = [each.value for each in point.repetitions if each.value is not None]
    for table, column, expected in (("repetitions", "value", values), ("points", "median", [median(values)])):
        rows = [row for row in exported(table, bench) if row["procedure"] == cell.procedure]
        assert [float(row[column]) for row in rows] == pytest.approx(expected), table
        assert {(row["figure"], row["unit"]) for row in rows} == {(cell.of.figure.name, cell.of.figure.unit)}
    for row in exported("repetitions", bench):
        if row["procedure"] == cell.procedure:
            assert row["is_at_least"] == str(point.repetitions[0].is_at_least).lower()
    (summed_up,) = [row for row in exported("summary", bench) if row["metric"] == cell.of.figure.name]
    assert (">=" in summed_up["result"]) == point.repetitions[0].is_at_least


def exported(table: str, bench: Bench) -> list[dict[str, str]]:
    ended = bench.evenhand("export", RUN, "--format", "csv", "--table", table)
    assert ended.code == 0, ended.failure
    return list(csv.DictReader(io.StringIO(ended.out)))


def check_page(cell: Cell, point: PointRecord, bench: Bench) -> None:
    target = Path("a.html")
    assert bench.evenhand("report", RUN, "--output", target).code == 0
    words = " ".join(Page(target.read_text()).words)
    for each in point.repetitions:
        assert words_of(cell, each) in words
    assert ("at least" in words or ">= " in words) or not point.repetitions[0].is_at_least


def check_over_runs(point: PointRecord, bench: Bench) -> None:
    """Both runs measured the same: their medians are those of the file, and no change is seen."""
    expected = median(each.value for each in point.repetitions if each.value is not None)
    (trend,) = [
        each
        for each in bench.evenhand("trend", RUN, AGAIN, "--json").json["points"]
        if each["procedure"] == point.point.procedure
    ]
    assert trend["values"][0]["statistics"]["median"] == pytest.approx(expected)
    assert [value["is_at_least"] for value in trend["values"]] == [point.repetitions[0].is_at_least] * 2
    compared = bench.evenhand("compare", RUN, AGAIN, "--json").json["points"]
    (found,) = [each for each in compared if each["key"] == point.point.key]
    assert found["statistics"]["median"] == pytest.approx(expected)
    assert bool(found["at_maximum"]) == point.repetitions[0].is_at_least


@pytest.mark.parametrize("procedure", [CONNECTIONS.name, CAPACITY.name])
def test_no_single_address_pair_is_missed_before_connections_are_opened(procedure: str, bench: Bench) -> None:
    """SEED-02 asks it of loads that are forwarded. Another order of four tuples is a deviation (R9693-05)."""
    cell = cell_of(procedure, Outcome.FOUND)
    bench.prepare(cell)
    assert bench.measure(cell, RUN)["deviations"] == []
    if procedure == CONNECTIONS.name:
        bench.prepare(cell)
        ended = bench.evenhand(*command_of(cell), "--order", "increasing", "--no-run", "--json")
        assert [each["requirement"] for each in ended.json["deviations"]] == ["R9693-05"]
