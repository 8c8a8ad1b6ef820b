# SPDX-License-Identifier: Apache-2.0
"""DUT: many commands over one `Shell` at once, each with what it answered. A script that was cut on its way
runs not at all."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from evenhand.base.errors import HostError
from evenhand.rig.dut.linux_kept import KEPT_HERE
from evenhand.rig.dut.shell import Answer, Shell

MOST_OCTETS = 1 << 26
"""Most octets of one command's answer; a table of 65,536 neighbours takes a fifth of it."""


@contextmanager
def understood(what: str, *, where: str) -> Iterator[None]:
    """Around what reads the DUT's answers, which may be of any shape: HostError if it stumbles over one."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise HostError(
            f"the DUT's answer about {what} cannot be understood: {str(error)[:200] or type(error).__name__}",
            code="rig.dut-answer-not-understood",
            where=where,
            next_step="Log in there, and check whether its ip and ethtool are those of its distribution, and"
            " what they print.",
        ) from error


def read_all(shell: Shell, commands: Mapping[str, str], *, timeout_s: float = 120.0) -> dict[str, Answer]:
    """What each of them answered, by name; stderr is in stdout. Errors as `Shell.run`."""
    names = list(commands)
    answers = run_each(shell, [commands[name] for name in names], timeout_s=timeout_s)
    return dict(zip(names, answers, strict=True))


def run_each(
    shell: Shell, commands: Sequence[str], *, begin: str = "", timeout_s: float = 120.0
) -> list[Answer]:
    """Runs them one after the other, whether or not one fails.

    Args:
        begin: Lines before the first; if they end the script, the answers are fewer than the commands, and
            the last is theirs.
    """
    mark = f"evenhand-{secrets.token_hex(8)}"
    # A function is read to its end before any of it runs.
    lines = ["newline='", "'", "main() {", KEPT_HERE, *([begin] if begin else [])]
    for command in commands:
        # What is cut off has no exit code at its end, and so counts as failed. A program that never ends ends
        # with its pipe.
        lines += [
            f"answer=$( {{ ( {command}\n) 2>&1; printf '\\n%s' $?; }} | head -c {MOST_OCTETS} )",
            'code=${answer##*"$newline"}; case $code in ""|*[!0-9]*|????*) code=141;; *)'
            ' answer=${answer%"$newline"*};; esac',
            f"printf '%s %s\\n%s\\n' {mark} $code \"$answer\"",
        ]
    text = "\n".join([*lines, "}", "main", "exit $?", ""])
    whole = shell.run("exec sh -s", input_text=text, timeout_s=timeout_s)
    parts = re.split(rf"^{mark} (\d+)\n", whole.stdout, flags=re.MULTILINE)[1:]
    answers = [
        Answer(exit_code=int(code), stdout=output.rstrip("\n"), stderr="")
        for code, output in zip(parts[::2], parts[1::2], strict=True)
    ]
    return answers if len(answers) == len(commands) else [*answers, whole]


def quote(*words: str) -> str:
    """For a line of `sh`."""
    return " ".join(shlex.quote(word) for word in words)
