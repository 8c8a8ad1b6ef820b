# SPDX-License-Identifier: Apache-2.0
"""`evenhand trend`: each point over many runs, and where it changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.analysis.trend import trend as trend_of
from evenhand.analysis.trend_model import Over
from evenhand.base.new_file import check_replaceable
from evenhand.cli.common import JsonOption, PageOption, err, out, write_json
from evenhand.cli.stored_campaign import read_runs
from evenhand.report.trend import changes_table, points_table, trend_document, trend_lines
from evenhand.run import SUFFIX

EXAMPLE = "Example: evenhand trend runs --html trend.html"


def trend(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Run files (*{SUFFIX}), or folders with run files, in any order."
        ),
    ],
    over: Annotated[
        Over,
        typer.Option(
            "--over",
            help="The order of the runs: when they were started, or the version of their DUT (its kernel or"
            " system, as stated in the testbed file).",
        ),
    ] = "time",
    last: Annotated[
        int | None,
        typer.Option(
            "--last", metavar="N", min=1, help="Use only the N runs that started last. Default: all."
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Also show points that were measured under different conditions, each kind as a trend of its"
            " own.",
        ),
    ] = False,
    html: PageOption = None,
    json_output: JsonOption = False,
) -> None:
    """Follow each point over many runs, and find where it changed from one level to another.

    To compare two runs, use evenhand compare.
    """
    if html is not None:
        from evenhand.report.page import MARK
        from evenhand.report.trend_page import write_trend_page  # its libraries take longer than most verbs

        check_replaceable(html, mark=MARK, where=f"--html {html}")  # before runs are read, which may be long
    found = trend_of(read_runs(runs, last=last), over=over, anyway=anyway)
    if html is not None:
        write_trend_page(found, html)
        err().print(f"The page: {html}", markup=False, soft_wrap=True)
    if json_output:
        write_json({"command": "trend", **trend_document(found)})
        return
    console = out()
    for table in (changes_table(found), points_table(found)):
        if table is not None:
            console.print(table)
            console.print()
    for line in trend_lines(found):
        console.print(line, markup=False)
