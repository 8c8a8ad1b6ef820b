# SPDX-License-Identifier: Apache-2.0
"""What a procedure found, on stdout: as the one document, or as a table with what a reader must know of
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rich.table import Table

from evenhand.cli.common import out, write_json
from evenhand.series import RunStore


class _Found(Protocol):
    def to_document(self) -> dict[str, Any]: ...


F = TypeVar("F", bound=_Found)


def show_found(
    verb: str,
    found: F,
    table_of: Callable[[F], Table],
    lines_of: Callable[[F], Sequence[str]],
    store: RunStore | None,
    *,
    is_json: bool,
) -> None:
    """
    Args:
        table_of: And `lines_of`: only called where people read.
        store: Where it is kept, if it is.
    """
    if is_json:
        write_json(
            {"command": verb, "run": None if store is None else str(store.path), **found.to_document()}
        )
        return
    console = out()
    console.print(table_of(found))
    console.print()
    for line in lines_of(found):
        console.print(line, markup=False)
    if store is not None:
        console.print(f"Stored in {store.path}.", markup=False)
