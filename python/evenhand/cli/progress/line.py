# SPDX-License-Identifier: Apache-2.0
"""Live progress of searches and trials: a status line on a terminal, a line per finished trial everywhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evenhand.base.terminal_table import STYLES
from evenhand.base.time_span import TimeSpan
from evenhand.base.units import LOSS, OneUnit, format_duration, format_rate, format_ratio, one_unit
from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.invalid_trials import InvalidTrials
from evenhand.plan import Direction
from evenhand.procedure import Began, Learned, Measured, Note, ProcedureEvent, TrialPhase
from evenhand.procedure.dut_checks import VALIDATION
from evenhand.procedure.events import SoFar, left_of
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.report.learning import learning_lines, learning_status
from evenhand.report.throughput import describe_load
from evenhand.report.trial import describe_sending
from evenhand.search import SearchEvent, TrialFinished, TrialStarted
from evenhand.trial import LearningProgress, Load, Reason, TrialResult, Verdict, describe_reasons

OVER_S = 0.9
"""A rate is of so long or longer: events come twice a second, and not to the millisecond."""
SENDING = "sending"
ARROWS: dict[Direction, str] = {"forward": "→", "reverse": "←"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One direction, of the last second."""

    offered_fps: float
    received_fps: float
    so_far: SoFar


@dataclass(slots=True)
class Rates:
    """Rates of one trial, while it is made."""

    directions: dict[Direction, Rate] = field(default_factory=dict)
    """Empty as long as nothing was sent for about a second."""
    _before: TrialPhase | None = None
    _noted_s: float = 0.0

    def note(self, phase: TrialPhase) -> bool:
        """What the engine says; whether there is a new second of it."""
        if self._before is not None and phase.elapsed_s < self._before.elapsed_s:
            self._before = None  # another trial
            self.directions = {}
        if not phase.directions:
            return False
        if phase.phase != SENDING:
            # What is sent no more has no rate; what was lost is known a residual wait later.
            self.directions = {
                direction: replace(rate, so_far=phase.directions.get(direction, rate.so_far))
                for direction, rate in self.directions.items()
            }
            return self._is_next_second(phase)
        if self._before is None:
            self._before, self._noted_s = phase, phase.elapsed_s
            return False
        seconds = phase.elapsed_s - self._before.elapsed_s
        if not self._is_next_second(phase):
            return False
        before, self._before = self._before.directions, phase
        self.directions = {
            direction: Rate(
                offered_fps=(so_far.sent_frames - before[direction].sent_frames) / seconds,
                received_fps=(so_far.received_frames - before[direction].received_frames) / seconds,
                so_far=so_far,
            )
            for direction, so_far in phase.directions.items()
            if direction in before
        }
        return True

    def _is_next_second(self, phase: TrialPhase) -> bool:
        if phase.elapsed_s - self._noted_s < OVER_S:
            return False
        self._noted_s = phase.elapsed_s
        return True


def direction_texts(rates: Rates) -> tuple[str, str, str, str]:
    """Both directions with ever fewer words; empty if there is nothing to say yet. Both have the same units
    and as many decimals."""
    found, exact, short = rates.directions, _Written.of(rates, digits=4), _Written.of(rates, digits=3)
    return (
        " · ".join(
            f"{ARROWS[direction]} offered {exact.fps(rate.offered_fps)}, received"
            f" {exact.fps(rate.received_fps)}, loss {exact.loss(rate)}{exact.latency(rate, ', latency ')}"
            for direction, rate in found.items()
        ),
        " · ".join(
            f"{ARROWS[direction]} {short.both(rate)}, loss {short.loss(rate)}{short.latency(rate, ', ')}"
            for direction, rate in found.items()
        ),
        " ".join(
            f"{ARROWS[direction]}{short.both(rate)} lost {_close(short.loss(rate))}"
            f" {_close(short.latency(rate, ''))}".rstrip()
            for direction, rate in found.items()
        ),
        " ".join(
            f"{ARROWS[direction]}{short.both(rate)} lost {_close(short.loss(rate))}"
            for direction, rate in found.items()
        ),
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """How the values of a line are written."""

    digits: int
    rates: OneUnit
    losses: OneUnit
    latencies: OneUnit

    @classmethod
    def of(cls, rates: Rates, *, digits: int) -> _Written:
        """
        Args:
            digits: As many of each value are shown.
        """
        found = rates.directions.values()
        offered = [value for rate in found for value in (rate.offered_fps, rate.received_fps)]
        losses = [rate.so_far.loss_ratio or 0.0 for rate in found]
        latencies = [(rate.so_far.mean_latency_ns or 0.0) / 1e3 for rate in found]
        return cls(
            digits,
            _unit_of(offered, "fps", digits),
            one_unit([_rounded(value, digits) for value in losses], LOSS),
            _unit_of(latencies, "us", digits),
        )

    def fps(self, value: float) -> str:
        return self._with_unit(self.rates, value)

    def both(self, rate: Rate) -> str:
        """Offered and received."""
        offered = self.rates.write(_rounded(rate.offered_fps, self.digits))
        return f"{offered}>{self.fps(rate.received_fps)}"

    def loss(self, rate: Rate) -> str:
        """Loss of what has settled: the residual wait has to pass before anything is known to be lost."""
        ratio = rate.so_far.loss_ratio
        return "?" if ratio is None else self._with_unit(self.losses, ratio)

    def latency(self, rate: Rate, before: str) -> str:
        mean_ns = rate.so_far.mean_latency_ns
        return "" if mean_ns is None else f"{before}{self._with_unit(self.latencies, mean_ns / 1e3)}"

    def _with_unit(self, unit: OneUnit, value: float) -> str:
        return f"{unit.write(_rounded(value, self.digits))} {unit.unit}"


def _unit_of(values: Iterable[float], kind: str, digits: int) -> OneUnit:
    """That of the largest, in which it has so many digits, and the smallest one at least: a line has little
    room. Values that are more than three magnitudes apart have the unit of the smallest."""
    above = [rounded for value in values if (rounded := _rounded(value, digits)) > 0]
    if not above or max(above) > 1000 * min(above):
        return one_unit(above, kind)
    unit = one_unit([max(above)], kind)
    most, least = (math.floor(math.log10(end(above) / unit.factor)) for end in (max, min))
    decimals = max(digits - 1 - most, -least, 0)
    while decimals and all(f"{value / unit.factor:.{decimals}f}".endswith("0") for value in above):
        decimals -= 1
    return replace(unit, decimals=decimals)


def _close(text: str) -> str:
    return text.replace(" ", "")


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


OF_A_CEILING = "tester"
"""Beginning of the names of trials of the tester's own ceiling."""
INVALID_IN_A_ROW = 10
"""Trials after which it is said what helps."""


class ProgressDisplay:
    """Shows what is going on. A context manager; without a terminal it prints plain lines only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = (
            Live(Text(""), console=console, transient=True, refresh_per_second=4)
            if console.is_terminal
            else None
        )
        self._status = ""
        self._short = ""
        """The status in a few words, where a line has no room for more."""
        self._phase = ""
        self._clock = ""
        self._rates = Rates()
        self._ends = TimeSpan.of(0.0)
        """When all of it should be over, by the monotonic clock."""
        self._has_explained_loads = False
        self._invalid_in_a_row = 0
        self._has_shown_remedy = False
        self._invalid = InvalidTrials(self._show)
        self.remedy: str | None = "--limits host"
        """The option with which this command takes the limits that this machine can keep; None: it cannot be,
        or has been."""
        self.later = TimeSpan.of(0.0)
        """Expected time of what comes after the present search."""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    @contained
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._invalid.flush()
        if self._live is not None:
            self._live.stop()

    @contained
    def say(self, text: str, *, style: str = "") -> None:
        """A line that stays."""
        self._invalid.flush()
        self._show(Text(text, style=style))

    def _show(self, line: Text) -> None:
        self._console.print(line, soft_wrap=not self._console.is_terminal)

    @contained
    def expect(self, expected: ExpectedTime) -> None:
        """How long all of it should take; before it begins."""
        self.say(expected.line)

    @contained
    def on_event(self, event: ProcedureEvent) -> None:
        """Takes an event of a procedure."""
        match event:
            case TrialStarted() | TrialFinished():
                self._on_search_event(event)
            case TrialPhase():
                load = "" if event.rate_fps is None else f" at {format_rate(event.rate_fps)}"
                self._clock = f"{event.elapsed_s:.0f}/{event.total_s:.0f} s"
                self._phase = f"{event.phase}{load} {self._clock}"
                self._rates.note(event)
                self._refresh()
            case Began():
                self._begin(event.what, event, "" if event.number is None else f"trial {event.number}")
            case Measured():
                # A search for the ceiling goes up until trials are INVALID: why each was says nothing, and
                # whoever searches says what was found.
                if not event.what.startswith(OF_A_CEILING):
                    self._print_trial(event.what, event.result, "", load=event.load)
                    self._heed_verdict(event.result)
            case LearningProgress():
                status = learning_status(event.reachable, event.host_counts, event.round)
                self._status, self._short = status, ""
                self._refresh()
            case Learned():
                for line in learning_lines(event.result):
                    self.say(line)
            case Note():
                self.say(event.text, style="bold" if event.is_heading else "")

    def _on_search_event(self, event: SearchEvent) -> None:
        if isinstance(event, TrialStarted):
            if not self._has_explained_loads:
                self.say(
                    "Loads are per direction; after each trial: where the result lies, and the time left.",
                    style="dim",
                )
                self._has_explained_loads = True
            attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
            last = event.number + event.remaining_trials - 1
            self._begin(
                f"trial {event.number} of about {last}: {describe_load(event.rate_fps)} for"
                f" {format_duration(event.duration_s)}, "
                f"{event.purpose}{attempt}",
                event,
                f"trial {event.number} of about {last}",
            )
        else:
            self._show_finished(event)

    def _heed_verdict(self, result: TrialResult) -> None:
        """After many INVALID trials in a row the user should know that it is not going to end well, and what
        helps."""
        self._invalid_in_a_row = 0 if result.is_valid else self._invalid_in_a_row + 1
        if self._invalid_in_a_row == INVALID_IN_A_ROW and not self._has_shown_remedy:
            self._has_shown_remedy = True
            self.say(
                f"{INVALID_IN_A_ROW} trials in a row were INVALID: other programs take the tester's CPUs"
                " (evenhand check shows what they take), or the loads are above what it can offer. Give it"
                " idle CPUs or a lower maximum rate"
                + (
                    "."
                    if self.remedy is None
                    else f", or accept the strictest limits that this machine can keep: {self.remedy}"
                ),
                style="yellow",
            )

    def _begin(self, status: str, event: Began | TrialStarted, short: str = "") -> None:
        self._status, self._short, self._phase = status, short, ""
        self._rates = Rates()
        self._expect_left(event)
        self._refresh()

    def _expect_left(self, event: Began | TrialStarted) -> None:
        """From now on so much is left."""
        self._ends = self._left_of(event).then(time.monotonic())

    def _left_of(self, event: Began | TrialStarted | TrialFinished) -> TimeSpan:
        return TimeSpan.sum([left_of(event), self.later])

    @property
    def _left(self) -> TimeSpan:
        """Time left, now."""
        return self._ends.then(-time.monotonic())

    def _show_finished(self, event: TrialFinished) -> None:
        offered_fps = event.trial.result.intended_fps
        write = _in_one_unit(offered_fps, event.lower_fps, event.upper_fps or 0.0)
        upper = "?" if event.upper_fps is None else write(event.upper_fps)
        left = f", {self._left_of(event).exact} left" if event.remaining_trials else ""
        between = (
            f"; {event.quantity} {write(event.lower_fps)} .. {upper}" if event.trial.result.is_valid else ""
        )
        self._print_trial(
            f"trial {event.trial.number}",
            event.trial.result,
            f"{between}{left}",
            series="search",
            offered=write(offered_fps),
        )
        self._heed_verdict(event.trial.result)

    def _print_trial(
        self,
        what: str,
        result: TrialResult,
        tail: str,
        *,
        load: Load | None = None,
        series: str | None = None,
        offered: str | None = None,
    ) -> None:
        """
        Args:
            series: See `InvalidTrials`; by itself those at one load are one.
            offered: The load, in the unit of the others in this line.
        """
        shown = _shown_reasons(result)
        reasons = f": {describe_reasons(shown)}" if shown else ""
        loss = f" loss {format_ratio(result.loss_ratio)}" if result.is_valid else ""
        offered = f"{offered or format_rate(result.intended_fps)} for {describe_sending(result)}"
        if load is not None and load.then is not None:
            # The result's rate is the mean of both.
            offered = (
                str(load)
                if result.stopped_early_s is None
                else f"{load}, of which {describe_sending(result)}"
            )
        line = Text.assemble(
            f"{what}: {offered} ", (str(result.verdict), STYLES[result.verdict]), f"{loss}{reasons}{tail}"
        )
        self._invalid.take(what, result, line, series=series or f"{result.intended_fps}", tail=tail)

    def _refresh(self) -> None:
        if self._live is None:
            return
        left = self._left
        self._live.update(self._line(f"{left.exact} left" if left.most_s >= 1 else ""))

    def _line(self, left: str) -> Text:
        """As much of the status as one line of this terminal has room for: what is measured comes before what
        trial it is."""
        long, short, shorter, shortest = direction_texts(self._rates)
        if long:
            choices = [
                (self._status, self._phase, long, left),
                (self._short, self._phase, long, left),
                (self._phase, long, left),
                (self._short, self._phase, short, left),
                (self._phase, short, left),
                (self._phase, short),
                (self._clock, short),
                (self._phase, shorter),
                (self._clock, shorter),
                (self._clock, shortest),
            ]
        else:
            choices = [(self._status, self._phase, left), (self._short or self._status, self._phase, left)]
        texts = [" · ".join(part for part in parts if part) for parts in choices]
        fitting = next((text for text in texts if len(text) <= self._console.width), texts[-1])
        return Text(fitting, style="dim", overflow="ellipsis", no_wrap=True)


def _shown_reasons(result: TrialResult) -> list[Reason]:
    """What says more than that frames were lost, and how many. For connections that were opened but did not
    hold all of it: the loss that is shown is that of the trial that opened them."""
    if not result.is_valid or (result.verdict is Verdict.FAIL and VALIDATION in result.raw):
        return list(result.reasons)
    if result.verdict is not Verdict.FAIL:
        return []
    return [
        *(reason for reason in result.reasons if reason.code not in _OF_ANY_LOSS),
        *(note for note in result.notes if note.code == "mistranslated"),
    ]


_OF_ANY_LOSS = ("loss", "stopped_early")


def _in_one_unit(*rates_fps: float) -> Callable[[float], str]:
    """How the rates of a line are written: all in the same unit, each with four digits at most."""
    unit = one_unit([_four_digits(rate_fps) for rate_fps in rates_fps], "fps")
    return lambda rate_fps: f"{unit.write(_four_digits(rate_fps))} {unit.unit}"


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")
