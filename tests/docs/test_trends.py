# SPDX-License-Identifier: Apache-2.0
"""What the documents say of trends is what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.alarm_rates import (
    KINDS,
    LENGTHS,
    PLACES,
    SEEDS,
    alarm_rows,
    alarms,
    any_night_row,
    detection_rows,
)
from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "explanation" / "trends.md"


def _rows(page: Path, columns: int) -> list[list[str]]:
    rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("| ")]
    return [
        [cell.strip() for cell in row] for row in rows if len(row) == columns and row[0].strip().isdigit()
    ]


@pytest.mark.thorough
def test_false_alarms_are_as_rare_as_the_page_says() -> None:
    rows = alarm_rows()
    assert _rows(PAGE, 1 + len(KINDS)) == rows
    assert len(rows) == len(LENGTHS)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", LENGTHS)
def test_noise_makes_a_change_in_at_most_two_of_a_hundred_series(kind: str, count: int) -> None:
    """200 series of each kind, whatever the page says."""
    assert alarms(KINDS[kind], count) <= 0.02 * SEEDS


@pytest.mark.slow
def test_a_trend_that_is_looked_at_each_night_has_the_alarms_that_the_page_says() -> None:
    assert f"| {' | '.join(any_night_row())} |" in PAGE.read_text()


@pytest.mark.thorough
def test_steps_are_found_as_often_as_the_page_says() -> None:
    rows = detection_rows()
    assert _rows(PAGE, 5) == rows
    assert len(rows) == len(PLACES)
