# SPDX-License-Identifier: Apache-2.0
"""Live progress of searches and trials: a status line on a terminal, a line per finished trial everywhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evenhand.base.terminal_table import STYLES
from evenhand.base.units import format_duration, format_rate, format_ratio
from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.invalid_trials import InvalidTrials
from evenhand.cli.progress.rates import Rates, direction_texts
from evenhand.procedure import Began, Learned, Measured, Note, ProcedureEvent, TrialPhase
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.procedure.nat_checks import VALIDATION
from evenhand.report.learning import learning_lines, learning_status
from evenhand.report.throughput import describe_load
from evenhand.report.trials import describe_sending
from evenhand.search import SearchEvent, TrialFinished, TrialStarted
from evenhand.trial import LearningProgress, Load, Reason, TrialResult, Verdict, describe_reasons

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
        self._deadline_s = 0.0
        self._has_explained_loads = False
        self._invalid_in_a_row = 0
        self._has_shown_remedy = False
        self._invalid = InvalidTrials(self._show)
        self.remedy: str | None = "--limits host"
        """The option with which this command takes the limits that this host can keep; None: it cannot be, or
        has been."""
        self.later_s = 0.0
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
                self._begin(
                    event.what, event.remaining_s, "" if event.number is None else f"trial {event.number}"
                )
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
                event.remaining_s,
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
                    else f", or accept the strictest limits that this host can keep: {self.remedy}"
                ),
                style="yellow",
            )

    def _begin(self, status: str, remaining_s: float, short: str = "") -> None:
        self._status, self._short, self._phase = status, short, ""
        self._rates = Rates()
        self._deadline_s = time.monotonic() + remaining_s + self.later_s
        self._refresh()

    def _show_finished(self, event: TrialFinished) -> None:
        upper = "?" if event.upper_fps is None else format_rate(event.upper_fps)
        left = (
            f", {format_duration(max(1, round(event.remaining_s + self.later_s)))} left"
            if event.remaining_trials
            else ""
        )
        between = (
            f"; {event.quantity} {format_rate(event.lower_fps)} .. {upper}"
            if event.trial.result.is_valid
            else ""
        )
        self._print_trial(
            f"trial {event.trial.number}", event.trial.result, f"{between}{left}", series="search"
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
    ) -> None:
        """`series`: see `InvalidTrials`; by itself those at one load are one."""
        shown = _shown_reasons(result)
        reasons = f": {describe_reasons(shown)}" if shown else ""
        loss = f" loss {format_ratio(result.loss_ratio)}" if result.is_valid else ""
        offered = f"{format_rate(result.intended_fps)} for {describe_sending(result)}"
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
        left_s = max(0, round(self._deadline_s - time.monotonic()))
        self._live.update(self._line(f"{format_duration(left_s)} left" if left_s else ""))

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
    """What says more than that frames were lost, and how many. Of connections that were opened but did not
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
