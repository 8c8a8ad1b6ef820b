# SPDX-License-Identifier: Apache-2.0
"""Station 10: the command that makes one trial of a run again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.base.option import options_of
from evenhand.run import StoredSearch, StoredTrial
from evenhand.spec.common_options import EstablishedOptions, LearningOptions, LimitOptions, WaitOptions
from evenhand.spec.plan import PLAN_OPTIONS
from evenhand.spec.request import Point

CONDITIONS = {
    each.name: each
    for group in (LearningOptions, EstablishedOptions, WaitOptions, LimitOptions)
    for each in options_of(group)
}
"""Options that `evenhand trial` has as every procedure has them, by name."""
OF_OTHER_TRIALS = ("then", "burst", "delays", "connections")
"""Keys of the document of a trial that sends more than one even load: `evenhand trial` makes none."""


def trial_command(
    point: Point, command: Sequence[str], search: StoredSearch, trial: StoredTrial, testbed: str
) -> str | None:
    """`evenhand trial lab.toml --plan gateway-v4 ... --rate 64000`; None for a trial that this verb does not
    make.

    Args:
        command: That of the run.
        testbed: As the run's command names it, or a file of this name.
    """
    result = trial.result
    if any(key in result.raw for key in OF_OTHER_TRIALS):
        return None
    named = next((word for word in command if word.rpartition("/")[2] == testbed), testbed)
    words = ["evenhand", "trial", named, "--plan", point.plan]
    words += ["--hosts", point.hosts.written, "--networks", point.networks.written]
    for field, value in point.plan_options.items():
        if field in PLAN_OPTIONS:
            words += _written(PLAN_OPTIONS[field].name, value)
    words += ["--direction", point.directions[0]] if len(point.directions) == 1 else []
    words += ["--frame-size", str(point.frame_size), "--seed", str(search.seed)]
    words += ["--rate", f"{result.intended_fps:.17g}fps", "--duration", f"{result.intended_duration_s:.17g}s"]
    words += ["--loss-ratio", f"{result.loss_ratio_limit:.17g}"] if result.loss_ratio_limit else []
    words += [*_of_goal(point.goal), *_of_command(command)]
    return shlex.join(words)


def _of_goal(goal: Mapping[str, Any]) -> Iterator[str]:
    """What a campaign's file says of the conditions."""
    for name, value in goal.items():
        option = CONDITIONS.get(name)
        if option is not None and value != option.default:
            yield from _written(name, value)


def _of_command(command: Sequence[str]) -> Iterator[str]:
    """What the command of a verb says of them, as it was written."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, mark, _ = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in CONDITIONS:
            yield word
            if not mark and not following.startswith("--"):
                yield following


def _written(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [] if value is None else [f"--{name}", str(value)]
