# SPDX-License-Identifier: Apache-2.0
"""Campaign records as a series of Appendix A leaves them, made by the real searches on simulated devices
whose limits are known."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenhand.plan import ONE_EACH, AddressPlan, SideCounts, make_plan
from evenhand.procedure import DelayGoal, DelayTest, LossGoal, Profile, Throughput
from evenhand.procedure.delay import _Repeat
from evenhand.procedure.delay_result import DelayResult
from evenhand.procedure.loss import FrameLoss, _Series
from evenhand.procedure.record import nowhere
from evenhand.run import StoredSearch, StoredTrial
from evenhand.run.campaign_record import CampaignRecord, HookRun, PointRecord, PointState, Repetition
from evenhand.search import SearchTrial, ThroughputGoal, find_throughput
from evenhand.spec.request import HashType, Point
from evenhand.trial import SimulatedMeasurer, TrialResult
from tests.procedure import test_back_to_back as bursts
from tests.procedure import test_recovery as recoveries

COUNTS = tuple(2**exponent for exponent in range(17))
LINE_BPS = 10e9
LINE_FPS = {64: 14_880_952, 128: 8_445_945, 512: 2_349_624, 1024: 1_197_318, 1518: 812_743}
ELEMENT_FPS = 625_000.0
NOW = "2026-03-02T08:{:02d}:00Z"
DUT: dict[str, str | None] = {
    "system": "Debian GNU/Linux 12",
    "kernel": "6.1.0",
    "cpu_model": "Intel Xeon E5-2667 v3",
    "sockets": "2",
    "cores": "16",
    "clock": "fixed at 1.2 GHz",
    "turbo": "off",
    "hyper_threading": "off",
    "memory_size": "128 GB",
    "nic": "Intel X540-T2",
    "driver": "ixgbe",
    "kernel_parameters": None,
    "flow_hash": "type 1: addresses only",
    "policing": None,
}
TESTBED = {
    "dut": DUT,
    "tester": {"architecture": "x86_64"},
    "testbed": {
        "isolated_test_environment": True,
        "left": {"device": "0000:01:00.0", "line_rate": 1e10},
        "right": {"device": "0000:01:00.1"},
        "tester": {"cpus": [1, 2]},
    },
}
HOST = {
    "architecture": "x86_64",
    "cpu_model": "Intel Xeon E5-2667 v3",
    "cpus": 16,
    "is_virtual_machine": False,
    "kernel": "6.1.0-18-amd64",
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "governor": "performance",
    "smt": "off",
    "memory_mb": 131072,
    "hugepages": 8,
    "clock_source": "tsc",
    "mitigations": {"meltdown": "Mitigation: PTI", "srbds": "Not affected"},
    "kernel_parameters": ["isolcpus=1,2"],
}


def capacity_fps(hosts: int, *, ports: bool = False) -> float:
    """The capacity of sixteen elements, per direction: rises up to 16 x 16, level, falls above 4k x 4k as the
    neighbour table outgrows the caches."""
    even = 1.0 if ports else min(1.0, hosts / 16)
    return (
        ELEMENT_FPS * 16 * max(even, 1 / 8) / 2 * (1.0 if ports or hosts <= 4096 else (4096 / hosts) ** 0.22)
    )


def throughput_record(
    point: Point, limit_fps: float | None, *, chance: random.Random, **device: Any
) -> PointRecord:
    """A point whose repetitions find about this limit. None: the tester itself does not reach the loads of
    the search."""
    plan = make_plan(point.plan, point.hosts)
    size = int(point.frame_size)
    profile = profile_of(plan, size)
    done = []
    for number in range(1, point.repetitions + 1):
        limit = (limit_fps or 9e6) * (1 + chance.gauss(0, 0.012))
        ceiling = {} if limit_fps is not None else {"tester_ceiling_fps": 100.0}
        measurer = SimulatedMeasurer(
            limit_fps=limit, frame_size=size, seed=number, **{"invalid_trials": (), **ceiling, **device}
        )
        goal = ThroughputGoal(
            max_fps=float(LINE_FPS[size]),
            precision=0.005,
            duration_s=2.0,
            final_duration_s=5.0,
            invalid_retries=1,
            patience=6,
        )
        found = find_throughput(measurer, goal)
        document = Throughput(profile=profile, search=found).to_document()
        value = found.throughput_fps if str(found.outcome) == "found" else None
        done.append(repetition_of(point, number, document, found.trials, value=value, chance=chance))
    has_number = all(repetition.value is not None for repetition in done)
    return PointRecord(
        point=point,
        state=PointState.MEASURED if has_number else PointState.NO_NUMBER,
        reason=None if has_number else "tester_ceiling: the tester did not offer the load that it intended",
        hooks=(),
        repetitions=tuple(done),
    )


def loss_record(point: Point, *, limit_fps: float, chance: random.Random) -> PointRecord:
    size = int(point.frame_size)
    done = []
    for number in range(1, point.repetitions + 1):
        measurer = SimulatedMeasurer(limit_fps=limit_fps * (1 + chance.gauss(0, 0.02)), frame_size=size)
        goal = LossGoal(max_fps=float(LINE_FPS[size]), duration_s=2.0)
        points, outcome = _Series(
            measurer=measurer, goal=goal, on_event=lambda event: None, record=nowhere(), overhead_s=0.0
        ).run()
        found = FrameLoss(
            profile=profile_of(make_plan(point.plan, point.hosts), size),
            goal=goal,
            outcome=outcome,
            points=points,
        )
        done.append(
            repetition_of(
                point, number, found.to_document(), found.trials, value=points[0].loss_ratio, chance=chance
            )
        )
    return PointRecord(point=point, state=PointState.MEASURED, reason=None, hooks=(), repetitions=tuple(done))


def delay_record(point: Point, *, chance: random.Random, runs: int = 20) -> PointRecord:
    test = DelayTest.PDV if point.procedure == "pdv" else DelayTest.LATENCY
    size = int(point.frame_size)
    goal = DelayGoal(test=test, rate_fps=500_000.0, throughput_fps=500_000.0, repetitions=runs)
    measurer = SimulatedMeasurer(limit_fps=1e6, delays=goal.wish, frame_size=size)
    measured = _Repeat(
        measurer=measurer, goal=goal, on_event=lambda event: None, record=nowhere(), overhead_s=0.0
    ).run()
    found = DelayResult(
        profile=profile_of(make_plan(point.plan, point.hosts), size), goal=goal, repetitions=measured
    )
    document = found.to_document()
    for figures in document["figures"].values():
        for figure in figures.values():
            if isinstance(figure, dict):
                figure["values"] = [value * chance.uniform(0.95, 1.3) for value in figure["values"]]
    done = repetition_of(point, 1, document, found.trials, value=15.0, chance=chance)
    return PointRecord(point=point, state=PointState.MEASURED, reason=None, hooks=(), repetitions=(done,))


def burst_record(point: Point, *, chance: random.Random) -> PointRecord:
    found = bursts.measure()
    done = repetition_of(
        point, 1, found.to_document(), found.trials, value=found.average_frames, chance=chance
    )
    return PointRecord(point=point, state=PointState.MEASURED, reason=None, hooks=(), repetitions=(done,))


def recovery_record(point: Point, *, chance: random.Random) -> PointRecord:
    found = recoveries.measure(recovery_s=0.4)
    done = repetition_of(point, 1, found.to_document(), found.trials, value=0.4, chance=chance)
    return PointRecord(point=point, state=PointState.MEASURED, reason=None, hooks=(), repetitions=(done,))


def profile_of(plan: AddressPlan, size: int) -> Profile:
    return Profile(
        plan=plan,
        frame_size=size,
        seed=1,
        directions=("forward", "reverse"),
        line_rate_bps=LINE_BPS,
        theoretical_fps=LINE_FPS[size],
        dut=DUT,
    )


def repetition_of(
    point: Point,
    number: int,
    document: Mapping[str, Any],
    trials: Sequence[SearchTrial | TrialResult],
    *,
    value: float | None,
    chance: random.Random,
) -> Repetition:
    """As it stands in the file: the procedure's document without its trials, and the trials of a search of
    their own."""
    plan = make_plan(point.plan, point.hosts)
    seed = 2**63 + 1000 * number
    profile = profile_of(plan, int(point.frame_size) if int(point.frame_size) in LINE_FPS else 64)
    stored = tuple(stored_trial(trial, index, chance) for index, trial in enumerate(trials, start=1))
    result = {key: content for key, content in document.items() if key != "trials"}
    search = StoredSearch(
        name=point.key,
        kind=point.procedure,
        started_at=NOW.format(number),
        finished_at=NOW.format(number + 1),
        plan=plan.to_contract(),
        frame_size=int(point.frame_size),
        seed=seed,
        goal=dict(point.goal),
        outcome=str(document["outcome"]),
        result=result,
        trials=stored,
        setup={
            "traffic": profile.traffic.to_document(host_macs="port"),
            "host_macs": "port",
            "directions": ["forward", "reverse"],
        },
    )
    return Repetition(
        number=number,
        seed=seed,
        testbed="lab one",
        started_at=NOW.format(number),
        finished_at=NOW.format(number + 1),
        outcome=str(document["outcome"]),
        value=value,
        result=result,
        searches=(search,),
    )


def stored_trial(trial: SearchTrial | TrialResult, number: int, chance: random.Random) -> StoredTrial:
    """With delays and times of loss as a real device has them; a simulated one has one delay, and loses at no
    time."""
    result = trial.result if isinstance(trial, SearchTrial) else trial
    raw = dict(result.raw)
    raw["deviations"] = [
        {"requirement": "R2544-18", "text": "waited 0.25 s instead of 2 s for residual frames"}
    ]
    raw["directions"] = {
        name: _lively(direction, raw, chance) for name, direction in raw["directions"].items()
    }
    lively = TrialResult.from_contract(raw)
    if isinstance(trial, SearchTrial):
        return StoredTrial(
            number=number,
            purpose=str(trial.purpose),
            attempt=trial.attempt,
            is_full_length=trial.is_full_length,
            result=lively,
        )
    return StoredTrial(number=number, purpose="trial", attempt=1, is_full_length=True, result=lively)


def _lively(direction: Mapping[str, Any], raw: Mapping[str, Any], chance: random.Random) -> dict[str, Any]:
    count, lost = direction["received_frames"], direction["lost_frames"]
    delays = sorted(chance.lognormvariate(10.0, 0.35) for _ in range(24))
    weights = [chance.random() * 40 / (1 + index) ** 2 for index in range(24)]
    frames = [int(count * weight / sum(weights)) for weight in weights]
    frames[0] += count - sum(frames)
    tenths = max(1, round(10 * raw["intended_duration_s"]))
    shares = [chance.random() for _ in range(min(tenths, 600))]
    by_tenth = [int(lost * share / sum(shares)) for share in shares]
    by_tenth[-1] += lost - sum(by_tenth)
    buckets = [[round(delay, 1), n] for delay, n in zip(delays, frames, strict=True) if n]
    return {
        **direction,
        "latency": {**direction["latency"], "buckets": buckets},
        "lost_by_tenth": by_tenth if lost else [0] * len(by_tenth),
    }


def point_of(
    suite: str,
    number: int,
    plan: str,
    hosts: int,
    procedure: str = "throughput",
    size: int = 64,
    **changes: Any,
) -> Point:
    given = {"hash_type": "type1", "repetitions": 10, **changes}
    hash_type: HashType | None = given.pop("hash_type")
    return Point(
        key=f"{suite}/{procedure}/{size}/n={hosts}",
        suite=suite,
        number=number,
        procedure=procedure,
        plan=plan,
        plan_options={},
        hosts=SideCounts(hosts, hosts),
        networks=ONE_EACH,
        frame_size=size,
        directions=("forward", "reverse"),
        hash_type=hash_type,
        goal={"search": "binary", "duration": "2s", "precision": "0.5%"},
        **given,
    )


def record_of(points: Iterable[PointRecord], **changes: Any) -> CampaignRecord:
    given: dict[str, Any] = {
        "path": Path("appendix-a.evenhand"),
        "name": "Appendix A on the lab's router",
        "is_campaign": True,
        "created_at": NOW.format(0),
        "finished_at": "2026-03-02T19:40:12Z",
        "commands": (("evenhand", "run", "appendix-a.toml"),),
        "versions": {"evenhand": "0.1.0", "engine": "0.1.0", "dpdk": "22.11.11"},
        "host": HOST,
        "spec": {
            "name": "Appendix A",
            "seed": 1,
            "suites": [{"name": "direct, type1", "plan": "direct-v4-net16"}],
        },
        "testbeds": {"lab one": TESTBED},
        "points": tuple(points),
        "hooks": (
            HookRun(
                when="before_suite",
                command="ssh dut rss-type1",
                exit_code=0,
                output="rx-flow-hash set\n",
                duration_s=0.4,
            ),
        ),
    }
    return CampaignRecord(**{**given, **changes})


def series_a() -> CampaignRecord:
    """Appendix A alone, without the suites that go beyond it."""
    return appendix_a(4, 10, is_series_only=True)


@lru_cache(maxsize=4)
def appendix_a(version: int = 4, repetitions: int = 10, *, is_series_only: bool = False) -> CampaignRecord:
    """17 points of the direct plan, one behind gateways, one pair with ports and type 2; then sizes, loss,
    delays, bursts, recovery."""
    chance = random.Random(version)
    direct, gateway, most = (
        ("direct-v4-net16", "gateway-v4", 65533) if version == 4 else ("direct-v6", "gateway-v6", 65536)
    )
    records = []
    for number, hosts in enumerate(COUNTS):
        point = point_of("direct, type1", number, direct, min(hosts, most), repetitions=repetitions)
        device: dict[str, Any] = {"invalid_trials": (2,)} if hosts == 8 else {}
        limit = None if hosts == 32768 and version == 4 else capacity_fps(hosts)
        records.append(throughput_record(point, limit, chance=chance, **device))
    many = point_of("gateways, type1", 0, gateway, most, repetitions=repetitions)
    records.append(throughput_record(many, 0.995 * capacity_fps(1024), chance=chance))
    one = point_of("one pair, type2", 0, gateway, 1, hash_type="type2", repetitions=repetitions)
    records.append(throughput_record(one, capacity_fps(1, ports=True), chance=chance))
    if is_series_only:
        return record_of(records)
    for number, size in enumerate(LINE_FPS):
        point = point_of("frame sizes", number, gateway, most, size=size, repetitions=min(3, repetitions))
        records.append(throughput_record(point, min(5e6, 0.93 * LINE_FPS[size]), chance=chance))
        records.append(
            loss_record(
                point_of("loss", number, gateway, most, "loss", size, repetitions=2),
                limit_fps=5e6,
                chance=chance,
            )
        )
    for number, size in enumerate((64, 1518)):
        records.append(
            delay_record(
                point_of("latency", number, gateway, most, "latency", size, repetitions=1), chance=chance
            )
        )
        records.append(
            delay_record(point_of("PDV", number, gateway, most, "pdv", size, repetitions=1), chance=chance)
        )
    records.append(
        burst_record(point_of("bursts", 0, gateway, 1, "back-to-back", repetitions=1), chance=chance)
    )
    records.append(
        recovery_record(point_of("recovery", 0, gateway, 1, "recovery", repetitions=1), chance=chance)
    )
    return record_of(records)
