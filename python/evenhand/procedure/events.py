# SPDX-License-Identifier: Apache-2.0
"""Procedure: what a procedure reports while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self, TypeVar

from evenhand.base.time_span import TimeSpan
from evenhand.plan import Direction
from evenhand.search import TrialFinished, TrialStarted
from evenhand.trial import LearningProgress, LearningResult, LeftOut, Load, TrialResult, read_left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note for the reader of the result, for example that another frame size was used than requested."""

    text: str
    is_heading: bool = False
    """Whether it begins a part of the procedure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The DUT of a direct plan has been made to resolve every host."""

    result: LearningResult


_COUNTS = ("sent_frames", "received_frames", "settled_frames", "lost_frames")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """One direction of the trial that is being made. What is under way is neither received nor lost."""

    sent_frames: int
    received_frames: int
    settled_frames: int
    """Frames that were due so long ago that they have come or are lost."""
    lost_frames: int
    """Those of them that are lost."""
    mean_latency_ns: float | None
    """Mean latency of the frames that have come, with what the tester itself adds."""
    max_latency_ns: float | None
    recent_median_ns: float | None = None
    """Median latency of the frames that have come in the last half second or so; None if there were none, or
    several engines measure."""
    recent_p999_ns: float | None = None
    """The 99.9th percentile of the same."""
    received_of_flows: tuple[int, ...] = ()
    """The received frames of each flow of the plan."""

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> Self:
        """Made from one direction of a progress document."""
        counts = {key: document[key] for key in _COUNTS}
        latency, recent = document["latency"], document.get("recent_latency", {})
        return cls(
            **counts,
            mean_latency_ns=latency["mean_ns"],
            max_latency_ns=latency["max_ns"],
            recent_median_ns=recent.get("median_ns"),
            recent_p999_ns=recent.get("p999_ns"),
            received_of_flows=tuple(document.get("received_of_flows", ())),
        )

    @property
    def numbers(self) -> dict[str, float | None]:
        """All but what is counted by flows."""
        return {key: value for key, value in asdict(self).items() if key != "received_of_flows"}

    @property
    def loss_ratio(self) -> float | None:
        """Loss ratio of the settled frames; None as long as there are none."""
        return self.lost_frames / self.settled_frames if self.settled_frames else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPhase:
    """Progress of the running trial, about twice a second."""

    phase: str
    elapsed_s: float
    total_s: float
    """Length of the whole trial."""
    rate_fps: float | None = None
    """The present load, per direction; None unless the trial has two loads (`recovery`), and frames are
    sent."""
    directions: Mapping[Direction, SoFar] = field(default_factory=dict)
    """Counts of each direction, from the sending phase on."""
    sending_s: float = 0.0
    """With `left_out`: the present time since frame 0 was due."""
    left_out: tuple[LeftOut, ...] = ()
    """The latest parts that the trial is not judged by, because the tester or its machine was away."""

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> Self:
        """Made from a progress document of the engine (contract/reply.schema.json), with the load that
        `EngineMeasurer` may have added."""
        return cls(
            phase=document.get("phase", ""),
            elapsed_s=document.get("elapsed_s", 0.0),
            total_s=document.get("total_s", 0.0),
            rate_fps=document.get("rate_fps"),
            directions={
                direction: SoFar.from_contract(counts)
                for direction, counts in document.get("directions", {}).items()
            },
            sending_s=document.get("sending_s", 0.0),
            left_out=read_left_out(document.get("left_out", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """Trials that belong to no search begin."""

    what: str
    remaining_s: float
    """Expected time until this part of the procedure ends."""
    number: int | None = None
    """Number of the trial, if it is one of a series."""
    remaining_most_s: float | None = None
    """See `TrialStarted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A trial that belongs to no search has ended."""

    what: str
    result: TrialResult
    load: Load | None = None
    """The load, if it is more than a rate and a time: with two loads the result has only the mean."""


ProcedureEvent = (
    Note | LearningProgress | Learned | TrialPhase | Began | Measured | TrialStarted | TrialFinished
)
OnEvent = Callable[[ProcedureEvent], None]


def ignore(event: ProcedureEvent) -> None:
    """Ignore the event."""


E = TypeVar("E", bound=Began | TrialStarted | TrialFinished)


def followed_by(on_event: OnEvent, later: TimeSpan | float) -> OnEvent:
    """What takes the events of a part.

    Args:
        on_event: Takes those of all parts.
        later: Expected time of the parts that follow, in seconds.
    """
    following = later if isinstance(later, TimeSpan) else TimeSpan.of(later)

    def take(event: ProcedureEvent) -> None:
        if isinstance(event, Began | TrialStarted | TrialFinished):
            event = with_left(event, TimeSpan.sum([left_of(event), following]))
        on_event(event)

    return take


def left_of(event: Began | TrialStarted | TrialFinished) -> TimeSpan:
    """The time left that an event says."""
    most_s = event.remaining_most_s
    return TimeSpan(event.remaining_s, event.remaining_s if most_s is None else most_s)


def with_left(event: E, left: TimeSpan) -> E:
    """The event, which says another time left."""
    return replace(event, remaining_s=left.stated_s, remaining_most_s=left.stated_most_s)
