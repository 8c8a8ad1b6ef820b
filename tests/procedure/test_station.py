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
    "procedure": {"series", "analysis", "campaign", "report", "progress", "cli"},
    "series": {"procedure", "analysis", "campaign", "report", "progress", "cli"},
    "analysis": {"testbed", "trial", "search", "reference", "lab", "campaign", "report", "progress", "cli"},
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
    """A search that knew how it is stored, or a procedure that knew how it is shown, could be used for
    nothing else."""
    files = sorted((PACKAGE / station).glob("*.py"))
    assert files
    assert {file.name: found for file in files if (found := imported(file) & FORBIDDEN[station])} == {}


def test_the_analysis_takes_nothing_of_procedures_but_their_statistics() -> None:
    """It reads records: what measures must be out of its reach (SEED-07)."""
    for file in (PACKAGE / "analysis").glob("*.py"):
        tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        modules = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
        assert {module for module in modules if module.startswith("evenhand.procedure")} <= {
            "evenhand.procedure.statistics"
        }


@pytest.mark.parametrize(
    ("station", "ending"),
    [("trial", ""), ("search", ""), ("procedure", ""), ("reference", ""), ("cli", "Options")],
)
def test_no_two_classes_of_a_station_have_the_same_name(station: str, ending: str) -> None:
    """A reader who looks for `Bracket` must not find two. Private ones are their file's own business."""
    files: dict[str, list[str]] = {}
    for file in sorted((PACKAGE / station).glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and node.name.endswith(ending)
            ):
                files.setdefault(node.name, []).append(file.name)
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
