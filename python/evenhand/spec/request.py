# SPDX-License-Identifier: Apache-2.0
"""Specification: a point as its procedure takes it. Its options are those of the procedure's verb: the same
names, the same defaults, read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.option import OptionField, fill, options_of
from evenhand.base.rates import Line
from evenhand.base.units import is_whole
from evenhand.plan import ONE_EACH, SIDES, AddressPlan, Direction, FrameSize, SideCounts, line_of
from evenhand.procedure import Conditions, limits_of
from evenhand.procedure.descriptor import (
    ANY_THROUGHPUT,
    DirectionChoice,
    KnownThroughput,
    Procedure,
    check_rates,
)
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.search_options import parse_goal
from evenhand.search import ThroughputGoal
from evenhand.spec.common_options import (
    EstablishedOptions,
    LearningOptions,
    LimitOptions,
    RetryOptions,
    WaitOptions,
)
from evenhand.spec.frames import read_size
from evenhand.spec.plan import ModeOptions, ShapeOptions, SourceOptions, build_plan
from evenhand.spec.rates import RatesOptions, line_texts, read_rates
from evenhand.trial import DirectionRates

HashType = Literal["type1", "type2"]
"""What the DUT's RSS hashes: addresses only, or addresses and ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a campaign: one procedure under one set of conditions, which is repeated. Only what its
    suite says of it."""

    key: str
    """Unique in the campaign, and the same each time its file is read: `direct, type1/throughput/64/n=16`."""
    suite: str
    number: int
    """Its place in the suite as a reader wants to see it, from 0; the single address pair is first
    (SEED-02)."""
    procedure: str
    """The name of one of `PROCEDURES`."""
    plan: str
    """`gateway-v4`; of a mix `gateway-v4+gateway-v6`."""
    plan_options: Mapping[str, Any]
    """Keywords of `make_plan` other than the counts, such as `host_mode`; `mix` for a share of two. Empty:
    all as the draft has it."""
    hosts: SideCounts
    networks: SideCounts
    frame_size: int | str
    """Octets with the FCS, or a sequence such as `imix:aaafg`."""
    directions: tuple[Direction, ...]
    hash_type: HashType | None
    """What the DUT is set to while this point is measured; None: the campaign does not say."""
    goal: Mapping[str, Any]
    """Options of the procedure by the names of its verb (`duration`, `precision`, `search`, ...), as the file
    has them or by default."""
    repetitions: int
    """How many were asked for."""
    rounds: int = 1
    """Number of blocks in which they are made; between two of them come all other points of the suite. 1: one
    after the other, as before there were rounds."""

    @property
    def is_one_pair(self) -> bool:
        """Whether every frame of a direction has the same two addresses."""
        return self.addresses == ONE_EACH

    @property
    def is_single(self) -> bool:
        """Whether it is the simplest of its series: a single address pair, or a single route a side."""
        return self.is_one_pair or self.routes == ONE_EACH

    @property
    def routes(self) -> SideCounts | None:
        """Prefixes of each side that are used, if the suite is a series over them; else None."""
        return routes_used(self.plan_options)

    @property
    def addresses(self) -> SideCounts:
        """Addresses of each side, over all its networks."""
        return self.hosts.times(self.networks)


ROUTES = "routes"
"""The option of a point's plan that says how many prefixes of a plan file are used."""


def routes_used(plan_options: Mapping[str, Any]) -> SideCounts | None:
    """Routes of each side, as a series has written them; None if there is none, or they are not so written:
    a run file may come from anyone."""
    text = plan_options.get(ROUTES)
    parts = text.split(",") if isinstance(text, str) and len(text) < 40 else []
    if not 1 <= len(parts) <= len(SIDES) or not all(map(is_whole, parts)):
        return None
    counts = SideCounts(int(parts[0]), int(parts[-1]))
    return counts if min(counts) >= 1 else None


_USUAL_BPS = 10e9
AFTER = "after"
"""The key of a point's goal that names the point whose throughput it takes."""
OF_ALL = (RatesOptions, LearningOptions, EstablishedOptions, WaitOptions, LimitOptions, RetryOptions)
"""Groups of options that every procedure has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """A point as `OpenTestbed` takes it."""

    procedure: Procedure
    options: Any
    """Those that only this procedure has, filled in."""
    goal: Any
    conditions: Conditions
    """All but the seed."""


def point_options_of(procedure: Procedure) -> list[OptionField]:
    """The options that a point of this procedure may have: its own, and those that every procedure has."""
    found = [each for group in (procedure.options, *OF_ALL) for each in options_of(group)]
    return [each for each in found if not each.option.is_for_shell_only]


def point_defaults(procedure: Procedure) -> dict[str, Any]:
    """The same by name, with their defaults as they are written: texts, numbers, booleans, lists or None."""
    return {each.name: each.default for each in point_options_of(procedure)}


def as_meant(procedure: str, name: str, written: Any) -> Any:
    """The value of an option of a point, or of its plan, however it is spelled: `60s` and `1min` are one.
    What cannot be read is itself.

    Args:
        procedure: Name of the point's procedure.
        name: The option, with dashes or underscores.
    """
    known = PROCEDURES.get(procedure)
    groups = [] if known is None else point_options_of(known)
    groups += [each for group in (ShapeOptions, ModeOptions, SourceOptions) for each in options_of(group)]
    option = next((each for each in groups if each.name == name.replace("_", "-")), None)
    if option is None:
        return written
    try:
        if option.field == "goals" and isinstance(written, list | tuple):
            return [replace(parse_goal(text, ThroughputGoal(max_fps=1.0)), name="") for text in written]
        return option.read(written) if isinstance(written, str) else written
    except (RequestError, AttributeError, TypeError, ValueError):
        return written


def read_point(
    point: Point,
    testbed: rig.TestbedLimits | None = None,
    *,
    throughput: KnownThroughput | None = None,
    line: Line | None = None,
) -> PointRequest:
    """All that the point's procedure is called with.

    Args:
        testbed: Limits of the testbed file, which apply where the point has none of its own.
        throughput: That of the point that `goal["after"]` names; None: it is not known yet, and another one
            is used in its place.
        line: For rates in percent or bit/s; None: it is not known yet, and one of 10 Gbps is used.

    Raises:
        RequestError: It cannot be; names the option as the shell writes it.
    """
    procedure, plan, known = PROCEDURES[point.procedure], plan_of(point), None
    written = {name: value for name, value in point.goal.items() if name != AFTER}
    if AFTER in point.goal:
        known = throughput or replace(ANY_THROUGHPUT, source=point.goal[AFTER])
    size = read_size(point.frame_size)
    if line is None:
        line = line_of(plan.streams(size, point.directions), dict.fromkeys(SIDES, _USUAL_BPS))
    return read_request(
        procedure,
        fill(procedure.options, written),
        written,
        plan=plan,
        frame_size=size,
        directions=point.directions,
        testbed=testbed or rig.TestbedLimits(),
        throughput=known,
        line=line,
    )


def written_in(*groups: Any) -> dict[str, Any]:
    """The options of these groups by name, as they are written."""
    return {each.name: getattr(group, each.field) for group in groups for each in options_of(type(group))}


def read_request(
    procedure: Procedure,
    options: Any,
    written: Mapping[str, Any],
    *,
    plan: AddressPlan,
    frame_size: FrameSize,
    directions: tuple[Direction, ...],
    testbed: rig.TestbedLimits,
    throughput: KnownThroughput | None,
    line: Line,
) -> PointRequest:
    """What a verb or a point asks of a procedure with one frame size. RequestError names the option.

    Args:
        options: Those that only this procedure has.
        written: Those that every procedure has, by name; others are ignored.
        testbed: Limits of the testbed file, which apply where none are written.
        throughput: One that was measured before, for a procedure that takes one.
        line: For rates in percent or bit/s.
    """
    options, rates = read_rates(
        options,
        procedure.load_option,
        fill(RatesOptions, written),
        line,
        may_differ=procedure.rates is not DirectionChoice.NONE,
    )
    check_rates(procedure, rates)
    goal = procedure.make_goal(options, fill(RetryOptions, written).read(testbed), throughput)
    conditions = read_conditions(
        written,
        plan=plan,
        directions=directions,
        testbed=testbed,
        rates=rates,
        loss_ratio=getattr(goal, "loss_ratio", 0.0),
    )
    return PointRequest(
        procedure=procedure,
        options=options,
        goal=goal,
        conditions=Conditions(**conditions, frame_size=frame_size),
    )


def read_conditions(
    written: Mapping[str, Any],
    *,
    plan: AddressPlan,
    directions: tuple[Direction, ...],
    testbed: rig.TestbedLimits,
    rates: DirectionRates | None = None,
    loss_ratio: float = 0.0,
) -> Conditions:
    """All but frame size and seed; see `read_request`."""
    learning = fill(LearningOptions, written)
    return Conditions(
        plan=plan,
        directions=directions,
        rates=rates,
        waits=fill(WaitOptions, written).read(),
        limits=limits_of(testbed, loss_ratio=loss_ratio, given=fill(LimitOptions, written).read()),
        host_macs=learning.host_macs,
        learning=learning.read(plan),
        established=fill(EstablishedOptions, written).read(plan),
    )


def line_texts_of(point: Point) -> list[str]:
    """Those of the point's rates that depend on its line."""
    written = {name: value for name, value in point.goal.items() if name != AFTER}
    return line_texts(fill(PROCEDURES[point.procedure].options, written), fill(RatesOptions, written))


def plan_of(point: Point, *, is_whole: bool = False) -> AddressPlan:
    """The addresses that the point sends.

    Args:
        is_whole: Give all addresses that the plan has instead: what the DUT is set up for, once for all
            points of a suite.

    Raises:
        PlanError, RequestError: There is no such plan.
    """
    if not is_whole:
        return build_plan(point.plan, point.hosts, point.networks, point.plan_options)
    options = {key: value for key, value in point.plan_options.items() if key != ROUTES}
    return build_plan(point.plan, None, None, options)


def goal_in_words(point: Point) -> str:
    """What the procedure looks for, and how long its trials are."""
    request = read_point(point)
    load = "the throughput of its suite" if AFTER in point.goal else None
    return request.procedure.describe(request.goal, load)
