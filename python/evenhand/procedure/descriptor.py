# SPDX-License-Identifier: Apache-2.0
"""Procedure: what everything else knows of a procedure: how it is called, what it takes, what its number
is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Protocol

from evenhand.base.one_unit import one_unit
from evenhand.base.option import Option, OptionField, options_of
from evenhand.base.units import format_count, format_rate, format_ratio
from evenhand.procedure.connection_trials import established_idle_s
from evenhand.procedure.connection_wish import ConnectionWish
from evenhand.procedure.expected_time import OPENING_S, ExpectedTime
from evenhand.procedure.limits import Retries
from evenhand.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a procedure's number is."""

    name: str
    unit: str
    """As files and exports have it: fps (per direction), connections, connections/s, ratio, us, frames, s."""
    is_higher_better: bool

    @property
    def shown_unit(self) -> str:
        """The unit in which people read it: of delays ms, as RFC 8219 asks."""
        return "ms" if self.unit == "us" else self.unit


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
        """How it ended, as text of the run file: `found`, `tester_limit`, `stopped`, ..."""

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
    run: Callable[..., Any]
    """`run(bed, goal, options, **conditions)` measures once, with one frame size, and gives a `Result`. `bed`
    is an `OpenTestbed`; `conditions` are the keywords of `Conditions`, and `name` where a campaign has one
    for the run file."""
    has_own_verb: bool = False
    """Whether its verb does more than to measure once, or a table: `cli/` has a module and a function of the
    verb's name then."""
    run_table: Callable[..., Any] | None = None
    """`run_table(bed, sizes, goal, repetitions=..., throughputs=..., **conditions)` measures with several
    frame sizes, or several times, for the verb. None: the verb takes neither."""
    is_always_table: bool = False
    """Whether the verb shows a table for a single frame size too."""
    figure: Figure
    section: Section = Section.OTHERS
    """The part of a page with its results."""
    value_of: Callable[[Mapping[str, Any]], float | None]
    """The figure in a result's document; None if it has none. With two directions, the worse one counts."""
    left_open: Callable[[Mapping[str, Any]], LeftOpen] = lambda document: EXACT
    """What a result's document left open beside that figure, in its unit: the load that failed first, of a
    search. A figure that is a bound says so by `is_at_least` in the document."""
    expected_s: Callable[[Any, float], float]
    """Expected time in seconds, from a goal and the waits of each trial in seconds."""
    expected_parts: Callable[[Any], Iterable[str]]
    """What takes most of that time, for people."""
    supposed: Callable[[Any], str] = lambda goal: ""
    """What `expected_s` takes for granted of the DUT, as a clause that begins with "if"; empty: nothing that
    would change it by more than a factor of two."""
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
            self.expected_s(goal, waits_s),
            self.expected_parts(goal),
            waits_s,
            supposed=self.supposed(goal),
            times=times,
            learning_s=learning_s,
            own_loop_s=goal.length_s + waits_s + OPENING_S if is_own_loop_first else 0.0,
        )

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
        return self.run_table is not None and not self.repeats_itself

    def needs_table(self, sizes: int, repetitions: int) -> bool:
        """Whether the verb uses `run_table` for so many frame sizes and repetitions."""
        return self.run_table is not None and (self.is_always_table or sizes > 1 or repetitions > 1)

    @property
    def load_option(self) -> OptionField:
        """Option by which the user chooses that load."""
        return next(each for each in options_of(self.options) if each.keyword == self.load)


def as_number(value: Any) -> float | None:
    """A number of a document."""
    return None if value is None else float(value)


def finite(value: Any) -> float | None:
    """A number of a document; None for anything else that may stand there, and for none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def open_above(document: Mapping[str, Any], key: str) -> LeftOpen:
    """Of a search for the highest load that passes: up to the lowest that failed."""
    return LeftOpen(high=finite(document.get(key)))


def worst(values: Iterable[float | None]) -> float | None:
    """The worst value; None if any direction has none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return None if not known or len(known) < len(found) else max(known)


def figures_by_direction(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Figures of a document that has them by direction."""
    return list((result.get("figures") or {}).values())


def show_value(value: float, figure: Figure) -> str:
    """`794,000 fps`, `0.0125 ms`."""
    return (
        show_number(value, figure)
        if figure.unit == "ratio"
        else f"{show_number(value, figure)} {figure.shown_unit}"
    )


def show_number(value: float, figure: Figure) -> str:
    """`794,000`, `0.0125`; a ratio in percent."""
    if figure.unit in ("fps", "frames", "connections", "connections/s"):
        return format_count(round(value))
    if figure.unit == "us":
        return one_unit([value], figure.unit).write(value)
    return format_ratio(value) if figure.unit == "ratio" else f"{value:.4g}"


def describe_maximum(max_fps: float) -> str:
    """Where a procedure begins that goes down from its highest load."""
    return "the line rate or the tester's ceiling" if math.isinf(max_fps) else format_rate(max_fps)
