# SPDX-License-Identifier: Apache-2.0
"""Exports for continuous integration and time series, read back by the parsers of those who read them."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml
from line_protocol_parser import parse_line
from markdown_it import MarkdownIt
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from evenhand.analysis import compare
from evenhand.report.campaign_rows import rows_of
from evenhand.report.cases import MOST_CASES, CaseOutcome, Gate, cases_of, to_github_summary, to_junit
from evenhand.report.line_protocol import TAGS, to_line_protocol
from evenhand.report.openmetrics import to_openmetrics
from evenhand.run import StoredSearch
from evenhand.run.campaign_record import CampaignRecord, PointRecord, PointState
from evenhand.search import Role
from evenhand.trial import SimulatedMeasurer, TrialResult
from tests.report.campaigns import (
    delay_record,
    point_of,
    record_of,
    recovery_record,
    repetition_of,
    throughput_record,
)

read_openmetrics: Any = openmetrics_parser.text_string_to_metric_families
read_text_format: Any = parser.text_string_to_metric_families
EVIL = 'a|b & <i>x</i> "q" \\ {c="d"}, =e\n\x1b[31m\ufffe </testcase> ]]> `y` 1\\'


def points(limits: dict[int, float], seed: str = "a", repetitions: int = 4) -> list[PointRecord]:
    chance = random.Random(seed)
    return [
        throughput_record(point_of("net", number, plan, hosts, repetitions=repetitions), limit, chance=chance)
        for number, (hosts, limit) in enumerate(limits.items())
        for plan in ["gateway-v4" if number % 2 == 0 else "gateway-v6"]
    ]


def trial_search(verdict: str, **change: Any) -> StoredSearch:
    """A single trial that ended so."""
    measurer = {
        "PASS": SimulatedMeasurer(limit_fps=1e6),
        "FAIL": SimulatedMeasurer(limit_fps=1e3),
        "INVALID": SimulatedMeasurer(limit_fps=1e6, invalid_trials={1}),
    }[verdict]
    result: TrialResult = measurer.measure(1.0, 10_000.0)
    assert result.verdict == verdict
    found = repetition_of(
        point_of("x", 0, "gateway-v4", 1),
        1,
        {"outcome": verdict, "trials": []},
        [result],
        value=None,
        chance=random.Random(1),
    )
    return replace(found.searches[0], name="trial", role=Role.TRIAL, **change)


def junit_of(record: CampaignRecord, gate: Gate | None = None) -> list[Any]:
    read = JUnitXml.fromstring(to_junit(cases_of(record, gate)).encode())
    return list(read)


def gate_of(first: CampaignRecord, second: CampaignRecord, limit: float, **options: Any) -> Gate:
    return Gate(comparison=compare([first, second], anyway=True), limit=limit, **options)


def test_what_fails_is_the_dut_and_what_is_invalid_is_an_error() -> None:
    (good,) = points({16: 5e6})
    lost = replace(good, state=PointState.NO_NUMBER, reason="tester_ceiling: late", repetitions=())
    lost = replace(lost, point=replace(lost.point, key="lost"))
    begun = replace(good, state=PointState.BEGUN, point=replace(good.point, key="begun"))
    record = record_of(
        [good, lost, begun],
        other_searches=tuple(trial_search(verdict) for verdict in ("PASS", "FAIL", "INVALID")),
    )
    suites = junit_of(record)
    found = {
        (suite.name, case.name): [(type(result), result.type) for result in case.result]
        for suite in suites
        for case in suite
    }
    trial = "trial 1 at 10,000 fps"
    assert {key: value for key, value in found.items() if key != ("trials", trial)} == {
        ("net", good.point.key): [],
        ("net", "lost"): [(Error, "no_number")],
        ("net", "begun"): [(Error, "not_finished")],
    }
    of_trials = [[(type(r), r.type) for r in case.result] for case in suites[1]]
    assert of_trials == [[], [(Failure, "loss")], [(Error, "invalid")]]
    assert [(suite.tests, suite.failures, suite.errors) for suite in suites] == [(3, 0, 2), (3, 1, 1)]
    invalid = list(suites[1])[2].result[0]
    assert invalid.message == record.other_searches[2].trials[0].result.reasons[0].text


def test_an_invalid_trial_that_was_repeated_is_judged_by_the_last() -> None:
    first, last = trial_search("INVALID"), trial_search("PASS")
    again = replace(last.trials[0], number=2, attempt=2)
    (case,) = cases_of(record_of([], other_searches=(replace(first, trials=(first.trials[0], again)),))).cases
    assert case.outcome is CaseOutcome.PASSED
    assert [line.split(";")[0] for line in case.lines] == ["attempt 1: INVALID", "attempt 2: PASS"]


def test_searches_for_the_testers_own_ceiling_are_no_cases() -> None:
    """What the tester can do says nothing of the DUT."""
    ceiling = replace(trial_search("FAIL"), role=Role.CEILING)
    assert cases_of(record_of([], other_searches=(ceiling,))).cases == ()


@pytest.mark.parametrize("by", ["interval", "median"])
def test_a_gate_fails_the_point_that_became_worse_and_no_other(by: Any) -> None:
    """A point that only the first run has is an error, so that it is not lost in silence."""
    before = record_of(points({16: 5e6, 64: 5e6, 256: 5e6}, repetitions=10))
    after = record_of(points({16: 5e6, 64: 2e6}, "b", repetitions=10))
    gate = gate_of(before, after, 0.8, by=by)
    cases = {case.name: case for case in cases_of(after, gate).cases}
    outcomes = {name: (str(case.outcome), case.kind) for name, case in cases.items()}
    kept, worse, gone = (point.point.key for point in before.points)
    assert outcomes == {
        kept: ("passed", ""),
        worse: ("failed", "below_limit"),
        gone: ("error", "not_in_this_run"),
    }
    ratio = gate.comparison.points[1].others[0].performance
    assert ratio is not None
    assert f"{ratio:.3f}" in cases[worse].message
    assert f"judged by the {by}" in cases[worse].message
    assert cases[kept].beside.startswith("0.9") or cases[kept].beside.startswith("1.0")
    (suite, missing) = junit_of(after, gate)
    assert (suite.failures, suite.errors, missing.errors) == (1, 0, 1)


def test_deviations_and_values_are_output() -> None:
    (good,) = points({16: 5e6})
    stated = {"deviations": [{"requirement": "R2544-18", "text": "waited 0.25 s instead of 2 s"}]}
    good = replace(good, repetitions=tuple(replace(r, result=stated) for r in good.repetitions))
    record = record_of([good])
    (suite,) = junit_of(record)
    (case,) = suite
    found = {each.name: each.value for each in suite.properties()}
    assert found["deviation from R2544-18"] == "waited 0.25 s instead of 2 s"
    assert found["command"] == "evenhand run appendix-a.toml"
    for repetition in record.points[0].repetitions:
        assert repetition.value is not None
        assert f"{repetition.value:,.0f} fps" in str(case.system_out)


def test_texts_of_a_strangers_file_are_shown_and_do_nothing() -> None:
    (good,) = points({16: 5e6})
    evil = replace(
        good, point=replace(good.point, key=EVIL, suite=EVIL), state=PointState.NO_NUMBER, reason=EVIL
    )
    record = record_of([evil], name=EVIL, versions={"evenhand": EVIL})
    (suite,) = junit_of(record)
    (case,) = suite
    shown = EVIL.replace("\n", "\\n").replace("\x1b", "\\x1b").replace("\ufffe", "\\ufffe")
    assert (case.name, suite.name, case.result[0].message) == (shown, shown, shown)
    html = MarkdownIt("commonmark").enable("table").render(to_github_summary(cases_of(record)))
    assert "<i>" not in html
    assert "<code>" not in html
    assert html.count("<tr>") == 2
    assert "&lt;i&gt;x" in html
    families = {family.name: family for family in read_openmetrics(to_openmetrics([record]))}
    (sample,) = families["evenhand_point_without_number"].samples
    assert (sample.labels["point"], sample.value) == (shown, 1.0)
    lines = to_line_protocol(record, ("repetitions", "trials")).splitlines()
    for line in lines:
        assert parse_line(line)["tags"]["point"] == shown.rstrip("\\")
    assert len(lines) == 4 + sum(len(s.trials) for r in good.repetitions for s in r.searches)


def test_github_shows_what_did_not_pass_first_and_no_more_than_it_can() -> None:
    (good,) = points({16: 5e6})
    bad = replace(good, state=PointState.NO_NUMBER, reason="late", point=replace(good.point, key="bad"))
    many = [replace(good, point=replace(good.point, key=f"p{number}")) for number in range(MOST_CASES + 5)]
    text = to_github_summary(cases_of(record_of([*many, bad])))
    rows = [line for line in text.splitlines() if line.startswith(("| ✅", "| ⚠️"))]
    assert len(rows) == MOST_CASES
    assert rows[0].split("|")[2].strip() == "bad"
    assert "6 more passed" in text
    assert text.startswith("### ⚠️")
    assert to_github_summary(cases_of(record_of(many[:1]))).startswith("### ✅")
    assert "nothing was measured" in to_github_summary(cases_of(record_of([])))


@pytest.mark.parametrize("read", [read_openmetrics, read_text_format])
def test_prometheus_reads_the_figures_in_base_units(read: Any) -> None:
    """Both its formats: the textfile collector of the node exporter reads the older one."""
    chance = random.Random("delay")
    found = [
        *points({16: 5e6, 64: 3e6}),
        delay_record(point_of("net", 3, "gateway-v6", 16, "latency", repetitions=1), chance=chance, runs=2),
        recovery_record(point_of("net", 4, "gateway-v4", 16, "recovery", repetitions=1), chance=chance),
    ]
    record = record_of(found, finished_at=None)
    families = {family.name: family for family in read(to_openmetrics([record]))}
    rates = families["evenhand_throughput_frames_per_second"].samples
    assert {sample.labels["point"]: sample.value for sample in rates} == {
        point.point.key: point.statistics.median for point in found[:2] if point.statistics
    }
    assert [s.value for s in families["evenhand_typical_latency_seconds"].samples] == [pytest.approx(15e-6)]
    assert [s.value for s in families["evenhand_recovery_time_seconds"].samples] == [0.4]
    (started,) = families["evenhand_run_started_timestamp_seconds"].samples
    assert started.value == 1772438400.0
    assert "evenhand_run_finished_timestamp_seconds" not in families
    verdicts = {
        sample.labels["verdict"]: sample.value
        for sample in families["evenhand_point_trials"].samples
        if sample.labels["point"] == found[0].point.key
    }
    trials = [t.result for r in found[0].repetitions for s in r.searches for t in s.trials]
    assert verdicts == {
        verdict: sum(str(trial.verdict) == verdict for trial in trials)
        for verdict in ("PASS", "FAIL", "INVALID")
    }


def test_of_two_runs_of_a_campaign_the_newest_has_the_series() -> None:
    old = record_of(points({16: 5e6}))
    new = record_of(points({16: 3e6}, "b"), created_at="2026-03-09T08:00:00Z")
    for order in ([old, new], [new, old]):
        families = {family.name: family for family in read_openmetrics(to_openmetrics(order))}
        (sample,) = families["evenhand_throughput_frames_per_second"].samples
        assert new.points[0].statistics is not None
        assert sample.value == new.points[0].statistics.median


def test_a_lower_bound_is_marked() -> None:
    bound = throughput_record(
        point_of("net", 0, "gateway-v4", 16, repetitions=1), 1e9, chance=random.Random(2)
    )
    bound = replace(
        bound,
        state=PointState.MEASURED,
        repetitions=tuple(
            replace(r, value=1e6, outcome="at_or_above_maximum", result={}) for r in bound.repetitions
        ),
    )
    record = record_of([bound])
    families = {family.name: family for family in read_openmetrics(to_openmetrics([record]))}
    assert [s.value for s in families["evenhand_point_is_lower_bound"].samples] == [1.0]
    (case,) = cases_of(record).cases
    assert case.result == ">= 1,000,000 fps"


def test_influx_reads_every_value_of_the_tables() -> None:
    record = record_of(points({16: 5e6, 64: 3e6}))
    for table, name, time_column in (
        ("repetitions", "evenhand_repetition", "finished_at"),
        ("trials", "evenhand_trial", "started_at"),
    ):
        rows = list(rows_of(record, table))  # type: ignore[arg-type]
        lines = [parse_line(line) for line in to_line_protocol(record, (table,)).splitlines()]  # type: ignore[arg-type]
        assert len(lines) == len(rows) > 0
        for row, line in zip(rows, lines, strict=True):
            assert line["measurement"] == name
            assert line["tags"] == {"run": record.name} | {
                key: str(row[key]) for key in TAGS if row.get(key) not in (None, "")
            }
            assert line["fields"] == {
                key: value
                for key, value in row.items()
                if key not in TAGS and key != time_column and value not in (None, "")
            }
            assert re.fullmatch(r"\d{19}", str(line["time"]))
    assert len(
        {re.split(r"(?<!\\) ", line)[0] for line in to_line_protocol(record, ("trials",)).splitlines()}
    ) == len(rows)
