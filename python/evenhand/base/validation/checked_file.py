# SPDX-License-Identifier: Apache-2.0
"""What files of the user's have in common, whatever is in them: how TOML is read, and how a mistake in it is
reported."""

from __future__ import annotations

import os
import re
import shlex
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from evenhand.base.errors import EvenhandError, RequestError, suggestion
from evenhand.base.units import Quantity
from evenhand.base.validation.words import as_toml, in_plain_words, toml_to_write

MOST_OCTETS = 512 << 10
MOST_DEPTH = 50
"""How many lists and tables may lie in each other."""
MOST_PARTS = 20
"""How many parts a key may have, such as `a.b`."""
MOST_DIGITS = 400
MOST_TABLES = 2000
"""How many tables a file may have: `[a]`, `[[a]]` and `{}`."""
_BEGINS_TEXT = re.compile(r"#|\"{3}|'{3}|\"|'")
_TEXT_ENDS = {
    "#": re.compile(r"[^\n]*"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"[^'\n]*'"),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"{3}', re.DOTALL),
    "'''": re.compile(r".*?'{3}", re.DOTALL),
}
_LONG_NUMBER = re.compile(
    rf"[0-9_]{{{MOST_DIGITS + 1}}}|(?<![A-Za-z0-9_-])0x[0-9A-Fa-f_]{{{MOST_DIGITS + 1}}}"
)
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+){{{MOST_PARTS}}}")
_TABLE = re.compile(r"^[ \t]*+\[|\{", re.MULTILINE)


def read_limited(path: Path) -> bytes:
    """The content, if it is a file and not too long. OSError as of reading; ValueError says what is wrong."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(0, "it is a folder")
        if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
            os.set_blocking(descriptor, True)
        content = file.read(MOST_OCTETS + 1)
    if len(content) > MOST_OCTETS:
        raise ValueError(f"it has more than {MOST_OCTETS >> 10} KiB")
    return content


def parse_limited(text: str) -> dict[str, Any]:
    """The document. ValueError (also tomllib's own) says what is wrong."""
    code = _without_texts(text)
    if _LONG_NUMBER.search(code):
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    if _LONG_KEY.search(code):
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    if sum(1 for _ in _TABLE.finditer(code)) > MOST_TABLES:
        raise ValueError(f"it has more than {MOST_TABLES} tables")
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", code):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_DEPTH:
            raise ValueError(f"lists and tables are nested more than {MOST_DEPTH} deep")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("lists and tables are nested too deep") from error


def _without_texts(document: str) -> str:
    """The document with `s` in place of each text, and without comments; up to a text that does not end."""
    parts, at = [], 0
    while (begins := _BEGINS_TEXT.search(document, at)) is not None:
        ends = _TEXT_ENDS[begins[0]].match(document, begins.end())
        parts.append(document[at : begins.start()])
        if ends is None:
            return "".join(parts)
        parts.append("" if begins[0] == "#" else "s")
        at = ends.end()
    return "".join((*parts, document[at:]))


MOST_LISTED = 30
"""Keys that an error names in addition to the nearest one."""
Loc = tuple[str | int, ...]
"""A place in a document, as pydantic calls it."""
_RUN_FILE = b"SQLite format 3\0"


class FileKind(Enum):
    """Files that people write, and mistake for each other."""

    TESTBED = "testbed file"
    CAMPAIGN = "campaign file"
    WORKERS = "workers file"
    PLAN = "plan file"

    @property
    def title(self) -> str:
        return self.value

    @property
    def keys(self) -> frozenset[str]:
        """Keys at the top of such a file, and of no other."""
        if self is FileKind.TESTBED:
            return frozenset({"isolated_test_environment", "left", "right", "tester", "limits"})
        if self is FileKind.WORKERS:
            return frozenset({"worker"})
        if self is FileKind.PLAN:
            return frozenset({"left", "right"})
        return frozenset({"suite", "every-suite", "every_suite", "preset"})

    @property
    def where_to_find(self) -> str:
        """What to do if the file does not exist."""
        if self is FileKind.TESTBED:
            return (
                "Name a testbed file; docs/reference/testbed-file.md has examples. Without a file: lab:linux,"
                " lab:vm."
            )
        if self is FileKind.WORKERS:
            return "Name a workers file; docs/how-to/measure-on-several-testbeds.md has an example."
        if self is FileKind.PLAN:
            return "Name a plan file; docs/reference/plan-file.md has examples. Without a file: gateway-v4."
        return (
            "Name a campaign file; docs/reference/campaign-file.md has examples. Without a file:"
            " preset:appendix-a-lab, for one."
        )

    def instead_of(self, other: FileKind, path: Path) -> str:
        """What to do with the other one, where this one belongs."""
        if self in (FileKind.WORKERS, FileKind.PLAN):
            return self.where_to_find
        if other is FileKind.WORKERS:
            return (
                f"Name a {self.title}, and give this file with --workers: evenhand run CAMPAIGN --workers"
                f" {shlex.quote(str(path))}"
            )
        if other is FileKind.TESTBED:
            return (
                "Name a campaign file, and give this file with --testbed: evenhand run"
                f" CAMPAIGN --testbed {shlex.quote(str(path))}"
            )
        return (
            "Name a testbed file, with [left], [right] and [tester]; to measure a campaign:"
            f" evenhand run {shlex.quote(str(path))}"
        )


class RefusedError(ValueError):
    """What pydantic may know of an error of ours, which says itself what to do next."""

    def __init__(self, error: EvenhandError) -> None:
        super().__init__(error.what)
        self.code = error.code
        self.next_step = error.next_step


class UnfitError(ValueError):
    """What a model finds wrong with its own values, in our words. `refusal` states where it is."""

    def __init__(self, what: str, *, code: str) -> None:
        super().__init__(what)
        self.code = code


@contextmanager
def refusing() -> Iterator[None]:
    """Around a look at one value: its error becomes that of the value's place in the file."""
    try:
        yield
    except EvenhandError as error:
        raise RefusedError(error) from error


def with_unit(quantity: Quantity, parse: Callable[[str], float]) -> BeforeValidator:
    """Validator of a text such as "5s", which `parse` reads."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            forms = f"Write {quantity.name} in quotes, such as {quantity.forms}."
            raise RefusedError(
                RequestError(
                    f"{value!r} is not a value with a unit", code="base.unit-missing", next_step=forms
                )
            )
        with refusing():
            return parse(value)

    return BeforeValidator(read)


def read_toml(path: Path, *, kind: FileKind) -> dict[str, Any]:
    """The document of a TOML file.

    Raises:
        RequestError: It cannot be read, is not TOML, or is a file of the other kind.
    """
    try:
        content = read_limited(path)
        if content.startswith(_RUN_FILE):
            raise RequestError(
                f"this is a run file, not a {kind.title}",
                code="base.wrong-kind-of-file",
                where=str(path),
                next_step=(
                    f"Name a {kind.title}; to see this run: `evenhand show {shlex.quote(str(path))}`."
                ),
            )
        document = parse_limited(content.decode())
    except OSError as error:
        raise RequestError(
            f"this file cannot be read: {error.strerror}",
            code="base.file-not-readable",
            where=str(path),
            next_step=kind.where_to_find,
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(
            f"this file is not valid TOML: {error}",
            code="base.not-toml",
            where=str(path),
            next_step="Correct it there.",
        ) from error
    except ValueError as error:
        raise RequestError(
            f"this file is too large to be a {kind.title}: {error}",
            code="base.file-too-large",
            where=str(path),
            next_step="Remove what it does not need, or make several files of it.",
        ) from error
    for other in FileKind:
        if other is not kind and other.keys & document.keys() and not kind.keys & document.keys():
            raise RequestError(
                f"this is a {other.title}, not a {kind.title}",
                code="base.wrong-kind-of-file",
                where=str(path),
                next_step=kind.instead_of(other, path),
            )
    return document


def unknown_key(
    key: str, known: Sequence[str], *, where: str, written: Mapping[str, str] | None = None
) -> RequestError:
    """The error for an unknown key, with the nearest known one.

    Args:
        written: How those that are tables are written in the file, such as `[[suite]]`.
    """
    near = suggestion(key, known, cutoff=0.5)
    hint = "" if near is None else f"Did you mean {(written or {}).get(near, repr(near))}?"
    listed = "" if near is not None and len(known) > MOST_LISTED else f"Known here: {', '.join(known)}."
    return RequestError(
        f"unknown key {key!r}",
        code="base.unknown-key",
        where=where,
        next_step=" ".join(part for part in (hint, listed) if part),
    )


def refusal(
    error: ValidationError,
    root: type[BaseModel],
    *,
    where: str,
    place: Callable[[Loc], str],
    advice: Mapping[str, str],
) -> RequestError:
    """What is reported of all that pydantic found, with what to do next: an unknown key first, since one that
    was misspelt is missing too; then all that is missing, at once; then the first value that is wrong.

    Args:
        root: The model that was made.
        where: The file.
        place: Names a place in it, such as `tester.cpus`, by what pydantic calls it; "" is the file itself.
        advice: How a key of `root` that is missing is added, where that takes more than its name.
    """
    problems = error.errors(include_url=False)
    unknown = next((problem for problem in problems if problem["type"] == "extra_forbidden"), None)
    missing = [problem["loc"] for problem in problems if problem["type"] == "missing"]
    if unknown is None and missing:
        return _all_missing(missing, root, where=where, place=place, advice=advice)
    problem: Any = problems[0] if unknown is None else unknown
    loc = problem["loc"]
    at = _at(where, place(loc))
    if unknown is not None:
        known = headings(
            _model_at(root, loc[:-1]), above="".join(f"{part}." for part in loc[:-1] if isinstance(part, str))
        )
        return unknown_key(str(loc[-1]), list(known), where=at, written=known)
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, RefusedError):
        return RequestError(str(cause), code=cause.code, where=at, next_step=cause.next_step)
    if isinstance(cause, UnfitError):
        shown = "" if isinstance(problem["input"], dict) else f"{as_toml(problem['input'])}: "
        return RequestError(f"{shown}{cause}", code=cause.code, where=at, next_step="Correct it there.")
    words = in_plain_words(problem["type"], problem["input"], problem.get("ctx", {}))
    keys = [part for part in loc if isinstance(part, str)]
    return RequestError(
        words.what,
        code=words.code,
        where=at,
        next_step=toml_to_write(problem["type"], problem["input"], keys) or words.next_step,
    )


def _all_missing(
    missing: Sequence[Loc],
    root: type[BaseModel],
    *,
    where: str,
    place: Callable[[Loc], str],
    advice: Mapping[str, str],
) -> RequestError:
    """Together, and tables with the keys that they need: each would else be found only after the one before
    it was added."""
    names, steps = [], []
    for *parents, key in missing:
        field = _fields(_model_at(root, parents))[str(key)]
        inside, heading = (
            place(tuple(parents)),
            _heading(field, ".".join(str(part) for part in (*parents, key) if isinstance(part, str))),
        )
        names.append(heading or place((*parents, key)))
        if heading is not None:
            needed = [
                name for name, inner in _fields(_model_in(field.annotation)).items() if inner.is_required()
            ]
            steps.append(f"Add {heading}{' with ' * bool(needed)}{' and '.join(needed)}.")
        else:
            steps.append(advice.get(str(key)) or f"Add {key}{' to ' * bool(inside)}{inside}.")
    if len(missing) > 1:
        return RequestError(
            f"missing here: {', '.join(names)}",
            code="base.key-missing",
            where=where,
            next_step=" ".join(steps),
        )
    is_table = names[0].startswith("[")
    return RequestError(
        f"this {'table' if is_table else 'key'} is missing",
        code="base.key-missing",
        where=_at(where, place(missing[0])),
        next_step=steps[0] if is_table else "Add it.",
    )


def _at(where: str, place: str) -> str:
    return f"{where}: {place}" if place else where


def headings(model: type[BaseModel], *, above: str = "") -> dict[str, str]:
    """All keys of a table, by name, as they are written: tables by the line above them, others in quotes.

    Args:
        above: The table's own name with a dot, if it has one.
    """
    return {name: _heading(field, above + name) or repr(name) for name, field in _fields(model).items()}


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the names that the file has."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_at(root: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """The model of the table at this place."""
    table: Any = root
    for part in place:
        if isinstance(part, str):  # the model of a list's items has been reached by the list's name
            table = _model_in(
                next(
                    field for name, field in table.model_fields.items() if part in (name, field.alias)
                ).annotation
            )
    return table  # type: ignore[no-any-return]


def _heading(field: FieldInfo, name: str) -> str | None:
    """The line above a table, or above each of several; None for a key that is not a table."""
    if _model_in(field.annotation) is None:
        return None
    return f"[[{name}]]" if get_origin(field.annotation) is tuple else f"[{name}]"


def _model_in(annotation: Any) -> Any:
    """The model in `Model`, `Model | None` or `tuple[Model, ...]`; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part)) is not None),
        None,
    )
