# SPDX-License-Identifier: Apache-2.0
"""The site of docs/: what is built from the pages, and what is refused. `tools/lint site` builds it; nothing
here needs its packages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools import build_site

PAGE = "docs/how-to/one.md"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one page of docs/ that links a page, a file, and itself, and has a bar in a cell's
    code."""
    for name in (build_site.HOME, *build_site.PROJECT):
        write(tmp_path / name, f"# Title of {name}\n")
    write(
        tmp_path / PAGE,
        "# One\n\n## Two\n\n[a](../../README.md#x) [b](../../examples/b.toml) [c](#two) `[d](gone.md)`\n\n|"
        " t |\n|---|\n| `x \\| y` |\n",
    )
    write(tmp_path / "examples/b.toml", 'text = "```"\n')
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_links_of_the_copies_hold_in_the_site(root: Path, tmp_path: Path) -> None:
    """docs/README.md is the start page, the repository's README a page like others; a file of the repository
    is a page with its text."""
    build_site.stage(tmp_path / "copy")
    page = (tmp_path / "copy" / PAGE).read_text()
    assert "[a](../../readme.md#x) [b](../../examples/b.toml.md) [c](#two) `[d](gone.md)`" in page
    assert "| `x | y` |" in page
    assert '````toml\ntext = "```"\n````' in (tmp_path / "copy/examples/b.toml.md").read_text()
    assert "\\|" in (root / PAGE).read_text()
    write(root / build_site.HOME, "# Home\n\n[one](how-to/one.md#two) [readme](../README.md)\n")
    build_site.stage(tmp_path / "copy")
    start = (tmp_path / "copy/index.md").read_text()
    assert "[one](docs/how-to/one.md#two) [readme](readme.md)" in start


def test_a_picture_is_copied_and_shown_as_one(root: Path, tmp_path: Path) -> None:
    """A page with its text in its place would be a broken picture."""
    write(root / "docs/pictures/a.svg", "<svg/>")
    write(root / PAGE, "# One\n\n![a](../pictures/a.svg)\n")
    build_site.stage(tmp_path / "copy")
    assert "![a](../pictures/a.svg)\n" in (tmp_path / "copy" / PAGE).read_text()
    assert (tmp_path / "copy/docs/pictures/a.svg").read_text() == "<svg/>"
    assert not (tmp_path / "copy/docs/pictures/a.svg.md").exists()


def test_a_link_to_a_file_that_is_not_there_ends_the_build(root: Path, tmp_path: Path) -> None:
    write(root / PAGE, "# One\n\n[a](gone.md)\n")
    with pytest.raises(SystemExit, match=r"docs/how-to/one.md links gone.md: there is no such file"):
        build_site.stage(tmp_path / "copy")


def test_pages_come_in_the_order_of_the_start_page_and_then_by_title(root: Path) -> None:
    for name, title in (("b", "Alpha"), ("c", "Zulu"), ("d", "Mike")):
        write(root / f"docs/how-to/{name}.md", f"# {title}\n")
    write(
        root / build_site.HOME,
        "# Home\n\n[one](how-to/one.md), then [zulu](how-to/c.md#anchor), and again [one](how-to/one.md)\n",
    )
    assert build_site.navigation()["How to"] == [f"docs/how-to/{name}.md" for name in ("one", "c", "b", "d")]
    written = tomllib.loads(build_site.settings())["project"]
    assert written["nav"][2] == {
        "How to": [
            {"One": PAGE},
            {"Zulu": "docs/how-to/c.md"},
            {"Alpha": "docs/how-to/b.md"},
            {"Mike": "docs/how-to/d.md"},
        ]
    }
    assert written["theme"]["font"] is False


def test_a_folder_without_a_section_is_refused(root: Path) -> None:
    write(root / "docs/essays/one.md", "# Essay\n")
    with pytest.raises(SystemExit, match=r"in no section: docs/essays/one.md"):
        build_site.navigation()


def test_what_is_missing_or_would_be_fetched_is_a_fault(root: Path, tmp_path: Path) -> None:
    """The site is read where there is no network."""
    whole = "<article><h2>Two</h2><table></table></article>"
    for page in build_site.pages():
        name = Path(build_site.staged_name(page)).with_suffix(".html")
        write(
            tmp_path / "html" / name,
            whole if page == PAGE else '<a href="https://example.org">a link is not fetched</a>',
        )
    assert build_site.faults(tmp_path / "html") == []
    write(
        tmp_path / "html/docs/how-to/one.html",
        '<script src="https://example.org/x.js"></script><article><h2>Two</h2>| t |<img src="gone.svg">'
        "</article>",
    )
    write(
        tmp_path / "html/a.css",
        "@font-face { src: url(//example.org/font) } a { background: url('data:image/png;base64,') }",
    )
    (tmp_path / "html/CHANGELOG.html").unlink()
    assert sorted(build_site.faults(tmp_path / "html")) == [
        "CHANGELOG.md: was not built",
        "a.css: fetches //example.org/font",
        "docs/how-to/one.md: 1 of <table> on a forge, 0 in the site",
        "docs/how-to/one.md: fetches https://example.org/x.js",
        "docs/how-to/one.md: the picture gone.svg is missing or is not a picture",
    ]


def test_a_folder_that_is_linked_is_a_list_of_its_files(root: Path, tmp_path: Path) -> None:
    write(root / PAGE, "# One\n\n[a](../../examples)\n")
    build_site.stage(tmp_path / "copy")
    assert "[a](../../examples.md)" in (tmp_path / "copy" / PAGE).read_text()
    assert "- [b.toml](examples/b.toml.md)" in (tmp_path / "copy/examples.md").read_text()
    assert "# examples/b.toml" in (tmp_path / "copy/examples/b.toml.md").read_text()
