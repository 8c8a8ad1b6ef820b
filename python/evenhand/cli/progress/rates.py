# SPDX-License-Identifier: Apache-2.0
"""Live progress: the rates of a trial, from what the engine says twice a second that it has counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evenhand.base.units import format_duration, format_rate, format_ratio
from evenhand.plan import Direction
from evenhand.procedure import TrialPhase
from evenhand.procedure.events import SoFar

OVER_S = 0.9
"""A rate is of so long or longer: events come twice a second, and not to the millisecond."""
SENDING = "sending"
ARROWS: dict[Direction, str] = {"forward": "→", "reverse": "←"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One direction, of the last second."""

    offered_fps: float
    received_fps: float
    so_far: SoFar


@dataclass(slots=True)
class Rates:
    """Rates of one trial, while it is made."""

    directions: dict[Direction, Rate] = field(default_factory=dict)
    """Empty as long as nothing was sent for about a second."""
    _before: TrialPhase | None = None
    _noted_s: float = 0.0

    def note(self, phase: TrialPhase) -> bool:
        """What the engine says; whether there is a new second of it."""
        if self._before is not None and phase.elapsed_s < self._before.elapsed_s:
            self._before = None  # another trial
            self.directions = {}
        if not phase.directions:
            return False
        if phase.phase != SENDING:
            # What is sent no more has no rate; what was lost is known a residual wait later.
            self.directions = {
                direction: replace(rate, so_far=phase.directions.get(direction, rate.so_far))
                for direction, rate in self.directions.items()
            }
            return self._is_next_second(phase)
        if self._before is None:
            self._before, self._noted_s = phase, phase.elapsed_s
            return False
        seconds = phase.elapsed_s - self._before.elapsed_s
        if not self._is_next_second(phase):
            return False
        before, self._before = self._before.directions, phase
        self.directions = {
            direction: Rate(
                offered_fps=(so_far.sent_frames - before[direction].sent_frames) / seconds,
                received_fps=(so_far.received_frames - before[direction].received_frames) / seconds,
                so_far=so_far,
            )
            for direction, so_far in phase.directions.items()
            if direction in before
        }
        return True

    def _is_next_second(self, phase: TrialPhase) -> bool:
        if phase.elapsed_s - self._noted_s < OVER_S:
            return False
        self._noted_s = phase.elapsed_s
        return True


def direction_texts(rates: Rates) -> tuple[str, str, str, str]:
    """Both directions with ever fewer words; empty if there is nothing to say yet."""
    long = " · ".join(
        f"{ARROWS[direction]} offered {format_rate(rate.offered_fps)}, received"
        f" {format_rate(rate.received_fps)}, loss {_loss(rate)}"
        f"{_latency(rate, ', latency ')}"
        for direction, rate in rates.directions.items()
    )
    short = " · ".join(
        f"{ARROWS[direction]} {_both(rate)}, loss {_loss(rate)}{_latency(rate, ', ')}"
        for direction, rate in rates.directions.items()
    )
    shortest = " ".join(
        f"{ARROWS[direction]}{_both(rate)} lost {_close(_loss(rate))}"
        for direction, rate in rates.directions.items()
    )
    shorter = " ".join(
        f"{ARROWS[direction]}{_both(rate)} lost {_close(_loss(rate))} {_close(_latency(rate, ''))}".rstrip()
        for direction, rate in rates.directions.items()
    )
    return long, short, shorter, shortest


def _close(text: str) -> str:
    return text.replace(" ", "")


def _both(rate: Rate) -> str:
    """Offered and received, with the unit once if it is the same."""
    offered, received = (
        format_rate(_three_digits(rate.offered_fps)),
        format_rate(_three_digits(rate.received_fps)),
    )
    (number, _, unit), (_, _, other) = offered.partition(" "), received.partition(" ")
    return f"{number if unit == other else offered}>{received}"


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _loss(rate: Rate) -> str:
    """Loss of what has settled: the residual wait has to pass before anything is known to be lost."""
    ratio = rate.so_far.loss_ratio
    return "?" if ratio is None else format_ratio(_three_digits(ratio))


def _latency(rate: Rate, before: str) -> str:
    mean_ns = rate.so_far.mean_latency_ns
    return "" if mean_ns is None else f"{before}{format_duration(_three_digits(mean_ns / 1e9))}"
