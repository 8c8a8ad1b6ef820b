# SPDX-License-Identifier: Apache-2.0
"""The rooms of the Python half: each imports only rooms before it, and no files import each other in a
circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

import evenhand
from evenhand.rig import REFERENCE
from evenhand.rig.lab_rig import LAB_PREFIX

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "evenhand"
ROOMS = (
    "base",
    "plan",
    "predict",
    "trial",
    "search",
    "testbed",
    "dut",
    "host",
    "reference",
    "lab",
    "rig",
    "results",
    "procedure",
    "spec",
    "run",
    "analysis",
    "report",
    "exchange",
    "otg",
    "serve",
    "cli",
)
"""Lowest first. A file imports its own room and those before it; HACKING.md says what each is for."""
RIG = {"testbed", "dut", "host", "reference", "lab", "rig"}
"""The rooms of tester and DUT; `rig` is their front."""
ROOT_FILES = {"__init__", "__main__", "api", "pytest_plugin", "pytest_tester"}
"""All that may be outside the rooms, above them: no room imports one of these."""

KNOWN_VIOLATIONS: set[tuple[str, str]] = set()
"""File, and the room after its own that it imports. This list only shrinks."""
KNOWN_CIRCLES: set[tuple[str, ...]] = set()
"""Files that import each other. This list only shrinks."""

CAMPAIGN = "run.campaign"
"""The part of `run` that measures; the rest of it keeps and reads records."""
NARROWER = {"run": {"procedure", CAMPAIGN}, "analysis": {"trial", "search", "procedure", CAMPAIGN} | RIG}
"""Rooms before a room that it does not import all the same: what reads records is out of reach of what
measures (SEED-07)."""
OUT_OF_THEM = {
    "evenhand.procedure.statistics",
    "evenhand.procedure.descriptor",
    "evenhand.procedure.registry",
    "evenhand.dut.facts_interface",
}
"""Files that it may import: they compute, or say what the number of a procedure is."""


BEHIND_THE_FRONT = {
    # Computes queues from facts that were recorded: analysis must not load the rig's front.
    "evenhand.analysis.inside": {"dut"},
    # The verb `check` looks at this machine, and at that of each engine: nothing else asks for this.
    "evenhand.cli.check": {"host"},
    "evenhand.cli.check_run": {"host"},
    # The verb `dut` prints, applies and undoes a set-up; `predict` reads a NIC's hash there.
    "evenhand.cli.dut": {"dut"},
    "evenhand.cli.dut_by_script": {"dut"},
    "evenhand.cli.dut_over_ssh": {"dut"},
    "evenhand.cli.device_of_dut": {"dut"},
    # Options of the verbs `dut` and `lab` alone.
    "evenhand.cli.nat_options": {"dut"},
    # The verbs `lab` and `router` set up what the rig makes, and so does the demo of each.
    "evenhand.cli.lab": {"lab"},
    "evenhand.cli.demo_linux": {"lab"},
    "evenhand.cli.router": {"reference"},
    "evenhand.cli.demo_parts": {"reference"},
}
"""Files outside these rooms that import more of them than their front, and the room that they may."""


@cache
def modules() -> dict[str, Path]:
    """Every file of the package by the name that imports it."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports_of(name: str) -> frozenset[str]:
    """The modules of the package that this one imports, wherever in it that stands: in a function, for a type
    checker alone, or by name for later."""
    file = modules()[name]
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = _imports_in(ast.parse(file.read_text(encoding="utf-8")), package)
    return frozenset(module for each in found if (module := _module_of(each)) is not None and module != name)


def _imports_in(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -node.level + 1 or None] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("lazy_import", "import_module", "__import__"):
            yield from (
                word.value
                for word in node.args
                if isinstance(word, ast.Constant) and isinstance(word.value, str)
            )


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _module_of(name: str) -> str | None:
    """`evenhand.plan.make_plan` is of the module `evenhand.plan`; None: not of this package."""
    while name not in modules():
        name = name.rpartition(".")[0]
        if not name:
            return None
    return name


def room_of(name: str) -> str:
    """`plan` of `evenhand.plan.model`; empty for the package itself."""
    return name.partition(".")[2].partition(".")[0]


def part_of(name: str) -> str:
    """The same, but `run.campaign` of `evenhand.run.campaign.runner`."""
    return CAMPAIGN if f"{name}.".startswith(f"evenhand.{CAMPAIGN}.") else room_of(name)


def circles(graph: Mapping[str, Set[str]]) -> set[tuple[str, ...]]:
    """Sets of modules, each of more than one, in which each leads to each other (strongly connected
    components)."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        left = [start]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
        reached[start] = seen
    found = (tuple(sorted(of for of in seen if name in reached[of])) for name, seen in reached.items())
    return {circle for circle in found if len(circle) > 1}


def loaded_by(name: str) -> Set[str]:
    """What Python loads for the imports of a file: each module that it names, and the packages around that,
    unless the file is in them."""
    found = set()
    for module in imports_of(name):
        while module and not f"{name}.".startswith(f"{module}."):
            found.add(module)
            module = module.rpartition(".")[0]
    return found | (imports_of(name) - {"evenhand"})


def test_each_file_is_in_a_room() -> None:
    names = {name.partition(".")[2] for name in modules()} | {
        file.stem for file in PACKAGE.glob("*.py") if file.stem.startswith("__")
    }
    outside = {name for name in names if name.partition(".")[0] not in ROOMS}
    assert outside - {""} == ROOT_FILES


def test_a_file_imports_its_own_room_and_those_before_it() -> None:
    """Arrows point one way: a search that knew how it is stored, or a procedure that knew how it is shown,
    could be used for nothing else."""
    found = set()
    for name in modules():
        if (room := room_of(name)) not in ROOMS:
            continue
        before = ROOMS[: ROOMS.index(room) + 1]
        found |= {(name, room_of(module)) for module in imports_of(name) if room_of(module) not in before}
    assert found - KNOWN_VIOLATIONS == set(), "imports of a room that comes later"
    assert KNOWN_VIOLATIONS - found == set(), "mended: take them out of KNOWN_VIOLATIONS"


@pytest.mark.parametrize("room", NARROWER)
def test_a_record_is_read_without_what_measured_it(room: str) -> None:
    """A room that takes records must not depend on what measures (SEED-07)."""
    files = [name for name in modules() if part_of(name) == room]
    assert files
    for name in files:
        found = {module for module in imports_of(name) if part_of(module) in NARROWER[room]}
        assert found <= OUT_OF_THEM, name


def test_other_rooms_know_the_rig_by_its_front_alone() -> None:
    """`evenhand.rig` says what can be asked of any DUT; which kind of DUT it is, only the rig knows. This
    holds for every room and for the API; a verb that is about a part of the rig is in BEHIND_THE_FRONT."""
    found: dict[str, set[str]] = {}
    for name in modules():
        inner = {room_of(module) for module in imports_of(name) if room_of(module) in RIG - {"rig"}}
        inner |= {module for module in imports_of(name) if module.startswith("evenhand.rig.")}
        if room_of(name) not in RIG and inner:
            found[name] = inner
    assert found == BEHIND_THE_FRONT


def test_only_the_rig_has_names_of_kinds_of_duts() -> None:
    """Another kind must not have to be written into other rooms. Prose may name one."""
    for name, file in modules().items():
        if part_of(name) not in ("procedure", "spec", CAMPAIGN, "api"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                assert text != REFERENCE, f"{name}:{node.lineno}"
                assert not (text.startswith(LAB_PREFIX) and " " not in text), f"{name}:{node.lineno}"


def test_no_files_import_each_other_in_a_circle() -> None:
    """Such files can only be read, tested and loaded together."""
    found = circles({name: loaded_by(name) for name in modules()})
    assert found - KNOWN_CIRCLES == set(), "circles of files"
    assert KNOWN_CIRCLES - found == set(), "mended: take them out of KNOWN_CIRCLES"


def test_a_circle_is_found_wherever_the_imports_stand() -> None:
    """The checks above would hold if nothing were found."""
    source = """
import evenhand.plan
from ..base import errors
from . import events
if TYPE_CHECKING:
    from evenhand.search.model import Outcome
def load():
    from evenhand.cli.main import app_of
    return lazy_import("evenhand.report.page")
"""
    assert set(_imports_in(ast.parse(source), "evenhand.procedure")) == {
        "evenhand.plan",
        "evenhand.base.errors",
        "evenhand.procedure.events",
        "evenhand.search.model.Outcome",
        "evenhand.cli.main.app_of",
        "evenhand.report.page",
    }
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert circles(graph) == {("b", "c")}


def test_no_two_classes_have_the_same_name() -> None:
    """A reader who looks for `Bracket` must not find two. Private ones are their file's own business."""
    files: dict[str, list[str]] = {}
    for name, file in modules().items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(name)
    assert files
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def _run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("room", "loads"), [("evenhand.plan", {"base", "plan"}), ("evenhand", {"base"})])
def test_an_import_loads_a_room_and_what_is_below_it(room: str, loads: set[str]) -> None:
    """Who only makes a plan waits for no search library, and needs none."""
    loaded = _run(f"import sys, {room}; print(*sys.modules)")
    assert {room_of(name) for name in loaded if name.startswith("evenhand.")} == loads
    assert not {name for name in loaded if name.partition(".")[0] in ("MLRsearch", "pyroute2", "pydantic")}


def test_the_packages_names_are_there_although_they_are_loaded_late() -> None:
    """PEP 562: as attributes, by `dir()`, and by a star-import, each of them that which type checkers see."""
    for program in ("import evenhand; print(*dir(evenhand))", "from evenhand import *; print(*dir())"):
        assert set(evenhand.__all__) <= set(_run(program))
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (declared, _) = (each for each in tree.body if isinstance(each, ast.If))
    seen = {"__version__"}
    for node in declared.body:
        assert isinstance(node, ast.ImportFrom)
        module = __import__(str(node.module), fromlist=["*"])
        for alias in node.names:
            seen.add(alias.name)
            assert getattr(evenhand, alias.name) is getattr(module, alias.name)
    assert seen == set(evenhand.__all__)


def test_a_name_that_the_package_does_not_have_is_missed() -> None:
    with pytest.raises(AttributeError, match="no attribute 'open_testbet'"):
        _ = evenhand.open_testbet  # type: ignore[attr-defined]
