# SPDX-License-Identifier: Apache-2.0
"""Links of the documents: each file is there, each anchor is a heading, and no page can be reached by its
name only. Nothing is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, anchors, links, name_of
from tools import build_site


def broken(path: Path) -> list[str]:
    """Targets of a document's links that lead nowhere."""
    found = []
    for target in links(path):
        file, _, anchor = target.partition("#")
        aim = (path.parent / file).resolve() if file else path
        if not aim.exists() or (anchor and (aim.suffix != ".md" or anchor not in anchors(aim))):
            found.append(target)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    assert broken(path) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## What `a.b` is, and C\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n[a](other.md#what-ab-is-and-c) [b](#page) [c](https://example.org/gone)"
        " `[d](code.md)`\n\n```text\n[e](code.md)\n```\n\n"
        "[f](gone.md) [g](other.md#gone) [h](other.md#twice) ![i](gone.svg) [two\nlines](gone.toml) [by"
        " name][j]\n\n"
        "| k |\n|---|\n| [k](#gone) |\n\n[j]: gone.py\n"
    )
    assert broken(page) == [
        "gone.md",
        "other.md#gone",
        "other.md#twice",
        "gone.svg",
        "gone.toml",
        "gone.py",
        "#gone",
    ]


def test_every_document_is_a_page_of_the_site_and_in_its_navigation() -> None:
    """A page that is added to a folder needs no list to be found."""
    listed = [page for inside in build_site.navigation().values() for page in inside]
    assert sorted([build_site.HOME, *listed]) == sorted(map(name_of, DOCUMENTS))
    assert [page for page in listed if not (ROOT / page).is_file()] == []
