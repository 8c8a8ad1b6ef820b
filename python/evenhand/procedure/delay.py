# SPDX-License-Identifier: Apache-2.0
"""Procedure: latency (RFC 8219, 7.2; RFC 2544, 26.2) and packet delay variation (RFC 8219, 7.3): one trial at
one load, many times over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.base.validation.typed_fields import check_types
from evenhand.plan import Direction, SideName
from evenhand.procedure.attempts import Attempts, check_attempts
from evenhand.procedure.events import OnEvent, ignore
from evenhand.procedure.own_loop import OwnLoop
from evenhand.procedure.profile import Profile, plain_deviations
from evenhand.procedure.record import Recorder, SearchRecord, recording
from evenhand.procedure.result_document import attempt_documents, attempts_at, result_document
from evenhand.procedure.statistics import Statistics, finite, percentile
from evenhand.procedure.tester import OpenTester, choose_maximum
from evenhand.search import DEFAULT_INVALID_RETRIES, DEFAULT_PATIENCE
from evenhand.trial import (
    Delays,
    DelayWish,
    Deviation,
    DirectionResult,
    Load,
    LoadMeasurer,
    TrialResult,
    Verdict,
)

COUNTED_S = 60.0
"""Of a trial whose delays count, at least (RFC 8219, 7.2 and 7.3.1; RFC 2544, 26.2: the tag is sent after 60
of 120 seconds)."""
REPETITIONS = 20
"""R8219-10, R8219-12, R2544-24."""
MOST_TAGGED = 1_000_000
LEAST_FOR_WORST = 1000
"""Values from which on the 99.9th percentile is not their maximum."""


class DelayTest(StrEnum):
    """Which test, and so which figures."""

    LATENCY = "latency"
    """RFC 8219, 7.2: typical and worst-case latency of at least 500 tagged frames (R8219-07..10)."""
    LATENCY_RFC2544 = "latency-rfc2544"
    """RFC 2544, 26.2: the latency of one tagged frame; the average counts (R2544-24)."""
    PDV = "pdv"
    """RFC 8219, 7.3: delay variation over every frame (R8219-12, R8219-13)."""

    @property
    def procedure(self) -> str:
        """That it is a variant of."""
        return "latency" if self is DelayTest.LATENCY_RFC2544 else str(self)

    @property
    def headline(self) -> str:
        return "Packet delay variation" if self is DelayTest.PDV else "Latency"


_DURATION_S = {DelayTest.LATENCY: 120.0, DelayTest.LATENCY_RFC2544: 120.0, DelayTest.PDV: 60.0}
_FROM_S = {DelayTest.LATENCY: 60.0, DelayTest.LATENCY_RFC2544: 60.0, DelayTest.PDV: 0.0}
_TAGGED = {DelayTest.LATENCY: 500, DelayTest.LATENCY_RFC2544: 1, DelayTest.PDV: 0}
_REQUIREMENT = {
    DelayTest.LATENCY: "R8219-07",
    DelayTest.LATENCY_RFC2544: "R2544-24",
    DelayTest.PDV: "R8219-12",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayGoal:
    """At which load, for how long, how often. What is None is as the test's RFC has it; less is told as a
    deviation."""

    test: DelayTest
    rate_fps: float
    """Per direction; the RFCs want the throughput for this frame size."""
    throughput_fps: float | None = None
    """What was measured before, per direction; None if nothing is known of it, which is a deviation."""
    duration_s: float | None = None
    from_s: float | None = None
    """Frames that are due before have no part. None: as the RFC has it, in proportion for a shorter trial."""
    tagged_frames: int | None = None
    repetitions: int = REPETITIONS
    has_variation: bool = False
    """IPDV too (R8219-13)."""
    invalid_retries: int = DEFAULT_INVALID_RETRIES
    """How often an INVALID trial is repeated, if the tester did not offer the load; as in searches."""
    patience: int = DEFAULT_PATIENCE
    """The same if the load was offered, but a moment of the host spoiled the trial."""

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 < self.rate_fps < math.inf:
            raise RequestError(
                f"rate {self.rate_fps} fps: must be greater than 0",
                code="procedure.out-of-range",
                where="rate_fps",
                next_step="Write 1Mfps.",
            )
        if self.repetitions < 1:
            raise RequestError(
                f"{self.repetitions} repetitions: must be at least 1",
                code="procedure.out-of-range",
                where="repetitions",
                next_step=f"The default is {REPETITIONS}.",
            )
        if not 0 < self.length_s < math.inf:
            raise RequestError(
                f"duration {self.length_s} s: must be greater than 0",
                code="procedure.out-of-range",
                where="duration_s",
                next_step="Write 120s.",
            )
        if not 0 <= self.start_s < self.length_s:
            raise RequestError(
                f"delays count from {format_duration(self.start_s)} on, but frames are only"
                f" sent for {format_duration(self.length_s)}",
                code="procedure.delays-after-the-end",
                where="from_s",
                next_step="Count from an earlier time, or send for longer with duration_s.",
            )
        frames = math.floor(self.rate_fps * (self.length_s - self.start_s))
        if not int(self.test is not DelayTest.PDV) <= self.tags <= min(MOST_TAGGED, frames):
            raise RequestError(
                f"{format_count(self.tags)} tagged frames, but only {format_count(frames)} frames"
                f" are sent from {format_duration(self.start_s)} on",
                code="procedure.not-as-many-tags",
                where="tagged_frames",
                next_step=f"Tag 1 to {format_count(min(MOST_TAGGED, frames))} of them.",
            )
        check_attempts(self.invalid_retries, self.patience)

    @property
    def length_s(self) -> float:
        """Of the sending phase."""
        return _DURATION_S[self.test] if self.duration_s is None else self.duration_s

    @property
    def longest_trial_s(self) -> float:
        """Of the sending phase."""
        return self.length_s

    @property
    def start_s(self) -> float:
        """From when on delays count. A shorter trial begins to count sooner, in proportion: of 3 s instead of
        120 s after 1.5 s."""
        if self.from_s is not None:
            return self.from_s
        return _FROM_S[self.test] * min(1.0, self.length_s / _DURATION_S[self.test])

    @property
    def tags(self) -> int:
        return _TAGGED[self.test] if self.tagged_frames is None else self.tagged_frames

    @property
    def is_worst_case_maximum(self) -> bool | None:
        """Whether the 99.9th percentile is the highest of the tagged frames' delays, as of fewer than a
        thousand (RFC 2330, 11.3). None: this test has no worst-case latency."""
        return self.tags < LEAST_FOR_WORST if self.test is DelayTest.LATENCY else None

    @property
    def wish(self) -> DelayWish:
        """For the engine."""
        return DelayWish(from_s=self.start_s, tagged_frames=self.tags, has_variation=self.has_variation)

    @property
    def deviations(self) -> list[Deviation]:
        """Where it asks for less than the RFC, and what is known of the rate."""
        requirement = _REQUIREMENT[self.test]
        found: list[str] = []
        if self.throughput_fps is None:
            found.append(
                "the throughput for this frame size was not measured before; the rate was given by the user"
            )
        elif self.rate_fps != self.throughput_fps:
            side = "above" if self.rate_fps > self.throughput_fps else "below"
            found.append(
                f"the rate is {side} the throughput of {format_count(self.throughput_fps)} fps per direction"
            )
        if self.length_s < _DURATION_S[self.test]:
            found.append(
                f"sent for {format_duration(self.length_s)} instead of"
                f" {format_duration(_DURATION_S[self.test])}"
            )
        if self.start_s < _FROM_S[self.test]:
            found.append(
                f"tagged frames from {format_duration(self.start_s)} on instead of"
                f" {format_duration(_FROM_S[self.test])}"
            )
        if (counted_s := self.length_s - self.start_s) < COUNTED_S:
            found.append(
                f"frames of {format_duration(round(counted_s, 9))} count instead of frames of at"
                f" least {format_duration(COUNTED_S)}"
            )
        if self.tags < _TAGGED[self.test]:
            found.append(f"{self.tags} tagged frames instead of {_TAGGED[self.test]}")
        if self.repetitions < REPETITIONS:
            found.append(f"{self.repetitions} repetitions instead of {REPETITIONS}")
        return [Deviation(requirement=requirement, text=text) for text in found]

    def to_document(self) -> dict[str, Any]:
        return {
            "test": str(self.test),
            "rate_fps_per_direction": self.rate_fps,
            "throughput_fps_per_direction": self.throughput_fps,
            "duration_s": self.length_s,
            "from_s": self.start_s,
            "tagged_frames": self.tags,
            "has_variation": self.has_variation,
            "repetitions": self.repetitions,
            "invalid_retries": self.invalid_retries,
            "patience": self.patience,
        }


Figure = Callable[[Delays], float]


def _typical(delays: Delays) -> float:
    """The median: the mean of the two middle values where they are even in number (R8219-15)."""
    statistics = Statistics.of(delays.tagged_ns)
    return math.nan if statistics is None else statistics.median


def _worst_case(delays: Delays) -> float:
    return percentile(sorted(delays.tagged_ns), 0.999)


def _variation(name: str) -> Figure:
    def figure(delays: Delays) -> float:
        value = None if delays.variation is None else getattr(delays.variation, name)
        return math.nan if value is None else float(value)

    return figure


FIGURES: dict[DelayTest, dict[str, Figure]] = {
    DelayTest.LATENCY: {"typical": _typical, "worst_case": _worst_case},
    DelayTest.LATENCY_RFC2544: {"latency": lambda delays: delays.tagged_ns[0]},
    DelayTest.PDV: {"pdv": lambda delays: delays.pdv_ns},
}
"""What one trial gives of one direction, by the name that documents have for it."""
VARIATION_FIGURES: dict[str, Figure] = {
    "ipdv_min": _variation("min_ns"),
    "ipdv_median": _variation("median_ns"),
    "ipdv_max": _variation("max_ns"),
}


OWN_FIGURES: dict[str, Figure] = {
    **dict.fromkeys(("typical", "latency"), lambda delays: delays.p50_ns),
    "worst_case": lambda delays: delays.p999_ns,
    "pdv": lambda delays: delays.pdv_ns,
    **VARIATION_FIGURES,
}
"""The same figures of the tester's own loop, over every frame of its trial."""
STAMPS = "stamp A is taken by software before the frame is built, not when the frame has been sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayResult:
    """What the repetitions gave, and with what traffic."""

    profile: Profile
    goal: DelayGoal
    repetitions: tuple[tuple[TrialResult, ...], ...]
    """Each with its trials in order; the last one counts, if it is valid."""
    own_loop: OwnLoop = field(default_factory=OwnLoop)
    """What the tester itself adds at this load. It is part of every delay here: nothing is subtracted."""
    hardware_stamps: Mapping[SideName, str] = field(default_factory=dict)
    """What each port offers, as the engine tells: `none` or `unused`. No delay here is of them."""

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """All of them, in order."""
        return tuple(trial for repetition in self.repetitions for trial in repetition)

    @property
    def valid(self) -> tuple[TrialResult, ...]:
        """One for each repetition that the tester managed."""
        return tuple(repetition[-1] for repetition in self.repetitions if repetition[-1].is_valid)

    @property
    def is_complete(self) -> bool:
        """Every repetition has a valid trial."""
        return len(self.valid) == self.goal.repetitions

    @property
    def figures(self) -> dict[str, Figure]:
        """What each trial gives of each direction."""
        return {**FIGURES[self.goal.test], **(VARIATION_FIGURES if self.goal.has_variation else {})}

    def values(self, direction: Direction, figure: str) -> tuple[float, ...]:
        """Of each valid repetition, in ns; infinite where lost frames make it so."""
        return tuple(self.figures[figure](_delays_of(trial.directions[direction])) for trial in self.valid)

    def statistics(self, direction: Direction, figure: str) -> Statistics | None:
        """Over the repetitions; None without a valid one, or where no pair of frames came for a
        difference."""
        values = self.values(direction, figure)
        return None if any(map(math.isnan, values)) else Statistics.of(values)

    def lost_frames(self, direction: Direction) -> int:
        """Over all valid repetitions, of the frames whose delay counts."""
        return sum(_delays_of(trial.directions[direction]).lost_frames for trial in self.valid)

    def left_out(self, direction: Direction) -> tuple[int, int]:
        """How many frames of a repetition have no part in its delays, since the tester was late, and of how
        many: of the repetition with the most of them. Of the tagged frames where these count, else of all."""
        tags, found = self.goal.tags, [_delays_of(trial.directions[direction]) for trial in self.valid]
        counts = [
            (one.left_out_tags, tags) if tags else (one.left_out_frames, one.offered_frames) for one in found
        ]
        return max(counts, default=(0, 0))

    def pdv_resolution_ns(self, direction: Direction) -> float | None:
        """By so much a repetition's PDV may be too high, in ns; None if that is not known of any."""
        found = [_delays_of(trial.directions[direction]).pdv_resolution_ns for trial in self.valid]
        return max((one for one in found if one is not None), default=None)

    def own_loop_figure(self, direction: Direction, figure: str) -> float | None:
        """The same figure of the tester's own loop at this load, in ns; None if that is not known."""
        delays = self.own_loop.delays(direction)
        value = None if delays is None else OWN_FIGURES[figure](delays)
        return None if value is None or math.isnan(value) else value

    @property
    def deviations(self) -> list[Deviation]:
        """From the RFCs, each once."""
        found = [*self.goal.deviations, *plain_deviations(self.trials, self.profile)]
        own = "" if self.own_loop.unknown is None else "; what the tester itself adds is not known"
        found.append(Deviation(requirement=_REQUIREMENT[self.goal.test], text=STAMPS + own))
        for direction in self.profile.directions:
            left_out, count = self.left_out(direction)
            if left_out:
                text = (
                    f"{direction}: up to {left_out} of {count} frames of a repetition are"
                    " excluded from the delays, because the tester was late"
                )
                found.append(Deviation(requirement=_REQUIREMENT[self.goal.test], text=text))
        if not self.is_complete:
            text = f"{len(self.valid)} of {self.goal.repetitions} repetitions had a valid trial"
            found.append(Deviation(requirement=_REQUIREMENT[self.goal.test], text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """All of it, as the verbs' `--json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                attempts_at(self.repetitions), str(self.goal.test), is_full_length=self._is_full_length
            ),
            deviations=self.deviations,
            stamps={"taken_by": "software", "hardware": dict(self.hardware_stamps)},
        )

    def summary(self) -> dict[str, Any]:
        """The part of it that stands in the run file beside the trials. Infinite values are null."""
        return {
            "outcome": self.outcome,
            "figures": {
                direction: {
                    "lost_frames": self.lost_frames(direction),
                    "left_out_frames": self.left_out(direction)[0],
                    **(
                        {"pdv_resolution_ns": self.pdv_resolution_ns(direction)}
                        if "pdv" in self.figures
                        else {}
                    ),
                    **{name: self._figure_document(direction, name) for name in self.figures},
                }
                for direction in self.profile.directions
            },
            "is_worst_case_maximum": self.goal.is_worst_case_maximum,
            "own_loop": self.own_loop.to_document(),
            "verdicts": {str(verdict): sum(t.verdict is verdict for t in self.trials) for verdict in Verdict},
            "goal": self.goal.to_document(),
        }

    @property
    def outcome(self) -> str:
        """`measured`, `tester_limit` if a repetition had no valid trial, or `stopped`."""
        if any(trial.was_stopped for trial in self.trials):
            return "stopped"
        return "measured" if self.is_complete else "tester_limit"

    def average(self, direction: Direction, figure: str) -> float | None:
        """Over the repetitions, in ns: what R2544-24 asks for."""
        values = self.values(direction, figure)
        return sum(values) / len(values) if values else None

    def _figure_document(self, direction: Direction, name: str) -> dict[str, Any] | None:
        statistics = self.statistics(direction, name)
        if statistics is None:
            return None
        interval = statistics.median_interval
        figures = {
            "median_ns": statistics.median,
            "average_ns": self.average(direction, name),
            "minimum_ns": statistics.minimum,
            "maximum_ns": statistics.maximum,
            "percentile_1_ns": statistics.percentile_1,
            "percentile_99_ns": statistics.percentile_99,
        }
        return {
            "count": statistics.count,
            **{key: finite(value) for key, value in figures.items()},
            "median_interval": {
                "low_ns": finite(interval.low),
                "high_ns": finite(interval.high),
                "level": interval.level,
            },
            "values": [finite(value) for value in self.values(direction, name)],
        }

    @property
    def _is_full_length(self) -> bool:
        return self.goal.length_s >= _DURATION_S[self.goal.test]


def measure_delay(
    tester: OpenTester,
    goal: DelayGoal,
    *,
    own_loop: OwnLoop | None = None,
    name: str | None = None,
    on_event: OnEvent = ignore,
    recorder: Recorder | None = None,
) -> DelayResult:
    """All repetitions. A trial with loss counts; an INVALID one is repeated as in searches, and is never
    charged to the DUT.

    Args:
        own_loop: What `measure_own_loop` found at this load before the tester was opened.

    Raises:
        RequestError: The rate is above the line rate.
        EvenhandError: The engine could not make a trial at all.
    """
    choose_maximum(goal.rate_fps, tester.profile, where="rate_fps")
    with recording(
        recorder,
        tester,
        name or str(goal.test),
        kind=str(goal.test),
        procedure=goal.test.procedure,
        goal=goal.to_document(),
    ) as record:
        measurer = tester.measurer(on_event, delays=goal.wish)
        repeat = _Repeat(
            measurer=measurer, goal=goal, on_event=on_event, record=record, overhead_s=measurer.overhead_s
        )
        result = DelayResult(
            profile=tester.profile,
            goal=goal,
            repetitions=repeat.run(),
            own_loop=own_loop or OwnLoop(),
            hardware_stamps={
                side: str(tester.opened[side]["hardware_stamps"]) for side in tester.setup.testbed.ports
            },
        )
        record.finish_with(result.outcome, result.summary())
    return result


def _delays_of(direction: DirectionResult) -> Delays:
    assert direction.delays is not None, "the trial was made without delays"
    return direction.delays


@dataclass(slots=True, kw_only=True)
class _Repeat:
    measurer: LoadMeasurer
    goal: DelayGoal
    on_event: OnEvent
    record: SearchRecord
    overhead_s: float
    repetitions: list[tuple[TrialResult, ...]] = field(default_factory=list)
    attempts: Attempts = field(init=False)

    def __post_init__(self) -> None:
        self.attempts = Attempts(
            measurer=self.measurer,
            on_event=self.on_event,
            record=self.record,
            purpose=str(self.goal.test),
            overhead_s=self.overhead_s,
            invalid_retries=self.goal.invalid_retries,
            patience=self.goal.patience,
        )

    def run(self) -> tuple[tuple[TrialResult, ...], ...]:
        for repetition in range(1, self.goal.repetitions + 1):
            self.repetitions.append(tuple(self._measure(repetition)))
            last = self.repetitions[-1][-1]
            # A tester that does not keep this load will not keep it the next time either.
            if last.was_stopped or not last.is_valid:
                break
        return tuple(self.repetitions)

    def _measure(self, repetition: int) -> Iterator[TrialResult]:
        """Trials of one repetition: the last one is valid, or the goal allows no more of them."""
        goal = self.goal
        return self.attempts.measure(
            what=f"repetition {repetition} of {goal.repetitions}",
            load=Load(rate_fps=goal.rate_fps, duration_s=goal.length_s),
            left=goal.repetitions - repetition + 1,
            is_full_length=goal.length_s >= _DURATION_S[goal.test],
        )
