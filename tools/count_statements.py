#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the statements and files of the package, room by room: nodes of the syntax tree, so that neither
layout nor comments count. No room may have more than tools/statements.toml allows.

    python tools/count_statements.py           check the ceilings
    python tools/count_statements.py --write   lower them to what there is; none is raised
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "evenhand"
CEILINGS = Path(__file__).with_name("statements.toml")
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# How many Python statements each room may have (tools/count_statements.py). A ceiling is lowered when a room
# shrinks; to raise one, say why in the commit.

"""


def statements(source: str) -> int:
    """How many statements a file has; a docstring is one too."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(source)))


def counts() -> tuple[Counter[str], int]:
    """Statements by room, and the number of files."""
    files = sorted(PACKAGE.rglob("*.py"))
    found: Counter[str] = Counter()
    for file in files:
        parts = file.relative_to(PACKAGE).parts
        found[parts[0] if len(parts) > 1 else "package"] += statements(file.read_text())
    return found, len(files)


def main() -> int:
    found, files = counts()
    ceilings = tomllib.loads(CEILINGS.read_text()) if CEILINGS.exists() else {}
    above = {room: count for room, count in found.items() if count > ceilings.get(room, 0)}
    print(f"lint: {found.total():,} Python statements in {files} files of {PACKAGE.name}")
    if "--write" in sys.argv[1:]:
        new = {room: min(count, ceilings.get(room, count)) for room, count in sorted(found.items())}
        CEILINGS.write_text(HEAD + "".join(f"{room} = {count}\n" for room, count in new.items()))
        return 0
    for room, count in above.items():
        print(f"lint: the room {room} has {count:,} statements; its ceiling is {ceilings.get(room, 0):,}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
