# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documents are drawn by the product's code, with the numbers that stand beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT
from tools import draw_pictures


def words(svg: bytes) -> list[str]:
    """What is written in it. Lines may lie elsewhere with another matplotlib, words may not."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())


@pytest.mark.parametrize("name", sorted(draw_pictures.PICTURES))
def test_a_picture_is_as_the_code_draws_it(name: str) -> None:
    """`make docs` draws them; the demo's has the numbers of the README's output."""
    kept = (draw_pictures.FOLDER / name).read_bytes()
    assert words(kept) == words(draw_pictures.PICTURES[name]())
    assert b"prefers-color-scheme" in kept


def test_the_readme_begins_with_the_demos_picture() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.splitlines()[2].endswith("(docs/pictures/demo.svg)")
    assert {"50.29 kfps, 12.6 %"} & set(words((draw_pictures.FOLDER / "demo.svg").read_bytes()))


def test_no_picture_is_left_over() -> None:
    shown = {
        Path(target).name
        for document in DOCUMENTS
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", document.read_text())
    }
    assert {file.name for file in draw_pictures.FOLDER.iterdir()} == shown == set(draw_pictures.PICTURES)
