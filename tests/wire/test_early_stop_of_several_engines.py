# SPDX-License-Identifier: Apache-2.0
"""A trial of several real engines that can no longer pass ends early, for all of them at one frame, and no
trial ends early that could pass. R2544-20, R2544-21."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import OpenTestbed
from evenhand.reference import Defects, ReferenceDut
from evenhand.trial import EngineMeasurer, EngineSession, Limits, TrialResult, Verdict, Waits
from tests.wire.several_engines import (
    engine_table,
    group_of,
    open_group,
    router_of_pairs,
    setup_of,
    silent_ports,
)
from tests.wire.wire_session import FAST_WAITS, PATIENT, Document, engine, open_ports, until

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
WAITS = Waits(**FAST_WAITS)
LIMITS = replace(Limits(), **{**PATIENT, "longest_overdue_us": 2e5, "overdue_after_us": 1.9e5})
RATE_FPS = 2000.0
LONG_S = 30.0


def early(
    plan: AddressPlan,
    of_a: ReferenceDut,
    of_b: ReferenceDut,
    *,
    loss_ratio: float,
    duration_s: float,
    wanted: Callable[[TrialResult], bool],
) -> TrialResult:
    """One that this machine did not spoil.

    Args:
        wanted: Whether it is one: a router that was without its CPU until frames came too late makes another.
    """

    def measured() -> TrialResult:
        with OpenTestbed(setup=setup).tester(
            plan=plan, waits=WAITS, limits=replace(LIMITS, loss_ratio=loss_ratio)
        ) as tester:
            measurer = EngineMeasurer(
                session=tester.session,
                waits=WAITS,
                limits=replace(LIMITS, loss_ratio=loss_ratio),
                stops_when_failed=True,
            )
            return measurer.measure(duration_s, RATE_FPS)

    with router_of_pairs(plan, of_a, 1) as first, router_of_pairs(plan, of_b, 1) as second:
        setup = setup_of([engine_table(first, 0), engine_table(second, 1)])
        return until(lambda trial: trial.is_valid and wanted(trial), measured)


def lost_of(trial: TrialResult) -> list[int]:
    """Frames that each engine lost."""
    return [sum(d["lost_frames"] for d in each["directions"].values()) for each in trial.raw["engines"]]


@pytest.mark.thorough
@pytest.mark.usefixtures("_router")
@PLANS
def test_a_loss_of_one_pair_stops_all_engines_at_one_frame(plan: AddressPlan) -> None:
    lossy = ReferenceDut(defects=Defects(ratios={"loss": 0.1}))
    trial = early(
        plan,
        ReferenceDut(),
        lossy,
        loss_ratio=0,
        duration_s=LONG_S,
        wanted=lambda trial: lost_of(trial)[0] == 0,
    )
    assert trial.verdict is Verdict.FAIL
    assert trial.raw["stopped_early_s"] < LONG_S
    frames = round(trial.raw["stopped_early_s"] * RATE_FPS)
    codes = {reason.code for reason in trial.reasons}
    assert codes == {"loss", "stopped_early"}
    for direction in trial.directions.values():
        assert direction.intended_frames == direction.offered_frames == frames
    for each in trial.raw["engines"]:
        for direction in each["directions"].values():
            assert abs(direction["intended_frames"] - frames / 2) < 1
    assert lost_of(trial) == [0, trial.lost_frames]
    assert trial.lost_frames > 0


@pytest.mark.thorough
@pytest.mark.usefixtures("_router")
def test_losses_of_all_engines_together_are_held_against_what_the_whole_trial_may_lose() -> None:
    """Each pair loses 0.15 of its frames: of one alone that is less than the whole trial may lose, of both it
    is more, though nobody knows before two thirds of the trial."""
    plan, duration_s = gateway_v4(), 6.0
    lossy = ReferenceDut(defects=Defects(ratios={"loss": 0.15}))
    # A router that was without its CPU for long has lost more, and that is known sooner.
    trial = early(
        plan,
        lossy,
        lossy,
        loss_ratio=0.1,
        duration_s=duration_s,
        wanted=lambda trial: trial.raw.get("stopped_early_s", 0) > duration_s / 2,
    )
    assert trial.verdict is Verdict.FAIL
    assert duration_s / 2 < trial.raw["stopped_early_s"] < duration_s
    # More than the whole trial may lose had been lost then.
    assert trial.lost_frames > 0.1 * 2 * RATE_FPS * duration_s
    one = early(
        plan, lossy, ReferenceDut(), loss_ratio=0.1, duration_s=2.0, wanted=lambda trial: trial.is_pass
    )
    assert one.verdict is Verdict.PASS
    assert "stopped_early_s" not in one.raw


def test_a_silence_stops_nothing() -> None:
    """R2544-19: nothing overtakes what is missing, as long as nothing comes."""
    with group_of(2) as group:
        open_group(group, gateway_v4(), silent_ports(2))
        measurer = EngineMeasurer(session=group, waits=WAITS, limits=LIMITS, stops_when_failed=True)
        # A host that lets this process wait for two seconds ends the trial in another way.
        document = until(
            lambda found: "engine_lost" not in {reason["code"] for reason in found["reasons"]},
            lambda: dict(measurer.measure(2.0, RATE_FPS).raw),
        )
    assert "stopped_early_s" not in document
    assert all(d["intended_frames"] == 2.0 * RATE_FPS for d in document["directions"].values())


def share_trial(session: EngineSession, end_after_s: float | None, **changes: object) -> Document:
    """One engine's part of a trial of 2 s; it is told its end at its first progress event with counts."""
    told: list[bool] = []

    def on_event(event: Document) -> None:
        if end_after_s is not None and "directions" in event and not told:
            told.append(True)
            session.end_sending(end_after_s)

    arguments: Document = {
        "trial": 1,
        "rate_fps": 1000,
        "duration_s": 2,
        "waits": FAST_WAITS,
        "limits": PATIENT,
        "share": {"first": 1, "stride": 2},
        "stop_when_failed": True,
        **changes,
    }
    document = session.request("trial", on_event=on_event, **arguments)
    # What was told beside it has its own answer, which nobody waits for.
    assert session.request("counters")["response"] == "counters"
    return document


@pytest.mark.thorough
def test_an_engine_ends_when_it_is_told_or_as_soon_as_it_can_and_else_goes_on() -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *silent_ports(1)[0])
        ended = share_trial(session, 1.5)
        late = share_trial(session, 0.001)
        after = share_trial(session, 5.0)
        alone = share_trial(session, 1.0, stop_when_failed=False)
        never = share_trial(session, None)
    assert ended["stopped_early_s"] == 1.5
    assert ended["directions"]["forward"]["intended_frames"] == 750
    assert 0.05 <= late["stopped_early_s"] < 2, "no frame that is due already is taken back"
    for document in (after, alone, never):
        assert "stopped_early_s" not in document
        assert document["directions"]["forward"]["intended_frames"] == 1000
