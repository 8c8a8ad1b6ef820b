# SPDX-License-Identifier: Apache-2.0
"""Stations 1 to 7: several flows at once, read from a capture, and through the reference router that does one
of them harm."""

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
from tests.wire.captures import frames_of, sent_frames, tag_of
from tests.wire.wire_session import (
    QUIET_FPS,
    Document,
    drop_captures,
    engine,
    memif_cable,
    open_ports,
    open_to_dut,
    router_beside_tester,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
FLOWS: list[dict[str, Any]] = [
    {"name": "voice", "share": 1, "dscp": "EF", "destination-port": 5060, "loss-at-most": "0%"},
    {"name": "video", "share": 3, "dscp": "AF41", "ecn": "ECT(0)", "source-port": 4000, "vlan-priority": 4},
    {"name": "rest", "share": 6},
]
BUSY_HOST = {"offered_tolerance": 0.1, "overdue_tolerance": 1, "longest_overdue_us": 1e12}
"""Limits that keep nothing but what was lost from the verdict."""
BOTH = pytest.mark.parametrize("version", [4, 6])
SHARES = {46: 1, 34: 3, 0: 6}


def plan_of(version: int) -> AddressPlan:
    flows = [dict(flow) for flow in FLOWS]
    if version == 6:
        flows[1]["flow-label"] = 0xABCDE
    return make_own_plan({**(V4 if version == 4 else V6), "flow": flows}, where="edge.toml", name="edge")


def dscp_of(frame: bytes) -> int:
    return frame[15] >> 2 if frame[12:14] == b"\x08\x00" else int.from_bytes(frame[14:16], "big") >> 6 & 0x3F


def ecn_of(frame: bytes) -> int:
    return frame[15] & 3 if frame[12:14] == b"\x08\x00" else frame[15] >> 4 & 3


def ports_of(frame: bytes) -> tuple[int, int]:
    at = 34 if frame[12:14] == b"\x08\x00" else 54
    return int.from_bytes(frame[at : at + 2], "big"), int.from_bytes(frame[at + 2 : at + 4], "big")


def checksums_are_right(frame: bytes) -> bool:
    """IPv4's, and UDP's over the pseudo header, by adding all words up."""
    is_v4 = frame[12:14] == b"\x08\x00"

    def is_right(octets: bytes) -> bool:
        # Words are added in ones' complement: as digits of one number, they leave the same remainder.
        return int.from_bytes(octets + bytes(len(octets) % 2)) % 0xFFFF == 0

    udp, addresses = (frame[34:], frame[26:34]) if is_v4 else (frame[54:], frame[22:54])
    pseudo = addresses + len(udp).to_bytes(4, "big") + (17).to_bytes(4, "big")
    return is_right(pseudo + udp) and (not is_v4 or is_right(frame[14:34]))


@BOTH
def test_a_capture_has_exact_shares_and_the_fields_of_each_flow(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    capture = tmp_path / "left.pcap"

    def captured() -> Document:
        drop_captures(tmp_path)
        with engine() as session:
            open_ports(
                session,
                plan,
                f"net_pcap0,tx_pcap={capture}",
                f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}",
                seed=77,
                **mix_request(plan, 100),
            )
            return run_trial(session, directions=["forward"], rate_fps=10_000, duration_s=0.1)

    until(was_sent_whole, captured)
    of_flows = set(sent_frames(capture, version))
    frames = [frame for frame in frames_of(capture) if frame in of_flows]
    assert len(frames) == 1000
    assert [tag_of(frame, version).sequence for frame in frames] == list(range(1000))
    for begin in range(0, 1000, 10):
        assert Counter(map(dscp_of, frames[begin : begin + 10])) == SHARES, "of every ten"
    for frame in frames:
        source, destination = ports_of(frame)
        assert (destination == 5060) == (dscp_of(frame) == 46)
        assert (source == 4000) == (dscp_of(frame) == 34)
        assert ecn_of(frame) == (2 if dscp_of(frame) == 34 else 0)
        assert len(frame) + 4 == 100
        assert checksums_are_right(frame)
        if version == 6:
            label = int.from_bytes(frame[14:18], "big") & 0xFFFFF
            assert label == (0xABCDE if dscp_of(frame) == 34 else 0)


@BOTH
def test_a_cable_brings_every_frame_of_each_flow(version: int, tmp_path: Path) -> None:
    plan = plan_of(version)
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), **mix_request(plan, 100))
        document = valid_trial(session, duration_s=0.3)
    result = TrialResult.from_contract(document)
    assert result.verdict == "PASS", result.reasons
    frames = int(QUIET_FPS * 0.3)
    for direction in result.directions.values():
        assert [c.received_frames for c in direction.classes] == [frames // 10 * n for n in (1, 3, 6)]
        for of_class in direction.classes:
            assert of_class.flow is not None
            assert of_class.flow.reordered_frames == of_class.flow.duplicated_frames == 0
            assert of_class.flow.remarked_frames == 0
            latency = of_class.flow.latency
            assert latency.min_ns is not None
            assert latency.p50_ns is not None
            assert latency.max_ns is not None
            assert latency.min_ns <= latency.p50_ns <= latency.max_ns
    text = shown(trial_report(result))
    assert "forward, voice" in text
    assert "reverse, rest" in text


def trial_through(plan: AddressPlan, dut: ReferenceDut, limits: Document) -> tuple[Document, Document]:
    """A trial, and what the router says that it has done."""
    with router_beside_tester(plan, dut) as router, engine() as session:
        open_to_dut(session, plan, router.device("left"), router.device("right"), **mix_request(plan, 100))
        return run_trial(session, limits=limits), router.counters()


@BOTH
def test_what_the_router_does_to_one_class_is_charged_to_it_alone(version: int) -> None:
    """A tenth of the frames with DSCP 34 is lost: within the trial's limit of 5 % of all others together, and
    voice has lost nothing."""
    plan = plan_of(version)
    lossy = ReferenceDut(defects=Defects(dscp=34, ratios={"loss": 0.1, "duplication": 0.05}))

    limits = {**BUSY_HOST, "loss_ratio": 0.05, "duplicate_tolerance": 1}
    document, counters = until(
        lambda found: was_sent_whole(found[0]), lambda: trial_through(plan, lossy, limits)
    )
    lost = duplicated = 0
    for direction in document["directions"].values():
        voice, video, rest = direction["classes"]
        assert voice["lost_frames"] == rest["lost_frames"] == 0
        assert voice["flow"]["duplicated_frames"] == rest["flow"]["duplicated_frames"] == 0
        lost += video["lost_frames"]
        duplicated += video["flow"]["duplicated_frames"]
    assert lost == counters["defects"]["lost_frames"] > 0
    assert duplicated == counters["defects"]["duplicated_frames"] > 0
    assert document["verdict"] != "FAIL", document["reasons"]


def test_a_flow_that_loses_more_than_its_own_limit_fails_the_trial() -> None:
    """One lost frame of voice, where all together may lose 5 %."""
    plan = plan_of(4)
    lossy = ReferenceDut(defects=Defects(dscp=46, at={"loss": (700,)}))

    # Late frames would explain one that is lost, and a busy machine has some in every trial.
    limits = {**BUSY_HOST, "overdue_after_us": 1e6, "loss_ratio": 0.05}
    document, _ = until(
        lambda found: was_sent_whole(found[0]) and found[0]["verdict"] != "INVALID",
        lambda: trial_through(plan, lossy, limits),
    )
    assert document["verdict"] == "FAIL"
    # A busy machine may have lost frames of other flows, too: a reason for each direction.
    texts = [each["text"] for each in document["reasons"] if each["code"] == "loss"]
    assert any("of voice (at most 0 %)" in each for each in texts), texts
