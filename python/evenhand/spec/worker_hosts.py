# SPDX-License-Identifier: Apache-2.0
"""Workers file: on which machines a campaign's workers are started, and with which testbed each
(docs/how-to/measure-on-several-testbeds.md)."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from evenhand.base.validation.checked_file import FileKind, Loc, UnfitError, read_toml, refusal, refusing
from evenhand.rig import check_destination

DEFAULT_COMMAND = "evenhand"


def _destination(text: str) -> str:
    with refusing():
        return check_destination(text)


def _command(text: str) -> str:
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UnfitError(f"this is not a command line: {error}", code="spec.not-a-command") from error
    if not parts:
        raise UnfitError("it is empty, but must be a command line", code="spec.not-a-command")
    return text


class WorkerHost(BaseModel):
    """A machine that measures: `[[worker]]`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of its testbed, in results."""
    testbed: Annotated[str, Field(min_length=1)]
    """Testbed as `evenhand worker` takes it there: a file of that machine, `lab:linux`, or `reference`."""
    ssh: Annotated[str, AfterValidator(_destination)] | None = None
    """Where the machine is reached, as `ssh` takes it; None: this machine."""
    evenhand: Annotated[str, AfterValidator(_command)] = DEFAULT_COMMAND
    """The command there, such as `sudo -n /opt/evenhand/.venv/bin/evenhand`."""
    engine: str | None = None
    """Engine as for `--engine` of `evenhand worker`."""


class WorkersFile(BaseModel):
    """All of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    worker: Annotated[list[WorkerHost], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> WorkersFile:
        name, count = Counter(each.name for each in self.worker).most_common(1)[0]
        if count > 1:
            raise UnfitError(f"{count} workers are named {name!r}", code="spec.worker-name-twice")
        return self


def read_workers(path: Path) -> tuple[WorkerHost, ...]:
    """Read and check a workers file; touches nothing but the file.

    Raises:
        RequestError: It cannot be read, a key is unknown, missing or wrong, or two workers have one name.
    """
    document = read_toml(path, kind=FileKind.WORKERS)
    try:
        return tuple(WorkersFile.model_validate(document).worker)
    except ValidationError as error:
        raise refusal(
            error, WorkersFile, where=str(path), place=lambda loc: _place(loc, document), advice={}
        ) from error


def _place(loc: Loc, document: dict[str, Any]) -> str:
    """`worker 'munich': testbed`; the number of one that has no name."""
    parts: list[str] = []
    for part in loc:
        if isinstance(part, int):
            workers = document.get("worker")
            entry = workers[part] if isinstance(workers, list) and part < len(workers) else None
            name = entry.get("name") if isinstance(entry, dict) else None
            parts[-1] = f"worker {name!r}" if isinstance(name, str) else f"worker {part + 1}"
        else:
            parts.append(str(part))
    return ": ".join(parts)
