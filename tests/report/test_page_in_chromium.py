# SPDX-License-Identifier: Apache-2.0
"""Pages as a browser shows them: at 1280, 768 and 375 pixels, light and dark, and on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from evenhand.report.bias_page import write_bias_page
from evenhand.report.page import write_page
from tests.report.campaigns import appendix_a, record_of
from tests.report.chromium import Browser, browser, find_chromium
from tests.report.clean_records import by_clean_time, stalls
from tests.report.inside_records import witnessed
from tests.report.test_bias import cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="Chromium is not installed: tools/install-dependencies prove"
    ),
]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PAGES = ("campaign-v4", "campaign-v6", "inside-v4", "inside-v6", "demo-v4", "demo-v6")
CUT = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && !e.closest('svg, thead, .head, div.table')
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.outerHTML.slice(0, 90))"""
"""Elements that reach beyond the right edge: what they show is cut, also where the page does not scroll.
Tables scroll in their own box."""
SCROLLED = (
    "[...document.querySelectorAll('div.table')].filter(t => t.checkVisibility() && t.scrollWidth >"
    " t.clientWidth + 1).length"
)
SMALLEST = """Math.min(...[...document.querySelectorAll('figure svg text')].filter(t => t.checkVisibility())
    .map(t => t.getBoundingClientRect().height))"""

BROKEN = """[...document.querySelectorAll('#conditions td > span')].flatMap(s => {
    const text = s.firstChild, words = [...text.data.matchAll(/\\S+/g)]
    return words.filter(w => {
        const range = document.createRange()
        range.setStart(text, w.index)
        range.setEnd(text, w.index + w[0].length)
        return range.getClientRects().length > 1
    }).map(w => w[0])
})"""
"""Words of the table of what was sent that go on in the next line."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    for version in (4, 6):
        write_page(appendix_a(version, 4), made / f"campaign-v{version}.html")
        write_page(witnessed(appendix_a(version, 1, is_series_only=True)), made / f"inside-v{version}.html")
        host, versions = {"cpu_model": "a CPU", "is_virtual_machine": True}, {"evenhand": "0.1.0"}
        write_bias_page(
            cases(f"gateway-v{version}"),
            made / f"demo-v{version}.html",
            host=host,
            versions=versions,
            command=["evenhand", "demo"],
            run=Path("demo.evenhand"),
        )
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as shown:
        yield shown


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("width", [1280, 768])
def test_no_address_and_no_word_of_what_was_sent_is_broken(
    folder: Path, chromium: Browser, version: int, width: int
) -> None:
    """SEED-49."""
    chromium.open(folder / f"campaign-v{version}.html", width=width)
    assert chromium.ask(BROKEN) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_nothing_is_cut_fetched_or_complained_of(
    folder: Path, chromium: Browser, name: str, width: int
) -> None:
    """R2544-22, R2544-28: every figure is seen, in one shape of it; at 375 px too the page does not scroll
    sideways."""
    for scheme in SCHEMES:
        chromium.open(folder / f"{name}.html", width=width, scheme=scheme)
        assert chromium.ask("document.documentElement.scrollWidth") <= width
        assert chromium.ask(CUT) == []
        figures = chromium.ask("document.querySelectorAll('figure').length")
        seen = (
            "[...document.querySelectorAll('figure svg')].filter(s => s.checkVisibility() &&"
            " s.getBoundingClientRect().height > 100).length"
        )
        assert figures > 0
        assert chromium.ask(seen) == figures
        # A line of text of 9 pixels has capitals of 6: what is smaller is not read.
        assert chromium.ask(SMALLEST) >= 9
        assert chromium.complaints == []
        assert [url for url in chromium.requests if not url.startswith("file:")] == []


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_strips_of_what_was_judged_are_as_wide_as_their_point(
    chromium: Browser, version: int, width: int, tmp_path: Path
) -> None:
    """What was left out is seen in them, however short it was, and nothing beside them is cut."""
    points = appendix_a(version, 4).points[:2]
    path = tmp_path / "clean.html"
    write_page(by_clean_time(record_of(points), stalls(0.001)), path)
    for scheme in SCHEMES:
        chromium.open(path, width=width, scheme=scheme)
        chromium.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert chromium.ask("document.documentElement.scrollWidth") <= width
        assert chromium.ask(CUT) == []
        strips = chromium.ask(
            "[...document.querySelectorAll('svg.strip')].map(s => [s.checkVisibility(),"
            " s.getBoundingClientRect().width / s.closest('.strips').clientWidth,"
            " s.getBoundingClientRect().height])"
        )
        assert len(strips) == 2 * 2 * 4
        assert all(is_seen and share > 0.99 and height >= 10 for is_seen, share, height in strips)
        cuts = chromium.ask(
            "[...document.querySelectorAll('svg.strip path:not(.judged)')].map(p =>"
            " [getComputedStyle(p).fill, getComputedStyle(p.parentNode.firstChild).fill,"
            " p.getBoundingClientRect().width])"
        )
        assert len(cuts) >= len(strips)
        assert all(colour != judged and wide >= 0.5 for colour, judged, wide in cuts)


@pytest.mark.parametrize("name", PAGES)
def test_pages_follow_the_colours_of_the_reader(folder: Path, chromium: Browser, name: str) -> None:
    """Background and the text of pictures change with dark mode; paper is white in any."""
    look = (
        "[getComputedStyle(document.querySelector('main')).backgroundColor,"
        " getComputedStyle(document.querySelector('figure text')).fill]"
    )
    looks = []
    for scheme in SCHEMES:
        chromium.open(folder / f"{name}.html", width=1280, scheme=scheme)
        looks.append(chromium.ask(look))
    assert looks[0] != looks[1]
    assert all(one != other for one, other in zip(*looks, strict=True))


@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_printed(folder: Path, chromium: Browser, name: str, tmp_path: Path) -> None:
    """From dark mode and from a phone too: white paper, a handful of sheets, the wide shape of each
    picture."""
    chromium.open(folder / f"{name}.html", width=375, scheme="dark")
    chromium.pdf(tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 25


def test_everything_opened_is_not_cut_on_a_phone(folder: Path, chromium: Browser) -> None:
    """Points, trials, hooks and the campaign file, all at once."""
    chromium.open(folder / "campaign-v4.html", width=375)
    chromium.ask("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert chromium.ask("document.documentElement.scrollWidth") == 375
    assert chromium.ask(CUT) == []
    assert chromium.ask(SCROLLED) == 0
