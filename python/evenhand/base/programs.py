# SPDX-License-Identifier: Apache-2.0
"""Where the programs of the data plane are: the engine and the reference router."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evenhand.base.errors import HostError

CHECKOUT = Path(__file__).resolve().parents[3]
"""The checkout that this package runs from, if it does (`is_checkout`); some folder of the system where it is
installed."""


def is_checkout(folder: Path | None = None) -> bool:
    """Whether this package runs from its checkout, where `make build` makes the programs. Else it is
    installed, and so are they."""
    return ((folder or CHECKOUT) / "meson.build").is_file()


def in_checkout(words: str, *, installed: str) -> str:
    """What to advise people to do: verbs of the Makefile only where there is one."""
    return words if is_checkout() else installed


def how_to_get_extra(extra: str) -> str:
    """The command that installs what an extra of this package needs; a clone has a lock for each."""
    return in_checkout(
        f".venv/bin/pip install --requirement requirements-{extra}.lock",
        installed=f"pip install 'evenhand[{extra}]'",
    )


def how_to_get_programs() -> str:
    """A sentence without its full stop."""
    return in_checkout(
        "Run `make build`", installed="Install the package evenhand-engine of the same version"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that `make build` makes, and the Debian package evenhand-engine installs."""

    name: str
    variable: str
    """Environment variable that may name it."""
    option: str
    """Option of the command line that may name it."""
    checkout: Path
    """Where the build puts it when this package runs from its checkout."""


ENGINE = Program(
    name="evenhand-engine",
    variable="EVENHAND_ENGINE",
    option="--engine",
    checkout=CHECKOUT / "build" / "engine" / "evenhand-engine",
)
ROUTER = Program(
    name="evenhand-router",
    variable="EVENHAND_ROUTER",
    option="--router",
    checkout=CHECKOUT / "build" / "router" / "evenhand-router",
)


def find_program(
    program: Program, option: Path | None = None, *, environment: Mapping[str, str] | None = None
) -> Path:
    """The program named by its option, else by its variable, else the checkout's, else the one on PATH.

    Raises:
        HostError: There is none, or the one that was named cannot be run.
    """
    environment = os.environ if environment is None else environment
    if option is not None:
        return _named(program, option, program.option)
    if environment.get(program.variable):
        return _named(program, Path(environment[program.variable]), program.variable)
    if _is_executable(program.checkout):
        return program.checkout
    on_path = shutil.which(program.name, path=environment.get("PATH"))
    if on_path is None:
        raise HostError(
            f"{program.name} was not found",
            code="base.program-missing",
            where=in_checkout(f"{program.checkout}, PATH", installed="PATH"),
            next_step=(
                f"{how_to_get_programs()}, or give its path with {program.option} or {program.variable}."
            ),
        )
    return Path(on_path)


def _named(program: Program, path: Path, where: str) -> Path:
    if not path.exists():
        raise HostError(
            f"{path} does not exist",
            code="base.program-missing",
            where=where,
            next_step=f"{how_to_get_programs()}, or name another.",
        )
    if not _is_executable(path):
        raise HostError(
            f"{path} is not an executable file",
            code="base.program-not-executable",
            where=where,
            next_step=f"Name an {program.name}.",
        )
    return path.resolve()


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP wait until the block ends, which must end by itself, such as putting a DUT
    back. Elsewhere than in the main thread it changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _frame: came.append(got)) for number in waiting}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


MOST_OUTPUT_OCTETS = 64 * 1024
"""Octets of a command's output that are kept; what comes after is read and thrown away."""
TERMINATE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_S = 1.0
"""Seconds to read on after the command has ended: a daemon that it started may keep its output open for
ever."""
_CUT = "\n[... cut after 64 KiB]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended."""

    exit_code: int | None
    """Negative: minus the signal that ended it. None: it took too long, and was ended."""
    output: str
    """All that it printed, errors among it."""
    duration_s: float
    """Seconds until it had ended."""


def run_shell_command(
    command: str, *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> CommandEnd:
    """Run it with /bin/sh, with what `environment` adds to this process's own, and wait for its end.

    A command that takes longer is ended, with all that it started; so it is by Ctrl-C or SIGTERM, which go on
    from here.
    """
    began = time.monotonic()
    output = bytearray()
    process: subprocess.Popen[bytes] | None = None
    exit_code: int | None = None
    try:
        # Who presses Ctrl-C before the process is known here would leave it behind.
        with uninterrupted():
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
            assert process.stdout is not None
            reader = threading.Thread(target=_read, args=(process.stdout, output), daemon=True)
            reader.start()
        exit_code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        assert process is not None
        _end(process)
    except BaseException:
        if process is not None:
            _end(process)
        raise
    duration_s = time.monotonic() - began
    reader.join(DRAIN_S)
    text = bytes(output[:MOST_OUTPUT_OCTETS]).decode(errors="replace") + (
        _CUT if len(output) > MOST_OUTPUT_OCTETS else ""
    )
    return CommandEnd(exit_code=exit_code, output=text, duration_s=duration_s)


def _read(stream: IO[bytes], output: bytearray) -> None:
    # One octet more than is kept shows that there was more.
    while chunk := stream.read1(65536):  # type: ignore[attr-defined]
        output += chunk[: MOST_OUTPUT_OCTETS + 1 - len(output)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group, also where its first process has ended already, and where a second Ctrl-C comes
    meanwhile."""
    try:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(TERMINATE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
