# SPDX-License-Identifier: Apache-2.0
"""Messages of the engine and the reference router, as the programs write them when they get requests that
they must refuse."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from evenhand.base.programs import ENGINE, ROUTER, find_program
from tests.base.refused_requests import configurations, sessions

GUARD_S = 60


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    program: str
    code: str
    what: str
    next_step: str


def faults() -> set[Fault]:
    """HostError if a program is not built."""
    return {*_of_engine(), *_of_router()}


def _of_engine() -> Iterator[Fault]:
    for session in sessions():
        done = subprocess.run(
            [find_program(ENGINE)],
            input="".join(f"{asked.line}\n" for asked in session),
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=True,
        )
        for asked, line in zip(session, done.stdout.splitlines(), strict=True):
            told = json.loads(line)
            assert ("fault" in told) == asked.is_refused, f"{asked.line}\n{line}"
            if asked.is_refused:
                yield _fault("engine", told["fault"])


def _of_router() -> Iterator[Fault]:
    """It reads its configuration before it opens anything."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        for text in configurations():
            file.write_text(text)
            done = subprocess.run(
                [find_program(ROUTER), file],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=GUARD_S,
                check=False,
            )
            assert done.returncode == 2, f"{text}\n{done.stdout}{done.stderr}"
            yield _fault("router", json.loads(done.stdout)["fault"])


def _fault(program: str, told: dict[str, str]) -> Fault:
    return Fault(program, told["code"], told["what"], told["next"])
