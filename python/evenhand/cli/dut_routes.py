# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut setup`: the files of routes that a script needs beside it."""

from __future__ import annotations

from pathlib import Path

from evenhand.base.errors import HostError, RequestError
from evenhand.dut import DutScript


def write_routes(script: DutScript, folder: Path | None) -> list[Path]:
    """Write them, over those of a script before; what was written.

    Args:
        folder: As it was asked for.

    Raises:
        RequestError: The script needs files, and no folder is named; or the other way round; or there is no
            such folder.
        HostError: They cannot be written.
    """
    files = script.files
    if files and folder is None:
        raise RequestError(
            f"the routes of {script.setup.plan.title} are too many for a script, and go into files beside it",
            code="cli.routes-in-missing",
            where="--routes-in",
            next_step="Name a folder for them: --routes-in .",
        )
    if folder is None:
        return []
    if not files:
        raise RequestError(
            "this script needs no file of routes",
            code="cli.routes-in-not-needed",
            where="--routes-in",
            next_step="Omit it: up to 4,096 routes on a side are in the script itself.",
        )
    if not folder.is_dir():
        raise RequestError(
            f"there is no folder {folder}",
            code="cli.routes-in-no-folder",
            where="--routes-in",
            next_step="Make it first, or name another one.",
        )
    written = []
    for file in files:
        path = folder / file.name
        try:
            with path.open("w", encoding="ascii") as stream:
                stream.writelines(file.lines())
        except OSError as error:
            raise HostError(
                f"the file of routes cannot be written: {error.strerror}",
                code="cli.file-not-writable",
                where=str(path),
                next_step="Name another folder with --routes-in.",
            ) from error
        written.append(path)
    return written
