# SPDX-License-Identifier: Apache-2.0
"""`evenhand show`: what is in a run file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import RequestError, suggestion
from evenhand.cli.common import JsonOption, out, write_json
from evenhand.report.campaign_document import summary_document
from evenhand.report.show import campaign_report, point_report
from evenhand.run import CampaignRecord, PointRecord, read_record

EXAMPLE = "Example: evenhand show first.evenhand --point 2"
FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A run file (*.evenhand) of a verb or a campaign; it may still be in progress."
    ),
]
PointOption = Annotated[
    str | None,
    typer.Option(
        "--point",
        metavar="N|KEY",
        help="Show one point with its results and all its trials; give its number or its key.",
    ),
]


def show(file: FileArgument, point: PointOption = None, json_output: JsonOption = False) -> None:
    """Show what is in a run file: what was measured, when, on what host and testbed, and the results.

    The file is only read, and treated as untrusted.
    """
    record = read_record(file)
    chosen = None if point is None else find_point(record, point)
    if json_output:
        write_json(
            {"command": "show", **summary_document(record, points=None if chosen is None else [chosen])}
        )
        return
    console = out()
    for part in campaign_report(record) if chosen is None else point_report(record, chosen):
        console.print(part)


def find_point(record: CampaignRecord, name: str) -> PointRecord:
    """The point by its number from 1, or by its key. RequestError if there is none."""
    found = next((point for point in record.points if point.point.key == name), None)
    if (
        found is None
        and name.isascii()
        and name.isdecimal()
        and len(name) < 10
        and 1 <= int(name) <= len(record.points)
    ):
        found = record.points[int(name) - 1]
    if found is None:
        near = suggestion(name, [point.point.key for point in record.points])
        known = (
            f"Write a number from 1 to {len(record.points)}."
            if record.points
            else "Omit it: this file has no points."
        )
        raise RequestError(
            f"there is no point {name!r}",
            code="cli.no-such-point",
            where="--point",
            next_step=f"Did you mean {near!r}?" if near else known,
        )
    return found
