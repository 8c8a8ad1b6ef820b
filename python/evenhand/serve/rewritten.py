# SPDX-License-Identifier: Apache-2.0
"""A page as it is written to a file, made one of this server's: its style comes from the server, not from the
page, so that the policy of the pages allows neither style nor script in them, without exception."""

from __future__ import annotations

import re

from markupsafe import Markup

_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_FONT = re.compile(r"(?:(?P<weight>bold|\d+) )?(?P<size>[\d.]+px) (?P<family>.+)")
_HEAD = re.compile(
    r'<meta http-equiv="(?:Content-Security-Policy|refresh)"[^>]*>\n?|<style>.*?</style>\n?', re.DOTALL
)


def rewritten(page: str, *, head: Markup, before: Markup, after: Markup) -> str:
    """
    Args:
        page: One of the report's pages.
        head: Goes into its head, instead of its style.
        before: Goes to the beginning of its body.
        after: Goes behind its header.
    """
    top, mark, body = page.partition("<body>")
    assert mark, "a page has a body"
    top = _HEAD.sub("", top).replace("</head>", f"{head}</head>")
    body = _TAG.sub(lambda tag: _without_style(tag[0]), body)
    body = body.replace("<main>", '<main id="main">', 1)
    return f"{top}<body>{before}{body.replace('</header>', f'</header>{after}', 1)}"


def _without_style(tag: str) -> str:
    """An element of a picture with attributes in the place of its style: they mean the same."""
    return _STYLE.sub(lambda found: _attributes(found[1]), tag)


def _attributes(style: str) -> str:
    parts: list[str] = []
    for declaration in style.split(";"):
        name, mark, value = (part.strip() for part in declaration.partition(":"))
        if not mark:
            continue
        font = _FONT.fullmatch(value) if name == "font" else None
        if font is not None:
            parts.append(f' font-size="{font["size"]}" font-family="{font["family"]}"')
            parts += [f' font-weight="{font["weight"]}"'] if font["weight"] else []
        elif name != "font":
            parts.append(f' {name}="{value}"')
    return "".join(parts)
