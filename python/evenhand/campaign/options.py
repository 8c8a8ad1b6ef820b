# SPDX-License-Identifier: Apache-2.0
"""Campaign: the options of a point are those of its procedure's verb: the same names, the same defaults, read
the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

from evenhand.cli.back_to_back import BackToBackOptions
from evenhand.cli.burst import BurstOptions
from evenhand.cli.common import read_mix
from evenhand.cli.delay import LatencyProfile, LoadOptions
from evenhand.cli.learning import LearningOptions
from evenhand.cli.limits import LimitOptions, RetryOptions
from evenhand.cli.loss import LossOptions
from evenhand.cli.recovery import OverloadOptions
from evenhand.cli.searches import SearchOptions
from evenhand.cli.throughput import GoalOptions
from evenhand.cli.waits import WaitOptions
from evenhand.plan import (
    CLASSIC_DESTINATION_PORT,
    CLASSIC_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    AddressPlan,
    Counts,
    FrameSize,
    is_imix,
    make_plan,
    mix_versions,
    parse_imix,
)
from evenhand.plan.ports import parse_ports
from evenhand.procedure import (
    BackToBackGoal,
    BurstGoal,
    Conditions,
    DelayGoal,
    DelayTest,
    LossGoal,
    RecoveryGoal,
    limits_of,
)
from evenhand.rig import TestbedLimits
from evenhand.search import Goal
from evenhand.series.campaign import Point, ProcedureName

AFTER = "after"
"""The key of a point's goal that names the point whose throughput it takes."""
ANY_THROUGHPUT_FPS = 1e6
"""Stands for one that is not measured yet, where only the other options are to be checked."""
LOADED: tuple[ProcedureName, ...] = ("latency", "pdv", "ipdv", "recovery")
"""Procedures that need to know a throughput."""
REPEATS_ITSELF: tuple[ProcedureName, ...] = (*LOADED, "back-to-back")
"""Procedures whose verbs have `--repetitions` of trials or searches within."""

_OF_ALL = (LearningOptions, WaitOptions, LimitOptions, RetryOptions)
_GROUPS: Mapping[ProcedureName, tuple[type, ...]] = {
    "throughput": (GoalOptions, SearchOptions),
    "loss": (LossOptions,),
    "latency": (LoadOptions,),
    "pdv": (LoadOptions,),
    "ipdv": (LoadOptions,),
    "back-to-back": (BackToBackOptions,),
    "burst": (BurstOptions,),
    "recovery": (OverloadOptions,),
}
_LATENCY_OPTIONS = {"profile": str(LatencyProfile.RFC8219), "tagged": None}
"""Of the verb itself, in no group."""

T = TypeVar("T")
AnyGoal = Goal | LossGoal | DelayGoal | BackToBackGoal | BurstGoal | RecoveryGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """A point as `OpenTestbed` takes it: `bed.throughput(goal=request.goal, seed=job.seed,
    **request.conditions)`."""

    conditions: Conditions
    """All but the seed; with the frame size also for back-to-back, which takes it apart."""
    goal: AnyGoal


def options_of(procedure: ProcedureName) -> dict[str, Any]:
    """The options of the procedure's verb that a point may have, by name, with their defaults: texts,
    numbers, booleans, lists or None.

    `after` is not among them: in a campaign a throughput comes from a point, not from a file.
    """
    found = {
        option.name: option.default for group in (*_GROUPS[procedure], *_OF_ALL) for option in _options(group)
    }
    found.pop(AFTER, None)
    return found | (_LATENCY_OPTIONS if procedure == "latency" else {})


def read_point(
    point: Point, testbed: TestbedLimits | None = None, *, throughput_fps: float | None = None
) -> PointRequest:
    """All that the point's procedure is called with.

    Args:
        testbed: Limits of the testbed file, which stand behind the point's own.
        throughput_fps: Per direction, of the point that `goal["after"]` names; None for a point that has no
            such key.

    Raises:
        RequestError: It cannot be; names the option as the shell writes it.
    """
    limits = testbed or TestbedLimits()
    options = point.goal
    plan = plan_of(point)
    learning = _fill(LearningOptions, options)
    goal = _read_goal(point, limits, throughput_fps)
    loss_ratio = goal.loss_ratio if point.procedure == "throughput" else 0.0  # type: ignore[union-attr]
    return PointRequest(
        goal=goal,
        conditions=Conditions(
            plan=plan,
            frame_size=read_size(point.frame_size),
            directions=point.directions,
            waits=_fill(WaitOptions, options).read(),
            limits=limits_of(limits, loss_ratio=loss_ratio, given=_fill(LimitOptions, options).read()),
            host_macs=learning.host_macs.value,
            learning=learning.read(plan),
        ),
    )


def plan_of(point: Point, *, is_whole: bool = False) -> AddressPlan:
    """The addresses that the point sends.

    Args:
        is_whole: Instead of these all that the plan has: what the DUT is set up for, once for all points of a
            suite.

    Raises:
        RequestError: There is no such plan.
    """
    return make_point_plan(
        point.plan,
        None if is_whole else point.hosts,
        None if is_whole else point.networks,
        dict(point.plan_options),
    )


def make_point_plan(name: str, hosts: Counts, networks: Counts, options: Mapping[str, Any]) -> AddressPlan:
    """From a point's fields. RequestError or PlanError if there is no such plan."""
    return _make_plan(name, hosts, networks, tuple(sorted(options.items())))


@lru_cache(maxsize=1024)
def _make_plan(
    name: str, hosts: Counts, networks: Counts, options: tuple[tuple[str, Any], ...]
) -> AddressPlan:
    keywords = dict(options)
    first, other, share = read_mix(name, keywords.pop("mix", None))
    for key, default, classic in (
        ("source_ports", RFC4814_SOURCE_PORTS, CLASSIC_SOURCE_PORT),
        ("destination_ports", RFC4814_DESTINATION_PORTS, CLASSIC_DESTINATION_PORT),
    ):
        keywords[key] = parse_ports(keywords.get(key), default, classic, where=f"--{key.replace('_', '-')}")
    plan = make_plan(first, hosts, networks=networks, **keywords)
    return (
        plan
        if other is None
        else mix_versions(plan, make_plan(other, hosts, networks=networks, **keywords), share)
    )


def read_size(size: int | str) -> FrameSize:
    """Of a point: octets, or a sequence."""
    return parse_imix(size, where="--frame-size") if isinstance(size, str) and is_imix(size) else int(size)


def _read_goal(point: Point, limits: TestbedLimits, throughput_fps: float | None) -> AnyGoal:
    options = dict(point.goal)
    after = options.pop(AFTER, None)
    known_fps = (throughput_fps or ANY_THROUGHPUT_FPS) if after is not None else None
    retries = _fill(RetryOptions, options)
    match point.procedure:
        case "throughput":
            return _fill(SearchOptions, options).choose(_fill(GoalOptions, options).read(retries, limits))
        case "loss":
            return _fill(LossOptions, options).read(retries, limits)
        case "burst":
            return _fill(BurstOptions, options).read(retries, limits)
        case "back-to-back":
            bursts = _fill(BackToBackOptions, options).read(retries, limits)
            return (
                bursts
                if known_fps is None
                else replace(bursts, throughput_fps=known_fps, throughput_source=after)
            )
        case "recovery":
            if known_fps is None:
                return _fill(OverloadOptions, options).read(retries, limits, None)
            overload = _fill(OverloadOptions, options | {"throughput": repr(known_fps)}).read(
                retries, limits, None
            )
            return replace(overload, throughput_source=after)
        case "latency":
            test = (
                DelayTest.LATENCY
                if options["profile"] == str(LatencyProfile.RFC8219)
                else DelayTest.LATENCY_RFC2544
            )
            return _fill(LoadOptions, options).read(
                test, known_fps, tagged_frames=options["tagged"], **retries.read(limits)
            )
        case _:
            has_variation = point.procedure == "ipdv"
            return _fill(LoadOptions, options).read(
                DelayTest.PDV, known_fps, has_variation=has_variation, **retries.read(limits)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    name: str
    """Without its dashes."""
    field: str
    default: Any
    choices: type[StrEnum] | None
    """What makes the field's value of a text; None: the value stands as it is."""


@cache
def _options(group: type) -> tuple[_Option, ...]:
    hints = get_type_hints(group, include_extras=True)
    found = []
    for field in fields(group):
        kind, option = get_args(hints[field.name])
        # Typer takes the first name for the default, until it sees that there is an annotation.
        name = next(iter((*option.param_decls, option.default)))
        choices = kind if isinstance(kind, type) and issubclass(kind, StrEnum) else None
        default = str(field.default) if choices else field.default
        found.append(
            _Option(
                name=name.removeprefix("--").split("/")[0], field=field.name, default=default, choices=choices
            )
        )
    return tuple(found)


def _fill(group: type[T], options: Mapping[str, Any]) -> T:
    kind: type = group
    values = {
        option.field: (option.choices or _as_it_is)(options.get(option.name, option.default))
        for option in _options(kind)
    }
    return group(**values)


def _as_it_is(value: Any) -> Any:
    return value
