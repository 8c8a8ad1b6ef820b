# SPDX-License-Identifier: Apache-2.0
"""Analysis: how a DUT changed while it was measured, as `evenhand.analysis.drift` found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.analysis.condition_words import show_percent, show_probability

DRIFT_LEVEL = 0.05
"""Most probability with which a DUT that does not drift seems to."""
RELEVANT_DRIFT = 0.025
"""A smaller drift withholds nothing: half of what counts as a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the DUT changed from round to round."""

    is_in_rounds: bool
    """Any two points were measured over times that overlap. False: a drift and an effect of the addresses
    look the same."""
    rounds: int
    change: float
    """Change from the first to the last round, relative: -0.03 is 3 percent lower."""
    range: float
    """Range between the highest and the lowest round, or block of a point, relative."""
    p_value: float | None
    """The lower of both tests', times their number; None: too few values."""

    @property
    def is_seen(self) -> bool:
        """It is more than noise, and large enough to matter."""
        return self.p_value is not None and self.p_value <= DRIFT_LEVEL and self.size >= RELEVANT_DRIFT

    @property
    def size(self) -> float:
        return max(abs(self.change), self.range)

    @property
    def sentence(self) -> str:
        """What was seen."""
        assert self.p_value is not None
        if abs(self.change) >= self.range / 2:
            way = "lower" if self.change < 0 else "higher"
            what = (
                f"became {show_percent(abs(self.change))} {way} from the first to the last of"
                f" {self.rounds} rounds"
            )
        else:
            what = f"changed by {show_percent(self.range)} between {self.rounds} rounds"
        return f"what the DUT shows {what}, independent of the addresses ({show_probability(self.p_value)})"

    def to_document(self) -> dict[str, Any]:
        return {
            "is_in_rounds": self.is_in_rounds,
            "rounds": self.rounds,
            "change": self.change,
            "range": self.range,
            "p_value": self.p_value,
            "level": DRIFT_LEVEL,
            "is_seen": self.is_seen,
        }
