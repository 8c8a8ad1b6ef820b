# SPDX-License-Identifier: Apache-2.0
"""`evenhand compare`: runs or campaigns side by side, and a code for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.analysis import compare as compare_records
from evenhand.analysis.comparison import compare_sessions
from evenhand.analysis.comparison_model import FailBy
from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_replaceable
from evenhand.base.units import parse_ratio
from evenhand.cli.common import JsonOption, PageOption, err, out, write_json
from evenhand.report.comparison import (
    comparison_document,
    comparison_lines,
    comparison_tables,
    differences_table,
)
from evenhand.run import read_record

EXAMPLE = "Example: evenhand compare before.evenhand after.evenhand --fail-below 0.97"
WORSE = 1
"""Exit code: a point is below the limit."""

FailByOption = Annotated[
    FailBy,
    typer.Option(
        "--fail-by",
        help="What must be below the limit: the whole interval of the ratio, adjusted for the"
        " number of points, or only the median ratio.",
    ),
]


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN RUN...", help="Run files; the others are compared with the first."),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help=(
                "A session of the second side; repeat the option for each. All other files are then"
                " sessions of the first side."
            ),
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option("--anyway", help="Also compare runs that were measured under different conditions."),
    ] = False,
    fail_below: Annotated[
        str | None,
        typer.Option(
            "--fail-below",
            metavar="RATIO",
            help="Exit with code 1 if a point is worse than this share of the first run: 0.97 or 97%.",
        ),
    ] = None,
    fail_by: FailByOption = "interval",
    html: PageOption = None,
    json_output: JsonOption = False,
) -> int:
    """Compare runs or campaigns point by point: ratios with their intervals, and the differences
    between the set-ups."""
    limit = None if fail_below is None else parse_ratio(fail_below, where="--fail-below")
    if limit == 0:
        raise RequestError(
            "the limit 0 can never be missed",
            code="cli.out-of-range",
            where="--fail-below",
            next_step="Write a ratio such as 0.97 or 97%.",
        )
    if html is not None:
        from evenhand.report.comparison_page import (
            write_comparison_page,
        )  # its libraries take longer than most verbs
        from evenhand.report.page import MARK

        check_replaceable(
            html, mark=MARK, where=f"--html {html}"
        )  # before anything is read: runs may be long
    records = [read_record(path) for path in runs]
    if against:
        comparison = compare_sessions([records, [read_record(path) for path in against]], anyway=anyway)
    else:
        comparison = compare_records(records, anyway=anyway)
    if html is not None:
        write_comparison_page(comparison, html, fail_below=limit, fail_by=fail_by)
        err().print(f"The page: {html}", markup=False, soft_wrap=True)
    if json_output:
        write_json(
            {"command": "compare", **comparison_document(comparison, fail_below=limit, fail_by=fail_by)}
        )
    else:
        console = out()
        for table in [*comparison_tables(comparison), differences_table(comparison)]:
            if table is not None:
                console.print(table)
                console.print()
        for line in comparison_lines(comparison, fail_below=limit, fail_by=fail_by):
            console.print(line, markup=False)
    return WORSE if limit is not None and comparison.below(limit, fail_by) else 0
