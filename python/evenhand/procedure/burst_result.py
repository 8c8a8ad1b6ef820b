# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a test with bursty traffic found (RFC 2544, 21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.base.units import format_count
from evenhand.procedure.burst_goal import RFC_BURSTS, BurstGoal
from evenhand.procedure.profile import Profile, burst_rate_without_line_rate, collect_deviations
from evenhand.procedure.result_document import result_document
from evenhand.search import Outcome, SearchTrial, ThroughputResult
from evenhand.search.search_trial import numbered_documents
from evenhand.trial import Deviation, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstInterval:
    """Result for one size of bursts."""

    frames: int
    """Frames of one burst, per direction."""
    rate_fps: float
    """Rate within it."""
    search: ThroughputResult
    """The search, by the mean load."""

    @property
    def outcome(self) -> Outcome:
        """Outcome of the search. At the maximum, the bursts followed each other without a gap; below the
        minimum, no interval was without loss."""
        return self.search.outcome

    @property
    def mean_fps(self) -> float | None:
        """Mean load over bursts and silence, per direction, at the smallest interval; None if there is none,
        as at the tester's limit."""
        return None if self.outcome is Outcome.TESTER_LIMIT else self.search.throughput_fps

    @property
    def interval_s(self) -> float | None:
        """The smallest interval without loss, from the start of a burst to the start of the next."""
        return None if self.mean_fps is None else self.frames / self.mean_fps

    @property
    def gap_s(self) -> float | None:
        """The same from the end of a burst to the start of the next (inter-burst gap, RFC 2285)."""
        return None if self.interval_s is None else max(0.0, self.interval_s - self.frames / self.rate_fps)

    @property
    def failed_interval_s(self) -> float | None:
        """The largest interval that lost frames."""
        return None if self.search.upper_fps is None else self.frames / self.search.upper_fps

    def to_document(self) -> dict[str, Any]:
        return {
            "burst_frames": self.frames,
            "interval_s": self.interval_s,
            "gap_s": self.gap_s,
            "failed_interval_s": self.failed_interval_s,
            "mean_fps_per_direction": self.mean_fps,
            "search": self.search.to_document(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstIntervals:
    """The smallest interval for each size of bursts (R2544-17)."""

    profile: Profile
    goal: BurstGoal
    """The goal, with the rate of the bursts."""
    intervals: tuple[BurstInterval, ...]

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """Trials of all searches, in order."""
        return tuple(trial.result for trial in self._search_trials)

    @property
    def _search_trials(self) -> tuple[SearchTrial, ...]:
        return tuple(trial for interval in self.intervals for trial in interval.search.trials)

    @property
    def outcome(self) -> str:
        """`measured`, `tester_limit` if one could not be decided, or `stopped`."""
        outcomes = {interval.outcome for interval in self.intervals}
        return next(
            (str(outcome) for outcome in (Outcome.STOPPED, Outcome.TESTER_LIMIT) if outcome in outcomes),
            "measured",
        )

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = collect_deviations(self._search_trials, self.profile)
        theoretical_fps, goal = self.profile.theoretical_fps, self.goal
        if theoretical_fps is None:
            text = burst_rate_without_line_rate(self.profile)
            found.append(Deviation(requirement="R2544-17", text=text))
        elif goal.rate_fps < theoretical_fps:
            text = f"frames of a burst follow at {format_count(goal.rate_fps)} fps, not at minimum gap"
            found.append(Deviation(requirement="R2544-17", text=text))
        if set(goal.burst_frames) != set(RFC_BURSTS):
            text = f"bursts of {_listed(goal.burst_frames)} frames instead of {_listed(RFC_BURSTS)}"
            found.append(Deviation(requirement="R2544-17", text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand burst --json` writes it."""
        return result_document(
            self.profile,
            {
                "outcome": self.outcome,
                "goal": self.goal.to_document(),
                "intervals": [interval.to_document() for interval in self.intervals],
            },
            trials=self.trials,
            documents=numbered_documents(self._search_trials),
            deviations=self.deviations,
        )


def _listed(frames: tuple[int, ...]) -> str:
    return ", ".join(map(format_count, frames))
