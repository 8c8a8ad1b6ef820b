# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: which part of a trial was judged, where the tester or its machine was away now and
then (docs/explanation/clean-time.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.trial.contract_values import number, whole

LAPSES = ("sender_overdue", "receiver_away", "dut_away")
"""Kinds of lapses."""
MOST_LISTED = 1000
"""Parts that a trial lists."""
_NOTHING_S = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Frames that were due from `from_s` on and before `until_s`, which were not judged."""

    from_s: float
    until_s: float
    kinds: tuple[str, ...]
    """The kinds of the lapses that may have touched them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTime:
    """How much of a trial no lapse can have touched. Times are those of the sending phase, in seconds."""

    wanted_s: float
    sent_s: float
    """How long frames were sent."""
    clean_s: float
    """The part of it that no lapse can have touched."""
    is_enough: bool
    """Whether the verdict is that of the clean time; else it is that of the whole trial."""
    pieces: int
    """Into how many what was left out cuts it."""
    lapses: Mapping[str, int]
    """How many there were, by their kinds."""
    left_out: tuple[LeftOut, ...]
    """The first `MOST_LISTED`."""

    @property
    def left_out_s(self) -> float:
        """How much of the sending phase was not judged, in seconds."""
        return max(0.0, self.sent_s - max(0.0, self.clean_s)) if self.is_enough else 0.0

    @property
    def left_out_share(self) -> float:
        """Share of the sending phase that was not judged; 0..1."""
        return self.left_out_s / self.sent_s if self.sent_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanCounts:
    """Frames of one direction in the clean time of a trial."""

    frames: int
    lost_frames: int


def read_clean_time(document: Mapping[str, Any] | None) -> CleanTime | None:
    """ValueError, KeyError or TypeError if that is none."""
    if document is None:
        return None
    clean = CleanTime(
        wanted_s=number(document["wanted_s"]),
        sent_s=number(document["sent_s"]),
        clean_s=number(document["clean_s"]),
        is_enough=_flag(document["is_enough"]),
        pieces=whole(document, "pieces"),
        lapses={kind: whole(document["lapses"], kind) for kind in LAPSES},
        left_out=read_left_out(document["left_out"]),
    )
    if not -_NOTHING_S <= clean.clean_s <= clean.sent_s * (1 + 1e-9):
        raise ValueError(f"clean_s is {clean.clean_s:g}, but frames were sent for {clean.sent_s:g} s")
    if len(clean.left_out) > MOST_LISTED:
        raise ValueError(f"left_out has {len(clean.left_out)} parts, but lists at most {MOST_LISTED}")
    return clean


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is_enough is neither true nor false")
    return value


def read_left_out(parts: Any) -> tuple[LeftOut, ...]:
    """ValueError or TypeError if they are none."""
    return tuple(_left_out(*part) for part in parts)


def _left_out(from_s: Any, until_s: Any, kinds: Any) -> LeftOut:
    part = LeftOut(from_s=number(from_s), until_s=number(until_s), kinds=tuple(kinds))
    if not part.kinds or not set(part.kinds) <= set(LAPSES):
        raise ValueError(f"a part of left_out is of none of the kinds {', '.join(LAPSES)}")
    return part


def read_clean_counts(document: Mapping[str, Any] | None, *, lost_frames: int) -> CleanCounts | None:
    """The same. `lost_frames`: of the whole trial."""
    if document is None:
        return None
    counts = CleanCounts(frames=whole(document, "frames"), lost_frames=whole(document, "lost_frames"))
    if counts.lost_frames > min(counts.frames, lost_frames):
        raise ValueError(
            f"{counts.lost_frames} of {counts.frames} frames are lost in clean time, but {lost_frames} in all"
        )
    return counts
