# SPDX-License-Identifier: Apache-2.0
"""How long a search takes on the reference router, beside the same search on a simulated device of the same
limit and queue, and beside the plain bisection (`search_time.py`).

Trials are real, 60 s for the confirmation; their time is reckoned as in `search_time.py`: sending, and the
waits of RFC 2544, of which the bench makes the others shorter than that for residual frames. INVALID trials,
which are this machine's doing, are reckoned apart. Ten repetitions, the first argument or what is usual, take
twenty minutes for each IP version.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

from pieces import record
from search_time import GUIDED, REPETITIONS, Reckoning, bisect
from truth import WAITS as SHORT_WAITS

from evenhand.plan import AddressPlan, Direction, gateway_v4, gateway_v6
from evenhand.predict import DeviceModel, predict
from evenhand.procedure import open_tester
from evenhand.reference import ReferenceDut, reference_router
from evenhand.rig import make_reference_setup
from evenhand.search import ThroughputResult, run_search
from evenhand.trial import RFC_WAITS, EngineMeasurer, Limits, SimulatedMeasurer, TrialResult, describe_reasons

MODEL = DeviceModel(elements=1, hash_type="type2", rate_fps=50_000.0, queue_frames=2_048)
"""One element, so that its limit is as sharp as that of the simulated device. Its queue outlasts 40 ms in
which this machine takes the sender's CPU away; one of 256 frames lost frames to a twentieth of that."""
MAX_FPS = 120_000.0
FORWARD: tuple[Direction, ...] = ("forward",)
LIMITS = Limits(offered_tolerance=0.0005, overdue_after_us=5_000, overdue_tolerance=0.02)
WAITS = replace(SHORT_WAITS, residual_s=RFC_WAITS.residual_s)
"""A frame is lost once the residual wait has passed, so a trial that stops early has sent for as long behind
its first loss; a shorter wait would leave doubts that RFC 2544's does not."""
GOAL = replace(GUIDED, max_fps=MAX_FPS, invalid_retries=10, patience=20)
WITHIN = 1.2
"""The largest multiple of the time on the simulated device."""


@dataclass(slots=True)
class RealReckoning:
    """As `Reckoning`, but what this machine spoiled counts apart."""

    measurer: EngineMeasurer
    seconds: float = 0.0
    trials: int = 0
    invalid_seconds: float = 0.0
    loads: list[dict[str, Any]] = field(default_factory=list)

    def stop_no_trial_early(self) -> None:
        self.measurer.stop_no_trial_early()

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        result = self.measurer.measure(duration_s, rate_fps)
        took_s = (result.stopped_early_s or duration_s) + RFC_WAITS.total_s
        if result.is_valid:
            self.seconds += took_s
            self.trials += 1
        else:
            self.invalid_seconds += took_s
        print(
            f"  {rate_fps:.0f} fps for {took_s - RFC_WAITS.total_s:.1f} s: {result.verdict}"
            f" {describe_reasons(result.reasons)}".rstrip(),
            flush=True,
        )
        self.loads.append(
            {
                "rate_fps": rate_fps,
                "took_s": took_s,
                "verdict": result.verdict,
                "loss_ratio": result.loss_ratio,
            }
        )
        return result


def search(measurer: Any, known_fps: float | None = None) -> ThroughputResult:
    """One search; each may stop its trials early anew."""
    measurer.measurer.stops_when_failed = True
    result = run_search(measurer, replace(GOAL, known_fps=known_fps))
    assert isinstance(result, ThroughputResult)
    return result


def many(measurer: Any, count: int) -> tuple[float, list[float | None]]:
    """Seconds of the first search, and what each of `count` found."""
    found: list[float | None] = []
    known, first_s = None, 0.0
    for number in range(count):
        result = search(measurer, known)
        known = result.throughput_fps or known
        found.append(result.throughput_fps)
        if number == 0:
            first_s = measurer.seconds
        print(f"  search {number + 1}: {result.outcome}, {result.throughput_fps}", flush=True)
    return first_s, found


def compare(plan: AddressPlan, repetitions: int) -> dict[str, Any]:
    limit_fps = predict(plan, MODEL, FORWARD).throughput_fps
    assert limit_fps is not None

    def simulated() -> SimulatedMeasurer:
        return SimulatedMeasurer(limit_fps=limit_fps, buffer_frames=MODEL.queue_frames or 0)

    plain, ideal = Reckoning(simulated()), Reckoning(simulated())
    bisect(plain, MAX_FPS)
    ideal_first_s, _ = many(ideal, repetitions)
    with reference_router(plan, ReferenceDut(model=MODEL)) as router:
        setup = make_reference_setup(router)
        with open_tester(
            setup, plan, frame_size=plan.smallest_frame_size, seed=1, directions=FORWARD, engine=None
        ) as tester:
            measure = EngineMeasurer(session=tester.session, directions=FORWARD, waits=WAITS, limits=LIMITS)
            real = RealReckoning(measure)
            first_s, found = many(real, repetitions)
    row = {
        "plan": plan.name,
        "limit_fps": limit_fps,
        "plain_s": plain.seconds,
        "simulated": {"one_s": ideal_first_s, "all_s": ideal.seconds},
        "router": {
            "one_s": first_s,
            "all_s": real.seconds,
            "invalid_s": real.invalid_seconds,
            "throughput_fps": found,
            "trials": real.loads,
        },
        "one_share": first_s / plain.seconds,
        "all_share": real.seconds / (repetitions * plain.seconds),
        "one_of_simulated": first_s / ideal_first_s,
        "all_of_simulated": real.seconds / ideal.seconds,
    }
    is_met = max(first_s / ideal_first_s, real.seconds / ideal.seconds) <= WITHIN
    print(
        f"{plan.name}: one search {first_s:.0f} s, 1/{plain.seconds / first_s:.1f} of the plain bisection,"
        f" {first_s / ideal_first_s:.2f} of the simulated one | {repetitions}: {real.seconds:.0f} s,"
        f" 1/{repetitions * plain.seconds / real.seconds:.1f}, {real.seconds / ideal.seconds:.2f}"
        f" | INVALID {real.invalid_seconds:.0f} s | {'met' if is_met else 'NOT MET'}",
        flush=True,
    )
    return row


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS
    rows = [compare(plan, repetitions) for plan in (gateway_v4(), gateway_v6())]
    record(
        "router_search",
        {"repetitions": repetitions, "waits_s": RFC_WAITS.total_s, "rows": rows},
        {
            f"{row['plan']}, {what} (time of the simulated one)": row[key]
            for row in rows
            for what, key in (("one search", "one_of_simulated"), ("all", "all_of_simulated"))
        },
    )


if __name__ == "__main__":
    main()
