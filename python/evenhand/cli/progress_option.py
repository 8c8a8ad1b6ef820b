# SPDX-License-Identifier: Apache-2.0
"""How a verb shows what goes on: the same option everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.common import err

if TYPE_CHECKING:
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
    # Both take longer to load than a help.
    if form is ProgressForm.JSON:
        from evenhand.cli.progress.json_lines import JsonProgress

        return JsonProgress(err())
    from evenhand.cli.progress.line import ProgressDisplay

    return ProgressDisplay(err())
