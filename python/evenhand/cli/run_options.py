# SPDX-License-Identifier: Apache-2.0
"""Options of verbs that measure: where the run is stored, and how it is shown what goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.units import format_count
from evenhand.cli.common import command_line, err

if TYPE_CHECKING:
    from evenhand.cli.progress.line import ProgressDisplay
    from evenhand.run import RunStore

RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help=(
            "Store the run in this file, which must not exist. Default: VERB-DATE-TIME.evenhand in the"
            " current folder."
        ),
    ),
]
NoRunOption = Annotated[bool, typer.Option("--no-run", help="Store nothing.")]
HostNameOption = Annotated[
    bool, typer.Option("--host-name", help="Store the name of this machine in the run as well.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where the run is stored."""

    run: RunOption = None
    no_run: NoRunOption = False
    host_name: HostNameOption = False

    @contextmanager
    def open(self, verb: str) -> Iterator[RunStore | None]:
        """The run's file; None if there shall be none. See `open_run`."""
        path = run_file(verb, self.run, self.no_run)
        if path is None:
            yield None
            return
        with open_run(path, host_name=self.host_name) as store:
            yield store


def run_file(verb: str, run: Path | None, no_run: bool) -> Path | None:
    """Where the run is stored, with a free name for its page too. None for nowhere.

    An hour of trials should not be lost because an option was forgotten.
    """
    if no_run:
        if run is not None:
            raise RequestError(
                "both a run file and no run file are requested",
                code="cli.options-exclude-each-other",
                where="--run, --no-run",
                next_step="Give only one of them.",
            )
        return None
    if run is not None and not run.name:
        raise RequestError(
            f"{str(run)!r} is not a file name",
            code="cli.not-a-file-name",
            where="--run",
            next_step="Name a new file, such as --run monday.evenhand.",
        )
    stem = f"{verb}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = (Path(f"{stem}{'' if n == 1 else f'-{n}'}.evenhand") for n in count(1))
    return run or next(
        file for file in names if not any(map(os.path.lexists, (file, file.with_suffix(".html"))))
    )


@contextmanager
def open_run(run: Path, *, host_name: bool) -> Iterator[RunStore]:
    """The run's file, as long as the verb goes on. A verb that ends early says where the trials are that it
    has made.

    Where they are nowhere, because the disk is full, it shows them on stderr; stdout stays empty, as with
    every error.
    """
    from evenhand.run import RunStore, StorageError  # takes longer to load than a help

    # A file that exists is refused here; it is not ours, and nothing is said of trials in it.
    store = RunStore.create(run, command=command_line(), host_name=host_name)
    try:
        with store:
            yield store
    except BaseException as error:
        console = err()
        if isinstance(error, StorageError):
            from evenhand.report.measured import measured_report

            for part in measured_report(store.measured):
                console.print(part)
        if store.stored_trials:
            trials = (
                "1 trial is"
                if store.stored_trials == 1
                else f"{format_count(store.stored_trials)} trials are"
            )
            console.print(f"{trials} stored in {run}.", markup=False, soft_wrap=True)
        elif isinstance(error, StorageError) or not isinstance(error, EvenhandError) or store.measured:
            console.print("No trial is stored.", markup=False)
        raise


ProgressForm = Literal["auto", "json"]
ProgressOption = Annotated[
    ProgressForm,
    typer.Option(
        "--progress",
        help="Progress on stderr. auto: a live line on a terminal, otherwise a line for each trial;"
        " json: a JSON line for each event, and one per second while a trial runs.",
    ),
]


def progress_display(form: ProgressForm) -> ProgressDisplay:
    """The display that was asked for."""
    # Both take longer to load than a help.
    if form == "json":
        from evenhand.cli.progress.json_lines import JsonProgress

        return JsonProgress(err())
    from evenhand.cli.progress.line import ProgressDisplay

    return ProgressDisplay(err())
