# SPDX-License-Identifier: Apache-2.0
"""What a witness saw inside the DUT, as reports show it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from evenhand.analysis import analyse
from evenhand.analysis.inside import seen_at, seen_trial
from evenhand.report.campaign_document import export_document
from evenhand.report.campaign_rows import rows_of
from evenhand.report.figures import draw_inline
from evenhand.report.page import render_page
from evenhand.report.page_inside import inside_of, queue_facts
from evenhand.report.show import point_report
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from tests.report.campaigns import appendix_a
from tests.report.inside_records import QUEUES, witnessed
from tests.report.pages import Page, assert_self_contained
from tests.report.test_hostile_records import ANY_JSON


@lru_cache(maxsize=2)
def record(version: int = 4) -> CampaignRecord:
    return witnessed(appendix_a(version, 1, is_series_only=True))


def with_documents(point: PointRecord, **changed: Any) -> PointRecord:
    """Each trial's witness says this instead."""
    repetitions = tuple(
        replace(
            repetition,
            searches=tuple(
                replace(
                    search,
                    trials=tuple(
                        replace(
                            trial,
                            result=replace(
                                trial.result,
                                raw={**trial.result.raw, "dut": {**trial.result.raw["dut"], **changed}},
                            ),
                        )
                        for trial in search.trials
                    ),
                )
                for search in repetition.searches
            ),
        )
        for repetition in point.repetitions
    )
    return replace(point, repetitions=repetitions)


@pytest.mark.parametrize("version", [4, 6])
def test_bias_of_one_pair_is_seen_inside_the_router(version: int) -> None:
    """SEED-07, RSS-06: with one pair two CPUs work and fourteen have nothing to do; with many all sixteen do.
    Nothing is judged by it."""
    one, many = (seen_at(record(version).points[at]) for at in (0, 10))
    assert one is not None
    assert many is not None
    assert sum(cpu.busy > 0.5 for cpu in one.cpus) <= 2
    assert sum(cpu.busy < 0.05 for cpu in one.cpus) >= QUEUES - 2
    assert min(cpu.busy for cpu in many.cpus) > 0.9 * max(cpu.busy for cpu in many.cpus)
    assert analyse(record(version)).verdict == analyse(appendix_a(version, 1, is_series_only=True)).verdict


def test_predicted_stands_beside_counted_for_each_queue() -> None:
    """RSS-04, SEED-65: by the key, table and fields that were read, within what chance allows."""
    seen = seen_at(record().points[4])
    assert seen is not None
    assert [queues.interface for queues in seen.queues] == ["eno1", "eno2"]
    for queues in seen.queues:
        assert queues.predicted is not None
        assert queues.shares == pytest.approx(queues.predicted, abs=0.001)
        assert queues.busiest_to_mean > 1.01
    told = dict(queue_facts(record().points[4]))
    assert str(told["queues of eno1 (forward), counted"]).startswith("0: ")
    assert "queues of eno2 (reverse), predicted" in told


def test_without_facts_there_is_no_prediction_and_no_guess() -> None:
    """What a driver does not tell is not filled in."""
    point = record().points[4]
    searches = tuple(
        replace(search, setup={**search.setup, "inside_dut": None})
        for search in point.repetitions[0].searches
    )
    seen = seen_at(replace(point, repetitions=(replace(point.repetitions[0], searches=searches),)))
    assert seen is not None
    assert all(queues.predicted is None for queues in seen.queues)


@pytest.mark.thorough
def test_the_page_has_a_heat_map_and_a_table_beside_the_curve() -> None:
    """The section is the first behind the curve and what it shows; each number of its pictures is in words
    too."""
    page = Page(render_page(record(), analyse(record())))
    assert_self_contained(page)
    assert page.ids().index("findings") < page.ids().index("inside") < page.ids().index("points")
    labels = [attributes.get("aria-label") or "" for attributes in page.all("svg")]
    assert any(label.startswith("CPUs of the DUT: direct, type1. 1: CPU ") for label in labels)
    assert any("the busiest queue got" in label and "was predicted" in label for label in labels)
    assert "dropped by the DUT" in page.shown
    assert "eno1-TxRx-0: 0" in page.shown  # R2544-02


def test_a_campaign_without_a_witness_has_no_such_section() -> None:
    """It costs nothing where nobody looked."""
    page = Page(
        render_page(appendix_a(4, 1, is_series_only=True), analyse(appendix_a(4, 1, is_series_only=True)))
    )
    assert "inside" not in page.ids()
    assert "Inside the DUT" not in page.shown


def test_show_and_exports_carry_it() -> None:
    """`evenhand show --point`, the columns of trials, the whole document."""
    shown = StringIO()
    console = Console(file=shown, width=200, color_system=None)
    for part in point_report(record(), record().points[0]):
        console.print(part)
    assert re.search(
        r"Inside the DUT: CPU \d+ was busiest, 9\d(\.\d+)? % of the time of sending", shown.getvalue()
    )
    assert "busiest to mean 16.000; predicted 16.000" in shown.getvalue()
    row = next(iter(rows_of(record(), "trials")))
    trial = record().points[0].repetitions[0].searches[0].trials[0]
    seen = seen_trial(trial)
    assert seen is not None
    assert (row["dut_busiest_cpu"], row["dut_busiest_cpu_share"]) == (seen.busiest.cpu, seen.busiest.busy)
    assert row["dut_dropped_packets"] == trial.result.raw["dut"]["dropped_packets"]
    exported = json.loads(json.dumps(export_document(record())))
    assert (
        exported["points"][0]["repetitions"][0]["searches"][0]["trials"][0]["document"]["dut"]
        == trial.result.raw["dut"]
    )


def test_a_witness_that_could_not_see_is_no_zero() -> None:
    """An empty heat map would say that nothing was busy."""
    point = record().points[0]
    blind = with_documents(point, error="the connection to the DUT was lost", cpus=None)
    assert seen_at(blind) is None
    assert inside_of(replace(record(), points=(blind,))).pictures == ()


@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from(["cpus", "interfaces", "dropped_packets", "lost_frames", "error", "ip"]),
    value=ANY_JSON,
    deep=st.booleans(),
)
def test_what_a_file_says_is_checked_before_it_is_shown(key: str, value: Any, deep: bool) -> None:
    """Files come from others: any value at any place is shown, or taken for not there."""
    point = record().points[1]
    document = dict(point.repetitions[0].searches[0].trials[0].result.raw["dut"])
    if deep and isinstance(document[key], list):
        value = [value, *document[key]]
    elif deep and key == "interfaces":
        value = {
            "left": {
                "name": value,
                "queues": [{"queue": value, "received_packets": 3}, {"queue": 1, "received_packets": value}],
            }
        }
    hostile = replace(record(), points=(with_documents(point, **{key: value}), record().points[2]))
    assert all(len(table.rows) > 0 for table in inside_of(hostile).tables)
    list(rows_of(hostile, "trials"))
    for one in hostile.points:
        list(point_report(hostile, one))


@settings(max_examples=60, deadline=None)
@given(
    part=st.sampled_from(["facts", "interfaces", "left", "hash", "table", "key", "fields"]), value=ANY_JSON
)
def test_facts_of_a_file_are_checked_too(part: str, value: Any) -> None:
    """A table of a million entries, a key that is no key."""
    setup: dict[str, Any] = json.loads(json.dumps(record().points[4].repetitions[0].searches[0].setup))
    where: Any = setup["inside_dut"]
    for name in ("facts", "interfaces", "left", "hash", part):
        if name == part:
            where[name] = value
            break
        where = where[name]
    point = record().points[4]
    searches = tuple(replace(search, setup=setup) for search in point.repetitions[0].searches)
    changed = replace(point, repetitions=(replace(point.repetitions[0], searches=searches),))
    bed = {"lab one": {**record().testbeds["lab one"], "inside_dut": setup["inside_dut"]}}
    assert inside_of(replace(record(), points=(changed,), testbeds=bed)).tables


def test_pictures_of_many_cpus_stay_readable(tmp_path: Path) -> None:
    """128 CPUs of which four work: those have rows, and the text says that others have none."""
    cpus = [{"cpu": n, "busy_share": 0.9 if n < 4 else 0.001, "softirq_share": 0.0} for n in range(128)]
    points = tuple(with_documents(point, cpus=cpus) for point in record().points[:5])
    picture = inside_of(replace(record(), points=points)).pictures[0]
    drawn = draw_inline(picture)
    assert "CPU 3<" in drawn
    assert "CPU 4<" not in drawn
    assert "124 CPUs with less load are omitted" in picture.caption
