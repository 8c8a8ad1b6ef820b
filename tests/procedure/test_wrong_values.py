# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong type or size from Python: refused as one kind of error, before anything is asked of a
DUT."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

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
