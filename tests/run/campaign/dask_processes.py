# SPDX-License-Identifier: Apache-2.0
"""A scheduler of dask and workers of ours as processes on 127.0.0.1, ended with the block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from tests.preloaded.commands import evenhand_command

START_S = 90.0
"""On a machine that is busy loading takes long."""


@dataclass(slots=True)
class Cluster:
    """What runs, and where its files are."""

    folder: Path
    address: str
    environment: Mapping[str, str]
    scheduler: subprocess.Popen[bytes]
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def begin_worker(self, name: str, testbed: str, *options: str) -> None:
        """It is there when `wait_for` says so."""
        self.workers[name] = self._popen(
            f"{name}.log", "worker", self.address, testbed, "--name", name, *options
        )

    def wait_for(self, *names: str) -> None:
        """Until these workers wait for points."""
        for name in names:
            wait_until(partial(self._waits_for_points, name), partial(self.log, name), self.workers[name])

    def _waits_for_points(self, name: str) -> bool:
        return "is waiting for points" in self.log(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        self.workers[name].send_signal(number)
        self.workers[name].wait(60)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command line of Evenhand in the folder."""
        return subprocess.run(
            [*evenhand_command(), *arguments],
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def begin_run(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self._popen("run.log", *arguments)

    def _popen(self, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / log).open("wb") as stream:
            return subprocess.Popen(
                [*evenhand_command(), *arguments],
                cwd=self.folder,
                env=dict(self.environment),
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )


@contextmanager
def cluster(folder: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Cluster]:
    """A scheduler without workers, on a port of its own. `more` is added to the environment of all."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200", **more}
    told = folder / "scheduler.json"
    with (folder / "scheduler.log").open("wb") as log:
        scheduler = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "dask",
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--dashboard-address",
                "127.0.0.1:0",
                "--scheduler-file",
                str(told),
            ],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    running = None
    try:
        # It is there before it is written.
        wait_until(
            lambda: told.exists() and told.read_text().rstrip().endswith("}"),
            (folder / "scheduler.log").read_text,
            scheduler,
        )
        running = Cluster(folder, json.loads(told.read_text())["address"], environment, scheduler)
        yield running
    finally:
        for process in [*([] if running is None else running.workers.values()), scheduler]:
            process.kill()
            process.wait()


def wait_until(
    is_so: Callable[[], bool],
    why: Callable[[], str],
    process: subprocess.Popen[bytes] | None = None,
    *,
    within_s: float = START_S,
) -> None:
    """AssertionError with `why` if that takes too long, or the process has ended."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, why()
        assert process is None or process.poll() is None, why()
        time.sleep(0.05)
