# SPDX-License-Identifier: Apache-2.0
"""Messages of the engine and the reference router, as the programs write them when they get requests that
they must refuse. `python -m tests.base.messages` writes them to tests/files/program_messages.toml."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from evenhand.base.programs import ENGINE, ROUTER, find_program
from tests.base.refused_requests import configurations, own_cpu, sessions

FILE = Path(__file__).resolve().parents[1] / "files" / "program_messages.toml"
COMMAND = "python -m tests.base.messages"
GUARD_S = 60
_HEAD = f"""\
# SPDX-License-Identifier: Apache-2.0
# What the engine and the reference router write when they refuse a request, by program and code: what is
# wrong, and what to do next. `{COMMAND}` makes this file from what the built programs
# answer to tests/base/refused_requests.py. What only a missing right, a NIC or too little memory brings about
# is not here.

"""
_VALUE = re.compile(
    r'"(?:[^"\\]|\\.)*"|[^ ,="]*\d[^ ,="]*|(?<=the key )\w+|(?<=Did you mean )\w+|\bnet_\w+'
    r"|\S+(?= stands twice)"
)
"""A name, a number or an address in a message."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    program: str
    code: str
    what: str
    next_step: str


def faults() -> list[Fault]:
    """In the order of the file. Of those that differ in a value alone, the first.

    Raises:
        HostError: A program is not built.
    """
    found: dict[Fault, Fault] = {}
    for fault in sorted({*_of_engine(), *_of_router()}):
        found.setdefault(_without_values(fault), fault)
    return list(found.values())


def as_toml(found: Iterable[Fault]) -> str:
    lines = [_HEAD]
    for (program, code), group in groupby(found, key=attrgetter("program", "code")):
        for fault in group:
            lines.append(f"[[{program}.{code}]]\n")
            lines.append(f"what = {json.dumps(fault.what, ensure_ascii=False)}\n")
            lines.append(f"next = {json.dumps(fault.next_step, ensure_ascii=False)}\n\n")
    return "".join(lines).rstrip("\n") + "\n"


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
    # The library that reads JSON words its errors differently from version to version.
    what = re.sub(r"(?<=is not JSON: ).*", "{error}", told["what"])
    return Fault(program, told["code"], what.replace(f"CPU {own_cpu()}", "CPU {cpu}"), told["next"])


def _without_values(fault: Fault) -> Fault:
    return Fault(fault.program, fault.code, _VALUE.sub("{}", fault.what), _VALUE.sub("{}", fault.next_step))
