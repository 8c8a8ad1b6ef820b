# SPDX-License-Identifier: Apache-2.0
"""Procedure: the result with a single address pair that is shown before one with many (SEED-02), and what is
said where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_ratio
from evenhand.plan import PortMacs, SideName
from evenhand.search import Outcome, SearchResult, is_outcome_at_least
from evenhand.trial import Deviation

RESULTS_OF_THE_DUT = (Outcome.FOUND, Outcome.AT_OR_ABOVE_MAXIMUM, Outcome.BELOW_MINIMUM)
"""Outcomes that say something about the DUT; the others concern the tester, or are not results, unless a
load passed before the tester's limit."""
THIS_RUN = "in this run"
OMISSION = Deviation(
    requirement="SEED-02",
    text="this result is not preceded by a result with a single address pair on this testbed"
    " (--single-pair-first makes one, --after names one)",
)
"""SEED-85."""


def says_something(outcome: str | None, throughput_fps: float | None) -> bool:
    """Whether a search that ended so is a result of the DUT: a number, a lower bound, or that no load
    passed."""
    return outcome in RESULTS_OF_THE_DUT or (outcome == Outcome.TESTER_LIMIT and throughput_fps is not None)


class ProfileOfPair(Protocol):
    """What is asked of a search's `Profile`."""

    @property
    def seed(self) -> int: ...

    @property
    def macs(self) -> Mapping[SideName, PortMacs] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePair:
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
        if not says_something(result.outcome, result.throughput_fps):
            return None
        return cls(
            outcome=result.outcome,
            throughput_fps=result.throughput_fps,
            upper_fps=result.upper_fps,
            loss_ratio=result.goal.loss_ratio,
            seed=profile.seed,
            dut_macs={side: macs.dut for side, macs in (profile.macs or {}).items()},
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

    def line(self, result: SearchResult) -> str:
        """The sentence that is shown with a result with many addresses."""
        value = (
            "no throughput"
            if self.throughput_fps is None
            else f"{format_count(self.throughput_fps)} fps per direction"
        )
        bound = "at least " if self.is_at_least else ""
        loss = f" with a loss ratio of at most {format_ratio(self.loss_ratio)}" if self.loss_ratio else ""
        ratio = self.ratio(result)
        compared = (
            f"no ratio, because {self._why_no_ratio(result)}"
            if ratio is None
            else (
                f"the result with many addresses is {ratio:.3f} times that (one search"
                " each, so the spread is not known)"
            )
        )
        return f"Before it, {self.source}, with 1 address pair{loss}: {bound}{value}; {compared}."

    def _why_no_ratio(self, result: SearchResult) -> str:
        searches = (
            ("with 1 address pair", self.outcome, self.throughput_fps),
            ("with many addresses", result.outcome, result.throughput_fps),
        )
        without = [(name, outcome) for name, outcome, fps in searches if fps is None]
        if without:
            names = "either" if len(without) == 2 else f"that {without[0][0]}"
            ended = {outcome for _, outcome in without}
            what = "no load passed in" if ended == {Outcome.BELOW_MINIMUM} else "no throughput was found by"
            return f"{what} {names}"
        if self.throughput_fps == 0:
            return f"that {searches[0][0]} is 0"
        bounds = [name for name, outcome, _ in searches if is_outcome_at_least(outcome)]
        return "both are lower bounds" if len(bounds) == 2 else f"that {bounds[0]} is a lower bound"

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


def check_same_dut(single_pair: SinglePair, profile: ProfileOfPair) -> None:
    """RequestError if another DUT answers now than in the run that was named."""
    for side, macs in (profile.macs or {}).items():
        before = single_pair.dut_macs.get(side)
        if before != macs.dut:
            raise RequestError(
                f"a different DUT: its {side} interface had the MAC {before}, and now has {macs.dut}",
                code="procedure.different-dut",
                where=f"single_pair, {single_pair.source.removeprefix('in ')}",
                next_step="Use single_pair_first.",
            )
