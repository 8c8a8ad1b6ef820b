# SPDX-License-Identifier: Apache-2.0
"""Procedure: the result with a single address pair that is shown before one with many (SEED-02), and what is
said where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from evenhand.base.errors import RequestError
from evenhand.plan import PortMacs, SideName
from evenhand.results.throughput import ThroughputFound
from evenhand.search import Outcome, SearchResult, is_outcome_at_least
from evenhand.trial import Deviation

RESULTS_OF_THE_DUT = (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.BELOW_MINIMUM)
"""Outcomes that say something about the DUT; the others concern the tester, or are not results, unless a
load passed before the tester's ceiling."""
THIS_RUN = "in this run"
OMISSION = Deviation(
    requirement="SEED-02",
    text="this result is not preceded by a result with a single address pair on this testbed"
    " (--one-pair-first makes one, --after names one)",
)
"""SEED-85."""


def says_something(outcome: str | None, throughput_fps: float | None) -> bool:
    """Whether a search that ended so is a result of the DUT: a number, a lower bound, or that no load
    passed."""
    return outcome in RESULTS_OF_THE_DUT or (outcome == Outcome.TESTER_CEILING and throughput_fps is not None)


class ProfileOfPair(Protocol):
    """What is asked of a search's `Profile`."""

    @property
    def seed(self) -> int: ...

    @property
    def macs(self) -> Mapping[SideName, PortMacs] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePair:
    """An earlier search with one address pair on the same testbed."""

    outcome: Outcome
    throughput_fps: float | None
    """Per direction."""
    upper_fps: float | None
    loss_ratio: float
    """Loss ratio that the search allowed."""
    seed: int
    dut_macs: Mapping[SideName, str | None]
    """MACs that identify the DUT."""
    source: str = THIS_RUN
    """Where the search is stored: `in this run`, or the name of a run file."""

    @classmethod
    def of(cls, result: SearchResult, profile: ProfileOfPair) -> Self | None:
        """Made from a search that has just been made; None if it has ended without a result of the DUT."""
        dut_macs = {side: macs.dut for side, macs in (profile.macs or {}).items()}
        return cls._of(result, profile.seed, dut_macs, THIS_RUN)

    @classmethod
    def stored(
        cls, found: ThroughputFound, setup: Mapping[str, Any], seed: int, *, source: str
    ) -> Self | None:
        """The same of a search that a run file has, with its set-up."""
        macs = (setup.get("traffic") or {}).get("macs") or {}
        return cls._of(found, seed, {side: of["dut"] for side, of in macs.items()}, source)

    @classmethod
    def _of(
        cls,
        found: SearchResult | ThroughputFound,
        seed: int,
        dut_macs: Mapping[SideName, str | None],
        source: str,
    ) -> Self | None:
        if not says_something(found.outcome, found.throughput_fps):
            return None
        return cls(
            outcome=Outcome(found.outcome),
            throughput_fps=found.throughput_fps,
            upper_fps=found.upper_fps,
            loss_ratio=found.goal.loss_ratio,
            seed=seed,
            dut_macs=dut_macs,
            source=source,
        )

    @property
    def is_at_least(self) -> bool:
        """Whether the throughput is a lower bound."""
        return self.throughput_fps is not None and is_outcome_at_least(self.outcome)

    def ratio(self, result: SearchResult) -> float | None:
        """Throughput with many addresses divided by that with one pair; None unless both were found."""
        if (
            self.outcome is not Outcome.FOUND
            or result.outcome is not Outcome.FOUND
            or not self.throughput_fps
        ):
            return None
        return None if result.throughput_fps is None else result.throughput_fps / self.throughput_fps

    def to_document(self, result: SearchResult | None = None) -> dict[str, Any]:
        """With `result`, which is the search with many addresses, also the ratio."""
        return {
            "source": self.source,
            "outcome": str(self.outcome),
            "throughput_fps_per_direction": self.throughput_fps,
            "is_at_least": self.is_at_least,
            "loss_ratio": self.loss_ratio,
            "seed": self.seed,
            **({} if result is None else {"many_to_one": self.ratio(result)}),
        }


def check_same_dut(one_pair: OnePair, profile: ProfileOfPair) -> None:
    """RequestError if another DUT answers now than in the run that was named."""
    for side, macs in (profile.macs or {}).items():
        before = one_pair.dut_macs.get(side)
        if before != macs.dut:
            raise RequestError(
                f"a different DUT: its {side} interface had the MAC {before}, and now has {macs.dut}",
                code="procedure.different-dut",
                where=f"one_pair, {one_pair.source.removeprefix('in ')}",
                next_step="Use one_pair_first.",
            )
