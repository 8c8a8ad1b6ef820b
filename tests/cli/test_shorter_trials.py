# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo` where the host lets trials of two seconds come to no end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evenhand.cli import demo_parts
from evenhand.report.bias import BiasCase
from evenhand.search import Outcome, ThroughputResult
from evenhand.spec.file import Reference
from evenhand.spec.request import Point, plan_of
from evenhand.trial import Reason, Verdict
from tests.cli.running import Ended
from tests.report.test_bias import case as simulated

Measured = list[tuple[str, float]]
"""Hash and seconds of a trial, of each search."""


@pytest.fixture
def ended_by(
    monkeypatch: pytest.MonkeyPatch, evenhand: Callable[..., Ended]
) -> Callable[..., tuple[Ended, Measured]]:
    """`evenhand demo`, whose searches with trials of 2 s end at the tester's ceiling for this reason, from
    the given case on."""

    def run(code: str, *options: str, first: int = 1) -> tuple[Ended, Measured]:
        measured: Measured = []

        def measure(_: Reference, point: Point, *, title: str, **__: Any) -> BiasCase:
            number, goal = int(title[0]), demo_parts.demo_goal(point)
            assert point.hash_type is not None
            measured.append((point.hash_type, goal.duration_s))
            found = simulated(plan_of(point), point.hash_type, 50_000 if number == 1 else 400_000)
            result = replace(found.result, goal=goal)
            return replace(
                found,
                result=spoiled(result, code)
                if number >= first and (goal.duration_s == 2 or "--quick" in options)
                else result,
            )

        monkeypatch.setattr(demo_parts, "_measure", measure)
        monkeypatch.setattr(demo_parts, "find_program", lambda name: None)
        return evenhand("demo", "--no-run", "--json", *options), measured

    return run


def spoiled(result: ThroughputResult, code: str) -> ThroughputResult:
    trials = tuple(
        replace(
            trial,
            result=replace(
                trial.result, verdict=Verdict.INVALID, reasons=(Reason(code=code, text="spoiled"),)
            ),
        )
        for trial in result.trials
    )
    return replace(result, outcome=Outcome.TESTER_CEILING, throughput_fps=None, upper_fps=None, trials=trials)


@pytest.mark.parametrize("code", ["receiver_gap", "offered_load", "sender_overdue"])
def test_what_the_host_spoiled_is_measured_with_shorter_trials_from_there_on(
    ended_by: Callable[..., Any], code: str
) -> None:
    ended, measured = ended_by(code, first=2)
    assert ended.code == 0, ended.err
    assert measured == [("type1", 2.0), ("type1", 2.0), ("type1", 1.0), ("type2", 1.0)]
    assert (
        "Trials of 2 s were INVALID too often on this machine. From now on trials last 1 s, and a search"
        " stops at 2 %." in ended.err
    )
    searches = json.loads(ended.out)["searches"]
    assert [search["trials_given_up"] > 0 for search in searches] == [False, True, False]
    assert [search["found_fps_per_direction"] is not None for search in searches] == [True] * 3


@pytest.mark.parametrize(
    ("code", "options"), [("link", ()), ("receiver_gap", ("--quick",))], ids=["a dead router", "quick"]
)
def test_nothing_else_makes_trials_shorter(
    ended_by: Callable[..., Any], code: str, options: tuple[str, ...]
) -> None:
    ended, measured = ended_by(code, *options)
    assert ended.code == 1, "there is no verdict"
    assert len(measured) == 3
