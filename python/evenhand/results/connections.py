# SPDX-License-Identifier: Apache-2.0
"""Results: what the tests of a DUT that keeps state found (RFC 9693)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evenhand.base.validation.document import at_key
from evenhand.results.throughput import SearchAsked


class CapacityOutcome(StrEnum):
    """How a search of the capacity ended."""

    FOUND = "found"
    AT_LEAST = "at_least"
    """The most connections that were to be tried are held."""
    TOO_FEW = "too_few"
    """Not even the first number is held."""
    TIMEOUT = "timeout"
    """The DUT would forget some of the next number of connections before all are validated, so that it was
    not tried."""
    TESTER_CEILING = "tester_ceiling"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateFound:
    """What a search for the rate of new connections found; each frame opens one."""

    outcome: str = ""
    connections: int = 0
    is_at_least: bool | None = None
    """As of a throughput."""
    throughput_fps: float | None = at_key("connections_per_second", None)
    upper_fps: float | None = at_key("failed_per_second", None)
    """The lowest rate that failed."""
    goal: SearchAsked = field(default_factory=SearchAsked)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCapacity:
    """One number of connections that was tried."""

    connections: int
    least_per_second: float
    """The rate that was asked of it; 0 for the first."""
    connections_per_second: float | None = None
    """The rate at which they were opened; None if at none."""
    is_held: bool | None = None
    """Whether that many connections are held; None if the tester did not manage to find out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityFound:
    """What was found, as a run file has it in addition to the trials."""

    outcome: str
    capacity: int | None = None
    """The largest number of connections that the DUT held; a lower bound if the outcome says so."""
    not_held: int | None = None
    """The smallest that it did not."""
    is_at_least: bool
    steps: tuple[TriedCapacity, ...]
    goal: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A table that was full, and was emptied."""

    connections: int
    """Connections that the tester opened."""
    counted: int | None = None
    """Connections that the DUT says it removed; None if it does not report it."""
    seconds: float
    """Time from the request until the table was empty."""
    per_second: float | None = at_key("connections_per_second", None)
    """Connections removed per second; None where it took no time that could be measured."""

    def __post_init__(self) -> None:
        if self.per_second is None and self.seconds > 0:
            object.__setattr__(self, "per_second", self.connections / self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownFound:
    """What was found, as a run file has it in addition to the trials."""

    outcome: str
    connections: int
    per_second: float | None = at_key("connections_per_second", None)
    """The median of all repetitions."""
    removals: tuple[Removal, ...]
    goal: Mapping[str, Any]
