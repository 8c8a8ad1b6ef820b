# SPDX-License-Identifier: Apache-2.0
"""Flows of unlike sizes on a link with VLAN tags: each frame in a capture is as long as its flow says, with
the tags and the FCS, and every one of them arrives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan
from evenhand.report.trial import trial_report
from evenhand.trial import TrialResult
from tests.plan.test_flows import V4, V6
from tests.report.test_throughput import shown
from tests.wire.captures import TAG_AT, tag_of, without_time
from tests.wire.tagged_flows import (
    INNER,
    OUTER,
    captured_flows,
    is_of_trial,
    tag,
    tags_of,
    trial_over_cable,
    without_tags,
)
from tests.wire.test_flows import BOTH, checksums_are_right, dscp_of

pytestmark = pytest.mark.wire
FLOWS: list[dict[str, Any]] = [
    {"name": "voice", "share": 5, "dscp": 46, "vlan-priority": 5},
    {"name": "video", "share": 3, "dscp": 34, "frame-size": 1280, "vlan-priority": 4},
    {"name": "bulk", "share": 2, "dscp": 8, "frame-size": 1526},
]
OF_TRIAL = 110
"""The size of a flow that has none of its own."""
SIZES = {flow["dscp"]: flow.get("frame-size", OF_TRIAL) for flow in FLOWS}
PRIORITIES = {flow["dscp"]: flow.get("vlan-priority", 0) for flow in FLOWS}
SHARES = {flow["dscp"]: flow["share"] for flow in FLOWS}
FRAMES = 500


def plan_of(version: int) -> AddressPlan:
    return make_own_plan({**(V4 if version == 4 else V6), "flow": FLOWS}, where="edge.toml", name="edge")


@BOTH
def test_each_frame_of_a_capture_is_as_long_as_its_flow_says(version: int, tmp_path: Path) -> None:
    """Payload included, whose pattern continues behind the tag up to the end, whatever was in the buffer."""
    at = TAG_AT[version]
    numbers, flows = [], []
    for octets in captured_flows(
        plan_of(version), tmp_path, frame_size=OF_TRIAL, frames=FRAMES, rate_fps=10_000
    ):
        frame = without_tags(octets)
        if not is_of_trial(frame, version):
            continue
        dscp = dscp_of(frame)
        assert len(octets) + 4 == SIZES[dscp]
        priority = PRIORITIES[dscp]
        assert tags_of(octets) == (tag(0x88A8, priority, OUTER), tag(0x8100, priority, INNER))
        ip_length = int.from_bytes(frame[16:18]) if version == 4 else 40 + int.from_bytes(frame[18:20])
        assert ip_length == len(frame) - 14
        assert checksums_are_right(frame)
        assert frame[at + 18 :] == bytes(k & 0xFF for k in range(len(frame) - at - 18))
        assert without_time(frame, version)
        numbers.append(tag_of(frame, version).sequence)
        flows.append(dscp)
    assert numbers == list(range(FRAMES))
    for begin in range(0, FRAMES, 10):
        assert Counter(flows[begin : begin + 10]) == SHARES, "of every ten"


@BOTH
def test_frames_of_unlike_sizes_arrive_through_tags(version: int, tmp_path: Path) -> None:
    """Counts and octets of each flow; the report has the size of each."""
    document = trial_over_cable(plan_of(version), tmp_path, frame_size=OF_TRIAL)
    for direction in document["directions"].values():
        assert direction["wrong_length_frames"] == 0
        counts = {each["flow"]["name"]: each["received_frames"] for each in direction["classes"]}
        tenth = direction["offered_frames"] // 10
        assert counts == {flow["name"]: flow["share"] * tenth for flow in FLOWS}
        assert [each["frame_size"] for each in direction["classes"]] == list(SIZES.values())
    text = shown(trial_report(TrialResult.from_contract(document)))
    for size in SIZES.values():
        assert f"{size:,}" in text or str(size) in text
