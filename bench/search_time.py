# SPDX-License-Identifier: Apache-2.0
"""How long a throughput search takes: guided and from what is known, against the plain bisection of 60 s
trials from zero to line rate.

Time is reckoned, not spent: sending and waits of each trial that is made, on simulated devices. Both end with
a bracket no wider than 0.1 % of its upper bound, and with a full-length trial that passed at the lower one.
The goals are multiples of the least time that proves as much.
Needs no engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pieces import at_length, record

from evenhand.search import MlrGoal, MlrGoals, Outcome, ThroughputGoal, ThroughputResult, run_search
from evenhand.trial import RFC_WAITS, EarlyStopper, Measurer, SimulatedMeasurer, TrialResult
from evenhand.trial.simulated import CERTAIN_AFTER_S

LINE_RATE_FPS = 1_488_095.0
"""Gigabit Ethernet, 64 octets."""
PRECISION, FULL_LENGTH_S, SHORT_S = 0.001, 60.0, 1.0
REPETITIONS = at_length(10, 2)
ONE_SEARCH, TEN_SEARCHES = 1.7, 1.2
"""Goals, as multiples of what is possible at all."""
GUIDED = ThroughputGoal(
    max_fps=LINE_RATE_FPS,
    precision=PRECISION,
    duration_s=SHORT_S,
    final_duration_s=FULL_LENGTH_S,
    is_guided=True,
)


@dataclass(slots=True)
class Reckoning:
    """A measurer that adds up what its trials take."""

    measurer: Measurer
    seconds: float = 0.0
    trials: int = 0

    def stop_no_trial_early(self) -> None:
        if isinstance(self.measurer, EarlyStopper):
            self.measurer.stop_no_trial_early()

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = self.measurer.measure(duration_s, rate_fps)
        self.seconds += (result.stopped_early_s or duration_s) + RFC_WAITS.total_s
        self.trials += 1
        return result


def bisect(measurer: Measurer, max_fps: float) -> tuple[float, float]:
    """As test scripts do it: halve what lies between zero and line rate, each time with a full-length
    trial."""
    lower_fps, upper_fps = 0.0, max_fps
    while upper_fps - lower_fps > PRECISION * upper_fps:
        middle_fps = float(math.floor((lower_fps + upper_fps) / 2))
        if measurer.measure(FULL_LENGTH_S, middle_fps).is_pass:
            lower_fps = middle_fps
        else:
            upper_fps = middle_fps
    return lower_fps, upper_fps


def least_repetition_s(device: SimulatedMeasurer) -> float:
    """What no search can do without that gives a bracket of its own: a load that passes in full length, and
    one within the precision that fails. A queue hides that loss until it is full."""
    after_s = SHORT_S
    excess_fps = PRECISION * device.limit_fps + device.buffer_frames / FULL_LENGTH_S
    overflows_after_s = device.buffer_frames / excess_fps
    if overflows_after_s >= SHORT_S:
        after_s = overflows_after_s + CERTAIN_AFTER_S
    return (
        FULL_LENGTH_S + after_s + 2 * RFC_WAITS.total_s
        if device.limit_fps < LINE_RATE_FPS
        else FULL_LENGTH_S + SHORT_S + 2 * RFC_WAITS.total_s
    )


def compare(name: str, make_measurer: Callable[[], SimulatedMeasurer], max_fps: float) -> dict[str, object]:
    """One search and ten, each reckoned against the plain bisection on a device of the same kind."""
    plain, goals = (Reckoning(make_measurer()) for _ in range(2))
    guided, ten = (Reckoning(replace(make_measurer(), stops_when_failed=True)) for _ in range(2))
    truth = bisect(plain, max_fps)
    goal = replace(GUIDED, max_fps=max_fps)
    first = run_search(guided, goal)
    known = first.throughput_fps
    results: list[ThroughputResult] = []
    for _ in range(REPETITIONS):
        result = run_search(ten, replace(goal, known_fps=known if results else None))
        known = result.throughput_fps or known
        results.append(result)
    found = run_search(
        goals,
        MlrGoals(
            goals=(MlrGoal(name="NDR", width=PRECISION), MlrGoal(name="PDR", loss_ratio=0.005)),
            max_fps=max_fps,
        ),
    )
    least_s = least_repetition_s(make_measurer())
    possible_s = (
        least_s + (SHORT_S + RFC_WAITS.total_s if first.upper_fps is not None else 0),
        REPETITIONS * least_s,
    )
    multiples = guided.seconds / possible_s[0], ten.seconds / possible_s[1]
    shares = guided.seconds / plain.seconds, ten.seconds / (REPETITIONS * plain.seconds)
    are_met = multiples[0] <= ONE_SEARCH, multiples[1] <= TEN_SEARCHES
    ended = all(r.outcome in (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM) for r in (first, *results))
    print(
        f"{name:34} plain {plain.trials:3} trials {plain.seconds:6,.0f} s | guided {guided.trials:2} trials"
        f" {guided.seconds:5,.0f} s, "
        f"1/{1 / shares[0]:4.1f}, {multiples[0]:.2f} of the least {'' if are_met[0] else 'NOT MET'}"
        f" | ten {ten.seconds:6,.0f} s, 1/{1 / shares[1]:4.1f}, {multiples[1]:.2f} of the least "
        f"{'' if are_met[1] else 'NOT MET'} | mlr, two goals of 60 s and 120 s {goals.seconds:6,.0f} s"
        f"{'' if ended else ' | a search did not end'}",
        flush=True,
    )
    return {
        "device": name,
        "plain": {
            "seconds": plain.seconds,
            "trials": plain.trials,
            "lower_fps": truth[0],
            "upper_fps": truth[1],
        },
        "guided": {
            "seconds": guided.seconds,
            "trials": guided.trials,
            "throughput_fps": first.throughput_fps,
            "upper_fps": first.upper_fps,
        },
        "ten": {
            "seconds": ten.seconds,
            "trials": ten.trials,
            "throughput_fps": [r.throughput_fps for r in results],
        },
        "mlr": {
            "seconds": goals.seconds,
            "trials": goals.trials,
            "goals": [g.to_document() for g in found.goals],
        },
        "one_share": shares[0],
        "ten_share": shares[1],
        "one_of_least": multiples[0],
        "ten_of_least": multiples[1],
        "is_one_met": are_met[0],
        "is_ten_met": are_met[1],
    }


class StraightKnee(SimulatedMeasurer):
    """Above its knee it loses a tenth of what is added, up to its limit: no parabola that the guide could
    know."""

    def _forwarding_rate_fps(self, rate_fps: float) -> float:
        knee_fps = self.knee_fps or 0
        return min(
            self.limit_fps, rate_fps if rate_fps <= knee_fps else knee_fps + 0.9 * (rate_fps - knee_fps)
        )


SIMULATED: dict[str, Callable[[], SimulatedMeasurer]] = {
    "hard limit": lambda: SimulatedMeasurer(limit_fps=634_567),
    "hard limit, low": lambda: SimulatedMeasurer(limit_fps=123_456),
    "soft knee, narrow": lambda: SimulatedMeasurer(limit_fps=650_000, knee_fps=610_000),
    "soft knee, wide": lambda: SimulatedMeasurer(limit_fps=650_000, knee_fps=500_000),
    "straight knee": lambda: StraightKnee(limit_fps=650_000, knee_fps=610_000),
    "noise, 1 % of the trials": lambda: SimulatedMeasurer(limit_fps=634_567, noise_probability=0.01, seed=2),
    "faster than line rate": lambda: SimulatedMeasurer(limit_fps=2e6),
    "INVALID, 5 % of the trials": lambda: SimulatedMeasurer(
        limit_fps=634_567, invalid_probability=0.05, seed=2
    ),
    "queue of 256 frames": lambda: SimulatedMeasurer(limit_fps=634_567, buffer_frames=256),
    "queue of 2,048 frames": lambda: SimulatedMeasurer(limit_fps=634_567, buffer_frames=2048),
    "queue of 100,000 frames": lambda: SimulatedMeasurer(limit_fps=634_567, buffer_frames=100_000),
}


def main() -> None:
    rows: list[dict[str, Any]] = [compare(name, make, LINE_RATE_FPS) for name, make in SIMULATED.items()]
    record(
        "search_time",
        {"repetitions": REPETITIONS, "precision": PRECISION, "waits_s": RFC_WAITS.total_s, "rows": rows},
        {
            f"{row['device']}, {what} (share of the plain bisection's time)": row[key]
            for row in rows
            for what, key in (("one search", "one_share"), ("ten", "ten_share"))
        },
    )
    missed = [str(row["device"]) for row in rows if not (row["is_one_met"] and row["is_ten_met"])]
    print(f"search_time: {'met everywhere' if not missed else 'not met: ' + ', '.join(missed)}")


if __name__ == "__main__":
    main()
