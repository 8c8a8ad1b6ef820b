# SPDX-License-Identifier: Apache-2.0
"""What a script may call a testbed's procedures with: refused is what is of the wrong type, before anything
is started."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand
from evenhand.base.option import fill
from evenhand.plan import make_plan
from evenhand.procedure import LossGoal, OpenTestbed, Profile, retries_of
from evenhand.procedure.registry import PROCEDURES, Procedure
from evenhand.rig import Setup
from evenhand.testbed import make_testbed
from tests.errors import raises

VERBS = ("throughput", "loss", "latency", "pdv", "ipdv", "burst", "back_to_back", "recovery", "trial")


@pytest.fixture
def bed() -> OpenTestbed:
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0"},
        "right": {"device": "net_ring1"},
        "tester": {"cpus": [0]},
    }
    return OpenTestbed(setup=Setup(name="t", testbed=make_testbed(document, where="t")))


def test_each_verb_that_measures_is_a_method(bed: OpenTestbed) -> None:
    assert all(callable(getattr(bed, verb)) for verb in VERBS)


@pytest.mark.parametrize("verb", ["delay", "recovery"])
@pytest.mark.parametrize("goal", [None, "60s", LossGoal()])
def test_a_procedure_that_needs_a_goal_refuses_none_and_others(
    bed: OpenTestbed, verb: str, goal: object
) -> None:
    """None was an AttributeError in the middle of it."""
    with raises("base.wrong-type") as refused:
        getattr(bed, verb)(goal=goal)
    assert refused.value.where == "goal"
    assert refused.value.next_step


@pytest.mark.parametrize(
    "verb", ["throughput", "loss", "burst", "back_to_back", "throughput_table", "loss_table"]
)
def test_a_goal_of_another_procedure_is_refused(bed: OpenTestbed, verb: str) -> None:
    with raises("base.wrong-type") as refused:
        getattr(bed, verb)(goal=evenhand.DelayGoal(test=evenhand.DelayTest.PDV, rate_fps=1e3))
    assert refused.value.where == "goal"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plan", 4),
        ("frame_size", "64"),
        ("directions", "forward"),
        ("seed", 1.5),
        ("waits", "short"),
        ("limits", {}),
        ("host_macs", "x"),
    ],
)
def test_a_condition_of_the_wrong_type_is_refused_by_its_name(
    bed: OpenTestbed, name: str, value: object
) -> None:
    with raises("base.wrong-type") as refused:
        bed.throughput(**{name: value})  # type: ignore[arg-type]
    assert refused.value.where == name


@pytest.mark.parametrize("verb", ["latency", "pdv", "ipdv"])
def test_a_delay_needs_a_load(bed: OpenTestbed, verb: str) -> None:
    """R8219-08: the throughput, or a rate of the user's."""
    with raises("procedure.no-load"):
        getattr(bed, verb)()
    with raises("base.wrong-type") as refused:
        getattr(bed, verb)("1Mfps")
    assert refused.value.where == "rate_fps"


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=list(PROCEDURES))
def test_a_load_above_the_line_rate_is_refused_before_the_dut_learns_its_hosts(
    procedure: Procedure, bed: OpenTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every procedure's, also one that has no check of its own; learning may take a minute."""
    options: Any = fill(procedure.options, {procedure.load_option.name: "3Mfps"})
    goal = procedure.make_goal(options, retries_of(bed.setup.testbed.limits), None)
    profile = Profile(
        plan=make_plan("gateway-v4"),
        frame_size=64,
        seed=1,
        directions=("forward", "reverse"),
        line_rate_bps=1_000_000_000,
        theoretical_fps=1_488_095,
    )
    checks: list[Any] = []
    monkeypatch.setattr(OpenTestbed, "tester", lambda self, *, check, **_: checks.append(check))
    bed._tester_for(procedure, goal, {})
    with raises("rig.above-line-rate"):
        checks[0](profile)


@pytest.mark.parametrize(("plan", "size", "fps"), [("gateway-v4", 64, 744_047), ("gateway-v6", 84, 600_961)])
def test_a_rate_as_people_write_it_is_frames_for_a_script(plan: str, size: int, fps: int) -> None:
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0", "line_rate": "1Gbps"},
        "right": {"device": "net_ring1", "line_rate": "1Gbps"},
        "tester": {"cpus": [0]},
    }
    bed = OpenTestbed(setup=Setup(name="t", testbed=make_testbed(document, where="t")))
    for text in ("50%", "500Mbit/s"):
        assert bed.rate_fps(text, plan=plan, frame_size=size) == fps
    assert bed.rate_fps("20kfps", plan=plan) == 20_000
    with raises("base.not-a-quantity", match="text: "):
        bed.rate_fps("fast", plan=plan)


def test_rates_of_two_directions_need_both_and_a_procedure_that_has_two(bed: OpenTestbed) -> None:
    four_to_one = evenhand.DirectionRates(ratio=(4, 1))
    with raises("procedure.rates-need-both-directions"):
        bed.throughput(rates=four_to_one, directions=("forward",))
    with raises("procedure.rates-not-possible"):
        bed.burst(rates=four_to_one)
    with raises("base.wrong-type", match="rates"):
        bed.throughput(rates=(4, 1))  # type: ignore[arg-type]
