# SPDX-License-Identifier: Apache-2.0
"""All messages of errors, as the source has them; `python -m tests.base.messages` prints them, so that they
can be read together. What each must be is in `broken_rules`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "evenhand"
LONGEST = 420
"""Letters of a message with its next step, as the source has it: a terminal shows it in five lines."""
DIALECT = re.compile(
    r"\b(tells?|told|nobody|stands?|besides|wish(es|ed)?|whoever|heeds?|upon)\b|^(Of|By which|What)\b",
    re.IGNORECASE,
)
"""Words that CONTRIBUTING.md names: plain technical English has others."""
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
    """The messages of all places that give an error a code: where it is made, or where a function is called
    that makes it. A place that passes on the code of another error has none of its own."""
    return tuple(
        sorted(
            {
                message
                for path in PACKAGE.rglob("*.py")
                for message in _of_file(path, room=path.relative_to(PACKAGE).parts[0])
            }
        )
    )


def broken_rules(what: str, next_step: str) -> Iterator[str]:
    """What is wrong with a message.

    Args:
        what: What is wrong; what is computed stands in braces.
        next_step: What to do next; empty: the message says it.
    """
    if what.endswith("."):
        yield "what is wrong ends with a full stop, which the line of the error has itself"
    if next_step and next_step[-1] not in ".?}" and ": " not in next_step and " or use" not in next_step:
        yield "the next step is neither a sentence nor ends with a command behind a colon"
    is_clear = "{" in what or any(word in what for word in ("must", "stopped", "twice", "write", "name the"))
    if not next_step and not is_clear:
        yield "neither the value nor the next step is named"
    if len(what) + len(next_step) > LONGEST:
        yield f"longer than {LONGEST} letters"
    for text in (what, next_step):
        if (found := DIALECT.search(re.sub(r"\{[^{}]*\}", "{}", text))) is not None:
            yield f"the word {found.group(0)!r}"


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
    for each in messages():
        print(f"{each.code}  {each.cls}\n  {each.what}\n  {each.next_step}".rstrip())
