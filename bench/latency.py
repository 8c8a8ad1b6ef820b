# SPDX-License-Identifier: Apache-2.0
"""Latency against the reference router's known delays, at 10, 50 and 90 % load; the exit code is 1 if one is
off, or is not judged.

A row for each IP version, load and delay: the median less the set delay, beside the median of the tester's
own loop at the same load and that of the router's passage without a delay, which has a cable more than the
loop. PDV of a delay of two points is held against their distance: off by no more than a histogram's bucket
and what PDV is without the second point. A host that takes CPUs away spoils any of it: run it on a quiet one.
Where PDV without the second point is no small part of the distance, nothing can be said, and the row says
that (`is_right` is null).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from pieces import IS_SHORT, at_length, record

from evenhand.plan import AddressPlan, Direction, make_plan
from evenhand.procedure import (
    DUT_WAY,
    CeilingGoal,
    DelayGoal,
    DelayTest,
    OpenTestbed,
    OwnLoop,
    measure_ceiling,
    measure_delay,
    measure_own_loop,
    open_tester,
)
from evenhand.reference import LongerDelay, ReferenceDut, reference_router
from evenhand.rig import make_reference_setup
from evenhand.trial import Delays, Limits, Waits

PLANS = ("gateway-v4", "gateway-v6")
SHARES = (0.1,) if IS_SHORT else (0.1, 0.5, 0.9)
DELAYS_US = (100.0,) if IS_SHORT else (10.0, 100.0, 1000.0, 10_000.0)
POINTS_US = (500.0,) if IS_SHORT else (500.0, 5000.0)
"""Distances of delays of two points."""
LONGER_EVERY = 100
"""One frame in so many: ten times more than what the 99.9th percentile leaves out."""
MOST_FPS = 1e6
"""More than the router can keep for 10 ms says nothing of delays."""
WITHIN_US = 5.0
"""For software ports; 1 us where ports stamp by themselves, which none here does."""
BUCKET = 0.001
"""Largest relative width of a bucket of the histogram."""
QUIET = 0.1
"""The largest share of the distance: with a larger spread the host has said nothing of PDV."""
TAGGED = 500
"""Frames whose delays are known exactly (R8219-07): a bucket of the histogram is 10 us wide at 10 ms."""
ATTEMPTS = at_length(5, 1)
"""A host that takes CPUs away for a millisecond spoils one; an untrue tester would spoil all."""
WAITS = Waits(after_routing_s=0.05, after_learning_s=0.1, residual_s=0.25, restabilize_s=0.1)
LIMITS = Limits(offered_tolerance=0.001, overdue_after_us=5_000, overdue_tolerance=0.02)
FORWARD: tuple[Direction, ...] = ("forward",)
CEILING = CeilingGoal(max_fps=MOST_FPS, min_fps=None, duration_s=1.0, precision=0.05)


def full_load_fps(plan: AddressPlan) -> float:
    """What is called 100 %: the highest load, to MOST_FPS, that router and tester carry on this machine."""
    with reference_router(plan, ReferenceDut()) as router:
        setup = make_reference_setup(router)
        opened = open_tester(
            setup, plan, frame_size=plan.smallest_frame_size, seed=1, directions=FORWARD, engine=None
        )
        with opened as tester:
            entry = measure_ceiling(
                tester, setup.testbed.tester.cpus, CEILING, way=DUT_WAY, limits=LIMITS, ending_losses=2
            )
    if entry.ceiling.rate_fps is None:
        sys.exit(
            f"latency: {plan.name}: this machine keeps no load; the last trial said"
            f" {entry.ceiling.trials[-1].reasons}"
        )
    return entry.ceiling.rate_fps


def delays_of(plan: AddressPlan, dut: ReferenceDut, rate_fps: float, duration_s: float) -> Delays | None:
    """Over every frame of one valid trial; None if the tester made none."""
    goal = DelayGoal(
        test=DelayTest.PDV, rate_fps=rate_fps, duration_s=duration_s, repetitions=1, tagged_frames=TAGGED
    )
    with reference_router(plan, dut) as router:
        bed = OpenTestbed(setup=make_reference_setup(router))
        with bed.tester(plan=plan, directions=FORWARD, waits=WAITS, limits=LIMITS) as tester:
            found = measure_delay(tester, goal)
    return found.valid[0].directions["forward"].delays if found.valid else None


def own_loop_of(plan: AddressPlan, rate_fps: float, duration_s: float) -> OwnLoop:
    with reference_router(plan, ReferenceDut()) as router:
        return measure_own_loop(
            make_reference_setup(router),
            plan,
            rate_fps=rate_fps,
            duration_s=duration_s,
            frame_size=plan.smallest_frame_size,
            directions=FORWARD,
            limits=LIMITS,
        )


def tried(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Again until it is right: that row, or else the last that was judged, or the last; and how many there
    were."""
    rows: list[dict[str, Any]] = []
    for _ in range(ATTEMPTS):
        rows.append(measure())
        if rows[-1]["is_right"]:
            break
    row = next((each for each in reversed(rows) if each["is_right"] is not None), rows[-1])
    row = {**row, "attempts": len(rows)}
    print({True: "right", False: "WRONG", None: "NOT JUDGED"}[row["is_right"]], row, flush=True)
    return row


def rows_of(plan: AddressPlan, share: float, rate_fps: float, duration_s: float) -> Iterator[dict[str, Any]]:
    def micro(value_ns: float | None) -> float | None:
        return None if value_ns is None else round(value_ns / 1e3, 3)

    def known(delay_us: float) -> dict[str, Any]:
        own = own_loop_of(plan, rate_fps, duration_s).delays("forward")
        passage = delays_of(plan, ReferenceDut(), rate_fps, duration_s)
        found = delays_of(plan, ReferenceDut(extra_delay_us=delay_us), rate_fps, duration_s)
        row = {**case, "delay_us": delay_us, "own_loop_median_us": micro(own.p50_ns if own else None)}
        if passage is None or found is None:
            return {**row, "is_right": False, "what": "no valid trial"}
        median_ns, passage_ns = median(found.tagged_ns), median(passage.tagged_ns)
        beyond_us = median_ns / 1e3 - delay_us
        off_us = beyond_us - passage_ns / 1e3
        return {
            **row,
            "median_us": micro(median_ns),
            "beyond_delay_us": round(beyond_us, 3),
            "passage_median_us": micro(passage_ns),
            "off_us": round(off_us, 3),
            "lost_frames": found.lost_frames,
            "is_right": abs(off_us) <= WITHIN_US,
        }

    def two_points(distance_us: float) -> dict[str, Any]:
        longer = LongerDelay(every=LONGER_EVERY, us=distance_us)
        row = {**case, "distance_us": distance_us}
        one_point = delays_of(plan, ReferenceDut(extra_delay_us=100), rate_fps, duration_s)
        found = delays_of(plan, ReferenceDut(extra_delay_us=100, longer_delay=longer), rate_fps, duration_s)
        if one_point is None or found is None:
            return {**row, "is_right": False, "what": "no valid trial"}
        bucket_us = BUCKET * found.p999_ns / 1e3
        pdv_us, spread_us = found.pdv_ns / 1e3, one_point.pdv_ns / 1e3
        return {
            **row,
            "pdv_us": round(pdv_us, 3),
            "pdv_of_one_point_us": round(spread_us, 3),
            "bucket_us": round(bucket_us, 3),
            "is_right": None
            if spread_us >= QUIET * distance_us
            else distance_us - bucket_us <= pdv_us <= distance_us + bucket_us + spread_us,
        }

    case = {"plan": plan.name, "load": share, "rate_fps": rate_fps}
    for delay_us in DELAYS_US:
        yield tried(partial(known, delay_us))
    for distance_us in POINTS_US:
        yield tried(partial(two_points, distance_us))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--duration",
        type=float,
        default=at_length(0.5, 0.1),
        help="seconds of each trial; short ones fall between two stalls",
    )
    parser.add_argument(
        "--load",
        type=float,
        action="append",
        help="share of the full load; may be repeated; default: 0.1, 0.5, 0.9",
    )
    parser.add_argument("--no-record", action="store_true", help="write no bench/results/latency.json")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in PLANS:
        plan = make_plan(name)
        full_fps = full_load_fps(plan)
        print(f"{name}: 100 % are {full_fps:,.0f} fps, one direction", flush=True)
        for share in options.load or SHARES:
            rows += rows_of(plan, share, round(full_fps * share), options.duration)
    counts = {answer: sum(row["is_right"] is answer for row in rows) for answer in (True, False, None)}
    if not options.no_record:
        off_us = [abs(row["off_us"]) for row in rows if "off_us" in row]
        record(
            "latency",
            {"duration_s": options.duration, "within_us": WITHIN_US, "cases": rows},
            {
                "rows that are right": counts[True],
                "rows that are wrong": counts[False],
                "rows that the host let not be judged": counts[None],
                **({"median off the known delay, worst (us)": max(off_us)} if off_us else {}),
            },
        )
    print(
        f"latency: of {len(rows)} rows {counts[True]} are right, {counts[False]} WRONG; the host let"
        f" {counts[None]} not be judged"
    )
    return 0 if IS_SHORT or counts[True] == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
