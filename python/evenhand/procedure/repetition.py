# SPDX-License-Identifier: Apache-2.0
"""Procedure: a procedure made several times, with one frame size or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evenhand.base.errors import RequestError
from evenhand.base.units import format_ratio
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import NO_TAGS, AddressPlan, FrameSize, Imix, SideCounts, describe_size, whole_octets
from evenhand.procedure.events import Note, OnEvent
from evenhand.procedure.frame_size import choose_frames
from evenhand.procedure.loss import FrameLoss, LossOutcome
from evenhand.procedure.statistics import Statistics
from evenhand.procedure.throughput import Throughput, too_few
from evenhand.search import Outcome
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

T = TypeVar("T", Throughput, FrameLoss)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputTable:
    """Throughput by frame size, each repeated (R2544-22, SEED-72)."""

    rows: tuple[Row[Throughput], ...]

    @staticmethod
    def statistics(row: Row[Throughput]) -> Statistics | None:
        """Statistics of the throughput per direction, over the searches that found one; None if none did."""
        return throughput_statistics((t.throughput_fps, t.is_at_least) for t in row.repetitions)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of all searches, each once."""
        found = [d for row in self.rows for t in row.repetitions for d in t.deviations]
        counts = [
            (sum(t.throughput_fps is not None for t in row.repetitions), len(row.repetitions))
            for row in self.rows
        ]
        values, searches = min(counts, default=(0, 0))
        return each_once([*found, *too_few(searches, values)] if searches else found, len(self.rows))

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand throughput --json` writes it for several sizes or repetitions."""
        return {
            "rows": [
                _row_document(row, {"statistics": _document_of(self.statistics(row))}) for row in self.rows
            ],
            "deviations": [deviation.to_document() for deviation in self.deviations],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTable:
    """Frame loss rate by frame size and load, each repeated."""

    rows: tuple[Row[FrameLoss], ...]

    @staticmethod
    def statistics(row: Row[FrameLoss]) -> dict[float, Statistics | None]:
        """Statistics of the loss ratio at each load, by its share of the maximum; None where no trial was
        valid."""
        return loss_statistics([_ratios(loss) for loss in row.repetitions])

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations of all series, each once."""
        return each_once(
            [d for row in self.rows for loss in row.repetitions for d in loss.deviations], len(self.rows)
        )

    def to_document(self) -> dict[str, Any]:
        """The whole result, as `evenhand loss --json` writes it for several sizes or repetitions."""
        rows = [
            _row_document(
                row,
                {
                    "loss_statistics": [
                        {"share_of_maximum": share, "statistics": _document_of(statistics)}
                        for share, statistics in self.statistics(row).items()
                    ]
                },
            )
            for row in self.rows
        ]
        return {"rows": rows, "deviations": [deviation.to_document() for deviation in self.deviations]}


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
    measure: Callable[[int], T], repetitions: Repetitions, *, frame_size: FrameSize, on_event: OnEvent
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
            stopped_early = _why_enough(done, repetitions)
    if stopped_early is not None:
        stopped_early = f"stopped after {len(done)} of {repetitions.count} repetitions: {stopped_early}"
        on_event(Note(text=f"{describe_size(frame_size)}: {stopped_early}."))
    return Row(
        frame_size=frame_size, asked=repetitions.count, repetitions=tuple(done), stopped_early=stopped_early
    )


def _why_enough(done: Sequence[Throughput | FrameLoss], repetitions: Repetitions) -> str | None:
    last = done[-1]
    if (last.search.outcome if isinstance(last, Throughput) else last.outcome) in (
        Outcome.STOPPED,
        LossOutcome.STOPPED,
    ):
        return "the last one was stopped"
    if repetitions.spread is None or len(done) < LEAST_FOR_SPREAD:
        return None
    spread = _spread(done)
    if spread is None or spread > repetitions.spread:
        return None
    return (
        f"the spread of {format_ratio(spread)} is within {format_ratio(repetitions.spread)};"
        f" {DEPENDED_ON_DATA}"
    )


def _spread(done: Sequence[Throughput | FrameLoss]) -> float | None:
    """The spread of throughputs, relative to the median; of loss ratios, the largest difference at any load,
    in percent of what was offered. None while any of them has no value, since it may differ by anything."""
    throughputs = [result for result in done if isinstance(result, Throughput)]
    if throughputs:
        statistics = throughput_statistics((t.throughput_fps, t.is_at_least) for t in throughputs)
        return None if statistics is None or statistics.count < len(done) else statistics.spread
    losses = [result for result in done if isinstance(result, FrameLoss)]
    found = loss_statistics([_ratios(loss) for loss in losses]).values()
    if any(statistics is None or statistics.count < len(losses) for statistics in found):
        return None
    return max(statistics.maximum - statistics.minimum for statistics in found if statistics is not None)


def throughput_statistics(found: Iterable[tuple[float | None, bool]]) -> Statistics | None:
    """Statistics of the throughputs that are there; None if there is none.

    Args:
        found: Of each search its throughput, and whether that is a lower bound.
    """
    valued = [(value, is_bound) for value, is_bound in found if value is not None]
    return Statistics.of((value for value, _ in valued), lower_bounds=(is_bound for _, is_bound in valued))


def loss_statistics(
    series: Sequence[tuple[Mapping[float, float | None], bool]],
) -> dict[float, Statistics | None]:
    """Statistics of the loss ratio at each load, from the highest one down; None where no trial was valid. A
    series that had lost nothing at two loads above was not tried here, and counts as lossless.

    Args:
        series: Of each series the loss ratio at each load, by its share of the maximum, and whether it ended
            since two loads lost nothing.
    """

    def ratio(ratios: Mapping[float, float | None], is_lossless: bool, share: float) -> float | None:
        found = ratios.get(share)
        return 0.0 if found is None and is_lossless and share < min(ratios, default=share) else found

    shares = sorted({share for ratios, _ in series for share in ratios}, reverse=True)
    at_each = {share: [ratio(*one, share) for one in series] for share in shares}
    return {share: Statistics.of(r for r in found if r is not None) for share, found in at_each.items()}


def _ratios(loss: FrameLoss) -> tuple[dict[float, float | None], bool]:
    return {point.share: point.loss_ratio for point in loss.points}, loss.outcome is LossOutcome.LOSSLESS


def each_once(found: Sequence[Deviation], sizes: int) -> list[Deviation]:
    """Deviations in order; with one more if there are too few frame sizes (R2544-04)."""
    each = {(deviation.requirement, deviation.text): deviation for deviation in found}
    if sizes < LEAST_SIZES:
        sized = "1 frame size" if sizes == 1 else f"{sizes} frame sizes"
        partial = Deviation(requirement="R2544-04", text=f"{sized} instead of at least {LEAST_SIZES}")
        each[partial.requirement, partial.text] = partial
    return sorted(each.values(), key=lambda deviation: deviation.requirement)


def _row_document(row: Row[T], figures: dict[str, Any]) -> dict[str, Any]:
    return {
        "frame_size": whole_octets(row.frame_size),
        "imix": str(row.frame_size) if isinstance(row.frame_size, Imix) else None,
        "asked_repetitions": row.asked,
        "stopped_early": row.stopped_early,
        **figures,
        "repetitions": [result.to_document() for result in row.repetitions],
    }


def _document_of(statistics: Statistics | None) -> dict[str, Any] | None:
    return None if statistics is None else statistics.to_document()
