# SPDX-License-Identifier: Apache-2.0
"""Station 10: a column of the tables for programs, and what a row of them is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evenhand.run import PointRecord, Repetition, StoredSearch, StoredTrial
from evenhand.trial import ClassCount, CleanCounts, FlowResult

Value = str | int | float | bool | None
Kind = Literal["text", "integer", "real", "flag"]


@dataclass(frozen=True, slots=True)
class FlowPlace:
    """A flow of one direction of a trial."""

    direction: str
    of_class: ClassCount
    flow: FlowResult
    judged: CleanCounts
    """Its frames that the verdict is about."""

    @property
    def loss_ratio(self) -> float:
        """The lost share of these; 0 to 1, 0 where there are none."""
        return self.judged.lost_frames / self.judged.frames if self.judged.frames else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlace:
    """What a row is about; None where there is nothing of that kind, as with a single trial, which belongs to
    no point."""

    record: PointRecord | None = None
    repetition: Repetition | None = None
    search: StoredSearch | None = None
    trial: StoredTrial | None = None
    flow: FlowPlace | None = None


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One value of each row."""

    name: str
    """With its unit."""
    kind: Kind
    of: Callable[[RowPlace], Value]
    is_of_clean_time: bool = False
    """Only in a table of a record of which a trial was judged by its clean time."""
