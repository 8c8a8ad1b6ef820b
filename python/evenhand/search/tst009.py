# SPDX-License-Identifier: Apache-2.0
"""Station 8: binary search with loss verification (ETSI GS NFV-TST 009, clause 12.3) as a goal of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.base.errors import RequestError
from evenhand.search.model import ThroughputGoal

DEFAULT_LOSS_VERIFICATIONS = 1
"""One lossy trial of two is tolerated: the goal that RFC 9971 calls compliant with TST009 (MLR-06)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tst009Goal(ThroughputGoal):
    """A `ThroughputGoal` that verifies trials with loss before they count, so that a transient of the host
    does not affect the result."""

    search: ClassVar[str] = "tst009"
    loss_verifications: int = DEFAULT_LOSS_VERIFICATIONS

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is another class than the one this function was defined in.
        ThroughputGoal.__post_init__(self)
        if self.loss_verifications < 1:
            raise RequestError(
                f"{self.loss_verifications} loss verifications: tst009 verifies a loss at least once",
                code="search.out-of-range",
                where="loss_verifications",
                next_step="To count a loss at once, use the binary search.",
            )
