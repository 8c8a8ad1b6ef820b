#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the fragments of changelog.d/, one for each change that a user can see, and moves them into
CHANGELOG.md at a release. changelog.d/README.md says how to write one.

    tools/changelog.py                 check all names and texts; `make lint` does this
    tools/changelog.py draft           print what a release would add
    tools/changelog.py release 0.2.0   write it into CHANGELOG.md, and remove the fragments

Exit code 0: done; 1: a fragment is wrong, or there is none to release; 2: the arguments are wrong.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
"""The last word of a fragment's name, and its heading, in the order of CHANGELOG.md."""
NAME = re.compile(rf"[a-z0-9]+(?:-[a-z0-9]+)*\.(?P<kind>{'|'.join(KINDS)})\.md")
VERSION = re.compile(r"\d+\.\d+\.\d+")
MOST_LETTERS = 400
"""Longer texts belong to a page of docs/."""


def fragments() -> list[Path]:
    """All files of the folder but its README, by name."""
    return sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")


def faults() -> list[str]:
    """What is wrong with the fragments; each says what to do."""
    found = []
    for path in fragments():
        if not NAME.fullmatch(path.name):
            found.append(
                f"{path.name}: the name must be WORDS.KIND.md, with WORDS in lower case and joined by hyphens"
                f" and one of the kinds {', '.join(KINDS)}"
            )
            continue
        text = path.read_text(encoding="utf-8").strip()
        if not text:
            found.append(f"{path.name}: the file is empty; write one to three sentences")
        elif re.match(r"[#*-]", text) or "\n\n" in text:
            found.append(f"{path.name}: write one paragraph without a heading or list")
        elif not text.endswith("."):
            found.append(f"{path.name}: the last sentence must end with a full stop")
        elif len(text) > MOST_LETTERS:
            found.append(
                f"{path.name}: {len(text)} letters are more than {MOST_LETTERS}; explain details in docs/"
            )
    return found


def draft() -> str:
    """The fragments as they will appear in CHANGELOG.md, without the heading of the version."""
    sections = []
    for kind, heading in KINDS.items():
        texts = [
            " ".join(path.read_text(encoding="utf-8").split())
            for path in fragments()
            if (match := NAME.fullmatch(path.name)) and match["kind"] == kind
        ]
        if texts:
            sections.append("\n".join([f"### {heading}", "", *(f"- {text}" for text in texts)]))
    return "\n\n".join(sections)


def release(version: str) -> None:
    """Put the fragments above the newest version of CHANGELOG.md, and remove them."""
    path = ROOT / "CHANGELOG.md"
    before, heading, after = path.read_text(encoding="utf-8").partition("\n## ")
    path.write_text(f"{before}\n## {version}\n\n{draft()}\n{heading}{after}", encoding="utf-8")
    for fragment in fragments():
        fragment.unlink()


def main(arguments: list[str]) -> int:
    match arguments:
        case [] | ["draft"]:
            pass
        case ["release", version] if VERSION.fullmatch(version):
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    wrong = faults()
    if arguments[:1] == ["release"] and not fragments():
        wrong = ["there is no fragment to release"]
    if wrong:
        print("changelog.d:", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    if arguments == ["draft"]:
        print(draft())
    elif arguments:
        release(arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
