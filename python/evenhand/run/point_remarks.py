# SPDX-License-Identifier: Apache-2.0
"""Station 9: what is said of a point in addition to its figure, in the same words wherever it is shown: why
repetitions have no value, and that repetitions contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.campaign_record import PointRecord, failed_at, is_lower_bound
from evenhand.run.resume_command import again_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One repetition that has ended."""

    outcome: str | None
    value: float | None
    reason: str | None
    """Why it has no value."""
    result: Mapping[str, Any] | None

    @property
    def is_at_least(self) -> bool:
        """Whether its value is a lower bound."""
        return self.value is not None and is_lower_bound(self.outcome, self.result)

    @property
    def failed_at(self) -> float | None:
        """The lowest load at which it lost more than it may; None: it found none, or does not state it."""
        return failed_at(self.result)


def remarks_of_point(found: PointRecord) -> list[str]:
    """As `remarks_of`, of a point that has been read whole."""
    ended = [
        Ended(outcome=each.outcome, value=each.value, reason=each.reason, result=each.result)
        for each in found.repetitions
        if each.finished_at is not None
    ]
    return remarks_of(ended, found.reason or found.stopped_early, found.point.procedure)


def remarks_of(ended: Sequence[Ended], reason: str | None, procedure: str) -> list[str]:
    """All of them; `reason` as in `why_fewer`."""
    found = (disagreement(ended, procedure) or undecided_loads(ended, procedure),)
    return [*why_fewer(ended, reason), *(text for text in found if text is not None)]


def why_fewer(ended: Sequence[Ended], reason: str | None) -> list[str]:
    """Why a point has no number, or fewer values than repetitions that were asked for, or that have ended.

    Args:
        reason: Why it has no number, or was ended early.
    """
    reasons = [] if reason is None else [reason]
    without = [each for each in ended if each.value is None]
    # A point without a number has said already that none has a value, and why.
    if without and (len(without) < len(ended) or not reasons):
        causes = "; ".join(dict.fromkeys(each.reason for each in without if each.reason is not None))
        why = f": {causes}" if causes else ""
        reasons.insert(0, f"{_without_value(len(without), len(ended))}{why}")
    return reasons


def _without_value(count: int, of: int) -> str:
    if count < of:
        return f"{count} of its {of} finished repetitions {'has' if count == 1 else 'have'} no value"
    return (
        "its only finished repetition has no value"
        if of == 1
        else f"none of its {of} finished repetitions has a value"
    )


def disagreement(ended: Sequence[Ended], procedure: str) -> str | None:
    """A remark if one repetition failed at a load that another one passed without finding its limit: a median
    of both is neither's. None if no lower bound is contradicted; of searches that all ended the range says as
    much."""
    passed = max((each.value for each in ended if each.value is not None and each.is_at_least), default=None)
    if passed is None:
        return None
    failed = [at for each in ended if (at := each.failed_at) is not None and at <= passed]
    if not failed:
        return None
    figure = PROCEDURES[procedure].figure
    others = "another" if len(failed) == 1 else f"{len(failed)} others"
    more = " or less" if len(set(failed)) > 1 else ""
    return (
        f"its repetitions disagree: {show_value(passed, figure)} passed in one, and"
        f" {show_value(max(failed), figure)}{more} failed in {others}; either the DUT changed in between, or"
        " a bad moment of the host was taken for its loss"
    )


def undecided_loads(ended: Sequence[Ended], procedure: str) -> str | None:
    """The loads between which the limit lies, where all values are lower bounds but a higher load failed."""
    values = [each.value for each in ended if each.value is not None]
    failed = [at for each in ended if (at := each.failed_at) is not None]
    if not values or not failed or not all(each.is_at_least for each in ended if each.value is not None):
        return None
    figure = PROCEDURES[procedure].figure
    return (
        f"its limit lies between {show_value(max(values), figure)}, which passed, and"
        f" {show_value(min(failed), figure)}, which failed; no load between could be decided on this host"
    )


def again_advice(path: Path, *, undecided: int, ended_early: int, on_page: bool = False) -> str | None:
    """What to do about points of a campaign that has ended, and the command; None if there is nothing to be
    repeated.

    Args:
        undecided: Repetitions that the tester could not decide.
        ended_early: Points that got no more repetitions.
        on_page: It is read elsewhere, and by others (see `again_command`).
    """
    command = again_command(path, on_page=on_page)
    if undecided:
        return (
            "To repeat what the tester could not decide, give it idle CPUs (evenhand check shows what takes"
            f" them) or another host, and run: {command}"
        )
    if ended_early:
        return f"To repeat what ended early, once the reason is gone, run: {command}"
    return None
