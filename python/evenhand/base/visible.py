# SPDX-License-Identifier: Apache-2.0
"""Texts of others, such as of a run file that came by mail, as they may be shown: they say what they are, and
do nothing."""

from __future__ import annotations

import re
import unicodedata

from evenhand.base.errors import shortened

_SHOWN = ("L", "M", "N", "P", "S", "Zs")


def visible(text: str) -> str:
    """The same as `harmless`, for a text of any length: its beginning where no one could read all of it, and
    how long it is."""
    return harmless(shortened(text))


def harmless(text: str) -> str:
    """The text with what is not a readable character (line ends, escape sequences of terminals, marks that
    turn the order) as `\\x1b`.

    Rich's markup is not handled here: show it as `rich.text.Text`, or with `markup=False`.
    """
    if text.isprintable():
        return text
    return "".join(
        c if unicodedata.category(c).startswith(_SHOWN) else c.encode("unicode_escape").decode() for c in text
    )


def visible_lines(text: str) -> str:
    """The same of text of several lines: line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(part if part in ("\n", "\t") else harmless(part) for part in re.split(r"([\n\t])", text))
