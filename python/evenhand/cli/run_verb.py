# SPDX-License-Identifier: Apache-2.0
"""The options of `evenhand run`. What it does is in `run.py`, which takes three times as long to load as a
help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.common import EngineOption, JsonOption
from evenhand.cli.run_options import HostNameOption, ProgressOption

EXAMPLE = (
    "Example: evenhand run series.toml --testbed lab.toml --run series.evenhand; later: evenhand run"
    " --resume series.evenhand"
)


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="CAMPAIGN",
            help=(
                "A campaign file (TOML), or preset:NAME. With --resume the file that stores the"
                " campaign is enough."
            ),
        ),
    ],
    *,
    testbed: Annotated[
        str | None,
        typer.Option(
            "--testbed",
            metavar="TESTBED",
            help=(
                "A testbed file, lab:linux, lab:vm, or reference. Default: the testbed that the campaign file"
                " names."
            ),
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="N",
            help="For lab:linux: a firewall of N rules, none of which matches; none; or auto for as many as"
            " make the DUT so slow that a tester with one CPU finds its limit. Default: as the campaign file"
            " says.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help=(
                "Address of a dask scheduler: measure on the testbeds of its workers (evenhand"
                " worker), one point at a time on each."
            ),
        ),
    ] = None,
    workers: Annotated[
        Path | None,
        typer.Option(
            "--workers",
            metavar="FILE",
            help=(
                "Start a worker on each machine that this file (TOML) names, over SSH if it is another"
                " machine, and measure on the testbeds of all."
            ),
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="FILE",
            help=(
                "Store the campaign in this file. Default: CAMPAIGN-DATE-TIME.evenhand in the current folder."
            ),
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted campaign; its results are kept.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="With --resume: also repeat what ended early, for example because a hook failed, or at"
            " the tester's ceiling.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show every point, what it sends, and the expected time, without measuring."
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="The page, updated after points. Default: the name of the run file with .html.",
        ),
    ] = None,
    no_html: Annotated[
        bool, typer.Option("--no-html", help="Do not write a page; evenhand report can write it at any time.")
    ] = False,
    host_name: HostNameOption = False,
    engine: EngineOption = None,
    progress: ProgressOption = "auto",
    json_output: JsonOption = False,
) -> None:
    """Measure a campaign, point by point; every trial is on disk before the next begins.

    Ctrl-C ends the campaign in order; after that, or after a power cut, --resume continues where it ended.
    The exit code is 1 if a point has no number.
    """
    from evenhand.cli.run import run_campaign

    run_campaign(
        file,
        testbed=testbed,
        rules=rules,
        scheduler=scheduler,
        workers=workers,
        run=run,
        resume=resume,
        again=again,
        dry_run=dry_run,
        html=html,
        no_html=no_html,
        host_name=host_name,
        engine=engine,
        progress=progress,
        json_output=json_output,
    )
