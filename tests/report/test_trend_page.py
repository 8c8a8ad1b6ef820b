# SPDX-License-Identifier: Apache-2.0
"""A trend as a page, as tables and as a document."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from evenhand.analysis.trend import trend
from evenhand.report.trend import (
    changes_table,
    points_table,
    show_change,
    titles_of,
    trend_document,
    trend_lines,
    verdict,
)
from evenhand.report.trend_page import render_trend, write_trend_page
from tests.analysis.records import point
from tests.analysis.trends import bed, example_trend, night, nights
from tests.docs.documents import ROOT
from tests.errors import raises
from tests.report.chromium import browser, find_chromium
from tests.report.pages import Page

LEVEL = 1e6


def test_the_page_begins_with_the_changes_and_has_a_picture_of_each_point() -> None:
    found = example_trend()
    page = render_trend(found)
    Page(page)
    assert "Of 6 points 3 have changed since the first run: 2 worse and 1 better." in page
    first_row = page.index("gateway-v6, 84 octets, 16 addresses a side, typical latency")
    assert page.index("<h2>Changes</h2>") < first_row < page.index("<svg")
    for words in ("-4.4 %, worse", "+7.0 %, better", "2026-10-26 02:00", "6.1.0-30-amd64", "1.179 Mfps"):
        assert words in page
    assert page.count("<svg") == 2 * len(found.points)
    for place in range(len(found.points)):
        assert f'id="figure-point-{place + 1}"' in page
        assert f'href="#figure-point-{place + 1}"' in page
    assert "what differs: testbed: dut.kernel 6.1.0-29-amd64 to 6.1.0-30-amd64" in page


def test_lower_bounds_strays_and_gaps_are_shown_as_such() -> None:
    page = render_trend(example_trend())
    assert "&gt;= 497,000" in page
    assert "lower bound: at least" in page
    assert "run that is set aside" in page
    assert "run without a number" in page
    assert "Without a number: 2 (hook failed)." in page


def test_nothing_is_fetched_and_nothing_is_run() -> None:
    """One file, that can be kept and sent."""
    page = render_trend(example_trend(12))
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []


def test_what_a_file_says_is_escaped() -> None:
    """Run files come from others."""
    made = [
        night(
            n,
            point(1, [LEVEL * (1 if n < 6 else 0.8)] * 4, suite="<script>alert(1)</script>", testbed="<i>"),
            testbeds={"<i>": bed(f"<u>{n}\x1b[31m")["lab"]},
        )
        for n in range(12)
    ]
    made = [replace(each, name="<b>x</b>", path=Path(f"<s>{n}.evenhand")) for n, each in enumerate(made)]
    page = render_trend(trend(made))
    assert not re.search(r"<script|<b>|<i>|<u>|<s>|\x1b", page)
    assert "\x1b" not in "\n".join(trend_lines(trend(made)))


def test_a_page_of_one_run_says_what_comes_next(tmp_path: Path) -> None:
    found = trend(nights([LEVEL]))
    page = render_trend(found)
    assert "One run has no trend yet" in page
    assert page.count("<svg") == 2
    path = tmp_path / "trend.html"
    write_trend_page(found, path)
    write_trend_page(found, path)
    path.write_text("mine")
    with raises("base.file-exists"):
        write_trend_page(found, path)


def test_a_point_that_no_run_has_a_number_of_is_in_the_table_alone() -> None:
    made = [night(n, point(1, [LEVEL] * 3), point(2, [None], reason="no link")) for n in range(3)]
    page = render_trend(trend(made))
    assert page.count("<svg") == 2
    assert "no link" in page


def test_runs_in_the_order_of_versions_have_these_below_the_picture() -> None:
    made = [
        night(n, point(1, [LEVEL] * 3), testbeds=bed(kernel))
        for n, kernel in enumerate(("6.1.10", "6.1.9", "6.1.11"))
    ]
    page = render_trend(trend(made, over="version"))
    picture = page[page.index("<svg") :]
    assert picture.index("6.1.9") < picture.index("6.1.10") < picture.index("6.1.11")


def test_titles_tell_points_apart() -> None:
    """By as few words as it takes."""
    one = night(
        0,
        point(16, [LEVEL], suite="a", goal={"duration": "1s"}),
        point(16, [LEVEL], suite="b", goal={"duration": "2s"}),
        point(16, [9.0], suite="a", procedure="latency"),
    )
    assert titles_of(trend([one])) == [
        "direct-v4-net16, 64 octets, 16 addresses a side, throughput, suite a",
        "direct-v4-net16, 64 octets, 16 addresses a side, throughput, suite b",
        "direct-v4-net16, 64 octets, 16 addresses a side, typical latency",
    ]
    same = [night(0, point(1, [LEVEL])), night(1, point(1, [LEVEL], goal={"duration": "2s"}))]
    assert titles_of(trend(same, anyway=True)) == [
        "direct-v4-net16, 64 octets, 1 address pair (1)",
        "direct-v4-net16, 64 octets, 1 address pair (2)",
    ]


def test_the_lines_name_each_change_and_since_when() -> None:
    lines = trend_lines(example_trend())
    assert any(
        line == "gateway-v6, 84 octets, 65,536 addresses a side, throughput: -4.4 % (worse) since the run of"
        " 2026-10-26 02:00, 6.1.0-30-amd64."
        for line in lines
    )
    repaired = trend(nights([LEVEL] * 8 + [0.9 * LEVEL] * 6 + [LEVEL] * 8, noise=0.001))
    assert verdict(repaired) == "Of 1 point 1 has changed since the first run: 1 back where it was."
    half = trend(nights([LEVEL] * 8 + [0.9 * LEVEL] * 6 + [0.95 * LEVEL] * 8, noise=0.001))
    assert verdict(half) == "Of 1 point 1 has changed since the first run: 1 worse."
    quiet = trend(nights([LEVEL] * 8, noise=0.002))
    assert verdict(quiet) == "No change at 1 point."
    assert changes_table(quiet) is None
    assert len(points_table(quiet).rows) == 1


def test_a_change_beside_a_lower_bound_says_or_more() -> None:
    made = nights([1.3e6] * 8 + [0.9e6] * 8, noise=0.001, maximum=1e6)
    found = trend(made)
    ((_, change),) = found.changes
    assert show_change(change) == "-10.0 % or more"
    page = render_trend(found)
    assert "&gt;= 1,000.0" in page
    assert ">from, kfps<" in page


def test_a_latest_run_apart_is_said() -> None:
    found = trend(nights([LEVEL] * 9 + [0.9 * LEVEL], noise=0.002))
    assert any("another run will show" in line for line in trend_lines(found))
    assert "Apart in the latest run" in render_trend(found)


def test_the_document_has_all_changes_with_their_points() -> None:
    found = example_trend()
    document = trend_document(found)
    assert [document["points"][each["point"]]["title"] for each in document["changes"]] == [
        "gateway-v6, 84 octets, 16 addresses a side, typical latency",
        "gateway-v6, 84 octets, 65,536 addresses a side, throughput",
        "gateway-v4, 64 octets, 65,534 addresses a side, throughput",
    ]
    schema = json.loads((ROOT / "contract" / "result.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate({"command": "trend", "error": None, **document})
    assert document["changes"][1]["run"] == 25
    assert document["runs"][25]["version"] == "6.1.0-30-amd64"
    assert len(document["points"][1]["values"]) == 40
    assert document["points"][1]["values"][5]["statistics"] is None


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 375])
def test_nothing_is_cut_in_a_browser(tmp_path: Path, width: int) -> None:
    path = tmp_path / "trend.html"
    write_trend_page(example_trend(), path)
    with browser() as shown:
        shown.open(path, width=width)
        assert shown.ask("document.documentElement.scrollWidth") <= width
        cut = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
            && !e.closest('svg, thead, div.table')
            && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""
        assert shown.ask(cut) == 0
        assert shown.complaints == []
