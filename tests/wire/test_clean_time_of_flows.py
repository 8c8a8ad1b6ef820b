# SPDX-License-Identifier: Apache-2.0
"""Clean time with limits of flows: of a tester that is stopped now and then, all flows are judged by what
is left; a router that harms one class is charged with what that class lost in clean time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan, mix_request
from evenhand.reference import Defects, ReferenceDut
from evenhand.trial import Limits, TrialResult
from tests.plan.test_flows import V4, V6
from tests.wire.test_clean_time import RATE_FPS, STOPPED_S, WANTED_S, offer, stopped_now_and_then
from tests.wire.test_flows import BOTH
from tests.wire.wire_session import engine, memif_cable, open_ports, router_beside_tester, until

pytestmark = pytest.mark.wire
FLOWS: list[dict[str, Any]] = [
    {"name": "voice", "share": 1, "dscp": "EF", "loss-at-most": "0%"},
    {"name": "rest", "share": 4},
]
CLEAN = Limits(clean_at_most=4.0, loss_ratio=0.05)


def plan_of(version: int) -> AddressPlan:
    sides = V4 if version == 4 else V6
    return make_own_plan({**sides, "flow": FLOWS}, where="edge.toml", name="edge")


def add_up(result: TrialResult) -> None:
    """The flows' clean frames are those of their direction, and in their shares but for the ends of parts."""
    assert result.clean is not None
    for direction in result.directions.values():
        assert direction.clean is not None
        parts = [each.clean for each in direction.classes]
        counts = [part for part in parts if part is not None]
        assert len(counts) == len(FLOWS)
        assert sum(part.frames for part in counts) == direction.clean.frames
        assert sum(part.lost_frames for part in counts) == direction.clean.lost_frames
        cuts = 2 * (len(result.clean.left_out) + 1)
        assert counts[0].frames == pytest.approx(direction.clean.frames / 5, abs=cuts)


@BOTH
def test_what_a_stopped_tester_may_have_touched_is_left_out_of_each_flow(
    version: int, tmp_path: Path
) -> None:
    plan = plan_of(version)
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), **mix_request(plan, 100))
        numbers = iter(range(1000))

        def stopped() -> TrialResult:
            with stopped_now_and_then(session):
                return offer(session, CLEAN, trial=next(numbers))

        judged = until(
            lambda result: result.is_judged_by_clean_time and result.sent_s > WANTED_S + 2 * STOPPED_S,
            stopped,
        )
    assert judged.is_pass, judged.reasons
    add_up(judged)
    assert judged.lost_frames == 0
    assert judged.clean is not None
    for direction in judged.directions.values():
        voice, _ = direction.classes
        assert voice.clean is not None
        assert voice.clean.frames < voice.offered_frames
        assert voice.clean.frames == pytest.approx(
            judged.clean.clean_s * RATE_FPS / 5, abs=2 * len(judged.clean.left_out) + 2
        )


@pytest.mark.parametrize(("dscp", "passes"), [(46, False), (0, True)])
def test_each_flow_is_judged_by_its_own_limit_in_clean_time(dscp: int, passes: bool) -> None:
    """A fiftieth of the frames of a class is lost: too much for voice, and not for the rest."""
    plan = plan_of(4 if passes else 6)
    lossy = ReferenceDut(defects=Defects(dscp=dscp, ratios={"loss": 0.02}))
    limits = replace(CLEAN, overdue_after_us=50_000.0)  # a busy host is late, but seldom by so much

    def measured() -> TrialResult:
        with router_beside_tester(plan, lossy) as router, engine() as session:
            open_ports(
                session,
                plan,
                router.device("left"),
                router.device("right"),
                dut_macs=None,
                **mix_request(plan, 100),
            )
            session.request("resolve", timeout_s=10)
            return offer(session, limits, trial=0, rate_fps=2000)

    result = until(lambda found: found.is_judged_by_clean_time, measured)
    assert result.is_pass == passes, result.reasons
    add_up(result)
    harmed, spared = (0, 1) if dscp == 46 else (1, 0)
    for direction in result.directions.values():
        flows = [each.clean for each in direction.classes]
        lost = flows[harmed]
        assert lost is not None
        assert flows[spared] is not None
        assert lost.lost_frames > 0
    if not passes:
        assert any("of voice (at most 0 %)" in reason.text for reason in result.reasons), result.reasons
