# SPDX-License-Identifier: Apache-2.0
"""What `ethtool --json -x` prints, taken out of a text that may have more in it."""

from __future__ import annotations

import json
import re
from typing import Any

_BEGIN = re.compile(r"^[ \t]*[\[{]\s*[{\"\]}]?", re.MULTILINE)
_SIGN = '"rss-'
"""Every document about a hash has such a key."""


def split_documents(text: str) -> tuple[list[dict[str, Any]], str, str]:
    """The documents of NICs, the text without them, and what is wrong with a document that cannot be read;
    empty if nothing is."""
    documents: list[dict[str, Any]] = []
    rest: list[str] = []
    if _SIGN not in text:
        return documents, text, ""
    decoder, place = json.JSONDecoder(), 0
    while (begin := _BEGIN.search(text, place)) is not None:
        start = begin.start() + len(begin[0]) - len(begin[0].lstrip())
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            return documents, "", _why(error)
        rest.append(text[place:start])
        place = end
        documents += [
            each
            for each in (value if isinstance(value, list) else [value])
            if isinstance(each, dict) and any(key.startswith("rss-") for key in each)
        ]
    rest.append(text[place:])
    return documents, "\n".join(rest), "" if documents else "it does not begin with [ or {"


def _why(error: ValueError | RecursionError) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:80]
    shown = error.doc[error.pos :].split("\n", 1)[0].strip()
    return f"line {error.lineno} has {shown[:40]!r}" if shown else "the text ends before it is complete"
