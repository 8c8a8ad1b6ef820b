# SPDX-License-Identifier: Apache-2.0
"""What Python passes to the public API: wrong types are refused in three parts, and errors name arguments,
not options of the shell."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import evenhand
from evenhand.cli.main import app_of
from evenhand.cli.usage import as_typed
from evenhand.plan import make_plan
from evenhand.procedure import Profile, check_frame_sizes, choose_frames
from evenhand.procedure.tester import choose_maximum
from evenhand.spec.place import argument_options, option_places, option_words
from evenhand.trial import DelayWish
from tests.cli.running import run_here
from tests.errors import raises

WRONG: list[tuple[Callable[..., object], dict[str, Any], str, str]] = [
    (evenhand.ThroughputGoal, {"max_fps": "40k"}, "max_fps", "frames per second"),
    (evenhand.ThroughputGoal, {"max_fps": 1e6, "duration_s": "5s"}, "duration_s", "seconds"),
    (evenhand.ThroughputGoal, {"max_fps": 1e6, "max_trials": 1.5}, "max_trials", "whole number"),
    (evenhand.ThroughputGoal, {"max_fps": True}, "max_fps", "frames per second"),
    (evenhand.ThroughputGoal, {"max_fps": None}, "max_fps", "frames per second"),
    (evenhand.ThroughputGoal, {"max_fps": 1e6, "is_guided": "yes"}, "is_guided", "True or False"),
    (evenhand.Tst009Goal, {"max_fps": 1e6, "loss_ratio": "0.5%"}, "loss_ratio", "a number"),
    (evenhand.MlrGoal, {"name": 1}, "name", "a text"),
    (evenhand.MlrGoal, {"name": "NDR", "width": "1%"}, "width", "a number"),
    (evenhand.MlrGoals, {"goals": ("NDR",), "max_fps": 1e6}, "goals", "MlrGoal"),
    (evenhand.MlrGoals, {"goals": "NDR", "max_fps": 1e6}, "goals", "MlrGoal"),
    (evenhand.LossGoal, {"step": "10%"}, "step", "a number"),
    (evenhand.BurstGoal, {"burst_frames": 16}, "burst_frames", "whole numbers"),
    (evenhand.BurstGoal, {"burst_frames": ("16",)}, "burst_frames", "whole numbers"),
    (evenhand.BackToBackGoal, {"max_burst_s": "2s"}, "max_burst_s", "seconds"),
    (evenhand.BackToBackGoal, {"throughput_goal": 1e6}, "throughput_goal", "ThroughputGoal"),
    (evenhand.DelayGoal, {"test": "latency", "rate_fps": 1e6}, "test", "DelayTest"),
    (
        evenhand.DelayGoal,
        {"test": evenhand.DelayTest.PDV, "rate_fps": "1Mfps"},
        "rate_fps",
        "frames per second",
    ),
    (evenhand.RecoveryGoal, {"throughput_fps": "1Mfps"}, "throughput_fps", "frames per second"),
    (evenhand.Repetitions, {"count": "10"}, "count", "whole number"),
    (evenhand.Waits, {"residual_s": "2s"}, "residual_s", "seconds"),
    (evenhand.Limits, {"overdue_after_us": "100us"}, "overdue_after_us", "microseconds"),
    (evenhand.Limits, {"clock_ppm": "100ppm"}, "clock_ppm", "parts per million"),
    (evenhand.LearningChoice, {"is_skipped": "no"}, "is_skipped", "True or False"),
    (DelayWish, {"tagged_frames": 2.5}, "tagged_frames", "whole number"),
]


@pytest.mark.parametrize(
    ("kind", "arguments", "where", "wanted"), WRONG, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_value_of_the_wrong_type_is_refused_with_its_argument(
    kind: Callable[..., object], arguments: dict[str, Any], where: str, wanted: str
) -> None:
    """`'>' not supported between instances of 'str' and 'int'` told neither which argument, nor what to
    write."""
    with raises("base.wrong-type") as refused:
        kind(**arguments)
    assert refused.value.where == where
    assert refused.value.what.startswith(f"{arguments[where]!r} is not ")
    assert wanted in refused.value.next_step


def test_what_is_as_good_as_the_type_is_taken() -> None:
    """A whole number for a float, a list for a tuple, None where it may be."""
    goal = evenhand.ThroughputGoal(max_fps=1_000_000, precision=Fraction(1, 100), known_fps=None)  # type: ignore[arg-type]
    assert goal.max_fps == 1e6
    assert tuple(evenhand.BurstGoal(burst_frames=[16, 64], rate_fps=math.inf).burst_frames) == (16, 64)  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_rates_and_sizes_of_the_wrong_type_name_their_argument(plan: str) -> None:
    address_plan = make_plan(plan)
    profile = Profile(
        plan=address_plan, frame_size=84, seed=1, directions=("forward",), theoretical_fps=1_000_000
    )
    with raises("base.wrong-type") as rate:
        choose_maximum("1Mfps", profile, where="rate_fps")  # type: ignore[arg-type]
    assert rate.value.where == "rate_fps"
    with raises("base.wrong-type") as size:
        choose_frames(address_plan, "64")  # type: ignore[arg-type]
    assert size.value.where == "frame_size"
    with raises("procedure.frame-size-out-of-range") as small:
        choose_frames(address_plan, 20)
    assert small.value.where == "frame_size"
    with raises("procedure.listed-twice") as twice:
        check_frame_sizes(address_plan, [512, 512])
    assert twice.value.where == "frame_sizes"
    with raises("procedure.no-maximum-rate") as unknown:
        choose_maximum(
            None, Profile(plan=address_plan, frame_size=84, seed=1, directions=("forward",)), where="max_fps"
        )
    assert "--" not in f"{unknown.value}{unknown.value.next_step}"


@pytest.mark.parametrize(
    ("kind", "arguments", "code", "where"),
    [
        (evenhand.ThroughputGoal, {"max_fps": 0.0}, "search.out-of-range", "max_fps"),
        (evenhand.ThroughputGoal, {"max_fps": 1e6, "min_fps": 2e6}, "search.out-of-range", "min_fps"),
        (
            evenhand.ThroughputGoal,
            {"max_fps": 1e6, "final_duration_s": 1.0},
            "search.durations-contradict",
            "final_duration_s",
        ),
        (evenhand.ThroughputGoal, {"max_fps": 1e6, "patience": -1}, "search.out-of-range", "patience"),
        (evenhand.LossGoal, {"step": 0.5}, "procedure.out-of-range", "step"),
        (evenhand.Repetitions, {"count": 0}, "procedure.out-of-range", "count"),
        (evenhand.MlrGoals, {"goals": (), "max_fps": 1e6}, "search.no-goal", "goals"),
    ],
)
def test_errors_name_the_argument_of_python_and_the_verb_its_option(
    kind: Callable[..., object], arguments: dict[str, Any], code: str, where: str
) -> None:
    with raises(code) as refused:
        kind(**arguments)
    assert refused.value.where == where
    assert where in arguments
    assert (
        as_typed(refused.value, ["throughput"], set(argument_options().values())).where
        == argument_options()[where]
    )


def test_an_argument_is_an_option_only_of_a_verb_that_has_it() -> None:
    assert option_places("burst_frames, duration_s") == "--burst, --duration"
    assert option_places("first, second") == "--plan"
    assert option_places("rate_fps", {"--maximum-rate"}) == "rate_fps"
    assert option_places("lab.toml: dut.plan") == "lab.toml: dut.plan"
    assert (
        option_words("Give max_fps, such as 1Mfps, for each plan.")
        == "Give --maximum-rate, such as 1Mfps, for each plan."
    )


def test_every_option_of_the_table_is_one_of_some_verb() -> None:
    """A name that is changed in the verbs must be changed there too."""
    from typer.main import get_command

    commands: list[Any] = [get_command(app_of())]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
    assert set(argument_options().values()) <= {
        name for command in commands for parameter in command.params for name in parameter.opts
    }


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (["throughput", "lab.toml", "--maximum-rate", "1Mfps", "--minimum-rate", "2Mfps"], "--minimum-rate"),
        (
            [
                "throughput",
                "lab.toml",
                "--maximum-rate",
                "1Mfps",
                "--duration",
                "9s",
                "--final-duration",
                "1s",
            ],
            "--final-duration",
        ),
        (["throughput", "lab.toml", "--duration", "61s"], "--final-duration"),
        (["loss", "lab.toml", "--step", "50%"], "--step"),
        (["back-to-back", "lab.toml", "--max-burst", "31s"], "--max-burst"),
    ],
)
def test_the_command_line_says_its_own_names(
    capsys: pytest.CaptureFixture[str], line: list[str], where: str
) -> None:
    """Typed or not: the default of an option is at fault as well."""
    ended = run_here(line, capsys)
    assert (ended.code, ended.error.where) == (2, where)
