# SPDX-License-Identifier: Apache-2.0
"""The frames that a verdict rests on: each kind that was not what was sent is captured, octet for octet, with
the number of the frame and what is wrong with it. IPv4 and IPv6."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from evenhand.plan import AddressPlan, Direction, gateway_v4, gateway_v6
from evenhand.trial import EngineMeasurer, Limits, Load, Waits, capture_file
from evenhand.trial.capture import FRAMES_OF_A_KIND, MEANINGS
from tests.errors import raises
from tests.trial.pcapng import read_pcapng
from tests.trial.test_contract_golden import validator
from tests.wire.lying_dut import Sent, is_test_frame, lying_dut, routed, sequence_of, tag_at
from tests.wire.wire_session import engine, open_ports, run_trial

pytestmark = [pytest.mark.wire, pytest.mark.root, pytest.mark.two_cpus]
MACS = (b"\x02\x00\x00\x00\xa0\x01", b"\x02\x00\x00\x00\xa0\x02")
"""MACs of the tester's ports, which the taps have."""
LENIENT = Limits(overdue_tolerance=0.99, longest_overdue_us=1e7, offered_tolerance=0.1)
WAITS = Waits(after_routing_s=0.0, after_learning_s=0.1, residual_s=0.5, restabilize_s=0.0)
NOT_IP = b"\xff" * 6 + MACS[0] + b"\x88\xb5" + bytes(46)
KINDS = ("wrong_length", "wrong_payload", "corrupted", "duplicated", "returned", "foreign")
"""What happens to frame k, by k modulo their number."""


class Spoiler:
    """Forwards each frame in one of the ways of `KINDS`, and remembers what the tester should keep of it."""

    def __init__(self, plan: AddressPlan) -> None:
        self.plan = plan
        self.spoilt: dict[str, set[bytes]] = defaultdict(set)

    def __call__(self, side: int, frame: bytes) -> Sent:
        if not is_test_frame(self.plan, frame):
            return []
        octets = routed(self.plan, frame, MACS[1 - side])
        kind = KINDS[sequence_of(self.plan, frame) % len(KINDS)]
        kept, sent = self._spoil(kind, side, frame, octets)
        self.spoilt[kind].add(kept)
        return sent

    def _spoil(self, kind: str, side: int, frame: bytes, octets: bytes) -> tuple[bytes, Sent]:
        there, back = 1 - side, side
        match kind:
            case "wrong_length":
                return octets + b"\0\0\0\0", [(there, octets + b"\0\0\0\0")]
            case "wrong_payload":
                # Two words swapped: the checksum is right.
                at = tag_at(self.plan) + 20
                spoilt = octets[:at] + octets[at + 2 : at + 4] + octets[at : at + 2] + octets[at + 4 :]
                return spoilt, [(there, spoilt)]
            case "corrupted":
                spoilt = octets[:-1] + bytes([octets[-1] ^ 1])
                return spoilt, [(there, spoilt)]
            case "duplicated":
                return octets, [(there, octets), (there, octets)]
            case "returned":
                return frame, [(back, frame)]
            case _:
                return NOT_IP, [(there, octets), (there, NOT_IP)]


@pytest.mark.parametrize("plan", [gateway_v4(50), gateway_v6(50)], ids=lambda p: p.name)
@pytest.mark.parametrize("directions", [("forward", "reverse"), ("forward",)], ids=len)
def test_each_kind_is_kept_as_it_came(
    plan: AddressPlan, directions: tuple[Direction, ...], tmp_path: Path
) -> None:
    """Also what comes back on the port of a trial in one direction that only sends."""
    spoiler = Spoiler(plan)
    path = tmp_path / "spoilt.pcapng"
    with (
        lying_dut(spoiler) as dut,
        engine(dut.engine_command) as session,
        capture_file(path, where="x") as file,
    ):
        open_ports(session, plan, dut.left_device, dut.right_device, frame_size=128)
        measurer = EngineMeasurer(
            session=session, directions=directions, waits=WAITS, limits=LENIENT, capture=file
        )
        for _ in range(2):
            result = measurer.offer(Load(rate_fps=400, duration_s=0.5))
            assert "kept_frames" not in result.raw
        reply = run_trial(session, rate_fps=400, duration_s=0.1, kept_frames=1)
        validator("reply").validate(reply)
        assert {kept["kind"] for kept in reply["kept_frames"]} == set(KINDS)
    found = read_pcapng(path)
    kinds = Counter((packet.interface, packet.kind) for packet in found)
    ports = ("left", "right") if len(directions) == 2 else ("right",)
    back = ("left", "right") if len(directions) == 2 else ("left",)
    assert kinds == {
        **{(port, kind): FRAMES_OF_A_KIND for port in ports for kind in KINDS if kind != "returned"},
        **{(port, "returned"): FRAMES_OF_A_KIND for port in back},
    }
    assert file.counts == {
        kind: FRAMES_OF_A_KIND * len(back if kind == "returned" else ports)
        for kind in MEANINGS
        if kind in KINDS
    }
    for packet in found:
        assert packet.octets in spoiler.spoilt[packet.kind], packet
        assert packet.comment.startswith("trial 1 at 400 fps per direction: ")
        if packet.kind != "foreign":
            assert f": frame {sequence_of(plan, packet.octets)} " in packet.comment
        if packet.kind == "corrupted":
            assert packet.comment.endswith("is damaged: the UDP checksum (corrupted)")
    times = [packet.at_ns for packet in found if packet.interface == ports[0] and packet.kind == "duplicated"]
    assert times == sorted(times)
    assert max(packet.at_ns for packet in found) - min(packet.at_ns for packet in found) < 5e9


@pytest.mark.parametrize("plan", [gateway_v4(50), gateway_v6(50)], ids=lambda p: p.name)
def test_all_frames_of_a_slow_trial_are_kept_and_the_lost_ones_are_known(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """Both directions, octet for octet; every fifth frame is lost."""
    forwarded: dict[int, set[bytes]] = {0: set(), 1: set()}

    def drop_each_fifth(side: int, frame: bytes) -> Sent:
        if not is_test_frame(plan, frame) or sequence_of(plan, frame) % 5 == 4:
            return []
        octets = routed(plan, frame, MACS[1 - side])
        forwarded[1 - side].add(octets)
        return [(1 - side, octets)]

    path = tmp_path / "all.pcapng"
    with (
        lying_dut(drop_each_fifth) as dut,
        engine(dut.engine_command) as session,
        capture_file(path, where="x", keeps_all=True) as file,
    ):
        open_ports(session, plan, dut.left_device, dut.right_device, frame_size=128)
        measurer = EngineMeasurer(
            session=session, waits=WAITS, limits=LENIENT, capture=file, frame_octets=128
        )
        result = measurer.offer(Load(rate_fps=200, duration_s=0.5))
        with raises("trial.too-many-to-capture", match="9,000"):
            measurer.offer(Load(rate_fps=9000, duration_s=1))
    packets = [packet for packet in read_pcapng(path) if packet.kind == "received"]
    kept = {
        side: {packet.octets for packet in packets if packet.interface == name}
        for side, name in enumerate(("left", "right"))
    }
    assert kept == forwarded
    lost = {each.direction: each.numbers for each in file.lost}
    for name, counts in result.directions.items():
        assert lost[name] == tuple(range(4, counts.offered_frames, 5))
        assert counts.lost_frames == len(lost[name])
    assert str(file.lost[0]).startswith("4,9,14,")
