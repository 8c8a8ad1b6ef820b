# SPDX-License-Identifier: Apache-2.0
"""Flows with a VLAN priority: it is in every tag of their frames and in no other frame's, and a link with it
is heard like one without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.wire.captures import tag_of
from tests.wire.tagged_flows import (
    INNER,
    OUTER,
    captured_flows,
    is_of_trial,
    is_test_frame,
    tag,
    tags_of,
    trial_over_cable,
    without_tags,
)
from tests.wire.test_flows import BOTH, FLOWS, dscp_of, plan_of

pytestmark = pytest.mark.wire
(PRIORITY,) = (flow["vlan-priority"] for flow in FLOWS if "vlan-priority" in flow)
VIDEO_DSCP = 34
FRAMES = 500


@BOTH
def test_both_tags_have_the_priority_of_their_flow_alone(version: int, tmp_path: Path) -> None:
    seen: Counter[tuple[bool, int]] = Counter()
    numbers = []
    for octets in captured_flows(plan_of(version), tmp_path, frame_size=108, frames=FRAMES, rate_fps=10_000):
        frame = without_tags(octets)
        priority = PRIORITY if is_test_frame(frame, version) and dscp_of(frame) == VIDEO_DSCP else 0
        assert tags_of(octets) == (tag(0x88A8, priority, OUTER), tag(0x8100, priority, INNER))
        if is_of_trial(frame, version):
            numbers.append(tag_of(frame, version).sequence)
            seen[dscp_of(frame) == VIDEO_DSCP, priority] += 1
    assert numbers == list(range(FRAMES))
    assert seen == {(True, PRIORITY): FRAMES * 3 // 10, (False, 0): FRAMES * 7 // 10}


@BOTH
def test_a_link_with_priorities_brings_every_frame(version: int, tmp_path: Path) -> None:
    document = trial_over_cable(plan_of(version), tmp_path, frame_size=108)
    for direction in document["directions"].values():
        shares = [each["received_frames"] for each in direction["classes"]]
        assert sum(shares) == direction["offered_frames"]
        assert shares == [direction["offered_frames"] * share // 10 for share in (1, 3, 6)]
