# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: how much of the sending time of several trials was not judged, because it was not
clean (docs/explanation/clean-time.md). The one sum that every result, table and export shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.base.units import format_count, format_ratio
from evenhand.trial.contract_values import number, whole
from evenhand.trial.result import TrialResult

TIME_LEFT_OUT = "time_left_out"
"""Its key in the document of a result."""
MOST_TRIALS = 1 << 31
"""A result has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeftOut:
    """Of the valid trials of a result, of which at least one was judged by its clean time. Those that were
    judged as a whole leave out nothing; INVALID ones say nothing, and do not count."""

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
        """Of several results. None if none of them has any; those that have none are not counted."""
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
        """Of the sending time; 0..1."""
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
