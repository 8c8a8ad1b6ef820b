# SPDX-License-Identifier: Apache-2.0
"""Frame loss rate on simulated devices: which loads are tried, when it ends, what an INVALID trial does."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from evenhand.plan import make_plan
from evenhand.procedure import LossGoal, LossOutcome, Measured, ProcedureEvent, Profile
from evenhand.procedure.loss import FrameLoss, LossPoint, LossSeries
from evenhand.procedure.registry import LOSS
from evenhand.report.found import found_lines, found_tables
from evenhand.trial import SimulatedMeasurer
from tests.errors import raises
from tests.procedure.simulated import attempts_with
from tests.report.test_throughput import shown

GOAL = LossGoal(max_fps=1_000_000.0, duration_s=1.0)


def series(goal: LossGoal = GOAL, events: list[ProcedureEvent] | None = None, **device: Any) -> FrameLoss:
    measurer = SimulatedMeasurer(**device)
    heard = [] if events is None else events
    points, outcome = LossSeries(
        attempts=attempts_with(measurer, goal, "loss", heard.append), goal=goal
    ).run()
    profile = Profile(plan=make_plan("gateway-v4"), frame_size=64, seed=1, directions=("forward", "reverse"))
    assert [trial.started_at for trial in measurer.trials] == [
        trial.started_at for point in points for trial in point.trials
    ]
    return FrameLoss(profile=profile, goal=goal, outcome=outcome, points=points)


def test_loads_go_down_by_tenths_until_two_in_a_row_lose_nothing() -> None:
    """R2544-27."""
    found = series(limit_fps=640_000)
    assert [round(point.share, 9) for point in found.points] == [1, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert found.outcome is LossOutcome.LOSSLESS
    assert [point.loss_ratio == 0 for point in found.points] == [False] * 4 + [True, True]


def test_the_loss_ratio_is_that_of_input_and_output() -> None:
    """R2544-26: (input - output) / input."""
    found = series(limit_fps=640_000)
    for point in found.points:
        assert point.loss_ratio == pytest.approx(max(0.0, 1 - 640_000 / point.rate_fps))
    assert found.to_document()["points"][0]["loss_ratio"] == pytest.approx(0.36)
    assert found.to_document()["points"][0]["lost_frames"] == 2 * 360_000


def test_a_device_that_passes_nothing_loses_all_at_every_load() -> None:
    """R2544-26: 0 received."""
    found = series(limit_fps=0.0)
    assert [point.loss_ratio for point in found.points] == [1.0] * 10
    assert found.outcome is LossOutcome.LOWEST_LOAD


def test_one_load_without_loss_is_not_enough() -> None:
    """R2544-27: a device that loses a frame now and then has a lossless load between lossy ones."""
    found = series(limit_fps=2e6, noise_probability=0.5, seed=4)
    ratios = [point.loss_ratio == 0 for point in found.points]
    assert ratios[-2:] == [True, True]
    assert (True, True) not in list(pairwise(ratios[:-1]))
    assert len(ratios) > 2


def test_finer_steps_are_allowed_and_coarser_ones_are_not() -> None:
    """R2544-27: "granularity of the trials MUST be at most 10 percent"."""
    found = series(LossGoal(max_fps=1e6, step=0.025, duration_s=1.0), limit_fps=930_000)
    assert [round(point.share, 9) for point in found.points] == [1, 0.975, 0.95, 0.925, 0.9]
    for step in (0.11, 0.5, 0.0, 1e-9):
        with raises("procedure.out-of-range", match="^step: "):
            LossGoal(step=step)


@pytest.mark.parametrize(
    "values", [{"duration_s": 0.0}, {"max_fps": 0.0}, {"patience": -1}, {"invalid_retries": -1}]
)
def test_what_cannot_be_is_refused(values: dict[str, Any]) -> None:
    with raises("procedure.out-of-range"):
        LossGoal(**values)


def test_an_invalid_trial_is_repeated_and_never_a_loss_of_the_dut() -> None:
    """R2544-39."""
    found = series(limit_fps=2e6, invalid_trials=(1, 3), is_load_offered=True)
    assert [len(point.trials) for point in found.points] == [2, 2]
    assert [point.loss_ratio for point in found.points] == [0, 0]
    assert found.outcome is LossOutcome.LOSSLESS


def test_a_load_that_the_tester_does_not_keep_is_named_and_has_no_loss() -> None:
    """MLR-14, R2544-39: the rest of the series goes on."""
    events: list[ProcedureEvent] = []
    found = series(limit_fps=640_000, tester_ceiling_fps=750_000, events=events)
    assert [point.share for point in found.unmeasured] == [1.0, 0.9, 0.8]
    assert [len(point.trials) for point in found.points] == [3, 3, 3, 1, 1, 1]
    assert found.points[0].found(None).loss_ratio is None
    assert sum(isinstance(event, Measured) for event in events) == 12
    lines = "\n".join(found_lines(found, LOSS))
    assert (
        "There was no valid trial at 100 %, 90 %, 80 % of the maximum: the tester itself did not keep"
        " the load"
    ) in lines
    assert "offered" in shown(found_tables(found, LOSS)[-1])


def test_what_stayed_invalid_does_not_stand_between_two_lossless_loads() -> None:
    """R2544-27: whether it lost frames is not known."""
    found = series(
        LossGoal(max_fps=1e6, duration_s=1.0, invalid_retries=0),
        limit_fps=2e6,
        invalid_trials=(2,),
        is_load_offered=False,
    )
    assert [point.loss_ratio for point in found.points] == [0, None, 0, 0]


def test_the_table_says_what_a_reader_must_know() -> None:
    """R2544-26, R2544-28: loads in percent of the maximum, loss in percent; conditions and deviations
    below."""
    found = series(limit_fps=640_000)
    table = shown(found_tables(found, LOSS)[-1])
    assert "load per direction, fps" in table
    assert "1,000,000" in table
    assert "fps" not in table.split("fps")[-1]
    assert "loss, %" in table
    assert "%" not in table.split("loss, %")[1]
    assert " 36" in table
    assert "360,000 + 360,000" in table
    lines = "\n".join(found_lines(found, LOSS))
    assert "64 octet frames, UDP over IPv4" in lines
    assert "two successive loads lost nothing" in lines
    assert "Deviation from SEED-02" in lines


def test_a_load_that_stayed_invalid_shows_the_most_that_was_offered() -> None:
    """R2544-39, R2544-28: the share of the theoretical maximum is that of the load, not of the maximum that
    was asked for."""
    attempts = tuple(
        SimulatedMeasurer(limit_fps=1e6, tester_ceiling_fps=kept_fps).measure(1, 1e6)
        for kept_fps in (500_000, 700_000, 600_000)
    )
    found = LossPoint(share=0.8, rate_fps=1e6, trials=attempts).found(1_488_095)
    assert found.offered_fps == pytest.approx(700_000)
    assert found.share_of_theoretical == pytest.approx(1e6 / 1_488_095)
    assert (found.attempts, found.loss_ratio) == (3, None)
    assert [reason.code for reason in found.reasons] == ["offered_load"]
