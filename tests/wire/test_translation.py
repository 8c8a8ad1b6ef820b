# SPDX-License-Identifier: Apache-2.0
"""A stateless translator between the ports: the reference router as one, with and without defects, and its
frames beside those that scapy builds."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from evenhand.plan import AddressPlan, make_plan, mix_request, mix_versions, parse_imix
from evenhand.predict import DeviceModel, HashType, predict
from evenhand.reference import ReferenceDut
from tests.plan.routed import PREFIXES
from tests.wire.test_reference_router import (
    CONTRACT,
    DUT_LEFT,
    DUT_RIGHT,
    LEFT_MAC,
    RIGHT_MAC,
    measure,
    run_on_files,
)
from tests.wire.wire_session import (
    QUIET_FPS,
    Document,
    proved,
    router_beside_tester,
    thorough,
    until,
    was_sent_whole,
)

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("_router")]
LENGTHS = (32, 40, 48, 56, 64, 96)
"""Lengths of a prefix of RFC 6052, in bits."""


def through_router(
    plan: AddressPlan, dut: ReferenceDut | None = None, mix: Document | None = None, **arguments: Any
) -> tuple[Document, Document]:
    """A trial in which the host let every frame leave and be seen, and what the router counted."""

    def once() -> tuple[Document, Document]:
        with router_beside_tester(plan, dut) as router:
            return measure(router, plan, opened=mix, **arguments), router.counters()

    def is_clean(found: tuple[Document, Document]) -> bool:
        document, counters = found
        return was_sent_whole(document) and not any(
            counters[side]["transmit_dropped_frames"] or document["directions"][way]["receiver"]["gap_frames"]
            for side, way in (("left", "reverse"), ("right", "forward"))
        )

    return until(is_clean, once)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("siit", 64),
        ("siit", 1498),
        ("siit-eam", 512),
        ("siit-eam@2001:db8::/40", 1498),
        *thorough(*((f"siit@{prefix}", 64) for prefix in PREFIXES)),
        *proved(("siit", 512), ("siit-eam", 64), ("siit-eam", 1498)),
    ],
)
def test_every_frame_comes_back_with_its_own_addresses(name: str, size: int) -> None:
    """R8219-01, R8219-08: 20 octets longer on the IPv6 side; each is checked against the addresses that its
    number must have."""
    document, counters = through_router(make_plan(name), rate_fps=QUIET_FPS, duration_s=0.5, frame_size=size)
    jsonschema.validate(counters, json.loads((CONTRACT / "router-reply.schema.json").read_text()))
    for direction in document["directions"].values():
        assert direction["received_frames"] == direction["offered_frames"] == QUIET_FPS * 0.5
        assert direction["mistranslated_frames"] == {
            "no_checksum": 0,
            "traffic_class": 0,
            "address_or_port": 0,
        }
    assert counters["translation"]["translated_frames"] == QUIET_FPS
    assert counters["translation"]["refused_frames"] == 0


@pytest.mark.parametrize(
    "name",
    ["siit", "siit-eam@2001:db8::/64", *thorough("siit-eam", *(f"siit@{prefix}" for prefix in PREFIXES))],
)
def test_each_defect_of_a_translator_is_counted_to_the_frame(name: str) -> None:
    """RFC 7915: a frame with the address of another host of the plan would pass every other check."""
    defects = {"wrong_address_every": 999, "traffic_class_every": 1000, "no_checksum_every": 1001}
    document, counters = through_router(
        make_plan(name), ReferenceDut(translation_defects=defects), rate_fps=QUIET_FPS, duration_s=0.5
    )
    jsonschema.validate(document, json.loads((CONTRACT / "reply.schema.json").read_text()))
    made, found = counters["translation"], document["directions"].values()
    assert made["wrong_address_frames"] >= 10
    assert made["traffic_class_frames"] >= 10
    assert made["no_checksum_frames"] > 0
    for key, kind in (("address_or_port", "wrong_address"), ("traffic_class",) * 2, ("no_checksum",) * 2):
        assert sum(d["mistranslated_frames"][key] for d in found) == made[f"{kind}_frames"], key
    assert sum(d["corrupted_frames"] + d["wrong_length_frames"] + d["foreign_frames"] for d in found) == 0
    wrong = sum(sum(d["mistranslated_frames"].values()) for d in found)
    assert sum(d["lost_frames"] for d in found) == wrong
    assert document["verdict"] != "PASS"
    assert {note["code"] for note in document["notes"]} >= {"mistranslated"}


@pytest.mark.parametrize(
    ("name", "share"), [("siit", (9, 1)), *thorough(("siit-eam", (1, 1))), *proved(("siit", (1, 9)))]
)
def test_native_traffic_goes_beside_what_is_translated(name: str, share: tuple[int, int]) -> None:
    """R8219-05: of every n + m frames n are translated and m are not; each kind is counted, and the
    translated ones are checked as without the others."""
    plan = mix_versions(make_plan(name), make_plan("gateway-v6"), share)
    defects = {"wrong_address_every": 500}
    document, counters = through_router(
        plan,
        ReferenceDut(translation_defects=defects),
        mix=mix_request(plan, 84),
        rate_fps=QUIET_FPS,
        duration_s=0.5,
    )
    made, directions = counters["translation"], document["directions"]
    for found in directions.values():
        assert sorted(c["offered_frames"] for c in found["classes"]) == sorted(
            QUIET_FPS * 0.5 * part / sum(share) for part in share
        )
        assert sum(c["received_frames"] for c in found["classes"]) == found["received_frames"]
    assert made["translated_frames"] == QUIET_FPS * share[0] / sum(share)
    wrong = sum(d["mistranslated_frames"]["address_or_port"] for d in directions.values())
    assert wrong == made["wrong_address_frames"] > 0
    assert sum(d["lost_frames"] for d in directions.values()) == wrong


def test_a_sequence_of_sizes_is_translated() -> None:
    """R6985-01: each size is 20 octets longer on the IPv6 side."""
    size = parse_imix("imix:AAB:A=64:B=1400")
    plan = make_plan("siit")
    document, counters = through_router(plan, mix=mix_request(plan, size), rate_fps=QUIET_FPS, duration_s=0.3)
    assert counters["translation"]["translated_frames"] == 2 * QUIET_FPS * 0.3
    sizes = {"forward": [84, 1420], "reverse": [64, 1400]}
    for direction, found in document["directions"].items():
        assert found["lost_frames"] == 0
        assert sorted(c["frame_size"] for c in found["classes"]) == sizes[direction]


@pytest.mark.thorough
@pytest.mark.parametrize(("hosts", "hash_type"), [(1, "type1"), (None, "type1"), (1, "type2")])
def test_the_elements_of_a_translator_are_those_that_were_predicted(
    hosts: int | None, hash_type: HashType
) -> None:
    """RSS-01: each direction is hashed as it comes in, in its own IP version."""
    plan = make_plan("siit", hosts)
    model = DeviceModel(elements=16, hash_type=hash_type, rate_fps=200_000, queue_frames=4096)
    prediction = predict(plan, model)
    document, counters = through_router(plan, ReferenceDut(model=model))
    served = [element["served_frames"] for element in counters["elements"]]
    assert sum(served) == sum(d["received_frames"] for d in document["directions"].values())
    assert {i for i, frames in enumerate(served) if frames} == {
        i for i, count in enumerate(prediction.total_counts) if count
    }


def frames_of(addresses: list[tuple[str, str]], version: int) -> list[Packet]:
    source_mac, destination_mac = (LEFT_MAC, DUT_LEFT) if version == 6 else (RIGHT_MAC, DUT_RIGHT)
    return [
        Ether(src=source_mac, dst=destination_mac)
        / (
            IPv6(src=source, dst=destination, hlim=64, tc=0xB8)
            if version == 6
            else IP(src=source, dst=destination, ttl=64, tos=0xB8, flags="DF")
        )
        / UDP(sport=1000 + i, dport=7)
        / (b"payload" * (1 + 30 * i))
        for i, (source, destination) in enumerate(addresses)
    ]


@pytest.mark.parametrize(
    ("length", "is_mapped"),
    [
        *((length, False) for length in LENGTHS),
        (96, True),
        *proved(*((length, True) for length in LENGTHS[:-1])),
    ],
)
def test_the_router_translates_as_scapy_would_with_prefixes_of_all_lengths(
    tmp_path: Path, length: int, is_mapped: bool
) -> None:
    """RFC 6052, RFC 7757, RFC 7915: addresses, traffic class, hop limit, lengths and checksums."""
    prefix = ipaddress.IPv6Network(("2001:db8:1:2::", length), strict=False)
    plan = make_plan(f"{'siit-eam' if is_mapped else 'siit'}@{prefix}")
    told = plan.translation
    assert told is not None
    assert told.needs_mapping == is_mapped
    pairs = [
        (
            plan.left.host_range.address(i),
            plan.right.peers.address(i),
            plan.right.host_range.address(65_000 - i),
        )
        for i in range(7)
        if plan.right.peers is not None
    ]
    down = frames_of([(str(v6), str(told.embed(ipaddress.IPv4Address(str(v4))))) for v6, _, v4 in pairs], 6)
    up = frames_of([(str(v4), str(as_v4)) for _, as_v4, v4 in pairs], 4)
    unknown = frames_of([("198.19.0.1", "203.0.113.9")], 4)
    left, right, counters = run_on_files(tmp_path, plan, down, up + unknown, expected=len(down) + len(up))
    assert counters["translation"] == {
        "translated_frames": len(down) + len(up),
        **dict.fromkeys(
            ("refused_frames", "wrong_address_frames", "no_checksum_frames", "traffic_class_frames"), 0
        ),
    }
    assert counters["right"]["no_route_frames"] == 1
    for (_, as_v4, v4), sent, got in zip(pairs, down, right, strict=True):
        expected = (
            Ether(src=DUT_RIGHT, dst=RIGHT_MAC)
            / IP(src=str(as_v4), dst=str(v4), ttl=63, tos=0xB8, id=got[IP].id, flags=got[IP].flags)
            / sent[UDP].copy()
        )
        del expected[UDP].chksum
        assert got[IP].flags == ("DF" if len(sent[UDP]) + 20 > 1260 else 0)
        assert bytes(got)[: len(bytes(expected))] == bytes(expected)
    for (v6, _, v4), sent, got in zip(pairs, up, left, strict=True):
        expected = (
            Ether(src=DUT_LEFT, dst=LEFT_MAC)
            / IPv6(src=str(told.embed(ipaddress.IPv4Address(str(v4)))), dst=str(v6), hlim=63, tc=0xB8)
            / sent[UDP].copy()
        )
        del expected[UDP].chksum
        assert bytes(got)[: len(bytes(expected))] == bytes(expected)
