# SPDX-License-Identifier: Apache-2.0
"""Exchange: a command line of siitperf-tp, -lat or -pdv, as text. It is read, and never run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import shown

Program = Literal["siitperf-tp", "siitperf-lat", "siitperf-pdv"]
MOST_CHARACTERS = 1000
WHERE = "--command"
_PROGRAM = re.compile(r"(?:.*/)?(siitperf-(?:tp|lat|pdv))")
_BEFORE = re.compile(
    r"(?:.*/)?(?:sudo|doas|env|time|nice|ionice|chrt|taskset|numactl|timeout|stdbuf|nohup|exec|cd|gdb|perf"
    r"|strace|screen|tmux|ip|watch|valgrind|setarch|script|(?:ba|da|z)?sh|su|ssh|docker|podman)|[$#%>+]|\S*[@~]\S*[$#%]?|[A-Z_][A-Z0-9_]*=.*"
)
"""The first words of a line that runs another program."""
_PLACE = re.compile(r"""(?:^|(?<=[\s;&|('"]))(?:[^\s;&|('"]*/)?siitperf-(?:tp|lat|pdv)(?=\s|$)""")
_ANOTHER = re.compile(r"&&|\|\|?|;|\(|(?<!\S)(?:do|then|\{)(?!\S)")
"""What ends another command, or begins a compound one."""
_AFTER = re.compile(r"\s*(?:>|&|<|\||;|\))|\s+(?:\d>|#)")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_U32 = 2**32 - 1
_MOST_RATE = 14_880_952

FIRST: Mapping[str, tuple[int, int]] = {
    "IPv6 frame size": (84, 1538),
    "rate": (1, _MOST_RATE),
    "duration": (1, 3600),
    "global timeout": (0, 60000),
    "n": (2, _U32),
    "m": (0, _U32),
}
STATEFUL: Mapping[str, tuple[int, int]] = {
    "N": (1, _U32),
    "M": (1, _U32),
    "R": (1, _MOST_RATE),
    "T": (1, 2000),
    "D": (1, 100_000_000),
}
LAST: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "siitperf-tp": {},
    "siitperf-lat": {"delay": (0, 3600), "timestamps": (1, 50000)},
    "siitperf-pdv": {"frame timeout": (0, 3_660_000)},
}


@dataclass(frozen=True, slots=True)
class SiitperfCommand:
    """A checked command line."""

    program: Program
    arguments: Mapping[str, int]
    """Values by the names of siitperf's README, in their order: octets, frames per second, seconds,
    milliseconds."""


def read_command(text: str, *, is_stateful: bool) -> SiitperfCommand:
    """Take it apart.

    Args:
        is_stateful: What siitperf.conf says: five more arguments belong to it then.

    Raises:
        RequestError: It is not a command line of siitperf, or siitperf would refuse it.
    """
    try:
        words = _words_of(text) if len(text) <= MOST_CHARACTERS else []
    except ValueError:
        words = []
    program = _PROGRAM.fullmatch(words[0]) if words else None
    if program is None:
        raise RequestError(
            f"{shown(text)} is not a command line of siitperf",
            code="exchange.not-a-command",
            where=WHERE,
            next_step='Write it as it was typed: "siitperf-tp 84 100000 60 2000 2 2"; siitperf-lat and'
            " siitperf-pdv are read too.",
        )
    name: Program = (
        "siitperf-tp"
        if program[1] == "siitperf-tp"
        else "siitperf-lat"
        if program[1] == "siitperf-lat"
        else "siitperf-pdv"
    )
    limits = {**FIRST, **(STATEFUL if is_stateful else {}), **LAST[name]}
    if len(words) - 1 != len(limits):
        kind = "with Stateful in the file" if is_stateful else "without Stateful in the file"
        raise RequestError(
            f"{len(words) - 1} arguments; {name} has {len(limits)} {kind}",
            code="exchange.wrong-number-of-arguments",
            where=WHERE,
            next_step=f"They are: {', '.join(limits)}.",
        )
    arguments = {key: _read(key, word, *limits[key]) for key, word in zip(limits, words[1:], strict=True)}
    _check_together(name, arguments)
    return SiitperfCommand(name, arguments)


def _words_of(text: str) -> list[str]:
    """The program and its arguments, without what people type around them: sudo and its like, assignments, a
    prompt, a change of folder, a loop, quotes for another shell; a pipe or a redirection of its output, a
    comment, the next command. ValueError if quotes do not match."""
    line = text.replace("\\\n", " ").strip()
    place = _PLACE.search(line)
    if place is None:
        return shlex.split(line)
    head, rest = line[: place.start()], line[place.start() :]
    for quote in ("'", '"'):
        if head.count(quote) % 2:  # it is inside
            head, rest = head.replace(quote, " "), rest.split(quote)[0]
    before = shlex.split(_ANOTHER.split(head)[-1])
    is_known = not before or any(_BEFORE.fullmatch(word) for word in before[:2])
    return [] if not is_known else shlex.split(_AFTER.split(rest, maxsplit=1)[0])


def _read(key: str, word: str, least: int, most: int) -> int:
    if not _NUMBER.fullmatch(word) or not least <= int(word) <= most:
        raise RequestError(
            f"{shown(word)} is not a valid {key}",
            code="exchange.wrong-value",
            where=WHERE,
            next_step=f"Write a whole number from {least} to {most}, as siitperf requires.",
        )
    return int(word)


def _check_together(name: str, arguments: Mapping[str, int]) -> None:
    duration_s = arguments["duration"]
    if name == "siitperf-lat":
        if duration_s <= arguments["delay"]:
            raise RequestError(
                f"a delay of {arguments['delay']} s in a trial of {duration_s} s",
                code="exchange.arguments-contradict",
                where=WHERE,
                next_step="Make the duration longer than the delay.",
            )
        if (duration_s - arguments["delay"]) * arguments["rate"] < arguments["timestamps"]:
            raise RequestError(
                f"{arguments['timestamps']} timestamps, but fewer frames after the delay",
                code="exchange.arguments-contradict",
                where=WHERE,
                next_step="Request fewer timestamps.",
            )
    if (
        name == "siitperf-pdv"
        and arguments["frame timeout"] >= 1000 * duration_s + arguments["global timeout"]
    ):
        raise RequestError(
            f"a frame timeout of {arguments['frame timeout']} ms is longer than the trial",
            code="exchange.arguments-contradict",
            where=WHERE,
            next_step="Write 0 to measure PDV.",
        )
