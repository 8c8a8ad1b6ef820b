# SPDX-License-Identifier: Apache-2.0
"""Bursts through the reference router: a queue of known depth, served at a known rate, gives the burst that
it just holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import evenhand
from evenhand.cli.router import testbed_text as text_for
from evenhand.plan import Direction, make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import Defects, ReferenceDut, reference_router
from evenhand.run import read_run
from tests.wire.wire_session import MOST_ATTEMPTS, built_router, until, versions_of

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
SERVICE_FPS = 20_000.0
QUEUE_FRAMES = 1024
RATE_FPS = 60_000.0
QUIET_FPS = 20_000.0
OVERLOAD_S = 0.6
LONGEST = QUEUE_FRAMES / (1 - SERVICE_FPS / RATE_FPS)
"""Frames that have come when the queue is full: one is served for three that come."""
QUICK = evenhand.Waits(after_routing_s=0.0, after_learning_s=0.02, residual_s=0.1, restabilize_s=0.02)
LIMITS = evenhand.Limits(overdue_after_us=2_000, overdue_tolerance=0.05)
"""A frame that is 2 ms late finds 40 frames less in the queue."""
PATIENT = evenhand.Limits(overdue_after_us=5_000, overdue_tolerance=0.5, offered_tolerance=0.02)
"""A tester that is late is not what recovery is about."""
ONE_WAY: tuple[Direction, ...] = ("forward",)


@pytest.fixture(scope="module")
def router(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The testbed file of a router with one element, named as its plan; its queue is empty again long before
    the next trial."""
    built_router()
    model = DeviceModel(elements=1, rate_fps=SERVICE_FPS, queue_frames=QUEUE_FRAMES)
    with reference_router(make_plan(request.param), ReferenceDut(model=model)) as running:
        path = tmp_path_factory.mktemp("router") / f"{request.param}.toml"
        path.write_text(text_for(running, None))
        yield path


@pytest.mark.thorough
@pytest.mark.parametrize("router", versions_of("gateway-v4", "gateway-v6", proved="v6"), indirect=True)
def test_a_queue_of_known_depth_gives_the_burst_and_the_buffer_time(router: Path, tmp_path: Path) -> None:
    """R9004-01, R9004-03, R9004-05, R9004-08, R9004-09, IPv4 and IPv6: what a stall of this machine makes of
    a burst costs some frames."""
    run = tmp_path / "bursts.evenhand"
    goal = evenhand.BackToBackGoal(
        rate_fps=RATE_FPS,
        max_burst_s=0.05,
        step_frames=100,
        repetitions=2,
        throughput_fps=SERVICE_FPS,
        actual_fps=SERVICE_FPS,
        loss_verifications=1,
        invalid_retries=30,
        patience=60,
    )
    with evenhand.open_testbed(router, run=run) as opened:
        (row,) = opened.back_to_back(
            [84], goal=goal, plan=router.stem, directions=ONE_WAY, waits=QUICK, limits=LIMITS
        ).rows
    assert row.outcome == "measured", [str(trial.reasons) for trial in row.trials]
    assert len(row.values) == 2
    for value in row.values:
        assert LONGEST * 0.9 < value < LONGEST * 1.1
    assert row.corrected_buffer_s == pytest.approx(QUEUE_FRAMES / RATE_FPS, rel=0.1)
    assert row.actual_buffer_s == pytest.approx(QUEUE_FRAMES / SERVICE_FPS, rel=0.1)
    bursts = [trial for trial in row.trials if trial.is_valid]
    assert all(trial.directions["forward"].offered_frames == trial.raw["burst"]["frames"] for trial in bursts)
    stored = read_run(run).searches
    assert [(search.kind, search.outcome) for search in stored] == [("back-to-back", "found")] * 2
    assert [len(search.trials) for search in stored] == [len(search.trials) for search in row.repetitions]


def recovery_goal(throughput_fps: float) -> evenhand.RecoveryGoal:
    return evenhand.RecoveryGoal(
        throughput_fps=throughput_fps,
        duration_s=OVERLOAD_S,
        observe_s=0.4,
        repetitions=1,
        invalid_retries=30,
        patience=60,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("router", versions_of("gateway-v4", "gateway-v6", proved="v4"), indirect=True)
def test_a_full_queue_has_recovered_at_once_and_one_that_is_still_overloaded_has_not(router: Path) -> None:
    """R2544-29, IPv4 and IPv6: the queue is full at the fall of the load, and takes every frame of less than
    it is served at."""
    plan = router.stem
    with evenhand.open_testbed(router) as opened:
        found = opened.recovery(
            goal=recovery_goal(1.5 * SERVICE_FPS), plan=plan, directions=ONE_WAY, waits=QUICK, limits=PATIENT
        )
        endless = opened.recovery(
            goal=recovery_goal(3 * SERVICE_FPS), plan=plan, directions=ONE_WAY, waits=QUICK, limits=PATIENT
        )
    assert found.outcome == endless.outcome == "measured"
    assert found.lost_frames("forward") > 0
    assert found.values("forward") == pytest.approx((0.0,), abs=0.1)
    assert endless.still_losing("forward") == 1
    assert endless.values("forward")[0] > 0.36


TRIED_WAY = 2
"""Frames with which the way through the DUT is tried in a direction, before the first trial."""


@pytest.mark.parametrize("name", versions_of("gateway-v4", "gateway-v6", proved="v6"))
def test_the_last_lost_frame_is_the_one_that_the_router_lost(name: str, tmp_path: Path) -> None:
    """R2544-29, IPv4 and IPv6: a router that loses one frame 0.2 s after the fall of the load, exactly
    known."""
    goal = recovery_goal(QUIET_FPS / 1.1)
    lost = round(QUIET_FPS * OVERLOAD_S + QUIET_FPS / 2 * 0.2)
    for _ in range(MOST_ATTEMPTS):
        with reference_router(
            make_plan(name), ReferenceDut(defects=Defects(at={"loss": (TRIED_WAY + lost,)}))
        ) as running:
            path = tmp_path / f"{name}.toml"
            path.write_text(text_for(running, None))
            with evenhand.open_testbed(path) as opened:
                found = opened.recovery(goal=goal, plan=name, directions=ONE_WAY, waits=QUICK, limits=PATIENT)
        if len(found.trials) == 1 and found.lost_frames("forward") == 1:
            break  # else this machine took a CPU away for longer than a ring lasts
    assert found.trials[0].directions["forward"].last_lost is not None
    assert found.trials[0].directions["forward"].last_lost.sequence == lost
    assert found.values("forward") == pytest.approx((0.2,), abs=2 / QUIET_FPS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("router", "sizes"),
    [pytest.param("gateway-v4", (256,), marks=pytest.mark.slow), ("gateway-v6", (256, 2048))],
    indirect=["router"],
)
def test_bursts_may_follow_each_other_as_fast_as_they_are_served(
    router: Path, sizes: tuple[int, ...]
) -> None:
    """R2544-17, IPv4 and IPv6: of 256 frames 85 have been served when the last one comes; 2048 leave more
    than the queue holds."""
    goal = evenhand.BurstGoal(
        burst_frames=sizes,
        rate_fps=RATE_FPS,
        precision=0.15,
        duration_s=0.3,
        final_duration_s=0.3,
        invalid_retries=30,
        patience=60,
    )
    with evenhand.open_testbed(router) as opened:
        # A burst that comes while this machine has the router's CPU is evened out, and fits.
        found = until(
            lambda found: all(interval.outcome == "below_minimum" for interval in found.intervals[1:]),
            lambda: opened.burst(goal=goal, plan=router.stem, directions=ONE_WAY, waits=QUICK, limits=LIMITS),
        )
    small, *large = found.intervals
    assert small.outcome == "found", [str(trial.reasons) for trial in found.trials]
    assert small.interval_s is not None
    # In 0.3 s the queue hides what it holds.
    assert 256 / (SERVICE_FPS + QUEUE_FRAMES / 0.3) * 0.95 < small.interval_s < 256 / SERVICE_FPS * 1.2
    assert [interval.outcome for interval in large] == ["below_minimum"] * (len(sizes) - 1)
    for trial in found.trials:
        if trial.is_valid:
            direction = trial.directions["forward"]
            assert direction.offered_frames % trial.raw["burst"]["frames"] == 0
