# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: why trials are INVALID or failed, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from evenhand.base.units import format_duration
from evenhand.plan import Direction
from evenhand.trial.result import Reason, TrialResult

_MATTERS_US = 1000
"""A CPU that was taken for less is not a cause of what was late by more than that."""


def join_directions(reasons: Iterable[Reason]) -> list[Reason]:
    """For people: what holds for both directions in the same words is said once."""
    joined: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        direction, colon, what = reason.text.partition(": ")
        what = what if colon and direction in get_args(Direction) else reason.text
        key = (reason.code, what)
        joined[key] = (
            reason if key not in joined else Reason(code=reason.code, text=f"both directions: {what}")
        )
    return list(joined.values())


def describe_reasons(reasons: Iterable[Reason]) -> str:
    """All reasons in a line, for people. If two directions have reasons that differ in their numbers only,
    the numbers of the first represent both."""
    shown: dict[tuple[str, str], list[str]] = {}
    for reason in join_directions(reasons):
        direction, colon, what = reason.text.partition(": ")
        is_of_one = bool(colon) and direction in get_args(Direction)
        key = (reason.code, re.sub(r"[\d.,]+", "N", what) if is_of_one else reason.text)
        shown.setdefault(key, []).append(reason.text)
    return "; ".join(
        texts[0] if len(texts) == 1 else f"{texts[0]}; {texts[1].partition(': ')[0]} alike"
        for texts in shown.values()
    )


def causes_of_invalid(trials: Iterable[TrialResult]) -> dict[str, int]:
    """Codes of what made trials INVALID, the most frequent first, and how many trials each spoiled
    (R2544-39)."""
    found: Counter[str] = Counter()
    for trial in trials:
        if not trial.is_valid:
            # What was lost is listed with the causes, and is not one.
            found.update({reason.code for reason in trial.reasons} - {"loss"})
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def describe_causes(causes: Mapping[str, int]) -> str:
    """For people: `sender_overdue in 6 trials, offered_load in 1 trial`; docs/how-to/read-an-invalid-trial.md
    has the codes."""
    return ", ".join(f"{code} in {count} trial{'' if count == 1 else 's'}" for code, count in causes.items())


def describe_taken(trials: Iterable[TrialResult]) -> str:
    """For people, of the INVALID ones: `CPU 1 of the tester was taken by other programs for 847 ms of a trial
    of 1 s`; empty if none was for a time that matters."""
    found = [
        (cpu.taken_us, cpu, trial)
        for trial in trials
        if not trial.is_valid
        for cpu in trial.tester_cpus
        if cpu.taken_us >= _MATTERS_US
    ]
    if not found:
        return ""
    taken_us, cpu, trial = max(found, key=lambda each: each[0] / _lasted_s(each[2]))
    by = "by other programs" if cpu.waited_us >= cpu.stolen_us else "by the hypervisor"
    return (
        f"CPU {cpu.cpu} of the tester was taken {by} for {format_duration(taken_us / 1e6)} of a trial of"
        f" {format_duration(_lasted_s(trial))}"
    )


def _lasted_s(trial: TrialResult) -> float:
    """For how long it sent: one that can no longer pass ends early."""
    return trial.sent_s
