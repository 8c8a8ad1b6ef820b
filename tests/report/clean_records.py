# SPDX-License-Identifier: Apache-2.0
"""Campaign records whose trials were judged by their clean time, made of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evenhand.run import StoredSearch
from evenhand.run.campaign_record import CampaignRecord, PointRecord, Repetition
from evenhand.trial import LAPSES, TimeLeftOut, TrialResult
from tests.trial.clean_trials import Part, judged_by_clean_time

Parts = Callable[[TrialResult], Sequence[Part]]
"""What a trial leaves out."""


def stalls(share: float, *, seed: int = 1, every_s: float = 0.5) -> Parts:
    """Now and then, of every kind and of several at once; about this share of the time."""
    chance = random.Random(seed)

    def parts(trial: TrialResult) -> list[Part]:
        found: list[Part] = []
        at_s = chance.uniform(0, every_s)
        while at_s < trial.sent_s:
            lasts_s = share * every_s * chance.uniform(0.2, 1.8)
            kinds = {chance.choice(LAPSES) for _ in range(chance.choice((1, 1, 1, 2, 3)))}
            found.append((at_s, at_s + lasts_s, tuple(kind for kind in LAPSES if kind in kinds)))
            at_s += lasts_s + every_s * chance.uniform(0.3, 1.7)
        return found

    return parts


def by_clean_time(record: CampaignRecord, parts: Parts) -> CampaignRecord:
    """All valid trials of it."""
    return replace(record, points=tuple(point_by_clean_time(found, parts) for found in record.points))


def point_by_clean_time(found: PointRecord, parts: Parts) -> PointRecord:
    def judged(trial: TrialResult) -> TrialResult:
        return judged_by_clean_time(trial, parts(trial)) if trial.is_valid else trial

    def searches(repetition: Repetition) -> tuple[StoredSearch, ...]:
        return tuple(
            replace(
                search, trials=tuple(replace(trial, result=judged(trial.result)) for trial in search.trials)
            )
            for search in repetition.searches
        )

    def result(made: Sequence[StoredSearch], before: Repetition) -> dict[str, Any]:
        """As procedures write it."""
        trials = (trial.result for search in made for trial in search.trials)
        return {**(before.result or {}), **TimeLeftOut.document_of(trials)}

    return replace(
        found,
        repetitions=tuple(
            replace(repetition, searches=(made := searches(repetition)), result=result(made, repetition))
            for repetition in found.repetitions
        ),
    )
