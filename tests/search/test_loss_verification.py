# SPDX-License-Identifier: Apache-2.0
"""Station 8: binary search with loss verification (ETSI TST009 12.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from evenhand.search import Outcome, ThroughputGoal, find_throughput
from evenhand.trial import SimulatedMeasurer, TrialResult, Verdict
from tests.errors import raises


@dataclass
class Scripted:
    """A device with a limit of 600 kfps that stumbles, or whose tester does, in the trials that the script
    names."""

    script: dict[int, str]
    count: int = 0
    fair: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=600_000))
    lossy: SimulatedMeasurer = field(default_factory=lambda: SimulatedMeasurer(limit_fps=1))
    invalid: SimulatedMeasurer = field(
        default_factory=lambda: SimulatedMeasurer(limit_fps=600_000, tester_ceiling_fps=1)
    )

    def measure(self, duration_s: float, rate_fps: float) -> TrialResult:
        self.count += 1
        device = {"lossy": self.lossy, "invalid": self.invalid}.get(
            self.script.get(self.count, ""), self.fair
        )
        return device.measure(duration_s, rate_fps)


def goal(loss_verifications: int) -> ThroughputGoal:
    return ThroughputGoal(
        max_fps=1e6, precision=0.01, duration_s=1, final_duration_s=1, loss_verifications=loss_verifications
    )


@pytest.mark.parametrize("stumbles", [{3: "lossy"}, {3: "lossy", 6: "lossy"}, {3: "lossy", 4: "invalid"}])
def test_a_loss_that_does_not_come_again_moves_no_bound(stumbles: dict[int, str]) -> None:
    result = find_throughput(Scripted(stumbles), goal(1))
    assert result.outcome is Outcome.FOUND
    assert result.throughput_fps is not None
    assert 594_000 <= result.throughput_fps <= 600_000


def test_without_verification_one_stumble_counts() -> None:
    """R2544-21: any loss lowers the rate. The search must be able to go wrong, or the test above would show
    nothing."""
    result = find_throughput(Scripted({2: "lossy"}), goal(0))
    assert result.throughput_fps is not None
    assert result.throughput_fps < 500_000


def test_a_loss_that_cannot_be_verified_counts() -> None:
    """A valid trial saw it; INVALID repetitions do not take that back, and do not end the search either."""
    result = find_throughput(Scripted({1: "lossy", 2: "invalid", 3: "invalid", 4: "invalid"}), goal(1))
    assert result.outcome is Outcome.FOUND
    assert [t.result.verdict for t in result.trials][:4] == [
        Verdict.FAIL,
        Verdict.INVALID,
        Verdict.INVALID,
        Verdict.INVALID,
    ]
    assert [t.attempt for t in result.trials][:4] == [1, 2, 3, 4]


def test_a_limit_is_found_the_same_with_and_without() -> None:
    plain, verified = (find_throughput(SimulatedMeasurer(limit_fps=333_333), goal(n)) for n in (0, 2))
    assert plain.throughput_fps == verified.throughput_fps
    assert len(verified.trials) > len(plain.trials)


def test_fewer_than_none_is_refused() -> None:
    with raises("search.out-of-range", match="^loss_verifications: "):
        goal(-1)


def test_a_plain_loss_counts_at_once() -> None:
    """What no stall explains costs no second trial; what could be one still does."""
    searched = find_throughput(SimulatedMeasurer(limit_fps=333_333), replace(goal(1), plain_loss_ratio=0.05))
    assert (
        searched.throughput_fps
        == find_throughput(SimulatedMeasurer(limit_fps=333_333), goal(0)).throughput_fps
    )
    failed = [trial for trial in searched.trials if trial.result.verdict is Verdict.FAIL]
    plain = [trial for trial in failed if trial.result.loss_ratio > 0.05]
    small = [trial for trial in failed if trial.result.loss_ratio <= 0.05]
    assert [trial.attempt for trial in plain] == [1] * len(plain)
    assert plain
    assert [trial.attempt for trial in small] == [1, 2] * (len(small) // 2)
    assert small


@pytest.mark.parametrize("ratio", [0, 1.1])
def test_a_plain_loss_ratio_is_a_ratio(ratio: float) -> None:
    with raises("search.out-of-range", match="^plain_loss_ratio: "):
        replace(goal(1), plain_loss_ratio=ratio)
