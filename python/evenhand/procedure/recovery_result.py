# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a recovery test found (RFC 2544, 26.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.base.units import format_count, format_duration
from evenhand.plan import Direction
from evenhand.procedure.profile import Profile, plain_deviations
from evenhand.procedure.recovery_goal import OVERLOAD_S, STILL_LOSING, RecoveryGoal
from evenhand.procedure.result_document import attempt_documents, attempts_at, result_document
from evenhand.procedure.statistics import Statistics
from evenhand.trial import Deviation, DirectionResult, Load, TrialResult, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Results of the repetitions, with their traffic."""

    profile: Profile
    goal: RecoveryGoal
    load: Load
    repetitions: tuple[tuple[TrialResult, ...], ...]
    """The trials of each repetition in order; the last one counts, if it is valid."""

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """All of them, in order."""
        return tuple(trial for repetition in self.repetitions for trial in repetition)

    @property
    def valid(self) -> tuple[TrialResult, ...]:
        """The valid trial of each repetition that has one."""
        return tuple(repetition[-1] for repetition in self.repetitions if repetition[-1].is_valid)

    def values(self, direction: Direction) -> tuple[float, ...]:
        """Recovery time of each valid repetition in s: from the drop of the load (A) to the time at which the
        last lost frame was due (B).

        0 if nothing was lost after the drop.
        """
        return tuple(self._recovery_s(trial.directions[direction]) for trial in self.valid)

    def _recovery_s(self, result: DirectionResult) -> float:
        return 0.0 if result.last_lost is None else max(0.0, result.last_lost.due_s - self.load.duration_s)

    def statistics(self, direction: Direction) -> Statistics | None:
        """Statistics over the repetitions; None without a valid one."""
        return Statistics.of(self.values(direction))

    def average_s(self, direction: Direction) -> float | None:
        """Average over the repetitions in s, which RFC 2544 requires."""
        values = self.values(direction)
        return sum(values) / len(values) if values else None

    def lost_frames(self, direction: Direction) -> int:
        """Lost frames in all valid repetitions."""
        return sum(trial.directions[direction].lost_frames for trial in self.valid)

    def lossless(self, direction: Direction) -> int:
        """Number of repetitions in which the overload lost nothing, so that there was nothing to recover
        from."""
        return sum(trial.directions[direction].last_lost is None for trial in self.valid)

    def still_losing(self, direction: Direction) -> int:
        """Number of repetitions that lost frames until the end, so that the time is a lower bound."""
        return sum(value > STILL_LOSING * self.goal.observe_s for value in self.values(direction))

    def doubtful(self, direction: Direction) -> int:
        """Number of repetitions in which the tester's own lapses may explain all frames that were lost after
        the drop."""
        return sum(self._is_doubtful(trial, direction) for trial in self.valid)

    def _is_doubtful(self, trial: TrialResult, direction: Direction) -> bool:
        result = trial.directions[direction]
        if self._recovery_s(result) == 0:
            return False
        lost_after = max(1, sum(result.lost_by_tenth[math.ceil(10 * self.load.duration_s) :]))
        own = (
            result.sender.overdue_frames
            + result.receiver.gap_frames
            + result.away_frames
            + trial.missed_frames
        )
        return own >= lost_after

    @property
    def outcome(self) -> str:
        """`measured`, `tester_limit` if a repetition had no valid trial, or `stopped`."""
        if any(trial.was_stopped for trial in self.trials):
            return "stopped"
        return "measured" if len(self.valid) == self.goal.repetitions else "tester_limit"

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        goal, theoretical_fps = self.goal, self.profile.theoretical_fps
        found: list[str] = []
        if goal.throughput_source is None:
            found.append(
                f"the throughput of {format_count(goal.throughput_fps)} fps per direction was"
                " given by the user and not measured"
            )
        if theoretical_fps is None:
            found.append(
                "the ports do not know their line rate, so the overload is 110 % of the throughput,"
                " whatever the line can carry"
            )
        if goal.duration_s < OVERLOAD_S:
            found.append(
                f"the overload lasted {format_duration(goal.duration_s)} instead of"
                f" {format_duration(OVERLOAD_S)}"
            )
        if len(self.valid) < goal.repetitions:
            found.append(f"{len(self.valid)} of {goal.repetitions} repetitions had a valid trial")
        # Its length is that of R2544-29, reported above.
        of_trials = [
            deviation
            for deviation in plain_deviations(self.trials, self.profile)
            if deviation.requirement != "R2544-20"
        ]
        own = [Deviation(requirement="R2544-29", text=text) for text in found]
        return sorted([*own, *of_trials], key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand recovery --json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                attempts_at(self.repetitions), "recovery", is_full_length=self._is_full_length
            ),
            deviations=self.deviations,
        )

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        assert self.load.then is not None
        return {
            "outcome": self.outcome,
            "overload_fps_per_direction": self.load.rate_fps,
            "lowered_fps_per_direction": self.load.then.rate_fps,
            "figures": {direction: self._figures(direction) for direction in self.profile.directions},
            "verdicts": {str(verdict): sum(t.verdict is verdict for t in self.trials) for verdict in Verdict},
            "goal": self.goal.to_document(),
        }

    def _figures(self, direction: Direction) -> dict[str, Any]:
        statistics = self.statistics(direction)
        return {
            "average_s": self.average_s(direction),
            "minimum_s": None if statistics is None else statistics.minimum,
            "maximum_s": None if statistics is None else statistics.maximum,
            "median_s": None if statistics is None else statistics.median,
            "values": list(self.values(direction)),
            "lost_frames": self.lost_frames(direction),
            "lossless_repetitions": self.lossless(direction),
            "still_losing_repetitions": self.still_losing(direction),
            "doubtful_repetitions": self.doubtful(direction),
        }

    @property
    def _is_full_length(self) -> bool:
        return self.goal.duration_s >= OVERLOAD_S
