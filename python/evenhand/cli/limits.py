# SPDX-License-Identifier: Apache-2.0
"""Options and testbed keys that say when a trial is valid, and how often an INVALID one is repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from evenhand.errors import RequestError
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.testbed import TestbedLimits
from evenhand.trial import Limits
from evenhand.units import parse_duration, parse_ratio

_PANEL = "Validity (the testbed file's [limits] has the same keys; departures from the defaults are named with the result)"
OfferedToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--offered-tolerance", metavar="RATIO", help="How far the offered load may be off. Default: 0.01%.", rich_help_panel=_PANEL
    ),
]
OverdueAfterOption = Annotated[
    str | None,
    typer.Option("--overdue-after", metavar="TIME", help="A frame that leaves so late is overdue. Default: 100us.", rich_help_panel=_PANEL),
]
OverdueToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--overdue-tolerance", metavar="RATIO", help="Share of overdue frames in a valid trial. Default: 1%.", rich_help_panel=_PANEL
    ),
]
LongestOverdueOption = Annotated[
    str | None, typer.Option("--longest-overdue", metavar="TIME", help="No frame may leave later. Default: 100ms.", rich_help_panel=_PANEL)
]
InvalidRetriesOption = Annotated[
    int | None,
    typer.Option(
        "--invalid-retries",
        metavar="N",
        min=0,
        help=f"Repeat a trial whose load was not offered up to N times. Default: {DEFAULT_INVALID_RETRIES}.",
        rich_help_panel=_PANEL,
    ),
]
PatienceOption = Annotated[
    int | None,
    typer.Option(
        "--patience",
        metavar="N",
        min=0,
        help="Repeat a trial that only a moment of this host spoiled, and the one that confirms the result, up to N times."
        f" Default: {DEFAULT_PATIENCE}.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """As typed; None: not given."""

    offered_tolerance: str | None = None
    overdue_after: str | None = None
    overdue_tolerance: str | None = None
    longest_overdue: str | None = None

    def read(self) -> dict[str, float]:
        """The values of `Limits` that were given. RequestError names the option."""
        given = {
            "offered_tolerance": (self.offered_tolerance, "--offered-tolerance", parse_ratio, 1.0),
            "overdue_after_us": (self.overdue_after, "--overdue-after", parse_duration, 1e6),
            "overdue_tolerance": (self.overdue_tolerance, "--overdue-tolerance", parse_ratio, 1.0),
            "longest_overdue_us": (self.longest_overdue, "--longest-overdue", parse_duration, 1e6),
        }
        values = {}
        for key, (text, option, parse, factor) in given.items():
            if text is None:
                continue
            values[key] = parse(text, where=option) * factor
            if values[key] <= 0:
                raise RequestError(f"{text!r} must be above 0", where=option, next_step="Leave it out for the default.")
        return values


def limits_of(testbed: TestbedLimits, *, loss_ratio: float, given: dict[str, float]) -> Limits:
    """The defaults, with the testbed's in their place, and with those of the command line in theirs."""
    of_testbed = {
        "offered_tolerance": testbed.offered_tolerance,
        "overdue_after_us": None if testbed.overdue_after is None else testbed.overdue_after * 1e6,
        "overdue_tolerance": testbed.overdue_tolerance,
        "longest_overdue_us": None if testbed.longest_overdue is None else testbed.longest_overdue * 1e6,
        "clock_ppm": testbed.clock_ppm,
    }
    known = {key: value for key, value in of_testbed.items() if value is not None}
    return replace(Limits(), loss_ratio=loss_ratio, **{**known, **given})


def retries_of(testbed: TestbedLimits, *, invalid: int | None, patience: int | None) -> dict[str, int]:
    """Arguments of `ThroughputGoal`: the command line's, else the testbed's, else the defaults."""
    invalid = testbed.invalid_retries if invalid is None else invalid
    patience = testbed.patience if patience is None else patience
    return {
        "invalid_retries": DEFAULT_INVALID_RETRIES if invalid is None else invalid,
        "patience": DEFAULT_PATIENCE if patience is None else patience,
    }
