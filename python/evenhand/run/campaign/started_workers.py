# SPDX-License-Identifier: Apache-2.0
"""Campaign: workers that a run starts itself, on this machine and over SSH, with a scheduler of its own.

Scheduler and workers listen on 127.0.0.1 only. To a worker elsewhere its SSH connection carries both ways:
there, a port leads to the scheduler; here, the port at which the worker listens there. So each address is the
same at both ends, no firewall is opened, and no one on the network can reach a scheduler, which can make its
workers run any program. Others on these machines reach 127.0.0.1 too: whoever connects needs the certificate
that the run makes for itself (`run_certificate.py`). All of it ends with this process, however that ends: a
worker whose scheduler has gone ends itself.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.folders import temporary_folder
from evenhand.base.version import VERSION
from evenhand.rig import ssh_command
from evenhand.run.campaign.dask_security import (
    OPTION,
    RunCertificate,
    WithoutPages,
    import_distributed,
    make_certificate,
)
from evenhand.run.campaign.worker import resources_for
from evenhand.spec.worker_hosts import DEFAULT_COMMAND, WorkerHost

HERE = "127.0.0.1"
START_S = 90.0
"""Time until all workers have come: Python and dask load slowly on a busy machine."""
END_S = 10.0
"""Time that workers have to end by themselves once their scheduler has gone."""
LOOK_S = 0.1
LINES_KEPT = 20
LINES_SHOWN = 3
"""Lines shown of what a worker, or ssh, said last."""
_FORWARDING = ("ExitOnForwardFailure=yes", "ControlMaster=no", "ControlPath=none", "GatewayPorts=no")


@dataclass(slots=True, kw_only=True)
class StartedWorker:
    """One of them, as a process of ours: the worker itself, or the `ssh` that carries it."""

    host: WorkerHost
    process: subprocess.Popen[str]
    said: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    """Its last lines."""
    _reader: threading.Thread | None = None

    @property
    def place(self) -> str:
        """The name of the worker for errors: `worker munich, root@192.0.2.11`."""
        return f"worker {self.host.name}" + (f", {self.host.ssh}" if self.host.ssh else "")

    def listen(self) -> None:
        """Keep what it says, so that it is never held up by a full pipe."""
        self._reader = threading.Thread(target=self._keep, daemon=True)
        self._reader.start()

    def _keep(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip())

    def ended(self) -> HostError | None:
        """Why, if it has."""
        code = self.process.poll()
        if code is None:
            return None
        if self._reader is not None:
            self._reader.join(1)
        said = [line for line in self.said if line][-LINES_SHOWN:]
        what = "; ".join(said) if said else f"exit code {code}"
        is_missing = code == 127 and self.host.ssh is not None
        return HostError(
            f"this worker has ended: {what}",
            code="run.worker-ended",
            where=self.place,
            next_step=(
                "Name the command there in the workers file, such as"
                f" evenhand = '/opt/evenhand/bin/evenhand'; it is {self.host.evenhand!r} now."
                if is_missing
                else "Correct that, and run the command again; to see its full output: "
                + (f"ssh {self.host.ssh} " if self.host.ssh else "")
                + f"{self.host.evenhand} worker --help"
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedScheduler:
    """A scheduler of this process."""

    address: str
    security: Any
    """What dask needs to speak with it."""
    check_left: Callable[[], None]
    """HostError once no worker is left."""


@contextmanager
def started(worker_hosts: Sequence[WorkerHost], *, say: Callable[[str], None]) -> Iterator[StartedScheduler]:
    """A scheduler on this machine and its workers, as long as the block goes on.

    Raises:
        HostError: dask.distributed, what makes a certificate, or ssh is not installed; a worker cannot be
            started, is of another version, or does not come in time. The others are stopped.
    """
    import_distributed()
    certificate = make_certificate()
    security = certificate.security()
    workers: list[StartedWorker] = []
    with temporary_folder() as folder:
        cluster = _scheduler(security, str(folder))
        try:
            for host in worker_hosts:
                workers.append(_start(host, cluster.scheduler_address, certificate))
            names = ", ".join(host.name for host in worker_hosts)
            say(f"Starting {len(workers)} worker{'' if len(workers) == 1 else 's'}: {names}.")
            _wait_for(workers, cluster.scheduler)
            yield StartedScheduler(
                address=cluster.scheduler_address,
                security=security,
                check_left=lambda: _check_one_is_left(workers),
            )
        finally:
            with suppress(Exception):
                cluster.close(timeout=END_S)
            _end(workers)


def _scheduler(security: Any, folder: str) -> Any:
    """dask's cluster without workers. It listens at one port, with this certificate, and writes into this
    folder only: by itself it takes one in the temporary folder, by a name that everybody knows."""
    distributed: Any = import_distributed()

    class Scheduler(WithoutPages, distributed.Scheduler):  # type: ignore[misc]
        """It names its class to whoever asks what it is."""

    options = {
        "host": HERE,
        "port": 0,
        "protocol": "tls://",
        "security": security,
        "dashboard": False,
        "local_directory": folder,
    }
    return distributed.SpecCluster(
        scheduler={"cls": Scheduler, "options": options}, workers={}, security=security, silence_logs=False
    )


def _start(host: WorkerHost, scheduler: str, certificate: RunCertificate) -> StartedWorker:
    port = _free_port()
    options = ["--name", host.name, "--host", HERE, "--port", str(port), OPTION]
    options += ["--engine", host.engine] if host.engine else []
    if host.ssh is None:
        own = (
            [sys.executable, "-m", "evenhand"]
            if host.evenhand == DEFAULT_COMMAND
            else shlex.split(host.evenhand)
        )
        command = [*own, "worker", scheduler, host.testbed, *options]
    else:
        there = _free_port()
        words = ["worker", f"tls://{HERE}:{there}", host.testbed, *options]
        ways = (
            *(part for option in _FORWARDING for part in ("-o", option)),
            *("-R", f"{HERE}:{there}:{scheduler.removeprefix('tls://')}"),
            *("-L", f"{HERE}:{port}:{HERE}:{port}"),
        )
        command = ssh_command(host.ssh, f"{host.evenhand} {shlex.join(words)}", *ways)
    # In a session of its own, so that Ctrl-C reaches us alone, and workers end in order.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    worker = StartedWorker(host=host, process=process)
    worker.listen()
    assert process.stdin is not None
    # It fits into the pipe. One that has ended already is found by who waits for it.
    with suppress(BrokenPipeError), process.stdin as stream:
        stream.write(certificate.line())
    return worker


def _free_port() -> int:
    """Free on this machine. On another one it most likely is, too; if not, ssh or the worker says so."""
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


def _wait_for(workers: Sequence[StartedWorker], scheduler: Any) -> None:
    (wanted,) = resources_for()
    until = time.monotonic() + START_S
    while True:
        # Copied, since the scheduler changes it in its own thread.
        known = {str(state.name): dict(state.resources) for state in list(scheduler.workers.values())}
        for worker in workers:
            if (error := worker.ended()) is not None:
                raise error
            resources = known.get(worker.host.name)
            if resources is not None and wanted not in resources:
                version = next(iter(resources), "another program").removeprefix("evenhand ")
                raise HostError(
                    f"this worker has Evenhand {version}, but this machine has {VERSION}",
                    code="run.worker-of-other-version",
                    where=worker.place,
                    next_step="Install the same version on both.",
                )
        missing = [worker for worker in workers if worker.host.name not in known]
        if not missing:
            return
        if time.monotonic() > until:
            said = [line for line in missing[0].said if line][-LINES_SHOWN:]
            raise HostError(
                f"this worker has not come within {START_S:.0f} s" + (f": {'; '.join(said)}" if said else ""),
                code="run.worker-not-come",
                where=missing[0].place,
                next_step="Start it by hand there to see what it does: evenhand worker --help",
            )
        time.sleep(LOOK_S)


def _check_one_is_left(workers: Sequence[StartedWorker]) -> None:
    errors = [worker.ended() for worker in workers]
    if all(errors) and errors[0] is not None:
        raise errors[0]


def _end(workers: Sequence[StartedWorker]) -> None:
    """All of them: by themselves, then asked, then killed."""
    until = time.monotonic() + END_S
    for stop in (None, subprocess.Popen.terminate, subprocess.Popen.kill):
        for worker in workers:
            if stop is not None and worker.process.poll() is None:
                stop(worker.process)
        while any(worker.process.poll() is None for worker in workers) and time.monotonic() < until:
            time.sleep(LOOK_S)
        until = time.monotonic() + END_S
