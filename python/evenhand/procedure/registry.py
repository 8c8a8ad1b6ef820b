# SPDX-License-Identifier: Apache-2.0
"""Procedure: all procedures by name: the one list of them. Verbs, campaign files, run files and pages use
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenhand.procedure.back_to_back import BACK_TO_BACK
from evenhand.procedure.burst import BURST
from evenhand.procedure.connection_capacity import CAPACITY
from evenhand.procedure.connection_rate import CONNECTIONS
from evenhand.procedure.delay import IPDV, LATENCY, PDV
from evenhand.procedure.descriptor import Procedure, Section
from evenhand.procedure.loss import LOSS
from evenhand.procedure.recovery import RECOVERY
from evenhand.procedure.tear_down import TEAR_DOWN
from evenhand.procedure.throughput import THROUGHPUT

__all__ = [
    "BACK_TO_BACK",
    "BURST",
    "CAPACITY",
    "CONNECTIONS",
    "IPDV",
    "LATENCY",
    "LOSS",
    "PDV",
    "PROCEDURES",
    "RECOVERY",
    "TEAR_DOWN",
    "THROUGHPUT",
    "Procedure",
    "procedures_in",
]


class _Registry(Mapping[str, Procedure]):
    def __init__(self, procedures: tuple[Procedure, ...]) -> None:
        self._by_name = {procedure.name: procedure for procedure in procedures}

    def __getitem__(self, name: str) -> Procedure:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, procedure: Procedure) -> None:
        """One that is not part of Evenhand, before its name is used anywhere. ValueError if there is one."""
        if procedure.name in self._by_name:
            raise ValueError(f"there is a procedure {procedure.name!r} already")
        self._by_name[procedure.name] = procedure

    def remove(self, procedure: Procedure) -> None:
        """One that was added."""
        del self._by_name[procedure.name]


PROCEDURES = _Registry(
    (THROUGHPUT, LOSS, LATENCY, PDV, IPDV, BACK_TO_BACK, BURST, RECOVERY, CONNECTIONS, TEAR_DOWN, CAPACITY)
)
"""The procedures in the order in which people see them."""


def procedures_in(section: Section) -> tuple[str, ...]:
    """Names of those whose results are in this part of a page."""
    return tuple(each.name for each in PROCEDURES.values() if each.section is section)
