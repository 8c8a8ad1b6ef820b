# SPDX-License-Identifier: Apache-2.0
"""Host: what one check found, what it is enough for, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Part(StrEnum):
    """What of Evenhand may run on a host."""

    REFERENCE = "reference"
    LAB = "lab"
    INTERFACES = "interfaces"
    NICS = "nics"

    @property
    def label(self) -> str:
        return {
            "reference": "reference router",
            "lab": "Linux lab",
            "interfaces": "kernel interfaces",
            "nics": "NICs",
        }[self]


class State(StrEnum):
    """State of one finding."""

    GOOD = "good"
    WEAK = "weak"
    """All runs; results suffer."""
    MISSING = "missing"
    """Something does not run."""
    UNKNOWN = "unknown"
    """The host does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check."""

    name: str
    found: str
    """What was found, in words."""
    state: State = State.GOOD
    missing_for: tuple[Part, ...] = ()
    """These cannot run because of it."""
    advice: str = ""
    """What to do, a sentence; what is weak or missing always has one."""
    commands: tuple[str, ...] = ()
    """The same as commands, to be typed as they are."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was found, for programs."""

    def __post_init__(self) -> None:
        assert bool(self.missing_for) == (self.state is State.MISSING), self
        assert self.advice or self.state in (State.GOOD, State.UNKNOWN), self

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Finding:
        """What `to_document` has written, on another host. KeyError, TypeError or ValueError if that is not
        so."""
        return cls(
            name=str(document["name"]),
            found=str(document["found"]),
            state=State(document["state"]),
            missing_for=tuple(Part(part) for part in document["missing_for"]),
            advice=str(document["advice"]),
            commands=tuple(str(command) for command in document["commands"]),
            facts=dict(document["facts"]),
        )

    def to_document(self) -> dict[str, Any]:
        """For `--json` (contract/check.schema.json)."""
        return {
            "name": self.name,
            "state": str(self.state),
            "found": self.found,
            "missing_for": [str(part) for part in self.missing_for],
            "advice": self.advice,
            "commands": list(self.commands),
            "facts": dict(self.facts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReadiness:
    """Whether one part can run here."""

    part: Part
    missing: tuple[str, ...]
    """Names of the findings that are in the way."""

    @property
    def can_run(self) -> bool:
        return not self.missing

    def to_document(self) -> dict[str, Any]:
        return {"part": str(self.part), "can_run": self.can_run, "missing": list(self.missing)}
