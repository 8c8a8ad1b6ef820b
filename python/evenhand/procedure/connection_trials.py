# SPDX-License-Identifier: Apache-2.0
"""Procedure: trials of connections through a DUT that keeps state (RFC 9693): its table is emptied, the
initiator opens connections (test phase 1), and then each is validated, or they are used (test phase 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.units import format_count, format_duration, format_rate
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import MAX_CONNECTIONS, TUPLE_ORDERS, AddressPlan, TupleOrder
from evenhand.procedure.dut_checks import VALIDATION, check_some_held, check_translates, why_not_held
from evenhand.results.goal import check_above_zero
from evenhand.search import InvalidAttempts
from evenhand.trial import Connections, Load, LoadMeasurer, TrialResult, Verdict

if TYPE_CHECKING:
    from evenhand.rig import Setup


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
        check_above_zero(
            self.rate_fps, f"connections are to be opened at {self.rate_fps} fps", where="rate_fps"
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


DEFAULT_ALPHA = 0.5
"""Rate at which connections are validated, as a share of the rate at which they were opened (R9693-11)."""
ATTEMPTS = 5
"""Trials to establish connections for another test, INVALID ones included."""
FAILED_ATTEMPTS = 2
"""How many of these FAIL."""
EMPTIED = "emptied"
"""What is known of the table that was emptied, in the document of a trial."""


TOO_SHORT = "procedure.timeout-too-short"
"""The code of the error of `check_timeout`."""
AFTERWARDS_S = 3e-7
"""Time for each connection, between the two trials: the engine looks whether two have the same tuple, which
was measured to take 0.2 us."""


def longest_idle_s(count: int, rate_fps: float, alpha: float, waits_s: float) -> float:
    """How long a connection has no frame, from its opening to its validation: the last one is opened at the
    end of the one trial and validated at the end of the other."""
    return waits_s + count * AFTERWARDS_S + count / (alpha * rate_fps)


def established_idle_s(wish: ConnectionWish, waits_s: float, sending_s: float) -> float:
    """How long an established connection may have no frame: the first one is opened at the begin of the one
    trial, and as frames are of any connection, it may have none until the end of the other (R9693-06)."""
    return wish.count / wish.rate_fps + wish.count * AFTERWARDS_S + waits_s + sending_s


def check_timeout(timeout_s: float | None, idle_s: float, *, where: str) -> None:
    """RequestError if the DUT forgets connections before they are used (R9693-06).

    Args:
        timeout_s: The timeout of the DUT; None: not known.
        idle_s: For so long the test leaves some without a frame.
    """
    if timeout_s is not None and idle_s >= timeout_s:
        raise RequestError(
            f"the DUT forgets a connection after {format_duration(timeout_s)}, but this test leaves some"
            f" without a frame for {format_duration(idle_s)}",
            code="procedure.timeout-too-short",  # TOO_SHORT
            where=where,
            next_step="Use fewer connections, a higher rate at which they are opened, or shorter trials; or"
            " raise the DUT's timeout (R9693-06).",
        )


@dataclass(frozen=True, slots=True)
class ConnectionTrials:
    """Experiments with connections, each with an empty table of the DUT at its begin (R9693-07)."""

    setup: Setup
    measurer: LoadMeasurer
    plan: AddressPlan
    order: TupleOrder = "pseudorandom"
    alpha: float = DEFAULT_ALPHA

    def open_and_validate(self, count: int, rate_fps: float) -> TrialResult:
        """Open connections at a rate; if all frames arrived, send one back over each (R9693-09, R9693-11).

        Returns:
            The trial that opened them. Where a connection did not hold it is FAIL, and where the tester
            spoiled the validation it is INVALID; `raw` has the validating trial as `validation`.
        """
        load = Load.of_each_connection(Connections(use="establish", count=count, order=self.order), rate_fps)
        before = self.measurer.stored(load)
        if before is not None:
            return before  # with its validation; the DUT's table is left to the trial that is made next
        emptied = self.setup.empty_connections()
        opened = self.measurer.offer(load)
        check_translates(opened, self.plan, where=self.setup.name)
        document = {**opened.raw, EMPTIED: emptied.to_document()}
        if not opened.is_pass:
            return TrialResult.from_contract(document)
        answer = Connections(use="each_once", count=count)
        validated = self.measurer.offer(Load.of_each_connection(answer, rate_fps * self.alpha))
        document[VALIDATION] = dict(validated.raw)
        if not validated.is_pass:
            document["verdict"] = str(validated.verdict)
            why = why_not_held(opened, validated) if validated.verdict is Verdict.FAIL else None
            document["reasons"] = [
                *([] if why is None else [{"code": "loss", "text": f"validation: {why}"}]),
                *(
                    {"code": reason.code, "text": f"validation: {reason.text}"}
                    for reason in validated.reasons
                ),
            ]
        return TrialResult.from_contract(document)

    def establish(self, wish: ConnectionWish) -> Mapping[str, Any]:
        """Establish connections for another test, in at most ATTEMPTS trials; what was done, for its record.

        A trial in which the DUT did not keep all of them is repeated once: one connection of thousands may be
        lost by chance, and that ends no search.

        Raises:
            HostError: The DUT did not keep all of them at this rate in FAILED_ATTEMPTS trials, or the tester
                never sent them as it should.
        """
        connections = Connections(use="establish", count=wish.count, order=wish.order)
        load = Load.of_each_connection(connections, wish.rate_fps)
        invalid = InvalidAttempts(invalid_retries=ATTEMPTS - 1, patience=ATTEMPTS - 1)
        failed = 0
        while True:
            emptied = self.setup.empty_connections()
            opened = self.measurer.offer(load)
            check_translates(opened, self.plan, where=self.setup.name)
            if opened.is_pass:
                return {
                    **wish.to_document(),
                    "attempts": invalid.count + failed + 1,
                    "emptied_s": emptied.seconds,
                    "opened_at": opened.started_at,
                }
            reasons = "; ".join(reason.text for reason in opened.reasons)
            failed += opened.verdict is Verdict.FAIL
            if failed == FAILED_ATTEMPTS or opened.was_stopped:
                raise HostError(
                    f"{format_count(wish.count)} connections could not be established at"
                    f" {format_rate(wish.rate_fps)}: {reasons}",
                    code="procedure.not-established",
                    where="connections",
                    next_step="Open fewer, or at a lower rate: half of what evenhand connections finds"
                    " (R9693-09).",
                )
            if opened.verdict is Verdict.FAIL:
                continue
            invalid.note(opened)
            if invalid.are_exhausted:
                raise HostError(
                    f"the tester did not open {format_count(wish.count)} connections as it should in"
                    f" {invalid.count} trials: {reasons}",
                    code="procedure.not-opened",
                    where="connections",
                    next_step="Open them at a lower rate, or give the tester idle CPUs.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNumber:
    """A `Measurer` whose trials open as many connections as the goal says, however long that takes."""

    trials: ConnectionTrials
    connections: int
    is_first: bool
    """Whether none is known to have held before."""

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        """See `Measurer.measure`."""
        found = self.trials.open_and_validate(self.connections, rate_fps)
        if self.is_first:
            check_some_held(found, where=self.trials.setup.name)
        return found
