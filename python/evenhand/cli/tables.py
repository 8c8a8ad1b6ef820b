# SPDX-License-Identifier: Apache-2.0
"""One table over frame sizes and repetitions, on stdout."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from evenhand.cli.common import out, write_json
from evenhand.procedure import LossTable, ThroughputTable
from evenhand.report import table_lines


def show_table(verb: str, found: ThroughputTable | LossTable, shown: Table, run: Path | None, *, is_json: bool) -> None:
    """As the one document, or as a table with what a reader must know of it."""
    if is_json:
        write_json({"command": verb, "run": None if run is None else str(run), **found.to_document()})
        return
    console = out()
    console.print(shown)
    console.print()
    for line in table_lines(found):
        console.print(line, markup=False)
    if run is not None:
        console.print(f"Stored in {run}.", markup=False)
