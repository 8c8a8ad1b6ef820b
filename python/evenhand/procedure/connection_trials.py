# SPDX-License-Identifier: Apache-2.0
"""Procedure: trials of connections through a DUT that keeps state (RFC 9693): its table is emptied, the
initiator opens connections (test phase 1), and then each is validated, or they are used (test phase 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.units import format_count, format_duration, format_rate
from evenhand.plan import TupleOrder
from evenhand.procedure.connection_wish import ConnectionWish
from evenhand.search import InvalidAttempts
from evenhand.trial import Connections, Load, LoadMeasurer, TrialResult, Verdict

if TYPE_CHECKING:
    from evenhand.rig import Setup

DEFAULT_ALPHA = 0.5
"""Of the rate at which connections were opened they are validated with (R9693-11)."""
ATTEMPTS = 5
"""To establish connections for another test: INVALID trials are repeated so often."""
VALIDATION = "validation"
"""The document of the validating trial, in that of the trial that opened the connections."""


def longest_idle_s(count: int, rate_fps: float, alpha: float, waits_s: float) -> float:
    """How long a connection has no frame, from its opening to its validation: the last one is opened at the
    end of the one trial and validated at the end of the other."""
    return waits_s + count / (alpha * rate_fps)


def check_timeout(setup: Setup, idle_s: float, *, where: str) -> None:
    """RequestError if the DUT forgets connections before they are used (R9693-06)."""
    timeout_s = setup.connection_timeout_s
    if timeout_s is not None and idle_s >= timeout_s:
        raise RequestError(
            f"the DUT forgets a connection after {format_duration(timeout_s)}, but this test leaves some"
            f" without a frame for {format_duration(idle_s)}",
            code="procedure.timeout-too-short",
            where=where,
            next_step="Use fewer connections or a higher rate, or raise the DUT's timeout (R9693-06).",
        )


@dataclass(frozen=True, slots=True)
class ConnectionTrials:
    """Experiments with connections, each with an empty table of the DUT at its begin (R9693-07)."""

    setup: Setup
    measurer: LoadMeasurer
    order: TupleOrder = "pseudorandom"
    alpha: float = DEFAULT_ALPHA

    def open_and_validate(self, count: int, rate_fps: float) -> TrialResult:
        """Open connections at a rate; if all frames arrived, send one back over each (R9693-09, R9693-11).

        Returns:
            The trial that opened them. Where a connection did not hold it is FAIL, and where the tester
            spoiled the validation it is INVALID; `raw` has the validating trial as `validation`.
        """
        emptied = self.setup.empty_connections()
        connections = Connections(use="establish", count=count, order=self.order)
        opened = self.measurer.offer(Load.of_each_connection(connections, rate_fps))
        if VALIDATION in opened.raw:
            return opened  # made before this run was interrupted
        document = {**opened.raw, "emptied": {"seconds": emptied.seconds, "connections": emptied.connections}}
        if not opened.is_pass:
            return TrialResult.from_contract(document)
        answer = Connections(use="each_once", count=count)
        validated = self.measurer.offer(Load.of_each_connection(answer, rate_fps * self.alpha))
        document[VALIDATION] = dict(validated.raw)
        if not validated.is_pass:
            document["verdict"] = str(validated.verdict)
            document["reasons"] = [
                {"code": reason.code, "text": f"validation: {reason.text}"} for reason in validated.reasons
            ]
        return TrialResult.from_contract(document)

    def establish(self, wish: ConnectionWish) -> Mapping[str, Any]:
        """Establish connections for another test, in at most ATTEMPTS trials; what was done, for its record.

        Raises:
            HostError: The DUT did not keep all of them at this rate, or the tester never sent them as it
                should.
        """
        connections = Connections(use="establish", count=wish.count, order=wish.order)
        load = Load.of_each_connection(connections, wish.rate_fps)
        invalid = InvalidAttempts(invalid_retries=ATTEMPTS - 1, patience=ATTEMPTS - 1)
        while True:
            emptied = self.setup.empty_connections()
            opened = self.measurer.offer(load)
            if opened.is_pass:
                return {
                    **wish.to_document(),
                    "attempts": invalid.count + 1,
                    "emptied_s": emptied.seconds,
                    "opened_at": opened.started_at,
                }
            reasons = "; ".join(reason.text for reason in opened.reasons)
            if opened.verdict is Verdict.FAIL or opened.was_stopped:
                raise HostError(
                    f"{format_count(wish.count)} connections could not be established at"
                    f" {format_rate(wish.rate_fps)}: {reasons}",
                    code="procedure.not-established",
                    where="connections",
                    next_step="Open fewer, or at a lower rate: half of what evenhand connections finds"
                    " (R9693-09).",
                )
            invalid.note(opened)
            if invalid.are_exhausted:
                raise HostError(
                    f"the tester did not open {format_count(wish.count)} connections as it should in"
                    f" {invalid.count} trials: {reasons}",
                    code="procedure.not-opened",
                    where="connections",
                    next_step="Open them at a lower rate, or give the tester idle CPUs.",
                )
