# SPDX-License-Identifier: Apache-2.0
"""All messages of errors, as the source has them: `python -m tests.base.messages` writes them to
tests/files/messages.toml, and those of the programs (program_messages.py) beside it. There they can be read
together, and a change of one is a change of a line."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from evenhand.base.errors import HostError
from tests.base import program_messages

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "evenhand"
FILE = ROOT / "tests" / "files" / "messages.toml"
COMMAND = "python -m tests.base.messages"
_HEAD = f"""\
# SPDX-License-Identifier: Apache-2.0
# Every message of an error, by its code: its class, what is wrong, and what to do next.
# `{COMMAND}` makes this file from python/evenhand. What stands in braces is computed. Those
# of the engine and the reference router are in program_messages.toml.

"""
_TEXTS = (ast.JoinedStr, ast.Constant, ast.BinOp, ast.IfExp)
"""What a message may be, among the arguments of a function that makes the error."""


@dataclass(frozen=True, slots=True, order=True)
class Message:
    code: str
    cls: str
    """The error's class, which has the exit code; empty where a function makes the error."""
    what: str
    next_step: str
    room: str
    """In which it is raised."""


@cache
def messages() -> tuple[Message, ...]:
    """Of all places that give an error a code: where it is made, or where a function is called that makes it.
    A place that passes on the code of another error has none of its own."""
    return tuple(
        sorted(
            {
                message
                for path in PACKAGE.rglob("*.py")
                for message in _of_file(path, room=path.relative_to(PACKAGE).parts[0])
            }
        )
    )


def as_toml(found: Iterable[Message]) -> str:
    """One table for each message, and messages of one code below each other."""
    lines = [_HEAD]
    for code, group in groupby(found, key=attrgetter("code")):
        for cls, what, next_step in sorted({(each.cls, each.what, each.next_step) for each in group}):
            told = {"class": cls, "what": what, "next": next_step}
            lines.append(f"[[{code}]]\n")
            lines += [f"{key} = {_quoted(text)}\n" for key, text in told.items() if text]
            lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON for the letters that occur here."""
    return json.dumps(text, ensure_ascii=False)


def _of_file(path: Path, *, room: str) -> Iterator[Message]:
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call):
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            for code in _codes(given.get("code")):
                name = ast.unparse(call.func)
                next_step = given.get("next_step")
                yield Message(
                    code=code,
                    cls=name if name.endswith("Error") else "",
                    what=_template(
                        next((each for each in call.args if isinstance(each, _TEXTS)), call.args[0])
                    ),
                    next_step="" if next_step is None else _template(next_step),
                    room=room,
                )


def _codes(value: ast.expr | None) -> Iterator[str]:
    """That are written there: one, or the two of `a if condition else b`."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.IfExp):
        yield from _codes(value.body)
        yield from _codes(value.orelse)


def _template(value: ast.expr) -> str:
    """The text with what is computed in braces."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.JoinedStr):
        return "".join(map(_template, value.values))
    if isinstance(value, ast.FormattedValue):
        conversion = "" if value.conversion == -1 else f"!{chr(value.conversion)}"
        format_spec = "" if value.format_spec is None else f":{_template(value.format_spec)}"
        return f"{{{_source(value.value)}{conversion}{format_spec}}}"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return _template(value.left) + _template(value.right)
    return f"{{{_source(value)}}}"


def _source(value: ast.expr) -> str:
    """As code. Texts in it are templates, since versions of Python quote f-strings inside each other
    differently."""
    return ast.unparse(_Inner().visit(value))


class _Inner(ast.NodeTransformer):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:  # the name that `ast` calls
        return ast.Constant(_template(node))


if __name__ == "__main__":
    FILE.write_text(as_toml(messages()))
    try:
        program_messages.FILE.write_text(program_messages.as_toml(program_messages.faults()))
    except HostError as error:
        sys.exit(f"{program_messages.FILE.name} stays as it was: {error}. {error.next_step}")
