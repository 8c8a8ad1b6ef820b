# SPDX-License-Identifier: Apache-2.0
"""Procedure: what everything else knows of a procedure: how it is called, what it takes, what its number
is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Protocol

from evenhand.base.errors import RequestError
from evenhand.base.option import Option, OptionField, options_of, values_of
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import WHOLE_FPS, format_rate, format_ratio, one_unit
from evenhand.base.validation.document import Documented, from_document
from evenhand.procedure.connection_trials import ConnectionWish, established_idle_s
from evenhand.procedure.expected_time import OPENING_S, ExpectedTime
from evenhand.procedure.limits import Retries
from evenhand.procedure.profile import Profile
from evenhand.results.connections import ConnectionRateFound
from evenhand.results.throughput import ThroughputFound, is_lower_bound
from evenhand.trial import DirectionRates, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Documented):
    """What a procedure's number is."""

    name: str
    unit: str
    """As files and exports have it: fps (per direction), connections, connections/s, ratio, us, frames, s."""
    is_higher_better: bool

    @property
    def shown_unit(self) -> str:
        """The unit in which people read it: of delays ms, as RFC 8219 asks, of ratios %."""
        return {"us": "ms", "ratio": "%"}.get(self.unit, self.unit)


class FrameSizes(Enum):
    """Which frames a procedure can be made with."""

    ONE = "one size"
    ONE_OR_MIX = "one size, or a sequence of sizes"
    WHOLE = "several sizes, one after the other"
    SEVERAL = "several sizes or sequences, one after the other"

    @property
    def takes_mixes(self) -> bool:
        """Whether the frames of one trial may have several sizes (RFC 6985)."""
        return self in (FrameSizes.ONE_OR_MIX, FrameSizes.SEVERAL)

    @property
    def takes_several(self) -> bool:
        """Whether its verb takes more than one."""
        return self in (FrameSizes.WHOLE, FrameSizes.SEVERAL)


class DirectionChoice(Enum):
    """How the loads of the two directions may differ."""

    ANY = "in a ratio, or one direction is held"
    RATIO = "in a ratio"
    NONE = "not at all"


class Section(Enum):
    """A part of a campaign's page, for what its procedures have found; in the order of the page."""

    THROUGHPUT = ("throughput", "Throughput")
    LOSS = ("loss", "Frame loss")
    LATENCY = ("latency", "Latency and delay variation")
    BURSTS = ("bursts", "Bursts")
    RECOVERY = ("recovery", "Recovery")
    OTHERS = ("others", "Other procedures")

    def __init__(self, anchor: str, title: str) -> None:
        """
        Args:
            anchor: Its id on the page.
            title: Its heading.
        """
        self.anchor = anchor
        self.title = title


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputUse:
    """How a procedure uses a throughput that was measured before."""

    option: str
    """The option that gives it instead: `rate` where it is the load itself, else `throughput`."""
    is_needed: bool = True
    """False: the procedure measures it by itself where none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownThroughput:
    """A throughput that was measured before, under the same conditions."""

    fps: float
    """Per direction."""
    source: str
    """Where: a run file, or a point of the campaign."""
    is_at_least: bool = False
    """It is a lower bound: no load that failed is known, or none near it."""


AfterOption = Annotated[
    Path | None,
    Option(
        metavar="RUN",
        help="A run file with the throughput of the same testbed, plan and frame size.",
        is_for_shell_only=True,
    ),
]
"""`--after`, of procedures that need a throughput."""
ANY_THROUGHPUT = KnownThroughput(fps=1e6, source="")
"""A throughput in place of one that is not known yet, to check all other options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """What a procedure left open on either side of its figure: the truth lies from `low` to `high`."""

    low: float | None = None
    """None: not below the figure."""
    high: float | None = None
    """None: not above it."""


EXACT = LeftOpen()


class Result(Protocol):
    """What a procedure found."""

    @property
    def outcome(self) -> Any:
        """How it ended, as text of the run file: `found`, `tester_ceiling`, `stopped`, ..."""

    @property
    def trials(self) -> Sequence[TrialResult]:
        """All that were made for it."""

    def to_document(self) -> dict[str, Any]:
        """All of it, as the verb writes it with `--json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """One test. To add one, write a file that makes such an object, and name it in `registry.py`: the verb,
    the keys of the campaign file, `show`, `export` and the pages follow from it."""

    name: str
    """Its name in campaign files, run files and exports."""
    verb: str | None
    """Its name on the command line. None: an option of another verb makes it."""
    help: str
    """Help text of the verb: a sentence with the RFC section, and what else a user should know."""
    example: str
    """A command line that shows it."""
    options: type
    """A dataclass whose fields are options (`base/option.py`): those that only this procedure has."""
    make_goal: Callable[[Any, Retries, KnownThroughput | None], Any]
    """The goal of such options. RequestError names the option."""
    goals: Any
    """The type of its goals, as `check_type` takes it."""
    found: type | None = None
    """The type of what it finds (room `results`), whose document a run file has and a report shows. None: the
    document itself takes its place."""
    default_goal: Callable[[Retries], Any] | None = None
    """The goal of a caller in Python who gives none, with the testbed's retries; None: one must be given."""
    check: Callable[[Any, Profile], object] | None = None
    """RequestError for a goal that the traffic does not allow, before the DUT learns its hosts. None: all
    that is checked is that a load of the user's own is not above the line rate."""
    before: Callable[..., Mapping[str, Any]] | None = None
    """`before(bed, goal, conditions)` measures something before the tester is open, and gives further
    keywords of `measure`."""
    measure: Callable[..., Any]
    """`measure(tester, goal, name=..., on_event=..., recorder=...)` measures once with a tester that is open,
    stores each trial before the next begins, and gives a `Result`. One of several repetitions gets its number
    as `repetition`."""
    rates: DirectionChoice = DirectionChoice.ANY
    """Whether the loads of the two directions may differ."""
    opens_connections: bool = False
    """Whether its trials open connections themselves, so that none are established beforehand."""
    is_compared_with_one_pair: bool = False
    """Whether its verb can measure with one address pair first, or take that from another run, and shows both
    (SEED-02)."""
    table: Callable[..., Any] | None = None
    """`table(rows=...)`: what several frame sizes, or several repetitions, come to: of each size a `Row`, or
    a result if one execution repeats itself. None: its verb takes neither."""
    spread_of: Callable[[Sequence[Any]], float | None] = lambda found: None
    """How far repetitions lie apart (`SpreadOf`)."""
    is_always_table: bool = False
    """Whether the verb shows a table for a single frame size too."""
    figure: Figure
    section: Section = Section.OTHERS
    """The part of a page with its results."""
    value_of: Callable[[Any], float | None]
    """The figure of what was found (`found`); None if it has none. With two directions, the worse one
    counts."""
    left_open: Callable[[Any], LeftOpen] = lambda found: EXACT
    """What it left open beside that figure, in its unit: the load that failed first, of a search. A figure
    that is a bound says so by `is_at_least` in the document."""
    expected_s: Callable[[Any, float], float]
    """Expected time in seconds, from a goal and the waits of each trial in seconds."""
    longest_s: Callable[[Any, float], float] | None = None
    """The same, where the time depends on the DUT by more than a factor of two: `expected_s` is the shortest
    then, and this the longest."""
    expected_parts: Callable[[Any], Iterable[str]]
    """What takes most of that time, for people."""
    supposed: Callable[[Any], str] = lambda goal: ""
    """What `expected_s` takes for granted of the DUT, as a clause that begins with "if", or with "by" where
    it says what the time depends on; empty: nothing that would change it by more than a factor of two."""
    describe: Callable[[Any, str | None], str]
    """What a goal looks for, in half a sentence. The second argument says where the load comes from; None:
    the goal has it."""
    frame_sizes: FrameSizes
    load: str
    """The attribute of the goal that is the highest load it offers, in fps per direction."""
    throughput: ThroughputUse | None = None
    """None: it has no use for one."""
    gives_throughput: bool = False
    """Whether other procedures take their load from it."""
    own_idle_s: Callable[[Any, float], float | None] | None = None
    """For a procedure that opens connections itself: for how long, with a goal and the waits of each trial in
    seconds, some of them have no frame; None where that is not known yet."""
    has_own_loop: Callable[[Any], bool] = lambda options: False
    """Whether the tester's own delays are measured first, with these options."""

    options_of_each_load: Callable[[Any], tuple[Any, ...]] = lambda options: (options,)
    """The options of each load, where the verb measures at several, one after the other."""

    def read(self, document: Mapping[str, Any] | None, place: str = "repetitions.result") -> Any:
        """What a result's document says was found; None without one. ValueError if a value in it has another
        type (`from_document`)."""
        return (
            document if self.found is None or document is None else from_document(self.found, document, place)
        )

    def value(self, document: Mapping[str, Any]) -> float | None:
        """The figure in a result's document."""
        return self.value_of(self.read(document))

    def expected(
        self, goal: Any, waits_s: float, *, options: Any = None, times: int = 1, learning_s: float = 0.0
    ) -> ExpectedTime:
        """How long the verb should take with this goal.

        Args:
            waits_s: Time of each trial in addition to sending.
            options: Options of the procedure; None: the defaults.
            times: Number of frame sizes or repetitions that are measured with the goal.
            learning_s: To have the hosts of a direct plan learnt.
        """
        is_own_loop_first = options is not None and self.has_own_loop(options)
        return ExpectedTime.of(
            goal,
            self.expected_span(goal, waits_s),
            self.expected_parts(goal),
            waits_s,
            supposed=self.supposed(goal),
            times=times,
            learning_s=learning_s,
            own_loop_s=goal.length_s + waits_s + OPENING_S if is_own_loop_first else 0.0,
        )

    def expected_span(self, goal: Any, waits_s: float) -> TimeSpan:
        """From the shortest expected time to the longest."""
        least_s = self.expected_s(goal, waits_s)
        return TimeSpan(least_s, least_s if self.longest_s is None else self.longest_s(goal, waits_s))

    def longest_idle_s(self, goal: Any, waits_s: float, wish: ConnectionWish | None) -> float | None:
        """For how long a connection has no frame, which the DUT must not forget (R9693-06); None without any,
        and where it is not known yet.

        Args:
            waits_s: Time of each trial in addition to sending.
            wish: The connections that are established before each trial.
        """
        if self.own_idle_s is not None:
            return self.own_idle_s(goal, waits_s)
        return None if wish is None else established_idle_s(wish, waits_s, goal.longest_trial_s)

    @property
    def repeats_itself(self) -> bool:
        """Whether one execution has several trials or searches that count (`--repetitions` of its verb)."""
        return any(each.field == "repetitions" for each in options_of(self.options))

    @property
    def is_repeated(self) -> bool:
        """Whether the verb repeats whole executions (`--repetitions`)."""
        return self.table is not None and not self.repeats_itself

    def needs_table(self, sizes: int, repetitions: int) -> bool:
        """Whether the verb shows a table for so many frame sizes and repetitions."""
        return self.table is not None and (self.is_always_table or sizes > 1 or repetitions > 1)

    @property
    def load_option(self) -> OptionField:
        """Option by which the user chooses that load."""
        return next(each for each in options_of(self.options) if each.keyword == self.load)


def check_rates(procedure: Procedure, rates: DirectionRates | None) -> None:
    """RequestError if the loads of the two directions may not differ so in this procedure."""
    allowed = procedure.rates
    if rates is None or allowed is DirectionChoice.ANY:
        return
    if allowed is DirectionChoice.RATIO and rates.held is None:
        return
    held = allowed is DirectionChoice.RATIO
    raise RequestError(
        f"{procedure.name} {'holds no direction: both change at once' if held else 'has one load for both'}"
        f" ({rates})",
        code="procedure.rates-not-possible",
        where="hold" if held else "rates",
        next_step="Give a ratio instead." if held else "Give one rate.",
    )


def goals_of(kind: Callable[..., Any]) -> Callable[[Any, Retries, KnownThroughput | None], Any]:
    """`make_goal` where the options say all that a goal of this type has."""
    return lambda options, retries, known: kind(**values_of(options), **retries)


def as_number(value: Any) -> float | None:
    """A number of a document."""
    return None if value is None else float(value)


def throughput_of(found: ThroughputFound | ConnectionRateFound) -> float | None:
    """`value_of` of a search for a rate."""
    return as_number(found.throughput_fps)


def open_above(found: ThroughputFound | ConnectionRateFound) -> LeftOpen:
    """What a search for the highest load that passes left open: up to the lowest that failed."""
    return LeftOpen(high=as_number(found.upper_fps))


def worst(values: Iterable[float | None]) -> float | None:
    """The worst value; None if any direction has none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return None if not known or len(known) < len(found) else max(known)


def show_value(value: float, figure: Figure) -> str:
    """`794,000 fps`, `0.0125 ms`."""
    return f"{show_number(value, figure)} {figure.shown_unit}"


def show_number(value: float, figure: Figure, beside: Iterable[float] = ()) -> str:
    """`794,000`, `0.0125`, in `Figure.shown_unit`.

    Args:
        beside: Values of the same column, which have as many decimals.
    """
    kind = WHOLE_FPS if figure.unit == "fps" else figure.unit
    return one_unit([value, *beside], kind).write(value)


def describe_maximum(max_fps: float) -> str:
    """Where a procedure begins that goes down from its highest load."""
    return "the line rate or the tester's ceiling" if math.isinf(max_fps) else format_rate(max_fps)


WITH_LOSS = "procedure.throughput-with-loss"
IS_BOUND = "procedure.throughput-is-bound"


def throughput_to_serve(results: Sequence[ThroughputFound], *, source: str, where: str) -> KnownThroughput:
    """The median of these results of throughput searches, and whether it is a lower bound.

    Args:
        source: Where they are, for people.
        where: The option or argument that names it.

    Raises:
        RequestError: None of them found a number, or one was found with a loss ratio above 0: what is lost at
            that load is no throughput (R2544-21).
    """
    found = [
        (float(fps), is_lower_bound(each, each.outcome), each.goal.loss_ratio)
        for each in results
        if (fps := each.throughput_fps) is not None
    ]
    if not found:
        raise RequestError(
            f"{source} has no number",
            code="procedure.no-throughput-found",
            where=where,
            next_step="Look at its outcome, or give the load itself.",
        )
    fps = median(each for each, _, _ in found)
    loss_ratio = max(each for _, _, each in found)
    if loss_ratio > 0:
        raise RequestError(
            f"the throughput of {format_rate(fps)} in {source} was found with a loss ratio of"
            f" {format_ratio(loss_ratio)}",
            code="procedure.throughput-with-loss",  # WITH_LOSS
            where=where,
            next_step="Name one that was found without loss, or give the load itself.",
        )
    highest = median(math.inf if is_bound else each for each, is_bound, _ in found)
    return KnownThroughput(fps=fps, source=source, is_at_least=highest != fps)


def check_is_no_bound(fps: float, profile: Profile, *, source: str | None, where: str) -> None:
    """RequestError for a lower bound, unless it is the line rate itself: nothing is higher."""
    if is_bound_here(fps, profile):
        raise RequestError(
            f"the throughput of {format_rate(fps)}{'' if source is None else f' in {source}'} is a lower"
            " bound: how much more the DUT forwards is not known",
            code="procedure.throughput-is-bound",  # IS_BOUND
            where=where,
            next_step="Search the throughput with a higher maximum rate, or with a tester that keeps more.",
        )


def is_bound_here(fps: float, profile: Profile) -> bool:
    """Whether a lower bound is one on these ports, and not their line rate."""
    return profile.theoretical_fps is None or fps < profile.theoretical_fps
