# SPDX-License-Identifier: Apache-2.0
"""What tests ask of a page: its elements, its text, and whether it needs anything from elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
FETCHES = {"src", "srcset", "data", "action", "poster", "background", "formaction", "ping"}


@dataclass
class Page(HTMLParser):
    """Parsed; refuses elements that are not closed in order."""

    text: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def shown(self) -> str:
        """Its text, with a space wherever there was markup or more than one."""
        return " ".join(" ".join(self.words).split())

    def ids(self) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get("id")) is not None]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def assert_self_contained(page: Page) -> None:
    """Nothing is fetched and nothing is run; ids are unique, and whatever refers to one finds it."""
    for tag, attributes in page.tags:
        assert tag not in {
            "script",
            "link",
            "iframe",
            "object",
            "embed",
            "img",
            "base",
            "form",
            "foreignobject",
        }, tag
        for name, value in attributes.items():
            assert name not in FETCHES, f"{tag} {name}={value}"
            assert not name.startswith("on"), f"{tag} {name}={value}"
            if name in ("href", "xlink:href"):
                assert value is not None
                assert value.startswith("#"), value
                assert value.removeprefix("#") in page.ids(), value
            for target in re.findall(r"url\(([^)]*)\)", value or ""):
                assert target.removeprefix("#") in page.ids(), target
    assert "@import" not in page.text
    assert len(set(page.ids())) == len(page.ids())
