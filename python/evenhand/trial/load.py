# SPDX-License-Identifier: Apache-2.0
"""Station 7: the load of a trial: even, in bursts, or one after another. Rates are per direction.

Trials that were made before a procedure was cut short are given again instead of being made twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from evenhand.base.units import format_duration, format_rate
from evenhand.plan import Direction, TupleOrder
from evenhand.trial.result import TrialResult

_TOLERANCE = 1e-9
"""Share of an interval that is none: what floating point makes of a whole number of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Frames at the load's rate, then silence, again and again."""

    frames: int
    """Frames of one burst, per direction."""
    interval_s: float
    """Seconds from the beginning of one burst to that of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChange:
    """A second load, which follows the first without a pause."""

    rate_fps: float
    duration_s: float


ConnectionUse = Literal["establish", "each_once", "established"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Which connections the frames of a trial are of, through a DUT that keeps state (RFC 9693)."""

    use: ConnectionUse
    """`establish`: frame k of the initiator opens connection k. `each_once`: frame k of the responder answers
    connection k. `established`: each frame is of any of them."""
    count: int
    """Number of all connections."""
    order: TupleOrder = "pseudorandom"
    """Order in which they are given their four tuples."""

    @property
    def directions(self) -> tuple[Direction, ...] | None:
        """Directions that send; None: those of the test."""
        return {"establish": ("forward",), "each_once": ("reverse",), "established": None}[self.use]

    def to_contract(self) -> dict[str, Any]:
        if self.use != "establish":
            return {"use": self.use}
        return {"use": self.use, "count": self.count, "order": self.order}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one trial offers."""

    rate_fps: float
    """Intended rate; within a burst, if there are bursts; before the load changes, if it does."""
    duration_s: float
    """Duration of the sending phase; before the load changes, if it does."""
    burst: Burst | None = None
    then: LoadChange | None = None
    residual_s: float = 0.0
    """The residual wait is at least so long, whatever the waits say."""
    connections: Connections | None = None
    """None: the DUT keeps no state."""

    @classmethod
    def single_burst(cls, frames: int, rate_fps: float) -> Load:
        """One burst after idle (R9004-03). The residual wait is not shorter than the burst: a buffer may take
        as long to empty."""
        lasts_s = frames / rate_fps
        return cls(
            rate_fps=rate_fps,
            duration_s=lasts_s,
            burst=Burst(frames=frames, interval_s=lasts_s),
            residual_s=lasts_s,
        )

    @classmethod
    def of_each_connection(cls, connections: Connections, rate_fps: float) -> Load:
        """One frame for each connection."""
        return cls(rate_fps=rate_fps, duration_s=connections.count / rate_fps, connections=connections)

    @classmethod
    def bursts(cls, frames: int, rate_fps: float, interval_s: float, duration_s: float) -> Load:
        """As many bursts as the duration takes, with the last interval whole: a trial of 60 s is not shorter
        (R2544-17, R2544-20)."""
        count = max(1, math.ceil(duration_s / interval_s * (1 - _TOLERANCE)))
        return cls(
            rate_fps=rate_fps,
            duration_s=max(duration_s, count * interval_s),
            burst=Burst(frames=frames, interval_s=interval_s),
        )

    @property
    def sending_s(self) -> float:
        return self.duration_s + (self.then.duration_s if self.then is not None else 0.0)

    def rate_at(self, sending_s: float) -> float:
        """Frames per second per direction, so long after the sending phase began; of bursts the rate
        within."""
        return self.rate_fps if self.then is None or sending_s < self.duration_s else self.then.rate_fps

    def __str__(self) -> str:
        """`110 kfps per direction for 60 s, then 55 kfps for 60 s`."""
        then = (
            ""
            if self.then is None
            else f", then {format_rate(self.then.rate_fps)} for {format_duration(self.then.duration_s)}"
        )
        return f"{format_rate(self.rate_fps)} per direction for {format_duration(self.duration_s)}{then}"

    def to_contract(self) -> dict[str, Any]:
        """The load's part of a `trial` request."""
        document: dict[str, Any] = {"rate_fps": self.rate_fps, "duration_s": self.duration_s}
        if self.burst is not None:
            document["burst"] = {"frames": self.burst.frames, "interval_s": self.burst.interval_s}
        if self.then is not None:
            document["then"] = {"rate_fps": self.then.rate_fps, "duration_s": self.then.duration_s}
        if self.connections is not None:
            document["connections"] = self.connections.to_contract()
        return document

    @classmethod
    def from_contract(cls, request: Mapping[str, Any]) -> Load:
        """The load of a `trial` request."""
        burst, then = request.get("burst"), request.get("then")
        connections = request.get("connections")
        return cls(
            rate_fps=request["rate_fps"],
            duration_s=request["duration_s"],
            burst=None if burst is None else Burst(frames=burst["frames"], interval_s=burst["interval_s"]),
            then=None
            if then is None
            else LoadChange(rate_fps=then["rate_fps"], duration_s=then["duration_s"]),
            connections=None
            if connections is None
            else Connections(
                use=connections["use"],
                count=connections.get("count", round(request["rate_fps"] * request["duration_s"])),
                order=connections.get("order", "pseudorandom"),
            ),
        )


class LoadMeasurer(Protocol):
    """Performs one trial of any load. A `Measurer` knows even ones only."""

    def stored(self, load: Load) -> TrialResult | None:
        """The trial that comes now, if it was made before a run was interrupted: there is nothing to be
        prepared for it then. None if it has to be made."""
        ...

    def offer(self, load: Load) -> TrialResult:
        """One trial; its verdict may be INVALID.

        Raises:
            EvenhandError: There could be no trial at all.
        """
        ...


_REPLAY_TOLERANCE = 1e-9
"""Relative tolerance of rates and times that went through JSON and back."""


class Replay(Protocol):
    """The trials of a procedure that was cut short. A search is determined by its results, so it asks for the
    same trials again."""

    def take(self, load: Load) -> TrialResult | None:
        """The result of the trial that comes now; None if it has to be made."""
        ...


def was_offered(load: Load, document: Mapping[str, Any]) -> bool:
    """Whether this trial (contract/reply.schema.json) is one of that load."""
    burst, then = document.get("burst"), document.get("then")
    if (burst is None) != (load.burst is None) or (then is None) != (load.then is None):
        return False
    pairs = [(document["intended_duration_s"], load.sending_s)]
    if load.burst is not None and burst is not None:
        pairs += [
            (burst["frames"], load.burst.frames),
            (burst["interval_s"], load.burst.interval_s),
            (burst["rate_fps"], load.rate_fps),
        ]
    elif load.then is not None and then is not None:
        pairs += [
            (then["before_fps"], load.rate_fps),
            (then["rate_fps"], load.then.rate_fps),
            (then["duration_s"], load.then.duration_s),
        ]
    else:
        pairs.append((document["intended_fps"], load.rate_fps))
    return all(math.isclose(then_s, now_s, rel_tol=_REPLAY_TOLERANCE) for then_s, now_s in pairs)
