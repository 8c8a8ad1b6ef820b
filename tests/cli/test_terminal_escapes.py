# SPDX-License-Identifier: Apache-2.0
"""Texts of others, such as a suite's or a testbed's name, give no orders to the terminal, whichever verb
shows them."""

from __future__ import annotations

import ast
import io
import sys
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evenhand.cli import common
from evenhand.cli.common import write_text

HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\u202ed\x9be\r\x00f"
ROOM = Path(common.__file__).parent
RAW = {"common.py", "error_output.py", "main.py", "streams.py", "version.py"}
"""Files that may write to the streams themselves; others print through a console, or by `write_text`."""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_that_is_printed_is_an_order_to_the_terminal(is_terminal: bool) -> None:
    stream = io.StringIO()
    console = common._Output(file=stream, force_terminal=is_terminal, color_system=None, width=200)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(Text(HOSTILE, style="bold"))
    for part in (HOSTILE, Text(HOSTILE), Panel(HOSTILE), table):
        console.print(part)
    console.out(HOSTILE)
    assert not set("\x1b\x07\u202e\x9b\x00\r") & set(stream.getvalue())
    assert "\\x1b]0;owned" in stream.getvalue()


def test_colours_of_our_own_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = io.StringIO()
    console = common._Output(file=stream, force_terminal=True, color_system="standard", no_color=False)
    console.print("[bold red]x[/]")
    assert stream.getvalue().startswith("\x1b[")


def test_what_a_program_reads_is_as_it_is_and_a_terminal_gets_no_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for is_terminal in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda shown=is_terminal: shown)
        monkeypatch.setattr(sys, "stdout", stream)
        write_text(f"a,b\n{HOSTILE}\n")
        assert ("\x1b" in stream.getvalue()) is not is_terminal
        assert stream.getvalue().startswith("a,b\n")


def test_every_verb_prints_through_the_same_place() -> None:
    """A verb that wrote to a stream by itself would be the next one that forgets it. JSON escapes what is not
    ASCII."""
    found = []
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or path.name in RAW:
                continue
            text = ast.unparse(node)
            is_raw = text.startswith(("print(", "sys.stdout.write(", "sys.stderr.write(", "Console("))
            if is_raw and "json.dumps" not in text:
                found.append(f"{path.name}: {text[:60]}")
    assert found == []
