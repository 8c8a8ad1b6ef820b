# SPDX-License-Identifier: Apache-2.0
"""Plan files of the documents and examples are accepted; the lengths on the page are those of the code."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from evenhand.plan import make_own_plan, read_plan_file
from evenhand.plan.generated_prefixes import INTERNET_LENGTHS
from tests.docs.documents import ROOT, Block, blocks, name_of, table_rows

PAGE = "docs/reference/plan-file.md"
EXAMPLES = sorted((ROOT / "examples" / "plans").glob("*.toml"))


@pytest.mark.parametrize(
    "block",
    [
        block
        for block in blocks("toml")
        if "dut = " in block.text and "[left]" in block.text and "device" not in block.text
    ],
    ids=str,
)
def test_a_plan_file_in_a_page_is_accepted(block: Block, tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("198.19.0.0/24\n198.19.8.0/22\n")
    plan = make_own_plan(tomllib.loads(block.text), where=str(block), folder=tmp_path)
    assert plan.pairs > 1


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_is_accepted(path: Path) -> None:
    assert read_plan_file(path).pairs > 1


def test_the_page_has_the_lengths_of_generated_prefixes() -> None:
    for version, lengths in INTERNET_LENGTHS.items():
        (row,) = table_rows(PAGE, f"IPv{version}")
        assert [int(cell) for cell in row[1:]] == list(dict(sorted(lengths.items())).values())
