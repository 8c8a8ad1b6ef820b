# SPDX-License-Identifier: Apache-2.0
"""Procedure: what repetitions are summed up to. Described, not hidden: never one number alone (R8219-18, SEED-72)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


def percentile(values: Sequence[float], numerator: int, denominator: int) -> float:
    """The smallest x with F(x) >= numerator/denominator, no interpolation (R8219-15, RFC 2330, 11.3). Of at least one value."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * numerator // denominator))
    return ordered[rank - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of some values of one kind. All in the unit of the values; infinite where values are."""

    count: int
    median: float
    mean: float
    min: float
    max: float
    p1: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of at least one value. The median of an even number is the mean of the two middle ones (R8219-15)."""
        ordered = sorted(values)
        middle = len(ordered) // 2
        return cls(
            count=len(ordered),
            median=ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2,
            mean=sum(ordered) / len(ordered),
            min=ordered[0],
            max=ordered[-1],
            p1=percentile(ordered, 1, 100),
            p99=percentile(ordered, 99, 100),
        )

    def to_document(self, *, unit: str) -> dict[str, float | int | None]:
        """`median_ns` and so on, if the unit is ns. Infinite values are null."""
        values = {"median": self.median, "mean": self.mean, "min": self.min, "max": self.max, "p1": self.p1, "p99": self.p99}
        return {"count": self.count, **{f"{name}_{unit}": value if math.isfinite(value) else None for name, value in values.items()}}
