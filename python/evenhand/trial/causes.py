# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: why trials are INVALID or failed, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from evenhand.base.units import format_count, format_duration, format_ratio
from evenhand.plan import Direction
from evenhand.trial.contract_values import number, whole
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


TIME_LEFT_OUT = "time_left_out"
"""Its key in the document of a result."""
MOST_TRIALS = 1 << 31
"""A result has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeftOut:
    """Time left out of the valid trials of a result, at least one of which was judged by its clean time.
    Those that were judged as a whole leave out nothing; INVALID ones say nothing, and do not count."""

    valid_trials: int
    judged_trials: int
    """How many of them were judged by their clean time."""
    cut_trials: int
    """How many of these left out anything."""
    sent_s: float
    """How long the valid trials sent, together."""
    left_out_s: float
    """How much of that was not judged."""
    most_share: float
    """The largest share that one of them left out; 0..1."""

    @classmethod
    def of(cls, trials: Iterable[TrialResult]) -> TimeLeftOut | None:
        """None if none of them was judged by its clean time."""
        valid = [trial for trial in trials if trial.is_valid]
        judged = [trial.clean for trial in valid if trial.clean is not None and trial.clean.is_enough]
        if not judged:
            return None
        whole_s = sum(trial.sent_s for trial in valid if not trial.is_judged_by_clean_time)
        return cls(
            valid_trials=len(valid),
            judged_trials=len(judged),
            cut_trials=sum(clean.left_out_s > 0 for clean in judged),
            sent_s=whole_s + sum(clean.sent_s for clean in judged),
            left_out_s=sum(clean.left_out_s for clean in judged),
            most_share=max(clean.left_out_share for clean in judged),
        )

    @classmethod
    def together(cls, parts: Iterable[TimeLeftOut | None]) -> TimeLeftOut | None:
        """The sum over several results. None if none of them has any; those that have none are not
        counted."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        return cls(
            valid_trials=sum(part.valid_trials for part in known),
            judged_trials=sum(part.judged_trials for part in known),
            cut_trials=sum(part.cut_trials for part in known),
            sent_s=sum(part.sent_s for part in known),
            left_out_s=sum(part.left_out_s for part in known),
            most_share=max(part.most_share for part in known),
        )

    @property
    def share(self) -> float:
        """The share of the sending time; 0..1."""
        return self.left_out_s / self.sent_s if self.sent_s > 0 else 0.0

    @property
    def text(self) -> str:
        """`1.3 % of the sending time, in 12 of 40 valid trials (at most 8.1 % of one)`."""
        trials = f"{format_count(self.valid_trials)} valid {'trial' if self.valid_trials == 1 else 'trials'}"
        if not self.cut_trials:
            return f"none, in {trials}"
        cut, most = format_count(self.cut_trials), f" (at most {show_share(self.most_share)} of one)"
        return (
            f"{show_share(self.share)} of the sending time, in {cut} of {trials}"
            f"{'' if self.cut_trials == 1 else most}"
        )

    @property
    def in_short(self) -> str:
        """For a cell of a table: `1.3 %`."""
        return show_share(self.share)

    @property
    def line(self) -> str:
        """For people, below a result."""
        return f"Time left out: {self.text}."

    @staticmethod
    def document_of(trials: Iterable[TrialResult]) -> dict[str, Any]:
        """What a result's document has of it, under its name; empty if no trial was judged so."""
        found = TimeLeftOut.of(trials)
        return {} if found is None else {TIME_LEFT_OUT: found.to_document()}

    def to_document(self) -> dict[str, int | float]:
        """For `--json` and for run files."""
        return {
            "share": self.share,
            "sent_s": self.sent_s,
            "left_out_s": self.left_out_s,
            "most_share": self.most_share,
            "valid_trials": self.valid_trials,
            "judged_trials": self.judged_trials,
            "cut_trials": self.cut_trials,
        }


def show_share(share: float) -> str:
    """Two digits are enough: `1.3 %`."""
    return format_ratio(float(f"{share:.2g}"))


def read_time_left_out(document: Any) -> TimeLeftOut | None:
    """What a result in a file states. None if it states none, or not soundly: it may come from anybody."""
    if not isinstance(document, Mapping):
        return None
    try:
        found = TimeLeftOut(
            valid_trials=whole(document, "valid_trials"),
            judged_trials=whole(document, "judged_trials"),
            cut_trials=whole(document, "cut_trials"),
            sent_s=number(document["sent_s"]),
            left_out_s=number(document["left_out_s"]),
            most_share=number(document["most_share"]),
        )
    except (KeyError, ValueError):
        return None
    is_sound = (
        0 <= found.left_out_s <= found.sent_s
        and 0 <= found.most_share <= 1
        and found.cut_trials <= found.judged_trials <= found.valid_trials <= MOST_TRIALS
    )
    return found if is_sound else None
