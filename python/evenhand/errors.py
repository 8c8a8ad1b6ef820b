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
