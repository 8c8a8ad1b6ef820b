# SPDX-License-Identifier: Apache-2.0
"""Names that mean one thing in the whole package, so that a reader who has met one knows its type."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_rooms import modules

ONE_TYPE: Mapping[str, str] = {"hosts": "SideCounts", "networks": "SideCounts"}
"""Names of attributes, properties, functions and parameters that have this type, or None as well. What is
near them has a name of its own: `host_range`, `host_count`, `most_hosts`, `worker_hosts`."""
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    (
        "evenhand.spec.plan.CountOptions",
        "str",
    ): "the options as they are typed, which have their fields' names",
    ("evenhand.plan.topologies.make_plan", "Counts"): "public, and takes one number for both sides as well",
}
"""What declares these names, all of them, with another type, and why."""
THINGS = ("addresses", "points", "trials", "rows", "places")
"""Names of the things themselves: their number is a `point_count`, a text about them `address_words`."""
NO_ANNOTATION = "no annotation"


class Declared(NamedTuple):
    """An annotated name, or a parameter without an annotation."""

    owner: str
    """The class or function that it belongs to, with its module."""
    name: str
    kind: str
    """Its type, without None, `Annotated`, and quotes."""
    line: int


def declared_in(tree: ast.AST, owner: str) -> Iterator[Declared]:
    """Attributes and variables that are annotated, parameters, and functions by what they return."""
    for node in ast.iter_child_nodes(tree):
        inner = owner
        if isinstance(node, ast.ClassDef):
            inner = f"{owner}.{node.name}"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if not isinstance(node, ast.Lambda):
                inner = f"{owner}.{node.name}"
                yield Declared(owner, node.name, kind_of(node.returns), node.lineno)
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            for argument in filter(None, every):
                yield Declared(inner, argument.arg, kind_of(argument.annotation), argument.lineno)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
            name = node.target.id if isinstance(node.target, ast.Name) else node.target.attr
            yield Declared(owner, name, kind_of(node.annotation), node.lineno)
        yield from declared_in(node, inner)


def kind_of(annotation: ast.expr | None) -> str:
    """`SideCounts` of `Annotated[SideCounts, ...] | None`."""
    if annotation is None:
        return NO_ANNOTATION
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return kind_of(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.Subscript):
        outer = ast.unparse(annotation.value).rpartition(".")[2]
        if outer == "Annotated" and isinstance(annotation.slice, ast.Tuple):
            return kind_of(annotation.slice.elts[0])
        if outer == "Optional":
            return kind_of(annotation.slice)
    if isinstance(annotation, ast.BinOp):
        sides = [kind_of(side) for side in (annotation.left, annotation.right)]
        return " | ".join(side for side in sides if side != "None")
    return ast.unparse(annotation)


def declared() -> list[Declared]:
    """Those of the whole package."""
    return [
        each
        for name, file in modules().items()
        for each in declared_in(ast.parse(file.read_text(encoding="utf-8")), name)
    ]


@pytest.mark.parametrize("name", ONE_TYPE)
def test_a_name_has_one_type_in_the_whole_package(name: str) -> None:
    """`hosts` was a string, a method, a dict, a tuple, a range and an option."""
    found = [each for each in declared() if each.name == name]
    assert len([each for each in found if each.kind == ONE_TYPE[name]]) > 5
    others = {(each.owner, each.kind): each.line for each in found if each.kind != ONE_TYPE[name]}
    assert others.keys() == EXCEPTIONS.keys()


@pytest.mark.parametrize("name", THINGS)
def test_a_plural_is_neither_a_number_nor_a_text(name: str) -> None:
    found = [each for each in declared() if each.name == name]
    assert found
    assert [each for each in found if each.kind in ("int", "float", "str")] == []


def test_a_name_is_found_wherever_it_is_declared() -> None:
    """The check above would hold if nothing were found."""
    source = """
class Side:
    hosts: "SideCounts | None" = None
    networks: Annotated[str | None, Option(help="a")] = None
    @property
    def hosts(self) -> str: ...
    def limited(self, hosts: Optional[int], *, networks=None) -> None:
        self.hosts: HostRange = hosts
        def hosts(of: HostRange) -> dict[str, Any]: ...
async def start(*hosts: WorkerHost) -> None:
    return max(hosts, key=lambda hosts: 0)
"""
    found = [tuple(each[:3]) for each in declared_in(ast.parse(source), "m") if each.name in ONE_TYPE]
    assert found == [
        ("m.Side", "hosts", "SideCounts"),
        ("m.Side", "networks", "str"),
        ("m.Side", "hosts", "str"),
        ("m.Side.limited", "hosts", "int"),
        ("m.Side.limited", "networks", NO_ANNOTATION),
        ("m.Side.limited", "hosts", "HostRange"),
        ("m.Side.limited", "hosts", "dict[str, Any]"),
        ("m.start", "hosts", "WorkerHost"),
        ("m.start", "hosts", NO_ANNOTATION),
    ]


@pytest.mark.parametrize("package", ["host", "procedure", "rig", "search", "trial"])
def test_no_name_of_a_package_is_that_of_a_module_in_it(package: str) -> None:
    """Python puts a module into its package under its own name: a name that is loaded when it is first used
    would be the module then."""
    imported = import_module(f"evenhand.{package}")
    modules_in_it = {path.stem for folder in imported.__path__ for path in Path(folder).glob("*.py")}
    assert not modules_in_it & set(imported.__all__)
