# SPDX-License-Identifier: Apache-2.0
"""Packages whose names are loaded when they are first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

DOORS = [f"evenhand.{room}" for room in ("rig", "host", "dut", "lab", "analysis", "predict", "reference")]


def listed(door: str) -> tuple[dict[str, str], dict[str, str]]:
    """The module of each name: as a type checker sees it, and as it is found when the program runs."""
    file = import_module(door).__file__
    assert file is not None
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    checked = {
        alias.name: str(node.module)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (call,) = [node for node in ast.walk(branch) if isinstance(node, ast.Call)]
    places = ast.literal_eval(call.args[1])
    found = {
        name: module if module.startswith("evenhand.") else f"{door}.{module}"
        for module, names in places.items()
        for name in names
    }
    return checked, found


@pytest.mark.parametrize("door", DOORS)
def test_a_type_checker_and_the_program_find_the_same_names(door: str) -> None:
    checked, found = listed(door)
    assert checked == found
    module = import_module(door)
    folder = Path(str(module.__file__)).parent
    assert not {path.stem for path in folder.glob("*.py")} & found.keys(), (
        "a file that is loaded hides a name"
    )
    assert sorted(found) == sorted(module.__all__)
    for name, place in found.items():
        assert getattr(module, name) is getattr(import_module(place), name)
    with pytest.raises(AttributeError, match=f"module '{door}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_what_shows_results_loads_no_model_of_a_testbed() -> None:
    """It takes longer than to read a run file."""
    script = "import sys, evenhand.run, evenhand.procedure.registry; print('pydantic' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
