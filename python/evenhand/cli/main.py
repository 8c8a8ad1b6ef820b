# SPDX-License-Identifier: Apache-2.0
"""The command `evenhand`: its verbs, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.base.errors import EngineError, EvenhandError, HostError, OutputError, RequestError
from evenhand.base.lazy_import import lazy_import
from evenhand.base.new_file import is_disk_full
from evenhand.base.version import VERSION
from evenhand.cli import streams
from evenhand.cli.error_output import report_error
from evenhand.cli.registry import GROUPS, is_verb, named_in, register, verb_names
from evenhand.cli.verbs import Verbs

if TYPE_CHECKING:
    from evenhand.cli import usage
else:
    usage = lazy_import("evenhand.cli.usage")

OBJECTS_BEFORE_COLLECTING = (50_000, 20, 50)
INTERRUPTED = 130
TERMINATED = 143


@cache
def app_of(names: tuple[str, ...] = ()) -> Verbs:
    """The command with these verbs and groups; with all of them if none is named."""
    app = Verbs(
        help="Even-handed benchmarks for routers: pseudorandom addresses, and numbers you can trust.",
        epilog="Exit codes: 0 done, 1 the answer is no, 2 bad request, 3 machine not ready, 4 bug, 5 the"
        " output cannot be written, 130 interrupted, 141 output pipe closed."
        " Try: evenhand plan show gateway-v4",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    register(app, names or verb_names())
    return app


def app_for(arguments: Sequence[str]) -> Verbs:
    """The command with the one verb that this command line names, or with all if its first word is none."""
    first = arguments[0] if arguments else ""
    if first == "--version":  # is printed without looking at a verb, and all verbs take a second to load
        return app_of(("status",))
    return app_of(named_in(arguments))


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"evenhand {VERSION}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    # Both are for the help text: `main` looks for --debug itself, since an error may come before options are
    # parsed.
    del debug, version


def main(arguments: list[str]) -> int:
    """Run one command line; the exit code."""
    # `--debug` is welcome anywhere on the line, not only before the verb.
    is_debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]

    def report(error: EvenhandError) -> int:
        return report_error(error, _command_of(arguments), is_json="--json" in arguments, is_debug=is_debug)

    def report_as_typed(error: EvenhandError) -> int:
        return report(usage.as_typed(error, arguments, _options_of(arguments)))

    try:
        code = app_for(arguments).built(arguments, standalone_mode=False, prog_name="evenhand")
        sys.stdout.flush()
    except OutputError as error:
        streams.drop()
        if error.is_closed_pipe:
            return streams.BROKEN_PIPE
        return report_as_typed(error)
    except EvenhandError as error:
        return report_as_typed(error)
    except typer.TyperException as error:
        return (
            RequestError.exit_code
            if usage.is_plain_help(error)
            else report_as_typed(usage.usage_error(error))
        )
    except (OSError, MemoryError) as error:
        return report(_of_the_host(error))
    except Exception as error:
        by_signal = _signal_behind(error)
        if by_signal is None:
            return report(_bug(error))
        code = by_signal
    if code == INTERRUPTED:
        print("Interrupted.", file=sys.stderr)
    return code if isinstance(code, int) else 0


def run() -> None:
    """Entry point."""
    # A campaign of 100,000 trials has millions of objects, and nearly all are needed until the end.
    gc.set_threshold(*OBJECTS_BEFORE_COLLECTING)
    streams.guard()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        sys.exit(main(sys.argv[1:]))
    except SystemExit as ended:
        if ended.code == TERMINATED:
            print("Terminated.", file=sys.stderr)
        raise


def _terminate(number: int, frame: FrameType | None) -> None:
    # Unwinds like Ctrl-C, so that no engine and no lab is left behind.
    raise SystemExit(TERMINATED)


def _signal_behind(error: BaseException | None) -> int | None:
    """The exit code if a signal came first, and what it interrupted went wrong because of that."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(error, SystemExit) and error.code == TERMINATED:
            return TERMINATED
        error = error.__cause__ or error.__context__
    return None


def _options_of(arguments: list[str]) -> set[str]:
    """What the verb has; nothing if there is none."""
    command: Any = app_for(arguments).built
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return {name for parameter in command.params for name in parameter.opts}


def _command_of(arguments: list[str]) -> str | None:
    """The verb as documents name it; None if there is none."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    if words and words[0] in GROUPS:
        # All three of `lab` write the same document.
        return words[0] if words[0] == "lab" else " ".join(words[:2])
    return words[0] if words and is_verb(words[0]) else None


def _of_the_host(error: OSError | MemoryError) -> HostError:
    """What no verb has foreseen: a folder that may not be read, a disk that is full."""
    if isinstance(error, MemoryError):
        made = HostError(
            "this machine does not have enough memory",
            code="cli.out-of-memory",
            next_step="Stop other programs, or request less.",
        )
    else:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        is_denied = isinstance(error, PermissionError)
        steps = (
            "Free some space on its disk."
            if is_disk_full(error)
            else f"Check its permissions{'' if is_denied else ', and the free space on its disk'}."
        )
        made = HostError(
            error.strerror or str(error),
            code="cli.refused-by-system",
            where=" and ".join(names),
            next_step=steps,
        )
    made.__cause__ = error
    return made


def _bug(error: Exception) -> EngineError:
    made = EngineError(
        f"a bug in Evenhand: {type(error).__name__}: {error}",
        code="cli.bug",
        next_step="Please report it, with the output of the same command with --debug.",
    )
    made.__cause__ = error
    return made
