# SPDX-License-Identifier: Apache-2.0
"""Flows with a VLAN priority: it is in every tag of their frames and in no other frame's, and a link with it
is heard like one without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scapy.utils import rdpcap

from evenhand.plan import mix_request
from tests.wire.captures import MAGIC, TAG_AT, tag_of
from tests.wire.test_flows import BOTH, FLOWS, dscp_of, plan_of
from tests.wire.test_vlan import open_tagged
from tests.wire.wire_session import (
    Document,
    drop_captures,
    engine,
    memif_cable,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
OUTER, INNER = 200, 100
(PRIORITY,) = (flow["vlan-priority"] for flow in FLOWS if "vlan-priority" in flow)
VIDEO_DSCP = 34
FRAMES = 500


def tags_of(frame: bytes) -> tuple[bytes, bytes]:
    """Outer and inner tag."""
    return frame[12:16], frame[16:20]


def tag(kind: int, priority: int, vlan: int) -> bytes:
    return kind.to_bytes(2, "big") + (priority << 13 | vlan).to_bytes(2, "big")


@BOTH
def test_both_tags_have_the_priority_of_their_flow_alone(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    capture = tmp_path / "left.pcap"

    def captured() -> Document:
        drop_captures(tmp_path)
        with engine() as session:
            open_tagged(
                session,
                plan,
                (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}"),
                ([OUTER, INNER], []),
                **mix_request(plan, 108),
            )
            return run_trial(session, directions=["forward"], rate_fps=10_000, duration_s=FRAMES / 10_000)

    until(was_sent_whole, captured)
    seen: Counter[tuple[bool, int]] = Counter()
    numbers = []
    for octets in map(bytes, rdpcap(str(capture))):
        frame = octets[:12] + octets[20:]
        at = TAG_AT[version]
        is_test_frame = frame[at : at + 3] == MAGIC
        priority = PRIORITY if is_test_frame and dscp_of(frame) == VIDEO_DSCP else 0
        assert tags_of(octets) == (tag(0x88A8, priority, OUTER), tag(0x8100, priority, INNER))
        if is_test_frame and frame[at + 3 : at + 5] != b"\0\0":  # in learning, the trial is 0
            numbers.append(tag_of(frame, version).sequence)
            seen[dscp_of(frame) == VIDEO_DSCP, priority] += 1
    assert numbers == list(range(FRAMES))
    assert seen == {(True, PRIORITY): FRAMES * 3 // 10, (False, 0): FRAMES * 7 // 10}


@BOTH
def test_a_link_with_priorities_brings_every_frame(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    with engine() as session:
        vlans = ([OUTER, INNER], [OUTER, INNER])
        open_tagged(session, plan, memif_cable(tmp_path), vlans, **mix_request(plan, 108))
        document = valid_trial(session, duration_s=0.1)
    for direction in document["directions"].values():
        assert direction["foreign_frames"] == direction["corrupted_frames"] == 0
        shares = [each["received_frames"] for each in direction["classes"]]
        assert sum(shares) == direction["offered_frames"]
        assert shares == [direction["offered_frames"] * share // 10 for share in (1, 3, 6)]
