# SPDX-License-Identifier: Apache-2.0
"""`evenhand PROCEDURE`: the verb of a procedure, made from what the procedure says of itself."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.option import options_of
from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import TestbedArgument
from evenhand.cli.conditions import ConditionOptions, Given
from evenhand.cli.options import with_options
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.single_pair import SinglePairOptions, read_throughput
from evenhand.cli.tables import exit_code_of, show_found
from evenhand.plan import AddressPlan, FrameSize, Traffic
from evenhand.procedure import Conditions, OpenTestbed, Repetitions, SinglePair
from evenhand.procedure.descriptor import ANY_THROUGHPUT, KnownThroughput, Procedure
from evenhand.rig import Setup, TestbedLimits
from evenhand.search import Role
from evenhand.spec.common_options import RepetitionOptions, RetryOptions
from evenhand.spec.frames import FRAME_SIZE_OPTIONS, read_sizes_of

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
        **({"single_pair": (SinglePairOptions, required)} if procedure.is_compared_with_one_pair else {}),
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
    single_pair: SinglePairOptions = field(default_factory=SinglePairOptions)
    retries: RetryOptions
    conditions: ConditionOptions

    def goal(self, limits: TestbedLimits, known: KnownThroughput | None) -> Any:
        return self.procedure.make_goal(self.options, self.retries.read(limits), known)

    def of(self, given: Given, setup: Setup, goal: Any, *, frame_size: FrameSize | None = None) -> Conditions:
        return given.of(setup, frame_size=frame_size, loss_ratio=getattr(goal, "loss_ratio", 0.0))


def _measure(request: _Request) -> int:
    procedure, options, pair = request.procedure, request.options, request.single_pair
    given = request.conditions.read(request.testbed)
    pair.check(given.plan)
    sizes, notes = read_sizes_of(procedure, given.plan, request.frame_size)
    repetitions = Repetitions() if request.repetition is None else request.repetition.read()
    after: Path | None = getattr(options, "after", None)
    # What is wrong with the options is reported before any file is read.
    request.goal(TestbedLimits(), None if after is None else ANY_THROUGHPUT)
    _check_one_throughput(request, len(sizes))
    setup = given.read_setup()
    known = {}
    if after is not None:
        known = {size: read_throughput(after, setup, given, frame_size=size) for size in sizes}
    goal = request.goal(setup.testbed.limits, known.get(sizes[0]) if len(sizes) == 1 else None)
    load_fps = getattr(goal, procedure.load)
    if not math.isinf(load_fps):
        given.check_rate(setup, load_fps, sizes, where=procedure.load_option.where)
    before = pair.read(setup, given, sizes[0], goal)
    times = len(sizes) * (repetitions.count + pair.single_pair_first)
    expected = given.expect(procedure, goal, options, times=times)
    first = None
    with given.open(str(procedure.verb), setup, notes, expected=expected) as (bed, store, progress):
        if procedure.needs_table(len(sizes), repetitions.count):
            conditions = Conditions(**request.of(given, setup, goal), single_pair=before)
            found = bed.measure_table(
                procedure,
                sizes,
                goal,
                repetitions=repetitions,
                single_pair_first=pair.single_pair_first,
                throughputs=known,
                **conditions,
            )
        else:
            conditions = request.of(given, setup, goal, frame_size=sizes[0])
            if pair.single_pair_first:
                first, before = _measure_one_pair(procedure, goal, given.plan, bed, progress, conditions)
            has_own_loop = procedure.has_own_loop(options)
            conditions = Conditions(**conditions, single_pair=before)
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
) -> tuple[Any, SinglePair | None]:
    """What the procedure finds with one address pair (SEED-02), and what of it stands beside the result with
    many."""
    many = Traffic(plan=plan, directions=conditions["directions"]).address_words
    progress.say(f"1 of 2: {plan.label}, {ONE_PAIR}.", style="bold")
    progress.later = procedure.expected_span(goal, conditions["waits"].total_s)
    one_pair: Conditions = {**conditions, "plan": plan.single_pair()}
    name = f"{procedure.name}, {ONE_PAIR}"
    first = bed.measure(procedure, goal, name=name, details={"role": Role.SINGLE_PAIR}, **one_pair)
    progress.later = TimeSpan.of(0.0)
    progress.say(f"2 of 2: {many}.", style="bold")
    return first, SinglePair.of(first.search, first.profile)


def _check_one_throughput(request: _Request, sizes: int) -> None:
    """RequestError for one throughput that the user gives for several frame sizes."""
    use = request.procedure.throughput
    if sizes > 1 and request.single_pair.after is not None:
        raise RequestError(
            f"a run to compare with has one frame size, but {sizes} are given",
            code="cli.one-frame-size-only",
            where="--after, --frame-size",
            next_step="Use --single-pair-first, or one frame size.",
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
