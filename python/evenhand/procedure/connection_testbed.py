# SPDX-License-Identifier: Apache-2.0
"""Procedure: the tests of connections on one testbed, by a method each; `OpenTestbed` has them, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Unpack

from evenhand.base.errors import RequestError
from evenhand.procedure.conditions import Conditions, check_request
from evenhand.procedure.connection_capacity import Capacity, measure_capacity
from evenhand.procedure.connection_capacity_goal import CapacityGoal
from evenhand.procedure.connection_rate import ConnectionRate, measure_connection_rate
from evenhand.procedure.connection_rate_goal import ConnectionRateGoal
from evenhand.procedure.limits import retries_of
from evenhand.procedure.maximum import check_given
from evenhand.procedure.prepared_testbed import PreparedTestbed
from evenhand.procedure.profile import Profile
from evenhand.procedure.tear_down import TearDown, TearDownGoal, measure_tear_down


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTestbed(PreparedTestbed):
    """Its methods are as those of `OpenTestbed`. The plan must be one whose DUT keeps state, such as
    nat44."""

    def connections(
        self,
        *,
        goal: ConnectionRateGoal | None = None,
        name: str = "connections",
        **conditions: Unpack[Conditions],
    ) -> ConnectionRate:
        """The maximum connection establishment rate (RFC 9693, 4.5).

        Args:
            goal: How many connections, and where to search. Default: 400,000, from the line rate down.
            name: The name of the search in the run file.
        """
        _check(goal, ConnectionRateGoal | None, conditions)
        chosen = goal or ConnectionRateGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(check=partial(_check_rate, chosen.max_fps), **conditions) as tester:
            return measure_connection_rate(
                tester, chosen, name=name, on_event=self.on_event, recorder=self.recorder
            )

    def capacity(
        self, *, goal: CapacityGoal | None = None, name: str = "capacity", **conditions: Unpack[Conditions]
    ) -> Capacity:
        """How many connections the DUT's table holds (RFC 9693, 4.9).

        Args:
            goal: Where to search. Default: from 10,000 connections up, at rates from the line rate down.
            name: The name of the search in the run file.
        """
        _check(goal, CapacityGoal | None, conditions)
        chosen = goal or CapacityGoal(**retries_of(self.setup.testbed.limits))
        with self.tester(check=partial(_check_rate, chosen.max_fps), **conditions) as tester:
            return measure_capacity(tester, chosen, name=name, on_event=self.on_event, recorder=self.recorder)

    def tear_down(
        self, *, goal: TearDownGoal, name: str = "tear-down", **conditions: Unpack[Conditions]
    ) -> TearDown:
        """How fast the DUT removes connections when its table is emptied (RFC 9693, 4.8).

        Args:
            goal: How many connections, the rate at which they are opened, and how often.
            name: The name of the test in the run file.
        """
        _check(goal, TearDownGoal, conditions)
        with self.tester(
            check=lambda profile: check_given(goal.rate_fps, profile, where="rate_fps"), **conditions
        ) as tester:
            return measure_tear_down(tester, goal, name=name, on_event=self.on_event, recorder=self.recorder)


def _check_rate(max_fps: float, profile: Profile) -> None:
    check_given(max_fps, profile, where="max_fps")


def _check(goal: object, kind: object, conditions: Conditions) -> None:
    check_request(goal, kind, conditions)
    if conditions.get("established") is not None:
        raise RequestError(
            "connections cannot be established beforehand: this test opens its own",
            code="procedure.opens-its-own",
            where="established",
            next_step="Omit it; the goal says how many each trial opens.",
        )
