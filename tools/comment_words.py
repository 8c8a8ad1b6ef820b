# SPDX-License-Identifier: Apache-2.0
"""Comments of C++ that are no sentences on their own.

    tools/comment_words.py

A comment says what something is or why it is so, in plain technical English. `WORDS` lists what it must not
begin with or contain, and what to write in its place. Docstrings and comments of Python are not checked
yet: some 150 of them begin with "Of".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
from tools.dpdk_headers import sources  # noqa: E402


class Word(NamedTuple):
    """Something that comments do not say."""

    pattern: re.Pattern[str]
    """Matched against a whole comment, its lines joined."""
    instead: str
    """What to write in its place."""


WORDS = (
    Word(
        re.compile(r"(?:^|[.:?!] )(?:Of|By which)\b"),
        'no sentence begins so; say what it is: "The length of ...", "Whether ...", "For ..."',
    ),
    Word(re.compile(r"\bso manieth\b"), 'write "every nth" or "every how many"'),
    Word(re.compile(r"\bwhom to\b"), "write a noun, or who does it"),
)

_COMMENT = re.compile(r"^\s*///?<?(?: (.*))?$")
_CODE = r'(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*'
_AFTER_CODE = re.compile(rf'^{_CODE}[^\s"/]{_CODE}//+ (.*)$')


class Comment(NamedTuple):
    """A comment as it is read: consecutive lines are one, an empty one begins another."""

    line: int
    text: str


def comments_of(text: str) -> Iterator[Comment]:
    """The comments of a C++ file that begin with `//`, also those behind code; without the licence."""
    first, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        whole = _COMMENT.match(line)
        words = (whole.group(1) or "").strip() if whole else ""
        if words and not words.startswith("SPDX-"):
            first = first if lines else number
            lines.append(words)
            continue
        if lines:
            yield Comment(first, " ".join(lines))
            lines.clear()
        behind = None if whole else _AFTER_CODE.match(line)
        if behind:
            yield Comment(number, behind.group(1))
    if lines:
        yield Comment(first, " ".join(lines))


def violations(root: Path) -> list[str]:
    """One line for each comment with such a word: where it is, how it begins, what to write instead."""
    found = []
    for file in sources(root):
        for comment in comments_of((root / file).read_text(encoding="utf-8")):
            for word in WORDS:
                if word.pattern.search(comment.text):
                    found.append(f'{file}:{comment.line}: "{comment.text[:40]}": {word.instead}')
    return found


def main() -> int:
    """1 if a comment has such a word."""
    found = violations(ROOT)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
