# SPDX-License-Identifier: Apache-2.0
"""Command lines that Typer refuses, as errors like all others: what, where, what to do next."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from enum import EnumType
from typing import Any, Literal, get_args, get_origin

from evenhand.base.errors import EvenhandError, RequestError, suggestion
from evenhand.base.validation.words import in_plain_words, none_of
from evenhand.cli.verbs import called_here
from evenhand.spec.place import option_places, option_words

_CHOICES = re.compile(r"is not one of (.+?)\.?$")


def is_plain_help(error: Any) -> bool:
    """Whether only a group such as `evenhand plan` was named: its help has been shown, and there is nothing
    to add."""
    return type(error).__name__ == "NoArgsIsHelpError"


def usage_error(error: Any) -> RequestError:
    """The same error in our own words. Typer's exceptions are distinguished by what they carry: their classes
    are not public."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    place = "evenhand" if context is None else str(context.command_path)
    help_line = f"`{place} --help` lists the possible values."
    message = str(error.format_message())
    if parameter is not None:
        first = str(parameter.opts[0])
        name = first if first.startswith("-") else (parameter.metavar or first.upper())
        causes: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
        return _wrong_value(name, causes[0]) if causes else _missing(name, parameter, context)
    option, verb = getattr(error, "option_name", None), re.search(r"o such command '(.*?)'", message)
    if option is not None and "o such option" in message:
        return RequestError(
            f"unknown option {option}",
            code="cli.unknown-option",
            where=place,
            next_step=_option_instead(option, context) or help_line,
        )
    if option is not None:
        what = "takes no value" if "does not take" in message else "needs a value"
        return RequestError(
            f"{option} {what}",
            code="cli.value-not-taken" if "does not take" in message else "cli.value-missing",
            where=option,
            next_step="`--help` shows how to write it.",
        )
    if verb is not None:
        near = _nearest(verb[1], [] if context is None else getattr(context.command, "commands", {}))
        return RequestError(
            f"unknown command {verb[1]!r}",
            code="cli.unknown-command",
            where=place,
            next_step=near or help_line,
        )
    extra = re.search(r"extra argument[^(]*(?:\(s\) )?\((.*)\)$", message)
    return RequestError(
        message if extra is None else f"{extra[1]!r} is an unexpected argument",
        code="cli.unexpected-argument",
        where=place,
        next_step=_example_of(context),
    )


def as_typed(error: EvenhandError, arguments: Sequence[str], options: Collection[str] = ()) -> EvenhandError:
    """The same error where the user can find it: `rate_fps` is an option of the verb, and
    `limits.overdue_after_us` was typed as one.

    Args:
        options: Options of the verb.
    """
    error.where, error.next_step = option_places(error.where, options), option_words(error.next_step, options)
    words = re.sub(r"^limits\.|_(us|s|fps|ppm)$", "", error.where)
    option = f"--{re.sub('[ _]', '-', words)}"
    if any(argument == option or argument.startswith(f"{option}=") for argument in arguments):
        error.where = option
    return error


def _wrong_value(option: str, cause: dict[str, Any]) -> RequestError:
    value, choices = cause["input"], _CHOICES.search(cause["msg"])
    words = (
        in_plain_words(cause["type"], value, cause.get("ctx", {}))
        if choices is None
        else none_of(value, re.findall(r"'([^']*)'", choices[1]), in_quotes=False)
    )
    return RequestError(words.what, code=words.code, where=option, next_step=words.next_step)


def _missing(name: str, parameter: Any, context: Any) -> RequestError:
    """Error with what may be written there, if that is a choice."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    of = get_args(kind) if get_origin(kind) is Literal else kind
    choices = [str(choice) for choice in of] if isinstance(of, tuple | EnumType) else []
    help_text = str(parameter.help or "")
    listed = (
        f"Use {' or '.join(choices)}. "
        if choices
        else f"{help_text} "
        if help_text.startswith("One of: ")
        else ""
    )
    where = "evenhand" if context is None else str(context.command_path)
    return RequestError(
        f"{name} is missing",
        code="cli.argument-missing",
        where=where,
        next_step=listed + _example_of(context),
    )


def _option_instead(option: str, context: Any) -> str:
    """What to use instead: by another tester's name for it, else by its letters."""
    parameters = [] if context is None else context.command.params
    known = [name for each in parameters for name in each.opts if name.startswith("-")]
    arguments = [
        str(each.metavar or each.name.upper()) for each in parameters if not each.opts[0].startswith("-")
    ]
    # Without their dashes, which would make all options alike.
    bare = {name.lstrip("-"): name for name in known}
    near = suggestion(option.lstrip("-"), bare)
    verb = "" if context is None else str(context.command_path).partition(" ")[2]
    return called_here(verb, option, known, arguments) or (
        "" if near is None else f"Did you mean {bare[near]}?"
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    near = suggestion(word, known)
    return "" if near is None else f"Did you mean {near}?"


def _example_of(context: Any) -> str:
    """The verb's own example; every verb has one."""
    return (None if context is None else context.command.epilog) or "`--help` shows how to write it."
