# SPDX-License-Identifier: Apache-2.0
"""How an error is reported: three lines on stderr, and with --json the one document on stdout as well
(contract/error.schema.json)."""

from __future__ import annotations

import sys
import traceback
from typing import TypeVar

from evenhand.base.errors import EvenhandError, error_part
from evenhand.base.visible import visible, visible_lines
from evenhand.cli.common import err, write_json

E = TypeVar("E", bound=EvenhandError)
_REPORTED = "the document contains the error"


def reported(error: E) -> E:
    """Mark an error that a verb's own document already contains under `error`, next to what the verb found,
    so that no second document is written."""
    error.add_note(_REPORTED)
    return error


def report_error(error: EvenhandError, command: str | None, *, is_json: bool, is_debug: bool) -> int:
    """Write the error to stderr, and with --json a document to stdout; returns the exit code.

    Args:
        command: The verb; None if it is not known.
    """
    if is_json and _REPORTED not in getattr(error, "__notes__", ()):
        write_json({"command": command, "error": error_part(error)})
    if is_debug:
        sys.stderr.write(visible_lines("".join(traceback.format_exception(error))))
    console = err()
    for title, text, style in (
        ("Error", error.what, "bold red"),
        ("Where", error.where, "bold"),
        ("Next", error.next_step, "bold"),
    ):
        if text:
            console.print(f"[{style}]{title}:[/] ", end="")
            console.print("\n".join(map(visible, text.split("\n"))), markup=False, soft_wrap=True)
    return error.exit_code
