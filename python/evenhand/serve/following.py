# SPDX-License-Identifier: Apache-2.0
"""The runs of another machine, over the user's own ssh: one connection, on which that host sends each run as
it was last committed, and several times a second the trials that are made. Nothing is written there.

Here the runs are copies in a folder below this user's cache, which is shown like any other; what is measured
there is known to this process alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.locks import lock_file
from evenhand.base.visible import visible
from evenhand.rig import check_destination, ssh_command
from evenhand.run.figures import RunningTrial, checked_running
from evenhand.run.run_file import SUFFIX
from evenhand.run.snapshot import MAX_FILE_BYTES, copy_to_memory
from evenhand.serve.index import RunIndex, RunState, cache_path, running_trial

LOOK_EVERY_S = 0.3
NICENESS = 10  # the other host waits for its measurements, not for this
READING_SHARE = 0.005  # largest share of a CPU there that sending a run that grows takes
AGAIN_S = 10.0  # after so long a connection that was lost is tried again
MOST_HEAD = 1_000_000  # octets of a line, as a run of names
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
        for name, entry in index.entries.items():
            is_again = entry.state is RunState.RUNNING or name not in sent
            is_early = is_again and not_before_s.get(name, 0.0) > time.monotonic()
            if sent.get(name) == entry.stamp[3] or is_early:
                continue
            began_s = time.thread_time()
            try:
                with closing(copy_to_memory(index.folder / name)) as connection:
                    content = connection.serialize()
            except EvenhandError:
                not_before_s[name] = time.monotonic() + AGAIN_S
                continue
            sent[name] = entry.stamp[3]
            _say(sink, {"run": name, "stamp": sent[name], "octets": len(content)})
            sink.write(content)
            not_before_s[name] = time.monotonic() + (time.thread_time() - began_s) / READING_SHARE
        gone = [] if index.unread else list(sent.keys() - index.entries.keys())
        running = {
            name: _running(index.folder / name)
            for name, entry in index.entries.items()
            if entry.state is RunState.RUNNING
        }
        _say(sink, {"gone": gone, "running": running})
        sink.flush()
        sent = {name: stamp for name, stamp in sent.items() if name not in gone}
        time.sleep(LOOK_EVERY_S)


def _running(path: Path) -> dict[str, Any] | None:
    with suppress(EvenhandError):
        found = running_trial(path)
        return None if found is None else asdict(found)
    return None


def _say(sink: IO[bytes], document: Mapping[str, Any]) -> None:
    sink.write(json.dumps(document).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class FollowedFolder:
    """A folder of another machine; `command` is that of Evenhand there, for its shell."""

    destination: str
    folder: str
    command: str

    @classmethod
    def of(cls, text: str, command: str) -> FollowedFolder:
        """From `ssh:HOST[:FOLDER]`; an IPv6 address is in brackets. RequestError if it is none."""
        found = re.fullmatch(r"ssh:((?:[^@:]+@)?)(?:\[([^]]+)\]|([^@:[]+))(?::(.*))?", text)
        if found is None:
            raise RequestError(
                f"{text!r} is no folder of another machine",
                code="serve.not-to-follow",
                where="--follow",
                next_step="Write ssh:HOST or ssh:HOST:FOLDER; an IPv6 address as ssh:[2001:db8::1]:FOLDER.",
            )
        return cls(check_destination(f"{found[1]}{found[2] or found[3]}"), found[4] or ".", command)

    def __str__(self) -> str:
        return f"{self.destination}:{self.folder}"

    @property
    def copies(self) -> Path:
        """Where its runs are kept here."""
        return cache_path(Path("/ssh") / str(self)).with_suffix(".runs")


@dataclass(slots=True)
class Follower:
    """Keeps the copies up to date, in a thread of its own.

    `running`: trials that are made there, by run. `trouble`: why nothing comes now. `is_begun` is set when
    something has come, or it is known why not: `first_error`.
    """

    followed: FollowedFolder
    running: Mapping[str, RunningTrial | None] = field(default_factory=dict)
    trouble: str = ""
    is_begun: threading.Event = field(default_factory=threading.Event)
    first_error: HostError | None = None
    _process: subprocess.Popen[bytes] | None = None
    _is_over: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        """Until `stop`. A connection that is lost is made again."""
        while not self._is_over.is_set():
            error = self._follow_once()
            self.first_error = None if self.is_begun.is_set() else error
            self.trouble = f"{error.what}; what is shown is what had come by then"
            self.is_begun.set()
            self._is_over.wait(AGAIN_S)

    def stop(self) -> None:
        """End the connection."""
        self._is_over.set()
        if self._process is not None:
            self._process.terminate()

    def _follow_once(self) -> HostError:
        """Why it has ended."""
        there = f"{self.followed.command} serve {shlex.quote(self.followed.folder)} --to-follower"
        said: deque[bytes] = deque(maxlen=20)
        pipe, why = subprocess.PIPE, ""
        with subprocess.Popen(
            ssh_command(self.followed.destination, there), stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            self._process = process
            assert process.stdin is not None
            assert process.stdout is not None
            listener = threading.Thread(target=said.extend, args=(process.stderr,), daemon=True)
            listener.start()
            known = {path.name: path.stat().st_mtime_ns for path in self.followed.copies.glob(f"*{SUFFIX}")}
            with suppress(BrokenPipeError):
                _say(process.stdin, {"known": known})
                process.stdin.flush()
            try:
                while head := process.stdout.readline(MOST_HEAD):
                    self._take(json.loads(head), process.stdout)
            except OSError as error:
                why = f"no copy can be kept here: {error.strerror}"
            except Exception as error:  # whatever it sends, it is tried again
                why = f"what it sends is not understood: {error}"
            process.kill()
            listener.join(1)
        by_hand = shlex.join(["ssh", self.followed.destination, f"{there} </dev/null"])
        lines = (line.decode(errors="replace").strip() for line in reversed(said))
        why = visible(why or next(filter(None, lines), "it has ended"))
        return HostError(
            f"the runs of {self.followed} do not come: {why}",
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
        for name in map(_name, head["gone"]):
            (self.followed.copies / name).unlink(missing_ok=True)
        self.running = {
            _name(name): _here(document, self.running.get(name)) for name, document in head["running"].items()
        }

    def _keep(self, name: str, stamp: int, content: bytes, octets: int) -> None:
        """Replace the copy."""
        if len(content) < octets:
            return  # the connection has ended
        part = self.followed.copies / ".part"
        try:
            part.write_bytes(content)
            os.utime(part, ns=(stamp, stamp))
            part.replace(self.followed.copies / name)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def _here(document: Any, before: RunningTrial | None) -> RunningTrial | None:
    """With the time of this host: that of the other means nothing here. What stays the same gets older."""
    found = checked_running(document)
    if found is None or before is None or replace(found, written_at=before.written_at) != before:
        return None if found is None else replace(found, written_at=time.time())
    return before


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
def following(followed: FollowedFolder, title: str = "") -> Iterator[RunIndex]:
    """Follow it until the block ends; gives the index of the copies. When it begins, the first runs are
    coming.

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
        yield RunIndex.of(
            followed.copies, title=title, there=lambda: follower.running, trouble=lambda: follower.trouble
        )
