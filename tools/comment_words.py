# SPDX-License-Identifier: Apache-2.0
"""Comments of C++ and Python, and docstrings, that are no sentences on their own.

    tools/comment_words.py

A comment says what something is or why it is so, in plain technical English. `WORDS` lists what it must not
begin with or contain, and what to write in its place.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
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

PYTHON = ("python", "tests", "bench", "tools")
_PARAGRAPH = re.compile(r"(\n\s*\n)")
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


def python_comments_of(text: str) -> Iterator[Comment]:
    """The comments and docstrings of a Python file, those of attributes too, each paragraph
    by itself; without the licence."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from _paragraphs(str(node.value.value), node.lineno)
    first, last, lines = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        words = token.string.lstrip("#").strip()
        if token.type != tokenize.COMMENT or words.startswith("SPDX-"):
            continue
        if lines and token.start[0] != last + 1:
            yield Comment(first, " ".join(lines))
            lines.clear()
        first, last = (first if lines else token.start[0]), token.start[0]
        lines.append(words)
    if lines:
        yield Comment(first, " ".join(lines))


def _paragraphs(docstring: str, line: int) -> Iterator[Comment]:
    for paragraph in _PARAGRAPH.split(docstring):
        if paragraph.strip():
            yield Comment(line, " ".join(paragraph.split()))
        line += paragraph.count("\n")


def comments_below(root: Path) -> Iterator[tuple[str, Comment]]:
    """Every comment of the checkout, with its file."""
    for file in sources(root):
        yield from ((file, each) for each in comments_of((root / file).read_text(encoding="utf-8")))
    for folder in PYTHON:
        for path in sorted((root / folder).rglob("*.py")):
            file = str(path.relative_to(root))
            yield from ((file, each) for each in python_comments_of(path.read_text(encoding="utf-8")))


def violations(root: Path) -> list[str]:
    """One line for each comment with such a word: where it is, how it begins, what to write instead."""
    found = []
    for file, comment in comments_below(root):
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
