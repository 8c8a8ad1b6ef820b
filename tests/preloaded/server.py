# SPDX-License-Identifier: Apache-2.0
"""Loads Evenhand once, and runs each command line that a client asks for in a child of its own.

A command takes half a second of CPU until it has loaded, and tests start a thousand. Each child begins with
what this process has: everything loaded, nothing done. It ends when its stdin does.

`server.py SOCKET evenhand|engine`: with `engine` each child is tests/trial/scripted_engine.py.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import pkgutil
import resource
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NoReturn

NOT_LOADED = ("evenhand.__main__",)
"""They do something when they are loaded."""
SCRIPTED = Path(__file__).resolve().parents[1] / "trial" / "scripted_engine.py"


@dataclass(slots=True)
class Child:
    """A command line that runs."""

    pid: int
    ended: int
    """A descriptor that is readable when it has ended."""
    client: socket.socket


def load_everything() -> Callable[[], object]:
    """What a child calls then."""
    import evenhand
    from evenhand.cli.main import app_of
    from evenhand.cli.registry import PLAN_VERBS, verb_names

    for module in pkgutil.walk_packages(evenhand.__path__, "evenhand."):
        if module.name not in NOT_LOADED:
            import_module(module.name)
    import_module("evenhand_command")
    import_module("matplotlib.figure")
    import_module("matplotlib.backends.backend_svg")
    for names in ((), *((verb,) for verb in (*verb_names(), *(f"plan {verb}" for verb in PLAN_VERBS)))):
        assert app_of(names).built is not None
    return lambda: import_module("evenhand_command").run()


def load_engine() -> Callable[[], object]:
    """The same for an engine that plays a part: its device takes most of its time to load."""
    spec = spec_from_file_location("scripted_engine", SCRIPTED)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.device_and_its_load()
    return lambda: module.main(*sys.argv[1:])


def serve(listener: socket.socket, run: Callable[[], object]) -> None:
    """Until stdin ends."""
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == 0:
                return
            if key.fileobj is listener:
                _begin(listener, selector, run)
            elif key.fd == key.data.ended:
                _reap(key.data, selector)
            elif key.fd in selector.get_map():  # else its child has ended in this turn
                _obey(key.data, selector)


def _begin(listener: socket.socket, selector: selectors.BaseSelector, run: Callable[[], object]) -> None:
    client, _ = listener.accept()
    line, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
    while not line.endswith(b"\n"):
        more = client.recv(1 << 16)
        if not more:
            break
        line += more
    if line.endswith(b"\n"):
        pid = os.fork()
        if pid == 0:
            for key in list(selector.get_map().values()):
                if key.fd:
                    os.close(key.fd)
            client.close()
            _be(json.loads(line), streams, run)
        child = Child(pid, os.pidfd_open(pid), client)
        selector.register(child.ended, selectors.EVENT_READ, child)
        selector.register(client, selectors.EVENT_READ, child)
    else:
        client.close()
    for stream in streams:
        os.close(stream)


def _reap(child: Child, selector: selectors.BaseSelector) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    selector.unregister(child.ended)
    os.close(child.ended)
    try:
        selector.unregister(child.client)
        child.client.sendall(str(code).encode())
    except (KeyError, OSError):  # the client has gone
        pass
    child.client.close()


def _obey(child: Child, selector: selectors.BaseSelector) -> None:
    """Signals that the client got. It is not reaped yet, so its id is its own."""
    try:
        numbers = child.client.recv(100)
    except OSError:
        numbers = b""
    for number in numbers or bytes([signal.SIGKILL]):
        os.kill(child.pid, number)
    if not numbers:
        selector.unregister(child.client)


def _be(request: dict[str, Any], streams: list[int], run: Callable[[], object]) -> NoReturn:
    """The command line, as a process that was just started."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for stream in streams:
            if stream > 2:
                os.close(stream)
        os.chdir(request["folder"])
        os.umask(request["umask"])
        os.sched_setaffinity(0, request["cpus"])
        for name, limit in request["limits"].items():
            kind = getattr(resource, name)
            if resource.getrlimit(kind) != tuple(limit):
                resource.setrlimit(kind, limit)
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # What the interpreter makes when it starts.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdout = _text_of(1, errors="strict")
        sys.stderr = _text_of(2, errors="backslashreplace")
        sys.argv = ["evenhand", *request["arguments"]]
        code = _code_of(run)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _text_of(number: int, *, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors)


def _code_of(run: Callable[[], object]) -> int:
    """Its exit code; what a process does at its end is done."""
    code = 0
    try:
        run()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    return code


def main(path: str, program: str = "evenhand") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and they this
    run = {"evenhand": load_everything, "engine": load_engine}[program]()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(100)
        print("loaded", flush=True)
        serve(listener, run)


if __name__ == "__main__":
    main(*sys.argv[1:])
