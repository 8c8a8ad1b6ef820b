# SPDX-License-Identifier: Apache-2.0
"""One unit and one number of decimals for values that stand side by side."""

from __future__ import annotations

import pytest

from evenhand.base.table import Cell, in_one_unit, in_row, make_table, measured
from evenhand.base.units import LEFT_OUT, LOSS, MEAN_FRAMES, MULTIPLE, SHARE, one_unit, write_alone


@pytest.mark.parametrize(
    ("values", "kind", "unit", "texts"),
    [
        ((5200.0, 5201.0), "fps", "kfps", ["5.200", "5.201"]),
        ((50_290.0, 398_400.0), "fps", "kfps", ["50.29", "398.40"]),
        ((640.0, 1e6), "fps", "fps", ["640", "1,000,000"]),
        ((999_960.0, 14_880_952.0), "fps", "Mfps", ["1.000", "14.881"]),
        ((5e4, 4e5, 0.0), "fps", "kfps", ["50", "400", "0"]),
        ((12.5, 383.512), "us", "ms", ["0.01250", "0.38351"]),
        ((0.0, 0.000062, 0.125), "ratio", "%", ["0.0000", "0.0062", "12.5000"]),
        ((0.25, 12.5), "s", "s", ["0.25", "12.50"]),
        ((5000.0, 12.0), "connections", "connections", ["5,000", "12"]),
        ((0.0,), "fps", "fps", ["0"]),
        ((0.000031, 0.5625, 0.0), LOSS, "%", ["0.0031", "56.2500", "0.0000"]),
        ((0.1234567, 0.36), LOSS, "%", ["12.35", "36.00"]),
        ((1 / 1_785_600_000, 1.0), LOSS, "%", ["0.000000056", "100.000000000"]),
        ((0.0625, 0.9999), SHARE, "%", ["6.25", "99.99"]),
        ((1.0, 0.5), SHARE, "%", ["100", "50"]),
        ((0.0251, 0.4), LEFT_OUT, "%", ["2.5", "40.0"]),
        ((1.125, 18.0), MULTIPLE, "", ["1.125", "18.000"]),
        ((8.0, 16.0), MULTIPLE, "", ["8", "16"]),
        ((99.5, 100.0, 0.25), MEAN_FRAMES, "frames", ["99.5", "100.0", "0.2"]),
    ],
)
def test_values_side_by_side_have_one_unit_and_one_number_of_decimals(
    values: tuple[float, ...], kind: str, unit: str, texts: list[str]
) -> None:
    """`5.2 kfps` above `5.201 kfps` is read as another precision; 12.5 us beside 1.2 ms as 1.2 us."""
    found = one_unit(values, kind)
    assert (found.unit, [found.write(value) for value in values]) == (unit, texts)


def test_the_unit_is_in_the_heading_and_in_cells_only_where_a_column_has_several() -> None:
    alike_rows: list[list[str | Cell]] = [
        [measured(5200, "fps"), "-"],
        [measured(5201, "fps", bound=">= "), "-"],
    ]
    alike = make_table(["#load", "#loss"], alike_rows)
    assert [column.title for column in alike.columns] == ["load, kfps", "loss"]
    assert [[cell.text for cell in row] for row in alike.rows] == [["5.200", "-"], [">= 5.201", "-"]]
    rows = [[measured(5200, "fps")], [measured(12.5, "us")], [measured(None, "us")]]
    mixed = make_table(["#result"], rows)
    assert [column.title for column in mixed.columns] == ["result"]
    texts = [["5.2 kfps"], ["0.0125 ms"], ["-"]]
    assert [[cell.text for cell in row] for row in mixed.rows] == texts
    assert [[cell.text for cell in row] for row in in_one_unit(rows)] == texts


def test_a_column_that_is_folded_keeps_its_unit() -> None:
    table = make_table(["#rate", "#x"], [[measured(5e5, "fps"), Cell(n)] for n in "ab"], fold=("rate",))
    assert table.caption == "All rows: rate 500 kfps."
    assert write_alone(12.5, "us") == "0.0125 ms"


def test_what_has_no_unit_has_none_in_its_heading_or_its_cells() -> None:
    rows: list[list[str | Cell]] = [[measured(1.125, MULTIPLE)], [measured(18.0, MULTIPLE)]]
    table = make_table(["#busiest / mean"], rows)
    assert [column.title for column in table.columns] == ["busiest / mean"]
    assert [[cell.text for cell in row] for row in table.rows] == [["1.125"], ["18.000"]]
    assert [cell.text for row in in_one_unit(rows) for cell in row] == ["1.125", "18.000"]


def test_what_stands_behind_a_value_stays_behind_its_unit() -> None:
    cells: list[list[str | Cell]] = [
        [measured(1.0, "s", bound="1.03 for ", after=" of clean time")],
        [measured(2.0, "s")],
    ]
    assert [row[0].text for row in in_one_unit(cells)] == ["1.03 for 1 s of clean time", "2 s"]
    table = make_table(["#duration"], cells)
    assert [column.title for column in table.columns] == ["duration, s"]
    assert [row[0].text for row in table.rows] == ["1.03 for 1 of clean time", "2"]


def test_a_row_of_its_own_quantity_has_its_unit_behind_its_title() -> None:
    found = in_row("poll gap", [measured(4123, "us"), measured(50, "us")])
    assert [cell.text for cell in found] == ["poll gap, ms", "4.123", "0.050"]
    assert [cell.text for cell in in_row("lost frames", ["1", "2"])] == ["lost frames", "1", "2"]
    table = make_table(["", "#forward", "#reverse"], [found])
    assert [cell.text for cell in table.rows[0]] == ["poll gap, ms", "4.123", "0.050"]
