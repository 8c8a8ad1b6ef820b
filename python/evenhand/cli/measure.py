# SPDX-License-Identifier: Apache-2.0
"""`evenhand PROCEDURE`: the verb of a procedure, made from what the procedure says of itself."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.option import options_of
from evenhand.cli.common import TestbedArgument
from evenhand.cli.conditions import ConditionOptions, Given
from evenhand.cli.options import with_options
from evenhand.cli.single_pair import read_throughput
from evenhand.cli.tables import exit_code_of, show_found
from evenhand.plan import FrameSize
from evenhand.procedure import Repetitions
from evenhand.procedure.descriptor import ANY_THROUGHPUT, KnownThroughput, Procedure
from evenhand.rig import Setup, TestbedLimits
from evenhand.spec.common_options import RepetitionOptions, RetryOptions
from evenhand.spec.frames import FRAME_SIZE_OPTIONS, read_sizes_of


def verb_of(procedure: Procedure) -> Callable[..., int | None]:
    """A function that Typer can make a command of."""

    def verb(**given: Any) -> int:
        return _measure(_Request(procedure=procedure, **given))

    parameters: dict[str, tuple[Any, Any]] = {
        "testbed": (TestbedArgument, inspect.Parameter.empty),
        "frame_size": (FRAME_SIZE_OPTIONS[procedure.frame_sizes], None),
        "options": (procedure.options, inspect.Parameter.empty),
        **({"repetition": (RepetitionOptions, inspect.Parameter.empty)} if procedure.is_repeated else {}),
        "retries": (RetryOptions, inspect.Parameter.empty),
        "conditions": (ConditionOptions, inspect.Parameter.empty),
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
    retries: RetryOptions
    conditions: ConditionOptions

    def goal(self, limits: TestbedLimits, known: KnownThroughput | None) -> Any:
        return self.procedure.make_goal(self.options, self.retries.read(limits), known)


def _measure(request: _Request) -> int:
    procedure, options = request.procedure, request.options
    given = request.conditions.read(request.testbed)
    sizes, notes = read_sizes_of(procedure, given.plan, request.frame_size)
    repetitions = Repetitions() if request.repetition is None else request.repetition.read()
    after: Path | None = getattr(options, "after", None)
    # What is wrong with the options is reported before any file is read.
    request.goal(TestbedLimits(), None if after is None else ANY_THROUGHPUT)
    _check_one_throughput(request, len(sizes))
    setup = given.read_setup()
    known = _known(after, setup, given, sizes)
    goal = request.goal(setup.testbed.limits, known.get(sizes[0]) if len(sizes) == 1 else None)
    load_fps = getattr(goal, procedure.load)
    if not math.isinf(load_fps):
        given.check_rate(setup, load_fps, sizes, where=procedure.load_option.where)
    expected = given.expect(procedure, goal, options, times=len(sizes) * repetitions.count)
    with given.open(str(procedure.verb), setup, notes, expected=expected) as (bed, store, _):
        if procedure.needs_table(len(sizes), repetitions.count):
            found = bed.measure_table(
                procedure, sizes, goal, repetitions=repetitions, throughputs=known, **given.of(setup)
            )
        else:
            same = given.of(setup, frame_size=sizes[0])
            found = bed.measure(procedure, goal, has_own_loop=procedure.has_own_loop(options), **same)
    show_found(procedure, found, store, is_json=request.conditions.json_output)
    return exit_code_of(procedure, found.to_document())


def _check_one_throughput(request: _Request, sizes: int) -> None:
    """RequestError for one throughput that the user gives for several frame sizes."""
    use = request.procedure.throughput
    if use is None or sizes == 1 or not request.procedure.frame_sizes.takes_several:
        return
    field = next(each for each in options_of(request.procedure.options) if each.name == use.option)
    if getattr(request.options, field.field) is not None:
        raise RequestError(
            f"one throughput given for {sizes} frame sizes",
            code="cli.one-frame-size-only",
            where=field.where,
            next_step="Use --after, give one --frame-size, or omit it.",
        )


def _known(
    after: Path | None, setup: Setup, given: Given, sizes: tuple[FrameSize, ...]
) -> dict[FrameSize, KnownThroughput]:
    """The throughput in the run file of `--after`, by frame size. RequestError if it lacks one."""
    if after is None:
        return {}
    return {size: read_throughput(after, setup, given, frame_size=size) for size in sizes}
