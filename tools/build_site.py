#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site that is read from a folder or a server: build-site/html/index.html.
`make docs` runs it.

The pages stay as a forge shows them; a copy of them is built, in the same folders. A file of the repository
that a page links is a page of the site with its text, a folder a list of its files. The navigation is made
here: a page is in it because it is in its folder, in the order in which docs/README.md, the start page, names
the pages, others after.

Exit code 0: built; 1: a link leads nowhere, a page is shown otherwise than on a forge, or something would be
fetched from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build-site"
SETTINGS = ROOT / "tools" / "site" / "zensical.toml"
ASSETS = ("site.css", "iframe-worker.js")

HOME = "docs/README.md"
"""The start page: index.html of the site's root."""
SECTIONS = {
    "Tutorials": "docs/tutorial",
    "How to": "docs/how-to",
    "Reference": "docs/reference",
    "Explanation": "docs/explanation",
    "Developers": "docs/developers",
}
PROJECT = (
    "README.md",
    "HACKING.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "changelog.d/README.md",
    "contract/README.md",
    "examples/README.md",
)
PICTURES = (".svg", ".png")
LANGUAGES = {".toml": "toml", ".json": "json", ".jsonl": "json", ".py": "python", ".sh": "sh"}
FOREIGN = re.compile(r"(?:https?:)?//")
COUNTED = {
    "table": "table_open",
    "pre": ("fence", "code_block"),
    "li": "list_item_open",
    "h2": "h2",
    "h3": "h3",
}
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_SPAN = re.compile(r"`[^`\n]+`")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def pages() -> list[str]:
    """Every page of the repository, relative to its root: the start page, those of its folders, the
    project's own."""
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")}
    return [HOME, *sorted(found - {HOME}), *PROJECT]


def title_of(page: str) -> str:
    return next(
        line[2:].strip()
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("# ")
    )


def navigation() -> dict[str, list[str]]:
    """The pages of each section. A folder of docs/ without a section is an error, not a page that nobody
    finds."""
    targets = [target for _, target, _ in _LINK.findall((ROOT / HOME).read_text(encoding="utf-8"))]
    order = [_named_by(HOME, target.partition("#")[0]) for target in targets]
    # The start page lists all pages in the order to read them; a page that is linked again further down keeps
    # its place.
    rank = {page: place for place, page in reversed(list(enumerate(order)))}
    sections = {}
    for section, folder in SECTIONS.items():
        inside = [page for page in pages() if page.startswith(f"{folder}/")]
        sections[section] = sorted(inside, key=lambda page: (rank.get(page, len(rank)), title_of(page)))
    sections["Project"] = list(PROJECT)
    lost = sorted(set(pages()) - {HOME} - {page for inside in sections.values() for page in inside})
    if lost:
        raise SystemExit(
            f"site: in no section: {', '.join(lost)}. Name their folder in SECTIONS of tools/build_site.py."
        )
    return sections


def settings() -> str:
    """The settings with the navigation, which TOML wants before the tables that follow."""
    lines = [f"  {{ Home = {_quoted(staged_name(HOME))} }},"]
    for section, inside in navigation().items():
        entries = ", ".join(
            f"{{ {_quoted(title_of(page))} = {_quoted(staged_name(page))} }}" for page in inside
        )
        lines.append(f"  {{ {_quoted(section)} = [{entries}] }},")
    return SETTINGS.read_text(encoding="utf-8").replace(
        "[project]\n", "\n".join(["[project]", "nav = [", *lines, "]", ""]), 1
    )


def _quoted(text: str) -> str:
    """A string of JSON is one of TOML."""
    return json.dumps(text, ensure_ascii=False)


def staged_name(path: str) -> str:
    """The place of a page, or of a file that is shown as one, in the copy: the start page is the index of the
    site, any other README but the repository's own is the index of its folder."""
    if path == HOME:
        return "index.md"
    pure = PurePosixPath(path)
    if path == "README.md":
        return "readme.md"
    if pure.name == "README.md":
        return pure.with_name("index.md").as_posix()
    return path if pure.suffix == ".md" else f"{path}.md"


def stage(folder: Path) -> None:
    """Copy the pages with links that hold in the site, and make a page of each file that they link."""
    known = set(pages())
    files: set[str] = set()
    pictures: set[str] = set()
    for page in sorted(known):
        # On a forge a bar in a cell's code needs a backslash, which is not shown; here it needs none, and one
        # would be shown.
        text = _ROW.sub(
            lambda row: _SPAN.sub(lambda span: span[0].replace("\\|", "|"), row[0]),
            (ROOT / page).read_text(encoding="utf-8"),
        )
        parts = _CODE.split(text)
        parts[::2] = [
            _LINK.sub(lambda match, page=page: _relinked(match, page, known, files, pictures), part)
            for part in parts[::2]
        ]
        _write(folder / staged_name(page), "".join(parts))
    for picture in pictures:
        (folder / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / picture, folder / picture)
    inside = {
        file: sorted(path.name for path in (ROOT / file).iterdir() if path.is_file())
        for file in files
        if (ROOT / file).is_dir()
    }
    for name, found in inside.items():
        # A forge lists a folder that is linked.
        lines = [f"- [{inner}]({PurePosixPath(name).name}/{staged_name(inner)})" for inner in found]
        _write(
            folder / staged_name(name),
            "\n".join([f"# {name}", "", "A folder of the repository.", "", *lines, ""]),
        )
    for file in sorted(
        (files - set(inside)) | {f"{name}/{inner}" for name, found in inside.items() for inner in found}
    ):
        text = (ROOT / file).read_text(encoding="utf-8")
        language = LANGUAGES.get(PurePosixPath(file).suffix, "text")
        _write(
            folder / staged_name(file),
            f"# {file}\n\nA file of the repository, as it was when this site was"
            f" built.\n\n````{language}\n{text.rstrip()}\n````\n",
        )


def _named_by(page: str, path: str) -> str:
    """The file that a link of a page names, relative to the repository's root."""
    return os.path.normpath(PurePosixPath(page).parent / path)


def _relinked(match: re.Match[str], page: str, known: set[str], files: set[str], pictures: set[str]) -> str:
    before, target, after = match.groups()
    path, hash_sign, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return match[0]
    wanted = _named_by(page, path)
    if wanted not in known:
        if not (ROOT / wanted).exists():
            raise SystemExit(
                f"site: {page} links {target}: there is no such file. Link a page, a file or a folder."
            )
        (pictures if before.startswith("!") else files).add(wanted)
    start = PurePosixPath(staged_name(page)).parent
    aim = wanted if wanted in pictures and before.startswith("!") else staged_name(wanted)
    return f"{before}{os.path.relpath(aim, start)}{hash_sign}{anchor}{after}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Page(HTMLParser):
    """What a built page fetches from elsewhere, its own pictures, and the tables and lists of its article."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.pictures: list[str] = []
        self.counts = dict.fromkeys(COUNTED, 0)
        self._article = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "article":
            self._article += 1
        if self._article and tag in self.counts:
            self.counts[tag] += 1
        if tag == "img" and not FOREIGN.match(given.get("src") or ""):
            self.pictures.append(str(given.get("src")))
        for name in ("src", "srcset", "data", "poster", "action") + (
            ("href",) if tag in ("link", "use", "image") else ()
        ):
            if FOREIGN.match(given.get(name) or ""):
                self.foreign.append(str(given[name]))

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._article -= 1


def faults(html: Path) -> list[str]:
    """What is wrong with the built site: pages that are not there, that show less than their Markdown, or
    that fetch something."""
    found = []
    reader = MarkdownIt("commonmark").enable("table")
    for page in pages():
        built = html / PurePosixPath(staged_name(page)).with_suffix(".html")
        if not built.is_file():
            found.append(f"{page}: was not built")
            continue
        seen = _Page()
        seen.feed(built.read_text(encoding="utf-8"))
        parsed = reader.parse((ROOT / page).read_text(encoding="utf-8"))
        tokens = [token.tag if token.type == "heading_open" else token.type for token in parsed]
        for tag, names in COUNTED.items():
            wanted = sum(token in names if isinstance(names, tuple) else token == names for token in tokens)
            if seen.counts[tag] != wanted:
                found.append(f"{page}: {wanted} of <{tag}> on a forge, {seen.counts[tag]} in the site")
        found += [f"{page}: fetches {url}" for url in seen.foreign]
        found += [
            f"{page}: the picture {name} is missing or is not a picture"
            for name in seen.pictures
            if not name.startswith("data:")
            and not ((built.parent / name).is_file() and PurePosixPath(name).suffix in PICTURES)
        ]
    for sheet in html.rglob("*.css"):
        found += [
            f"{sheet.name}: fetches {url}"
            for url in re.findall(
                r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", sheet.read_text(encoding="utf-8")
            )
        ]
    return found


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    stage(FOLDER / "source")
    for name in ASSETS:
        shutil.copy(SETTINGS.with_name(name), FOLDER / "source" / name)
    _write(FOLDER / "zensical.toml", settings())
    # Strict: a link or an anchor that leads nowhere ends it.
    command = [
        str(Path(sys.executable).with_name("zensical")),
        "build",
        "--clean",
        "--strict",
        "--config-file",
        "zensical.toml",
    ]
    ended = subprocess.run(
        command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    # Its words without colours, and without the trace below them.
    said = re.sub(r"\x1b\[[\d;]*m", "", ended.stdout).partition("Traceback (")[0].strip()
    problems = faults(FOLDER / "html") if ended.returncode == 0 else [said or ended.stdout]
    if problems:
        print("site: not good enough:", *problems, sep="\n  ", file=sys.stderr)
        return 1
    print(f"site: {len(pages())} pages: {(FOLDER / 'html' / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
