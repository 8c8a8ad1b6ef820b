# SPDX-License-Identifier: Apache-2.0
"""What the documents hold: fenced blocks, commands with their output, tables, links."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "changelog.d" / "README.md",
        ROOT / "contract" / "README.md",
        ROOT / "examples" / "README.md",
        *ROOT.glob("docs/**/*.md"),
    ],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED_FENCE = re.compile(r"^ +```(\w*)\n(.*?)^ +```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command line, and what the document says it prints (console blocks only)."""

    block: Block
    text: str
    output: str | None

    @property
    def words(self) -> str:
        """Without sudo, variables, and the way to the program."""
        text = re.sub(r"^(sudo |[A-Z_]+=\S+ )+", "", self.text)
        return text.removeprefix(".venv/bin/")

    def __str__(self) -> str:
        return f"{self.block} {self.words}"[:100]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def printed(script: str) -> str:
    """What a script says that it prints: the indented lines of its docstring."""
    docstring = ast.get_docstring(ast.parse(read(script))) or ""
    return "".join(f"{line[4:]}\n" for line in docstring.splitlines() if line.startswith("    "))


def blocks(*languages: str, document: str | None = None, indented: bool = False) -> list[Block]:
    """Fenced blocks in these languages, of one document or of all; `indented`: only those inside a list
    instead."""
    found = []
    fence = _INDENTED_FENCE if indented else _FENCE
    for path in DOCUMENTS:
        if document is not None and name_of(path) != document:
            continue
        text = path.read_text(encoding="utf-8")
        for match in fence.finditer(text):
            if match[1] in languages:
                line = text.count("\n", 0, match.start()) + 1
                found.append(
                    Block(
                        document=name_of(path),
                        line=line,
                        language=match[1],
                        text=dedent(match[2]) if indented else match[2],
                    )
                )
    return found


def commands() -> list[Command]:
    """Every command of every `sh` and `console` block."""
    found = []
    for block in blocks("sh", "console"):
        if block.language == "sh":
            found += [
                Command(block=block, text=line, output=None)
                for line in block.text.splitlines()
                if line and not line.startswith("#")
            ]
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            text, _, output = part.partition("\n")
            found.append(Command(block=block, text=text, output=output))
    return found


def links(path: Path) -> list[str]:
    """Targets of the links and pictures of a document that are not on another machine, with their anchors."""
    inner = (child for token in _parsed(path) for child in token.children or ())
    targets = (
        child.attrGet("href") if child.type == "link_open" else child.attrGet("src") for child in inner
    )
    return [unquote(str(target)) for target in targets if target and not re.match(r"[a-z]+:", str(target))]


def anchors(path: Path) -> set[str]:
    """What a forge makes of a document's headings, for links to end at."""
    tokens = _parsed(path)
    found: list[str] = []
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            found.append(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-"))
    # A heading that stands twice gets a number, and not the same one everywhere: nothing should end there.
    return {anchor for anchor in found if found.count(anchor) == 1}


@cache
def _parsed(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


def table_rows(name: str, first_cell: str) -> list[list[str]]:
    """The cells below each table head whose first cell is `first_cell`, backticks removed."""
    rows: list[list[str]] = []
    is_table, is_inside = False, False
    for line in read(name).splitlines():
        if not line.startswith("|"):
            is_table, is_inside = False, False
            continue
        cells = [
            cell.strip().replace("`", "").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        ]
        if not is_table:  # its head: the same word in a row below is only a row
            is_table, is_inside = True, cells[0] == first_cell
        elif is_inside and not set(cells[0]) <= set("-:"):
            rows.append(cells)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a file, as a page lists it: ``- `key` (kind; default VALUE): words``."""

    heading: str
    name: str
    kind: str
    is_required: bool
    default: str | None
    words: str


def keys(name: str) -> list[Key]:
    """All that a page lists, each below the heading of its table."""
    found = []
    heading = ""
    for line in read(name).splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ").replace("`", "")
        item = re.match(r"- `([\w-]+)`(?: \((.*?)\))?(?:: (.*)|\.)$", line)
        if item is None:
            continue
        kind, *said = (item[2] or "text").replace("`", "").split("; ")
        found.append(
            Key(
                heading=heading,
                name=item[1],
                kind=kind,
                is_required=any(words.startswith("required") for words in said),
                default=next(
                    (words.removeprefix("default ") for words in said if words.startswith("default ")), None
                ),
                words=item[3] or "",
            )
        )
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether a line is as documented; `...` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.rstrip().split("..."))), printed.rstrip()) is not None
