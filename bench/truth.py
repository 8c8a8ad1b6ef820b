# SPDX-License-Identifier: Apache-2.0
"""Against the reference router, whose truth is known: throughput, latency, defects. `make prove` runs it; the
exit code is 1 if one is off.

Throughput: within 0.5 % of the predicted one, for both hash types, one address pair and many addresses, both
IP versions, one and both directions. Latency: the median within 5 us of a known delay plus the loop without
it. Defects: one of each among 10^6, counted exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

from pieces import record

from evenhand.plan import AddressPlan, Direction, make_plan
from evenhand.predict import DeviceModel, HashType, predict
from evenhand.procedure import open_tester
from evenhand.reference import Defects, ReferenceDut, ReferenceRouter, reference_router
from evenhand.rig import make_reference_setup
from evenhand.search import Outcome, ThroughputGoal, find_throughput
from evenhand.trial import EngineMeasurer, Limits, TrialResult, Waits

ELEMENTS, ELEMENT_FPS = 16, 50_000.0
DURATION_S = 5.0
QUEUE_FRAMES = 800
"""0.3 % of the 250,000 frames of an element in a trial: so much of an overload a queue can hide. Pseudorandom
arrivals vary by 0.2 %."""
WITHIN = 0.005
LATENCY_WITHIN_US = 5.0
ATTEMPTS = 3
"""A host that takes CPUs away can spoil a search; an untrue tester would spoil all."""
WAITS = Waits(after_routing_s=0.05, after_learning_s=0.1, residual_s=0.25, restabilize_s=0.1)
LIMITS = Limits(offered_tolerance=0.001, overdue_after_us=5_000, overdue_tolerance=0.02)
BOTH: tuple[Direction, ...] = ("forward", "reverse")
FORWARD: tuple[Direction, ...] = ("forward",)


@contextmanager
def measurer(
    router: ReferenceRouter, plan: AddressPlan, directions: tuple[Direction, ...], limits: Limits = LIMITS
) -> Iterator[EngineMeasurer]:
    setup = make_reference_setup(router)
    with open_tester(
        setup, plan, frame_size=plan.smallest_frame_size, seed=1, directions=directions, engine=None
    ) as tester:
        yield EngineMeasurer(session=tester.session, directions=directions, waits=WAITS, limits=LIMITS)


def find(
    plan: AddressPlan, model: DeviceModel, directions: tuple[Direction, ...]
) -> tuple[float | None, float]:
    """Found and predicted, fps per direction."""
    predicted_fps = predict(plan, model, directions).throughput_fps
    assert predicted_fps is not None
    goal = ThroughputGoal(
        max_fps=round(predicted_fps * 1.3),
        precision=0.002,
        duration_s=DURATION_S,
        final_duration_s=DURATION_S,
        loss_verifications=1,
        plain_loss_ratio=0.02,
        invalid_retries=6,
    )
    with (
        reference_router(plan, ReferenceDut(model=model)) as router,
        measurer(router, plan, directions) as measure,
    ):
        result = find_throughput(measure, goal, overhead_s=measure.overhead_s)
    return (result.throughput_fps if result.outcome is Outcome.FOUND else None), predicted_fps


def tell(is_right: bool, text: str) -> None:
    print("right" if is_right else "WRONG", text, flush=True)


def throughput() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    hashes: tuple[HashType, ...] = ("type1", "type2")
    for name, hosts, hash_type, directions in product(
        ("gateway_v4", "gateway_v6"), (1, None), hashes, (BOTH, FORWARD)
    ):
        plan, model = (
            make_plan(name, hosts),
            DeviceModel(
                elements=ELEMENTS, hash_type=hash_type, rate_fps=ELEMENT_FPS, queue_frames=QUEUE_FRAMES
            ),
        )
        for attempt in range(1, ATTEMPTS + 1):  # noqa: B007 - told afterwards
            found_fps, predicted_fps = find(plan, model, directions)
            is_right = found_fps is not None and abs(found_fps / predicted_fps - 1) <= WITHIN
            if is_right:
                break
        shown = (
            "no number"
            if found_fps is None
            else f"{found_fps:10,.0f} ({100 * (found_fps / predicted_fps - 1):+.2f} %)"
        )
        what = (
            f"{name} {'one pair' if hosts == 1 else 'all hosts'} {hash_type} {len(directions)} direction(s)"
        )
        print(
            f"{'right' if is_right else 'WRONG'}  {what:52} found {shown}, predicted {predicted_fps:10,.0f}"
            f" fps, attempt {attempt}",
            flush=True,
        )
        rows.append(
            {
                "case": what,
                "found_fps": found_fps,
                "predicted_fps": predicted_fps,
                "attempts": attempt,
                "is_right": is_right,
            }
        )
    return rows


def one_trial(
    plan: AddressPlan, dut: ReferenceDut, rate_fps: float, duration_s: float
) -> tuple[TrialResult, dict[str, int]]:
    with reference_router(plan, dut) as router, measurer(router, plan, BOTH) as measure:
        result = measure.measure(duration_s, rate_fps)
        counters = router.counters()
    return result, {side: counters[side]["transmit_dropped_frames"] for side in ("left", "right")}


def latency() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, delay_us in product(("gateway_v4", "gateway_v6"), (100.0, 1000.0)):
        plan = make_plan(name)
        for attempt in range(1, ATTEMPTS + 1):  # noqa: B007 - told afterwards
            medians = []
            for extra_delay_us in (0.0, delay_us):
                result, _ = one_trial(plan, ReferenceDut(extra_delay_us=extra_delay_us), 20_000, 5)
                of_directions_ns = [
                    p50_ns
                    for direction in result.directions.values()
                    if (p50_ns := direction.latency.p50_ns) is not None
                ]
                assert len(of_directions_ns) == len(BOTH), "a direction without a single frame has no median"
                medians.append(max(of_directions_ns) / 1000)
            error_us = medians[1] - medians[0] - delay_us
            is_right = abs(error_us) <= LATENCY_WITHIN_US
            if is_right:
                break
        tell(
            is_right,
            f"{name} delay {delay_us:g} us: median {medians[1]:.1f} us, loop {medians[0]:.1f} us, off by"
            f" {error_us:+.1f} us",
        )
        rows.append(
            {
                "case": f"{name} {delay_us} us",
                "medians_us": medians,
                "error_us": error_us,
                "attempts": attempt,
                "is_right": is_right,
            }
        )
    return rows


def defects() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    at: dict[str, tuple[int, ...]] = {
        "loss": (100_000,),
        "duplication": (200_000,),
        "reordering": (300_000,),
        "corruption": (400_000,),
    }
    wanted = {"lost": 2, "duplicated": 1, "reordered": 1, "corrupted": 1, "foreign": 0}
    for name in ("gateway_v4", "gateway_v6"):
        for attempt in range(1, ATTEMPTS + 1):  # noqa: B007 - told afterwards
            result, refused = one_trial(make_plan(name), ReferenceDut(defects=Defects(at=at)), 50_000, 10)
            seen = {
                kind: sum(getattr(direction, f"{kind}_frames") for direction in result.directions.values())
                for kind in wanted
            }
            is_right = (
                seen == wanted
                and sum(direction.offered_frames for direction in result.directions.values()) == 1_000_000
            )
            if is_right:
                break
        tell(
            is_right,
            f"{name} one of each defect among 1,000,000: {seen} (the corrupted one is missing too), refused"
            f" {refused}",
        )
        rows.append({"case": name, "seen": seen, "attempts": attempt, "is_right": is_right})
    return rows


def main() -> int:
    parts = {"defects": defects, "latency": latency, "throughput": throughput}
    results = {name: part() for name, part in parts.items() if name in (sys.argv[1:] or parts)}
    wrong = [row["case"] for rows in results.values() for row in rows if not row["is_right"]]
    record("truth", results, {"wrong rows": len(wrong)})
    print(f"truth: {'all right' if not wrong else 'WRONG: ' + ', '.join(map(str, wrong))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
