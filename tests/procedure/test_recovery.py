# SPDX-License-Identifier: Apache-2.0
"""System recovery on simulated devices that go on losing frames for a known time."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from evenhand.cli.progress.line import ProgressDisplay
from evenhand.plan import make_plan
from evenhand.procedure import Began, OnEvent, ProcedureEvent, Profile, Recovery, RecoveryGoal, ignore
from evenhand.procedure.attempts import Attempts
from evenhand.procedure.record import nowhere
from evenhand.procedure.recovery import check_throughput, repeat_overload
from evenhand.procedure.registry import RECOVERY
from evenhand.report.found import found_lines, found_tables
from evenhand.trial import SimulatedMeasurer
from tests.errors import raises
from tests.report.test_throughput import shown

THROUGHPUT_FPS = 100_000.0
GOAL = RecoveryGoal(throughput_fps=THROUGHPUT_FPS, throughput_source="before.evenhand", repetitions=3)


def profile_of(theoretical_fps: int | None = 1_488_095) -> Profile:
    return Profile(
        plan=make_plan("gateway-v6").one_pair(),
        frame_size=84,
        seed=1,
        directions=("forward", "reverse"),
        theoretical_fps=theoretical_fps,
    )


def measure(
    goal: RecoveryGoal = GOAL, profile: Profile | None = None, on_event: OnEvent = ignore, **device: Any
) -> Recovery:
    profile = profile or profile_of()
    load = check_throughput(goal, profile)
    attempts = Attempts(
        measurer=SimulatedMeasurer(**{"limit_fps": THROUGHPUT_FPS, **device}),
        on_event=on_event,
        record=nowhere(),
        purpose="recovery",
        overhead_s=0.0,
        invalid_retries=goal.invalid_retries,
        patience=goal.patience,
    )
    return Recovery(profile=profile, goal=goal, load=load, repetitions=repeat_overload(attempts, goal, load))


def test_the_overload_and_what_follows_are_those_of_the_rfc() -> None:
    """R2544-29: 110 % of the throughput for 60 s, then half of it; never above the line rate."""
    found = measure()
    assert found.load.rate_fps == pytest.approx(110_000)
    assert found.load.duration_s == 60
    assert found.load.then is not None
    assert found.load.then.rate_fps == pytest.approx(55_000)
    assert found.trials[0].directions["forward"].intended_frames == 60 * 165_000
    at_line = measure(profile=profile_of(theoretical_fps=104_000))
    assert at_line.load.rate_fps == 104_000
    with raises("rig.above-line-rate"):
        check_throughput(GOAL, profile_of(theoretical_fps=99_999))


@pytest.mark.parametrize("recovery_s", [0.0, 0.25, 12.5])
def test_recovery_is_from_the_fall_of_the_load_to_the_last_lost_frame(recovery_s: float) -> None:
    """R2544-29: B - A, and not the other way round."""
    found = measure(recovery_s=recovery_s)
    for direction in found.profile.directions:
        assert found.values(direction) == pytest.approx((recovery_s,) * 3, abs=1 / 55_000)
        assert found.average_s(direction) == pytest.approx(recovery_s, abs=1 / 55_000)
        assert (found.still_losing(direction), found.lossless(direction)) == (0, 0)
    assert found.outcome == "measured"
    assert found.deviations == []
    table = shown(found_tables(found, RECOVERY)[-1])
    assert "average, s" in table
    assert f" {recovery_s:g}" in table
    assert found.to_document()["figures"]["forward"]["values"] == list(found.values("forward"))


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_progress_tells_both_loads_and_not_their_mean(plan: str) -> None:
    """R2544-29: 82.5 kfps, the mean, is neither of them."""
    events: list[ProcedureEvent] = []
    console = Console(file=io.StringIO(), width=200)
    profile = replace(profile_of(), plan=make_plan(plan))
    measure(replace(GOAL, repetitions=1), profile, on_event=events.append)
    began, measured = events
    both = "110 kfps per direction for 60 s, then 55 kfps for 60 s"
    assert isinstance(began, Began)
    assert began.what == f"trial 1: repetition 1 of 1, {both}"
    with ProgressDisplay(console) as display:
        display.on_event(measured)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith(f"repetition 1 of 1: {both} FAIL")


def test_what_lost_up_to_the_end_has_not_recovered() -> None:
    """R2544-29: a lower bound is named as one."""
    found = measure(recovery_s=1000.0)
    assert found.still_losing("forward") == 3
    assert ">= 60 " in shown(found_tables(found, RECOVERY)[-1])
    assert "repeat with a longer --observe" in "\n".join(found_lines(found, RECOVERY))


def test_an_overload_that_loses_nothing_is_named() -> None:
    found = measure(limit_fps=2 * THROUGHPUT_FPS)
    assert (found.lossless("reverse"), found.values("reverse")) == (3, (0, 0, 0))
    assert "nothing to recover from" in "\n".join(found_lines(found, RECOVERY))


def test_what_departs_from_the_rfc_is_told() -> None:
    """R2544-29."""
    short = replace(GOAL, throughput_source=None, duration_s=2.0)
    texts = [
        deviation.text
        for deviation in measure(short, profile=profile_of(None)).deviations
        if deviation.requirement == "R2544-29"
    ]
    assert texts == [
        "the throughput of 100,000 fps per direction was given by the user and not measured",
        "the ports do not know their line rate, so the overload is 110 % of the throughput, whatever the"
        " line can carry",
        "the overload lasted 2 s instead of 60 s",
    ]


def test_invalid_trials_are_repeated_and_a_tester_that_cannot_ends_it() -> None:
    """R2544-39."""
    found = measure(recovery_s=0.25, invalid_trials=(2, 3))
    assert [len(repetition) for repetition in found.repetitions] == [1, 3, 1]
    ended = measure(tester_ceiling_fps=50_000)
    assert (ended.outcome, ended.values("forward"), ended.average_s("forward")) == (
        "tester_ceiling",
        (),
        None,
    )
    assert "says nothing about the DUT" in "\n".join(found_lines(ended, RECOVERY))
    assert "-" in shown(found_tables(ended, RECOVERY)[-1])


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"throughput_fps": 0.0}, "throughput_fps"),
        ({"duration_s": 0.0}, "duration_s"),
        ({"observe_s": 0.0}, "observe_s"),
        ({"repetitions": 0}, "repetitions"),
        ({"patience": -1}, "invalid_retries, patience"),
    ],
)
def test_bad_goals_are_refused(changes: dict[str, Any], where: str) -> None:
    with raises("procedure.out-of-range") as refused:
        replace(GOAL, **changes)
    assert refused.value.where == where


def test_a_recovery_is_in_doubt_if_the_tester_can_explain_all_that_was_lost_after_the_drop() -> None:
    """R2544-29, R2544-39: what was lost during the overload does not count, and all of the tester's own
    lapses do."""
    (trial,) = measure(replace(GOAL, repetitions=1), recovery_s=1.0).trials

    def doubtful(
        *, overdue: int = 5, gap: int = 5, away: int = 5, missed: int = 5, late: int | None = 20
    ) -> int:
        made = trial.directions["forward"]
        forward = replace(
            made,
            lost_by_tenth=(99,) * 600 + (2,) * 10,
            sender=replace(made.sender, overdue_frames=overdue),
            receiver=replace(made.receiver, gap_frames=gap),
            away_frames=away,
            last_lost=made.last_lost if late else None,
        )
        changed = replace(trial, directions={**trial.directions, "forward": forward}, missed_frames=missed)
        found = replace(measure(replace(GOAL, repetitions=1)), repetitions=((changed,),))
        assert found.summary()["figures"]["forward"]["doubtful_repetitions"] == found.doubtful("forward")
        return found.doubtful("forward")

    assert doubtful() == 1
    assert [doubtful(**{lapse: 4}) for lapse in ("overdue", "gap", "away", "missed")] == [0] * 4
    assert doubtful(late=None) == 0


def test_a_repetition_is_still_losing_by_the_time_that_was_watched() -> None:
    """R2544-29: 30 s after an overload of 60 s, not the other way round."""
    goal = replace(GOAL, observe_s=30.0, repetitions=2)
    assert measure(goal, recovery_s=28.0).still_losing("forward") == 2
    assert measure(goal, recovery_s=26.0).still_losing("forward") == 0
