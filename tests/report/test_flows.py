# SPDX-License-Identifier: Apache-2.0
"""Flows of a trial for people: a row for each flow of each direction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.report.flows import failed_flows, flow_places, flows_table, has_flows
from evenhand.report.trial import trial_report
from evenhand.trial import ClassCount, CleanCounts, CleanTime, LeftOut, Load, SimulatedMeasurer, TrialResult
from evenhand.trial.direction import _class, read_flow_result
from tests.report.test_throughput import shown

FLOW = {
    "name": "voice",
    "loss_at_most": 0.0,
    "duplicated_frames": 7,
    "reordered_frames": 3,
    "late_frames": 1,
    "remarked_frames": 2,
    "latency": {
        "count": 90,
        "min_ns": 1000,
        "max_ns": 9000,
        "mean_ns": 2000,
        "p50_ns": 1500,
        "p99_ns": 8000,
        "p999_ns": 8900,
    },
}
NONE = dict.fromkeys(("min_ns", "max_ns", "mean_ns", "p50_ns", "p99_ns", "p999_ns"))


def with_flows() -> TrialResult:
    result = SimulatedMeasurer(limit_fps=1e6).offer(Load(rate_fps=1000, duration_s=1))
    voice = ClassCount(
        ip_version=4,
        frame_size=84,
        offered_frames=100,
        received_frames=90,
        lost_frames=10,
        flow=read_flow_result(FLOW),
    )
    nothing = {**FLOW, "name": "rest", "loss_at_most": None, "latency": {"count": 0, **NONE}}
    rest = ClassCount(
        ip_version=4,
        frame_size=1518,
        offered_frames=900,
        received_frames=0,
        lost_frames=900,
        flow=read_flow_result(nothing),
    )
    directions = {
        name: replace(direction, classes=(voice, rest)) for name, direction in result.directions.items()
    }
    return replace(result, directions=directions)


def test_a_flow_is_read_as_it_was_counted() -> None:
    flow = read_flow_result(FLOW)
    assert flow is not None
    assert (flow.name, flow.loss_at_most, flow.reordered_frames, flow.latency.p999_ns) == (
        "voice",
        0,
        3,
        8900,
    )
    assert read_flow_result(None) is None


def test_each_flow_of_each_direction_has_a_row() -> None:
    text = shown(trial_report(with_flows()))
    rows = [line for line in text.splitlines() if "voice" in line or "rest" in line]
    assert [row.split()[:2] for row in rows] == [
        ["forward,", "voice"],
        ["forward,", "rest"],
        ["reverse,", "voice"],
        ["reverse,", "rest"],
    ]
    assert "84" in rows[0]
    assert "1.5 us" in rows[0]
    assert "10 %" in rows[0]
    assert "8.9 us" in rows[0]
    assert "none" in rows[1]
    assert "100 %" in rows[1]


def test_a_trial_without_flows_has_no_such_table() -> None:
    result = SimulatedMeasurer(limit_fps=1e6).offer(Load(rate_fps=1000, duration_s=1))
    assert not has_flows(result)
    assert "may lose" not in shown(trial_report(result))


def in_clean_time(result: TrialResult) -> TrialResult:
    """Judged by 60 frames of voice, of which 1 was lost, and by 500 of the rest."""
    counts = (CleanCounts(frames=60, lost_frames=1), CleanCounts(frames=500, lost_frames=0))
    clean = CleanTime(
        wanted_s=1.0,
        sent_s=2.0,
        clean_s=1.0,
        is_enough=True,
        pieces=2,
        lapses={"sender_overdue": 1, "receiver_away": 0, "dut_away": 0},
        left_out=(LeftOut(from_s=0.5, until_s=1.5, kinds=("sender_overdue",)),),
    )
    directions = {
        name: replace(
            direction,
            clean=CleanCounts(frames=560, lost_frames=1),
            classes=tuple(
                replace(each, clean=count) for each, count in zip(direction.classes, counts, strict=True)
            ),
        )
        for name, direction in result.directions.items()
    }
    return replace(result, clean=clean, directions=directions)


def test_in_clean_time_each_flow_shows_what_it_is_judged_by() -> None:
    result = in_clean_time(with_flows())
    table = flows_table(result)
    titles = [column.title for column in table.columns]
    at = [titles.index(title) for title in ("judged frames", "lost of these", "lost")]
    rows = [[row[each].text for each in at] for row in table.rows]
    assert rows[0] == ["60", "1", "1.667 %"]
    assert rows[1] == ["500", "0", "0 %"]
    assert failed_flows(result) == ["voice lost 2 of 120 frames (at most 0 %)"]
    assert "judged frames" not in [column.title for column in flows_table(with_flows()).columns]
    of_rest = next(place for place in flow_places(result) if place.flow.name == "rest")
    assert (of_rest.judged.frames, of_rest.loss_ratio) == (500, 0)


def test_a_flow_cannot_have_lost_more_in_clean_time_than_in_all() -> None:
    document = {
        "ip_version": 4,
        "frame_size": 84,
        "offered_frames": 9,
        "received_frames": 8,
        "lost_frames": 1,
    }
    assert _class(document | {"clean": {"frames": 5, "lost_frames": 1}}).clean == CleanCounts(
        frames=5, lost_frames=1
    )
    with pytest.raises(ValueError, match="clean"):
        _class(document | {"clean": {"frames": 5, "lost_frames": 2}})
