# SPDX-License-Identifier: Apache-2.0
"""Procedure: the connections that a test wants, through a DUT that keeps state (RFC 9693)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import MAX_CONNECTIONS, TUPLE_ORDERS, AddressPlan, TupleOrder

MOST_PORTS = 65535
"""Most ports of one address: all but 0."""


class OrderName(StrEnum):
    """In which order connections are given their four tuples."""

    PSEUDORANDOM = "pseudorandom"
    INCREASING = "increasing"
    DECREASING = "decreasing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionWish:
    """The connections that are established before each trial of a test that opens none (R9693-03,
    R9693-06)."""

    count: int
    rate_fps: float
    """Rate at which they are opened: it must be safely below the maximum connection establishment rate
    (R9693-09)."""
    order: TupleOrder = "pseudorandom"

    def __post_init__(self) -> None:
        check_types(self)
        check_connections(self.count, self.order)
        if not 0 < self.rate_fps < math.inf:
            raise RequestError(
                f"connections are to be opened at {self.rate_fps} fps: must be greater than 0",
                code="procedure.out-of-range",
                where="rate_fps",
            )

    @property
    def line(self) -> str:
        """A sentence to show below a result, since only the addresses and ports of these connections
        occur."""
        return (
            f"Connections: {format_count(self.count)}, opened at {format_count(self.rate_fps)} per second"
            " before each trial, in an empty table of the DUT; each frame belongs to one of them."
        )

    def to_document(self) -> dict[str, Any]:
        return {"count": self.count, "rate_fps": self.rate_fps, "order": self.order}


def check_connections(count: int, order: str) -> None:
    """RequestError for what no test can have."""
    if not 1 <= count <= MAX_CONNECTIONS:
        raise RequestError(
            f"{count} connections: must be 1 to {format_count(MAX_CONNECTIONS)}",
            code="procedure.out-of-range",
            where="connections",
        )
    if order not in TUPLE_ORDERS:
        raise RequestError(
            f"{order!r} is not an order of connections",
            code="procedure.unknown-order",
            where="order",
            next_step=f"Use one of: {', '.join(TUPLE_ORDERS)}.",
        )


def most_connections(plan: AddressPlan) -> int:
    """Most connections that a plan with state can have: its four tuples, those of its pool, and what a test
    can have."""
    return min(MAX_CONNECTIONS, plan.four_tuples, _pool_tuples(plan))


def _pool_tuples(plan: AddressPlan) -> int:
    """Four tuples that the DUT can make of its pool of addresses, with all ports but 0."""
    assert plan.right.peers is not None
    return plan.right.peers.count * MOST_PORTS * plan.right.host_range.count * plan.destination_ports.values


def check_plan_has(plan: AddressPlan, connections: int) -> None:
    """RequestError if the plan has no connections, or too few four tuples or public addresses and ports
    (R9693-04)."""
    if plan.nat is None or plan.right.peers is None:
        raise RequestError(
            f"{plan.title} has no connections: its DUT keeps no state",
            code="procedure.plan-without-state",
            where="plan",
            next_step="Use nat44, nat64 or nat66.",
        )
    if connections > plan.four_tuples:
        raise RequestError(
            f"{format_count(connections)} connections, but {plan.title} has"
            f" {format_count(plan.four_tuples)} four tuples",
            code="procedure.too-few-tuples",
            where="connections",
            next_step="Use fewer connections, or more hosts or ports.",
        )
    pool = _pool_tuples(plan)
    if connections > pool:
        raise RequestError(
            f"{format_count(connections)} connections, but the pool of {plan.title} has"
            f" {format_count(plan.right.peers.count)} addresses, which make {format_count(pool)} four tuples"
            " at most",
            code="procedure.pool-too-small",
            where="connections",
            next_step="Use fewer connections, or more hosts.",
        )
