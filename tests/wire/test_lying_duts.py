# SPDX-License-Identifier: Apache-2.0
"""Devices that lose and hide it, or break what they forward: which verdict they get, and which reason. IPv4
and IPv6."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from tests.wire.lying_dut import (
    LEFT,
    RIGHT,
    Behaviour,
    Sent,
    is_test_frame,
    lying_dut,
    routed,
    sequence_of,
    tag_at,
    trial_tag_of,
)
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    Document,
    engine,
    open_ports,
    run_trial,
    thorough,
    until,
    valid_trial,
    versions,
    versions_of,
    was_sent_whole,
)

pytestmark = [pytest.mark.wire, pytest.mark.root, pytest.mark.two_cpus]
PLANS = (gateway_v4(50), gateway_v6(50))
BOTH = pytest.mark.parametrize("plan", [PLANS[1], *thorough(PLANS[0])], ids=lambda p: p.name)
MACS = (b"\x02\x00\x00\x00\xa0\x01", b"\x02\x00\x00\x00\xa0\x02")
"""MACs of the tester's ports, which the taps have."""
RATE_FPS = 400
FRAMES = 200
"""Frames of each direction: what a Python loop forwards on any machine."""


def measured(plan: AddressPlan, change: Callable[[int, bytes], Sent], **arguments: Any) -> Document:
    """A trial; `change` gets each test frame as a router would forward it, with the side where it should
    leave."""

    def behaviour(side: int, frame: bytes) -> Sent:
        if not is_test_frame(plan, frame):
            return []
        return change(1 - side, routed(plan, frame, MACS[1 - side]))

    return trial_of(plan, behaviour, **arguments)


def trial_of(
    plan: AddressPlan,
    behaviour: Behaviour,
    *,
    frame_size: int | None = None,
    run: Callable[..., Document] = valid_trial,
) -> Document:
    """The first trial of which each frame left, and came to the DUT before the answer: a thread of Python may
    get no CPU for longer than frames are waited for."""
    came: Counter[bytes] = Counter()  # of each trial, by the tag's number of it

    def counted(side: int, frame: bytes) -> Sent:
        if is_test_frame(plan, frame):
            came[trial_tag_of(plan, frame)] += 1
        return behaviour(side, frame)

    def all_came(document: Document) -> bool:
        offered = sum(counts(document, "offered_frames"))
        return was_sent_whole(document) and came[document["trial"].to_bytes(2, "big")] == offered

    with lying_dut(counted) as dut, engine(dut.engine_command) as session:
        open_ports(session, plan, dut.left_device, dut.right_device, frame_size=frame_size)
        numbers = count(1, MOST_ATTEMPTS)  # `valid_trial` takes so many
        return until(
            all_came,
            lambda: run(session, trial=next(numbers), rate_fps=RATE_FPS, duration_s=FRAMES / RATE_FPS),
        )


def counts(document: Document, name: str) -> list[int]:
    return [document["directions"][direction][name] for direction in ("forward", "reverse")]


@BOTH
def test_one_that_forwards_all_passes(plan: AddressPlan) -> None:
    """So the others fail for what they do, and not for this way of forwarding."""
    document = measured(plan, lambda side, frame: [(side, frame)])
    assert document["verdict"] == "PASS", document["reasons"]
    assert counts(document, "received_frames") == [FRAMES, FRAMES]
    assert document["notes"] == []


@versions(proved="v6", plans=PLANS)
def test_frames_sent_twice_hide_no_loss(plan: AddressPlan) -> None:
    """As many come back as were sent, and half of them are missing. A loop or a mirrored port does the same:
    it is no result."""
    document = measured(
        plan, lambda side, frame: [(side, frame)] * 2 if sequence_of(plan, frame) % 2 else [], run=run_trial
    )
    assert document["verdict"] == "INVALID", document
    assert "duplicates" in {reason["code"] for reason in document["reasons"]}
    assert counts(document, "received_frames") == [FRAMES // 2] * 2
    assert counts(document, "duplicated_frames") == [FRAMES // 2] * 2


@versions(proved="v4", plans=PLANS)
def test_a_copy_in_the_place_of_a_lost_frame_is_not_that_frame(plan: AddressPlan) -> None:
    """It numbers the copy as the lost frame: the UDP checksum covers the number."""

    def change(side: int, frame: bytes) -> Sent:
        sequence = sequence_of(plan, frame)
        if sequence % 2:
            return []
        forged = bytearray(frame)
        at = tag_at(plan) + 6
        forged[at : at + 6] = (sequence + 1).to_bytes(6, "big")
        return [(side, frame), (side, bytes(forged))]

    document = measured(plan, change)
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [FRAMES // 2] * 2
    assert counts(document, "corrupted_frames") == [FRAMES // 2] * 2


@versions(proved="v6", plans=PLANS)
def test_one_that_answers_on_the_same_port_delivers_nothing(plan: AddressPlan) -> None:
    document = measured(plan, lambda side, frame: [(1 - side, frame)])
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [0, 0]
    assert counts(document, "foreign_frames") == [FRAMES, FRAMES]


@pytest.mark.parametrize(
    ("plan", "octets"),
    [
        *versions_of((PLANS[0], -4), (PLANS[1], -4), proved="v6"),
        *versions_of((PLANS[0], 4), (PLANS[1], 4), proved="v4"),
    ],
)
def test_a_frame_that_is_shorter_or_longer_is_not_delivered(plan: AddressPlan, octets: int) -> None:
    """Each third one of 128 octets: the IP packet inside is whole where octets are added."""

    def change(side: int, frame: bytes) -> Sent:
        whole = sequence_of(plan, frame) % 3 != 0
        return [(side, frame if whole else frame[:octets] if octets < 0 else frame + bytes(octets))]

    document = measured(plan, change, frame_size=128)
    spoiled = len(range(0, FRAMES, 3))
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [FRAMES - spoiled] * 2
    assert counts(document, "wrong_length_frames") == [spoiled] * 2


@BOTH
def test_one_that_changes_an_address_and_mends_the_checksums_delivers_to_nobody(plan: AddressPlan) -> None:
    """Two addresses that are swapped leave every checksum as it was."""

    def change(side: int, frame: bytes) -> Sent:
        size = 4 if plan.ip_version == 4 else 16
        at = 14 + (12 if plan.ip_version == 4 else 8)
        return [
            (
                side,
                frame[:at]
                + frame[at + size : at + 2 * size]
                + frame[at : at + size]
                + frame[at + 2 * size :],
            )
        ]

    document = measured(plan, change)
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [0, 0]
    assert counts(document, "wrong_address_frames") == [FRAMES, FRAMES]


def with_checksums(plan: AddressPlan, frame: bytes, at: int, by: int) -> bytes:
    """The frame with an octet exclusive-or `by`, and all checksums made anew."""
    made = bytearray(frame)
    made[at] ^= by
    udp = tag_at(plan) - 8
    if plan.ip_version == 4:
        made[24:26] = bytes(2)
        made[24:26] = internet_checksum(bytes(made[14:34]))
    made[udp + 6 : udp + 8] = bytes(2)
    length = len(made) - udp
    pseudo = (
        bytes(made[26 if plan.ip_version == 4 else 22 : udp]) + bytes([0, 17]) + length.to_bytes(2, "big")
    )
    made[udp + 6 : udp + 8] = internet_checksum(pseudo + bytes(made[udp:]), none=b"\xff\xff")
    return bytes(made)


def internet_checksum(octets: bytes, none: bytes = b"\x00\x00") -> bytes:
    octets += bytes(len(octets) % 2)
    total = sum(int.from_bytes(octets[i : i + 2], "big") for i in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big") if total != 0xFFFF else none


@pytest.mark.parametrize("plan", [PLANS[0], *thorough(PLANS[1])], ids=lambda p: p.name)
def test_one_that_alters_a_field_and_makes_the_checksums_anew_delivers_another_frame(
    plan: AddressPlan,
) -> None:
    """R2544-06: it takes each eighth frame for each kind of change: an octet of the payload, the last octet,
    either port, another host of the plan as source or destination, the destination MAC, and the DSCP, which
    alone is received. Each has a count of its own, and is named in the reasons."""
    udp = tag_at(plan) - 8
    low = (1, 1) if plan.ip_version == 4 else (3, 3)  # from the end of an address to its host number
    size = 4 if plan.ip_version == 4 else 16
    addresses = udp - 2 * size
    places = {
        0: (tag_at(plan) + 40, 0xFF),
        1: (-1, 0xFF),
        2: (udp + 1, 1),
        3: (udp + 3, 1),
        4: (addresses + size - low[0], 1),
        5: (addresses + 2 * size - low[1], 1),
        6: (5, 1),
        7: (15, 0x20),
    }

    def change(side: int, frame: bytes) -> Sent:
        at, by = places[sequence_of(plan, frame) % 8]
        return [(side, with_checksums(plan, frame, at % len(frame), by))]

    document = measured(plan, change, frame_size=128)
    eighth = FRAMES // 8
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [eighth] * 2
    assert counts(document, "remarked_frames") == [eighth] * 2
    assert counts(document, "wrong_payload_frames") == [2 * eighth] * 2
    assert counts(document, "wrong_port_frames") == [2 * eighth] * 2
    assert counts(document, "wrong_address_frames") == [2 * eighth] * 2
    assert counts(document, "corrupted_frames") == [eighth] * 2
    assert document["directions"]["forward"]["corrupted_by"]["destination_mac"] == eighth
    assert {reason["code"] for reason in document["reasons"]} == {
        "loss",
        "wrong_address",
        "wrong_port",
        "wrong_payload",
        "corrupted",
    }
    assert "destination MAC" in str(document["reasons"])
    assert {note["code"] for note in document["notes"]} == {"remarked"}


@BOTH
def test_the_last_octet_of_the_smallest_frame_cannot_change_unnoticed(plan: AddressPlan) -> None:
    """R2544-06: it is the lowest octet of the time, which no receiver knows before; so is each other octet of
    the time. Checksums are made anew."""

    def change(side: int, frame: bytes) -> Sent:
        at = tag_at(plan) + 12 + sequence_of(plan, frame) % 3 + 3
        return [(side, with_checksums(plan, frame, at, 0xFF))]

    document = measured(plan, change)
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [0, 0]
    assert [
        sum(both)
        for both in zip(
            counts(document, "wrong_payload_frames"), counts(document, "wrong_time_frames"), strict=True
        )
    ] == [FRAMES] * 2
    assert min(counts(document, "wrong_payload_frames")) >= 2 * FRAMES // 3


@BOTH
def test_a_mirrored_port_is_no_result_on_whichever_port_the_copies_come(plan: AddressPlan) -> None:
    document = measured(plan, lambda side, frame: [(side, frame), (1 - side, frame)], run=run_trial)
    assert document["verdict"] == "INVALID", document
    assert "mirrored" in {reason["code"] for reason in document["reasons"]}
    assert counts(document, "received_frames") == [FRAMES, FRAMES]
    assert counts(document, "returned_frames") == [FRAMES, FRAMES]


@BOTH
def test_a_frame_turned_back_in_the_guise_of_the_other_direction_is_not_received(plan: AddressPlan) -> None:
    """Addresses, ports and direction are exchanged, so that it looks like a frame of the other direction."""

    def change(side: int, frame: bytes) -> Sent:
        size = 4 if plan.ip_version == 4 else 16
        udp = tag_at(plan) - 8
        at = udp - 2 * size
        turned = bytearray(MACS[1 - side] + frame[6:])
        turned[at:udp] = frame[at + size : udp] + frame[at : at + size]
        return [(1 - side, with_checksums(plan, bytes(turned), tag_at(plan) + 5, 0x80))]

    document = measured(plan, change)
    assert document["verdict"] == "FAIL", document["reasons"]
    assert counts(document, "received_frames") == [0, 0]
    assert counts(document, "wrong_address_frames") == [FRAMES, FRAMES]


@versions(proved="v4", plans=PLANS)
def test_one_that_turns_the_whole_trial_round_loses_nothing(plan: AddressPlan) -> None:
    """It keeps all frames until the last has come, and sends the last first: order is counted, and is no
    loss."""
    kept: dict[int, list[bytes]] = {LEFT: [], RIGHT: []}

    def change(side: int, frame: bytes) -> Sent:
        kept[side].append(frame)
        if sequence_of(plan, frame) != FRAMES - 1:
            return []
        held, kept[side] = kept[side], []
        return [(side, held_frame) for held_frame in reversed(held)]

    document = measured(plan, change)
    assert document["verdict"] == "PASS", document["reasons"]
    assert counts(document, "received_frames") == [FRAMES, FRAMES]
    assert counts(document, "reordered_frames") == [FRAMES - 1] * 2


@BOTH
def test_a_forwarder_that_does_not_lower_the_hop_limit_is_no_router(plan: AddressPlan) -> None:
    """RFC 1812, 5.3.1 and RFC 8200, 3: what it forwards arrives all the same, and the trial says that no
    router did it."""

    def behaviour(side: int, frame: bytes) -> Sent:
        return [(1 - side, MACS[1 - side] + frame[6:])] if is_test_frame(plan, frame) else []

    document = trial_of(plan, behaviour)
    assert document["verdict"] == "PASS", document["reasons"]
    assert [note["code"] for note in document["notes"]] == ["hop_limit", "hop_limit"]
