# SPDX-License-Identifier: Apache-2.0
"""What is ours: one record and one lock per lab under /run/evenhand/labs, and one file of all labs next to it
(limits.py).

The record is written before the first namespace is made and removed after the last one is gone. So whatever a
killed run leaves behind is known as ours, and what has no record is never touched. The kernel drops the lock
of a killed process by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from evenhand.base import locks
from evenhand.base.errors import HostError, RequestError
from evenhand.base.locks import Resource

STATE_DIRECTORY = Path("/run/evenhand/labs")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,8}", re.ASCII)


def check_name(name: str) -> None:
    """RequestError unless interface names of 15 characters can hold the lab's name."""
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} is not a name for a lab: 1 to 9 characters of a-z, 0-9, '-' and"
            " '_', beginning with a letter or digit",
            code="rig.not-a-lab-name",
            where="lab",
            next_step="Use a name such as linux or ci-2.",
        )


def record_path(name: str) -> Path:
    return STATE_DIRECTORY / f"{name}.json"


def read_record(name: str) -> dict[str, Any] | None:
    """The lab's record; None if there is none, {} if it is cut off or not ours to read."""
    try:
        record = json.loads(record_path(name).read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(name: str, record: dict[str, Any]) -> None:
    """Write or replace the record in one step."""
    write_file(record_path(name), record)


def write_file(path: Path, document: dict[str, Any]) -> None:
    """Write or replace a file of ours in one step. HostError if that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".json.new")
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(path)
    except OSError as error:
        raise HostError(
            f"cannot write: {error.strerror}",
            code="rig.lab-file-not-writable",
            where=str(path),
            next_step="The lab needs a writable /run.",
        ) from error


def remove_record(name: str) -> None:
    path = record_path(name)
    path.with_suffix(".json.new").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


@contextmanager
def hold(name: str) -> Iterator[None]:
    """Keep other processes, and other callers in this one, from changing the lab meanwhile.

    Raises:
        HostError: Someone holds it; names the process.
    """
    path = STATE_DIRECTORY / f"{name}.lock"
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.lock_file(path))
        except BlockingIOError:
            raise HostError(
                f"the lab {name!r} is in use by process {locks.locker(path)}",
                code="rig.lab-in-use",
                where="lab",
                next_step="Wait until it ends, or stop it.",
            ) from None
        except OSError as error:
            raise HostError(
                f"cannot lock: {error.strerror}",
                code="rig.lab-not-lockable",
                where=str(path),
                next_step="Run with sudo; /run must be writable.",
            ) from error
        yield


def tester_resource(name: str) -> Resource:
    """What a tester holds as long as it uses the lab's ports; not the lock of those who set labs up and take
    them down."""
    return Resource(key=f"lab {name}", label=f"the lab {name!r}")


@contextmanager
def kept_from_testers(name: str, *, force: bool) -> Iterator[None]:
    """Keep testers from the lab meanwhile.

    Args:
        force: Go on although there is one.

    Raises:
        HostError: There is one; names the process.
    """
    with ExitStack() as stack:
        next_step = "Wait until it ends, or stop it; `evenhand lab down --force` would spoil its trial."
        try:
            stack.enter_context(locks.holding([tester_resource(name)], where="lab", next_step=next_step))
        except HostError:
            if not force:
                raise
        yield
