# SPDX-License-Identifier: Apache-2.0
"""The command `evenhand` for tests that need a process, but no interpreter of its own: most of the CPU time
of a command goes into loading Evenhand.

It has arguments, environment, folder, limits, streams, signals and an exit code of its own. Not for tests of
what happens while Python loads, of memory, of closed descriptors, or of a process's id.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


@cache
def evenhand_command(*inside: str) -> tuple[str, ...]:
    """What stands before its arguments. The server behind it starts with the first one, and ends with this
    process, however that ends.

    Args:
        inside: The beginning of a command line that starts the server where the commands shall be, such as
            `ip netns exec NAME`.
    """
    return _command_of(inside, "evenhand")


@cache
def scripted_engine_command() -> tuple[str, ...]:
    """What stands before the part that tests/trial/scripted_engine.py plays, and its file of requests. Not
    for tests of the session, whose engine is a process of its own."""
    return _command_of((), "engine")


def _command_of(inside: tuple[str, ...], program: str) -> tuple[str, ...]:
    folder = Path(mkdtemp(prefix="evenhand-tests-"))  # a short one: a socket's path has 107 octets
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    socket = folder / "server"
    server = subprocess.Popen(
        [*inside, sys.executable, FOLDER / "server.py", socket, program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "loaded\n"
    atexit.register(server.wait)  # so that what it and its children used counts as used by the tests
    atexit.register(server.kill)
    return (sys.executable, "-I", "-S", str(FOLDER / "client.py"), str(socket))


def put_on_path(folder: Path) -> None:
    """A program `evenhand` in this folder."""
    program = folder / "evenhand"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(evenhand_command())} "$@"\n')
    program.chmod(0o755)
