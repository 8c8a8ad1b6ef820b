#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/python.md from the docstrings of what `evenhand` exports; `make docs` runs it,
tests/docs/ compares."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from pathlib import Path
from typing import Any, is_typeddict

import evenhand

PAGE = Path(__file__).with_name("python.md")
HEAD = """# Python

<!-- Written by docs/reference/generate_python.py; `make docs` writes it again. -->

This page lists what `import evenhand` offers; all of it is typed. [Measure from Python](../how-to/measure-from-python.md) has examples.
Rates are frames per second per direction, durations are seconds, frame sizes octets with the FCS, ratios from 0 to 1.
"""  # noqa: E501  (Markdown)
SECTIONS = (
    ("Measuring", ("open_testbed", "OpenTestbed", "Conditions", "make_plan", "AddressPlan")),
    (
        "Goals and conditions",
        (
            "ThroughputGoal",
            "Tst009Goal",
            "MlrGoals",
            "MlrGoal",
            "LossGoal",
            "DelayGoal",
            "DelayTest",
            "parse_imix",
            "Imix",
            "DrawnOrder",
            "mix_versions",
            "BackToBackGoal",
            "BurstGoal",
            "RecoveryGoal",
            "ConnectionRateGoal",
            "CapacityGoal",
            "TearDownGoal",
            "OrderName",
            "Repetitions",
            "Waits",
            "Limits",
            "ConnectionWish",
            "LearningChoice",
            "SinglePair",
        ),
    ),
    (
        "Results",
        (
            "Throughput",
            "FrameLoss",
            "LossPoint",
            "LossOutcome",
            "DelayResult",
            "BackToBackTable",
            "BackToBack",
            "BurstSearch",
            "BurstIntervals",
            "BurstInterval",
            "Recovery",
            "ConnectionRate",
            "Capacity",
            "CapacityStep",
            "CapacityOutcome",
            "TearDown",
            "Removal",
            "ThroughputTable",
            "LossTable",
            "Row",
            "Statistics",
            "Interval",
            "SingleTrial",
            "TrialResult",
            "DirectionResult",
            "SearchTrial",
            "Purpose",
            "ThroughputResult",
            "MlrResult",
            "Profile",
            "Deviation",
            "Outcome",
            "Verdict",
        ),
    ),
    ("Events", ("Began", "Measured", "TrialStarted", "TrialFinished", "TrialPhase", "Learned", "Note")),
    ("Errors", ("EvenhandError", "RequestError", "PlanError", "HostError", "EngineError")),
)
"""In the order in which a reader needs them."""


def render() -> str:
    """The page as it should be."""
    text = HEAD
    for title, names in SECTIONS:
        text += f"\n## {title}\n"
        for name in names:
            text += _entry(name, getattr(evenhand, name))
    return text


def _entry(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return f"\n### `{name}`\n\n```text\n{_signature(name, thing)}\n```\n\n{_doc(thing)}"
    text = f"\n### `{name}`\n\n{_doc(thing)}"
    rows = _fields(thing)
    if rows:
        head = (
            "| value | what |\n|---|---|\n"
            if issubclass(thing, Enum)
            else "| field | type | what |\n|---|---|---|\n"
        )
        text += f"\n{head if not is_typeddict(thing) else head.replace('field', 'keyword')}" + "".join(rows)
    methods: dict[str, Any] = {}
    for one in reversed(_and_its_bases(thing)):
        methods |= {name: method for name, method in vars(one).items() if name not in methods}
    for method_name, method in methods.items():
        if method_name.startswith("_") or not (inspect.isfunction(method) or isinstance(method, property)):
            continue
        if isinstance(method, property):
            if method.__doc__:
                text += f"\n`.{method_name}`: {_first(method)}\n"
        elif method.__doc__:
            text += f"\n```text\n{_signature(method_name, method)}\n```\n\n{_doc(method)}"
    return text


def _signature(name: str, function: Any) -> str:
    """As written in the source; folded by parameters where it is long."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    positional = [argument for argument in given.args if argument.arg != "self"]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + [*given.defaults]
    parts = [_parameter(argument, default) for argument, default in zip(positional, defaults, strict=True)]
    if given.kwonlyargs:
        parts += [
            "*",
            *(
                _parameter(argument, default)
                for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            ),
        ]
    if given.kwarg is not None:
        parts.append(f"**{given.kwarg.arg}: Conditions")
    assert definition.returns is not None
    result = ast.unparse(definition.returns)
    text = f"{name}({', '.join(parts)}) -> {result}"
    return (
        text
        if len(text) <= 110
        else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {result}"
    )


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    return f"{argument.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")


def _doc(thing: Any) -> str:
    """A docstring as Markdown: its sections become lists."""
    blocks = inspect.cleandoc(thing.__doc__ or "").split("\n\n")
    return "\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    title, _, rest = block.partition(":\n")
    if title not in ("Args", "Raises", "Returns"):
        return " ".join(block.split()) + "\n"
    items = re.split(r"\n(?=\S)", textwrap.dedent(rest))
    raises = "raises " if title == "Raises" else ""
    return "".join(
        f"- {raises}`{key}`: {' '.join(what.split())}\n"
        for key, _, what in (item.partition(": ") for item in items)
    )


def _first(thing: Any) -> str:
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0].split())


def _and_its_bases(thing: type) -> list[type]:
    """The class itself, after those of its bases that have no entry of their own."""
    if issubclass(thing, BaseException):
        return [thing]
    hidden = [
        base
        for base in thing.__mro__[1:]
        if base.__module__.startswith("evenhand.") and base.__name__ not in evenhand.__all__
    ]
    return [*reversed(hidden), thing]


def _fields(thing: type) -> list[str]:
    """A row for each attribute, with the docstring below it in the source."""
    if issubclass(thing, BaseException):
        return []
    return [row for one in _and_its_bases(thing) for row in _own_fields(one)]


def _own_fields(thing: type) -> list[str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    assert isinstance(body, ast.ClassDef)
    rows = []
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        what = ""
        if (
            isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            what = " ".join(following.value.value.split()).replace("|", "\\|")
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and not statement.target.id.startswith("_")
        ):
            kind = ast.unparse(statement.annotation)
            default = "" if statement.value is None else f" = {ast.unparse(statement.value)}"
            rows.append(
                f"| `{statement.target.id}` | `{f'{kind}{default}'.replace('|', chr(92) + '|')}` | {what} |\n"
            )
        elif issubclass(thing, Enum) and isinstance(statement, ast.Assign):
            rows.append(f"| `{ast.unparse(statement.value)}` | {what} |\n")
    return rows


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
