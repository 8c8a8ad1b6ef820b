# SPDX-License-Identifier: Apache-2.0
"""Procedure: a procedure made several times, with one frame size or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evenhand.base.errors import RequestError
from evenhand.base.units import format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import NO_TAGS, AddressPlan, FrameSize, Imix, SideCounts, describe_size, whole_octets
from evenhand.procedure.descriptor import Result
from evenhand.procedure.events import Note, OnEvent
from evenhand.procedure.learning import choose_frames
from evenhand.procedure.statistics import Statistics
from evenhand.trial import Deviation

MOST_REPETITIONS = 1000
DEPENDED_ON_DATA = (
    "stopping depended on the values, so their spread and intervals are narrower than those of a fixed number"
)
"""What a reader must know of repetitions that ended when a sample looked tight."""
LEAST_FOR_SPREAD = 3
"""Two values that agree may do so by chance."""
LEAST_SIZES = 5
"""R2544-04."""

STOPPED = "stopped"
"""The outcome of what was stopped."""
T = TypeVar("T", bound=Result)
SpreadOf = Callable[[Sequence[T]], float | None]
"""How far results lie apart, as a ratio; None while one of them has no value, since it may differ by
anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetitions:
    """Number of repetitions, and when fewer are enough."""

    count: int = 1
    spread: float | None = None
    """Stop when (maximum - minimum) / median is at most this, after three repetitions or more; None:
    never."""

    def __post_init__(self) -> None:
        check_types(self)
        if not 1 <= self.count <= MOST_REPETITIONS:
            raise RequestError(
                f"{self.count} repetitions",
                code="procedure.out-of-range",
                where="count",
                next_step=f"Write 1 to {MOST_REPETITIONS}.",
            )
        if self.spread is not None and not 0 < self.spread < 1:
            raise RequestError(
                f"a spread of {self.spread}: must be between 0 and 1",
                code="procedure.out-of-range",
                where="spread",
                next_step="Write 1%.",
            )
        if self.spread is not None and self.count <= LEAST_FOR_SPREAD:
            raise RequestError(
                f"a spread needs at least {LEAST_FOR_SPREAD} repetitions, so it cannot end"
                f" {self.count} early",
                code="procedure.too-few-for-spread",
                where="spread",
                next_step="Request 10 repetitions, or omit the spread.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[T]):
    """Result for one frame size."""

    frame_size: FrameSize
    asked: int
    """Repetitions."""
    repetitions: tuple[T, ...]
    stopped_early: str | None
    """Why there are fewer than requested; None if there are not."""

    @property
    def outcome(self) -> Any:
        """That of the last repetition."""
        return self.repetitions[-1].outcome

    def to_document(self, **figures: Any) -> dict[str, Any]:
        """
        Args:
            figures: What the repetitions come to.
        """
        return {
            "frame_size": whole_octets(self.frame_size),
            "imix": str(self.frame_size) if isinstance(self.frame_size, Imix) else None,
            "asked_repetitions": self.asked,
            "stopped_early": self.stopped_early,
            **figures,
            "repetitions": [result.to_document() for result in self.repetitions],
        }


def check_frame_sizes(
    plan: AddressPlan, sizes: Sequence[FrameSize | None], *, tag_octets: SideCounts = NO_TAGS
) -> tuple[tuple[FrameSize, ...], list[str]]:
    """What is used for these sizes, and notes where it is another one (R5180-10). RequestError if one is
    impossible, or twice there."""
    chosen: list[FrameSize] = []
    notes = []
    for wanted in sizes:
        size, note = choose_frames(plan, wanted, tag_octets=tag_octets)
        if size in chosen:
            raise RequestError(
                f"{describe_size(size)} is listed twice",
                code="procedure.listed-twice",
                where="frame_sizes",
                next_step="Name each size once.",
            )
        chosen.append(size)
        notes += [] if note is None else [note]
    if not chosen:
        raise RequestError(
            "no frame size is given",
            code="procedure.no-frame-size",
            where="frame_sizes",
            next_step="Write 64,128,256, or all.",
        )
    return tuple(chosen), notes


def check_whole_sizes(sizes: Sequence[FrameSize]) -> tuple[int, ...]:
    """The same sizes, none of which is a sequence. RequestError if one is (R6985-02)."""
    for size in sizes:
        if isinstance(size, Imix):
            raise RequestError(
                f"{size}: bursts consist of frames of one size (RFC 9004, section 3)",
                code="procedure.mixed-sizes",
                where="frame_sizes",
                next_step="Name single sizes.",
            )
    return tuple(size for size in sizes if not isinstance(size, Imix))


def repeat(
    measure: Callable[[int], T],
    repetitions: Repetitions,
    *,
    frame_size: FrameSize,
    spread_of: SpreadOf[T],
    on_event: OnEvent,
) -> Row[T]:
    """Measure until there are as many as asked for, or they agree, or one was stopped.

    Args:
        measure: Gets the number of the repetition, from 1.
    """
    done: list[T] = []
    stopped_early = None
    while len(done) < repetitions.count and stopped_early is None:
        if repetitions.count > 1:
            on_event(
                Note(
                    text=f"{describe_size(frame_size)}, repetition {len(done) + 1} of {repetitions.count}:",
                    is_heading=True,
                )
            )
        done.append(measure(len(done) + 1))
        if len(done) < repetitions.count:
            stopped_early = _why_enough(done, repetitions, spread_of)
    if stopped_early is not None:
        stopped_early = f"stopped after {len(done)} of {repetitions.count} repetitions: {stopped_early}"
        on_event(Note(text=f"{describe_size(frame_size)}: {stopped_early}."))
    return Row(
        frame_size=frame_size, asked=repetitions.count, repetitions=tuple(done), stopped_early=stopped_early
    )


def _why_enough(done: Sequence[T], repetitions: Repetitions, spread_of: SpreadOf[T]) -> str | None:
    if done[-1].outcome == STOPPED:
        return "the last one was stopped"
    if repetitions.spread is None or len(done) < LEAST_FOR_SPREAD:
        return None
    spread = spread_of(done)
    if spread is None or spread > repetitions.spread:
        return None
    return (
        f"the spread of {format_ratio(spread)} is within {format_ratio(repetitions.spread)};"
        f" {DEPENDED_ON_DATA}"
    )


def each_once(found: Sequence[Deviation], sizes: int) -> list[Deviation]:
    """Deviations in order; with one more if there are too few frame sizes (R2544-04)."""
    each = {(deviation.requirement, deviation.text): deviation for deviation in found}
    if sizes < LEAST_SIZES:
        sized = "1 frame size" if sizes == 1 else f"{sizes} frame sizes"
        partial = Deviation(requirement="R2544-04", text=f"{sized} instead of at least {LEAST_SIZES}")
        each[partial.requirement, partial.text] = partial
    return sorted(each.values(), key=lambda deviation: deviation.requirement)


def document_of(statistics: Statistics | None) -> dict[str, Any] | None:
    """The document of statistics; None without them."""
    return None if statistics is None else statistics.to_document()
