# SPDX-License-Identifier: Apache-2.0
"""Station 8: what is known of a search, or of another series of trials, when it begins: what recorders keep
of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evenhand.plan import FrameSize
from evenhand.search.choice import Goal
from evenhand.search.mlr_model import MlrGoals
from evenhand.search.model import ThroughputGoal

DUT_GONE = "dut_gone"
"""The outcome of what ended because the DUT answers nothing any more."""


class Role(StrEnum):
    """What a search is made for."""

    MEASUREMENT = "measurement"
    """It finds what its procedure was asked for."""
    ONE_PAIR = "one_pair"
    """The same with one address pair, made first for comparison (SEED-02)."""
    THROUGHPUT_FOR = "throughput_for"
    """The throughput that another procedure needs (R9004-01)."""
    CEILING = "ceiling"
    """What the tester itself can do (MLR-14)."""
    OWN_LOOP = "own_loop"
    """What the tester itself adds to each delay."""
    TRIAL = "trial"
    """A single trial, which is not a procedure."""

    @property
    def is_of_the_dut(self) -> bool:
        """Whether what it finds is a result of a procedure."""
        return self in (Role.MEASUREMENT, Role.ONE_PAIR, Role.THROUGHPUT_FOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHead:
    """A search that begins."""

    label: str
    """What is measured, for people: `throughput, 64 octets`."""
    kind: str
    """Kind of its goal and result, such as `latency-rfc2544`."""
    plan: Mapping[str, Any]
    """The plan as the engine reads it."""
    frame_size: FrameSize
    seed: int
    setup: Mapping[str, Any]
    goal: Goal | Mapping[str, Any]
    role: Role = Role.MEASUREMENT
    procedure: str = ""
    """The procedure that it belongs to, if that is not named like its kind."""
    repetition: int | None = None
    """Its number, from 1, where a procedure makes it several times."""

    @property
    def name(self) -> str:
        """Label and repetition, for people."""
        return self.label if self.repetition is None else f"{self.label}, repetition {self.repetition}"

    @property
    def throughput_goal(self) -> Goal | None:
        """None if it is not a throughput search."""
        return self.goal if isinstance(self.goal, ThroughputGoal | MlrGoals) else None

    @property
    def goal_document(self) -> Mapping[str, Any]:
        """The goal for JSON."""
        return self.goal if isinstance(self.goal, Mapping) else self.goal.to_document()
