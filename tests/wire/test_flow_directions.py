# SPDX-License-Identifier: Apache-2.0
"""Flows of one direction, and other flows for each: what each port sends, read from captures of both ports by
an own reader; what comes back over a cable; and a loss that is charged to the flow of its direction."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan, mix_request
from evenhand.reference import Defects, ReferenceDut
from evenhand.report.trial import trial_report
from evenhand.trial import TrialResult
from tests.plan.test_flows import V4, V6
from tests.report.test_throughput import shown
from tests.wire.captures import frames_of, tag_of
from tests.wire.tagged_flows import is_of_trial
from tests.wire.test_flows import BOTH, BUSY_HOST, dscp_of, ports_of, trial_through
from tests.wire.wire_session import (
    Document,
    drop_captures,
    engine,
    memif_cable,
    open_ports,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
SIZE = 100
DOWN_SIZE = 300
FLOWS: list[dict[str, Any]] = [
    {"name": "calls", "share": 1, "dscp": 46},
    {"name": "down", "share": 2, "dscp": 34, "direction": "forward", "frame-size": DOWN_SIZE},
    {"name": "up", "share": 4, "dscp": 18, "direction": "reverse", "source-port": "7-9:increment"},
    {"name": "logs", "share": 5, "dscp": 8, "direction": "reverse", "destination-port": 514},
]


def plan_of(version: int) -> AddressPlan:
    sides = V4 if version == 4 else V6
    return make_own_plan({**sides, "flow": FLOWS}, where="edge.toml", name="edge")


@BOTH
def test_each_port_sends_the_flows_of_its_direction(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    sides = {"forward": tmp_path / "left.pcap", "reverse": tmp_path / "right.pcap"}

    def captured() -> Document:
        drop_captures(tmp_path)
        with engine() as session:
            devices = [f"net_pcap{n},tx_pcap={path}" for n, path in enumerate(sides.values())]
            open_ports(session, plan, *devices, seed=77, **mix_request(plan, SIZE))
            return run_trial(session, rate_fps=10_000, duration_s=0.06)

    until(was_sent_whole, captured)
    found: dict[str, list[bytes]] = {}
    for direction, path in sides.items():
        frames = [frame for frame in frames_of(path) if is_of_trial(frame, version)]
        assert [tag_of(frame, version).sequence for frame in frames] == list(range(600))
        found[direction] = frames
    for begin in range(0, 600, 30):
        of_each = {way: Counter(map(dscp_of, frames[begin : begin + 30])) for way, frames in found.items()}
        assert of_each == {"forward": {46: 10, 34: 20}, "reverse": {46: 3, 18: 12, 8: 15}}
    assert {(dscp_of(frame), len(frame) + 4) for frame in found["forward"]} == {(46, SIZE), (34, DOWN_SIZE)}
    assert {len(frame) + 4 for frame in found["reverse"]} == {SIZE}
    up = [ports_of(frame)[0] for frame in found["reverse"] if dscp_of(frame) == 18]
    assert up == [7 + n % 3 for n in range(len(up))]
    assert {ports_of(frame)[1] for frame in found["reverse"] if dscp_of(frame) == 8} == {514}


@BOTH
def test_a_cable_brings_the_flows_of_each_direction(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), **mix_request(plan, SIZE))
        result = TrialResult.from_contract(valid_trial(session, duration_s=0.3))
    assert result.is_pass, result.reasons
    counted = {
        direction: {
            of_class.flow.name: (of_class.frame_size, of_class.offered_frames, of_class.received_frames)
            for of_class in of_direction.classes
            if of_class.flow is not None
        }
        for direction, of_direction in result.directions.items()
    }
    third, tenth = (result.directions["forward"].offered_frames // n for n in (3, 10))
    assert counted == {
        "forward": {"calls": (SIZE, third, third), "down": (DOWN_SIZE, 2 * third, 2 * third)},
        "reverse": {
            "calls": (SIZE, tenth, tenth),
            "up": (SIZE, 4 * tenth, 4 * tenth),
            "logs": (SIZE, 5 * tenth, 5 * tenth),
        },
    }
    text = shown(trial_report(result))
    assert "forward, down" in text
    assert "reverse, logs" in text
    assert "reverse, down" not in text


@BOTH
def test_a_loss_is_charged_to_the_flow_of_its_direction(version: int) -> None:
    plan = plan_of(version)
    lossy = ReferenceDut(defects=Defects(dscp=8, ratios={"loss": 0.1}))
    document, counters = until(
        lambda found: was_sent_whole(found[0]),
        lambda: trial_through(plan, lossy, {**BUSY_HOST, "loss_ratio": 0.5}),
    )
    lost = {
        (direction, each["flow"]["name"]): each["lost_frames"]
        for direction, of_direction in document["directions"].items()
        for each in of_direction["classes"]
    }
    assert lost.pop(("reverse", "logs")) == counters["defects"]["lost_frames"] > 0
    assert set(lost.values()) == {0}
