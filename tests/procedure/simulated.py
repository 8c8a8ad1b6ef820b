# SPDX-License-Identifier: Apache-2.0
"""Trials of a procedure with a simulated DUT, which are kept nowhere."""

from __future__ import annotations

from evenhand.procedure.attempts import Attempts
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.record import nowhere
from evenhand.results.goal import ProcedureGoal
from evenhand.trial import LoadMeasurer


def attempts_with(
    measurer: LoadMeasurer, goal: ProcedureGoal, purpose: str, on_event: OnEvent = ignore
) -> Attempts:
    return Attempts(
        measurer=measurer,
        on_event=on_event,
        record=nowhere(),
        purpose=purpose,
        overhead_s=0.0,
        invalid_retries=goal.invalid_retries,
        patience=goal.patience,
    )
