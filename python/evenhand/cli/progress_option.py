# SPDX-License-Identifier: Apache-2.0
"""How a verb shows what goes on: the same option everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from evenhand.cli.common import err
from evenhand.cli.progress.json_lines import JsonProgress
from evenhand.cli.progress.line import ProgressDisplay


class ProgressForm(StrEnum):
    """What `--progress` may name."""

    AUTO = "auto"
    JSON = "json"


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
    return JsonProgress(err()) if form is ProgressForm.JSON else ProgressDisplay(err())
