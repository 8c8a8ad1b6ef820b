# SPDX-License-Identifier: Apache-2.0
"""Start and stop an evenhand-router, joined to the tester by memif: no privileges, no hugepages, no NIC."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.base.folders import temporary_folder
from evenhand.base.locks import InUseError, Resource, holder_of, holding
from evenhand.base.programs import ROUTER, find_program, how_to_get_programs
from evenhand.plan import SIDES, AddressPlan, SideName
from evenhand.reference.config import START_S_OF_PREFIX, ReferenceDut, prefixes_in_files, write_route_files
from evenhand.trial.engine_process import is_halted


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterCpus:
    """CPUs of this machine, for a router and its tester."""

    router: int
    tester: tuple[int, ...]
    other: str | None = None
    """Who has another living router of this machine, such as `process 17`; None if there is none."""
    is_shared: bool = False
    """The other one has the router's CPU too: there was none for it."""


MOST_ON_A_CPU = 4
"""Routers that share a CPU and are seen by others."""


@contextmanager
def chosen_cpus(cpus: Sequence[int] | None = None) -> Iterator[RouterCpus]:
    """The router's CPU is locked until the block ends, so that the next router takes another one.

    Args:
        cpus: The router's, and the tester's after it. Default: those that this process may use; the first
            that no living router has is the router's, if that leaves the tester one that no router has.

    Raises:
        HostError: There are fewer than two.
    """
    available = sorted(os.sched_getaffinity(0)) if cpus is None else list(cpus)
    if len(available) < 2:
        raise HostError(
            f"{len(available)} CPU: the router and the tester need one CPU each",
            code="rig.too-few-cpus",
            where="CPUs",
            next_step="Allow this process a second CPU; `evenhand check` shows which it may use.",
        )
    with ExitStack() as stack:
        if cpus is not None:
            _try_lock(available[0], stack)
            yield RouterCpus(router=available[0], tester=tuple(available[1:]))
            return
        holders = {cpu: holder for cpu in available if (holder := _holder(cpu)) is not None}
        other = next(iter(holders.values()), None)
        for cpu in available:
            rest = tuple(each for each in available if each != cpu and each not in holders)
            if rest and cpu not in holders and _try_lock(cpu, stack):
                yield RouterCpus(router=cpu, tester=rest, other=other)
                return
        # So that the next router sees this one, also when the other one has ended.
        any(_try_lock(available[0], stack, place) for place in range(1, MOST_ON_A_CPU))
        yield RouterCpus(router=available[0], tester=tuple(available[1:]), other=other, is_shared=True)


def _resource(cpu: int, place: int = 0) -> Resource:
    also = f", {place + 1} of several" if place else ""
    return Resource(key=f"reference router on CPU {cpu}{also}", label=f"CPU {cpu}")


def _holder(cpu: int) -> str | None:
    """Who has a router on this CPU."""
    found = (holder_of(_resource(cpu, place)) for place in range(MOST_ON_A_CPU))
    return next(filter(None, found), None)


def _try_lock(cpu: int, stack: ExitStack, place: int = 0) -> bool:
    """False if another router has it. Where no folder for locks can be had, others are not seen, and no one
    is kept from anything."""
    try:
        stack.enter_context(holding([_resource(cpu, place)], where="CPUs", next_step="Use another one."))
    except InUseError:
        return False
    except HostError:
        pass
    return True


DEFAULT_NAME = "reference-router.toml"


def check_place(path: Path | None) -> None:
    """RequestError if the file that the user named cannot become a new one; to be asked before a router
    starts."""
    if path is None:
        return
    if path.exists() or path.is_symlink():
        raise _taken(path)
    if not path.parent.is_dir():
        raise RequestError(
            f"the folder {path.parent} does not exist",
            code="rig.no-such-folder",
            where=str(path),
            next_step="Name a file in an existing folder.",
        )


@contextmanager
def written_testbed(path: Path | None, text: str, *, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the file, and remove it at the end if it still is what was written.

    Args:
        path: What the user named. None: DEFAULT_NAME in this folder, or the next one like it that is free.
        say: Gets a line for people where the file has another name than usual, or stays.

    Raises:
        RequestError: The named file is there already.
        HostError: The file cannot be written.
    """
    file = _write(path, text)
    if path is None and file.name != DEFAULT_NAME:
        say(f"{DEFAULT_NAME} already exists and is not changed; the testbed file of this router is {file}.")
    try:
        yield file
    finally:
        # Another router's file has other sockets, so what is equal is ours.
        content = None
        with suppress(OSError):
            content = file.read_bytes()
        if content == text.encode():
            file.unlink(missing_ok=True)
        elif content is not None:
            say(
                f"{file} has been changed since this router wrote it, and is kept; the"
                " router that it names has ended."
            )


def _write(path: Path | None, text: str) -> Path:
    stem, suffix = Path(DEFAULT_NAME).stem, Path(DEFAULT_NAME).suffix
    names = (
        [path]
        if path is not None
        else (Path(DEFAULT_NAME if n == 1 else f"{stem}-{n}{suffix}") for n in count(1))
    )
    for file in names:
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unwritable(file, error) from error
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(text.encode())
        except OSError as error:
            file.unlink(missing_ok=True)
            raise _unwritable(file, error) from error
        return file
    assert path is not None
    raise _taken(path)


def _taken(path: Path) -> RequestError:
    return RequestError(
        "this file already exists, and is not overwritten",
        code="rig.file-exists",
        where=f"--testbed {path}",
        next_step="Name another file.",
    )


def _unwritable(path: Path, error: OSError) -> HostError:
    return HostError(
        f"the testbed file cannot be written: {error.strerror}",
        code="rig.file-not-writable",
        where=str(path),
        next_step="Give another name with --testbed.",
    )


RING_LOG2 = 14
RING_FRAMES = 1 << RING_LOG2
"""16,384 frames, the most that a memif has: what arrives while the host takes a CPU away for some
milliseconds is not lost."""
RING_OCTETS = 1 << 25
"""What the buffers of a ring of these take; of larger buffers, for larger frames, there are fewer."""
USUAL_BUFFER_OCTETS = 2048
START_TIMEOUT_S = 30.0
ENTRY_TIMEOUT_S = 2e-6
"""More for each entry of a table of connections, whose memory is touched before the router is ready."""
ANSWER_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
DEFAULT_CONNECTIONS = 1 << 20
"""Connections that its table holds where its configuration does not say."""
STDERR_LINES = 200

_ERROR_OF_KIND: dict[str, type[EvenhandError]] = {
    "bad_request": RequestError,
    "host_not_ready": HostError,
    "bug": EngineError,
}


class ReferenceRouter:
    """A router that runs. Made by `reference_router`."""

    def __init__(
        self,
        dut: ReferenceDut,
        plan: AddressPlan,
        folder: Path,
        *,
        cpus: RouterCpus,
        program: Path,
        pairs: int = 1,
    ) -> None:
        """Start it and wait until it forwards. RequestError, HostError or EngineError if it does not."""
        self.dut = dut
        self.pairs = pairs
        self.plan = "+".join(part.name for part in plan.plans)
        self.cpus = cpus
        self.cpu = cpus.router
        self.tester_cpus = cpus.tester
        self._folder = folder
        first, *more = ({side: self._device(side, "server", pair) for side in SIDES} for pair in range(pairs))
        self._config = dut.router_config(plan, first, cpu=self.cpu, more_devices=more)
        if files := write_route_files(plan, folder):
            self._config["route_files"] = files
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        config = folder / "router.json"
        config.write_text(json.dumps(self._config), encoding="utf-8")
        try:
            self._process = subprocess.Popen(
                [program, config],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(
                f"the router does not start: {error.strerror}",
                code="rig.router-does-not-start",
                where=str(program),
                next_step=f"{how_to_get_programs()}.",
            ) from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for read, stream in (
            (self._read_lines, self._process.stdout),
            (self._read_stderr, self._process.stderr),
        ):
            threading.Thread(target=read, args=(stream,), daemon=True).start()
        try:
            entries = dut.nat_options.get("capacity", 0)
            assert isinstance(entries, int)
            longest_s = ENTRY_TIMEOUT_S * entries + START_S_OF_PREFIX * pairs * prefixes_in_files(plan)
            self.ready = self._next(START_TIMEOUT_S + longest_s)
        except BaseException:
            self.stop()
            raise

    def device(self, side: SideName, pair: int = 0) -> str:
        """EAL device string of the tester's port on this side of a port pair."""
        return self._device(side, "client", pair)

    @property
    def thread(self) -> int:
        """Id of the thread that forwards."""
        return int(self.ready["thread"])

    @property
    def ring_frames(self) -> int:
        """Frames that wait for the router in the ring of a cable."""
        return 1 << self._ring_log2

    @property
    def _buffer_octets(self) -> int:
        """Octets of a cable's buffer, for a whole frame without FCS."""
        return max(USUAL_BUFFER_OCTETS, -(-(self.dut.largest_frame_size - 4) // 64) * 64)

    @property
    def _ring_log2(self) -> int:
        return min(RING_LOG2, (RING_OCTETS // self._buffer_octets).bit_length() - 1)

    def counters(self) -> dict[str, Any]:
        """What the router counted so far (contract/router-reply.schema.json). Recorded, never judged by
        (SEED-07)."""
        self._write({"request": "counters"})
        return self._next(ANSWER_TIMEOUT_S)

    @property
    def has_connections(self) -> bool:
        """Whether it translates with state."""
        return "nat" in self._config

    def flush(self) -> dict[str, Any]:
        """Empty its connection table; how many `entries` were removed, and in how many `seconds`.

        RequestError if it has none: its plan is not one of NAT.
        """
        nat = self._config.get("nat", {})
        longest_s = (nat.get("capacity") or DEFAULT_CONNECTIONS) * nat.get("flush_us_per_entry", 0) * 1e-6
        self._write({"request": "flush"})
        return self._next(ANSWER_TIMEOUT_S + longest_s)

    def facts(self) -> dict[str, Any]:
        """For the run file: the whole configuration, so that the truth can be derived from it."""
        return {
            "kind": "reference",
            "version": self.ready.get("version"),
            "dut_cpu": self.cpu,
            "config": self._config,
        }

    def stop(self) -> dict[str, Any] | None:
        """End it; its last counters, or None if it was dead already. May be called twice."""
        last = None
        if self._process.poll() is None:
            try:
                if is_halted(self._process.pid):
                    self._process.send_signal(signal.SIGCONT)
                self._write({"request": "stop"})
                last = self._next(STOP_TIMEOUT_S)
                while last.get("event") != "stopped":
                    last = self._next(STOP_TIMEOUT_S)
                self._process.wait(STOP_TIMEOUT_S)
            except (EvenhandError, subprocess.TimeoutExpired):
                last = None
            finally:
                self._process.kill()
                self._process.wait()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        return last

    def dut_facts(self) -> dict[str, str]:
        """What results say of it as their DUT (SEED-84), by the keys of `[dut.facts]`; not its hash, which
        may differ between points."""
        facts = {"machine": f"evenhand-router {self.ready.get('version')}, a program on the tester's host"}
        if self.dut.model is not None:
            facts["cores"] = (
                f"{self.dut.model.elements} elements of {self.dut.model.rate_fps:.0f} fps, modelled by one"
                " thread"
            )
        return facts

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, by itself or by someone else."""
        return self._process.poll() is not None

    def check_running(self) -> None:
        """HostError if a signal has stopped it: then it forwards nothing, and does not end."""
        if is_halted(self._process.pid):
            raise HostError(
                f"a signal has stopped the reference router (process {self._process.pid}), so nothing is"
                " forwarded",
                code="rig.router-halted",
                where="evenhand-router",
                next_step="Find out what sends SIGSTOP to it (a debugger, a batch system, kill -STOP), then"
                " measure again.",
            )

    @property
    def warnings(self) -> list[str]:
        """What it said loudly: it could not keep the time of its model."""
        return [line for line in self._stderr if "WARNING" in line]

    def _device(self, side: SideName, role: str, pair: int) -> str:
        if self.dut.one_armed:
            side = "left"
        socket = self._folder / f"{side}{pair or ''}.sock"
        buffers = "" if self._buffer_octets == USUAL_BUFFER_OCTETS else f",bsize={self._buffer_octets}"
        number = len(SIDES) * pair + SIDES.index(side)
        where = f"id={number},socket={socket},socket-abstract=no"
        return f"net_memif{number},role={role},{where},rsize={self._ring_log2}{buffers}"

    def _write(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(document) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self.death() from error

    def _next(self, timeout_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty as error:
            self.check_running()
            raise EngineError(
                f"the router did not answer within {timeout_s:.0f} s",
                code="rig.router-does-not-answer",
                where="evenhand-router",
            ) from error
        if line is None:
            self._lines.put(None)
            raise self.death()
        document: dict[str, Any] = json.loads(line)
        if "fault" in document:
            fault = document["fault"]
            raise _ERROR_OF_KIND[fault["kind"]](
                fault["what"],
                code=f"router.{fault['code']}".replace("_", "-"),
                where=f"router: {fault['where']}",
                next_step=fault["next"],
            )
        return document

    def death(self) -> EngineError:
        """What there is to say of a router that has ended."""
        self._process.wait(STOP_TIMEOUT_S)
        words = " | ".join(list(self._stderr)[-5:])
        return EngineError(
            f"the router ended with code {self._process.returncode}; its last lines: {words}",
            code="rig.router-ended",
            where="evenhand-router",
        )

    def _read_lines(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self, stream: IO[str]) -> None:
        for line in stream:
            self._stderr.append(line.rstrip("\n"))


@contextmanager
def reference_router(
    plan: AddressPlan,
    dut: ReferenceDut,
    *,
    cpus: Sequence[int] | None = None,
    program: Path | None = None,
    pairs: int = 1,
) -> Iterator[ReferenceRouter]:
    """A reference router for this plan, until the block ends, however it ends.

    Args:
        cpus: Those to share with the tester: the first is the router's. Default: all that this process may
            use; the router's is the first that no living router of this machine has; `ReferenceRouter.cpus`
            says whether there was one.
        pairs: Number of port pairs, 1 to 4; each is a virtual router of its own, with the addresses and
            routes of all. Its elements work for all pairs.

    Raises:
        HostError: There is no router program, or fewer than two CPUs.
        EngineError: It ended while it was needed, which ended the block with another error.
    """
    path = find_program(ROUTER, program)
    with chosen_cpus(cpus) as shared, temporary_folder() as folder:
        router = ReferenceRouter(dut, plan, folder, cpus=shared, program=path, pairs=pairs)
        try:
            yield router
        except EvenhandError as error:
            # Whatever a tester says of a router that has gone: this is why.
            if router.has_ended:
                raise router.death() from error
            raise
        finally:
            router.stop()
