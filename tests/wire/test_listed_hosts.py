# SPDX-License-Identifier: Apache-2.0
"""Plans whose hosts are a list of address ranges, as a routing table's prefixes are: the real engine draws
from the list, and knows its frames again. The plans are written by hand."""

from __future__ import annotations

import ipaddress
from collections import Counter
from pathlib import Path

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.testbed import needed_memory_mb
from evenhand.trial import EngineSession, learn
from tests.wire.captures import sent_frames, without_time
from tests.wire.wire_session import (
    NOBODY,
    Document,
    assert_all_came,
    drop_captures,
    engine,
    memif_cable,
    one_worker,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
SEED = 20261129
PREFIXES = 200
FRAMES = 20_000
BOTH = pytest.mark.parametrize("plan", [gateway_v4(100), gateway_v6(100)], ids=lambda plan: plan.name)
ADDRESS_AT = {4: (26, 4), 6: (22, 16)}
"""Where the source address is in a frame, and how many octets an address has."""


def philox4x32(counter: tuple[int, ...]) -> tuple[int, ...]:
    """As docs/explanation/randomness.md has it, with the seed as key."""
    c0, c1, c2, c3 = counter
    k0, k1 = SEED & 0xFFFFFFFF, SEED >> 32
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


def drawn_destination(version: int, shortest: int, k: int) -> str:
    """The destination of frame k of the forward direction, each prefix being equally likely: by hand, as the
    same page says."""
    attempt = 0
    while True:
        product = philox4x32((k, 0, 0, attempt))[1] * PREFIXES
        if product & 0xFFFFFFFF >= 2**32 % PREFIXES:
            break
        attempt += 1
    prefix = prefixes(version, shortest)[product >> 32]
    has_own_words = version == 6 and shortest < 64
    words = philox4x32((k, 0, 10, 0)) if has_own_words else philox4x32((k, 0, 8, 0))[2:]
    number = 0
    for word in words:
        number = number << 32 | word
    if version == 6:
        return str(prefix[number % prefix.num_addresses])
    return str(prefix[number * prefix.num_addresses >> 64])


def prefixes(version: int, shortest: int) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Prefixes of many lengths, one in each /16 or /32."""
    found: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
    for i in range(PREFIXES):
        if version == 4:
            found.append(ipaddress.IPv4Network(((20 << 24) + (i << 16), shortest + i % (33 - shortest))))
        else:
            length = shortest + i % (129 - shortest)
            found.append(ipaddress.IPv6Network(((0x2400 << 112) + (i << 96), length)))
    return found


def listed(plan: AddressPlan, folder: Path, shortest: int, **options: str) -> Document:
    """The plan as the engine gets it, with the prefixes in place of the right side's hosts."""
    octets = ADDRESS_AT[plan.ip_version][1]
    found = prefixes(plan.ip_version, shortest)
    path = folder / "hosts.bin"
    path.write_bytes(
        b"".join(
            int(end).to_bytes(octets)
            for prefix in found
            for end in (prefix.network_address, prefix.broadcast_address)
        )
    )
    document = plan.to_contract()
    document["right"]["hosts"] = {"list": {"path": str(path), "entries": len(found), **options}}
    return document


def open_listed(
    session: EngineSession, plan: AddressPlan, document: Document, devices: tuple[str, str]
) -> Document:
    ports = {
        side: {"device": device, "dut_mac": mac}
        for side, device, mac in zip(SIDES, devices, NOBODY, strict=True)
    }
    workers = one_worker()
    return session.request(
        "open",
        host={"memory_mb": needed_memory_mb(workers, ports, plan.smallest_frame_size)},
        ports=ports,
        workers=workers,
        plan=document,
        frame_size=plan.smallest_frame_size,
        seed=SEED,
        session=0,
    )


@BOTH
def test_over_a_cable_all_frames_come_and_each_prefix_is_reached(plan: AddressPlan, tmp_path: Path) -> None:
    """Every octet of a received frame is compared with what it must be; learning reaches a host of each
    prefix. The file is needed only until the ports are open."""
    document = listed(plan, tmp_path, 16 if plan.ip_version == 4 else 32)
    with engine() as session:
        open_listed(session, plan, document, memif_cable(tmp_path))
        (tmp_path / "hosts.bin").unlink()
        reached = learn(session, rate_fps=5_000, wait_s=0.3)
        trial = valid_trial(session)
    assert (reached.sides["right"].host_count, reached.sides["right"].reachable) == (PREFIXES, PREFIXES)
    assert (reached.sides["left"].host_count, reached.sides["left"].reachable) == (100, 100)
    assert trial["verdict"] == "PASS", trial["reasons"]
    for direction in trial["directions"].values():
        assert_all_came(direction)


@pytest.mark.parametrize(
    ("plan", "choose", "shortest"),
    [
        (gateway_v4(100), "entry", 16),
        (gateway_v4(100), "host", 16),
        (gateway_v6(100), "entry", 32),
        (gateway_v6(100), "entry", 64),  # the words of one counter are enough for both addresses
    ],
    ids=lambda value: value.name if isinstance(value, AddressPlan) else value,
)
def test_the_frames_on_the_wire_are_spread_over_the_prefixes(
    plan: AddressPlan, choose: str, shortest: int, tmp_path: Path
) -> None:
    """SEED-40, SEED-44: a capture has the frames of the preview; their destinations are addresses of the
    prefixes, each prefix as often as it should be. IPv6 prefixes of such lengths have too many addresses for
    "host", which engine/tests/address_list_test.cpp refuses."""
    version = plan.ip_version
    document = listed(plan, tmp_path, shortest, choose=choose)
    capture = tmp_path / "left.pcap"

    def captured() -> tuple[Document, list[Document]]:
        drop_captures(tmp_path)
        with engine() as session:
            devices = (f"net_pcap0,tx_pcap={capture}", f"net_pcap1,tx_pcap={tmp_path / 'right.pcap'}")
            opened = open_listed(session, plan, document, devices)
            trial = run_trial(session, trial=9, directions=["forward"], rate_fps=FRAMES, duration_s=1)
            session.request("close")
            return trial, session.request(
                "frames",
                plan=document,
                frame_size=plan.smallest_frame_size,
                seed=SEED,
                direction="forward",
                count=FRAMES,
                trial=9,
                source_mac=opened["left"]["mac"],
                destination_mac=NOBODY[0],
            )["frames"]

    _, preview = until(lambda found: was_sent_whole(found[0]), captured)
    sent = sent_frames(capture, version)
    assert len(sent) == FRAMES
    assert [without_time(frame, version) for frame in sent] == [
        without_time(bytes.fromhex(shown["octets"]), version) for shown in preview
    ]
    source_at, octets = ADDRESS_AT[version]
    destinations = [
        ipaddress.ip_address(frame[source_at + octets : source_at + 2 * octets]) for frame in sent
    ]
    assert [str(destination) for destination in destinations] == [shown["destination"] for shown in preview]
    if choose == "entry":
        assert [shown["destination"] for shown in preview[:50]] == [
            drawn_destination(version, shortest, k) for k in range(50)
        ]
    found = prefixes(version, shortest)
    step = 16 if version == 4 else 96
    first = int(found[0].network_address)
    places = [(int(destination) - first) >> step for destination in destinations]
    assert all(destination in found[i] for destination, i in zip(destinations, places, strict=True))
    hits = Counter(places)
    total = sum(prefix.num_addresses for prefix in found)
    shares = [prefix.num_addresses / total if choose == "host" else 1 / PREFIXES for prefix in found]
    large = [(hits[i], FRAMES * share) for i, share in enumerate(shares) if FRAMES * share >= 10]
    chi_square = sum((count - expected) ** 2 / expected for count, expected in large)
    # So far from its mean once in millions of seeds; this seed's draws are always the same.
    assert abs(chi_square - len(large)) < 5 * (2 * len(large)) ** 0.5
