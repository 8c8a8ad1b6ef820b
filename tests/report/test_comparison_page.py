# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from evenhand.analysis import compare
from evenhand.report.comparison_page import render_comparison, write_comparison_page
from tests.analysis.records import noisy, point, record
from tests.errors import raises

LEVELS = {1: 1e5, 16: 6e5, 64: 8e5, 65533: 6e5}


def test_the_page_has_every_point_the_verdict_and_what_differs() -> None:
    a = record(*(point(n, noisy(fps, 10, 0.01)) for n, fps in LEVELS.items()), name="before")
    b = replace(
        record(*(point(n, noisy(fps * 0.9, 10, 0.01)) for n, fps in LEVELS.items()), name="after"),
        versions={"evenhand": "0.2.0"},
    )
    comparison = compare([a, b])
    page = render_comparison(comparison, fail_below=0.97)
    assert "Failed: 4 points below 0.97" in page
    for p in comparison.points:
        ratio = p.others[0].ratio
        assert ratio is not None
        assert page.count(p.key) >= 3
        assert f"{ratio.ratio:.3f}" in page
    assert "versions: evenhand" in page
    assert "0.2.0" in page
    assert page.count("<svg") == 2
    assert "Passed: no point is below 0.8" in render_comparison(comparison, fail_below=0.8)


def test_nothing_is_fetched_and_nothing_is_run() -> None:
    """One file, that can be kept and sent."""
    one = record(point(1, [1e5] * 3), point(4, [None]))
    page = render_comparison(compare([one, one]))
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []
    assert "No differences between the set-ups are known." in page


def test_what_a_file_says_is_escaped() -> None:
    """Run files come from others."""
    evil = record(
        point(1, [1e5], suite="<script>alert(1)</script>"), name="<b>x</b>", versions={"<i>": "<u>"}
    )
    other = replace(evil, versions={"<i>": "<s>"})
    page = render_comparison(compare([evil, other]))
    assert not re.search(r"<script|<b>|<i>|<u>|<s>", page)


def test_a_comparison_without_a_common_number_has_no_picture() -> None:
    a, b = record(point(1, [1e5])), record(point(1, [None], reason="hook failed"))
    page = render_comparison(compare([a, b]))
    assert "<svg" not in page
    assert "hook failed" in page


def test_a_file_that_is_no_page_is_not_replaced(tmp_path: Path) -> None:
    one = record(point(1, [1e5] * 3))
    path = tmp_path / "page.html"
    write_comparison_page(compare([one, one]), path)
    write_comparison_page(compare([one, one]), path)
    path.write_text("mine")
    with raises("base.file-exists"):
        write_comparison_page(compare([one, one]), path)
    assert path.read_text() == "mine"
