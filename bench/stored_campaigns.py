# SPDX-License-Identifier: Apache-2.0
"""How long commands take that only look: their start, and `show` and `report` of stored campaigns with 588
and with 100,000 trials; and the memory of a process that has loaded a verb that measures. CPU time and memory
of a whole process each, with byte code, as an installation has it. Needs no engine.

The campaigns are made by the real searches on a simulated device and stored by the writer of campaigns; their
trials have the documents that the engine would write.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pieces import IS_SHORT, at_length, record

from evenhand.plan import make_plan
from evenhand.procedure import Profile, Throughput
from evenhand.run.campaign_record import Repetition
from evenhand.run.reading import StoredSearch, StoredTrial
from evenhand.run.rows import insert_repetition
from evenhand.run.run_file import now
from evenhand.run.store import CampaignHead, RunStore
from evenhand.search import ThroughputGoal, find_throughput
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import Point
from evenhand.trial import SimulatedMeasurer

ROUNDS = at_length(5, 1)
MAXIMUM_FPS = 14_880_952.0
LIMIT_FPS = 5e6
CAMPAIGNS = {
    "588 trials": at_length((["gateway-v4"], [64], 3, 588), (["gateway-v4"], [64], 1, 200)),
    "100,000 trials": (["gateway-v4", "gateway-v6"], [84, 128, 512, 1024, 1518], 50, 100_000),
}
"""Plans, frame sizes, repetitions at most, and trials. 17 numbers of hosts each."""
MEASURING = ("throughput", "latency", "trial", "run")
"""Verbs of which one process measures for minutes beside the engine."""
GOAL = ThroughputGoal(max_fps=MAXIMUM_FPS, precision=0.005, duration_s=2.0, final_duration_s=5.0)
STARTS = {
    "evenhand --version": ["--version"],
    "evenhand plan show": ["plan", "show", "gateway-v4"],
    "evenhand run --help": ["run", "--help"],
}


def make_file(path: Path, plans: list[str], sizes: list[int], repetitions: int, most: int) -> int:
    """A finished campaign of at most so many trials, and about as many. Returns their number."""
    suites = [
        {"name": plan, "plan": plan, "hosts": "doubling", "frame-sizes": sizes, "repetitions": repetitions}
        for plan in plans
    ]
    plan = expand(make_campaign({"name": "large", "seed": 7, "suite": suites}, where=Path(__file__).name))
    head = CampaignHead(name=plan.name, source="large.toml", seed=plan.seed, spec=plan.spec)
    count = 0
    with RunStore.create(
        path, command=["evenhand", "run", "large.toml"], head=head, points=plan.points
    ) as store:
        testbed = store.add_testbed("simulated", {"tester": {}, "dut": {}, "testbed": {}})
        ids = {point.key: store.point_id(point) for point in plan.points}
        with store.writing() as connection:
            for point, repetition in _measured(plan.points, testbed):
                count += len(repetition.trials)
                if count > most:
                    count -= len(repetition.trials)
                    break
                insert_repetition(
                    connection, repetition, point_id=ids[point.key], session_id=store.session_id, attempt=1
                )
        store.finish()
    return count


def _measured(points: tuple[Point, ...], testbed: str) -> Iterator[tuple[Point, Repetition]]:
    chance = random.Random(7)
    for number in range(1, max(point.repetitions for point in points) + 1):
        for point in points:
            if number <= point.repetitions:
                yield point, _repetition(point, number, testbed, chance)


def _repetition(point: Point, number: int, testbed: str, chance: random.Random) -> Repetition:
    plan, size = make_plan(point.plan, point.hosts), int(point.frame_size)
    limit_fps = LIMIT_FPS * (1 + chance.gauss(0, 0.01))
    found = find_throughput(SimulatedMeasurer(limit_fps=limit_fps, frame_size=size, seed=number), GOAL)
    profile = Profile(
        plan=plan,
        frame_size=size,
        seed=number,
        directions=("forward", "reverse"),
        line_rate_bps=1e10,
        theoretical_fps=int(MAXIMUM_FPS),
        dut=None,
    )
    document = Throughput(profile=profile, search=found).to_document()
    search = StoredSearch(
        name=point.key,
        kind=point.procedure,
        started_at=now(),
        finished_at=now(),
        plan=plan.to_contract(),
        frame_size=size,
        seed=number,
        setup={
            "name": testbed,
            "directions": ["forward", "reverse"],
            "host_macs": "port",
            "traffic": profile.traffic.to_document(host_macs="port"),
        },
        goal=dict(point.goal),
        outcome=str(found.outcome),
        result=found.to_document(),
        trials=tuple(
            StoredTrial(
                number=trial.number,
                purpose=str(trial.purpose),
                attempt=trial.attempt,
                is_full_length=trial.is_full_length,
                result=trial.result,
            )
            for trial in found.trials
        ),
    )
    return Repetition(
        number=number,
        seed=number,
        testbed=testbed,
        started_at=now(),
        finished_at=now(),
        outcome=str(found.outcome),
        value=found.throughput_fps,
        result={key: value for key, value in document.items() if key != "trials"},
        searches=(search,),
        measured_s=60.0,
    )


def run(program: list[str], compiled: Path) -> tuple[float, float, float]:
    """User and system time in seconds, and the largest resident memory in MB, of one process of Python.

    Args:
        compiled: Folder of its byte code: an environment may say that none is to be written.
    """
    measure = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime, used.ru_stime, used.ru_maxrss / 1024)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", measure, sys.executable, *program],
        check=True,
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPYCACHEPREFIX": str(compiled)},
    )
    user_s, system_s, megabytes = map(float, done.stdout.split())
    return user_s, system_s, megabytes


def main() -> None:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = dict(STARTS)
        for name, (plans, sizes, repetitions, most) in list(CAMPAIGNS.items())[: at_length(2, 1)]:
            path = Path(folder) / f"{name.split()[0].replace(',', '')}.evenhand"
            count = make_file(path, plans, sizes, repetitions, most)
            print(f"{name}: {count:,} in {path.stat().st_size / 1e6:,.0f} MB")
            commands[f"evenhand show, {name}"] = ["show", str(path)]
            commands[f"evenhand report, {name}"] = ["report", str(path)]
        command = str(Path(sys.executable).with_name("evenhand"))
        programs = {name: [command, *arguments] for name, arguments in commands.items()}
        for verb in MEASURING:
            load = f"from evenhand.cli.main import app_for; app_for([{verb!r}]).built"
            programs[f"loaded: evenhand {verb}"] = ["-c", load]
        compiled = Path(folder) / "compiled"
        for name, program in programs.items():
            if not IS_SHORT:
                run(program, compiled)  # compiles it
            taken = [run(program, compiled) for _ in range(ROUNDS)]
            user_s, system_s = min((user, system) for user, system, _ in taken)
            megabytes = max(memory for _, _, memory in taken)
            print(
                f"{name:36} {user_s:7.2f} s of CPU and {system_s:5.2f} s in the kernel (least of {ROUNDS})"
                f" {megabytes:7.0f} MB"
            )
            figures[f"{name} (user s)"] = user_s
            figures[f"{name} (s)"] = user_s + system_s
            figures[f"{name} (MB)"] = megabytes
    record("stored_campaigns", {"unit": "s", "rounds": ROUNDS}, figures)


if __name__ == "__main__":
    main()
