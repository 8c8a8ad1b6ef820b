# SPDX-License-Identifier: Apache-2.0
"""`evenhand prune`: a folder of runs is kept small by age and size."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, parse_files
from evenhand.base.visible import visible
from evenhand.cli.common import JsonOption, out, write_json
from evenhand.run import SUFFIX
from evenhand.run.folder import FolderLimits, Pruned, Pruning
from evenhand.run.folder import prune as prune_folder

EXAMPLE = "Example: evenhand prune runs --days 90 --size 20GB"


def prune(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help=f"A folder of run files (*{SUFFIX}). Subfolders are not read."),
    ],
    days: Annotated[
        int | None,
        typer.Option("--days", metavar="N", min=1, help="Delete runs started more than N days ago."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="SIZE",
            help="Delete the oldest runs until all of them, with their pages, take no more than this: 500MB,"
            " 20GB.",
        ),
    ] = None,
    keep: Annotated[
        int,
        typer.Option(
            "--keep", metavar="N", min=1, help="Keep the N latest runs, however old or large they are."
        ),
    ] = 1,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished",
            help="Also delete runs that were cut short, and therefore can no longer be resumed.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Delete old runs of a folder, each with the page beside it.

    Files that are not runs of Evenhand, runs that are being measured or read, and by default runs that have
    not finished, are never deleted.
    """
    if days is None and size is None:
        raise RequestError(
            "neither an age nor a size is given, so no run would be deleted",
            code="cli.missing-option",
            where=f"evenhand prune {folder}",
            next_step="Add --days 90, --size 20GB, or both.",
        )
    from evenhand.report.page import MARK

    limits = FolderLimits(
        days=days,
        octets=None if size is None else parse_files(size, where="--size"),
        least=keep,
        is_unfinished_kept=not unfinished,
    )
    pruning = prune_folder(folder, limits, page_mark=MARK, now=datetime.now(UTC), is_dry=dry_run)
    if json_output:
        write_json(
            {
                "command": "prune",
                "dry_run": dry_run,
                "deleted": [_entry(each) for each in pruning.gone],
                "kept": [_entry(each) for each in pruning.held],
                "not_runs": [_entry(each) for each in pruning.not_runs],
                "runs": pruning.runs,
                "octets": pruning.octets,
            }
        )
        return
    for line in _lines(pruning, dry_run):
        out().print(visible(line), markup=False, soft_wrap=True)


def _lines(pruning: Pruning, is_dry: bool) -> list[str]:
    word = "Would delete" if is_dry else "Deleted"
    freed = sum(each.octets for each in pruning.gone)
    return [
        *(f"{word}: {each.path.name} ({each.reason})" for each in pruning.gone),
        *(f"Kept: {each.path.name} ({each.reason})" for each in pruning.held),
        *(f"Not touched: {each.path.name} ({each.reason})" for each in pruning.not_runs),
        f"{word} {_runs(len(pruning.gone))}, {_megabytes(freed)}; {_runs(pruning.runs)} left,"
        f" {_megabytes(pruning.octets)}.",
    ]


def _runs(count: int) -> str:
    return f"{format_count(count)} {'run' if count == 1 else 'runs'}"


def _megabytes(octets: int) -> str:
    return f"{format_count(round(octets / 1e6, 1))} MB"


def _entry(each: Pruned) -> dict[str, Any]:
    return {
        "file": each.path.name,
        "page": None if each.page is None else each.page.name,
        "octets": each.octets,
        "reason": each.reason,
    }
