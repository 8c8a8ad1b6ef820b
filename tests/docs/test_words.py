# SPDX-License-Identifier: Apache-2.0
"""One term for a thing: words that the glossary replaces are on no page, and in no text of a program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, name_of, read


class Replaced(NamedTuple):
    """A word that must not be used, and the one to use."""

    pattern: str
    instead: str
    right_in: tuple[str, ...] = ()
    """Beginnings of files in which the word means something else, or is a name of somebody else's."""


REPLACED = (
    Replaced("packet sizes?", "frame size", ("CONTRIBUTING.md", "python/evenhand/exchange/trex_import.py")),
    Replaced(
        "pps",
        "fps",
        (
            "docs/how-to/drive-it-with-snappi.md",
            "python/evenhand/base/units.py",
            "python/evenhand/exchange/",
            "python/evenhand/otg/",
        ),
    ),
    Replaced("bandwidth", "frame rate or throughput"),
    Replaced("jitter", "PDV or IPDV"),
    Replaced("tester's (own )?limit", "the tester's ceiling"),
    Replaced("(direct|gateway) forms?", "direct plan or gateway plan"),
    Replaced("single pair", "one address pair", ("docs/explanation/draft-report.md",)),
    Replaced("test bed", "testbed"),
    Replaced("testbed (description|configuration|document)", "testbed file"),
    Replaced("(?<!-)looped", "own loop"),
    Replaced("tester limit", "tester ceiling"),
    Replaced("this host(?! of this side)", "this machine, since a host is an end node of a plan"),
    Replaced("sender was late", "the sender was overdue"),
    Replaced("cable (inside|of shared)", "own loop, since a cable is a real one"),
    Replaced("(left|leaves?|leaving|sent) late", "overdue"),
)
REPLACED_ON_PAGES = (
    Replaced(
        "(tester's|own|other|second) host(?!s| number)", "machine, since a host is an end node of a plan"
    ),
    Replaced(
        "stalls?",
        "absence or lapse, since a stall is one that the reference router is told to make",
        (
            "docs/explanation/reference-router.md",
            "docs/reference/reference-router.md",
            "docs/reference/glossary.md",
        ),
    ),
)


def strings_of(path: Path) -> str:
    """What a Python file can print: its texts, without docstrings and names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return "\n".join(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and " " in node.value
    )


@cache
def programs() -> dict[str, str]:
    files = sorted((ROOT / "python" / "evenhand").rglob("*.py"))
    return {name_of(path): " ".join(strings_of(path).split()) for path in files}


@cache
def pages() -> dict[str, str]:
    return {name_of(path): " ".join(read(name_of(path)).split()) for path in DOCUMENTS}


def found(word: Replaced, name: str, text: str) -> list[str]:
    if name.startswith(word.right_in):
        return []
    pattern = re.compile(rf"(?<![\w`]){word.pattern}(?![\w`])", re.IGNORECASE)
    return [
        f"{name}: {match[0]!r}: write {word.instead}" for match in pattern.finditer(" ".join(text.split()))
    ]


@pytest.mark.parametrize("page", pages())
def test_pages_have_the_words_of_the_glossary(page: str) -> None:
    """Two words for one thing make two things of it."""
    words = (*REPLACED, *REPLACED_ON_PAGES)
    assert [line for word in words for line in found(word, page, pages()[page])] == []


def test_programs_print_the_words_of_the_glossary() -> None:
    assert [
        line for name, text in programs().items() for word in REPLACED for line in found(word, name, text)
    ] == []


@pytest.mark.parametrize(
    "word",
    [word for word in (*REPLACED, *REPLACED_ON_PAGES) if word.right_in],
    ids=lambda word: str(word.pattern),
)
def test_no_exception_is_left_over(word: Replaced) -> None:
    """One without the word would let it come back."""
    texts, bare = programs() | pages(), word._replace(right_in=())
    used = {name for name, text in texts.items() if found(bare, name, text)}
    assert [file for file in word.right_in if not any(name.startswith(file) for name in used)] == []


class Renamed(NamedTuple):
    """A name of keys, options, JSON or code that was given up, and the one that took its place."""

    old: str
    new: str
    right_in: tuple[str, ...] = ()
    """Beginnings of files in which it is the name of something else."""


RENAMED = (
    Renamed("tester_limit", "tester_ceiling, or above_ceiling_fps for a load above it"),
    Renamed("is_max_testers", "is_max_ceiling"),
    Renamed("--looped", "--own-loop"),
    Renamed("looped_", "own_loop_"),
    Renamed("_looped", "_own_loop"),
    Renamed("LOOPED_", "OWN_LOOP_"),
    Renamed("single_pair", "one_pair"),
    Renamed("single-pair", "one-pair"),
    Renamed("SinglePair", "OnePair"),
    Renamed("sender_late", "sender_overdue"),
    Renamed("late_after", "overdue_after"),
    Renamed("CpuStalls", "CpuAbsences"),
    Renamed("check_stalls", "check_absences"),
    Renamed("CampaignDut", "DutHashing"),
    Renamed("direct_form", "direct_plan"),
    Renamed("gateway_form", "gateway_plan"),
    Renamed("direct form", "direct plan", ("docs/explanation/draft-report.md",)),
    Renamed("gateway form", "gateway plan"),
)
SOURCES = ("python", "engine", "router", "contract", "tests", "bench", "docs", "examples", "tools")
TEXTS = {".py", ".cpp", ".hpp", ".json", ".jsonl", ".toml", ".md", ".j2", ".js", ".sh", ".lua"}


@cache
def sources() -> dict[str, str]:
    """Every source, page and contract, but for this list."""
    files = [
        path
        for folder in SOURCES
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in TEXTS and path != Path(__file__)
    ]
    return {name_of(path): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize("name", RENAMED, ids=lambda name: str(name.old))
def test_names_that_were_given_up_are_nowhere(name: Renamed) -> None:
    found = [file for file, text in sources().items() if name.old in text]
    assert [file for file in found if not file.startswith(name.right_in)] == [], name.new
