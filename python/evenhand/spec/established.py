# SPDX-License-Identifier: Apache-2.0
"""Specification: options of plans whose DUT keeps state: the connections that are there before each trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evenhand.base.errors import RequestError
from evenhand.base.option import NUMBER, RATE, Option, options_of
from evenhand.plan import AddressPlan
from evenhand.procedure.connection_wish import ConnectionWish, check_plan_has

_PANEL = "Plans with state (nat44, nat64, nat66)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EstablishedOptions:
    """The connections that the frames of a test are of, if it opens none itself (RFC 9693, 4.2)."""

    established: Annotated[
        str | None,
        Option(
            grammar=NUMBER,
            help="Number of connections to establish before each trial, after the DUT's table has been"
            " emptied.",
            panel=_PANEL,
        ),
    ] = None
    establish_rate: Annotated[
        str | None,
        Option(
            grammar=RATE,
            help="Rate at which to open these connections: at most half of the rate that evenhand connections"
            " finds.",
            panel=_PANEL,
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
