# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: what one trial counted, and the verdict. Frozen; the raw document stays with
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evenhand.base.errors import EngineError
from evenhand.plan import Direction
from evenhand.trial.clean_time import CleanCounts, CleanTime, read_clean_time
from evenhand.trial.contract_values import number, optional, whole
from evenhand.trial.direction import ClassCount, DirectionResult, read_direction

CONTRACT = 1
"""Version of contract/*.schema.json that this code reads and writes."""


_NO_MOMENT = frozenset(
    {
        "offered_load",
        "port_refused",
        "port_removed",
        "port_stopped",
        "transmit_not_drained",
        "clock",
        "clock_difference",
        "link",
        "stopped",
        "counters",
        "duplicates",
        "mirrored",
    }
)
"""Codes of what the next trial will hardly be without."""
_NO_COUNT = 1 << 63
"""A counter that reads so much or more is below zero, or reads all ones: it is not read."""
_ONES_OF_32_BITS = (1 << 32) - 1
_MOMENTS = 0.25
"""Share of overdue frames up to which moments may be the cause; a tester that is too slow has more."""


class Verdict(StrEnum):
    """Verdict of one trial. INVALID means that the tester was at fault, and says nothing about the DUT
    (R2544-39)."""

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a trial is INVALID, or what was lost."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Where a trial differs from a requirement, such as a shorter wait (R2544-18)."""

    requirement: str
    text: str

    @property
    def line(self) -> str:
        """For people."""
        return f"Deviation from {self.requirement}: {self.text}"

    def to_document(self) -> dict[str, str]:
        """For `--json`."""
        return {"requirement": self.requirement, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCpu:
    """What this machine did to a CPU of a DUT that lives on it, while frames were sent."""

    cpu: int
    absences: int
    """Absences of half a millisecond and more."""
    longest_us: float
    away_us: float
    """Total time: taken by the hypervisor, or by others while a thread of the DUT was ready to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenCpu:
    """What was taken of a CPU of the tester while frames were sent."""

    cpu: int
    stolen_us: float
    """Time taken by the hypervisor, from whatever ran there."""
    waited_us: float
    """Time taken by other programs, while a thread of the tester was ready to run."""

    @property
    def taken_us(self) -> float:
        """Least time that was taken: part of what was stolen may lie in the waiting."""
        return max(self.stolen_us, self.waited_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """How far the tick counter of a worker's CPU is ahead of the first worker's, as measured when the ports
    were opened."""

    cpu: int
    offset_us: float
    uncertainty_us: float


def read_clock_offsets(document: Iterable[Mapping[str, Any]]) -> tuple[ClockOffset, ...]:
    """The offsets in an `open` or `trial` reply's array; empty if there is none, as in runs of earlier
    versions."""
    return tuple(
        ClockOffset(
            cpu=whole(each, "cpu"),
            offset_us=number(each["offset_us"]),
            uncertainty_us=number(each["uncertainty_us"]),
        )
        for each in document
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One trial: intended load and duration, counts, verdict."""

    trial: int
    verdict: Verdict
    reasons: tuple[Reason, ...]
    started_at: str
    """RFC 3339, UTC."""
    frame_size: int
    """Octets including the FCS; for a mix the mean, rounded."""
    intended_fps: float
    """Intended load per direction, over the whole sending phase: with bursts the silence between them counts,
    and with two loads it is the mean."""
    intended_duration_s: float
    stopped_early_s: float | None
    """Time after which sending ended because the trial could no longer pass; None if it ran to its end."""
    loss_ratio_limit: float
    """Largest loss ratio that passes."""
    directions: dict[Direction, DirectionResult]
    deviations: tuple[Deviation, ...]
    missed_frames: int
    """Frames that the tester's own ports dropped during the trial, both sides."""
    clock_error_ppm: float
    watched_cpus: tuple[WatchedCpu, ...] | None
    """CPUs of the DUT; None if the DUT is not on this machine, or its CPUs were not stated."""
    tester_cpus: tuple[TakenCpu, ...] = ()
    """CPUs of the tester's workers; empty if they are not known."""
    notes: tuple[Reason, ...] = ()
    """What a reader should know although it changes no verdict, such as PAUSE frames at the sending port."""
    clock_offsets: tuple[ClockOffset, ...] = ()
    """Clock offsets of the workers' CPUs, the first being 0; empty with one worker, or if they were not
    measured."""
    clean: CleanTime | None = None
    """Its clean time, where that was asked for."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """The document as the engine wrote it, for storage."""

    @property
    def is_pass(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def is_valid(self) -> bool:
        return self.verdict is not Verdict.INVALID

    @property
    def is_judged_by_clean_time(self) -> bool:
        """Whether the verdict is that of the frames that no lapse can have touched."""
        return self.clean is not None and self.clean.is_enough

    @property
    def has_too_little_clean_time(self) -> bool:
        """Whether frames were sent for as long as allowed, and too little of that was clean to be judged."""
        return self.clean is not None and not self.clean.is_enough and self.stopped_early_s is None

    @property
    def sent_s(self) -> float:
        """How long frames were sent, in seconds."""
        if self.stopped_early_s is not None:
            return self.stopped_early_s
        return self.intended_duration_s if self.clean is None else self.clean.sent_s

    @property
    def judged_s(self) -> float:
        """How much of that the verdict is about."""
        return self.clean.clean_s if self.clean is not None and self.clean.is_enough else self.sent_s

    @property
    def left_out_share(self) -> float | None:
        """Share of the sending time that the verdict is not about; None if it is not that of clean time."""
        return self.clean.left_out_share if self.clean is not None and self.clean.is_enough else None

    def judged(self, counted: DirectionResult | ClassCount) -> CleanCounts:
        """The frames of a direction, or of a flow in one, that the verdict is about."""
        if self.is_judged_by_clean_time and counted.clean is not None:
            return counted.clean
        return CleanCounts(frames=counted.offered_frames, lost_frames=counted.lost_frames)

    @property
    def lost_frames(self) -> int:
        """Lost frames over all directions, of those that are judged; a surplus in one cannot hide a loss in
        the other (R2544-07)."""
        return sum(self.judged(direction).lost_frames for direction in self.directions.values())

    @property
    def loss_ratio(self) -> float:
        """1 - received/offered over all directions (RFC 9971), of the frames that are judged; 0..1. For a
        trial that was stopped early, it covers the time until then."""
        offered = sum(self.judged(direction).frames for direction in self.directions.values())
        return 1 - (offered - self.lost_frames) / offered if offered else 1.0

    @property
    def least_loss_ratio(self) -> float:
        """Lower bound of the loss of the whole trial: `loss_ratio`, unless it was stopped early."""
        return (
            self.loss_ratio
            if self.stopped_early_s is None
            else self.loss_ratio * self.judged_s / self.intended_duration_s
        )

    @property
    def offered_fps(self) -> float:
        """Offered load per direction: the lowest of all directions, which each of them really got. Where each
        has a load of its own, in relation to it."""
        return min(self._as_load(each, each.offered_fps) for each in self.directions.values())

    def _as_load(self, direction: DirectionResult, rate_fps: float) -> float:
        """The load of the trial that such a rate of this direction belongs to."""
        return (
            rate_fps
            if direction.intended_fps is None
            else rate_fps * self.intended_fps / direction.intended_fps
        )

    @property
    def forwarding_rate_fps(self) -> float:
        """Forwarding rate, summed over all directions."""
        return sum(direction.forwarding_rate_fps for direction in self.directions.values())

    @property
    def least_forwarding_fps(self) -> float:
        """Forwarding rate per direction, in the direction in which it was least; as `offered_fps`."""
        return min(self._as_load(each, each.forwarding_rate_fps) for each in self.directions.values())

    @property
    def was_spoiled_by_a_moment(self) -> bool:
        """Whether it is INVALID although the tester offered the load: a short disturbance spoiled it, and the
        next trial may well be valid."""
        if self.is_valid or {reason.code for reason in self.reasons} & _NO_MOMENT:
            return False
        return all(d.sender.overdue_frames <= _MOMENTS * d.intended_frames for d in self.directions.values())

    @property
    def sustainable_fps(self) -> float | None:
        """Load per direction that the DUT could forward forever: the lowest of the directions in which a
        queue was filling; None if none was."""
        return min(
            (
                self._as_load(d, d.queue_filling.sustainable_fps)
                for d in self.directions.values()
                if d.queue_filling is not None
            ),
            default=None,
        )

    @property
    def was_stopped(self) -> bool:
        return any(reason.code == "stopped" for reason in self.reasons)

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> TrialResult:
        """Read a `trial` response. EngineError if it has another shape or contradicts itself."""
        try:
            result = cls._read(document)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise EngineError(
                f"the engine's trial result violates the contract: {problem}",
                code="trial.contract-violated",
                where="trial response",
            ) from error
        _check_verdict(result)
        return result

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> TrialResult:
        if document["contract"] != CONTRACT:
            raise ValueError(f"it has contract {document['contract']!r}, but must have {CONTRACT}")
        directions: dict[Direction, DirectionResult] = {}
        names: tuple[Direction, ...] = ("forward", "reverse")
        for name in names:
            if name in document["directions"]:
                directions[name] = read_direction(name, document["directions"][name])
        if not directions or len(directions) != len(document["directions"]):
            raise ValueError(
                f"directions are {sorted(document['directions'])}, but must be forward, reverse or both"
            )
        return cls(
            trial=whole(document, "trial"),
            verdict=Verdict(document["verdict"]),
            reasons=tuple(Reason(code=str(r["code"]), text=str(r["text"])) for r in document["reasons"]),
            started_at=str(document["started_at"]),
            frame_size=whole(document, "frame_size"),
            intended_fps=number(document["intended_fps"]),
            intended_duration_s=number(document["intended_duration_s"]),
            stopped_early_s=optional(document.get("stopped_early_s")),
            loss_ratio_limit=number(document["limits"].get("loss_ratio", 0)),
            directions=directions,
            deviations=tuple(
                Deviation(requirement=str(d["requirement"]), text=str(d["text"]))
                for d in document["deviations"]
            ),
            missed_frames=sum(_missed(document["ports"][side]) for side in ("left", "right")),
            clock_error_ppm=number(document["clock"]["error_ppm"]),
            watched_cpus=_watched_cpus(document.get("host") or {}),
            tester_cpus=_tester_cpus(document.get("host") or {}),
            notes=tuple(
                Reason(code=str(n["code"]), text=str(n["text"])) for n in document.get("notes") or ()
            ),
            clock_offsets=read_clock_offsets(document["clock"].get("offsets") or ()),
            clean=read_clean_time(document.get("clean")),
            raw=document,
        )


def _watched_cpus(host: Mapping[str, Any]) -> tuple[WatchedCpu, ...] | None:
    dut = host.get("dut")
    if dut is None:
        return None
    return tuple(
        WatchedCpu(
            cpu=whole(cpu, "cpu"),
            absences=whole(cpu, "absences"),
            longest_us=number(cpu["longest_us"]),
            away_us=number(cpu["stolen_us"]) + number(cpu["waited_us"]),
        )
        for cpu in dut["cpus"]
    )


def _tester_cpus(host: Mapping[str, Any]) -> tuple[TakenCpu, ...]:
    return tuple(
        TakenCpu(
            cpu=whole(cpu, "cpu"), stolen_us=number(cpu["stolen_us"]), waited_us=number(cpu["waited_us"])
        )
        for cpu in host.get("tester") or ()
    )


def _check_verdict(result: TrialResult) -> None:
    """A verdict that its own counts contradict must never become a DUT number."""
    if result.intended_duration_s <= 0 or result.intended_fps <= 0:
        raise EngineError(
            f"trial {result.trial} intended no frames", code="trial.contract-violated", where="trial response"
        )
    if result.verdict is not Verdict.PASS:
        if not result.reasons:
            raise EngineError(
                f"trial {result.trial} is {result.verdict} without a reason",
                code="trial.contract-violated",
                where="trial response",
            )
        return
    for name, direction in result.directions.items():
        # Per direction with zero loss; with a loss ratio the trial counts as a whole (RFC 9971), and one
        # direction may then lose twice as much.
        judged = result.judged(direction)
        share = judged.lost_frames / judged.frames if judged.frames else 0.0
        allowed = result.loss_ratio_limit * len(result.directions)
        if share > allowed + 1e-9:
            raise EngineError(
                f"trial {result.trial} is PASS, but {name} lost {judged.lost_frames} frames",
                code="trial.contract-violated",
                where="trial response",
            )


def _missed(port: Mapping[str, Any]) -> int:
    """Several counters may count the same frame, so it is the largest of them. What the engine does not read
    counts nothing here either; it makes the trial INVALID (`counters`), but for an extended statistic."""
    before, after = port["before"], port["after"]
    readings = [(whole(before, key), whole(after, key)) for key in ("missed_frames", "no_buffer_frames")]
    hidden_before, hidden = (moment.get("hidden_drops") or {} for moment in (before, after))
    readings += [
        (whole(hidden_before, name), whole(hidden, name)) for name in hidden if name in hidden_before
    ]
    return max([0, *(then - was for was, then in readings if _is_count(was) and _is_count(then))])


def _is_count(value: int) -> bool:
    return value < _NO_COUNT and value != _ONES_OF_32_BITS
