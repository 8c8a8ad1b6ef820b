# SPDX-License-Identifier: Apache-2.0
"""Analysis: how testbeds differ, as `evenhand.analysis.testbeds` found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BedDifference:
    """One point on two testbeds."""

    key: str
    """Key of the point."""
    testbeds: tuple[str, str]
    medians: tuple[float, float]
    """Medians in the unit of the procedure's figure."""
    change: float | None
    """Change from the first to the second, as a share of it; None if that is 0."""
    p_value: float | None
    """Two-sided; None: too few repetitions for a test."""
    is_different: bool
    """Whether they differ by more than their noise."""

    def to_document(self) -> dict[str, Any]:
        return {
            "point": self.key,
            "testbeds": list(self.testbeds),
            "medians": list(self.medians),
            "change": self.change,
            "p_value": self.p_value,
            "is_different": self.is_different,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BedsVerdict:
    """Whether the testbeds of a campaign agree."""

    testbeds: tuple[str, ...]
    """Testbeds that have a point in common with another one."""
    tests: tuple[BedDifference, ...]
    """Each pair at each point."""
    sentences: tuple[str, ...]
    """Sentences for people: which disagree, and where."""
    method: str

    @property
    def different(self) -> tuple[BedDifference, ...]:
        """Those that disagree."""
        return tuple(test for test in self.tests if test.is_different)

    def to_document(self) -> dict[str, Any]:
        return {
            "testbeds": list(self.testbeds),
            "tests": [test.to_document() for test in self.tests],
            "sentences": list(self.sentences),
            "method": self.method,
        }
