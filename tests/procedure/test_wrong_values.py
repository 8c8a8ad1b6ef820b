# SPDX-License-Identifier: Apache-2.0
"""Values of the wrong type or size from Python: refused as one kind of error, before anything is asked of a
DUT."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import numpy as np
import pytest

import evenhand
from evenhand.base.errors import HostError, RequestError
from evenhand.plan import UdpRange
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
ASK: Any = evenhand
ASK_PORTS: Any = UdpRange
"""As those use it who run no type checker."""


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
    goal = evenhand.ThroughputGoal(max_fps=numpy.float32(1e5), patience=numpy.int64(3))  # type: ignore[arg-type]
    plan = evenhand.make_plan("gateway-v4", (numpy.int64(5), 6))  # type: ignore[arg-type]
    burst = evenhand.BurstGoal(burst_frames=(numpy.int64(16), 64))  # type: ignore[arg-type]
    assert json.loads(json.dumps([goal.to_document(), plan.to_contract(), burst.to_document()]))
    assert (goal.max_fps, type(goal.patience), plan.hosts) == (1e5, int, (5, 6))
    assert evenhand.ThroughputGoal(max_fps=Fraction(200_001, 2)).max_fps == 100_000.5  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"frame_sizes": 64}, "frame_sizes"),
        ({"frame_sizes": "all"}, "frame_sizes"),
        ({"frame_sizes": ["64", 128]}, "frame_sizes"),
        ({"frame_sizes": None}, "frame_sizes"),
        ({"repetitions": 3}, "repetitions"),
        ({"repetitions": None}, "repetitions"),
        ({"one_pair_first": "yes"}, "one_pair_first"),
    ],
)
def test_what_only_tables_take_is_checked_too(wrong: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    with evenhand.open_testbed(path, engine=tmp_path / "none") as bed:
        calls: list[Callable[..., Any]] = [bed.throughput_table]
        if named != "one_pair_first":
            calls += [bed.loss_table]
        for call in calls:
            with pytest.raises(RequestError) as refused:
                call(**wrong)
            assert refused.value.where == named


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("throughput", {"name": 3}),
        ("throughput", {"role": "measurement of mine"}),
        ("capacity", {"name": b"capacity"}),
        ("back_to_back", {"throughputs": 1e6}),
        ("pdv", {"rate_fps": 1e4, "has_own_loop": "no"}),
        ("latency", {"rate_fps": 1e4, "profile": np.array([1, 2])}),
        ("throughput", {"host_macs": np.array([1, 2])}),
    ],
)
def test_names_and_choices_of_a_method_have_types(method: str, wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    with evenhand.open_testbed(path, engine=tmp_path / "none") as bed, pytest.raises(RequestError) as refused:
        getattr(bed, method)(**wrong)
    assert refused.value.where == list(wrong)[-1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": 3},
        {"run": 1.5},
        {"run": ""},
        {"engine": ["engine"]},
        {"on_event": "print"},
        {"host_name": "mine"},
    ],
    ids=str,
)
def test_a_testbed_is_opened_with_paths_and_a_function(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    with pytest.raises(RequestError) as refused, evenhand.open_testbed(**{"path": path, **wrong}):
        pass
    assert refused.value.where == next(iter(wrong))


def test_the_engine_may_be_named_as_a_text_like_the_other_files(tmp_path: Path) -> None:
    path = tmp_path / "testbed.toml"
    path.write_text(TESTBED)
    with (
        evenhand.open_testbed(str(path), engine=str(tmp_path / "none")) as bed,
        pytest.raises(HostError, match="none does not exist"),
    ):
        bed.trial(rate_fps=1e3, duration_s=1)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ASK.make_plan(None), "plan"),
        (lambda: ASK.make_plan("gateway-v44"), "plan"),
        (lambda: ASK.make_plan("gateway-v4", "4"), "hosts"),
        (lambda: ASK.make_plan("gateway-v4", 1.5), "hosts"),
        (lambda: ASK.make_plan("gateway-v6", True), "hosts"),
        (lambda: ASK.make_plan("gateway-v6", (1, 2, 3)), "hosts"),
        (lambda: ASK.make_plan("nets-v6-gateway", networks="4"), "networks"),
        (lambda: ASK.make_plan("gateway-v4", host_mode="rising"), "host_mode"),
        (lambda: ASK.make_plan("nets-v4-gateway", network_mode=4), "network_mode"),
        (lambda: ASK.make_plan("gateway-v4", fixed_source="no"), "fixed_source"),
        (lambda: ASK.make_plan("gateway-v4", source_ports=(1, 2)), "source_ports"),
        (lambda: ASK_PORTS(first="1", last="2"), "first"),
        (lambda: ASK.mix_versions("gateway-v4", "gateway-v6", (1, 1)), "first"),
        (
            lambda: ASK.mix_versions(ASK.make_plan("gateway-v4"), ASK.make_plan("gateway-v6"), ("90", "10")),
            "share",
        ),
        (lambda: ASK.parse_imix(64), "text"),
        (lambda: ASK.Imix(sequence=64), "sequence"),
        (lambda: ASK.DrawnOrder(frames="200"), "frames"),
        (lambda: ASK.CapacityGoal(max_fps=0), "max_fps"),
        (lambda: ASK.CapacityGoal(rate_precision=1.5), "rate_precision"),
        (lambda: ASK.CapacityGoal(patience=-1), "patience"),
        (lambda: ASK.ConnectionRateGoal(precision=2), "precision"),
        (lambda: ASK.ConnectionRateGoal(min_fps=-1), "min_fps"),
        (lambda: ASK.ConnectionRateGoal(invalid_retries=-1), "invalid_retries"),
        (lambda: ASK.DelayGoal(test=ASK.DelayTest.PDV, rate_fps=1, throughput_fps=0), "throughput_fps"),
    ],
)
def test_plans_sizes_and_goals_are_refused_where_they_are_made(make: Callable[[], Any], named: str) -> None:
    """Goals up to the line rate as well, which is known only when the ports are open."""
    with pytest.raises(RequestError) as refused:
        make()
    assert refused.value.where == named


def test_a_rate_of_connections_above_what_is_likely_may_be_the_lowest() -> None:
    assert math.isinf(evenhand.ConnectionRateGoal(min_fps=5e6).max_fps)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_numbers_of_other_kinds_are_numbers(number: Any) -> None:
    """They are written as JSON, and remembered, as the plain ones are."""
    goal = ASK.ThroughputGoal(
        max_fps=np.int64(1000), duration_s=number, final_duration_s=1, max_trials=np.int16(20)
    )
    assert goal == ASK.ThroughputGoal(max_fps=1000, duration_s=0.5, final_duration_s=1, max_trials=20)
    assert json.loads(json.dumps(goal.to_document()))["duration_s"] == 0.5
    assert type(ASK.Limits(overdue_tolerance=number).overdue_tolerance) is float
    plans = [ASK.make_plan("gateway-v4", np.int64(4)), ASK.make_plan("gateway-v4", (np.int8(4), 4))]
    assert plans == 2 * [ASK.make_plan("gateway-v4", 4)]
    assert json.dumps(plans[0].to_contract())


def test_a_list_is_as_good_as_a_tuple() -> None:
    burst = ASK.BurstGoal(burst_frames=[np.int64(16), 64], rate_fps=1e6)
    assert burst == ASK.BurstGoal(burst_frames=(16, 64), rate_fps=1e6)
    assert type(burst.burst_frames[0]) is int
    mlr = ASK.MlrGoals(max_fps=1e6, goals=[ASK.MlrGoal(name="mine")])
    assert hash(mlr) == hash(ASK.MlrGoals(max_fps=1e6, goals=(ASK.MlrGoal(name="mine"),)))
