# SPDX-License-Identifier: Apache-2.0
"""Tables at every width: nothing is cut, nothing is lost; and no table is made in another way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from evenhand.base import terminal_table
from evenhand.base.table import Cell, Column, make_table
from evenhand.base.terminal_table import FittedTable, Printable

PYTHON = Path(__file__).resolve().parents[2] / "python" / "evenhand"
REASON = "both directions: 18118 of 78303 frames left more than 500 us after they were due, the worst 8029 us"


def table() -> FittedTable:
    made = FittedTable("Trials")
    for name in ("no.", "load per direction", "loss"):
        made.add_column(name, justify="right")
    made.add_column("what and why")
    made.add_row("1", "14,880,952 fps", "0.0062 %", REASON)
    made.add_row("2", "999 fps", "", "as it should be")
    return made


def rendered(made: Printable, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal_table.rendered(made))
    return capture.get()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_number_is_cut_and_no_column_lost_at_any_width(width: int) -> None:
    """R2544-23: a verdict without its reason, or half a number, is no result."""
    text = rendered(table(), width)
    assert "…" not in text
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "14,880,952 fps" in text
    assert "0.0062 %" in text
    assert set(REASON.split()) <= set(text.split())
    assert {"no.", "load", "per", "direction", "loss", "what", "and", "why"} <= set(
        text.replace("\n", " ").split()
    )


def test_a_table_that_fits_is_as_rich_makes_it() -> None:
    assert rendered(table(), 200).splitlines()[1].split("  ")[0].strip() == "no."
    assert len(rendered(table(), 200).splitlines()) == 4


def test_headings_fold_before_rows_are_stacked() -> None:
    wide = FittedTable()
    for _ in range(4):
        wide.add_column("throughput per direction", justify="right")
    wide.add_row(*["14,880,952"] * 4)
    assert rendered(wide, 60).splitlines()[-1].split() == ["14,880,952"] * 4


@pytest.mark.parametrize(("width", "headings"), [(30, 2), (23, 3)])
def test_headings_fold_no_further_than_they_must(width: int, headings: int) -> None:
    """`per` on a line of its own is read as a heading."""
    made = FittedTable()
    made.add_column("direction")
    made.add_column("throughput per direction", justify="right")
    made.add_row("forward", "14,880,952")
    lines = [line.rstrip() for line in rendered(made, width).splitlines()]
    assert len(lines) == headings + 1
    assert (lines[1].strip() if headings == 2 else lines[0].split()[-1]) == (
        "direction  per direction" if headings == 2 else "throughput"
    )


def test_a_table_as_data_is_shown_with_its_caption_and_its_bars_where_there_is_room() -> None:
    """Texts are shown as they are, also those that look like markup."""
    made = make_table(
        [Column("key", is_name=True), "#share", "", "why"],
        [["[red]", "50 %", Cell("", bar=0.5), Cell("lost", "FAIL")], ["b", "100 %", Cell("", bar=1.0), "-"]],
        caption="Per direction.",
        title="Shares",
    )
    wide = rendered(made, 60).splitlines()
    assert wide[0].strip() == "Shares"
    assert wide[-1].strip() == "Per direction."
    half, whole = (line.count("█") for line in wide[2:4])
    assert half == whole // 2 > 5
    assert wide[2].startswith("[red]")
    narrow = rendered(made, 22)
    assert "█" not in narrow
    assert "50 %" in narrow


def test_all_tables_are_of_this_kind() -> None:
    """What Rich's own tables cut is found out by users with small terminals only. What else takes them has no
    table of data: pairs of a name and a fact, progress, and the options of a help text."""
    others = {
        str(path.relative_to(PYTHON)) for path in PYTHON.rglob("*.py") if "rich.table" in path.read_text()
    }
    assert others == {"base/terminal_table.py", "report/show.py", "cli/progress/campaign.py", "cli/verbs.py"}
    made = re.compile(r"(?<![\w.])(?:Table|Grid)\(.")
    assert [name for name in others if made.search((PYTHON / name).read_text())] == []
