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
    """`make docs` draws them; the demo's has the numbers of the tutorial's output."""
    kept = (draw_pictures.FOLDER / name).read_bytes()
    assert words(kept) == words(draw_pictures.PICTURES[name]())
    assert b"prefers-color-scheme" in kept


def output_of_the_demo(document: str) -> str:
    """The output that a document shows, without the lines of its fence."""
    shown = (ROOT / document).read_text(encoding="utf-8").split("<!-- demo-output -->")[1]
    return "\n".join(shown.partition("<!-- /demo-output -->")[0].strip().splitlines()[1:-1])


def test_the_readme_says_why_and_then_shows_the_demos_picture() -> None:
    title, why, picture, *_ = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")
    assert title == "# Evenhand"
    assert why.startswith("Most testers send one address pair.")
    assert picture.endswith("(docs/pictures/demo.svg)")
    assert {"50.29 kfps, 12.6 %"} & set(words((draw_pictures.FOLDER / "demo.svg").read_bytes()))


def test_the_readme_shows_the_beginning_of_the_output_that_the_tutorial_explains() -> None:
    """Two documents with two runs would contradict each other, and the picture one of them."""
    shown, whole = output_of_the_demo("README.md"), output_of_the_demo(draw_pictures.OUTPUT)
    assert whole.startswith(f"{shown}\n")
    assert len(draw_pictures.ROW.findall(shown)) == len(draw_pictures.ROW.findall(whole)) == 3


def test_the_readme_stays_short() -> None:
    """Details belong to docs/README.md, which it links."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert 400 <= len(prose.split()) <= 700
    assert "(docs/README.md)" in text


def test_no_picture_is_left_over() -> None:
    shown = {
        Path(target).name
        for document in DOCUMENTS
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", document.read_text())
    }
    assert {file.name for file in draw_pictures.FOLDER.iterdir()} == shown == set(draw_pictures.PICTURES)
