# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/reading-a-series.md says is what the analysis does."""

from __future__ import annotations

from math import comb

from evenhand.analysis.medians import Pool, median_ratio
from evenhand.analysis.noise import LEAST_FOR_TEST
from evenhand.analysis.plateau import LEVEL, RELEVANT, possible_comparisons
from evenhand.analysis.published import FIGURE_7
from evenhand.analysis.ranks import least_p_value
from evenhand.base.units import format_count
from tests.docs.documents import read, table_rows

PAGE = "docs/explanation/reading-a-series.md"


def test_the_published_rows_are_those_of_the_code() -> None:
    """SEED-66."""
    shown = table_rows(PAGE, "case")
    expected = []
    for number, row in enumerate(FIGURE_7, start=1):
        fall = (
            "never"
            if row.falls_above is None
            else f"{format_count(row.falls_above)} x {format_count(row.falls_above)}"
        )
        expected.append([str(number), f"{row.rise_end} x {row.rise_end}", fall])
    assert shown == expected


def test_numbers_of_the_test_are_those_of_the_code() -> None:
    text = read(PAGE)
    ten = Pool(values=tuple(float(n) for n in range(1, 11)))
    interval = median_ratio(ten, ten).interval
    assert interval is not None
    assert f"the level of {LEVEL:g} is divided" in text
    assert f"at least {RELEVANT:.0%}".replace("%", " %") in text
    assert f"with 17 points {format_count(possible_comparisons(17))}" in text
    assert f"1 in {format_count(comb(20, 10))}" in text
    assert f"{interval.level:.1%} for ten repetitions".replace("%", " %") in text
    # Three are too few by themselves; four say nothing against a plateau of two points; ten always do.
    assert LEAST_FOR_TEST == 4
    assert least_p_value(4, 8) > LEVEL / possible_comparisons(17)
    assert least_p_value(10, 10) < LEVEL / possible_comparisons(17)
