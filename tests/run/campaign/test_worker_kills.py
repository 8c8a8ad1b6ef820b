# SPDX-License-Identifier: Apache-2.0
"""A campaign whose workers are killed at any moment, and replaced, is what it would have been without."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.cli.running import TESTBED
from tests.run.campaign.dask_processes import START_S, Cluster, cluster, wait_until
from tests.run.campaign.small_campaign import DELAYS, OPTIONS, essence, write_campaign
from tests.run.campaign.test_kills import Starter, is_there, starting

pytest.importorskip("distributed")
NAMES = ("one", "two")
MOMENTS = ("connecting", "waiting", "opening", "trial", "after", "answering")
"""At which a worker is killed: before it is waiting for points, while it does, with the first request to its
engine, in a trial, after a repetition, while its answer is fetched."""
LOADED = ("worker", "evenhand.run.campaign.worker", "dying_answer")
LOADED_TO_RUN = ("run", "evenhand.cli.progress.campaign", "evenhand.run.campaign.scheduled", "distributed")
CONNECTING_S = 0.3
"""About as long as a worker takes until it waits."""
AFTER_A_REQUEST_S = 0.03
LOOK_S = 0.002
RUN_S = 600.0
"""That nobody waits longer for: most of a minute where nothing else runs."""
CAMPAIGN = f"""
name = "killed"
seed = 7

[[suite]]
name = "many"
hosts = HOSTS
repetitions = 1
{OPTIONS}

[[suite]]
name = "twice"
hosts = [2]
repetitions = 2
{OPTIONS}

{DELAYS}"""


@dataclass
class Victim:
    """A worker that is killed and started again, as long as the campaign goes on."""

    starter: Starter
    address: str
    name: str
    child: int = 0
    """Its process; 0: none."""
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def log(self) -> str:
        path = self.starter.folder / "log"
        return path.read_text() if path.exists() else ""

    def requests(self, name: str) -> int:
        """That its engines got so far."""
        return sum(json.loads(line)["request"] == name for line in self.starter.requests())

    def count(self, moment: str) -> int:
        """How often it has been there, as far as that can be told."""
        if moment == "after":
            return self.log.count(", repetition ")
        return self.requests({"opening": "open"}.get(moment, moment))

    @property
    def waits(self) -> bool:
        return "is waiting for points" in self.log

    @property
    def is_there(self) -> bool:
        return is_there(self.child)

    def start(self) -> None:
        (self.starter.folder / "log").unlink(missing_ok=True)  # it says what the last one did
        self.child = self.starter.start(
            "worker", self.address, "lab.toml", "--name", self.name, "--engine", "./engine"
        )

    def kill(self, moment: str) -> None:
        os.kill(self.child, signal.SIGKILL)  # not reaped before `wait`
        self.ended(moment)

    def ended(self, moment: str) -> None:
        code = self.starter.wait()
        assert code == -signal.SIGKILL, f"{self.name} ended by itself: {self.log}"
        self.child = 0
        self.killed[moment] += 1

    def is_killed(self, moment: str, chance: random.Random, is_over: Callable[[], bool]) -> bool:
        """Wait for the moment; False if it does not come before the campaign is over."""
        if moment == "connecting":
            time.sleep(chance.uniform(0, CONNECTING_S))
            self.kill(moment if not self.waits else "waiting")
            return True
        wait_until(lambda: self.waits or not self.is_there, lambda: self.log)
        if moment == "answering":
            (self.starter.folder / "die-answering").touch()
            if self._comes(lambda: not self.is_there, is_over):
                self.ended(moment)
                return True
            return False
        before = self.count(moment)
        if moment != "waiting" and not self._comes(lambda: self.count(moment) > before, is_over):
            return False
        time.sleep(chance.uniform(0, AFTER_A_REQUEST_S))
        self.kill(moment)
        return True

    def _comes(self, is_so: Callable[[], bool], is_over: Callable[[], bool]) -> bool:
        until = time.monotonic() + START_S
        while not is_so():
            assert time.monotonic() < until, self.log
            if is_over():
                return False
            time.sleep(LOOK_S)
        return True


@contextmanager
def victims(running: Cluster) -> Iterator[list[Victim]]:
    """Both workers, on DUTs that are alike."""
    with ExitStack() as stack:
        found = []
        for number, name in enumerate(NAMES):
            folder = running.folder / name
            folder.mkdir()
            write_campaign(folder, "")
            (folder / "lab.toml").write_text(
                TESTBED.replace("net_ring0", f"net_ring{2 * number}").replace(
                    "net_ring1", f"net_ring{2 * number + 1}"
                )
            )
            found.append(Victim(stack.enter_context(starting(folder, LOADED)), running.address, name))
            found[-1].start()
        try:
            yield found
        finally:
            for victim in found:
                if victim.child:
                    victim.kill("end")


def processes_of(folder: Path) -> list[str]:
    """What still runs of what was begun in this folder, which all of it has in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass  # it has ended, or is not ours
    return found


def end_of(starter: Starter, run: int) -> int:
    """The exit code of a run."""
    log = starter.folder / "log"
    wait_until(lambda: not is_there(run), log.read_text, within_s=RUN_S)
    return starter.wait()


def start_run(starter: Starter, running: Cluster, name: str) -> int:
    return starter.start(
        "run", "killed.toml", "--scheduler", running.address, "--run", f"{name}.evenhand", "--no-html"
    )


def assert_killed_is_as_unkilled(folder: Path, *, kills: int, hosts: int, seed: int) -> Counter[str]:
    """Every moment comes in its turn, and the order is drawn."""
    chance = random.Random(seed)
    moments = [moment for _ in range(kills // len(MOMENTS) + 1) for moment in MOMENTS][:kills]
    chance.shuffle(moments)
    (folder / "killed.toml").write_text(CAMPAIGN.replace("HOSTS", str([*range(10, 10 + hosts)])))
    # A point that was lost by four workers is given up, whoever killed them.
    more = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}
    with (
        starting(folder, LOADED_TO_RUN) as starter,
        cluster(folder, more) as running,
        victims(running) as both,
    ):
        run = start_run(starter, running, "unkilled")
        assert end_of(starter, run) == 0, (folder / "log").read_text()
        run = start_run(starter, running, "killed")
        for moment in moments:
            victim = chance.choice(both)
            if not victim.is_killed(moment, chance, lambda: not is_there(run)):
                break
            victim.start()
        assert end_of(starter, run) == 0, (folder / "log").read_text()
        killed = both[0].killed + both[1].killed
    wait_until(lambda: not processes_of(folder), lambda: "\n".join(processes_of(folder)))
    expected, found = (read_record(folder / f"{name}.evenhand") for name in ("unkilled", "killed"))
    assert {point.state for point in found.points} == {PointState.MEASURED}
    for point in found.points:
        # Nothing of what was lost is stored: there is neither a second result nor a first beginning.
        assert [r.number for r in point.repetitions] == list(range(1, point.point.repetitions + 1))
        assert all(r.finished_at is not None for r in point.repetitions), point.point.key
    assert essence(found) == essence(expected)
    # Where the host keeps this test from its kills, the campaign is at its end before them.
    assert killed.total() >= 1, "no worker was killed"
    return killed


@pytest.mark.thorough
def test_workers_killed_six_times_cost_nothing_but_time(tmp_path: Path) -> None:
    """D11."""
    assert_killed_is_as_unkilled(tmp_path, kills=6, hosts=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_workers_killed_sixty_times_cost_nothing_but_time(tmp_path: Path, seed: int) -> None:
    """D11."""
    killed = assert_killed_is_as_unkilled(tmp_path, kills=60, hosts=70, seed=seed)
    assert {"opening", "trial", "after", "answering"} <= killed.keys()


@contextmanager
def answer_lost(
    folder: Path, *, allowed_failures: int
) -> Iterator[tuple[Callable[[], int], Cluster, Victim]]:
    """A run that waits for an answer whose worker was killed as it gave it; that worker is back, and is in a
    trial of the same point."""
    (folder / "killed.toml").write_text(
        f'name = "killed"\n[[suite]]\nname = "a"\nhosts = [1]\nrepetitions = 1\n{OPTIONS}'
    )
    more = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
    with (
        starting(folder, LOADED_TO_RUN) as starter,
        cluster(folder, more) as running,
        victims(running) as (victim, other),
    ):
        other.kill("waiting")
        chance = random.Random(0)
        run = start_run(starter, running, "killed")
        assert victim.is_killed("answering", chance, lambda: not is_there(run)), (folder / "log").read_text()
        before = victim.requests("trial")
        write_campaign(victim.starter.folder, "", part="stuck-trial-1")  # else it may answer before its kill
        victim.start()
        wait_until(lambda: victim.requests("trial") > before, lambda: victim.log)
        yield lambda: end_of(starter, run), running, victim


@pytest.mark.thorough
def test_a_point_whose_answer_was_lost_and_then_its_worker_is_given_up(tmp_path: Path) -> None:
    """D11: as any point that worker after worker was lost in."""
    with answer_lost(tmp_path, allowed_failures=0) as (end, _, victim):
        victim.kill("trial")
        assert end() == 1, (tmp_path / "log").read_text()
    (point,) = read_record(tmp_path / "killed.evenhand").points
    assert (point.state, point.repetitions) == (PointState.NO_NUMBER, ())
    assert "one worker after another was lost" in str(point.reason)


@pytest.mark.thorough
def test_a_scheduler_that_goes_while_an_answer_is_awaited_is_named(tmp_path: Path) -> None:
    """D11: it is no bug, and the run can go on later."""
    with answer_lost(tmp_path, allowed_failures=9) as (end, running, victim):
        victim.kill("trial")
        running.scheduler.kill()
        assert end() == 3, (tmp_path / "log").read_text()
        said = (tmp_path / "log").read_text()
    assert "the scheduler is gone" in said
    assert "distributed" not in said
    assert "bug" not in said
