# SPDX-License-Identifier: Apache-2.0
"""Stations 2 to 7: frames of several sizes and of both IP versions in one trial, on software ports and
through the reference router."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import (
    AddressPlan,
    Imix,
    gateway_v4,
    gateway_v6,
    make_plan,
    mix_request,
    mix_versions,
    parse_imix,
)
from evenhand.trial import TrialResult, find_engine
from tests.preloaded.commands import evenhand_command
from tests.wire.captures import UDP_CHECKSUM_AT, frames_of, sent_frames, tag_of, without_time
from tests.wire.wire_session import (
    NOBODY,
    QUIET_FPS,
    Document,
    cpus,
    drop_captures,
    engine,
    memif_cable,
    open_ports,
    open_to_dut,
    run_trial,
    until,
    valid_trial,
    was_sent_whole,
)

pytestmark = pytest.mark.wire
IMIX = parse_imix("imix:aaafg")
BOTH_IMIX = parse_imix("imix:AAAFG:A=84:F=1280:G=1518")


def version_of(frame: bytes) -> int:
    return {b"\x08\x00": 4, b"\x86\xdd": 6}[frame[12:14]]


def header_sum(frame: bytes) -> int:
    total = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
    return (total & 0xFFFF) + (total >> 16)


def capture_of(
    plan: AddressPlan, size: int | Imix, folder: Path, *, frames: int = 1000
) -> tuple[list[bytes], list[bytes]]:
    """What the left port sent, in its order, and what the engine shows of it beforehand."""
    capture = folder / "left.pcap"

    def captured() -> tuple[Document, Any]:
        drop_captures(folder)
        with engine() as session:
            opened = open_ports(
                session,
                plan,
                f"net_pcap0,tx_pcap={capture}",
                f"net_pcap1,tx_pcap={folder / 'right.pcap'}",
                seed=77,
                **mix_request(plan, size),
            )
            document = run_trial(
                session, trial=9, directions=["forward"], rate_fps=frames * 10, duration_s=0.1
            )
            session.request("close")
            return document, session.request(
                "frames",
                plan=plan.to_contract(),
                frame_size=plan.smallest_frame_size,
                seed=77,
                direction="forward",
                count=frames,
                trial=9,
                source_mac=opened["left"]["mac"],
                destination_mac=NOBODY[0],
                **mix_request(plan, size),
            )["frames"]

    _, preview = until(lambda found: was_sent_whole(found[0]), captured)
    by_sequence = sorted(
        (
            frame
            for version in (4, 6)
            for frame in sent_frames(capture, version)
            if version_of(frame) == version
        ),
        key=lambda frame: tag_of(frame, version_of(frame)).sequence,
    )
    of_mix = set(by_sequence)
    in_order = [frame for frame in frames_of(capture) if frame in of_mix]
    assert in_order == by_sequence, "frames leave in the order of their numbers"
    return by_sequence, [bytes.fromhex(frame["octets"]) for frame in preview]


def test_an_imix_of_both_versions_stands_in_the_capture_as_it_was_asked_for(tmp_path: Path) -> None:
    """R6985-01, R5180-14: an independent reader finds each size in its place, 9 of 10 frames IPv4, all
    checksums and payloads right."""
    plan = mix_versions(gateway_v4(), gateway_v6(), (90, 10))
    sent, preview = capture_of(plan, BOTH_IMIX, tmp_path)
    assert len(sent) == len(preview) == 1000
    for k, (frame, shown) in enumerate(zip(sent, preview, strict=True)):
        version = version_of(frame)
        assert tag_of(frame, version).sequence == k
        assert len(frame) + 4 == BOTH_IMIX.octets[k % 5]
        assert version == (6 if (k + k % 50 // 10) % 10 == 9 else 4), "one of ten, and of each size alike"
        udp = UDP_CHECKSUM_AT[version] - 6
        assert int.from_bytes(frame[udp + 4 : udp + 6], "big") == len(frame) - udp
        assert int.from_bytes(frame[16:18] if version == 4 else frame[18:20], "big") == len(frame) - (
            14 if version == 4 else 54
        )
        if version == 4:
            assert header_sum(frame) == 0xFFFF
        pattern = udp + 26
        first = 0 if version == 4 else 20  # both are counted from the octet behind IPv4's tag
        assert frame[pattern:] == bytes((first + i) % 256 for i in range(len(frame) - pattern))
        assert without_time(frame, version) == without_time(shown, version)
    for begin in range(0, 1000, 100):
        assert Counter(map(version_of, sent[begin : begin + 100])) == {4: 90, 6: 10}
    assert Counter(len(frame) + 4 for frame in sent if version_of(frame) == 6) == {84: 60, 1280: 20, 1518: 20}


def test_an_imix_of_ipv4_is_sent_as_its_letters_say(tmp_path: Path) -> None:
    """R6985-01: the sequence repeats exactly; frame k is frame k of a plan without a mix, with another
    length."""
    sent, _ = capture_of(gateway_v4(), IMIX, tmp_path, frames=100)
    assert [len(frame) + 4 for frame in sent] == [64, 64, 64, 1280, 1518] * 20
    with engine() as session:
        for size in (64, 1518):
            alike = session.request(
                "frames",
                plan=gateway_v4().to_contract(),
                frame_size=size,
                seed=77,
                direction="forward",
                count=100,
            )
            for frame, shown in zip(sent, alike["frames"], strict=True):
                if len(frame) + 4 == size:
                    assert frame[26:38] == bytes.fromhex(shown["octets"])[26:38], "addresses and UDP ports"
                    assert frame[60:] == bytes.fromhex(shown["octets"])[60:]


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def test_a_drawn_order_is_sent_and_repeats_exactly(plan: AddressPlan, tmp_path: Path) -> None:
    """R6985-01: the capture has the order that the text has, again and again."""
    drawn = parse_imix("imix:AAAG:A=84:G=1518:frames=40:seed=3")
    sent, _ = capture_of(plan, drawn, tmp_path, frames=100)
    in_order = [{"A": 84, "G": 1518}[letter] for letter in drawn.letters]
    assert [len(frame) + 4 for frame in sent] == (in_order * 3)[:100]
    assert in_order != [84, 84, 84, 1518] * 10


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (gateway_v4(), IMIX),
        (gateway_v4(), parse_imix("imix:aaafg:frames=250:seed=7")),
        (gateway_v6(), BOTH_IMIX),
        (mix_versions(gateway_v6(), gateway_v4(), (1, 1)), 84),
        (mix_versions(make_plan("direct-v4-net16", 100), make_plan("direct-v6", 100), (10, 90)), BOTH_IMIX),
    ],
    ids=["v4-imix", "v4-drawn", "v6-imix", "half-half", "direct-imix"],
)
def test_a_cable_brings_every_frame_of_a_mix(plan: AddressPlan, size: int | Imix, tmp_path: Path) -> None:
    """R6985-01, R5180-14, R2544-06: nothing is lost or of a wrong length, and the counts of the classes are
    those of the sequence."""
    mix = mix_request(plan, size)["mix"]
    host_macs: Document = {"host_macs": "pseudorandom"} if plan.is_direct else {}
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), mix=mix, **host_macs)
        document = valid_trial(session, duration_s=0.3)
    result = TrialResult.from_contract(document)
    assert result.verdict == "PASS", result.reasons
    assert document["mix"]["period_frames"] == len(mix["cycle"])
    frames = int(QUIET_FPS * 0.3)
    expected = Counter(mix["cycle"][k % len(mix["cycle"])] for k in range(frames))
    for name, direction in result.directions.items():
        assert direction.wrong_length_frames == direction.corrupted_frames == 0
        assert [c.received_frames for c in direction.classes] == [
            expected[i] for i in range(len(mix["classes"]))
        ], name
        assert [c.frame_size for c in direction.classes] == [c["frame_size"] for c in mix["classes"]]


def test_three_streams_send_the_same_mix(tmp_path: Path) -> None:
    """R6985-01: each stream has its share of the sequence, and a direction's frames are the same."""
    workers = [
        {
            "cpu": cpus()[-1],
            "senders": [{"side": "left", "stream": n} for n in range(3)] + [{"side": "right", "stream": 0}],
            "receivers": [
                {"side": side, "queue": queue}
                for side, queue in (("left", 0), ("right", 0), ("right", 1), ("right", 2))
            ],
        }
    ]
    plan = mix_versions(gateway_v4(), gateway_v6(), (9, 1))
    with engine() as session:
        open_ports(session, plan, *memif_cable(tmp_path), workers=workers, **mix_request(plan, BOTH_IMIX))
        document = valid_trial(session, duration_s=0.3)
    assert document["verdict"] == "PASS", document["reasons"]
    for direction in document["directions"].values():
        assert (
            sum(c["received_frames"] for c in direction["classes"] if c["ip_version"] == 6)
            == QUIET_FPS * 0.3 / 10
        )


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*evenhand_command(), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def router_config(folder: Path, *, routes_v6: bool) -> Path:
    """The reference router for both IP versions, with or without a way to IPv6's right hosts."""
    cables = {
        side: f"net_memif{i},role=server,id={i},socket={folder / side},socket-abstract=no,rsize=11"
        for i, side in enumerate(("left", "right"))
    }
    routes = [
        {"network": "198.18.0.0/16", "via": "10.0.0.2"},
        {"network": "198.19.0.0/16", "via": "10.0.1.2"},
    ]
    routes.append({"network": "2001:2::/64", "via": "2001:2:0:1000::2"})
    if routes_v6:
        routes.append({"network": "2001:2:0:8000::/64", "via": "2001:2:0:9000::2"})
    config = {
        "ports": {
            "left": {"device": cables["left"], "addresses": ["10.0.0.1/24", "2001:2:0:1000::1/64"]},
            "right": {"device": cables["right"], "addresses": ["10.0.1.1/24", "2001:2:0:9000::1/64"]},
        },
        "cpu": cpus()[0],
        "routes": routes,
    }
    path = folder / "router.json"
    path.write_text(json.dumps(config))
    return path


@pytest.mark.two_cpus
@pytest.mark.parametrize("routes_v6", [True, False], ids=["both", "v6 without a route"])
def test_a_router_forwards_both_versions_and_a_loss_of_one_is_its_own(
    routes_v6: bool, tmp_path: Path
) -> None:
    """R5180-14: both DUT addresses are resolved on each link (ARP and ND); without a route for IPv6 its
    frames are lost, and no others."""
    config = router_config(tmp_path, routes_v6=routes_v6)
    plan = mix_versions(gateway_v4(), gateway_v6(), (9, 1))
    router = subprocess.Popen(
        [find_engine().parents[1] / "router" / "evenhand-router", config],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert router.stdout is not None
        assert json.loads(router.stdout.readline())["event"] == "ready"
        clients = [
            f"net_memif{i},role=client,id={i},socket={tmp_path / side},socket-abstract=no,rsize=11"
            for i, side in enumerate(("left", "right"))
        ]
        with engine() as session:
            open_to_dut(session, plan, *clients, **mix_request(plan, BOTH_IMIX))
            document = valid_trial(session, directions=["forward"], rate_fps=5_000, duration_s=0.4)
    finally:
        router.terminate()
        router.wait(timeout=10)
    classes: list[dict[str, Any]] = document["directions"]["forward"]["classes"]
    assert sum(c["offered_frames"] for c in classes) == 2_000
    assert sum(c["lost_frames"] for c in classes if c["ip_version"] == 4) == 0
    assert sum(c["lost_frames"] for c in classes if c["ip_version"] == 6) == (0 if routes_v6 else 200)
    assert document["verdict"] == ("PASS" if routes_v6 else "FAIL")


def test_the_verb_takes_a_mix_and_says_what_it_sent(tmp_path: Path) -> None:
    """R6985-01, R5180-14, SEED-49: the result names the sequence, its mean, and the share of each IP
    version."""
    testbed = tmp_path / "cable.toml"
    left, right = memif_cable(tmp_path)
    testbed.write_text(
        f'isolated_test_environment = true\n[left]\ndevice = "{left}"\ndut_mac = "{NOBODY[0]}"\n'
        f'[right]\ndevice = "{right}"\ndut_mac = "{NOBODY[1]}"\n[tester]\ncpus = [{cpus()[-1]}]\n'
    )
    common = (
        "trial",
        str(testbed),
        "--rate",
        "5kfps",
        "--duration",
        "0.2s",
        "--waits",
        "short",
        "--plan",
        "gateway-v4+gateway-v6",
    )
    shown = run_cli(*common, "--mix", "90/10", "--frame-size", "CUSTOM IMIX - AAAG (A=84, G=1518)")
    assert shown.returncode == 0, shown.stderr
    assert "frames of CUSTOM IMIX - AAAG (A=84, G=1518) (mean 442.5 octets)" in shown.stdout
    assert "of every 10 frames of a direction, 9 are IPv4 and 1 are IPv6" in shown.stdout
    assert "forward, IPv6" in shown.stdout
    refused = run_cli(*common, "--frame-size", "imix:aaafg")
    assert refused.returncode == 2
    assert "an IPv6 test frame has 84" in refused.stderr
