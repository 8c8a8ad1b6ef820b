# SPDX-License-Identifier: Apache-2.0
"""What is the same for every procedure that is repeated: when it ends, and how long the rest should take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

import evenhand.procedure.testbed as testbed_module
from evenhand.base.time_span import TimeSpan
from evenhand.procedure import OpenTestbed, ProcedureEvent, Repetitions
from evenhand.procedure.events import Began, left_of
from evenhand.procedure.repetition import repeat
from evenhand.procedure.throughput import THROUGHPUT, wish_of
from evenhand.search import MlrGoal, MlrGoals


@dataclass
class Found:
    """A result, as far as repetitions look at it."""

    value: float
    outcome: str = "found"
    is_at_least: bool = False


@pytest.mark.parametrize(("spread", "made"), [(0.125, 3), (0.12, 4)])
def test_repetitions_end_where_their_spread_is_at_most_the_one_that_is_enough(
    spread: float, made: int
) -> None:
    """(9 - 8) / 8 is 0.125 exactly."""
    values: Any = [Found(8), Found(9), Found(8), Found(8), Found(8)]
    row = repeat(
        lambda number: values[number - 1],
        Repetitions(count=4, spread=spread),
        frame_size=64,
        spread_of=lambda done: (max(r.value for r in done) - min(r.value for r in done)) / 8,
        on_event=lambda event: None,
    )
    assert len(row.repetitions) == made


def test_the_time_left_of_repetitions_is_learnt_from_those_that_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three with one size, two with the sizes that follow. The first took 30 s, the second 10 s."""
    now_s = [100.0]
    monkeypatch.setattr(testbed_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    said: list[TimeSpan] = []

    def measure(tester: Any, goal: Any, *, on_event: Any, repetition: int, **_: Any) -> Found:
        on_event(Began(what="a trial", remaining_s=4.0))
        now_s[0] += {1: 30.0, 2: 10.0, 3: 5.0}[repetition]
        return Found(1.0)

    def note(event: ProcedureEvent) -> None:
        if isinstance(event, Began):
            said.append(left_of(event))

    nothing: Any = None
    bed = OpenTestbed(setup=nothing, on_event=note)
    bed._row(
        replace(THROUGHPUT, measure=measure),
        nothing,
        nothing,
        Repetitions(count=3),
        size=64,
        later=2,
        each=TimeSpan(10.0, 50.0),
    )
    assert [(span.least_s, span.most_s) for span in said] == [
        (4 + 4 * 10, 4 + 4 * 50),
        (4 + 3 * 30, 4 + 3 * 30),
        (4 + 2 * 20, 4 + 2 * 20),
    ]


def test_the_testers_ceiling_is_sought_as_far_as_the_kindest_goal_may_pass() -> None:
    goals = MlrGoals(
        max_fps=1e6, goals=(MlrGoal(name="NDR"), MlrGoal(name="PDR", loss_ratio=0.005, exceed_ratio=0.5))
    )
    assert wish_of(goals).loss_ratio == 0.005
