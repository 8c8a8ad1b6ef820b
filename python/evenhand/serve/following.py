# SPDX-License-Identifier: Apache-2.0
"""The runs of another machine, over the user's own ssh: one connection, on which that host sends each run as
it was last committed, and several times a second the trials that are made. Nothing is written there.

Here the runs are copies in a folder below this user's cache, which is shown like any other; what is measured
there is locked here by this process, so that all who look at the copies see it as running.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.locks import holder_of, holding, lock_file
from evenhand.base.visible import visible
from evenhand.rig import check_destination, ssh_command
from evenhand.run.figures import read_running, running_path
from evenhand.run.run_file import SUFFIX, campaign_resource
from evenhand.run.snapshot import MAX_FILE_BYTES, copy_to_memory
from evenhand.serve.index import RunIndex, cache_path
from evenhand.serve.run_facts import RunState

LOOK_EVERY_S = 0.3
NICENESS = 10
"""The other host waits for its measurements, not for this."""
READING_SHARE = 0.02
"""Largest share of a CPU there that reading a run that grows takes."""
AGAIN_S = 10.0
"""After so long a connection that was lost is tried again."""
MOST_HEAD = 1_000_000
"""Octets of a line, as a run of names."""
LONGEST_NAME = 255


def send_runs(folder: Path, source: IO[bytes], sink: IO[bytes]) -> None:
    """What `evenhand serve --to-follower` does on the other host, until nobody listens any more.

    A line is a JSON object. With `run` it is followed by so many `octets`, the run of that name; `gone` are
    names that are no runs any more, `running` what is written beside those that are measured, by name.

    Args:
        source: Has one line: the `known` runs, by name, with the `stamp` that they had.
    """
    with suppress(OSError):
        os.nice(NICENESS)
    index = RunIndex.of(folder)
    sent: dict[str, int] = dict(json.loads(source.readline(MOST_HEAD * 10))["known"])
    not_before_s: dict[str, float] = {}
    while True:
        index.refresh()
        gone = [name for name in sent if name not in index.entries] if not index.unread else []
        for name, entry in index.entries.items():
            stamp = entry.stamp[3]
            is_early = entry.state is RunState.RUNNING and not_before_s.get(name, 0.0) > time.monotonic()
            if sent.get(name) == stamp or is_early:
                continue
            began_s = time.thread_time()
            with suppress(EvenhandError), closing(copy_to_memory(index.path(name))) as connection:
                content = connection.serialize()
                _say(sink, {"run": name, "stamp": stamp, "octets": len(content)})
                sink.write(content)
            sent[name] = stamp
            spent_s = time.thread_time() - began_s
            not_before_s[name] = time.monotonic() + spent_s / READING_SHARE
        for name in gone:
            del sent[name]
        running = {
            name: _running(index.path(name))
            for name, entry in index.entries.items()
            if entry.state is RunState.RUNNING
        }
        _say(sink, {"gone": gone, "running": running})
        sink.flush()
        time.sleep(LOOK_EVERY_S)


def _running(path: Path) -> dict[str, Any] | None:
    with suppress(EvenhandError, OSError, ValueError):
        if read_running(path, holder_of(campaign_resource(path))) is not None:
            document: dict[str, Any] = json.loads(running_path(path).read_text(encoding="utf-8"))
            return document
    return None


def _say(sink: IO[bytes], document: Mapping[str, Any]) -> None:
    sink.write(json.dumps(document).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class FollowedFolder:
    """A folder of another machine."""

    destination: str
    folder: str
    command: str
    """That of Evenhand there, for its shell."""

    @classmethod
    def of(cls, text: str, command: str) -> FollowedFolder:
        """From `ssh:HOST[:FOLDER]`; an IPv6 address is in brackets. RequestError if it is none."""
        kind, _, rest = text.partition(":")
        user, at, host = rest.rpartition("@")
        if host.startswith("["):
            host, _, folder = host[1:].partition("]")
            folder = folder.removeprefix(":")
        else:
            host, _, folder = host.partition(":")
        if kind != "ssh" or not host:
            raise RequestError(
                f"{text!r} is no folder of another machine",
                code="serve.not-to-follow",
                where="--follow",
                next_step="Write ssh:HOST or ssh:HOST:FOLDER; an IPv6 address as ssh:[2001:db8::1]:FOLDER.",
            )
        return cls(check_destination(f"{user}{at}{host}"), folder or ".", command)

    def __str__(self) -> str:
        return f"{self.destination}:{self.folder}"

    @property
    def copies(self) -> Path:
        """Where its runs are kept here."""
        return cache_path(Path("/ssh") / str(self)).with_suffix(".runs")


@dataclass(slots=True)
class Follower:
    """Keeps the copies up to date, in a thread of its own."""

    followed: FollowedFolder
    trouble: str = ""
    """Why nothing comes now."""
    is_begun: threading.Event = field(default_factory=threading.Event)
    """Set when something has come, or it is known why not."""
    first_error: HostError | None = None
    """Why the first connection came to nothing."""
    _process: subprocess.Popen[bytes] | None = None
    _locks: dict[str, ExitStack] = field(default_factory=dict)
    _is_over: bool = False

    def follow(self) -> None:
        """Until `stop`. A connection that is lost is made again."""
        while not self._is_over:
            error = self._follow_once()
            if not self.is_begun.is_set():
                self.first_error = error
                self.is_begun.set()
            self.trouble = f"{error.what}; what is shown is what had come by then"
            for _ in range(int(AGAIN_S / LOOK_EVERY_S)):
                if not self._is_over:
                    time.sleep(LOOK_EVERY_S)

    def stop(self) -> None:
        """End the connection, and give the copies free."""
        self._is_over = True
        if self._process is not None:
            self._process.terminate()
        for lock in self._locks.values():
            lock.close()

    def _follow_once(self) -> HostError:
        """Why it has ended."""
        there = f"{self.followed.command} serve {shlex.quote(self.followed.folder)} --to-follower"
        said: deque[bytes] = deque(maxlen=20)
        command = ssh_command(self.followed.destination, there)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as self._process:
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            listener = threading.Thread(target=said.extend, args=(process.stderr,), daemon=True)
            listener.start()
            known = {path.name: path.stat().st_mtime_ns for path in self.followed.copies.glob(f"*{SUFFIX}")}
            with suppress(OSError):
                _say(process.stdin, {"known": known})
                process.stdin.flush()
            try:
                while head := process.stdout.readline(MOST_HEAD):
                    self._take(json.loads(head), process.stdout)
            except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                said.append(f"what it sends is not understood: {error}".encode())
            process.kill()
            listener.join(1)
        by_hand = shlex.join(["ssh", self.followed.destination, f"{there} </dev/null"])
        lines = [visible(line.decode(errors="replace").strip()) for line in said]
        return HostError(
            f"the runs of {self.followed} do not come: {next(filter(None, reversed(lines)), 'it has ended')}",
            code="serve.not-followed",
            where="--follow",
            next_step=f"Try it by hand: {by_hand} (--evenhand names the command there).",
        )

    def _take(self, head: Mapping[str, Any], stream: IO[bytes]) -> None:
        self.trouble = ""
        self.is_begun.set()
        if "run" in head:
            octets = int(head["octets"])
            if not 0 < octets <= MAX_FILE_BYTES:
                raise ValueError(f"a run of {octets} octets")
            self._keep(_name(head["run"]), int(head["stamp"]), stream.read(octets), octets)
            return
        for name in head["gone"]:
            self._release(_name(name))
            for path in (self._path(name), running_path(self._path(name))):
                path.unlink(missing_ok=True)
        running = {_name(name): document for name, document in head["running"].items()}
        for name, document in running.items():
            self._show_running(name, document)
        for name in [name for name in self._locks if name not in running]:
            self._release(name)

    def _keep(self, name: str, stamp: int, content: bytes, octets: int) -> None:
        """Replace the copy, and have it locked from its first moment if the one before was."""
        if len(content) < octets:
            return  # the connection has ended
        part = self.followed.copies / f".{name}.part"
        part.write_bytes(content)
        os.utime(part, ns=(stamp, stamp))
        before = self._locks.pop(name, None)
        if before is not None:
            self._lock(name, part)
        part.replace(self._path(name))
        if before is not None:
            before.close()

    def _show_running(self, name: str, document: Any) -> None:
        path = self._path(name)
        if not path.exists():
            return
        if name not in self._locks:
            self._lock(name, path)
        if document is None:
            running_path(path).unlink(missing_ok=True)
            return
        # Its clock and its processes mean nothing here.
        told = json.dumps({**document, "process": os.getpid(), "written_at": time.time()})
        part = path.with_name(f".{name}.now")
        part.write_text(told, encoding="utf-8")
        part.replace(running_path(path))

    def _lock(self, name: str, path: Path) -> None:
        self._locks[name] = ExitStack()
        with suppress(EvenhandError):
            self._locks[name].enter_context(holding([campaign_resource(path)], where=str(path), next_step=""))

    def _release(self, name: str) -> None:
        lock = self._locks.pop(name, None)
        if lock is not None:
            lock.close()
            running_path(self._path(name)).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.followed.copies / name


def _name(name: Any) -> str:
    """ValueError for what may not be the name of a run here."""
    if (
        not isinstance(name, str)
        or not name.endswith(SUFFIX)
        or name.startswith(".")
        or "/" in name
        or "\0" in name
        or len(name.encode()) > LONGEST_NAME
    ):
        raise ValueError(f"{name!r:.80} is not the name of a run")
    return name


@contextmanager
def following(followed: FollowedFolder) -> Iterator[Follower]:
    """Follow it until the block ends. When it begins, the first runs are coming.

    Raises:
        HostError: It cannot be reached, or another process of this user follows it.
    """
    follower = Follower(followed)
    followed.copies.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(followed.copies / ".lock"))
        except BlockingIOError:
            raise HostError(
                f"another process of yours follows {followed}",
                code="serve.followed-already",
                where="--follow",
                next_step="Look at its pages.",
            ) from None
        stack.callback(follower.stop)
        threading.Thread(target=follower.follow, daemon=True).start()
        follower.is_begun.wait()
        if follower.first_error is not None:
            raise follower.first_error
        yield follower
