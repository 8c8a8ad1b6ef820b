# SPDX-License-Identifier: Apache-2.0
"""Arrows point one way: a station imports none that comes after it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "evenhand"
FORBIDDEN = {
    "plan": {"testbed", "trial", "search", "procedure", "series", "report", "cli"},
    "trial": {"search", "procedure", "series", "report", "cli"},
    "search": {"testbed", "procedure", "series", "report", "cli"},
    "procedure": {"series", "campaign", "report", "progress", "cli"},
    "series": {"procedure", "campaign", "report", "progress", "cli"},
    "campaign": {"report"},
    "report": {"progress", "cli"},
}


def imported(file: Path) -> set[str]:
    """`evenhand.X...` as X."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("evenhand.")}


@pytest.mark.parametrize("station", FORBIDDEN)
def test_a_station_imports_none_that_comes_after_it(station: str) -> None:
    """A search that knew how it is stored, or a procedure that knew how it is shown, could be used for nothing else."""
    files = sorted((PACKAGE / station).glob("*.py"))
    assert files
    assert {file.name: found for file in files if (found := imported(file) & FORBIDDEN[station])} == {}
