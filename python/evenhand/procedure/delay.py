# SPDX-License-Identifier: Apache-2.0
"""Procedure: latency (RFC 8219, 7.2; RFC 2544, 26.2) and packet delay variation (RFC 8219, 7.3): one trial at
one load, many times over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evenhand.procedure.attempts import Attempts
from evenhand.procedure.delay_goal import DelayGoal
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.own_loop import OwnLoop
from evenhand.procedure.record import Recorder, SearchRecord, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.trial import Load, LoadMeasurer, TrialResult


def measure_delay(
    tester: OpenTester,
    goal: DelayGoal,
    *,
    own_loop: OwnLoop | None = None,
    name: str | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> DelayResult:
    """All repetitions. A trial with loss counts; an INVALID one is repeated as in searches, and is never
    charged to the DUT.

    Args:
        own_loop: What `measure_own_loop` found at this load before the tester was opened.

    Raises:
        RequestError: The rate is above the line rate.
        EvenhandError: The engine could not make a trial at all.
    """
    choose_maximum(goal.rate_fps, tester.profile, where="rate_fps")
    with recording(
        recorder,
        tester,
        name or str(goal.test),
        kind=str(goal.test),
        procedure=goal.test.procedure,
        goal=goal.to_document(),
    ) as record:
        measurer = tester.measurer(on_event, delays=goal.wish)
        repeat = _Repeat(
            measurer=measurer, goal=goal, on_event=on_event, record=record, overhead_s=measurer.overhead_s
        )
        result = DelayResult(
            profile=tester.profile,
            goal=goal,
            repetitions=repeat.run(),
            own_loop=own_loop or OwnLoop(),
            hardware_stamps={
                side: str(tester.opened[side]["hardware_stamps"]) for side in tester.setup.testbed.ports
            },
        )
        record.finish_with(result.outcome, result.summary())
    return result


@dataclass(slots=True, kw_only=True)
class _Repeat:
    measurer: LoadMeasurer
    goal: DelayGoal
    on_event: OnEvent
    record: SearchRecord
    overhead_s: float
    repetitions: list[tuple[TrialResult, ...]] = field(default_factory=list)
    attempts: Attempts = field(init=False)

    def __post_init__(self) -> None:
        self.attempts = Attempts(
            measurer=self.measurer,
            on_event=self.on_event,
            record=self.record,
            purpose=str(self.goal.test),
            overhead_s=self.overhead_s,
            invalid_retries=self.goal.invalid_retries,
            patience=self.goal.patience,
        )

    def run(self) -> tuple[tuple[TrialResult, ...], ...]:
        for repetition in range(1, self.goal.repetitions + 1):
            self.repetitions.append(tuple(self._measure(repetition)))
            last = self.repetitions[-1][-1]
            # A tester that does not keep this load will not keep it the next time either.
            if last.was_stopped or not last.is_valid:
                break
        return tuple(self.repetitions)

    def _measure(self, repetition: int) -> Iterator[TrialResult]:
        """Trials of one repetition: the last one is valid, or the goal allows no more of them."""
        goal = self.goal
        return self.attempts.measure(
            what=f"repetition {repetition} of {goal.repetitions}",
            load=Load(rate_fps=goal.rate_fps, duration_s=goal.length_s),
            later=goal.repetitions - repetition,
            is_full_length=goal.is_full_length,
        )
