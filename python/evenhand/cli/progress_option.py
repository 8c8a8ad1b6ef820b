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
        help="On stderr. auto: a live line on a terminal, a line for each trial elsewhere; json: a JSON line"
        " each second.",
    ),
]


def progress_display(form: ProgressForm) -> ProgressDisplay:
    """The display that was asked for."""
    return JsonProgress(err()) if form is ProgressForm.JSON else ProgressDisplay(err())
