# SPDX-License-Identifier: Apache-2.0
"""Procedure: the document of a result, which is the same for all procedures but for what each has found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenhand.procedure.profile import Profile, WorstTesterFigures
from evenhand.trial import Deviation, TimeLeftOut, TrialResult


def result_document(
    profile: Profile,
    summary: Mapping[str, Any],
    *,
    trials: Iterable[TrialResult],
    documents: Sequence[Mapping[str, Any]],
    deviations: Iterable[Deviation],
    **more: Any,
) -> dict[str, Any]:
    """All of a result, as `--json` of its verb writes it.

    Args:
        summary: What the procedure has found.
        trials: From which the worst that the tester showed of itself is taken, and how much of the time was
            not judged.
        documents: Documents of the same trials.
        more: What else must be known of the tester; by its name in the document.
    """
    made = list(trials)
    return {
        **profile.to_document(),
        **summary,
        "dut_facts": None if profile.dut is None else dict(profile.dut),
        "tester": WorstTesterFigures.of(made).to_document(),
        **TimeLeftOut.document_of(made),
        **more,
        "deviations": [deviation.to_document() for deviation in deviations],
        "trials": list(documents),
    }


def attempts_at(loads: Iterable[Iterable[TrialResult]]) -> Iterator[tuple[int, TrialResult]]:
    """The trials of all loads or repetitions, and which attempt at its own each is, from 1."""
    return (numbered for trials in loads for numbered in enumerate(trials, start=1))


def attempt_documents(
    attempts: Iterable[tuple[int, TrialResult]], purpose: str, *, is_full_length: bool
) -> list[dict[str, Any]]:
    """Documents of the trials of a procedure that is not a search, numbered from 1."""
    return [
        {
            "number": number,
            "purpose": purpose,
            "attempt": attempt,
            "is_full_length": is_full_length,
            "result": trial.raw,
        }
        for number, (attempt, trial) in enumerate(attempts, start=1)
    ]
