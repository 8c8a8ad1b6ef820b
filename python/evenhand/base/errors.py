# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code that tells it. Loss and invalid trials are results, not errors."""

from __future__ import annotations


class EvenhandError(Exception):
    """Base of all errors: what is wrong, where (a key, an address, a file) and what to do next."""

    exit_code = 4

    def __init__(self, what: str, *, where: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class RequestError(EvenhandError):
    """The user asked for something that cannot be: bad value, unknown key, missing confirmation."""

    exit_code = 2


class PlanError(RequestError):
    """An address plan contradicts itself or the benchmarking address blocks."""


class HostError(EvenhandError):
    """The host is not ready: no permission, no device, no namespace, no engine."""

    exit_code = 3


class EngineError(EvenhandError):
    """A bug: the engine died or said something outside the contract."""

    exit_code = 4


class OutputError(EvenhandError):
    """What was found cannot be written to stdout. It was found all the same, and is stored where a verb
    stores."""

    exit_code = 5

    def __init__(
        self, what: str, *, where: str = "", next_step: str = "", is_closed_pipe: bool = False
    ) -> None:
        super().__init__(what, where=where, next_step=next_step)
        self.is_closed_pipe = is_closed_pipe
        """Its reader has gone, which may have had all that it wanted."""
