# SPDX-License-Identifier: Apache-2.0
"""Station 8: the searches behind one door. The type of the goal says which one it is.
What is known of a search when it begins is what recorders keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, overload

from evenhand.base.errors import RequestError
from evenhand.plan import FrameSize
from evenhand.search.estimate import LIKELY_SHARE, LikelyDevice, TrialTime, likely_devices, likely_mean
from evenhand.search.mlr import find_goals
from evenhand.search.mlr_model import MlrGoals, MlrResult
from evenhand.search.model import ProgressCallback, ThroughputGoal, ThroughputResult
from evenhand.search.throughput import find_throughput
from evenhand.trial import Measurer

Goal = ThroughputGoal | MlrGoals
"""`ThroughputGoal` (binary), `Tst009Goal` (tst009), `MlrGoals` (mlr). All have `search`, `max_fps`,
`loss_ratio`, `to_document()`."""
SearchResult = ThroughputResult | MlrResult
"""Both have `goal`, `outcome`, `throughput_fps`, `trials`, `count()`, `to_document()`."""


@overload
def run_search(
    measurer: Measurer,
    goal: ThroughputGoal,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
    trial_s: TrialTime | None = None,
) -> ThroughputResult: ...
@overload
def run_search(
    measurer: Measurer,
    goal: MlrGoals,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
    trial_s: TrialTime | None = None,
) -> MlrResult: ...
@overload
def run_search(
    measurer: Measurer,
    goal: Goal,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
    trial_s: TrialTime | None = None,
) -> SearchResult: ...
def run_search(
    measurer: Measurer,
    goal: Goal,
    *,
    on_progress: ProgressCallback | None = None,
    overhead_s: float = 0.0,
    trial_s: TrialTime | None = None,
) -> SearchResult:
    """Search for this goal; see `find_throughput` and `find_goals` for what they do and raise."""
    if isinstance(goal, MlrGoals):
        return find_goals(measurer, goal, on_progress=on_progress, overhead_s=overhead_s)
    return find_throughput(measurer, goal, on_progress=on_progress, overhead_s=overhead_s, trial_s=trial_s)


def expected_search_s(
    goal: ThroughputGoal,
    *,
    overhead_s: float,
    limit_fps: float | None = None,
    trial_s: TrialTime | None = None,
) -> float:
    """Seconds that a search with a finite maximum should take.

    Args:
        limit_fps: Where the limit is taken to lie; None: nothing is known of it.
    """
    steady = LikelyDevice(
        limit_fps=limit_fps or goal.known_fps or goal.max_fps * LIKELY_SHARE,
        loss_ratio=goal.loss_ratio,
        overhead_s=overhead_s,
        trial_s=trial_s,
        full_length_s=goal.final_duration_s,
    )
    devices = likely_devices(goal, steady)
    for device in devices:
        find_throughput(device, goal)
    return likely_mean([sum(device.seconds) for device in devices])


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
