# SPDX-License-Identifier: Apache-2.0
"""Flows in VLANs of their own, read from a capture by an own reader: in the innermost tag of their frames
alone, in turn, drawn, and in lock-step; and over a cable, where each frame must still be in its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_own_plan, mix_request
from tests.plan.test_flows import V4, V6
from tests.wire.captures import tag_of
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
from tests.wire.test_flows import BOTH, dscp_of
from tests.wire.test_vlan import open_tagged
from tests.wire.wire_session import NOBODY, engine, memif_cable, run_trial

pytestmark = pytest.mark.wire
SIZE = 108
FRAMES = 3000
SITES = [301, 4094, 17]
CLASSES = [46, 34, 0]
STEPPED = range(1000, 1100, 10)
FLOWS: list[dict[str, Any]] = [
    {"name": "sites", "dscp": CLASSES, "vlan": SITES, "lock-step": ["dscp", "vlan"], "vlan-priority": 5},
    {"name": "tenants", "vlan": {"first": 1000, "last": 1090, "step": 10, "mode": "increment"}, "dscp": 10},
    {"name": "drawn", "vlan": "2000-2003", "dscp": 12},
    {"name": "alone", "vlan": 9, "dscp": 14},
    {"name": "rest", "dscp": 16},
]
"""In equal shares: frame k is of flow k modulo 5."""


def plan_of(version: int) -> AddressPlan:
    return make_own_plan({**(V4 if version == 4 else V6), "flow": FLOWS}, where="edge.toml", name="edge")


def inner_of(octets: bytes) -> int:
    return int.from_bytes(octets[18:20]) & 0xFFF


@BOTH
def test_a_capture_has_the_vlans_of_each_flow(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    all_frames = captured_flows(plan, tmp_path, frame_size=SIZE, frames=FRAMES, rate_fps=20_000)
    frames: list[list[bytes]] = [[] for _ in FLOWS]
    numbers = []
    for octets in all_frames:
        frame = without_tags(octets)
        if not is_of_trial(frame, version):
            assert tags_of(octets) == (tag(0x88A8, 0, OUTER), tag(0x8100, 0, INNER)), "learning, ARP and ND"
            continue
        number = tag_of(frame, version).sequence
        numbers.append(number)
        frames[number % len(FLOWS)].append(octets)
        priority = 5 if number % len(FLOWS) == 0 else 0
        assert tags_of(octets) == (tag(0x88A8, priority, OUTER), tag(0x8100, priority, inner_of(octets)))
    assert numbers == list(range(FRAMES))

    sites, tenants, drawn, alone, rest = frames
    together = Counter((dscp_of(without_tags(octets)), inner_of(octets)) for octets in sites)
    assert together.keys() == set(zip(CLASSES, SITES, strict=True)), "in lock-step"
    assert [inner_of(octets) for octets in tenants] == [STEPPED[n % 10] for n in range(len(tenants))], (
        "in turn"
    )
    draws = Counter(map(inner_of, drawn))
    assert draws.keys() == {2000, 2001, 2002, 2003}
    for counts, total in ((together, len(sites)), (draws, len(drawn))):
        expected = total / len(counts)
        assert all((count - expected) ** 2 < 36 * expected for count in counts.values()), "equally likely"
    assert set(map(inner_of, alone)) == {9}
    assert set(map(inner_of, rest)) == {INNER}

    with engine() as session:
        shown = session.request(
            "frames",
            plan=plan.to_request(),
            frame_size=SIZE,
            seed=77,
            direction="forward",
            count=100,
            source_mac="02:00:00:00:00:01",
            destination_mac=NOBODY[0],
            vlan=[OUTER, INNER],
            **mix_request(plan, SIZE),
        )["frames"]
    sent = [frames[k % len(FLOWS)][k // len(FLOWS)] for k in range(100)]
    assert [tags_of(bytes.fromhex(each["octets"])) for each in shown] == [tags_of(octets) for octets in sent]


@BOTH
def test_over_a_cable_each_frame_comes_back_in_its_vlan(version: int, tmp_path: Path) -> None:
    document = trial_over_cable(plan_of(version), tmp_path, frame_size=SIZE)
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] > 0
        assert direction["remarked_frames"] == 0


@BOTH
def test_only_what_is_in_neither_vlan_is_foreign(version: int, tmp_path: Path) -> None:
    """The receiving side is in VLAN 9, in which one flow is sent: the flow without VLANs is in neither."""
    with engine() as session:
        open_tagged(
            session,
            plan_of(version),
            memif_cable(tmp_path),
            ([INNER], [9]),
            **mix_request(plan_of(version), SIZE),
        )
        document = run_trial(session, duration_s=0.1, directions=["forward"])
    direction = document["directions"]["forward"]
    received = {
        each["flow"]["name"]: (each["received_frames"], each["offered_frames"])
        for each in direction["classes"]
    }
    (none, of_rest) = received.pop("rest")
    assert none == 0
    assert direction["foreign_frames"] == of_rest > 0
    assert all(came == sent > 0 for came, sent in received.values())
