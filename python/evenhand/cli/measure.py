# SPDX-License-Identifier: Apache-2.0
"""`evenhand PROCEDURE`: the verb of a procedure, made from what the procedure says of itself."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.option import options_of
from evenhand.base.rates import ANY_LINE, Line
from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import TestbedArgument
from evenhand.cli.conditions import ConditionOptions, Given
from evenhand.cli.one_pair import OnePairOptions, read_throughput
from evenhand.cli.options import with_options
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.tables import ResultsAtLoads, exit_code_of, show_found
from evenhand.plan import AddressPlan, FrameSize, Traffic
from evenhand.procedure import Conditions, OnePair, OpenTestbed, Repetitions
from evenhand.procedure.descriptor import ANY_THROUGHPUT, KnownThroughput, Procedure, check_rates
from evenhand.procedure.repetition import STOPPED
from evenhand.rig import Setup, TestbedLimits
from evenhand.search import Role
from evenhand.spec.common_options import RepetitionOptions, RetryOptions
from evenhand.spec.frames import FRAME_SIZE_OPTIONS, read_sizes_of
from evenhand.spec.rates import line_texts, read_rates
from evenhand.trial import DirectionRates

ONE_PAIR = "one address pair"


def verb_of(procedure: Procedure) -> Callable[..., int | None]:
    """A function that Typer can make a command of."""

    def verb(**given: Any) -> int:
        return _measure(_Request(procedure=procedure, **given))

    required = inspect.Parameter.empty
    parameters: dict[str, tuple[Any, Any]] = {
        "testbed": (TestbedArgument, required),
        "frame_size": (FRAME_SIZE_OPTIONS[procedure.frame_sizes], None),
        "options": (procedure.options, required),
        **({"repetition": (RepetitionOptions, required)} if procedure.is_repeated else {}),
        **({"one_pair": (OnePairOptions, required)} if procedure.is_compared_with_one_pair else {}),
        "retries": (RetryOptions, required),
        "conditions": (ConditionOptions, required),
    }
    verb.__name__ = procedure.name.replace("-", "_")
    verb.__doc__ = procedure.help
    verb.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    verb.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in parameters.items()
        ]
    )
    return with_options(verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    procedure: Procedure
    testbed: str
    frame_size: Any
    options: Any
    repetition: RepetitionOptions | None = None
    one_pair: OnePairOptions = field(default_factory=OnePairOptions)
    retries: RetryOptions
    conditions: ConditionOptions

    def goal(self, limits: TestbedLimits, known: KnownThroughput | None, line: Line = ANY_LINE) -> Any:
        options, _ = self.in_frames(line)
        return self.procedure.make_goal(options, self.retries.read(limits), known)

    def in_frames(self, line: Line) -> tuple[Any, DirectionRates | None]:
        """The options with all rates in frames, and how the loads of the directions differ."""
        options, rates = read_rates(self.options, self.procedure.load_option, self.conditions.rates, line)
        check_rates(self.procedure, rates)
        return options, rates

    def lines(self, given: Given, setup: Setup, sizes: Sequence[FrameSize]) -> dict[FrameSize, Line]:
        """The line of each frame size, for the rates that depend on it; empty if none does."""
        texts = line_texts(self.options, self.conditions.rates)
        return {size: given.line(setup, size, texts) for size in sizes} if texts else {}

    def of(self, given: Given, setup: Setup, goal: Any, *, frame_size: FrameSize | None = None) -> Conditions:
        return given.of(setup, frame_size=frame_size, loss_ratio=getattr(goal, "loss_ratio", 0.0))


def _measure(request: _Request) -> int:
    procedure, options, pair = request.procedure, request.options, request.one_pair
    given = request.conditions.read(request.testbed)
    pair.check(given.plan)
    sizes, notes = read_sizes_of(procedure, given.plan, request.frame_size)
    repetitions = Repetitions() if request.repetition is None else request.repetition.read()
    after: Path | None = getattr(options, "after", None)
    # What is wrong with the options is reported before any file is read.
    for part in procedure.options_of_each_load(options):
        replace(request, options=part).goal(TestbedLimits(), None if after is None else ANY_THROUGHPUT)
    _check_one_throughput(request, len(sizes))
    setup = given.read_setup()
    known = {}
    if after is not None:
        known = {size: read_throughput(after, setup, given, frame_size=size) for size in sizes}
    lines = request.lines(given, setup, sizes)
    first_load = replace(request, options=procedure.options_of_each_load(options)[0])
    goals = {
        size: first_load.goal(
            setup.testbed.limits, known.get(size) if len(sizes) == 1 else None, lines.get(size, ANY_LINE)
        )
        for size in sizes
    }
    goals_at = _goals_of_each_load(request, setup, known.get(sizes[0]), lines.get(sizes[0], ANY_LINE))
    goal = next(iter(goals_at.values())) if len(goals_at) > 1 else goals[sizes[0]]
    for size, each in goals.items():
        if not math.isinf(load_fps := getattr(each, procedure.load)):
            given.check_rate(setup, load_fps, [size], where=procedure.load_option.where)
    given = given.with_rates(_one_ratio([request.in_frames(lines.get(size, ANY_LINE))[1] for size in sizes]))
    before = pair.read(setup, given, sizes[0], goal)
    times = len(sizes) * len(goals_at) * (repetitions.count + pair.one_pair_first)
    expected = given.expect(procedure, goal, options, times=times)
    first = None
    with given.open(str(procedure.verb), setup, notes, expected=expected) as (bed, store, progress):
        if procedure.needs_table(len(sizes), repetitions.count):
            conditions = Conditions(**request.of(given, setup, goal), one_pair=before)
            found = bed.measure_table(
                procedure,
                sizes,
                goal,
                repetitions=repetitions,
                one_pair_first=pair.one_pair_first,
                throughputs=known,
                goals=goals if lines else None,
                **conditions,
            )
        else:
            conditions = request.of(given, setup, goal, frame_size=sizes[0])
            if pair.one_pair_first:
                first, before = _measure_one_pair(procedure, goal, given.plan, bed, progress, conditions)
            has_own_loop = procedure.has_own_loop(options)
            conditions = Conditions(**conditions, one_pair=before)
            if len(goals_at) > 1:
                found = _measure_at_each(procedure, goals_at, bed, progress, conditions, has_own_loop)
            else:
                found = bed.measure(procedure, goal, has_own_loop=has_own_loop, **conditions)
    show_found(procedure, found, store, first=first, is_json=request.conditions.json_output)
    return exit_code_of(procedure, found.to_document())


def _measure_one_pair(
    procedure: Procedure,
    goal: Any,
    plan: AddressPlan,
    bed: OpenTestbed,
    progress: ProgressDisplay,
    conditions: Conditions,
) -> tuple[Any, OnePair | None]:
    """What the procedure finds with one address pair (SEED-02), and what of it stands beside the result with
    many."""
    many = Traffic(plan=plan, directions=conditions["directions"]).address_words
    progress.say(f"1 of 2: {plan.label}, {ONE_PAIR}.", style="bold")
    progress.later = procedure.expected_span(goal, conditions["waits"].total_s)
    one_pair: Conditions = {**conditions, "plan": plan.one_pair()}
    name = f"{procedure.name}, {ONE_PAIR}"
    first = bed.measure(procedure, goal, name=name, details={"role": Role.ONE_PAIR}, **one_pair)
    progress.later = TimeSpan.of(0.0)
    progress.say(f"2 of 2: {many}.", style="bold")
    return first, OnePair.of(first.search, first.profile)


def _goals_of_each_load(
    request: _Request, setup: Setup, known: KnownThroughput | None, line: Line
) -> dict[str, Any]:
    """By the share that `--at` has, the goals of a verb that measures at several loads; one in all others."""
    parts = request.procedure.options_of_each_load(request.options)
    each = ((getattr(part, "at", None) or "", replace(request, options=part)) for part in parts)
    return {share: part.goal(setup.testbed.limits, known, line) for share, part in each}


def _measure_at_each(
    procedure: Procedure,
    goals: Mapping[str, Any],
    bed: OpenTestbed,
    progress: ProgressDisplay,
    conditions: Conditions,
    has_own_loop: bool,
) -> ResultsAtLoads:
    """One execution for each share of the throughput, with an engine of its own, stored by its own name."""
    found: dict[str, Any] = {}
    each = procedure.expected_span(goals[next(iter(goals))], conditions["waits"].total_s)
    for place, (share, goal) in enumerate(goals.items(), start=1):
        progress.say(f"{place} of {len(goals)}: {share} of the throughput.", style="bold")
        progress.later = each.times(len(goals) - place)
        name = f"{procedure.name} at {share}"
        found[share] = bed.measure(procedure, goal, name=name, has_own_loop=has_own_loop, **conditions)
        if found[share].outcome == STOPPED:
            break
    progress.later = TimeSpan.of(0.0)
    return ResultsAtLoads(found)


def _one_ratio(rates: Sequence[DirectionRates | None]) -> DirectionRates | None:
    """How the directions differ with every frame size. RequestError if that depends on the size."""
    first, *others = rates
    if first is None:
        return None
    if any(each is None or not first.is_like(each) for each in others):
        raise RequestError(
            "the loads of the directions differ in another way with each frame size",
            code="cli.one-frame-size-only",
            where="--frame-size",
            next_step="Give both rates in the same unit, a held one in frames, or one frame size.",
        )
    return first


def _check_one_throughput(request: _Request, sizes: int) -> None:
    """RequestError for one throughput that the user gives for several frame sizes."""
    use = request.procedure.throughput
    if sizes > 1 and request.one_pair.after is not None:
        raise RequestError(
            f"a run to compare with has one frame size, but {sizes} are given",
            code="cli.one-frame-size-only",
            where="--after, --frame-size",
            next_step="Use --one-pair-first, or one frame size.",
        )
    if use is None or sizes == 1 or not request.procedure.frame_sizes.takes_several:
        return
    given = next(each for each in options_of(request.procedure.options) if each.name == use.option)
    if getattr(request.options, given.field) is not None:
        raise RequestError(
            f"one throughput given for {sizes} frame sizes",
            code="cli.one-frame-size-only",
            where=given.where,
            next_step="Use --after, give one --frame-size, or omit it.",
        )
