# SPDX-License-Identifier: Apache-2.0
"""What a search leaves open belongs to its value, whatever the procedure: gate, trend, plateau and ratios
call nothing a difference that lies in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand.analysis import compare, compare_sessions
from evenhand.analysis.comparison_model import Comparison
from evenhand.analysis.trend import trend
from evenhand.procedure.descriptor import EXACT, LeftOpen
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import CampaignRecord
from tests.analysis.records import point, record

COUNT = 8
A_CAPACITY = {"outcome": "found", "is_at_least": False, "steps": [], "goal": {}}
SEARCHES: dict[str, tuple[Any, float, float]] = {
    # The document of a value and of what failed next to it; the value that one step of the search is from.
    "throughput": (lambda low, high: {"upper_fps_per_direction": high}, 1000.0, 1010.0),
    "connections": (lambda low, high: {"failed_per_second": high}, 1000.0, 1010.0),
    "capacity": (lambda low, high: {**A_CAPACITY, "not_held": round(high)}, 1000.0, 1010.0),
    "back-to-back": (
        lambda low, high: {"repetitions": [{"shortest_failed_burst_frames": round(high)}] * 3},
        1000.0,
        1010.0,
    ),
    "burst": (lambda low, high: {"intervals": [{"failed_interval_s": low / 1e6}]}, 1000.0, 1010.0),
}
EXACT_ONES = {"loss", "latency", "pdv", "ipdv", "recovery", "tear-down"}
"""Their figure is no end of a search."""


def run_of(procedure: str, values: list[tuple[float, float]], name: str = "a") -> CampaignRecord:
    """Repetitions with these brackets."""
    make, *_ = SEARCHES[procedure]
    found = point(1, [high if procedure == "burst" else low for low, high in values], procedure=procedure)
    repetitions = tuple(
        replace(one, procedure=procedure, result=make(*bracket))
        for one, bracket in zip(found.repetitions, values, strict=True)
    )
    return record(replace(found, repetitions=repetitions), name=name)


def neighbours(procedure: str) -> list[CampaignRecord]:
    """Two runs whose DUTs differ by 0.1 %: so each search ends at another of two neighbouring values, 1 %
    apart."""
    _, low, high = SEARCHES[procedure]
    return [
        run_of(procedure, [(low, high)] * COUNT, "before"),
        run_of(procedure, [(high, high * high / low)] * COUNT, "after"),
    ]


def test_each_procedure_says_what_it_leaves_open() -> None:
    assert set(PROCEDURES) == SEARCHES.keys() | EXACT_ONES
    for name, (make, low, high) in SEARCHES.items():
        left = PROCEDURES[name].left_open(PROCEDURES[name].read(make(low, high)))
        assert left == (LeftOpen(low=low) if name == "burst" else LeftOpen(high=high)), name
    assert all(PROCEDURES[name].left_open({"upper_fps_per_direction": 1.0}) == EXACT for name in EXACT_ONES)


@pytest.mark.parametrize("procedure", SEARCHES)
def test_neighbouring_values_of_a_search_are_no_difference(procedure: str) -> None:
    """Connection rates 0.1 % apart were different with 95.7 %, and failed a gate of 0.995."""
    for pair in (neighbours(procedure), neighbours(procedure)[::-1]):
        found = compare(pair)
        ratio = found.points[0].others[0].ratio
        assert ratio is not None
        assert ratio.is_different is False
        assert ratio.search_width == pytest.approx(1 / 101, rel=0.02)
        assert not found.below(0.995, "interval")
        assert not any(each.changes for each in trend(pair).points)


@pytest.mark.parametrize("procedure", SEARCHES)
def test_a_difference_beyond_what_is_left_open_is_one(procedure: str) -> None:
    _, low, high = SEARCHES[procedure]
    worse = (1.1 * low, 1.1 * high) if procedure == "burst" else (0.9 * low, 0.9 * high)
    pair = [run_of(procedure, [(low, high)] * COUNT, "a"), run_of(procedure, [worse] * COUNT, "b")]
    assert is_different(compare(pair))
    assert compare(pair).below(0.97, "interval")
    assert [len(each.changes) for each in trend(pair).points] == [1]


@pytest.mark.parametrize("procedure", SEARCHES)
def test_sessions_keep_what_is_left_open(procedure: str) -> None:
    _, low, high = SEARCHES[procedure]
    sides = [
        [run_of(procedure, [bracket] * COUNT, f"{side}{i}") for i in range(4)]
        for side, bracket in (("a", (low, high)), ("b", (high, high * high / low)))
    ]
    assert not is_different(compare_sessions(sides))


def test_bursts_that_followed_each_other_without_a_gap_are_no_lower_than_anything() -> None:
    """Nothing failed: so how close together they could be is not known, and no gate can fail on it."""
    make = {"intervals": [{"failed_interval_s": None}]}
    whole = run_of("burst", [(1000.0, 1010.0)] * COUNT)
    first = whole.points[0]
    open_ended = replace(first, repetitions=tuple(replace(one, result=make) for one in first.repetitions))
    assert set(open_ended.lowers) == {0.0}
    found = compare([record(open_ended, name="a"), run_of("burst", [(1020.0, 1030.0)] * COUNT, "b")])
    assert not is_different(found)


def is_different(found: Comparison) -> bool:
    ratio = found.points[0].others[0].ratio
    assert ratio is not None
    return bool(ratio.is_different)


@pytest.mark.parametrize("result", [{"intervals": 5}, {"intervals": [3]}])
def test_intervals_of_a_file_that_are_none_are_refused(result: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^repetitions\.result\.intervals"):
        replace(run_of("burst", [(1.0, 2.0)]).points[0].repetitions[0], result=result)


@pytest.mark.parametrize("result", [{"intervals": []}, {}])
def test_a_foreign_document_leaves_nothing_open(result: dict[str, Any]) -> None:
    made = run_of("burst", [(1.0, 2.0)] * COUNT).points[0]
    for one in made.repetitions:
        assert replace(one, result=result).lower in (None, 0.0)
