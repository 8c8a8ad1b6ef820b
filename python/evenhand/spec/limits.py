# SPDX-License-Identifier: Apache-2.0
"""Specification: when a trial is valid, and how often an INVALID one is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.option import DURATION, RATIO, Grammar, Option, options_of, values_of
from evenhand.base.units import format_ratio, parse_duration
from evenhand.procedure.limits import LIMIT_SET, Retries, retries_of
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.trial import CLEAN_AT_MOST, MOST_OFFERED_TOLERANCE

_PANEL = "Validity (the limits table of the testbed file has the same keys)"


class LimitSet(StrEnum):
    """Named sets of limits."""

    RFC = "rfc"
    HOST = "host"


def _parse_us(text: str, *, where: str) -> float:
    return parse_duration(text, where=where) * 1e6


_MICROSECONDS = Grammar(DURATION.metavar, _parse_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """When a trial is valid. As written; None: not given."""

    limits: Annotated[
        LimitSet | None,
        Option(
            sets=LIMIT_SET,
            help="rfc: the defaults below; host: the strictest limits that this host can keep, which"
            " are measured first; each is a deviation. Default: rfc.",
            panel=_PANEL,
        ),
    ] = None
    offered_tolerance: Annotated[
        str | None,
        Option(grammar=RATIO, help="Maximum error of the offered load. Default: 0.01%.", panel=_PANEL),
    ] = None
    overdue_after: Annotated[
        str | None,
        Option(
            grammar=_MICROSECONDS,
            sets="overdue_after_us",
            help="A frame sent later than this is overdue. Default: 100us.",
            panel=_PANEL,
        ),
    ] = None
    overdue_tolerance: Annotated[
        str | None,
        Option(
            grammar=RATIO, help="Maximum share of overdue frames in a valid trial. Default: 1%.", panel=_PANEL
        ),
    ] = None
    longest_overdue: Annotated[
        str | None,
        Option(
            grammar=_MICROSECONDS,
            sets="longest_overdue_us",
            help="Maximum delay of any frame in a valid trial. Default: 100ms.",
            panel=_PANEL,
        ),
    ] = None

    clean_time: Annotated[
        bool | None,
        Option(
            declared="--clean-time",
            help="Judge a trial by the time in which neither the tester nor its host was away, and"
            " send for up to twice as long until enough of it is together.",
            panel=_PANEL,
        ),
    ] = None

    def read(self) -> dict[str, Any]:
        """The values of `Limits` that were given, and the set of those that were not. RequestError names the
        option."""
        values = values_of(self)
        for each in options_of(LimitOptions):
            value, written = values.get(each.keyword), getattr(self, each.field)
            if isinstance(value, float) and value <= 0:
                raise RequestError(
                    f"{written!r} must be greater than 0",
                    code="spec.out-of-range",
                    where=each.where,
                    next_step="Omit it to use the default.",
                )
        if values.get("offered_tolerance", 0.0) > MOST_OFFERED_TOLERANCE:
            raise RequestError(
                f"{self.offered_tolerance!r} is above {format_ratio(MOST_OFFERED_TOLERANCE)}",
                code="spec.out-of-range",
                where="--offered-tolerance",
                next_step="A larger error would say nothing about the load that was requested.",
            )
        if values.pop("clean_time", False):
            values["clean_at_most"] = CLEAN_AT_MOST
        return {key: str(value) if key == LIMIT_SET else value for key, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often INVALID trials are repeated."""

    invalid_retries: Annotated[
        int | None,
        Option(
            metavar="N",
            least=0,
            help="Repeat a trial up to N times if its load was not offered. Default:"
            f" {DEFAULT_INVALID_RETRIES}.",
            panel=_PANEL,
        ),
    ] = None
    patience: Annotated[
        int | None,
        Option(
            metavar="N",
            least=0,
            help="Repeat a trial that was spoiled only by a brief disturbance of this"
            " host, and the trial that confirms the result, up to N times. Default:"
            f" {DEFAULT_PATIENCE}.",
            panel=_PANEL,
        ),
    ] = None

    def read(self, testbed: rig.TestbedLimits) -> Retries:
        """Arguments of a goal: what was given, else the testbed's, else the defaults."""
        return retries_of(testbed, invalid=self.invalid_retries, patience=self.patience)
