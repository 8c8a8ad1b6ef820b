# SPDX-License-Identifier: Apache-2.0
"""Station 8: the highest load that the tester itself keeps on this machine (MLR-14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evenhand.search.bracket import STEP_DOWN, whole_load
from evenhand.trial import Measurer, Reason, TrialResult, join_directions

STEP_UP = 2.0
"""Factor to the next load while the tester has kept all of them."""
LOSSES_THAT_END_THE_WAY_UP = 2
"""For searches that allow no loss: one may be an absence of a CPU."""
AWAY_CODES = frozenset({"sender_overdue", "overdue_may_explain_loss", "offered_load"})
"""Reasons that a CPU which was taken away can bring about by itself."""
DISTURBED_SHARE = 2.0
DEFAULT_PRECISION = 0.05
"""Precision of the ceiling. It moves by more than that from one minute to the next where a host does other
work too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterCeiling:
    """The highest load that the tester kept, and what happened at the load above. Loads are per direction."""

    rate_fps: float | None
    """Highest load that it kept; None if it kept none down to the minimum."""
    above_fps: float | None
    """The lowest load above it that the tester did not keep; None if it kept the maximum."""
    max_fps: float
    min_fps: float
    is_loss_ours: bool
    """Whether lost frames counted as the tester's fault."""
    is_device_slower: bool = False
    """The device lost frames there, and nothing above was tried: a search of its throughput needs nothing
    above."""
    was_stopped: bool
    """The search was ended early: the ceiling may be higher."""
    trials: tuple[TrialResult, ...]

    @property
    def is_at_maximum(self) -> bool:
        """The tester's ceiling was not reached."""
        return self.rate_fps is not None and self.above_fps is None

    @property
    def offered_fps(self) -> float | None:
        """What it offered at the ceiling."""
        return max(
            (t.offered_fps for t in self.trials if t.intended_fps == self.rate_fps and self._is_kept(t)),
            default=None,
        )

    @property
    def maximum_offered_load_fps(self) -> float | None:
        """The most that it offered in any trial, on schedule or not (RFC 2285, 3.5.3)."""
        return max((trial.offered_fps for trial in self.trials), default=None)

    @property
    def is_disturbed(self) -> bool:
        """The tester did not keep the load above, but elsewhere it offered twice as much: no load was beyond
        it, but something took its CPU away."""
        codes = {reason.code for reason in self.reasons_above}
        return (
            bool(codes)
            and codes <= AWAY_CODES
            and (self.maximum_offered_load_fps or 0) >= DISTURBED_SHARE * (self.above_fps or 0)
        )

    @property
    def offered_above_fps(self) -> float | None:
        """The most that it offered at the load above."""
        return max((t.offered_fps for t in self._trials_above), default=None)

    @property
    def reasons_above(self) -> list[Reason]:
        """Why it did not keep the load above: of the trial there that offered the most."""
        best = max(self._trials_above, key=lambda trial: trial.offered_fps, default=None)
        return [] if best is None else join_directions(best.reasons)

    def to_document(self) -> dict[str, Any]:
        """For `--json` and the run file (contract/check.schema.json)."""
        above = None
        if self.above_fps is not None:
            reasons = [{"code": reason.code, "text": reason.text} for reason in self.reasons_above]
            above = {
                "rate_fps_per_direction": self.above_fps,
                "offered_fps_per_direction": self.offered_above_fps,
                "reasons": reasons,
            }
        return {
            "ceiling_fps_per_direction": self.rate_fps,
            "offered_fps_per_direction": self.offered_fps,
            "maximum_offered_load_fps_per_direction": self.maximum_offered_load_fps,
            "is_at_maximum": self.is_at_maximum,
            "max_fps_per_direction": self.max_fps,
            "min_fps_per_direction": self.min_fps,
            "is_loss_ours": self.is_loss_ours,
            "was_stopped": self.was_stopped,
            "above": above,
        }

    @property
    def _trials_above(self) -> list[TrialResult]:
        return [trial for trial in self.trials if trial.intended_fps == self.above_fps]

    def _is_kept(self, trial: TrialResult) -> bool:
        return trial.is_pass if self.is_loss_ours else trial.is_valid


def find_tester_ceiling(
    measurer: Measurer,
    *,
    max_fps: float,
    min_fps: float,
    duration_s: float,
    start_fps: float | None = None,
    precision: float = DEFAULT_PRECISION,
    attempts: int = 2,
    is_loss_ours: bool = False,
    ending_losses: int = 0,
    kept_fps: float | None = None,
    on_trial: Callable[[TrialResult], None] | None = None,
) -> TesterCeiling:
    """From `start_fps` up by doubling, or down, until the ceiling lies between two loads; then by halving.
    Loads are per direction.

    A load is kept if one of `attempts` trials there is valid, whether frames were lost or not: a DUT has no
    say in it, and the trials never count as results of one. On the way down the next load is a fifth lower,
    or what was really offered if that is lower still.

    Args:
        start_fps: Where to begin; default the maximum, which is right where it is the line rate.
        precision: Stop when the ceiling is known to this share of the load above it. 1 stops at the first
            load that is kept, on the way down: a fifth too low at most.
        is_loss_ours: There is no DUT that could have lost a frame (the own loop): a load with loss is not
            kept either.
        ending_losses: Go no further up than to a load at which the device lost frames in so many trials; 0:
            go on. One may be an absence of a CPU.
        kept_fps: A load below `start_fps` that the tester has kept before. It stays the ceiling if the first
            load above it is not kept, where both are no further apart than the precision.
    """
    search = _CeilingSearch(
        measurer=measurer,
        max_fps=max_fps,
        min_fps=min_fps,
        duration_s=duration_s,
        attempts=attempts,
        is_loss_ours=is_loss_ours,
        ending_losses=ending_losses,
        on_trial=on_trial,
        kept_fps=kept_fps,
    )
    return search.run(min(start_fps or max_fps, max_fps), precision)


@dataclass(slots=True, kw_only=True)
class _CeilingSearch:
    measurer: Measurer
    max_fps: float
    min_fps: float
    duration_s: float
    attempts: int
    is_loss_ours: bool
    ending_losses: int
    on_trial: Callable[[TrialResult], None] | None
    is_device_slower: bool = False
    trials: list[TrialResult] = field(default_factory=list)
    kept_fps: float | None = None
    above_fps: float | None = None

    def run(self, load_fps: float, precision: float) -> TesterCeiling:
        while load_fps >= self.min_fps and not self._was_stopped:
            offered_fps = self._try(load_fps)
            if self.above_fps is None:
                if load_fps >= self.max_fps or self.is_device_slower:
                    break
                load_fps = min(load_fps * STEP_UP, self.max_fps)
            elif self.kept_fps is None:
                load_fps = whole_load(min(load_fps * STEP_DOWN, offered_fps))
            elif self.above_fps - self.kept_fps <= precision * self.above_fps:
                break
            else:
                load_fps = whole_load((self.kept_fps + self.above_fps) / 2)
        return TesterCeiling(
            rate_fps=self.kept_fps,
            above_fps=self.above_fps,
            max_fps=self.max_fps,
            min_fps=self.min_fps,
            is_loss_ours=self.is_loss_ours,
            is_device_slower=self.is_device_slower,
            was_stopped=self._was_stopped,
            trials=tuple(self.trials),
        )

    def _try(self, load_fps: float) -> float:
        """Move one of the two bounds; the most that was offered."""
        looks_for_loss = self.ending_losses > 0 and self.above_fps is None and load_fps < self.max_fps
        offered_fps, losses = 0.0, 0
        for _ in range(max(self.attempts, self.ending_losses if looks_for_loss else 0)):
            result = self.measurer.measure(self.duration_s, load_fps)
            self.trials.append(result)
            if self.on_trial is not None:
                self.on_trial(result)
            if result.was_stopped:
                return 0.0
            offered_fps = max(offered_fps, result.offered_fps)
            if result.is_pass or (result.is_valid and not self.is_loss_ours):
                self.kept_fps = load_fps
                losses += not result.is_pass
                self.is_device_slower = looks_for_loss and losses == self.ending_losses
                if result.is_pass or self.is_device_slower or not looks_for_loss:
                    return offered_fps
        if self.kept_fps != load_fps:
            self.above_fps = load_fps
        return offered_fps

    @property
    def _was_stopped(self) -> bool:
        return bool(self.trials) and self.trials[-1].was_stopped
