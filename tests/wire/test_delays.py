# SPDX-License-Identifier: Apache-2.0
"""What a trial records of delays beyond the histogram, where it is asked to (RFC 8219 sections 7.2 and 7.3)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from wire_session import QUIET_FPS, engine, memif_cable, open_ports, run_trial, valid_trial

from evenhand.errors import RequestError
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.reference import Defects, ReferenceDut, reference_router

SCHEMA = json.loads((Path(__file__).parents[2] / "contract" / "reply.schema.json").read_text())
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
pytestmark = pytest.mark.wire


def of_forward(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(document, SCHEMA)
    delays: dict[str, Any] = document["directions"]["forward"]["delays"]
    return delays


@PLANS
def test_delays_count_from_their_time_on(plan: AddressPlan, tmp_path: Path) -> None:
    """R8219-07, R8219-12, R8219-13: no tag before its time, as many as asked for; every later frame's delay, and its difference."""
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path))
        document = valid_trial(
            session, duration_s=1, rate_fps=QUIET_FPS, delays={"from_s": 0.4, "tagged_frames": 500, "variation": True}
        )  # fmt: skip
    frames = int(QUIET_FPS * 0.6)
    for direction in document["directions"].values():
        delays, latency = direction["delays"], direction["latency"]
        jsonschema.validate(document, SCHEMA)
        assert (delays["first_frame"], delays["offered_frames"], delays["lost_frames"]) == (QUIET_FPS * 0.4, frames, 0)
        assert latency["count"] == frames
        assert [delays[f"{key}_ns"] for key in ("min", "p50", "p99", "p999")] == [
            latency[f"{key}_ns"] for key in ("min", "p50", "p99", "p999")
        ]
        assert abs(delays["pdv_ns"] - (latency["p999_ns"] - latency["min_ns"])) <= 1  # rounded once, not twice
        assert [sequence for sequence, _ in delays["tagged"]] == [delays["first_frame"] + n * (frames // 500) for n in range(500)]
        assert all(latency["min_ns"] <= delay <= latency["max_ns"] for _, delay in delays["tagged"])
        variation = delays["variation"]
        assert (variation["pairs"], variation["unseen_pairs"]) == (frames - 1, 0)
        assert variation["min_ns"] < 0 < variation["max_ns"]
        assert variation["min_ns"] <= variation["median_ns"] <= variation["max_ns"]
        assert -variation["min_ns"] <= latency["max_ns"] - latency["min_ns"]


def test_delays_are_not_there_unless_they_are_asked_for(tmp_path: Path) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        assert "delays" not in run_trial(session, duration_s=0.1)["directions"]["forward"]


@PLANS
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="router and tester need a CPU each")
def test_a_lost_frame_is_infinitely_late(plan: AddressPlan) -> None:
    """R8219-16: 1.1 in a thousand lost make the 99.9th percentile infinite, but neither the minimum, nor the median, nor a difference."""
    at = tuple(range(100, 3200, 70))  # of all forwarded frames; some belong to the other direction
    with reference_router(plan, ReferenceDut(defects=Defects(at={"loss": at}))) as router, engine() as session:
        open_ports(session, plan, router.left_device, router.right_device, dut_macs=None)
        session.request("resolve", timeout_s=10)
        document = run_trial(
            session, duration_s=0.5, rate_fps=QUIET_FPS, directions=["forward"], delays={"tagged_frames": 1000, "variation": True}
        )  # fmt: skip
    delays = of_forward(document)
    lost = document["directions"]["forward"]["first_lost"]
    assert delays["lost_frames"] >= len(at) > 0.001 * delays["offered_frames"]
    assert (delays["p999_ns"], delays["pdv_ns"]) == ("infinite", "infinite")
    assert delays["min_ns"] <= delays["p50_ns"]
    # Each lost frame stands alone, so two differences are missing for each.
    assert delays["variation"]["pairs"] + delays["variation"]["unseen_pairs"] <= delays["offered_frames"] - 1 - 2 * len(at) + 2
    tagged = dict(delays["tagged"])
    assert all(tagged[k] is None for k in lost if k in tagged)


@pytest.mark.parametrize(
    ("delays", "where"), [({"from_s": 0.5}, "delays.from_s"), ({"from_s": 0.4, "tagged_frames": 2001}, "delays.tagged_frames")]
)
def test_delays_of_frames_that_are_never_sent_are_refused(delays: dict[str, Any], where: str, tmp_path: Path) -> None:
    with engine() as session:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path))
        with pytest.raises(RequestError) as refused:
            run_trial(session, duration_s=0.5, rate_fps=QUIET_FPS, delays=delays)
        assert refused.value.where == where
        assert run_trial(session, duration_s=0.1)["verdict"] != "FAIL"
