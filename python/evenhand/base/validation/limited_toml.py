# SPDX-License-Identifier: Apache-2.0
"""TOML of others, with limits that are checked before anything is made of it: the parser takes minutes or all
memory for some texts of a megabyte."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

MOST_OCTETS = 512 << 10
MOST_DEPTH = 50
"""Of lists and tables in each other."""
MOST_PARTS = 20
"""Of a key, such as `a.b`."""
MOST_DIGITS = 400
MOST_TABLES = 2000
"""Of a file: `[a]`, `[[a]]` and `{}`."""
_BEGINS_TEXT = re.compile(r"#|\"{3}|'{3}|\"|'")
_TEXT_ENDS = {
    "#": re.compile(r"[^\n]*"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"[^'\n]*'"),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"{3}', re.DOTALL),
    "'''": re.compile(r".*?'{3}", re.DOTALL),
}
_LONG_NUMBER = re.compile(rf"[0-9_]{{{MOST_DIGITS + 1}}}")
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+){{{MOST_PARTS}}}")
_TABLE = re.compile(r"^[ \t]*+\[|\{", re.MULTILINE)


def read_limited(path: Path) -> bytes:
    """The content, if it is a file and not too long. OSError as of reading; ValueError says what is wrong."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(0, "it is a folder")
        if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
            os.set_blocking(descriptor, True)
        content = file.read(MOST_OCTETS + 1)
    if len(content) > MOST_OCTETS:
        raise ValueError(f"it has more than {MOST_OCTETS >> 10} KiB")
    return content


def parse_limited(text: str) -> dict[str, Any]:
    """The document. ValueError (also tomllib's own) says what is wrong."""
    code = _without_texts(text)
    if _LONG_NUMBER.search(code):
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    if _LONG_KEY.search(code):
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    if sum(1 for _ in _TABLE.finditer(code)) > MOST_TABLES:
        raise ValueError(f"it has more than {MOST_TABLES} tables")
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", code):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_DEPTH:
            raise ValueError(f"lists and tables are nested more than {MOST_DEPTH} deep")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("lists and tables are nested too deep") from error


def _without_texts(document: str) -> str:
    """The document with `s` in place of each text, and without comments; up to a text that does not end."""
    parts, at = [], 0
    while (begins := _BEGINS_TEXT.search(document, at)) is not None:
        ends = _TEXT_ENDS[begins[0]].match(document, begins.end())
        parts.append(document[at : begins.start()])
        if ends is None:
            return "".join(parts)
        parts.append("" if begins[0] == "#" else "s")
        at = ends.end()
    return "".join((*parts, document[at:]))
