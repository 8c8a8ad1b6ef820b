# SPDX-License-Identifier: Apache-2.0
"""What the tests of the server share: a folder of runs, the server in this process, and one of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evenhand.serve.access import AccessRules, GuardedApp
from evenhand.serve.app import make_app
from evenhand.serve.index import RunIndex
from evenhand.serve.live import Watcher
from tests.run.goldens import copy_recorded

LOCAL = {"host": "localhost:8740"}
SEVERAL = ("campaign-v4", "campaign-v6", "campaign-cut-short", "throughput-v6", "loss-v4")
GIVE_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Served:
    """A server that is asked without a socket: its index is brought up to date by hand."""

    index: RunIndex
    app: GuardedApp
    watcher: Watcher

    @classmethod
    def of(cls, folder: Path, **rules: Any) -> Served:
        served = cls.over(RunIndex(folder=folder), **rules)
        served.look()
        return served

    @classmethod
    def over(cls, index: RunIndex, **rules: Any) -> Served:
        watcher = Watcher(index=index)
        return cls(index, make_app(watcher, AccessRules(**rules)), watcher)

    def look(self) -> None:
        self.watcher.look()
        self.index.refresh(is_forced=True)
        while self.index.unread:
            self.index.refresh()
        self.watcher.look()

    def get(
        self, address: str, *, headers: Mapping[str, str] = LOCAL, method: str = "GET", body: bytes = b""
    ) -> Answer:
        parts = urlsplit(address)
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8740),
        }
        scope["path"] = _unquoted(parts.path)
        sent: list[Any] = []
        asked: list[None] = []

        async def receive() -> Any:
            asked.append(None)
            if len(asked) > 1:
                await asyncio.Event().wait()  # nothing more comes, and nobody goes away
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = sent[0]
        return Answer(
            start["status"],
            {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]},
            b"".join(message.get("body", b"") for message in sent[1:]),
        )


def _unquoted(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)


def recorded_folder(folder: Path, names: Sequence[str] = SEVERAL) -> Path:
    for name in names:
        copy_recorded(name, folder / f"{name}.evenhand")
    return folder


def wait_until(is_so: Callable[[], Any], what: str) -> Any:
    give_up = time.monotonic() + GIVE_UP_S
    while not (found := is_so()):
        assert time.monotonic() < give_up, what
        time.sleep(0.05)
    return found


@contextmanager
def server_process(folder: Path, *options: str) -> Iterator[str]:
    """`evenhand serve` as a process of its own; gives its address. It ends without a word, also while pages
    are open."""
    command = [sys.executable, "-m", "evenhand", "serve", str(folder), "--listen", "0", *options]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / ".cache")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "http://" in said, said + process.stderr.read()
        yield next(word for word in said.split() if word.startswith("http://127")).rstrip("/")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=GIVE_UP_S)[1] == ""
    finally:
        process.kill()
        process.wait()


@contextmanager
def run_process(path: Path, *, version: int = 4, trial_s: float = 1.0) -> Iterator[subprocess.Popen[bytes]]:
    """A run that goes on in a process of its own (tests/serve/simulated_run.py)."""
    command = [sys.executable, "-m", "tests.serve.simulated_run", str(path), str(version), str(trial_s)]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen(command, cwd=root, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
