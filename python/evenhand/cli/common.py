# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: options, and how values from the command line are read."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.units import format_count
from evenhand.plan import TOPOLOGIES, AddressPlan, plan_title, plan_warnings
from evenhand.report import measured_report
from evenhand.series import RunStore, StorageError

DEFAULT_SEED = 1
MAX_SEED = 2**64 - 1
JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to stdout; progress goes to stderr.")
]
_PLANS = f"One of: {', '.join(plan_title(name) for name in TOPOLOGIES)}."
NameArgument = Annotated[str, typer.Argument(metavar="PLAN", help=_PLANS)]
OptionalNameArgument = Annotated[str | None, typer.Argument(metavar="PLAN", help=_PLANS)]
TestbedArgument = Annotated[
    str,
    typer.Argument(
        metavar="TESTBED", help="A testbed file (TOML), or lab:linux or lab:vm for a lab that is up."
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Same seed, same frames.")]
EngineOption = Annotated[
    Path | None, typer.Option("--engine", help="The engine; default: EVENHAND_ENGINE, this checkout's, PATH.")
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="Store the run here (must not exist). Default: VERB-DATE-TIME.evenhand in this folder.",
    ),
]
NoRunOption = Annotated[bool, typer.Option("--no-run", help="Store nothing.")]
HostNameOption = Annotated[
    bool,
    typer.Option("--host-name", help="Store the name of this host as well; without it a run does not tell."),
]


def quoted(path: Path | str) -> str:
    """As it has to be typed."""
    return shlex.quote(str(path))


def run_file(verb: str, run: Path | None, no_run: bool) -> Path | None:
    """Where the run is stored, with a free name for its page too. None for nowhere.

    An hour of trials should not be lost because an option was forgotten.
    """
    if no_run:
        if run is not None:
            raise RequestError(
                "both a file and none at all", where="--run, --no-run", next_step="Give one of them."
            )
        return None
    if run is not None and not run.name:
        raise RequestError(
            f"{str(run)!r} is no name of a file",
            where="--run",
            next_step="Name a new file: --run monday.evenhand.",
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
    # A file that exists is refused here; it is not ours, and nothing is said of trials in it.
    store = RunStore.create(run, command=command_line(), host_name=host_name)
    try:
        with store:
            yield store
    except BaseException as error:
        console = err()
        if isinstance(error, StorageError):
            for part in measured_report(store.measured):
                console.print(part)
        if store.stored_trials:
            trials = (
                "1 trial is"
                if store.stored_trials == 1
                else f"{format_count(store.stored_trials)} trials are"
            )
            console.print(f"{trials} stored in {run}.", markup=False, soft_wrap=True)
        elif not isinstance(error, EvenhandError) or store.measured:
            console.print("No trial is stored.", markup=False)
        raise


def warn_about(plan: AddressPlan) -> None:
    """Say on stderr what of the plan may spoil a result (SEED-06)."""
    for warning in plan_warnings(plan):
        err().print(f"Warning: {warning}", markup=False, soft_wrap=True)


def out() -> Console:
    """stdout, for results. Without a terminal lines are not folded; tables then have the width of COLUMNS, or
    200."""
    return _console(stderr=False)


def err() -> Console:
    """stderr, for progress and notes; the same."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # No emoji: `:a:` in an IPv6 address or `:x:` in a file is what it is.
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal:
        return console
    columns = os.environ.get("COLUMNS", "")
    width = (int(columns) if columns.isdecimal() else 0) or 200
    return Console(stderr=stderr, highlight=False, emoji=False, width=width, soft_wrap=True)


def write_json(document: Any) -> None:
    """The one document of `--json`."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def write_json_line(document: Any) -> None:
    """One of several documents, of a verb that goes on: each is a line, so that a reader knows where it
    ends."""
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
    sys.stdout.flush()


def command_line() -> list[str]:
    """As typed, for the run file."""
    return ["evenhand", *sys.argv[1:]]
