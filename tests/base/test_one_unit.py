# SPDX-License-Identifier: Apache-2.0
"""One unit and one number of decimals for values that stand side by side."""

from __future__ import annotations

import pytest

from evenhand.base.one_unit import one_unit, write_alone
from evenhand.base.table import Cell, in_one_unit, make_table, measured


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
