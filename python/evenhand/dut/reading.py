# SPDX-License-Identifier: Apache-2.0
"""DUT: many commands over one `Shell` at once, each with what it answered. A script that was cut on its way runs not at all."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence

from evenhand.dut.shell import Answer, Shell


def read_all(shell: Shell, commands: Mapping[str, str], *, timeout_s: float = 120.0) -> dict[str, Answer]:
    """What each of them answered, by name; stderr is in stdout. Errors as `Shell.run`."""
    names = list(commands)
    answers = run_each(shell, [commands[name] for name in names], timeout_s=timeout_s)
    return dict(zip(names, answers, strict=True))


def run_each(shell: Shell, commands: Sequence[str], *, begin: str = "", timeout_s: float = 120.0) -> list[Answer]:
    """Runs them one after the other, whether or not one fails.

    Args:
        begin: Lines before the first; if they end the script, the answers are fewer than the commands, and the last is theirs.
    """
    mark = f"evenhand-{secrets.token_hex(8)}"
    # A function is read to its end before any of it runs.
    lines = ["main() {", *([begin] if begin else [])]
    for command in commands:
        lines += [f"answer=$( {{ {command}\n}} 2>&1 )", f"printf '%s %s\\n%s\\n' {mark} $? \"$answer\""]
    text = "\n".join([*lines, "}", "main", "exit $?", ""])
    whole = shell.run("exec sh -s", input_text=text, timeout_s=timeout_s)
    parts = re.split(rf"^{mark} (\d+)\n", whole.stdout, flags=re.MULTILINE)[1:]
    answers = [
        Answer(exit_code=int(code), stdout=output.removesuffix("\n"), stderr="")
        for code, output in zip(parts[::2], parts[1::2], strict=True)
    ]
    return answers if len(answers) == len(commands) else [*answers, whole]


def quote(*words: str) -> str:
    """For a line of `sh`."""
    return " ".join(shlex.quote(word) for word in words)
