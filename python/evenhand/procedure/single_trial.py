# SPDX-License-Identifier: Apache-2.0
"""Procedure: one single trial, which is not a test of RFC 2544 by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.base.units import format_duration, format_rate
from evenhand.procedure.events import Began, OnEvent, ignore
from evenhand.procedure.profile import Profile
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import Role
from evenhand.trial import Deviation, TrialResult

TRIAL_S = 60.0
"""Duration of a trial whose user gives none (R2544-23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleTrial:
    """Result of one trial, with its traffic."""

    profile: Profile
    trial: TrialResult

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of the conditions and of the trial, each once, so that an empty list means full
        conformance (R2544-23)."""
        both = [*self.profile.deviations, *self.trial.deviations]
        return list({(deviation.requirement, deviation.text): deviation for deviation in both}.values())

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand trial --json` writes it."""
        document: Mapping[str, Any] = self.trial.raw
        return {
            **self.profile.to_document(),
            "deviations": [deviation.to_document() for deviation in self.deviations],
            "trial": document,
        }


def measure_trial(
    tester: OpenTester,
    *,
    rate_fps: float,
    duration_s: float,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> SingleTrial:
    """One trial at `rate_fps` per direction. Its verdict may be INVALID: nothing is repeated.

    Raises:
        RequestError: The rate is above the line rate.
        EvenhandError: The engine could not make the trial at all.
    """
    choose_maximum(rate_fps, tester.profile, where="rate_fps")
    goal = {"rate_fps": rate_fps, "duration_s": duration_s, "loss_ratio": tester.limits.loss_ratio}
    with recording(recorder, tester, "trial", kind="trial", goal=goal, role=Role.TRIAL) as record:
        measurer = tester.measurer(on_event)
        what = f"trial at {format_rate(rate_fps)} per direction for {format_duration(duration_s)}"
        on_event(Began(what=what, remaining_s=duration_s + measurer.overhead_s))
        result = measurer.measure(duration_s, rate_fps)
        record.add_result(result, number=1, purpose="single", is_full_length=True)
        record.finish_with(str(result.verdict))
    return SingleTrial(profile=tester.profile, trial=result)
