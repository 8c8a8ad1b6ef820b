# SPDX-License-Identifier: Apache-2.0
"""Clean time beside stalls: what a host finds that takes its CPUs away, beside what it finds when quiet.

The DUT is the reference router with a set capacity and a queue of 16 to 100,000 frames, on one CPU; the
tester is on another. Stalls of 1 to 150 ms take one of the two away every 0.2 to 2 s (root only).

    capacity   a search beside stalls, and one without: what is found, its time, how many trials are INVALID
    verdicts   trials at 0.98 of the capacity, of which none may be FAIL, and at 1.02: none may be PASS
    losses     devices that lose at random, by the clock, and only behind a pause of the tester

    python clean_time.py [PART...] [trials=N] [seed=N] [queues=N,M] [seconds=S]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pieces import IS_SHORT, record

from evenhand.plan import AddressPlan, Direction, gateway_v4, gateway_v6
from evenhand.predict import DeviceModel
from evenhand.procedure import open_tester
from evenhand.reference import Defects, ReferenceDut, Stall, reference_router
from evenhand.rig import make_reference_setup
from evenhand.search import ThroughputGoal, ThroughputResult, find_throughput
from evenhand.trial import CLEAN_AT_MOST, EngineMeasurer, Limits, TrialResult, Verdict, Waits

BOTH: tuple[Direction, ...] = ("forward", "reverse")
CAPACITY_FPS = 40_000.0
"""The capacity of the router's one element, in both directions together."""
LOAD_FPS = CAPACITY_FPS / 2
"""The load of each direction that the element serves."""
QUEUES = (16, 256, 4_096, 100_000)
DURATION_S = 5.0
"""The duration of the trial that confirms, at least."""
QUEUE_TIMES = 24
"""So many times longer than the router takes for a full queue, at least."""
SHORTEST_RESIDUAL_S = 0.5
CPUS = sorted(os.sched_getaffinity(0))[:2]
"""Those of tester and router, read before a tester is open: then this process keeps to one of them."""
STALL = Path(__file__).parents[1] / "tests" / "stall.py"
GAP_MS = 1_100.0
SHORTEST_MS, LONGEST_MS = 1.0, 150.0
WITHIN = 0.003
PRECISION = 0.001
"""A third of what two searches may differ by: each of them is off by as much."""
MOST_INVALID = 0.1
MOST_TIME = 1.5


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the host does meanwhile."""

    is_quiet: bool
    seed: int = 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        if self.is_quiet:
            yield
            return
        numbers = [
            ",".join(map(str, CPUS)),
            "36000",
            str(GAP_MS),
            str(self.seed),
            str(SHORTEST_MS),
            str(LONGEST_MS),
        ]
        with subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, str(STALL), *numbers],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                time.sleep(0.2)
                if process.poll() is not None:
                    sys.exit("clean_time: stalls need root")
                yield
            finally:
                process.kill()


def queue_of(dut: ReferenceDut) -> int | None:
    """In frames; None without a limited queue."""
    return None if dut.model is None else dut.model.queue_frames


def limits_for(dut: ReferenceDut) -> Limits:
    """A burst that fills a third of the router's queue is one."""
    queue_frames = queue_of(dut)
    after_us = None if queue_frames is None else min(1_000.0, queue_frames / CAPACITY_FPS / 3 * 1e6)
    return Limits(
        offered_tolerance=0.001,
        overdue_after_us=after_us,
        overdue_tolerance=0.05,
        clean_at_most=CLEAN_AT_MOST,
    )


def waits_for(dut: ReferenceDut) -> Waits:
    """A full queue is forwarded before the trial ends: otherwise what is still in it counts as lost."""
    residual_s = max(SHORTEST_RESIDUAL_S, 1.2 * (queue_of(dut) or 0) / CAPACITY_FPS)
    return Waits(after_routing_s=0.0, after_learning_s=0.05, residual_s=residual_s, restabilize_s=0.0)


@contextmanager
def measurer(plan: AddressPlan, dut: ReferenceDut) -> Iterator[EngineMeasurer]:
    with (
        reference_router(plan, dut) as router,
        open_tester(
            make_reference_setup(router),
            plan,
            frame_size=plan.smallest_frame_size,
            seed=1,
            directions=BOTH,
            engine=None,
        ) as tester,
    ):
        yield EngineMeasurer(
            session=tester.session, directions=BOTH, waits=waits_for(dut), limits=limits_for(dut)
        )


def device(queue_frames: int) -> DeviceModel:
    return DeviceModel(elements=1, hash_type="type2", rate_fps=CAPACITY_FPS, queue_frames=queue_frames)


def search(measure: EngineMeasurer, queue_frames: int) -> tuple[ThroughputResult, float]:
    """What was found, and how long it took."""
    final_s = max(DURATION_S, QUEUE_TIMES * queue_frames / CAPACITY_FPS)
    goal = ThroughputGoal(
        max_fps=2 * LOAD_FPS, precision=PRECISION, duration_s=1.0, final_duration_s=final_s, is_guided=True
    )
    begin = time.monotonic()
    result = find_throughput(measure, goal, overhead_s=measure.overhead_s)
    return result, time.monotonic() - begin


def queues_asked() -> tuple[int, ...]:
    asked = next((each.removeprefix("queues=") for each in sys.argv[1:] if each.startswith("queues=")), "")
    return tuple(map(int, asked.split(","))) if asked else QUEUES[:1] if IS_SHORT else QUEUES


def row_of(result: ThroughputResult, seconds: float) -> dict[str, Any]:
    trials = [each.result for each in result.trials]
    verdicts = Counter(str(trial.verdict) for trial in trials)
    clean = [trial.clean for trial in trials if trial.is_judged_by_clean_time]
    sent_s = sum(each.sent_s for each in clean if each)
    return {
        "outcome": str(result.outcome),
        "throughput_fps": result.throughput_fps,
        "confirmed_s": DURATION_S if result.final_trial is None else result.final_trial.sent_s,
        "seconds": seconds,
        "verdicts": dict(verdicts),
        "invalid_share": verdicts["INVALID"] / len(trials),
        "left_out_share": 1 - sum(each.clean_s for each in clean if each) / sent_s if sent_s else 0.0,
        "reasons": dict(Counter(reason.code for trial in trials for reason in trial.reasons)),
    }


def capacity(seed: int, _: int) -> tuple[list[dict[str, Any]], list[str]]:
    rows, wrong = [], []
    for plan in (gateway_v4(), gateway_v6()):
        for queue_frames in queues_asked():
            found = {}
            with measurer(plan, ReferenceDut(model=device(queue_frames))) as measure:
                for name, host in (
                    ("quiet", Host(is_quiet=True)),
                    ("stalls", Host(is_quiet=False, seed=seed)),
                ):
                    with host.at_work():
                        found[name] = row_of(*search(measure, queue_frames))
            quiet, busy = found["quiet"], found["stalls"]
            ratio = share_of_what_is_right(busy["throughput_fps"] or 0.0, quiet["throughput_fps"] or LOAD_FPS)
            slower = busy["seconds"] / quiet["seconds"]
            is_right = abs(ratio - 1) <= WITHIN
            what = f"{plan.name}, queue of {queue_frames:,}"
            print(
                f"{'right' if is_right else 'WRONG'}  {what}: {busy['throughput_fps'] or 0:,.0f} fps,"
                f" {quiet['throughput_fps'] or 0:,.0f} when quiet, {100 * (ratio - 1):+.2f} % beyond;"
                f" {busy['verdicts']}, {slower:.2f} of the time,"
                f" {100 * busy['left_out_share']:.1f} % left out {busy['reasons']}",
                flush=True,
            )
            rows.append({"case": what, "ratio": ratio, "time_ratio": slower, **found})
            if not is_right:
                wrong.append(what)
    wrong += wrong_in_all(rows)
    return rows, wrong


def wrong_in_all(rows: list[dict[str, Any]]) -> list[str]:
    """What INVALID trials and time amount to in all searches together: one search makes 5 to 20 trials, by
    chance."""
    seconds = {name: sum(row[name]["seconds"] for row in rows) for name in ("quiet", "stalls")}
    verdicts: Counter[str] = Counter()
    for row in rows:
        verdicts.update(row["stalls"]["verdicts"])
    trials = verdicts.total()
    is_right = (
        verdicts["INVALID"] <= MOST_INVALID * trials and seconds["stalls"] <= MOST_TIME * seconds["quiet"]
    )
    print(
        f"{'right' if is_right else 'WRONG'}  all searches: {verdicts['INVALID']} of {trials} trials INVALID,"
        f" {seconds['stalls'] / seconds['quiet']:.2f} of the time",
        flush=True,
    )
    return [] if is_right else ["INVALID trials or time of all searches"]


def share_of_what_is_right(found_fps: float, quiet_fps: float) -> float:
    """What was found beside stalls, as a share of the nearest result that is right: from the capacity that is
    set to what a quiet search finds. That is more by as much as the queue takes in a quiet trial; beside
    stalls it is full after a lapse, and takes less or nothing."""
    lowest, highest = sorted((LOAD_FPS, quiet_fps))
    return found_fps / min(max(found_fps, lowest), highest)


def counted(made: list[TrialResult]) -> str:
    verdicts = Counter(str(trial.verdict) for trial in made)
    reasons = Counter(reason.code for trial in made for reason in trial.reasons)
    return f"{dict(verdicts)} {dict(reasons)}"


def keep_bad(name: str, bad: list[TrialResult]) -> int:
    """How many there are. What the engine said of each is kept for whoever looks for the cause."""
    for number, trial in enumerate(bad):
        path = Path(tempfile.gettempdir()) / f"clean-time-{name}-{trial.verdict}-{os.getpid()}-{number}.json"
        path.write_text(json.dumps(trial.raw, indent=1))
        print(f"       kept: {path}", flush=True)
    return len(bad)


def verdicts(seed: int, count: int) -> tuple[list[dict[str, Any]], list[str]]:
    """At 1.02 of the capacity the queue fills within a tenth of a second: a quiet trial of half a second, or
    more, fails."""
    seconds = float(next((each[8:] for each in sys.argv[1:] if each.startswith("seconds=")), 1.0))
    rows, wrong = [], []
    for plan in (gateway_v4(), gateway_v6()):
        with (
            measurer(plan, ReferenceDut(model=device(64))) as measure,
            Host(is_quiet=False, seed=seed).at_work(),
        ):
            for share, unwanted in ((0.98, Verdict.FAIL), (1.02, Verdict.PASS)):
                made = [measure.measure(seconds, share * LOAD_FPS) for _ in range(count)]
                bad = keep_bad(plan.name, [trial for trial in made if trial.verdict is unwanted])
                what = f"{plan.name}, {count} trials of {seconds} s at {share} of the capacity"
                print(f"{'WRONG' if bad else 'right'}  {what}: {counted(made)}", flush=True)
                rows.append({"case": what, "wrong": bad, "verdicts": counted(made)})
                if bad:
                    wrong.append(what)
    return rows, wrong


def losses(seed: int, count: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Losses that a device has at any load are found, those behind a pause of the tester are named."""
    rows, wrong = [], []
    count = max(3, count // 20)
    duts = {
        "one frame in 100,000 at random": ReferenceDut(defects=Defects(seed=seed, ratios={"loss": 1e-5})),
        "5 ms of each second": ReferenceDut(stall=Stall(every_ms=1000, for_ms=5, queue_frames=16)),
        "what comes behind a pause": ReferenceDut(model=device(64)),
    }
    for plan in (gateway_v4(), gateway_v6()):
        for name, dut in duts.items():
            with measurer(plan, dut) as measure, Host(is_quiet=False, seed=seed).at_work():
                is_of_pauses = name.startswith("what")
                # Ten of a million frames are lost on average: one trial in 20,000 loses none.
                seconds, rate_fps = (10.0, 50_000.0) if "random" in name else (2.0, 0.9 * LOAD_FPS)
                made = [measure.measure(seconds, rate_fps) for _ in range(count)]
            wanted = Verdict.PASS if is_of_pauses else Verdict.FAIL
            bad = sum(trial.verdict not in (wanted, Verdict.INVALID) for trial in made)
            unjudged = sum(
                direction.lost_frames - trial.judged(direction).lost_frames
                for trial in made
                for direction in trial.directions.values()
                if trial.is_judged_by_clean_time
            )
            what = f"{plan.name}, a device that loses {name}"
            print(
                f"{'WRONG' if bad else 'right'}  {what}: {counted(made)}, {unjudged} lost frames not judged",
                flush=True,
            )
            rows.append({"case": what, "wrong": bad, "verdicts": counted(made), "unjudged_frames": unjudged})
            if bad:
                wrong.append(what)
    return rows, wrong


PARTS = {"capacity": capacity, "verdicts": verdicts, "losses": losses}


def main() -> int:
    arguments = dict(argument.split("=") for argument in sys.argv[1:] if "=" in argument)
    names = [argument for argument in sys.argv[1:] if "=" not in argument] or list(PARTS)
    count, seed = int(arguments.get("trials", 4 if IS_SHORT else 200)), int(arguments.get("seed", 1))
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        print("clean_time: left out: stalls need root, tester and router a CPU each")
        return 0
    results, wrong = {}, []
    for name in names:
        results[name], bad = PARTS[name](seed, count)
        wrong += bad
    if set(names) == set(PARTS) and queues_asked() == QUEUES:
        record("clean_time", {"seed": seed, "trials": count, **results}, {"wrong rows": len(wrong)})
    print(f"clean_time: {'all right' if not wrong else 'WRONG: ' + '; '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
