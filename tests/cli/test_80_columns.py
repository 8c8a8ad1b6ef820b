# SPDX-License-Identifier: Apache-2.0
"""Every table of every verb at 80 columns: no cell, no heading and no number is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.terminal_table import LEAST_TEXT, FittedTable
from tests.cli.running import Ended
from tests.cli.test_json_documents import DEVICE, DEVICES, LINES, QUICK, REAL_ENGINE, WITHOUT_NUMBER

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SERIES = {
    "predict --series": ("predict", "gateway-v6", "--elements", "36", "--rate", "1Mfps", "--series"),
    "throughput of several sizes": (*LINES["throughput"], "--frame-size", "64,128", "--repetitions", "3"),
    "throughput by mlr": (*LINES["throughput"], "--search", "mlr"),
    "loss of several sizes": (*LINES["loss"], "--frame-size", "64,1518", "--repetitions", "2"),
}
EMPTY = {f"{verb} without a number": line for verb, line in WITHOUT_NUMBER.items()}
ALL = {**LINES, **SERIES, **EMPTY}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.wire if name in REAL_ENGINE else ()) for name in ALL]
)
def test_nothing_is_lost_at_80_columns(
    evenhand: Run, engine_playing: Play, testbed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """R2544-23: what a reader must know of a result does not depend on the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    shown: list[FittedTable] = []
    render = FittedTable.__rich_console__

    def remember(self: FittedTable, *arguments: Any) -> Any:
        shown.append(self)
        return render(self, *arguments)

    monkeypatch.setattr(FittedTable, "__rich_console__", remember)
    if name not in REAL_ENGINE:
        engine_playing(DEVICES.get(name, DEVICE))
    if "run.evenhand" in ALL[name]:
        evenhand("throughput", testbed, *QUICK[:-1], "--final-duration", "1s", "--run", "run.evenhand")
        shown.clear()
    ended = evenhand(*[testbed if word == "TESTBED" else word for word in ALL[name]])
    assert ended.code == (1 if name in EMPTY else 0), ended.err
    assert "…" not in ended.out
    words = set(ended.out.split())
    for table in shown:
        assert table.row_count
        for column in table.columns:
            cells = [re.sub(r"\[/?[a-z ]*\]", "", str(cell)) for cell in column.cells]
            for text in (str(column.header), *cells):
                # A longer word may be folded; it is then there in parts.
                assert {word for word in text.split() if len(word) <= LEAST_TEXT} <= words, (
                    column.header,
                    text,
                )


@pytest.mark.parametrize("columns", [80, 120])
def test_a_series_stays_a_table_and_its_bars_take_what_room_there_is(
    evenhand: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Seventeen paragraphs of seven lines show no curve."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = evenhand("predict", "gateway-v6", "--elements", "36", "--rate", "1Mfps", "--series")
    bars = [line.count("█") for line in ended.out.splitlines() if line.rstrip().endswith(("█", "▌"))]
    assert len(bars) == 17
    assert max(len(line) for line in ended.out.splitlines() if " of 36 " in line) <= columns
    assert 10 <= max(bars) <= columns // 3
    assert bars[0] < bars[2] < bars[-1]
