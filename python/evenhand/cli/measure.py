# SPDX-License-Identifier: Apache-2.0
"""`evenhand PROCEDURE`: the verb of a procedure, made from what the procedure says of itself. `--after` names
a run whose throughput is its load, or its result with a single address pair (SEED-02)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.folders import without_folders
from evenhand.base.option import options_of
from evenhand.base.rates import ANY_LINE, Line
from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import TestbedArgument, with_options
from evenhand.cli.conditions import ConditionOptions, Given
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.tables import ResultsAtLoads, exit_code_of, show_found
from evenhand.plan import (
    AddressPlan,
    FrameSize,
    Traffic,
    describe_mix,
    describe_size,
    plan_title,
    whole_octets,
)
from evenhand.procedure import Conditions, OnePair, OpenTestbed, Repetitions, says_something
from evenhand.procedure.conditions import check_conditions
from evenhand.procedure.descriptor import (
    ANY_THROUGHPUT,
    WITH_LOSS,
    KnownThroughput,
    Procedure,
    throughput_to_serve,
)
from evenhand.procedure.registry import THROUGHPUT
from evenhand.procedure.repetition import STOPPED
from evenhand.results.throughput import ThroughputFound
from evenhand.rig import Setup, TestbedLimits
from evenhand.run import StoredSearch, read_run
from evenhand.run.snapshot import not_a_run
from evenhand.spec.common_options import RepetitionOptions, RetryOptions
from evenhand.spec.frames import FRAME_SIZE_OPTIONS, read_sizes_of
from evenhand.spec.rates import line_texts
from evenhand.spec.request import PointRequest, read_request, written_in
from evenhand.trial import DirectionRates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conditions:
    """What the other run must have in common with this one, in the order in which it is said."""

    ports: list[str]
    """Devices of the tester: a testbed is recognised by them."""
    plan: str
    frame_size: int
    mix: dict[str, Any] | None
    directions: list[str]
    loss_ratio: float

    def unlike(self, here: _Conditions) -> list[str]:
        """`frame size 64 there, 128 here`."""
        pairs = ((name, getattr(self, name), getattr(here, name)) for name in self.__slots__)
        return [
            f"{name.replace('_', ' ')} {_show(there)} there, {_show(own)} here"
            for name, there, own in pairs
            if there != own
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A throughput search of another run that has ended."""

    conditions: _Conditions
    plan: dict[str, Any]
    found: ThroughputFound
    one_pair: OnePair | None
    """None: it is none, or no result of the DUT."""


def _read(path: Path) -> list[_Earlier]:
    """RequestError, HostError as `read_run`; RequestError if a search lacks what every search has."""
    found = []
    for search in read_run(path).searches:
        if search.kind == THROUGHPUT.name and search.result is not None:
            try:
                found.append(_earlier(search, source=f"in {path.name}"))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise not_a_run(path, f"the search {search.name!r} lacks {error}") from error
    return found


def _earlier(search: StoredSearch, *, source: str) -> _Earlier:
    setup, traffic = search.setup, search.setup.get("traffic") or {}
    found: ThroughputFound = THROUGHPUT.read({**(search.result or {}), "goal": search.goal})
    is_one_pair = traffic.get("is_one_pair") and traffic.get("macs") is not None
    return _Earlier(
        conditions=_Conditions(
            ports=_ports(setup),
            plan=plan_title(search.plan["name"]),
            frame_size=search.frame_size,
            mix=setup.get("mix"),
            directions=sorted(setup["directions"]),
            loss_ratio=float(search.goal["loss_ratio"]),
        ),
        plan=search.plan,
        found=found,
        one_pair=OnePair.stored(found, setup, search.seed, source=source) if is_one_pair else None,
    )


def _here(setup: Setup, given: Given, frame_size: FrameSize, loss_ratio: float) -> _Conditions:
    return _Conditions(
        ports=_ports(without_folders(setup.to_document())),
        plan=plan_title(given.plan.name),
        frame_size=whole_octets(frame_size),
        mix=describe_mix(given.plan, frame_size),
        directions=sorted(given.directions),
        loss_ratio=loss_ratio,
    )


def _ports(setup: dict[str, Any]) -> list[str]:
    return [setup["testbed"][side]["device"] for side in ("left", "right")]


def read_throughput(path: Path, setup: Setup, given: Given, *, frame_size: FrameSize) -> KnownThroughput:
    """The throughput of the last search in that run which was made under these conditions.

    Raises:
        RequestError, HostError: It cannot be read, or has no such search.
    """
    plan, here = given.plan, _here(setup, given, frame_size, 0.0)
    found = [
        each.found
        for each in _read(path)
        if each.found.throughput_fps is not None
        and says_something(each.found.outcome, each.found.throughput_fps)
        and each.plan == plan.to_contract()
        and replace(each.conditions, plan=here.plan, loss_ratio=0.0) == here
    ]
    if not found:
        raise RequestError(
            f"this run has no throughput for these ports, {plan.title} with the same"
            f" addresses, {describe_size(frame_size)} and the same directions",
            code="cli.no-throughput",
            where=f"--after {path}",
            next_step=f"Measure it first: evenhand throughput {setup.name} --plan {plan.title} --run FILE.",
        )
    try:
        return throughput_to_serve(found[-1:], source=path.name, where=f"--after {path}")
    except RequestError as error:
        if error.code == WITH_LOSS:
            error.code = "cli.throughput-with-loss"
            error.next_step = "Name a run that was made without --loss-ratio, or give the load with --rate."
        raise


_PANEL = "First a single address pair (draft, section 2.1)"
OnePairFirstOption = Annotated[
    bool,
    typer.Option(
        "--one-pair-first",
        help="First search with one address pair and the same goal, and store both; the ratio is shown"
        " with the result.",
        rich_help_panel=_PANEL,
    ),
]
AfterOption = Annotated[
    Path | None,
    typer.Option(
        "--after",
        metavar="RUN",
        help="A run file with an earlier search with one address pair, on the same testbed and DUT.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePairOptions:
    """What is known, or found first, with one address pair."""

    one_pair_first: OnePairFirstOption = False
    after: AfterOption = None

    def check(self, plan: AddressPlan) -> None:
        """RequestError for both at once, and for a plan that is one address pair itself."""
        if self.one_pair_first and self.after is not None:
            raise RequestError(
                "both a search to make and an existing search are given",
                code="cli.options-exclude-each-other",
                where="--one-pair-first, --after",
                next_step="Give one.",
            )
        if (self.one_pair_first or self.after is not None) and all(
            plan.pairs_of(direction) == 1 for direction in ("forward", "reverse")
        ):
            raise RequestError(
                "this search itself uses a single address pair",
                code="cli.already-one-pair",
                where="--one-pair-first" if self.one_pair_first else "--after",
                next_step="Leave it out.",
            )

    def read(self, setup: Setup, given: Given, frame_size: FrameSize, goal: Any) -> OnePair | None:
        """In the run that `--after` names, the last search with one address pair that fits this one; None
        without it. The DUT is compared later, when it has answered.

        Raises:
            RequestError, HostError: It cannot be read; it has no such search; or what is compared differs.
        """
        if self.after is None:
            return None
        found = [each for each in _read(self.after) if each.one_pair is not None]
        if not found:
            raise RequestError(
                "this run has no finished search with a single address pair",
                code="cli.no-one-pair-search",
                where=f"--after {self.after}",
                next_step="Use --one-pair-first, or make one with --hosts 1 (and --networks 1 if the plan"
                " has networks).",
            )
        here = _here(setup, given, frame_size, goal.loss_ratio)
        for each in reversed(found):
            if each.conditions == here:
                return each.one_pair
        raise RequestError(
            "the search with a single address pair was made under different conditions:"
            f" {'; '.join(found[-1].conditions.unlike(here))}",
            code="cli.different-conditions",
            where=f"--after {self.after}",
            next_step="Name a run of the same testbed, or use --one-pair-first.",
        )


def _show(value: Any) -> str:
    if isinstance(value, dict):  # a mix
        return " of ".join(text for text in (_share(value["versions"]), value["imix"]) if text)
    return (
        " and ".join(map(str, value)) if isinstance(value, list) else str("none" if value is None else value)
    )


def _share(versions: dict[str, Any] | None) -> str:
    return (
        ""
        if versions is None
        else f"{' + '.join(map(plan_title, versions['plans']))} {'/'.join(map(str, versions['share']))}"
    )


def verb_of(procedure: Procedure) -> Callable[..., int | None]:
    """A function that Typer can make a command of."""

    def verb(**given: Any) -> int:
        return _measure(_Verb(procedure=procedure, **given))

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
class _Verb:
    procedure: Procedure
    testbed: str
    frame_size: Any
    options: Any
    repetition: RepetitionOptions | None = None
    one_pair: OnePairOptions = field(default_factory=OnePairOptions)
    retries: RetryOptions
    conditions: ConditionOptions

    def loads(self) -> dict[str, Any]:
        """The options of each load by the share that `--at` has; one of most procedures."""
        parts = self.procedure.options_of_each_load(self.options)
        return {getattr(part, "at", None) or "": part for part in parts}

    def read(
        self,
        given: Given,
        options: Any,
        frame_size: FrameSize,
        *,
        testbed: TestbedLimits,
        known: KnownThroughput | None,
        line: Line,
    ) -> PointRequest:
        """See `read_request`."""
        return read_request(
            self.procedure,
            options,
            {**given.written, **written_in(self.retries)},
            plan=given.plan,
            frame_size=frame_size,
            directions=given.directions,
            testbed=testbed,
            throughput=known,
            line=line,
        )


def _measure(verb: _Verb) -> int:
    procedure, options, pair = verb.procedure, verb.options, verb.one_pair
    given = verb.conditions.read(verb.testbed)
    pair.check(given.plan)
    sizes, notes = read_sizes_of(procedure, given.plan, verb.frame_size)
    repetitions = Repetitions() if verb.repetition is None else verb.repetition.read()
    after: Path | None = getattr(options, "after", None)
    # What is wrong with the options is reported before any file is read.
    any_known = None if after is None else ANY_THROUGHPUT
    for part in verb.loads().values():
        verb.read(given, part, sizes[0], testbed=TestbedLimits(), known=any_known, line=ANY_LINE)
    _check_one_throughput(verb, len(sizes))
    setup = given.read_setup()
    known = {}
    if after is not None:
        known = {size: read_throughput(after, setup, given, frame_size=size) for size in sizes}
    texts = line_texts(options, verb.conditions.rates)
    lines = {size: given.line(setup, size, texts) for size in sizes} if texts else {}

    def read(part: Any, size: FrameSize) -> PointRequest:
        line, throughput = lines.get(size, ANY_LINE), known.get(size) if len(sizes) == 1 else None
        return verb.read(given, part, size, testbed=setup.testbed.limits, known=throughput, line=line)

    first_load, *_ = verb.loads().values()
    requests = {size: read(first_load, size) for size in sizes}
    goals = {size: each.goal for size, each in requests.items()}
    goals_at = {share: read(part, sizes[0]).goal for share, part in verb.loads().items()}
    for size, each in goals.items():
        if not math.isinf(load_fps := getattr(each, procedure.load)):
            rates = requests[size].conditions["rates"]
            given.check_rate(setup, load_fps, [size], rates=rates, where=procedure.load_option.where)
    _check_one_ratio([each.conditions["rates"] for each in requests.values()])
    goal, asked = goals[sizes[0]], requests[sizes[0]].conditions
    check_conditions(asked)
    before = pair.read(setup, given, sizes[0], goal)
    expected = procedure.expected(
        goal,
        asked["waits"].total_s,
        options=options,
        times=len(sizes) * len(goals_at) * (repetitions.count + pair.one_pair_first),
        learning_s=given.learning_s,
    )
    conditions: Conditions = {**asked, "seed": verb.conditions.seed, "one_pair": before}
    first = None
    with given.open(str(procedure.verb), setup, notes, expected=expected) as (bed, store, progress):
        if procedure.needs_table(len(sizes), repetitions.count):
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
            if pair.one_pair_first:
                many = Traffic(plan=given.plan, directions=conditions["directions"]).address_words
                progress.say(f"1 of 2: {given.plan.label}, one address pair.", style="bold")
                progress.later = procedure.expected_span(goal, conditions["waits"].total_s)
                first, conditions["one_pair"] = bed.measure_one_pair(
                    procedure, goal, name=procedure.name, **conditions
                )
                progress.later = TimeSpan.of(0.0)
                progress.say(f"2 of 2: {many}.", style="bold")
            has_own_loop = procedure.has_own_loop(options)
            if len(goals_at) > 1:
                found = _measure_at_each(procedure, goals_at, bed, progress, conditions, has_own_loop)
            else:
                found = bed.measure(procedure, goal, has_own_loop=has_own_loop, **conditions)
    show_found(procedure, found, store, first=first, is_json=verb.conditions.json_output)
    return exit_code_of(procedure, found.to_document())


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


def _check_one_ratio(rates: Sequence[DirectionRates | None]) -> None:
    """RequestError if how the directions differ depends on the frame size."""
    first, *others = rates
    if first is not None and any(each is None or not first.is_like(each) for each in others):
        raise RequestError(
            "the loads of the directions differ in another way with each frame size",
            code="cli.one-frame-size-only",
            where="--frame-size",
            next_step="Give both rates in the same unit, a held one in frames, or one frame size.",
        )


def _check_one_throughput(verb: _Verb, sizes: int) -> None:
    """RequestError for one throughput that the user gives for several frame sizes."""
    use = verb.procedure.throughput
    if sizes > 1 and verb.one_pair.after is not None:
        raise RequestError(
            f"a run to compare with has one frame size, but {sizes} are given",
            code="cli.one-frame-size-only",
            where="--after, --frame-size",
            next_step="Use --one-pair-first, or one frame size.",
        )
    if use is None or sizes == 1 or not verb.procedure.frame_sizes.takes_several:
        return
    given = next(each for each in options_of(verb.procedure.options) if each.name == use.option)
    if getattr(verb.options, given.field) is not None:
        raise RequestError(
            f"one throughput given for {sizes} frame sizes",
            code="cli.one-frame-size-only",
            where=given.where,
            next_step="Use --after, give one --frame-size, or omit it.",
        )
