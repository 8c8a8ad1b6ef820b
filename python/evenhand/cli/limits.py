# SPDX-License-Identifier: Apache-2.0
"""Options and testbed keys that say when a trial is valid, and how often an INVALID one is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import format_ratio, parse_duration, parse_ratio
from evenhand.procedure.limits import LIMIT_SET, Retries, retries_of
from evenhand.rig.testbed import TestbedLimits
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE

_PANEL = "Validity (the testbed file's table limits has the same keys)"
MOST_OFFERED_TOLERANCE = 0.1
"""The contract allows no more."""


class LimitSet(StrEnum):
    """Named sets of limits."""

    RFC = "rfc"
    HOST = "host"


LimitsOption = Annotated[
    LimitSet | None,
    typer.Option(
        "--limits",
        help="rfc: those named below; host: the strictest that this host can keep, measured first, each a"
        " deviation. Default: rfc.",
        rich_help_panel=_PANEL,
    ),
]
OfferedToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--offered-tolerance",
        metavar="RATIO",
        help="How far the offered load may be off. Default: 0.01%.",
        rich_help_panel=_PANEL,
    ),
]
OverdueAfterOption = Annotated[
    str | None,
    typer.Option(
        "--overdue-after",
        metavar="TIME",
        help="A frame that leaves so late is overdue. Default: 100us.",
        rich_help_panel=_PANEL,
    ),
]
OverdueToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--overdue-tolerance",
        metavar="RATIO",
        help="Share of overdue frames in a valid trial. Default: 1%.",
        rich_help_panel=_PANEL,
    ),
]
LongestOverdueOption = Annotated[
    str | None,
    typer.Option(
        "--longest-overdue",
        metavar="TIME",
        help="No frame may leave later. Default: 100ms.",
        rich_help_panel=_PANEL,
    ),
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
        help="Repeat a trial that only a moment of this host spoiled, and the one that confirms the result,"
        " up to N times."
        f" Default: {DEFAULT_PATIENCE}.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """When a trial is valid. As typed; None: not given."""

    limits: LimitsOption = None
    offered_tolerance: OfferedToleranceOption = None
    overdue_after: OverdueAfterOption = None
    overdue_tolerance: OverdueToleranceOption = None
    longest_overdue: LongestOverdueOption = None

    def read(self) -> dict[str, Any]:
        """The values of `Limits` that were given, and the set of those that were not. RequestError names the
        option."""
        given = {
            "offered_tolerance": (self.offered_tolerance, "--offered-tolerance", parse_ratio, 1.0),
            "overdue_after_us": (self.overdue_after, "--overdue-after", parse_duration, 1e6),
            "overdue_tolerance": (self.overdue_tolerance, "--overdue-tolerance", parse_ratio, 1.0),
            "longest_overdue_us": (self.longest_overdue, "--longest-overdue", parse_duration, 1e6),
        }
        values: dict[str, Any] = {} if self.limits is None else {LIMIT_SET: str(self.limits)}
        for key, (text, option, parse, factor) in given.items():
            if text is None:
                continue
            values[key] = parse(text, where=option) * factor
            if values[key] <= 0:
                raise RequestError(
                    f"{text!r} must be above 0", where=option, next_step="Leave it out for the default."
                )
            if key == "offered_tolerance" and values[key] > MOST_OFFERED_TOLERANCE:
                raise RequestError(
                    f"{text!r} is above {format_ratio(MOST_OFFERED_TOLERANCE)}",
                    where=option,
                    next_step="A load that is off by more says nothing of the load that was asked for.",
                )
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often INVALID trials are repeated."""

    invalid_retries: InvalidRetriesOption = None
    patience: PatienceOption = None

    def read(self, testbed: TestbedLimits) -> Retries:
        """Arguments of a goal: what was given, else the testbed's, else the defaults."""
        return retries_of(testbed, invalid=self.invalid_retries, patience=self.patience)
