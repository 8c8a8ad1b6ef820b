# SPDX-License-Identifier: Apache-2.0
"""Procedure: the figures of a test of delays, of each trial and over its repetitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.units import format_count
from evenhand.base.validation.document import to_document
from evenhand.plan import Direction, SideName
from evenhand.procedure.attempts import RepeatedTrials
from evenhand.procedure.descriptor import is_bound_here
from evenhand.procedure.own_loop import OwnLoop
from evenhand.procedure.profile import (
    attempt_documents,
    attempts_at,
    count_verdicts,
    plain_deviations,
    result_document,
)
from evenhand.procedure.statistics import Statistics, finite, percentile
from evenhand.results.delay import (
    DelayFigure,
    DelayFigures,
    DelayFound,
    DelayGoal,
    DelayName,
    DelayTest,
    MedianInterval,
    Stamps,
)
from evenhand.trial import Delays, Deviation, DirectionResult, TrialResult

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


FIGURES: dict[DelayTest, dict[DelayName, Figure]] = {
    DelayTest.LATENCY: {"typical": _typical, "worst_case": _worst_case},
    DelayTest.LATENCY_RFC2544: {"latency": lambda delays: delays.tagged_ns[0]},
    DelayTest.PDV: {"pdv": lambda delays: delays.pdv_ns},
}
"""What one trial gives of one direction, by the name that documents have for it."""
VARIATION_FIGURES: dict[DelayName, Figure] = {
    "ipdv_min": _variation("min_ns"),
    "ipdv_median": _variation("median_ns"),
    "ipdv_max": _variation("max_ns"),
}


OWN_FIGURES: dict[DelayName, Figure] = {
    "typical": lambda delays: delays.p50_ns,
    "latency": lambda delays: delays.p50_ns,
    "worst_case": lambda delays: delays.p999_ns,
    "pdv": lambda delays: delays.pdv_ns,
    **VARIATION_FIGURES,
}
"""The same figures of the tester's own loop, over every frame of its trial."""


def own_loop_figure(trial: TrialResult, direction: Direction, figure: DelayName) -> float | None:
    """A figure of the trial of the own loop, in ns; None if it has none."""
    found = trial.directions.get(direction)
    value = math.nan if found is None or found.delays is None else OWN_FIGURES[figure](found.delays)
    return None if math.isnan(value) else value


STAMPS = "stamp A is taken by software before the frame is built, not when the frame has been sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayResult(RepeatedTrials):
    """Results of the repetitions, with their traffic."""

    goal: DelayGoal
    own_loop: OwnLoop = field(default_factory=OwnLoop)
    """What the tester itself adds at this load. It is included in every delay, and not subtracted."""
    hardware_stamps: Mapping[SideName, str] = field(default_factory=dict)
    """What each port offers, as the engine reports it: `none` or `unused`. Delays do not use these stamps."""

    @property
    def figures(self) -> dict[DelayName, Figure]:
        """Names of the figures that each trial gives for each direction."""
        return {**FIGURES[self.goal.test], **(VARIATION_FIGURES if self.goal.has_variation else {})}

    def values(self, direction: Direction, figure: DelayName) -> tuple[float, ...]:
        """Values of each valid repetition, in ns; infinite if too many frames were lost."""
        return tuple(self.figures[figure](_delays_of(trial.directions[direction])) for trial in self.valid)

    def statistics(self, direction: Direction, figure: DelayName) -> Statistics | None:
        """Statistics over the repetitions; None without a valid one, or if no pair of frames arrived for a
        difference."""
        values = self.values(direction, figure)
        return None if any(map(math.isnan, values)) else Statistics.of(values)

    def lost_frames(self, direction: Direction) -> int:
        """Lost frames in all valid repetitions, among the frames whose delays count."""
        return sum(_delays_of(trial.directions[direction]).lost_frames for trial in self.valid)

    def left_out(self, direction: Direction) -> tuple[int, int]:
        """Frames that are excluded from the delays because the tester was late, and the frames among which
        they were counted, for the repetition with the most of them. Tagged frames are counted if only these
        count, otherwise all frames."""
        tags, found = self.goal.tags, [_delays_of(trial.directions[direction]) for trial in self.valid]
        counts = [
            (one.left_out_tags, tags) if tags else (one.left_out_frames, one.offered_frames) for one in found
        ]
        return max(counts, default=(0, 0))

    def pdv_resolution_ns(self, direction: Direction) -> float | None:
        """By how much a repetition's PDV may be too high, in ns; None if that is not known for any."""
        found = [_delays_of(trial.directions[direction]).pdv_resolution_ns for trial in self.valid]
        return max((one for one in found if one is not None), default=None)

    def own_loop_figure(self, direction: Direction, figure: DelayName) -> float | None:
        """The same figure for the tester's own loop at this load, in ns; None if it is not known."""
        trial = self.own_loop.trial
        return None if trial is None else own_loop_figure(trial, direction, figure)

    @property
    def deviations(self) -> list[Deviation]:
        """Deviations from the RFCs, each once."""
        found = [*self.goal.deviations, *plain_deviations(self.trials, self.profile)]
        known_fps = self.goal.throughput_fps
        if (
            known_fps is not None
            and self.goal.is_throughput_at_least
            and is_bound_here(known_fps, self.profile)
        ):
            text = (
                f"the throughput of {format_count(known_fps)} fps per direction is a lower bound: delays at"
                " the throughput itself may be longer"
            )
            found.append(Deviation(requirement=self.goal.test.requirement, text=text))
        own = "" if self.own_loop.unknown is None else "; what the tester itself adds is not known"
        found.append(Deviation(requirement=self.goal.test.requirement, text=STAMPS + own))
        for direction in self.profile.directions:
            left_out, count = self.left_out(direction)
            if left_out:
                text = (
                    f"{direction}: up to {left_out} of {count} frames of a repetition are"
                    " excluded from the delays, because the tester was late"
                )
                found.append(Deviation(requirement=self.goal.test.requirement, text=text))
        if not self.is_complete:
            text = f"{len(self.valid)} of {self.goal.repetitions} repetitions had a valid trial"
            found.append(Deviation(requirement=self.goal.test.requirement, text=text))
        return sorted(found, key=lambda deviation: deviation.requirement)

    def to_document(self) -> dict[str, Any]:
        """The whole result, as the verbs' `--json` writes it."""
        return result_document(
            self.profile,
            self.summary(),
            trials=self.trials,
            documents=attempt_documents(
                attempts_at(self.repetitions), str(self.goal.test), is_full_length=self.goal.is_full_length
            ),
            deviations=self.deviations,
            stamps=to_document(self.stamps),
        )

    def summary(self) -> dict[str, Any]:
        """The part that is written to the run file in addition to the trials."""
        return to_document(self.found)

    @property
    def stamps(self) -> Stamps:
        """Who stamps a frame's times."""
        return Stamps(hardware=self.hardware_stamps)

    @property
    def found(self) -> DelayFound:
        """What was found, without the trials."""
        return DelayFound(
            outcome=self.outcome,
            figures={
                direction: DelayFigures(
                    lost_frames=self.lost_frames(direction),
                    left_out_frames=self.left_out(direction)[0],
                    pdv_resolution_ns=self.pdv_resolution_ns(direction),
                    of={name: self._over_repetitions(direction, name) for name in self.figures},
                )
                for direction in self.profile.directions
            },
            is_worst_case_maximum=self.goal.is_worst_case_maximum,
            own_loop=self.own_loop.found,
            verdicts=count_verdicts(self.trials),
            goal=self.goal,
            stamps=self.stamps,
        )

    def average(self, direction: Direction, figure: DelayName) -> float | None:
        """Average over the repetitions, in ns, which R2544-24 requires."""
        values = self.values(direction, figure)
        return sum(values) / len(values) if values else None

    def _over_repetitions(self, direction: Direction, name: DelayName) -> DelayFigure | None:
        statistics = self.statistics(direction, name)
        if statistics is None:
            return None
        interval = statistics.median_interval
        return DelayFigure(
            count=statistics.count,
            median_ns=finite(statistics.median),
            average_ns=finite(self.average(direction, name)),
            minimum_ns=finite(statistics.minimum),
            maximum_ns=finite(statistics.maximum),
            percentile_1_ns=finite(statistics.percentile_1),
            percentile_99_ns=finite(statistics.percentile_99),
            median_interval=MedianInterval(
                low_ns=finite(interval.low), high_ns=finite(interval.high), level=interval.level
            ),
            values=tuple(finite(value) for value in self.values(direction, name)),
        )


def _delays_of(direction: DirectionResult) -> Delays:
    assert direction.delays is not None, "the trial was made without delays"
    return direction.delays
