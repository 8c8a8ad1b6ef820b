# SPDX-License-Identifier: Apache-2.0
"""What a procedure found, on stdout: as the one document, or as a table with what a reader must know of
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.base.terminal_table import FittedTable
from evenhand.cli.common import out, write_json
from evenhand.procedure.descriptor import Procedure
from evenhand.report.found import found_lines, found_tables
from evenhand.run import RunStore

WITHOUT_NUMBER = 1
"""Exit code: it has ended, and a number that was asked for was not found. The same of `run` and of each
verb."""


@dataclass(frozen=True, slots=True)
class ResultsAtLoads:
    """Results of one procedure at several loads, in their order."""

    by_share: Mapping[str, Any]
    """By the share of the throughput, as it was written."""

    def to_document(self) -> dict[str, Any]:
        """As a table has it: a row for each load."""
        found = {share: result.to_document() for share, result in self.by_share.items()}
        rows = [
            {
                "share": share,
                "frame_size": document["frame_size"],
                "imix": (document["mix"] or {}).get("imix"),
                "asked_repetitions": 1,
                "stopped_early": None,
                "repetitions": [document],
            }
            for share, document in found.items()
        ]
        deviations = [each for found in self.by_share.values() for each in found.deviations]
        return {"rows": rows, "deviations": [each.to_document() for each in dict.fromkeys(deviations)]}


def exit_code_of(procedure: Procedure, document: Mapping[str, Any]) -> int:
    """WITHOUT_NUMBER if a result has no number, or a frame size of a table has none in any repetition. A
    lower bound is one."""
    sizes = [row["repetitions"] for row in document["rows"]] if "rows" in document else [[document]]
    has_none = any(all(procedure.value(each) is None for each in of_size) for of_size in sizes)
    return WITHOUT_NUMBER if has_none else 0


def show_found(
    procedure: Procedure, found: Any, store: RunStore | None, *, first: Any = None, is_json: bool
) -> None:
    """
    Args:
        found: A result of the procedure, or a table of several.
        store: Where it is kept, if it is.
        first: What one address pair came to before it, if that was measured.
    """
    if is_json:
        run = None if store is None else str(store.path)
        before = {} if first is None else {"first_search": first.to_document()}
        write_json({"command": procedure.verb, "run": run, **found.to_document(), **before})
        return
    console = out()
    shown = [] if first is None else [(first, "Trials with one address pair")]
    if isinstance(found, ResultsAtLoads):
        shown += [(each, f"Trials at {share}") for share, each in found.by_share.items()]
    else:
        shown.append((found, "Trials"))
    for place, (result, title) in enumerate(shown):
        if place:
            console.print()
        for table in found_tables(result, procedure, title=title):
            console.print(FittedTable.of(table))
            console.print()
        for line in found_lines(result, procedure):
            console.print(line, markup=False)
    if store is not None:
        console.print(f"Stored in {store.path}.", markup=False)
