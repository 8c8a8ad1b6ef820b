# SPDX-License-Identifier: Apache-2.0
"""Specification: when a trial is valid, and how often an INVALID one is repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from evenhand import rig
from evenhand.base.errors import RequestError
from evenhand.base.option import (
    DURATION,
    NUMBER,
    RATE,
    RATIO,
    Grammar,
    Option,
    needed_field,
    options_of,
    values_of,
)
from evenhand.base.units import format_ratio, parse_duration
from evenhand.plan import AddressPlan, HostMacs
from evenhand.procedure import LearningChoice, Repetitions
from evenhand.procedure.connection_trials import ConnectionWish, check_plan_has
from evenhand.procedure.limits import LIMIT_SET, Retries, retries_of
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.trial import CLEAN_AT_MOST, LARGEST_SEED, MOST_OFFERED_TOLERANCE, RFC_WAITS, SHORT_WAITS, Waits

_PANEL = "Validity (the limits table of the testbed file has the same keys)"


def _parse_us(text: str, *, where: str) -> float:
    return parse_duration(text, where=where) * 1e6


_MICROSECONDS = Grammar(DURATION.metavar, _parse_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """When a trial is valid. As written; None: not given."""

    limits: Annotated[
        Literal["rfc", "host"] | None,
        Option(
            sets=LIMIT_SET,
            help="rfc: the defaults below; host: the strictest limits that this machine can keep, which"
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
            help="Judge a trial by the time in which neither the tester nor its machine was away, and"
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
        return values


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
            " machine, and the trial that confirms the result, up to N times. Default:"
            f" {DEFAULT_PATIENCE}.",
            panel=_PANEL,
        ),
    ] = None

    def read(self, testbed: rig.TestbedLimits) -> Retries:
        """Arguments of a goal: what was given, else the testbed's, else the defaults."""
        return retries_of(testbed, invalid=self.invalid_retries, patience=self.patience)


DEFAULT_SEED = 1
SeedOption = Annotated[int, Option(least=0, most=LARGEST_SEED, help="Same seed, same frames.")]
SEED = needed_field("seed", SeedOption, DEFAULT_SEED)


_SETS = {"rfc": RFC_WAITS, "short": SHORT_WAITS}
_WAITS_PANEL = "Single waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """The waits of every trial."""

    waits: Annotated[
        Literal["rfc", "short"],
        Option(help="rfc: 2, 2, 2 and 5 s (RFC 2544 section 23); short: for software ports, a deviation."),
    ] = "rfc"
    wait_after_routing: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="after_routing_s",
            help="Wait after the routing update.",
            panel=_WAITS_PANEL,
        ),
    ] = None
    wait_after_learning: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="after_learning_s",
            help="Wait after the learning frames.",
            panel=_WAITS_PANEL,
        ),
    ] = None
    wait_residual: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="residual_s",
            help="Wait for residual frames; frames arriving later count as lost.",
            panel=_WAITS_PANEL,
        ),
    ] = None
    wait_restabilize: Annotated[
        str | None,
        Option(
            grammar=DURATION,
            sets="restabilize_s",
            help="Wait for the DUT before the next trial.",
            panel=_WAITS_PANEL,
        ),
    ] = None

    def read(self) -> Waits:
        """The named set with single waits put in their place. RequestError names the option."""
        given = values_of(self)
        return replace(_SETS[given.pop("waits")], **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionOptions:
    """How often, and when that is enough. A campaign file has the number alone, with another default: a
    campaign is for statistics (SEED-72)."""

    repetitions: Annotated[
        int,
        Option(metavar="N", sets="count", help="Repeat N times; median, percentiles and spread are shown."),
    ] = 1
    spread: Annotated[
        str | None,
        Option(
            grammar=RATIO,
            help="Stop early, after 3 repetitions or more, when (maximum - minimum) / median is within this"
            " ratio.",
        ),
    ] = None

    def read(self) -> Repetitions:
        """RequestError names the option."""
        return Repetitions(**values_of(self))


REPETITIONS, _ = options_of(RepetitionOptions)


_STATE_PANEL = "Plans with state (nat44, nat64, nat66)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EstablishedOptions:
    """The connections that the frames of a test are of, if it opens none itself (RFC 9693, 4.2)."""

    established: Annotated[
        str | None,
        Option(
            grammar=NUMBER,
            help="Number of connections to establish before each trial, after the DUT's table has been"
            " emptied.",
            panel=_STATE_PANEL,
        ),
    ] = None
    establish_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            help="Rate at which to open these connections: at most half of the rate that evenhand connections"
            " finds.",
            panel=_STATE_PANEL,
        ),
    ] = None

    def read(self, plan: AddressPlan) -> ConnectionWish | None:
        """None if none are asked for.

        Raises:
            RequestError: Only one of both is given, or the plan has no connections.
        """
        values = {each.field: each.read(getattr(self, each.field)) for each in options_of(type(self))}
        count, rate_fps = values["established"], values["establish_rate"]
        if count is None and rate_fps is None:
            return None
        if count is None or rate_fps is None:
            missing, given = ("--established", "--establish-rate")[:: 1 if count is None else -1]
            raise RequestError(
                f"{given} without {missing}",
                code="spec.connections-incomplete",
                where=given,
                next_step="Say how many connections are established, and at which rate: --established 100k"
                " --establish-rate 10kfps.",
            )
        check_plan_has(plan, count)
        return ConnectionWish(count=count, rate_fps=rate_fps)


_DIRECT_PANEL = "Direct plans (hosts on the link)"
HostMacsOption = Annotated[
    HostMacs,
    Option(
        declared="--host-macs",
        metavar="|".join(get_args(HostMacs)),
        help="Give all hosts the MAC of the tester's port, or each a MAC of its own, drawn from the"
        " seed (RFC 4814, 4.2).",
        panel=_DIRECT_PANEL,
    ),
]
NoLearningOption = Annotated[
    bool,
    Option(
        declared="--no-learning",
        help="Do not make the DUT resolve every host before the first trial; a deviation.",
        panel=_DIRECT_PANEL,
    ),
]
AllowUnreachableOption = Annotated[
    bool,
    Option(
        declared="--allow-unreachable",
        help="Continue if the DUT does not reach all hosts after learning.",
        panel=_DIRECT_PANEL,
    ),
]


def check_host_macs(macs: HostMacs, plan: AddressPlan) -> None:
    """RequestError for hosts that are not on the link: they have no MAC there (R4814-06)."""
    if macs != "port" and not plan.is_direct:
        raise RequestError(
            f"the hosts of {plan.title} are behind a gateway, and have no MACs of their own on the link",
            code="spec.hosts-without-macs",
            where="--host-macs",
            next_step="Use a direct plan such as direct-v4-net16, or omit the option (RFC 4814, 4.2).",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    """What the DUT learns before the first trial of a direct plan."""

    host_macs: HostMacsOption = "port"
    no_learning: NoLearningOption = False
    allow_unreachable: AllowUnreachableOption = False

    def read(self, plan: AddressPlan) -> LearningChoice:
        """RequestError for hosts that are not on the link: they have no MAC there."""
        check_host_macs(self.host_macs, plan)
        return LearningChoice(is_skipped=self.no_learning, allows_unreachable=self.allow_unreachable)
