# SPDX-License-Identifier: Apache-2.0
"""`evenhand status`: how far a campaign is, also while another terminal measures it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import JsonOption, out, write_json
from evenhand.report.campaign_status import campaign_document, campaign_lines, campaign_table
from evenhand.run.campaign.time_left import time_left
from evenhand.run.campaign_status import CampaignStatus, read_status

EXAMPLE = "Example: evenhand status appendix-a.evenhand"


def status(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file of the campaign (*.evenhand), finished or not.")
    ],
    *,
    json_output: JsonOption = False,
) -> None:
    """Show the progress of a campaign: points, trials, verdicts, time left. The measurement is not
    disturbed."""
    show_status("status", read_status(file), is_json=json_output)


def show_status(verb: str, found: CampaignStatus, *, is_json: bool) -> None:
    """Show the status on stdout."""
    left = TimeSpan.of(0.0) if found.finished_at is not None else time_left(found.points)
    if is_json:
        write_json({"command": verb, **campaign_document(found, left)})
        return
    console = out()
    console.print(campaign_table(found))
    console.print()
    for line in campaign_lines(found, left):
        console.print(line, markup=False)
