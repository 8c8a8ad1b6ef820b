# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong type or size from Python: refused as one kind of error, before anything is asked of a
DUT."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest

import evenhand
from evenhand.base.errors import RequestError
from tests.cli.running import TESTBED

NEEDED: dict[str, dict[str, Any]] = {
    "ThroughputGoal": {"max_fps": 1e6},
    "Tst009Goal": {"max_fps": 1e6},
    "DelayGoal": {"test": evenhand.DelayTest.PDV, "rate_fps": 1e5},
    "RecoveryGoal": {"throughput_fps": 1e5},
    "ConnectionWish": {"count": 100, "rate_fps": 1e4},
    "TearDownGoal": {"rate_fps": 1e4},
}
ASKED = (
    *("ThroughputGoal", "Tst009Goal", "LossGoal", "BackToBackGoal", "BurstGoal", "RecoveryGoal"),
    *("DelayGoal", "ConnectionRateGoal", "CapacityGoal", "TearDownGoal", "ConnectionWish"),
    *("Waits", "Limits", "LearningChoice", "Repetitions"),
)
"""What a script makes to ask for something."""


@pytest.mark.parametrize("name", ASKED)
def test_no_field_takes_a_text_or_what_is_no_number(name: str) -> None:
    kind: Any = getattr(evenhand, name)
    given = NEEDED.get(name, {})
    kind(**given)
    for field in fields(kind):
        for wrong in ("1e6 fps", math.nan, -math.inf, object()):
            if field.type == "str | None" and isinstance(wrong, str):
                continue
            with pytest.raises(RequestError) as refused:
                kind(**{**given, field.name: wrong})
            assert field.name in str(refused.value.where), (field.name, wrong)
        is_number = isinstance(given.get(field.name, field.default), float)
        if is_number and field.name != "max_fps" and field.default != math.inf:
            with pytest.raises(RequestError):
                kind(**{**given, field.name: math.inf})
        assert field.default is not MISSING or field.default_factory is not MISSING or field.name in given


HUGE = (10**400, -(10**400), 10**5000, 1e308, 5e-324, Fraction(10**400), Fraction(1, 10**400))
SEQUENCES: tuple[Any, ...] = ((10**400, 1), [10**5000], range(10**400))


@pytest.mark.parametrize("name", ASKED)
def test_a_number_that_nothing_has_is_refused_with_its_field(name: str) -> None:
    """Before anything is computed of it, which may take for ever, or end in an OverflowError."""
    kind: Any = getattr(evenhand, name)
    given = NEEDED.get(name, {})
    for field in fields(kind):
        for huge in (*HUGE, *SEQUENCES, "9" * 10**6):
            if field.type == "str | None" and isinstance(huge, str):
                continue
            with pytest.raises(RequestError) as refused:
                kind(**{**given, field.name: huge})
            assert field.name in str(refused.value.where)
            assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "huge", [*HUGE, *SEQUENCES, "9" * 400, (1, 2, 3)], ids=lambda huge: type(huge).__name__
)
@pytest.mark.parametrize("argument", ["hosts", "networks", "source_ports", "host_mode"])
def test_no_plan_has_such_a_number(argument: str, huge: Any) -> None:
    with pytest.raises(RequestError) as refused:
        evenhand.make_plan("direct-v4-net16", **{argument: huge})
    assert argument in str(refused.value.where)
    with pytest.raises(RequestError):
        evenhand.mix_versions(evenhand.make_plan("gateway-v4"), evenhand.make_plan("gateway-v6"), huge)


@pytest.mark.parametrize("goal", [evenhand.ConnectionRateGoal, evenhand.CapacityGoal])
def test_no_connections_a_second_are_refused(goal: Any) -> None:
    with pytest.raises(RequestError) as refused:
        goal(max_fps=0)
    assert refused.value.where == "max_fps"


def test_numbers_of_numpy_become_those_of_python() -> None:
    """They come from `numpy.linspace`, for example; no document can have them."""
    goal = evenhand.ThroughputGoal(max_fps=numpy.float32(1e5), patience=numpy.int64(3))
    plan = evenhand.make_plan("gateway-v4", (numpy.int64(5), 6))
    burst = evenhand.BurstGoal(burst_frames=(numpy.int64(16), 64))
    assert json.loads(json.dumps([goal.to_document(), plan.to_contract(), burst.to_document()]))
    assert (goal.max_fps, type(goal.patience), plan.hosts) == (1e5, int, (5, 6))
    assert evenhand.ThroughputGoal(max_fps=Fraction(200_001, 2)).max_fps == 100_000.5


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("loss_ratio", 1.0),
        ("loss_ratio", -0.1),
        ("overdue_tolerance", 5.0),
        ("overdue_tolerance", 1.0),
        ("offered_tolerance", 0.2),
        ("longest_overdue_us", -1.0),
        ("clock_ppm", 0.0),
    ],
)
def test_limits_that_the_command_refuses_are_refused(limit: str, value: float) -> None:
    with pytest.raises(RequestError) as refused:
        evenhand.Limits(**{limit: value})
    assert (refused.value.code, refused.value.where) == ("trial.out-of-range", limit)


def test_no_wait_is_negative() -> None:
    with pytest.raises(RequestError) as refused:
        evenhand.Waits(residual_s=-1)
    assert (refused.value.code, refused.value.where) == ("trial.out-of-range", "residual_s")


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning": True},
        {"waits": "short"},
        {"limits": {"loss_ratio": 0}},
        {"directions": ("sideways",)},
        {"directions": ()},
        {"seed": -1},
        {"seed": 1.5},
        {"host_macs": "mine"},
        {"frame_size": "64"},
        {"plan": 4},
        {"established": 100},
    ],
    ids=str,
)
def test_a_wrong_condition_is_refused_before_an_engine_is_looked_for(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    """By every method: the engine that is named does not exist."""
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    (name,) = wrong
    with evenhand.open_testbed(path, engine=tmp_path / "none") as bed:
        calls: list[Any] = [
            lambda: bed.throughput(**wrong),
            lambda: bed.trial(rate_fps=1e3, duration_s=1, **wrong),
            lambda: bed.connections(**wrong),
            lambda: bed.capacity(**wrong),
            lambda: bed.tear_down(goal=evenhand.TearDownGoal(rate_fps=1e3), **wrong),
        ]
        for call in calls:
            with pytest.raises(RequestError) as refused:
                call()
            assert name in str(refused.value.where)
