# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code that reports it. Loss and invalid trials are results, not errors."""

from __future__ import annotations

from typing import Any


class EvenhandError(Exception):
    """Base of all errors: what is wrong, where (a key, an address, a file) and what to do next. Its `code`
    says which mistake it is, such as `plan.unknown-name`."""

    exit_code = 4

    def __init__(self, what: str, *, code: str, where: str = "", next_step: str = "") -> None:
        """Args:
        code: Which mistake it is, for scripts and tests: `room.words`. It stays when the words of the message
            change, and mistakes of one kind share it.
        """
        super().__init__(what)
        self.what = what
        self.code = code
        self.where = where
        self.next_step = next_step

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
    """The host is not ready: no permission, no device, no namespace, no engine."""

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
