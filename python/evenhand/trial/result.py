# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: what one trial counted, and the verdict. Frozen; the raw document stays with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, get_args

from evenhand.errors import EngineError
from evenhand.plan import Direction

CONTRACT = 1
"""Version of contract/*.schema.json that this code reads and writes."""


_NO_MOMENT = frozenset({"offered_load", "port_refused", "transmit_not_drained", "clock", "link", "stopped", "counters", "duplicates"})
"""Codes of what the next trial will hardly be without."""
_MOMENTS = 0.25
"""Share of overdue frames up to which moments may be the cause; a tester that is too slow has more."""


class Verdict(StrEnum):
    """Of one trial. INVALID is the tester's own fault and says nothing of the DUT (R2544-39)."""

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a trial is INVALID, or what was lost."""

    code: str
    text: str


def join_directions(reasons: Iterable[Reason]) -> list[Reason]:
    """For people: what holds for both directions in the same words is said once."""
    joined: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        direction, colon, what = reason.text.partition(": ")
        what = what if colon and direction in get_args(Direction) else reason.text
        key = (reason.code, what)
        joined[key] = reason if key not in joined else Reason(code=reason.code, text=f"both directions: {what}")
    return list(joined.values())


def causes_of_invalid(trials: Iterable[TrialResult]) -> dict[str, int]:
    """Codes of what made trials INVALID, the most frequent first, and how many trials each spoiled (R2544-39)."""
    found: Counter[str] = Counter()
    for trial in trials:
        if not trial.is_valid:
            # What was lost stands beside the causes, and is none.
            found.update({reason.code for reason in trial.reasons} - {"loss"})
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def describe_causes(causes: Mapping[str, int]) -> str:
    """For people: `sender_overdue in 6 trials, offered_load in 1 trial`; docs/how-to/read-an-invalid-trial.md has the codes."""
    return ", ".join(f"{code} in {count} trial{'' if count == 1 else 's'}" for code, count in causes.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Where a trial differs from a requirement, such as a shorter wait (R2544-18)."""

    requirement: str
    text: str

    def to_document(self) -> dict[str, str]:
        """For `--json`."""
        return {"requirement": self.requirement, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderTally:
    """How well the sender of one direction kept its schedule."""

    overdue_frames: int
    max_overdue_us: float
    refusals: int
    largest_burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverTally:
    """How well the receiver of one direction kept its ring empty."""

    max_poll_gap_us: float
    gap_frames: int
    ring_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCpu:
    """What this host did to a CPU of a DUT that lives on it, while frames were sent."""

    cpu: int
    absences: int
    """Of half a millisecond and more."""
    longest_us: float
    away_us: float
    """In all: taken by the hypervisor, or by others while a thread of the DUT was ready to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Of the frames received in time; None where there is no such frame."""

    count: int
    min_ns: float | None
    max_ns: float | None
    mean_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Delay of a frame less that of the one sent just before it, over all pairs that came (R8219-13); None where there is no pair."""

    pairs: int
    unseen_pairs: int
    """Came too far apart to be compared."""
    min_ns: float | None
    median_ns: float | None
    max_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Of the frames from a time on, where a trial was asked for them. In percentiles a lost frame is infinitely late (R8219-16)."""

    offered_frames: int
    lost_frames: int
    min_ns: float | None
    p50_ns: float
    p99_ns: float
    p999_ns: float
    pdv_ns: float
    """Packet delay variation: the 99.9th percentile less the minimum (R8219-12)."""
    tagged_ns: tuple[float, ...]
    """Delays of the tagged frames in the order in which they were sent; infinite where one was lost (R8219-07)."""
    variation: Variation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Frames of one size and IP version in a mix, in one direction."""

    ip_version: int
    frame_size: int
    """Octets including the FCS, as sent."""
    offered_frames: int
    received_frames: int
    lost_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFrame:
    """One that was offered and did not come."""

    sequence: int
    due_s: float
    """When it was to leave, in seconds of the sending phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionResult:
    """Counts of one direction. A frame is lost if it was offered and not received once, whole and in time (R2544-07)."""

    intended_frames: int
    offered_frames: int
    received_frames: int
    duplicated_frames: int
    reordered_frames: int
    late_frames: int
    corrupted_frames: int
    wrong_length_frames: int
    foreign_frames: int
    stale_frames: int
    neighbor_frames: int
    offered_fps: float
    forwarding_rate_fps: float
    sender: SenderTally
    receiver: ReceiverTally
    away_frames: int
    """Came to a DUT on this host while its CPU was away for longer than its ring lasts."""
    latency: Latency
    lost_by_tenth: tuple[int, ...]
    first_lost: tuple[int, ...]
    delays: Delays | None = None
    """Only where the trial was asked for them."""
    classes: tuple[ClassCount, ...] = ()
    """Of a mix; empty if all frames are alike."""
    last_lost: LostFrame | None = None
    """Only where the load changed; None if nothing was lost too."""

    @property
    def lost_frames(self) -> int:
        return self.offered_frames - self.received_frames

    @property
    def loss_ratio(self) -> float:
        """1 - received/offered; 0..1. A valid trial offered all that was intended, so it is that of RFC 9971."""
        return 1 - self.received_frames / self.offered_frames if self.offered_frames else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One trial: load and duration that were asked for, counts, verdict."""

    trial: int
    verdict: Verdict
    reasons: tuple[Reason, ...]
    started_at: str
    """RFC 3339, UTC."""
    frame_size: int
    """Octets including the FCS; of a mix the mean, rounded."""
    intended_fps: float
    """Per direction, over the whole sending phase: with bursts their silence counts, and of two loads it is the mean."""
    intended_duration_s: float
    stopped_early_s: float | None
    """Sending ended after so long, since the trial could no longer pass; None if it lasted to its end."""
    loss_ratio_limit: float
    """Largest loss ratio that passes."""
    directions: dict[Direction, DirectionResult]
    deviations: tuple[Deviation, ...]
    missed_frames: int
    """Frames that the tester's own ports dropped during the trial, both sides."""
    clock_error_ppm: float
    watched_cpus: tuple[WatchedCpu, ...] | None
    """Of the DUT; None if the DUT is not on this host, or nobody said where it runs."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """The document as the engine wrote it, for storage."""

    @property
    def is_pass(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def is_valid(self) -> bool:
        return self.verdict is not Verdict.INVALID

    @property
    def lost_frames(self) -> int:
        """Over all directions; a surplus in one cannot hide a loss in the other (R2544-07)."""
        return sum(direction.lost_frames for direction in self.directions.values())

    @property
    def loss_ratio(self) -> float:
        """1 - received/offered over all directions (RFC 9971); 0..1. Of a trial that was stopped early: in the time until then."""
        offered = sum(direction.offered_frames for direction in self.directions.values())
        received = sum(direction.received_frames for direction in self.directions.values())
        return 1 - received / offered if offered else 1.0

    @property
    def least_loss_ratio(self) -> float:
        """What the whole trial has lost at least: `loss_ratio`, unless it was stopped early."""
        return self.loss_ratio if self.stopped_early_s is None else self.loss_ratio * self.stopped_early_s / self.intended_duration_s

    @property
    def offered_fps(self) -> float:
        """Per direction: the lowest of them, the load that every direction really got."""
        return min(direction.offered_fps for direction in self.directions.values())

    @property
    def forwarding_rate_fps(self) -> float:
        """Sum of all directions."""
        return sum(direction.forwarding_rate_fps for direction in self.directions.values())

    @property
    def was_spoiled_by_a_moment(self) -> bool:
        """INVALID although the tester offered the load: something short came between, and the next trial may well be valid."""
        if self.is_valid or {reason.code for reason in self.reasons} & _NO_MOMENT:
            return False
        return all(d.sender.overdue_frames <= _MOMENTS * d.intended_frames for d in self.directions.values())

    @property
    def was_stopped(self) -> bool:
        return any(reason.code == "stopped" for reason in self.reasons)

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> TrialResult:
        """Read a `trial` response. EngineError if it has another shape or contradicts itself."""
        try:
            result = cls._read(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise EngineError(f"the engine's trial result is outside the contract: {problem}", where="trial response") from error
        _check_verdict(result)
        return result

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> TrialResult:
        if document["contract"] != CONTRACT:
            raise ValueError(f"it has contract {document['contract']!r}, want {CONTRACT}")
        directions: dict[Direction, DirectionResult] = {}
        names: tuple[Direction, ...] = ("forward", "reverse")
        for name in names:
            if name in document["directions"]:
                directions[name] = _direction(name, document["directions"][name])
        if not directions or len(directions) != len(document["directions"]):
            raise ValueError(f"directions are {sorted(document['directions'])}, want forward, reverse or both")
        return cls(
            trial=_whole(document, "trial"),
            verdict=Verdict(document["verdict"]),
            reasons=tuple(Reason(code=str(r["code"]), text=str(r["text"])) for r in document["reasons"]),
            started_at=str(document["started_at"]),
            frame_size=_whole(document, "frame_size"),
            intended_fps=_number(document["intended_fps"]),
            intended_duration_s=_number(document["intended_duration_s"]),
            stopped_early_s=_optional(document.get("stopped_early_s")),
            loss_ratio_limit=_number(document["limits"].get("loss_ratio", 0)),
            directions=directions,
            deviations=tuple(Deviation(requirement=str(d["requirement"]), text=str(d["text"])) for d in document["deviations"]),
            missed_frames=sum(_missed(document["ports"][side]) for side in ("left", "right")),
            clock_error_ppm=_number(document["clock"]["error_ppm"]),
            watched_cpus=_watched_cpus(document.get("host") or {}),
            raw=document,
        )


def _direction(name: str, document: Mapping[str, Any]) -> DirectionResult:
    sender, receiver, latency = document["sender"], document["receiver"], document["latency"]
    result = DirectionResult(
        intended_frames=_whole(document, "intended_frames"),
        offered_frames=_whole(document, "offered_frames"),
        received_frames=_whole(document, "received_frames"),
        duplicated_frames=_whole(document, "duplicated_frames"),
        reordered_frames=_whole(document, "reordered_frames"),
        late_frames=_whole(document, "late_frames"),
        corrupted_frames=_whole(document, "corrupted_frames"),
        wrong_length_frames=_whole(document, "wrong_length_frames"),
        foreign_frames=_whole(document, "foreign_frames"),
        stale_frames=_whole(document, "stale_frames"),
        neighbor_frames=_whole(document, "neighbor_frames"),
        offered_fps=_number(document["offered_fps"]),
        forwarding_rate_fps=_number(document["forwarding_rate_fps"]),
        sender=SenderTally(
            overdue_frames=_whole(sender, "overdue_frames"),
            max_overdue_us=_number(sender["max_overdue_us"]),
            refusals=_whole(sender, "refusals"),
            largest_burst=_whole(sender, "largest_burst"),
        ),
        receiver=ReceiverTally(
            max_poll_gap_us=_number(receiver["max_poll_gap_us"]),
            gap_frames=_whole(receiver, "gap_frames"),
            ring_frames=_whole(receiver, "ring_frames"),
        ),
        # Runs of before there was a witness of the host have none of it.
        away_frames=_whole(document, "away_frames") if "away_frames" in document else 0,
        latency=Latency(
            count=_whole(latency, "count"),
            min_ns=_optional(latency["min_ns"]),
            max_ns=_optional(latency["max_ns"]),
            mean_ns=_optional(latency["mean_ns"]),
            p50_ns=_optional(latency["p50_ns"]),
            p99_ns=_optional(latency["p99_ns"]),
            p999_ns=_optional(latency["p999_ns"]),
        ),
        lost_by_tenth=tuple(int(_number(n)) for n in document["lost_by_tenth"]),
        first_lost=tuple(int(_number(n)) for n in document["first_lost"]),
        delays=_delays(document["delays"]) if "delays" in document else None,
        classes=tuple(_class(entry) for entry in document.get("classes", [])),
        last_lost=_lost_frame(document.get("last_lost")),
    )
    for key in ("offered_frames", "received_frames"):
        if result.classes and sum(getattr(entry, key) for entry in result.classes) != document[key]:
            raise ValueError(f"{name}: {key} of the classes do not add up to {document[key]}")
    if result.lost_frames < 0 or result.lost_frames != document["lost_frames"]:
        raise ValueError(
            f"{name}: lost {document['lost_frames']} of {result.offered_frames} offered, but {result.received_frames} received"
        )
    return result


def _class(document: Mapping[str, Any]) -> ClassCount:
    keys = ("ip_version", "frame_size", "offered_frames", "received_frames", "lost_frames")
    return ClassCount(**{key: _whole(document, key) for key in keys})


def _lost_frame(document: Mapping[str, Any] | None) -> LostFrame | None:
    return None if document is None else LostFrame(sequence=_whole(document, "sequence"), due_s=_number(document["due_s"]))


def _delays(document: Mapping[str, Any]) -> Delays:
    variation = document["variation"]
    return Delays(
        offered_frames=_whole(document, "offered_frames"),
        lost_frames=_whole(document, "lost_frames"),
        min_ns=_optional(document["min_ns"]),
        p50_ns=_finite(document["p50_ns"]),
        p99_ns=_finite(document["p99_ns"]),
        p999_ns=_finite(document["p999_ns"]),
        pdv_ns=_finite(document["pdv_ns"]),
        tagged_ns=tuple(_finite(delay) for _, delay in document["tagged"]),
        variation=None
        if variation is None
        else Variation(
            pairs=_whole(variation, "pairs"), unseen_pairs=_whole(variation, "unseen_pairs"), min_ns=_optional(variation["min_ns"]),
            median_ns=_optional(variation["median_ns"]), max_ns=_optional(variation["max_ns"]),
        ),
    )  # fmt: skip


def _finite(value: float | None) -> float:
    """JSON has no infinity; the contract writes null."""
    return math.inf if value is None else _number(value)


def _watched_cpus(host: Mapping[str, Any]) -> tuple[WatchedCpu, ...] | None:
    dut = host.get("dut")
    if dut is None:
        return None
    return tuple(
        WatchedCpu(
            cpu=_whole(cpu, "cpu"), absences=_whole(cpu, "absences"), longest_us=_number(cpu["longest_us"]),
            away_us=_number(cpu["stolen_us"]) + _number(cpu["waited_us"]),
        )
        for cpu in dut["cpus"]
    )  # fmt: skip


def _check_verdict(result: TrialResult) -> None:
    """A verdict that its own counts contradict must never become a DUT number."""
    if result.intended_duration_s <= 0 or result.intended_fps <= 0:
        raise EngineError(f"trial {result.trial} intended nothing", where="trial response")
    if result.verdict is not Verdict.PASS:
        if not result.reasons:
            raise EngineError(f"trial {result.trial} is {result.verdict} without a reason", where="trial response")
        return
    for name, direction in result.directions.items():
        # Per direction with zero loss; with a loss ratio the trial counts as a whole (RFC 9971), and one direction
        # may then lose twice as much.
        share = direction.lost_frames / direction.offered_frames if direction.offered_frames else 0.0
        allowed = result.loss_ratio_limit * len(result.directions)
        if share > allowed + 1e-9:
            raise EngineError(f"trial {result.trial} is PASS, but {name} lost {direction.lost_frames} frames", where="trial response")


def _whole(document: Mapping[str, Any], key: str) -> int:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {value!r}, want a whole number from 0")
    return value


def _number(value: Any) -> float:
    """Python would take "nan" for one too, and from a text it would become a result."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)


def _missed(port: Mapping[str, Any]) -> int:
    lost_here = ("missed_frames", "no_buffer_frames")
    return sum(_whole(port["after"], key) - _whole(port["before"], key) for key in lost_here)
