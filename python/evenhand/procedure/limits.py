# SPDX-License-Identifier: Apache-2.0
"""Procedure: when a trial is valid, and how often an INVALID one is repeated: given, the testbed's, or the
defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.trial import CLEAN_AT_MOST, Limits

if TYPE_CHECKING:
    from evenhand.rig import TestbedLimits

LIMIT_SET, OF_RFC, OF_HOST = "set", "rfc", "host"
"""The key of a testbed's limits, and its values."""
HOST_CHOOSES = ("overdue_tolerance", "longest_overdue_us", "offered_tolerance")
"""Limits that may be those that this machine can keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WishedLimits(Limits):
    """Limits of which some are to be as strict as this machine can keep them; measured before the first trial
    (`host_limits.py`)."""

    host_keeps: tuple[str, ...]
    """Their names, of HOST_CHOOSES."""


class Retries(TypedDict):
    """Arguments of any goal."""

    invalid_retries: int
    patience: int


def limits_of(
    testbed: TestbedLimits, *, loss_ratio: float = 0.0, given: Mapping[str, Any] | None = None
) -> Limits:
    """The defaults, with the testbed's in their place, and with those that were given in theirs.

    Args:
        given: By the names of `Limits`; LIMIT_SET is `rfc` or `host`: what is not named otherwise the host is
            to choose (`host_limits.py`).
    """
    of_testbed = {
        "offered_tolerance": testbed.offered_tolerance,
        "overdue_after_us": None if testbed.overdue_after is None else testbed.overdue_after * 1e6,
        "overdue_tolerance": testbed.overdue_tolerance,
        "longest_overdue_us": None if testbed.longest_overdue is None else testbed.longest_overdue * 1e6,
        "clock_ppm": testbed.clock_ppm,
        "remarked_tolerance": testbed.remarked_tolerance,
        "clean_at_most": CLEAN_AT_MOST if testbed.clean_time else None,
    }
    known: dict[str, Any] = {key: value for key, value in of_testbed.items() if value is not None}
    named = {**known, **(given or {})}
    chosen = named.pop(LIMIT_SET, testbed.set)
    if chosen == OF_HOST:
        # What its moments may have touched is left out, so that they do not cost whole trials.
        named.setdefault("clean_at_most", CLEAN_AT_MOST)
    if chosen == OF_HOST and (host_keeps := tuple(name for name in HOST_CHOOSES if name not in named)):
        return WishedLimits(loss_ratio=loss_ratio, host_keeps=host_keeps, **named)
    return Limits(loss_ratio=loss_ratio, **named)


def retries_of(testbed: TestbedLimits, *, invalid: int | None = None, patience: int | None = None) -> Retries:
    """Arguments of a goal: what was given, else the testbed's, else the defaults."""
    invalid = testbed.invalid_retries if invalid is None else invalid
    patience = testbed.patience if patience is None else patience
    return {
        "invalid_retries": DEFAULT_INVALID_RETRIES if invalid is None else invalid,
        "patience": DEFAULT_PATIENCE if patience is None else patience,
    }
