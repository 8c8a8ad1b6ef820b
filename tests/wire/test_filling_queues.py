# SPDX-License-Identifier: Apache-2.0
"""A queue that fills during a trial, on the real reference router: what a single short trial tells of the
capacity."""

from __future__ import annotations

import pytest

from evenhand.plan import make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import ReferenceDut, ReferenceRouter, reference_router
from tests.wire.wire_session import Document, engine, open_to_dut, until, valid_trial, versions_of

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.usefixtures("_router")]
CAPACITY_FPS = 20_000
"""The capacity of the router's one element, for one direction: far below what tester and router can do."""


def forward(router: ReferenceRouter, name: str, load: float) -> Document:
    plan = make_plan(name)
    with engine() as session:
        open_to_dut(session, plan, router.device("left"), router.device("right"))
        document = valid_trial(session, rate_fps=load * CAPACITY_FPS, duration_s=1, directions=["forward"])
    found: Document = {**document["directions"]["forward"], "notes": document["notes"]}
    return found


def capacity_of(direction: Document) -> float:
    """As a reader takes it: what the delays say, or else what came back."""
    filling = direction.get("queue_filling")
    return float(direction["forwarding_rate_fps"] if filling is None else filling["sustainable_fps"])


@pytest.mark.parametrize(
    ("queue_frames", "name"),
    [
        (16, "gateway-v4"),
        pytest.param(500, "gateway-v6", marks=pytest.mark.slow),
        pytest.param(4_096, "gateway-v4", marks=pytest.mark.slow),
        (100_000, "gateway-v6"),
    ],
)
def test_one_second_at_105_percent_tells_the_capacity(name: str, queue_frames: int) -> None:
    """Whatever the queue holds, and though a deep one loses nothing."""
    model = DeviceModel(elements=1, rate_fps=CAPACITY_FPS, queue_frames=queue_frames)

    def measured() -> Document:
        with reference_router(make_plan(name), ReferenceDut(model=model)) as router:
            return forward(router, name, 1.05)

    direction = until(lambda found: abs(capacity_of(found) / CAPACITY_FPS - 1) < 0.01, measured)
    if queue_frames >= 4_096:
        assert direction["lost_frames"] == 0
    if queue_frames >= 500:
        assert direction["queue_filling"]["slope"] == pytest.approx(0.05, abs=0.01)
        assert "queue_filling" in {note["code"] for note in direction["notes"]}


@pytest.mark.parametrize("name", versions_of("gateway-v4", "gateway-v6", proved="v6"))
def test_at_99_percent_no_queue_fills(name: str) -> None:
    model = DeviceModel(elements=1, rate_fps=CAPACITY_FPS, queue_frames=4_096)
    with reference_router(make_plan(name), ReferenceDut(model=model)) as router:
        direction = forward(router, name, 0.99)
    assert "queue_filling" not in direction
    assert len(direction["delay_by_slice"]) == 50
    assert sum(frames for frames, *_ in direction["delay_by_slice"]) == direction["received_frames"]
