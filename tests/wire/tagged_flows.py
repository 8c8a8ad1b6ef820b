# SPDX-License-Identifier: Apache-2.0
"""Flows of a plan behind two VLAN tags, as a capture of the sending port has them."""

from __future__ import annotations

from pathlib import Path

from evenhand.plan import AddressPlan, mix_request
from tests.wire.captures import MAGIC, TAG_AT, frames_of
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

OUTER, INNER = 200, 100
TAGGED = ([OUTER, INNER], [OUTER, INNER])
"""Both ends of a cable."""


def tags_of(frame: bytes) -> tuple[bytes, bytes]:
    """Outer and inner tag."""
    return frame[12:16], frame[16:20]


def tag(kind: int, priority: int, vlan: int) -> bytes:
    return kind.to_bytes(2, "big") + (priority << 13 | vlan).to_bytes(2, "big")


def without_tags(octets: bytes) -> bytes:
    return octets[:12] + octets[20:]


def is_test_frame(frame: bytes, version: int) -> bool:
    """Whether a frame without tags is a test frame."""
    at = TAG_AT[version]
    return frame[at : at + 3] == MAGIC


def is_of_trial(frame: bytes, version: int) -> bool:
    """Whether a frame without tags is one of a trial: in learning, the number of the trial is 0."""
    at = TAG_AT[version]
    return is_test_frame(frame, version) and frame[at + 3 : at + 5] != b"\0\0"


def captured_flows(
    plan: AddressPlan, folder: Path, *, frame_size: int, frames: int, rate_fps: int
) -> list[bytes]:
    """All frames that one trial sends forward, with their tags and without the FCS."""
    capture = folder / "left.pcap"

    def trial() -> Document:
        drop_captures(folder)
        with engine() as session:
            open_tagged(
                session,
                plan,
                (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={folder / 'right.pcap'}"),
                ([OUTER, INNER], []),
                **mix_request(plan, frame_size),
            )
            return run_trial(session, directions=["forward"], rate_fps=rate_fps, duration_s=frames / rate_fps)

    until(was_sent_whole, trial)
    return frames_of(capture)


def trial_over_cable(
    plan: AddressPlan, folder: Path, *, frame_size: int, vlans: tuple[list[int], list[int]] = TAGGED
) -> Document:
    """A valid trial of a tenth of a second, whose frames all come back as what they are."""
    with engine() as session:
        open_tagged(session, plan, memif_cable(folder), vlans, **mix_request(plan, frame_size))
        document = valid_trial(session, duration_s=0.1)
    for direction in document["directions"].values():
        assert direction["foreign_frames"] == direction["corrupted_frames"] == 0
    return document
