# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code that reports it. Loss and invalid trials are results, not errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile
from typing import Any

LONGEST_SHOWN = 5_000
"""Characters of one text on a terminal or a page, or in an error: far more than Evenhand writes, except
a command with hundreds of files."""


def shortened(text: str, most: int = LONGEST_SHOWN) -> str:
    """The text; of a longer one, which may come from a file of others, the beginning, and how long it is."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


class EvenhandError(Exception):
    """Base of all errors: what is wrong, where (a key, an address, a file) and what to do next. Its `code`
    says which mistake it is, such as `plan.unknown-name`."""

    exit_code = 4

    def __init__(self, what: str, *, code: str, where: str = "", next_step: str = "") -> None:
        """Args:
        code: Which mistake it is, for scripts and tests: `room.words`. It stays when the words of the message
            change, and mistakes of one kind share it.
        """
        # Values that are wrong are shown, and some come from files of others.
        what = shortened(what)
        super().__init__(what)
        self.what = what
        self.code = code
        self.where = shortened(where)
        self.next_step = shortened(next_step)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what

    def __reduce__(self) -> tuple[Any, ...]:
        """An error of a worker is pickled. An exception would be made anew from `args` alone, and its class
        requires more."""
        return _without_init, (type(self), self.args), self.__dict__


class RequestError(EvenhandError):
    """The request is impossible: bad value, unknown key, missing confirmation."""

    exit_code = 2


class PlanError(RequestError):
    """An address plan contradicts itself or the benchmarking address blocks."""


class HostError(EvenhandError):
    """The machine is not ready: no permission, no device, no namespace, no engine."""

    exit_code = 3


class DutGoneError(HostError):
    """The DUT answers nothing any more: what is measured ends, and has no number."""

    exit_code = 1


class EngineError(EvenhandError):
    """A bug: the engine died, or sent something that the contract does not allow."""

    exit_code = 4


class OutputError(EvenhandError):
    """What was found cannot be written to stdout. It was found all the same, and is stored where a verb
    stores."""

    exit_code = 5

    def __init__(
        self, what: str, *, code: str, where: str = "", next_step: str = "", is_closed_pipe: bool = False
    ) -> None:
        super().__init__(what, code=code, where=where, next_step=next_step)
        self.is_closed_pipe = is_closed_pipe
        """Its reader has gone, which may have had all that it wanted."""


def _without_init(kind: type[EvenhandError], args: tuple[Any, ...]) -> EvenhandError:
    return kind.__new__(kind, *args)


def error_part(error: EvenhandError | None) -> dict[str, Any] | None:
    """The value of `error` in a document: `id` names the error, `code` is the exit code; None if there is no
    error."""
    if error is None:
        return None
    return {
        "id": error.code,
        "what": error.what,
        "where": error.where,
        "next": error.next_step,
        "code": error.exit_code,
    }


USUAL_CUTOFF = 0.6
"""Cutoff of difflib's ratio, from 0 to 1."""


def suggestion(word: str, known: Iterable[str], *, cutoff: float = USUAL_CUTOFF) -> str | None:
    """None if none is near.

    Args:
        cutoff: The least similarity that counts, from 0 to 1.
    """
    by_letters = {name.casefold(): name for name in known}
    # `ios` is not a misspelling of `cisco-ios`, but a part of it.
    parts = [name for name in by_letters if word.casefold() in re.split("[-_]", name)]
    if len(parts) == 1:
        return by_letters[parts[0]]
    near = get_close_matches(word.casefold(), by_letters, n=len(by_letters) or 1, cutoff=cutoff)
    if not near:
        return None
    # Among names that are equally like it, the one that begins as it does: `nat45` is nat44 rather than
    # nat64.
    best = max(near, key=lambda name: (_similarity(word, name), _common_beginning(word.casefold(), name)))
    return by_letters[best]


def _common_beginning(a: str, b: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _similarity(word: str, name: str) -> float:
    return SequenceMatcher(None, name, word.casefold()).ratio()
