# SPDX-License-Identifier: Apache-2.0
"""Live progress of searches and trials: a status line on a terminal, a line per finished trial everywhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evenhand.report import VERDICT_STYLES, describe_load, learning_status
from evenhand.search import SearchEvent, TrialFinished, TrialStarted
from evenhand.trial import LearningProgress, TrialResult, join_directions
from evenhand.units import format_duration, format_rate, format_ratio


class ProgressDisplay:
    """Shows what is going on. A context manager; without a terminal it prints plain lines only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(Text(""), console=console, transient=True, refresh_per_second=4) if console.is_terminal else None
        self._status = ""
        self._phase = ""
        self._deadline_s = 0.0
        self._has_told_loads = False
        self.later_s = 0.0
        """Expected time of what comes after the present search."""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str, *, style: str = "") -> None:
        """A line that stays."""
        self._console.print(Text(text, style=style), soft_wrap=not self._console.is_terminal)

    def on_search_event(self, event: SearchEvent) -> None:
        """See `find_throughput`."""
        if isinstance(event, TrialStarted):
            if not self._has_told_loads:
                self.say("Loads are per direction; after each trial: where the throughput lies, and the time left.", style="dim")
                self._has_told_loads = True
            attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
            last = event.number + event.remaining_trials - 1
            self._begin(
                f"trial {event.number} of about {last}: {describe_load(event.rate_fps)} for {format_duration(event.duration_s)}, "
                f"{event.purpose}{attempt}",
                event.remaining_s,
            )
        else:
            self._show_finished(event)

    def on_engine_event(self, event: dict[str, Any]) -> None:
        """A progress document of the engine (contract/reply.schema.json)."""
        self._phase = f"{event.get('phase', '')} {event.get('elapsed_s', 0):.1f}/{event.get('total_s', 0):.1f} s"
        self._refresh()

    def on_learning(self, progress: LearningProgress) -> None:
        """How many hosts the DUT reaches by now; see `learn`."""
        self._status = learning_status(progress.reachable, progress.hosts, progress.round)
        self._refresh()

    def on_single_trial(self, what: str, result: TrialResult) -> None:
        """A finished trial that belongs to no search."""
        self._print_trial(what, result, "")

    def begin_single_trial(self, what: str, remaining_s: float) -> None:
        self._begin(what, remaining_s)

    def _begin(self, status: str, remaining_s: float) -> None:
        self._status, self._phase = status, ""
        self._deadline_s = time.monotonic() + remaining_s + self.later_s
        self._refresh()

    def _show_finished(self, event: TrialFinished) -> None:
        upper = "?" if event.upper_fps is None else format_rate(event.upper_fps)
        left = f", {format_duration(max(1, round(event.remaining_s + self.later_s)))} left" if event.remaining_trials else ""
        between = f"; throughput {format_rate(event.lower_fps)} .. {upper}" if event.trial.result.is_valid else ""
        self._print_trial(f"trial {event.trial.number}", event.trial.result, f"{between}{left}")

    def _print_trial(self, what: str, result: TrialResult, tail: str) -> None:
        reasons = ""
        if not result.is_valid:
            told = join_directions(result.reasons)
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            reasons = f": {told[0].text}{more}"
        loss = f" loss {format_ratio(result.loss_ratio)}" if result.is_valid else ""
        line = Text.assemble(
            f"{what}: {format_rate(result.intended_fps)} for {format_duration(result.intended_duration_s)} ",
            (str(result.verdict), VERDICT_STYLES[result.verdict]), f"{loss}{reasons}{tail}",
        )  # fmt: skip
        self._console.print(line, soft_wrap=not self._console.is_terminal)

    def _refresh(self) -> None:
        if self._live is None:
            return
        left_s = max(0, round(self._deadline_s - time.monotonic()))
        text = " · ".join(part for part in (self._status, self._phase, f"about {format_duration(left_s)} left" if left_s else "") if part)
        self._live.update(Text(text, style="dim", overflow="ellipsis", no_wrap=True))
